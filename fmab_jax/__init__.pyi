"""The public names, for type checkers and editors; `__init__.py` reads here where they are."""

from fmab_jax import ratings as ratings
from fmab_jax.algorithms.adap_ucb import AdaPUCB
from fmab_jax.algorithms.base import Algorithm as Algorithm
from fmab_jax.algorithms.base import list_algorithms as list_algorithms
from fmab_jax.algorithms.cdp_mab import CDP
from fmab_jax.algorithms.ces import CES
from fmab_jax.algorithms.ddp_mab import DDP
from fmab_jax.algorithms.dducb import DDUCB
from fmab_jax.algorithms.dec_ucb import DecUCB
from fmab_jax.algorithms.dist_dp_se import DistDPSE
from fmab_jax.algorithms.dp_imed import DPIMED
from fmab_jax.algorithms.dp_klucb import DPKLUCB
from fmab_jax.algorithms.dp_se import DPSE
from fmab_jax.algorithms.families.elimination import Elimination as Elimination
from fmab_jax.algorithms.families.episodes import Episodes as Episodes
from fmab_jax.algorithms.families.index import IndexPolicy as IndexPolicy
from fmab_jax.algorithms.fed1_ucb import Fed1UCB
from fmab_jax.algorithms.fed_ucb import FedUCB
from fmab_jax.algorithms.gosine import GosInE
from fmab_jax.algorithms.gossip_ucb import GossipUCB
from fmab_jax.algorithms.hdp_mab import HDP
from fmab_jax.algorithms.kl_se import KLSE
from fmab_jax.algorithms.kl_se_components import KLSEComponents
from fmab_jax.algorithms.kl_se_graph import KLSEGraph
from fmab_jax.algorithms.kl_ucb import KLUCB
from fmab_jax.algorithms.lazy_dp_ts import LazyDPTS
from fmab_jax.algorithms.lcc_ucb import LCCUCB
from fmab_jax.algorithms.ldp_ucb import LDPUCB
from fmab_jax.algorithms.single_mab import Single
from fmab_jax.algorithms.thompson import Thompson
from fmab_jax.algorithms.tree_ucb import TreeUCB
from fmab_jax.algorithms.ucb1 import UCB1
from fmab_jax.algorithms.uniform_play import UniformPlay
from fmab_jax.analysis.bands import confidence_band as confidence_band
from fmab_jax.analysis.bands import paired_difference as paired_difference
from fmab_jax.analysis.comparisons import compare as compare
from fmab_jax.analysis.comparisons import compare_all as compare_all
from fmab_jax.analysis.conformance import check_algorithm as check_algorithm
from fmab_jax.analysis.costs import communication_cost as communication_cost
from fmab_jax.analysis.leaks import at_leak as at_leak
from fmab_jax.analysis.leaks import find_leak as find_leak
from fmab_jax.analysis.overview import overview as overview
from fmab_jax.analysis.overview import show as show
from fmab_jax.analysis.privacy import privacy_ledger as privacy_ledger
from fmab_jax.analysis.tables import add_leaks as add_leaks
from fmab_jax.analysis.tables import table as table
from fmab_jax.parameters import parameter as parameter
from fmab_jax.parts.exchanges import Exchange as Exchange
from fmab_jax.parts.mechanisms.mechanism import Mechanism as Mechanism
from fmab_jax.parts.outputs import Output as Output
from fmab_jax.parts.outputs import Reduce as Reduce
from fmab_jax.parts.presences.absent import Absent as Absent
from fmab_jax.parts.presences.absent import Late as Late
from fmab_jax.parts.presences.corrupted import Corrupted as Corrupted
from fmab_jax.parts.presences.links import Links as Links
from fmab_jax.parts.presences.presence import Presence as Presence
from fmab_jax.parts.rewards import Bernoulli as Bernoulli
from fmab_jax.parts.rewards import Gaussian as Gaussian
from fmab_jax.parts.rewards import Law as Law
from fmab_jax.parts.rewards import Ratings as Ratings
from fmab_jax.parts.worlds.contextual import ContextualWorld as ContextualWorld
from fmab_jax.parts.worlds.drifting import Drifting as Drifting
from fmab_jax.parts.worlds.linear import Linear as Linear
from fmab_jax.parts.worlds.world import World as World
from fmab_jax.planning.planner import plan as plan
from fmab_jax.plots.heat import plot_heat as plot_heat
from fmab_jax.plots.lines import plot_parameter as plot_parameter
from fmab_jax.plots.over_time import plot_runs as plot_runs
from fmab_jax.plots.pareto import plot_pareto as plot_pareto
from fmab_jax.plots.saving import save_figure as save_figure
from fmab_jax.records.problem import Problem as Problem
from fmab_jax.reports.page import write_report as write_report
from fmab_jax.run.cache import use_compilation_cache as use_compilation_cache
from fmab_jax.run.netcdf import save as save
from fmab_jax.sweeps.api import Study as Study
from fmab_jax.sweeps.api import simulate as simulate
from fmab_jax.sweeps.api import sweep as sweep
from fmab_jax.sweeps.exports import export as export
from fmab_jax.sweeps.precision import until_precise as until_precise
from fmab_jax.sweeps.results import load as load
from fmab_jax.sweeps.results import open_sweep as open_sweep

__version__: str

adap_ucb = AdaPUCB
cdp_mab = CDP
ces = CES
ddp_mab = DDP
dducb = DDUCB
dec_ucb = DecUCB
dist_dp_se = DistDPSE
dp_imed = DPIMED
dp_klucb = DPKLUCB
dp_se = DPSE
fed1_ucb = Fed1UCB
fed_ucb = FedUCB
gosine = GosInE
gossip_ucb = GossipUCB
hdp_mab = HDP
kl_se = KLSE
kl_se_components = KLSEComponents
kl_se_graph = KLSEGraph
kl_ucb = KLUCB
lazy_dp_ts = LazyDPTS
lcc_ucb = LCCUCB
ldp_ucb = LDPUCB
single_mab = Single
thompson = Thompson
tree_ucb = TreeUCB
ucb1 = UCB1
uniform_play = UniformPlay
