"""What JAX and its compiler say by themselves: one calm line each, or nothing."""

from __future__ import annotations

import ctypes
import logging
import os
import pkgutil
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec

from fmab_jax.errors import describe_error
from fmab_jax.files import error_stream
from fmab_jax.lazy_imports import hide_packages

_NO_DRIVER = "JAX goes on without its CUDA plug-in, since this machine has no NVIDIA driver"


def quieten_jax() -> None:
    """Shortens messages of JAX; call it before JAX is imported.

    Where the user asked JAX or XLA for messages, by a variable, they stay as they are.
    """
    # A process that has imported JAX hands on the level 1.
    if "JAX_LOGGING_LEVEL" in os.environ or os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1") != "1":
        return
    # XLA logs a compilation of two minutes as an error.
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    # Without a driver the plug-in of CUDA logs what no setting suppresses.
    names = [] if _has_cuda_driver() else _find_cuda_plugins()
    absent = [f"jax_plugins.xla_{name}" for name in names]
    hide_packages(*absent, *(f"jax_{name}_plugin" for name in names))
    logging.getLogger("jax._src.xla_bridge").addFilter(partial(_filter_message, absent))


def _find_cuda_plugins() -> list[str]:
    """Returns the versions of CUDA that JAX has plug-ins for, such as "cuda13"."""
    spec = find_spec("jax_plugins")
    modules = pkgutil.iter_modules(spec.submodule_search_locations or ()) if spec else ()
    return [name[4:] for _, name, _ in modules if name.startswith("xla_cuda")]


def _has_cuda_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _filter_message(absent: Sequence[str], record: logging.LogRecord) -> bool:
    """Shows a message about a backend in one line; returns whether to show it as it is.

    Args:
        absent: Modules of plug-ins that were hidden; one line tells of all.
        record: The message.
    """
    if record.levelno < logging.WARNING:
        return True
    words = record.args if isinstance(record.args, tuple) else ()
    names = [word for word in words if word in absent]
    if names and names[0] != absent[0]:
        return False
    error = record.exc_info[1] if record.exc_info else None
    # Some messages have a place for a word, and no word.
    line = f"JAX: {record.getMessage() if words else record.msg}"
    line += f" ({describe_error(error)})" if error else ""
    line = _NO_DRIVER if names else " ".join(line.split())
    error_stream().write(f"fmab: {line}\n")
    return False
