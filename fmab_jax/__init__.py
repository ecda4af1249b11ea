"""Private, communication-limited federated bandits, simulated in batches on whatever JAX can use.

The names below are the whole public interface; they are imported when first used, so that
``import fmab_jax`` starts neither JAX nor matplotlib and changes nobody's configuration.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Problem": "problems",
    "cdp_mab": "elimination",
    "ddp_mab": "elimination",
    "hdp_mab": "elimination",
    "single_mab": "elimination",
    "simulate": "simulation",
    "communication_cost": "simulation",
    "confidence_band": "bands",
    "paired_difference": "bands",
    "sweep": "sweeps",
    "precision": "study",
    "open_sweep": "results",
    "final_table": "results",
    "export": "exports",
    "save": "store",
    "load": "store",
    "plot_runs": "plots",
    "save_figure": "plots",
    "plot_parameter": "sweep_plots",
    "plot_heat": "sweep_plots",
    "plot_pareto": "sweep_plots",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
