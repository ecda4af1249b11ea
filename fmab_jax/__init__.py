"""Private, communication-limited federated bandits, simulated in batches on whatever JAX can use.

The names below are the whole public interface; they are imported when first used, so that
``import fmab_jax`` starts neither JAX nor matplotlib and changes nobody's configuration.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Problem": "core.problems",
    "cdp_mab": "algorithms.families.elimination",
    "ddp_mab": "algorithms.families.elimination",
    "hdp_mab": "algorithms.families.elimination",
    "single_mab": "algorithms.families.elimination",
    "simulate": "run.simulation",
    "communication_cost": "run.simulation",
    "confidence_band": "analysis.bands",
    "paired_difference": "analysis.bands",
    "sweep": "sweeps.runner",
    "precision": "sweeps.study",
    "open_sweep": "sweeps.results",
    "final_table": "sweeps.results",
    "export": "sweeps.exports",
    "save": "run.netcdf",
    "load": "run.netcdf",
    "plot_runs": "plots.runs",
    "save_figure": "plots.runs",
    "plot_parameter": "plots.parameters",
    "plot_heat": "plots.parameters",
    "plot_pareto": "plots.parameters",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
