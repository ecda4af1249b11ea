"""The arena: every algorithm of the package on the paper's instance, with one set of meters.

Parts: regret over time (a), regret at matched trust (b), and agents that differ (c). Trust is
matched where the same epsilon covers the same view (`VIEWS`). Everybody plays the same instances:
50 agents, 100 arms, means drawn anew for each seed. Algorithms that step through slots have fewer
seeds the longer they take (`SHARES`). Of those whose agents are alone, five agents stand for fifty:
given the means they are independent and alike, so ten times their regret has the same expectation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.optimize import brentq

import fmab_jax as fmab
from experiments import common, several
from fmab_jax.algorithms.base import Viewer, ViewKind
from fmab_jax.analysis import costs, theory
from fmab_jax.analysis.accountant import noise_epsilon
from fmab_jax.analysis.words import write_count, write_number
from fmab_jax.parts.mechanisms import bits
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.records.ledger import HidingLaw, Noise

AGENTS, ARMS = 50, 100
STAND_INS = 5
EPSILON = 1.0
# Of the radius of CDP-MAB: as small as lost no best arm in runs; no theorem covers it.
SCALE = 0.3
LEAKS = (0.1, 0.3, 1.0, 3.0, 10.0, 50.0)
# Those at which fronts are drawn.
FRONT_LEAKS = (0.1, 1.0, 10.0)

SPREADS = {"agents alike": 0.0, "agents differ": 1.0}
REFERENCE = "cdp"
# Instances over which a lower bound is averaged: those of the first seeds.
INSTANCES = 200
# How often the median a regret is that counts as far out.
TAIL = 3
# The best of those that tell nobody anything.
YARDSTICK = "kl_ucb"
DELTA = 1e-6

# Who is trusted, and with what: the groups of the figures.
TRUST = {
    "open": "others, with rewards or means",
    "names": "others, with names of arms",
    "sum": "a secure sum",
    "message": "nobody: a message leaks at most its ε",
    "reward": "nobody: a reward leaks at most its ε",
    "alone": "nobody: nothing is told",
}


# The part of the seeds that is run, by what a seed costs: of whoever plays in rounds, of agents
# alone in episodes, of agents together in episodes, of one policy that all agents share, of agents
# alone in slots, of those that look for an index in every slot, of agents that draw from a Beta law
# for every arm, of agents that talk in slots, of agents that exchange estimates after each pull of
# all arms. In each part of the arena, up to T = 10^4, up to 10^5, and beyond.
SHARES = {
    "rounds": {"a": (1.0, 1.0, 1.0), "b": (1.0, 1.0, 1.0), "c": (1.0, 1.0, 0.1)},
    "episodes": {"a": (1.0, 1.0, 1.0), "b": (1.0, 0.2, 0.02), "c": (0.2, 0.01, 0.01)},
    "together": {"a": (1.0, 1.0, 1.0), "b": (1.0, 1.0, 0.1), "c": (1.0, 1.0, 1.0)},
    "pooled": {"a": (1.0, 0.1, 0.04), "b": (0.2, 0.04, 0.01), "c": (0.2, 0.04, 0.01)},
    "alone": {"a": (1.0, 0.1, 0.04), "b": (0.1, 0.02, 0.0), "c": (0.05, 0.004, 0.0)},
    "search": {"a": (1.0, 0.04, 0.04), "b": (0.1, 0.02, 0.0), "c": (0.05, 0.0, 0.0)},
    "draws": {"a": (0.1, 0.01, 0.0), "b": (0.02, 0.0, 0.0), "c": (0.01, 0.0, 0.0)},
    "talk": {"a": (0.2, 0.04, 0.0), "b": (0.05, 0.004, 0.0), "c": (0.05, 0.004, 0.0)},
    "exchanges": {"a": (0.2, 0.04, 0.04), "b": (0.05, 0.004, 0.0), "c": (0.05, 0.004, 0.004)},
}


class Entry(NamedTuple):
    """A contestant."""

    label: str  # in figures and tables
    algorithm: Any  # as its authors would set it, at epsilon = 1 where it is private
    trust: str  # who is trusted, a key of `TRUST`
    slow: str = ""  # what a seed costs where it costs more than its kind, a key of `SHARES`

    @property
    def steps(self) -> bool:
        """Whether it steps through slots."""
        return isinstance(self.algorithm, fmab.IndexPolicy)

    @property
    def agents(self) -> int:
        """How many agents are run; where they are alone and alike, few stand for all."""
        uses_stand_ins = self.alone and (self.steps or isinstance(self.algorithm, fmab.Episodes))
        return STAND_INS if uses_stand_ins else AGENTS

    @property
    def alone(self) -> bool:
        """Whether nobody hears anybody."""
        return bool(self.algorithm.exchange(AGENTS).alone)

    @property
    def cost(self) -> str:
        """What a seed costs, a key of `SHARES`."""
        if self.slow:
            return self.slow
        if not self.steps:
            together = isinstance(self.algorithm, fmab.Episodes) and not self.alone
            usual = "rounds" if self.agents == AGENTS else "episodes"
            return "together" if together else usual
        return "pooled" if self.algorithm.shared else "alone" if self.alone else "talk"

    @property
    def reason(self) -> str:
        """Why it is not run where it has no seeds."""
        if not self.steps:
            return "because we have not run them at this horizon yet"
        return "because simulating them slot by slot takes too long"

    def seeds(self, part: str, horizon: int, seeds: int) -> int:
        """Returns how many seeds a part runs; 0 for none."""
        share = SHARES[self.cost][part][0 if horizon <= 10**4 else 1 if horizon <= 10**5 else 2]
        return max(2, round(seeds * share)) if share else 0


LINE_UP = {
    "cdp": Entry("CDP-MAB", fmab.cdp_mab(EPSILON), "message"),
    "cdp_scaled": Entry(
        f"CDP-MAB, radius × {SCALE:g}", fmab.cdp_mab(EPSILON, scale=SCALE), "message"
    ),
    "ddp": Entry("DDP-MAB, ring", fmab.ddp_mab(EPSILON, "ring"), "message"),
    "hdp": Entry("HDP-MAB, 10 stars of 5", fmab.hdp_mab(EPSILON, "5x10:star"), "message"),
    "fed_ucb": Entry(
        "Fed_UCB, ring, scaled", fmab.fed_ucb(EPSILON, "ring", radius="scaled"), "message"
    ),
    "kl_se": Entry("KL-SE", fmab.kl_se(EPSILON), "message"),
    "kl_se_split": Entry("KL-SE, arms split", fmab.kl_se(EPSILON, split=True), "message"),
    "kl_se_graph": Entry("KL-SE, ring", fmab.kl_se_graph(EPSILON, "ring"), "message"),
    "kl_se_components": Entry(
        "KL-SE, 10 stars of 5", fmab.kl_se_components(EPSILON, "5x10:star"), "message"
    ),
    "demab_private": Entry("DEMAB, private", common.DEMAB(EPSILON), "message"),
    "dist_dp_se": Entry("Dist-DP-SE", fmab.dist_dp_se(EPSILON), "sum"),
    "kl_se_sum": Entry("KL-SE, secure sum", fmab.kl_se(EPSILON, secure=True), "sum"),
    "dp_imed_sum": Entry("DP-IMED, secure sum", fmab.dp_imed(EPSILON, secure=True), "sum"),
    "dp_klucb_sum": Entry("DP-KLUCB, secure sum", fmab.dp_klucb(EPSILON, secure=True), "sum"),
    "ldp_ucb_pooled": Entry("LDP-UCB-L, pooled", fmab.ldp_ucb(EPSILON, pooled=True), "reward"),
    "ldp_bits_pooled": Entry(
        "LDP-UCB-B, pooled", fmab.ldp_ucb(EPSILON, bits=True, pooled=True), "reward"
    ),
    "ldp_ucb": Entry("LDP-UCB-L, alone", fmab.ldp_ucb(EPSILON), "alone"),
    "ldp_bits": Entry("LDP-UCB-B, alone", fmab.ldp_ucb(EPSILON, bits=True), "alone"),
    "ucb1_pooled": Entry("UCB1, pooled", fmab.ucb1(pooled=True), "open"),
    "thompson_pooled": Entry("Thompson, pooled", fmab.thompson(pooled=True), "open"),
    "kl_ucb_pooled": Entry("KL-UCB, pooled", fmab.kl_ucb(pooled=True), "open"),
    "fed1_ucb": Entry("Fed1-UCB, f = 5", fmab.fed1_ucb(pulls=5), "open"),
    "fed1_ucb_own": Entry("Fed1-UCB, f = 10 log T", fmab.fed1_ucb(), "open"),
    "demab": Entry("DEMAB", common.DEMAB(), "open"),
    "dducb": Entry("DDUCB, ring", fmab.dducb("ring"), "open"),
    "gossip_ucb": Entry(
        "Gossip_UCB, ring, scaled", fmab.gossip_ucb("ring", radius="scaled"), "open"
    ),
    "dec_ucb": Entry("Dec_UCB, ring", fmab.dec_ucb("ring"), "open"),
    "ces": Entry("CES, ring", fmab.ces("ring"), "open", slow="exchanges"),
    "ces_complete": Entry("CES, complete graph", fmab.ces("complete"), "open", slow="exchanges"),
    "gosine": Entry("GosInE", fmab.gosine(), "names"),
    "lcc_ucb": Entry("LCC-UCB", fmab.lcc_ucb(), "names"),
    "lcc_ucb_graph": Entry("LCC-UCB, ring", fmab.lcc_ucb("ring"), "names"),
    "single": Entry("CDP-MAB alone", fmab.single_mab(EPSILON), "alone"),
    "dp_se": Entry("DP-SE", fmab.dp_se(EPSILON), "alone"),
    "adap_ucb": Entry("AdaP-UCB", fmab.adap_ucb(EPSILON), "alone"),
    "adap_klucb": Entry("AdaP-KLUCB", fmab.adap_ucb(EPSILON, kl=True), "alone"),
    "lazy_dp_ts": Entry("Lazy-DP-TS", fmab.lazy_dp_ts(EPSILON), "alone", slow="draws"),
    "dp_imed": Entry("DP-IMED", fmab.dp_imed(EPSILON), "alone"),
    "dp_klucb": Entry("DP-KLUCB", fmab.dp_klucb(EPSILON), "alone"),
    "tree_ucb": Entry("Private UCB (tree)", fmab.tree_ucb(EPSILON), "alone"),
    "ucb1": Entry("UCB1", fmab.ucb1(), "alone"),
    "thompson": Entry("Thompson sampling", fmab.thompson(), "alone"),
    "kl_ucb": Entry("KL-UCB", fmab.kl_ucb(), "alone", slow="search"),
    "uniform_play": Entry("uniform play", fmab.uniform_play(), "alone"),
}
# Bits of a number that is sent: a real has 64, and so has a reward that is told as it is.
BITS = {name: item.algorithm.number_bits(ARMS) for name, item in LINE_UP.items()}
REAL, NAME = BITS["cdp"], BITS["gosine"]

UNBOUNDED = "no bound"

# What a leak is called, by how it is counted.
ACCOUNTANTS: dict[str | float, str] = {
    "pure": "pure ε",
    DELTA: f"ε up to δ = {write_number(DELTA)}",
}


@functools.cache
def message_leak(leak: float, hidden: int, law: HidingLaw = LAPLACE) -> float:
    """Returns what a message may leak where a sum of ``hidden`` noises of a law leaks ``leak``.

    With random bits: at the worst of all values of the other agents' rewards.
    """

    def over(log_message: float) -> float:
        # By its scale: the last digit of what is found decides about the bits of runs.
        noise = Noise(law, math.exp(-log_message), hidden)
        return noise_epsilon((noise,), DELTA) - leak

    low = math.log(leak)
    high = low + 1.0
    while over(high) < 0.0:
        high += 1.0
    return math.exp(brentq(over, low, high, xtol=1e-12))


def _summed(maker: Callable[..., Any], hidden: int, **params: Any) -> Callable[[float], Any]:
    """Returns a maker whose sums over so many agents leak what is asked for."""
    return lambda leak: maker(epsilon_message=message_leak(leak, hidden), **params)


def _pooled(**params: Any) -> Callable[[float], Any]:
    """Returns a maker of pooled LDP-UCB whose sums over all agents leak what is asked for."""
    law = bits.BITS if params.get("bits") else LAPLACE
    return lambda leak: fmab.ldp_ucb(message_leak(leak, AGENTS, law), pooled=True, **params)


class View(NamedTuple):
    """Whose view is matched: all that take part are covered by the same epsilon there."""

    sees: str  # what is seen
    accountant: str | float  # in which sense the leak is counted: "pure", or up to which delta
    makers: dict[str, Callable[[float], Any]]  # who takes part, by contestant: what runs at a leak
    absent: dict[str, str]  # why other private contestants take no part, by contestant
    # what to know besides; with what a message leaks where the sum over ``all`` agents, or over
    # those of a ``star``, leaks 1, and what one of ``bits`` does
    note: str

    @property
    def who(self) -> str:
        """Whose view it is."""
        return several.whoever(self.sees)

    @property
    def leak(self) -> str:
        """What the leak is called."""
        return ACCOUNTANTS[self.accountant]


_GOSSIP: dict[str, Callable[[float], Any]] = {
    "fed_ucb": lambda leak: fmab.fed_ucb(leak, "ring", radius="scaled")
}
_RELEASED: dict[str, Callable[[float], Any]] = {
    "ldp_ucb_pooled": lambda leak: fmab.ldp_ucb(leak, pooled=True),
    "ldp_bits_pooled": lambda leak: fmab.ldp_ucb(leak, bits=True, pooled=True),
}
# The index of pooled LDP-UCB is a function of each slot's sum over all agents.
_SUMMED: dict[str, Callable[[float], Any]] = {
    "ldp_ucb_pooled": _pooled(),
    "ldp_bits_pooled": _pooled(bits=True),
}
_ALONE: dict[str, Callable[[float], Any]] = {
    "single": fmab.single_mab,
    "dp_se": fmab.dp_se,
    "adap_ucb": fmab.adap_ucb,
    "adap_klucb": lambda leak: fmab.adap_ucb(leak, kl=True),
    "lazy_dp_ts": fmab.lazy_dp_ts,
    "dp_imed": fmab.dp_imed,
    "dp_klucb": fmab.dp_klucb,
    "tree_ucb": fmab.tree_ucb,
    "ldp_ucb": fmab.ldp_ucb,
    "ldp_bits": lambda leak: fmab.ldp_ucb(leak, bits=True),
}
# Over a secure sum with one noise, which is the leak.
_ONE_NOISE: dict[str, Callable[[float], Any]] = {
    "dist_dp_se": fmab.dist_dp_se,
    "kl_se_sum": lambda leak: fmab.kl_se(leak, secure=True),
    "dp_imed_sum": lambda leak: fmab.dp_imed(leak, secure=True),
    "dp_klucb_sum": lambda leak: fmab.dp_klucb(leak, secure=True),
}
_SILENT = dict.fromkeys(_ALONE, "because they tell nobody anything")
VIEWS = {
    "messages": View(
        "single messages",
        "pure",
        {
            "cdp": lambda leak: fmab.cdp_mab(epsilon_message=leak),
            "cdp_scaled": lambda leak: fmab.cdp_mab(epsilon_message=leak, scale=SCALE),
            "ddp": lambda leak: fmab.ddp_mab(epsilon_message=leak, graph="ring"),
            "hdp": lambda leak: fmab.hdp_mab(epsilon_message=leak, components="5x10:star"),
            "kl_se": fmab.kl_se,
            "kl_se_split": lambda leak: fmab.kl_se(leak, split=True),
            "kl_se_graph": lambda leak: fmab.kl_se_graph(leak, "ring"),
            "kl_se_components": lambda leak: fmab.kl_se_components(leak, "5x10:star"),
            "demab_private": common.DEMAB,
            **_GOSSIP,
            **_RELEASED,
        },
        {**dict.fromkeys(_ONE_NOISE, "because no ε covers a share of the noise"), **_SILENT},
        "A message of CDP-MAB, DDP-MAB and HDP-MAB has noise for Nε, which is the leak.",
    ),
    "sums": View(
        "secure sums and no message",
        DELTA,
        {
            "cdp": _summed(fmab.cdp_mab, AGENTS),
            "cdp_scaled": _summed(fmab.cdp_mab, AGENTS, scale=SCALE),
            # Each star sums up for itself.
            "hdp": _summed(fmab.hdp_mab, 5, components="5x10:star"),
            **_ONE_NOISE,
            **_SUMMED,
        },
        {
            "ddp": "because it forwards single messages",
            "kl_se": "because it is here with one noise on the sum",
            "kl_se_split": "because few agents pull one arm, and their noise adds up to little",
            "kl_se_graph": "because it forwards single messages",
            "kl_se_components": "because its sinks read single messages",
            "demab_private": "because its server reads single messages",
            "fed_ucb": "because its agents talk in pairs",
            **_SILENT,
        },
        "Of a leak of 1, a message of CDP-MAB, or a reward of LDP-UCB-L, has noise for {all:.2f}, "
        "since its sums are over all agents; a message of HDP-MAB for {star:.2f}, since every star "
        "of five sums up for itself; a bit of LDP-UCB-B for {bits:.2f}, whatever the rewards of "
        "the other agents are. CDP-MAB and HDP-MAB are given a secure sum that their papers do not "
        "have: without it the server of CDP-MAB learns {all:.2f} and the sinks of HDP-MAB "
        "{star:.2f}, where the sum leaks 1. What the sum costs is not counted.",
    ),
    "actions": View(
        "actions alone",
        DELTA,
        {
            "cdp": _summed(fmab.cdp_mab, AGENTS),
            "cdp_scaled": _summed(fmab.cdp_mab, AGENTS, scale=SCALE),
            "ddp": lambda leak: fmab.ddp_mab(
                epsilon_message=leak, graph="ring", private_waiting=True
            ),
            "hdp": _summed(fmab.hdp_mab, AGENTS, components="5x10:star"),
            "kl_se": lambda leak: fmab.kl_se(message_leak(leak, AGENTS)),
            "kl_se_split": lambda leak: fmab.kl_se(leak, split=True),
            "kl_se_graph": lambda leak: fmab.kl_se_graph(leak, "ring"),
            "kl_se_components": lambda leak: fmab.kl_se_components(
                message_leak(leak, AGENTS), "5x10:star"
            ),
            "demab_private": common.DEMAB,
            **_ONE_NOISE,
            **_GOSSIP,
            **_SUMMED,
            **_ALONE,
        },
        {},
        "CDP-MAB, HDP-MAB, KL-SE and pooled LDP-UCB act on sums over all agents; KL-SE on a ring, "
        "or where arms are split, and DEMAB, on single messages. Agents of DDP-MAB wait by "
        "the noisy means that they send (`private_waiting`). Actions follow from what ε covers, "
        "so that ε is an upper bound on what they leak.",
    ),
}

# Who takes part in a quick run: those that compile and run fast.
QUICK = ("cdp", "dist_dp_se", "ldp_bits_pooled", "ucb1_pooled")


def sweep(
    horizon: int, seeds: int, store: Path | None = None, names: Sequence[str] = tuple(LINE_UP)
) -> dict[str, dict[Any, Any]]:
    """Runs the three parts, and returns results by part.

    Of "a" by contestant, of "b" by view, contestant and leak, of "c" by contestant and spread.
    """
    chosen = {name: LINE_UP[name] for name in names}
    results: dict[str, dict[Any, Any]] = {"a": {}, "b": {}, "c": {}}
    for name, entry in chosen.items():
        if number := entry.seeds("a", horizon, seeds):
            results["a"][name] = run(entry, entry.algorithm, 0.0, horizon, number, store, "a")
    # Two views may ask for the same run.
    done: dict[Any, xr.Dataset] = {}
    for view, what in VIEWS.items():
        for name, maker in what.makers.items():
            if name not in chosen or not (number := LINE_UP[name].seeds("b", horizon, seeds)):
                continue
            for leak in LEAKS:
                algorithm = maker(leak)
                if algorithm not in done:
                    epsilon = max(
                        getattr(algorithm, key)
                        for key in ("epsilon", "epsilon_message")
                        if isinstance(getattr(algorithm, key, None), float)
                    )
                    private = "private" * bool(getattr(algorithm, "private_waiting", False))
                    done[algorithm] = run(
                        LINE_UP[name],
                        algorithm,
                        0.0,
                        horizon,
                        number,
                        store,
                        f"b{private}{epsilon:.8g}",
                    )
                results["b"][view, name, leak] = done[algorithm]
    alike, differ = SPREADS
    for name, entry in chosen.items():
        if getattr(entry.algorithm, "homogeneous_only", False):
            continue
        if number := entry.seeds("c", horizon, seeds):
            results["c"][name, alike] = results["a"][name]
            results["c"][name, differ] = run(
                entry, entry.algorithm, SPREADS[differ], horizon, number, store, "c"
            )
    return results


def run(
    entry: Entry,
    algorithm: Any,
    spread: float,
    horizon: int,
    seeds: int,
    store: Path | None,
    folder: str,
    times: Any = None,
) -> xr.Dataset:
    """Runs one contestant; its results are kept in a folder of their own, in the store.

    Where few agents stand for all, regret is that of all. ``times`` are by default those of curves.
    """
    # Agents that differ are not alike: nobody stands for anybody.
    agents = AGENTS if spread else entry.agents
    name = next(name for name, item in LINE_UP.items() if item is entry)
    data = fmab.sweep(
        type(algorithm),
        fmab.Problem(agents=agents, arms=ARMS, spread=spread),
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon) if times is None else times,
        store=None if store is None else store / f"{folder}-{name}",
        **stated(algorithm),
    )
    if agents < AGENTS:
        data = data.assign(
            regret=(data.regret * (AGENTS / agents)).assign_attrs(data.regret.attrs),
            agents_worse=data.agents_worse * (AGENTS / agents),
        )
    return data


def stated(algorithm: Any) -> dict[str, Any]:
    """Returns the parameters that are not the default."""
    return {name: getattr(algorithm, name) for name in algorithm.settings()}


@functools.cache
def least_possible(epsilon: float | None, horizon: int, alone: bool = False) -> float:
    """Returns what must be lost in the end, averaged over the instances of the first seeds."""
    problem = fmab.Problem(agents=AGENTS, arms=ARMS)
    means = (np.asarray(problem.fixed(seed).means)[0] for seed in range(INSTANCES))
    lost = [
        theory.private_lower_bound(item, epsilon, horizon, AGENTS, alone=alone) for item in means
    ]
    return float(np.mean(lost))


def tails(regret: np.ndarray) -> dict[str, str]:
    """Returns the largest regret of the seeds, and the part far above the median, as cells."""
    far = float((regret > TAIL * np.median(regret)).mean())
    return {
        "largest": f"{regret.max():,.0f}",
        f"seeds above {TAIL} × the median": f"{100 * far:.2g} %",
    }


def seeds_in_words(parts: Mapping[str, Any]) -> str:
    """Returns how many seeds were run, of whom."""
    numbers = {name: data.sizes["seed"] for name, data in parts.items()}
    most = max(numbers.values())
    fewer = sorted({number for number in numbers.values() if number < most}, reverse=True)
    rest = " or ".join(write_count(number) for number in fewer)
    return f"{write_count(most)} seeds" + (f", {rest} of those that take long" if fewer else "")


def final_row(name: str, data: Any, reference: Any) -> dict[str, Any]:
    """Returns what there is to say of a contestant at the horizon; regret on common seeds."""
    last = data.isel(time=-1)
    shared = min(data.sizes["seed"], reference.sizes["seed"])
    regret = last.regret.values[:shared]
    baseline = reference.regret.isel(time=-1).values[:shared]
    entry = LINE_UP[name]
    leak = leaks(entry.algorithm)
    return {
        "algorithm": entry.label,
        "who is trusted": trusted(name),
        "epsilon of messages": leak["messages"],
        "epsilon of actions": leak["actions"],
        "seeds": data.sizes["seed"],
        "regret at T": common.interval(last.regret.values),
        **tails(last.regret.values),
        "minus CDP-MAB, same seeds": common.interval(regret - baseline),
        "links at T": common.interval(links(last)),
        "links without those of counts": common.interval(links(last, counts=False)),
        "numbers sent": common.interval(data.numbers_sent),
        "bits sent": common.interval(BITS[name] * data.numbers_sent.values),
        "agents that play a worse arm at T": common.interval(data.agents_worse),
    }


def trusted(name: str) -> str:
    """Returns who is trusted by a contestant: whoever sees actions, too, if they alone are bare."""
    entry = LINE_UP[name]
    texts = leaks(entry.algorithm)
    bare = texts["actions"] == UNBOUNDED != texts["messages"] and not entry.alone
    return TRUST[entry.trust] + ", and whoever sees actions" * bare


def trusted_as_well(names: Iterable[str]) -> str:
    """Says of whom who sees actions is trusted as well; "" for nobody."""
    bare = [LINE_UP[name].label for name in names if trusted(name) not in TRUST.values()]
    texts = f"Actions are not covered: whoever sees them is trusted as well by {' / '.join(bare)}."
    return texts if bare else ""


def entrant(name: str, data: xr.Dataset) -> several.Entrant:
    """Returns a contestant with its regret at T, as it is compared with others."""
    entry = LINE_UP[name]
    texts = leaks(entry.algorithm)["messages"]
    regret = data.regret.isel(time=-1).values
    return several.Entrant(entry.label, trusted(name), texts, regret, question=_question(data))


def _question(data: xr.Dataset) -> tuple[Any, ...]:
    """Returns what a run was asked, as far as all of a part are asked the same."""
    return int(data.time.values[-1]), data.attrs.get("root_seed")


def matched(view: str, leak: float, parts: Mapping[Any, Any]) -> list[several.Entrant]:
    """Returns who takes part at a leak of a view, from part (b)."""
    what = VIEWS[view]
    return [
        several.Entrant(
            LINE_UP[name].label,
            "",
            f"{leak:g}",
            parts[view, name, leak].regret.isel(time=-1).values,
            what.sees,
            what.accountant,
            _question(parts[view, name, leak]),
        )
        for name in what.makers
        if (view, name, leak) in parts
    ]


def absent_of_view(view: str, leak: float, parts: Mapping[Any, Any]) -> dict[str, str]:
    """Returns why contestants with some finite epsilon take no part in a view, by label."""
    what = VIEWS[view]
    slow = [name for name in what.makers if (view, name, leak) not in parts]
    reasons = {**what.absent, **{name: LINE_UP[name].reason for name in slow}}
    return {LINE_UP[name].label: why for name, why in reasons.items()}


def links(last: xr.Dataset, *, counts: bool = True) -> np.ndarray:
    """Returns, by seed, links on the meters that are priced; none where nobody talks.

    Edges that carry counts in every slot (Gossip_UCB, Fed_UCB) have a meter of their own, which
    their authors leave out.
    """
    if not last.sizes.get("meter"):
        return np.zeros(last.sizes["seed"])
    chosen = last.priced.values | (counts & (last.meter.values == "counts"))
    return last.links.isel(meter=np.flatnonzero(chosen)).sum("meter").values


def leaks(algorithm: Any, agents: int = AGENTS) -> dict[str, str]:
    """Returns the largest epsilon of what others are told, and of what outsiders see, in words.

    Agents that are alone tell nobody anything, whatever noise their rewards have.
    """
    rows = fmab.privacy_ledger(algorithm, agents, delta=DELTA)
    actions = [row.epsilon for row in rows if row.viewer in (Viewer.WATCHERS, Viewer.OUTSIDER)]
    alone = algorithm.exchange(agents).alone
    texts = [row.epsilon for row in rows if row.view is not ViewKind.ACTIONS and not alone]

    def words(results: list[float]) -> str:
        if not results:
            return costs.NO_MESSAGES
        return UNBOUNDED if np.isinf(max(results)) else f"{max(results):g}"

    return {"messages": words(texts), "actions": words(actions)}
