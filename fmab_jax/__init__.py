"""Private, communication-limited federated bandits, simulated in batches on whatever JAX can use.

The names below are the whole public interface; they are imported when first used, so that
``import fmab_jax`` starts neither JAX nor matplotlib and changes nobody's configuration. Every
module in the folder ``algorithms`` is public under its own name: ``fmab_jax.cdp_mab`` and so on.
"""

import gc
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmab_jax import ratings
    from fmab_jax.algorithms.adap_ucb import AdaPUCB as adap_ucb
    from fmab_jax.algorithms.base import Algorithm, list_algorithms
    from fmab_jax.algorithms.cdp_mab import CDP as cdp_mab
    from fmab_jax.algorithms.ddp_mab import DDP as ddp_mab
    from fmab_jax.algorithms.dducb import DDUCB as dducb
    from fmab_jax.algorithms.dec_ucb import DecUCB as dec_ucb
    from fmab_jax.algorithms.demab import DEMAB as demab
    from fmab_jax.algorithms.dist_dp_se import DistDPSE as dist_dp_se
    from fmab_jax.algorithms.dp_imed import DPIMED as dp_imed
    from fmab_jax.algorithms.dp_klucb import DPKLUCB as dp_klucb
    from fmab_jax.algorithms.dp_se import DPSE as dp_se
    from fmab_jax.algorithms.families.elimination import Elimination
    from fmab_jax.algorithms.families.episodes import Episodes
    from fmab_jax.algorithms.families.index import IndexPolicy
    from fmab_jax.algorithms.fed1_ucb import Fed1UCB as fed1_ucb
    from fmab_jax.algorithms.fed_ucb import FedUCB as fed_ucb
    from fmab_jax.algorithms.gosine import GosInE as gosine
    from fmab_jax.algorithms.gossip_ucb import GossipUCB as gossip_ucb
    from fmab_jax.algorithms.hdp_mab import HDP as hdp_mab
    from fmab_jax.algorithms.kl_se import KLSE as kl_se
    from fmab_jax.algorithms.kl_se_components import KLSEComponents as kl_se_components
    from fmab_jax.algorithms.kl_se_graph import KLSEGraph as kl_se_graph
    from fmab_jax.algorithms.kl_ucb import KLUCB as kl_ucb
    from fmab_jax.algorithms.lazy_dp_ts import LazyDPTS as lazy_dp_ts
    from fmab_jax.algorithms.lcc_ucb import LCCUCB as lcc_ucb
    from fmab_jax.algorithms.ldp_ucb import LDPUCB as ldp_ucb
    from fmab_jax.algorithms.single_mab import Single as single_mab
    from fmab_jax.algorithms.thompson import Thompson as thompson
    from fmab_jax.algorithms.tree_ucb import TreeUCB as tree_ucb
    from fmab_jax.algorithms.ucb1 import UCB1 as ucb1
    from fmab_jax.algorithms.uniform_play import UniformPlay as uniform_play
    from fmab_jax.analysis.audit import audit
    from fmab_jax.analysis.bands import confidence_band, paired_difference
    from fmab_jax.analysis.comparisons import compare, compare_all
    from fmab_jax.analysis.conformance import check_algorithm
    from fmab_jax.analysis.overview import overview
    from fmab_jax.analysis.prices import communication_cost
    from fmab_jax.analysis.privacy import privacy_ledger
    from fmab_jax.analysis.tables import final_table
    from fmab_jax.core.exchanges import Exchange
    from fmab_jax.core.outputs import Output
    from fmab_jax.core.problems import Problem
    from fmab_jax.core.rewards import Bernoulli, Gaussian, Law, Ratings
    from fmab_jax.parameters import parameter
    from fmab_jax.plots.audit import plot_audit
    from fmab_jax.plots.parameters import plot_heat, plot_parameter
    from fmab_jax.plots.pareto import plot_pareto
    from fmab_jax.plots.runs import plot_runs, save_figure
    from fmab_jax.reports.page import write_report
    from fmab_jax.run.cache import use_compilation_cache
    from fmab_jax.run.netcdf import load, save
    from fmab_jax.sweeps.exports import export
    from fmab_jax.sweeps.precision import until_precise
    from fmab_jax.sweeps.results import open_sweep
    from fmab_jax.sweeps.runner import sweep
    from fmab_jax.sweeps.simulate import simulate

__version__ = "0.2.0"

_HOME = {
    "Problem": "core.problems",
    "Algorithm": "algorithms.base",
    "Elimination": "algorithms.families.elimination",
    "IndexPolicy": "algorithms.families.index",
    "Episodes": "algorithms.families.episodes",
    "Exchange": "core.exchanges",
    "Output": "core.outputs",
    "Law": "core.rewards",
    "Bernoulli": "core.rewards",
    "Gaussian": "core.rewards",
    "Ratings": "core.rewards",
    "parameter": "parameters",
    "list_algorithms": "algorithms.base",
    "simulate": "sweeps.simulate",
    "communication_cost": "analysis.prices",
    "check_algorithm": "analysis.conformance",
    "save": "run.netcdf",
    "load": "run.netcdf",
    "use_compilation_cache": "run.cache",
    "compare": "analysis.comparisons",
    "compare_all": "analysis.comparisons",
    "privacy_ledger": "analysis.privacy",
    "audit": "analysis.audit",
    "confidence_band": "analysis.bands",
    "paired_difference": "analysis.bands",
    "sweep": "sweeps.runner",
    "until_precise": "sweeps.precision",
    "open_sweep": "sweeps.results",
    "final_table": "analysis.tables",
    "overview": "analysis.overview",
    "export": "sweeps.exports",
    "plot_runs": "plots.runs",
    "save_figure": "plots.runs",
    "plot_parameter": "plots.parameters",
    "plot_heat": "plots.parameters",
    "plot_pareto": "plots.pareto",
    "plot_audit": "plots.audit",
    "write_report": "reports.page",
}
_PLUGS = tuple(
    sorted(
        path.stem
        for path in (Path(__file__).parent / "algorithms").glob("*.py")
        if path.stem not in ("__init__", "base")
    )
)

# Rooms that are public as they are.
_ROOMS = ("ratings",)

__all__ = ["__version__", *_HOME, *_PLUGS, *_ROOMS]


def __getattr__(name: str) -> Any:
    # Nothing that an import makes is garbage; to look through it takes a fifth of its time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _found(name)
    finally:
        if collecting:
            gc.enable()


def _found(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name in _PLUGS:
        from fmab_jax.algorithms.base import algorithms_in

        return next(algorithms_in(import_module(f"{__name__}.algorithms.{name}")))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
