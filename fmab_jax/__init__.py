"""Private, communication-limited federated bandits, simulated in batches on whatever JAX can use.

The names below are the whole public interface; they are imported when first used, so that
``import fmab_jax`` starts neither JAX nor matplotlib and changes nobody's configuration. Every
module in the folder ``algorithms`` is public under its own name: ``fmab_jax.cdp_mab`` and so on.
"""

import gc
import re
from importlib import import_module
from pathlib import Path

__version__ = "0.3.0"

# Type checkers and editors read the same file, so public names are stated once.
_STUB = Path(__file__).with_suffix(".pyi").read_text("utf-8")
_HOME = {
    name: home
    for home, name in re.findall(r"^from fmab_jax\.(\S+) import (\w+) as \2$", _STUB, re.M)
}
_PLUGS = tuple(
    sorted(
        path.stem
        for path in (Path(__file__).parent / "algorithms").glob("*.py")
        if path.stem not in ("__init__", "base")
    )
)

# Public modules.
_ROOMS = tuple(re.findall(r"^from fmab_jax import (\w+) as \1$", _STUB, re.M))

__all__ = ["__version__", *_HOME, *_PLUGS, *_ROOMS]


def __getattr__(name: str) -> object:
    # Imports make no garbage, and collecting takes a fifth of their time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _load_name(name)
    finally:
        if collecting:
            gc.enable()


def _load_name(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name in _PLUGS:
        from fmab_jax.algorithms.base import ALGORITHMS

        return ALGORITHMS.list_parts(import_module(f"{__name__}.algorithms.{name}"))[0]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
