"""The arena: every algorithm of the package on the paper's instance, with one set of meters.

Who takes part, and the runs of parts (a) to (c): regret over time and against what is sent (a),
regret at an equal leak (b), and agents that differ (c); `arena_figures` draws them. The authors'
own settings are in `arena_settings`, what the protocols of DDP-MAB send is in `arena_protocols`;
`arena_report` says who wins where.

Everybody plays the same instances: 50 agents, 100 arms, means drawn anew for each seed. Algorithms
that step through slots run with all seeds up to T = 10^4, with a tenth of them up to T = 10^5, and
not beyond. Of those whose agents are alone, five agents stand for fifty: given the means agents are
independent and alike, so that ten times the regret of five has the same expectation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common
from fmab_jax.algorithms.base import ACTIONS, OUTSIDE
from fmab_jax.analysis.words import whole

AGENTS, ARMS = 50, 100
STAND_INS = 5
EPSILON = 1.0
LEAKS = (0.1, 0.3, 1.0, 3.0, 10.0, 50.0)
SPREADS = {"agents alike": 0.0, "agents differ": 1.0}
REFERENCE = "cdp"
DELTA = 1e-6

# Who is trusted, and with what: the groups of the figures.
TRUST = {
    "open": "others, with rewards or means",
    "names": "others, with names of arms",
    "sum": "a secure sum",
    "message": "nobody: messages are noisy",
    "reward": "nobody: every reward is noisy",
    "alone": "nobody: nothing is told",
}


class Entry(NamedTuple):
    """A contestant.

    Attributes:
        label: In figures and tables.
        algorithm: As its authors would set it, at epsilon = 1 where it is private.
        trust: Who is trusted, a key of `TRUST`.
    """

    label: str
    algorithm: Any
    trust: str

    @property
    def steps(self) -> bool:
        """Whether it steps through slots."""
        return isinstance(self.algorithm, fmab.IndexPolicy)

    @property
    def agents(self) -> int:
        """How many agents are run; where they are alone and alike, few stand for all."""
        return STAND_INS if self.steps and self.alone else AGENTS

    @property
    def alone(self) -> bool:
        """Whether nobody hears anybody."""
        return bool(self.algorithm.exchange(AGENTS).alone)

    def seeds(self, horizon: int, seeds: int) -> int:
        """Returns how many seeds are run; 0 for none."""
        if not self.steps or horizon <= 10**4:
            return seeds
        return max(2, seeds // 10) if horizon <= 10**5 else 0


LINE_UP = {
    "cdp": Entry("CDP-MAB", fmab.cdp_mab(EPSILON), "message"),
    "ddp": Entry("DDP-MAB, ring", fmab.ddp_mab(EPSILON, "ring"), "message"),
    "hdp": Entry("HDP-MAB, 10 stars of 5", fmab.hdp_mab(EPSILON, "5x10:star"), "message"),
    "fed_ucb": Entry(
        "Fed_UCB, ring, scaled", fmab.fed_ucb(EPSILON, "ring", radius="scaled"), "message"
    ),
    "dist_dp_se": Entry("Dist-DP-SE", fmab.dist_dp_se(EPSILON), "sum"),
    "ldp_ucb_pooled": Entry("LDP-UCB-L, pooled", fmab.ldp_ucb(EPSILON, pooled=True), "reward"),
    "ldp_bits_pooled": Entry(
        "LDP-UCB-B, pooled", fmab.ldp_ucb(EPSILON, bits=True, pooled=True), "reward"
    ),
    "ldp_ucb": Entry("LDP-UCB-L, alone", fmab.ldp_ucb(EPSILON), "reward"),
    "ldp_bits": Entry("LDP-UCB-B, alone", fmab.ldp_ucb(EPSILON, bits=True), "reward"),
    "ucb1_pooled": Entry("UCB1, pooled", fmab.ucb1(pooled=True), "open"),
    "thompson_pooled": Entry("Thompson, pooled", fmab.thompson(pooled=True), "open"),
    "kl_ucb_pooled": Entry("KL-UCB, pooled", fmab.kl_ucb(pooled=True), "open"),
    "fed1_ucb": Entry("Fed1-UCB, f = 5", fmab.fed1_ucb(pulls=5), "open"),
    "dducb": Entry("DDUCB, ring", fmab.dducb("ring"), "open"),
    "gossip_ucb": Entry(
        "Gossip_UCB, ring, scaled", fmab.gossip_ucb("ring", radius="scaled"), "open"
    ),
    "dec_ucb": Entry("Dec_UCB, ring", fmab.dec_ucb("ring"), "open"),
    "gosine": Entry("GosInE", fmab.gosine(), "names"),
    "lcc_ucb": Entry("LCC-UCB", fmab.lcc_ucb(), "names"),
    "lcc_ucb_graph": Entry("LCC-UCB, ring", fmab.lcc_ucb("ring"), "names"),
    "single": Entry("CDP-MAB alone", fmab.single_mab(EPSILON), "alone"),
    "dp_se": Entry("DP-SE", fmab.dp_se(EPSILON), "alone"),
    "adap_ucb": Entry("AdaP-UCB", fmab.adap_ucb(EPSILON), "alone"),
    "tree_ucb": Entry("Private UCB (tree)", fmab.tree_ucb(EPSILON), "alone"),
    "ucb1": Entry("UCB1", fmab.ucb1(), "alone"),
    "thompson": Entry("Thompson sampling", fmab.thompson(), "alone"),
    "kl_ucb": Entry("KL-UCB", fmab.kl_ucb(), "alone"),
    "uniform_play": Entry("uniform play", fmab.uniform_play(), "alone"),
}
# Private, at a leak: what is asked for is the epsilon of what others are told; of those that tell
# nobody anything, the epsilon of what they do.
AT_LEAK: dict[str, Callable[[float], Any]] = {
    "cdp": lambda leak: fmab.cdp_mab(epsilon_message=leak),
    "ddp": lambda leak: fmab.ddp_mab(epsilon_message=leak, graph="ring"),
    "hdp": lambda leak: fmab.hdp_mab(epsilon_message=leak, components="5x10:star"),
    "dist_dp_se": fmab.dist_dp_se,
    "fed_ucb": lambda leak: fmab.fed_ucb(leak, "ring", radius="scaled"),
    "ldp_ucb_pooled": lambda leak: fmab.ldp_ucb(leak, pooled=True),
    "ldp_bits_pooled": lambda leak: fmab.ldp_ucb(leak, bits=True, pooled=True),
    "single": fmab.single_mab,
    "dp_se": fmab.dp_se,
    "adap_ucb": fmab.adap_ucb,
    "tree_ucb": fmab.tree_ucb,
    "ldp_ucb": fmab.ldp_ucb,
    "ldp_bits": lambda leak: fmab.ldp_ucb(leak, bits=True),
}
# Seeds, in (b) and (c), of those of which every agent steps through slots by itself.
FEW = 50


# Who takes part in a quick run: those that compile and run fast.
QUICK = ("cdp", "dist_dp_se", "ldp_bits_pooled", "ucb1_pooled")


def sweep(
    horizon: int, seeds: int, store: Path | None = None, names: Sequence[str] = tuple(LINE_UP)
) -> dict[str, dict[str, Any]]:
    """Runs the three parts; returns, by part, results by contestant."""
    chosen = {name: LINE_UP[name] for name in names}
    found: dict[str, dict[str, Any]] = {"a": {}, "b": {}, "c": {}}
    for name, entry in chosen.items():
        number = entry.seeds(horizon, seeds)
        if number:
            found["a"][name] = _run(entry, entry.algorithm, 0.0, horizon, number, store, "a")
    for name, entry in chosen.items():
        if (maker := AT_LEAK.get(name)) is None:
            continue
        # Above T = 10^4 only those that take a moment.
        if entry.steps and horizon > 10**4:
            continue
        number = min(seeds, FEW) if entry.steps and not entry.algorithm.shared else seeds
        for leak in LEAKS:
            label = f"{name}, {leak:g}"
            kept = f"b{leak:g}"
            found["b"][label] = _run(entry, maker(leak), 0.0, horizon, number, store, kept)
    for name, entry in chosen.items():
        if getattr(entry.algorithm, "homogeneous_only", False):
            continue
        if entry.steps and horizon > 10**4:
            continue
        number = min(seeds, FEW) if entry.steps and not entry.algorithm.shared else seeds
        for words, spread in SPREADS.items():
            found["c"][f"{name}, {words}"] = _run(
                entry, entry.algorithm, spread, horizon, number, store, f"c{spread:g}"
            )
    return found


def _run(
    entry: Entry,
    algorithm: Any,
    spread: float,
    horizon: int,
    seeds: int,
    store: Path | None,
    kept: str,
) -> xr.Dataset:
    """Runs one contestant; its results are kept in a folder of their own."""
    # Agents that differ are not alike: nobody stands for anybody.
    agents = AGENTS if spread else entry.agents
    name = next(name for name, each in LINE_UP.items() if each is entry)
    data = fmab.sweep(
        type(algorithm),
        fmab.Problem.heterogeneous(agents, ARMS, spread),
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        store=None if store is None else store / f"{kept}-{name}",
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


def draw(results: Mapping[int, Mapping[str, Mapping[str, Any]]], folder: Path) -> list[Path]:
    """Draws the figures, with a table beside each."""
    from experiments import arena_figures  # which imports who takes part from here

    return arena_figures.draw(results, folder)


def seeds_in_words(parts: Mapping[str, Any]) -> str:
    """Returns how many seeds were run, of whom."""
    numbers = {name: data.sizes["seed"] for name, data in parts.items()}
    most = max(numbers.values())
    fewer = sorted({number for number in numbers.values() if number < most}, reverse=True)
    rest = " or ".join(whole(number) for number in fewer)
    return f"{whole(most)} seeds" + (f", {rest} of those that take long" if fewer else "")


def final_row(name: str, data: Any, reference: Any) -> dict[str, Any]:
    """Returns what there is to say of a contestant at the horizon; regret on common seeds."""
    last = data.isel(time=-1)
    shared = min(data.sizes["seed"], reference.sizes["seed"])
    mine = last.regret.values[:shared]
    theirs = reference.regret.isel(time=-1).values[:shared]
    entry = LINE_UP[name]
    leak = leaks(entry.algorithm)
    return {
        "algorithm": entry.label,
        "who is trusted": TRUST[entry.trust],
        "seeds": data.sizes["seed"],
        "regret at T": common.interval(last.regret.values),
        "minus CDP-MAB, same seeds": common.interval(mine - theirs),
        "links at T": common.interval(links(last)),
        "links without those of counts": common.interval(links(last, counts=False)),
        "numbers sent": common.interval(data.numbers_sent),
        "agents that play a worse arm at T": common.interval(data.agents_worse),
        "epsilon of messages": leak["messages"],
        "epsilon of actions": leak["actions"],
    }


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
    """Returns the largest epsilon of what others are told, and of what outsiders see, in words."""
    rows = fmab.privacy_ledger(algorithm, agents, delta=DELTA)
    actions = [row.epsilon for row in rows if row.who in (ACTIONS, OUTSIDE)]
    told = [row.epsilon for row in rows if row.what != "actions"]

    def words(found: list[float]) -> str:
        if not found:
            return "nothing is told"
        return "no bound" if np.isinf(max(found)) else f"{max(found):g}"

    return {"messages": words(told), "actions": words(actions)}
