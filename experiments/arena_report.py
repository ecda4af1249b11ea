"""Writes ARENA.md: who wins where, from the same simulations as the figures, and what was read how.

Every number and every "wins" is computed: a sentence says that one is below another only where the
95 % interval of the difference, on common seeds, lies on that side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import arena, arena_settings, common
from experiments.arena import LEAKS, LINE_UP, TRUST
from fmab_jax.analysis.words import whole
from fmab_jax.files import whole_file

# What was read how; one paragraph for each algorithm.
READINGS = {
    "cdp": "CDP-MAB is Algorithm 1 of Li and Song as docs/semantics.md reads it, with p = 1 and no "
    "round budget. At ε = 1 a message leaks 50; the figures at an equal leak divide ε by 50.",
    "ddp": "DDP-MAB runs GIS on a ring of 50: 24 slots of waiting a round, in which agents pull "
    "their own un-noised best arm. No ε covers these actions; `private_waiting=True` does.",
    "hdp": "HDP-MAB has ten stars of five, which collect without a wait. Weights are 1/M, not the "
    "print's 1/Q, which is the same here.",
    "single": "CDP-MAB with M = 1, by every agent alone: the paper's baseline.",
    "dist_dp_se": "Dist-DP-SE is adapted from users that arrive to agents that stay: 2^b pulls of "
    "each active arm by every agent. One Laplace variable stands for the discrete one that "
    "secure aggregation sums up; what is trusted is that aggregation.",
    "fed_ucb": "Fed_UCB's printed radius tells nothing at any size that can be run: play is "
    "uniform. Shown is the radius divided by the square root of M, which no theorem covers. Who "
    "gossips with whom is not in the source; one pair a slot is assumed.",
    "gossip_ucb": "Gossip_UCB's radius is printed with a factor M under the root, with which play "
    "is nearly uniform. The scaled one leaves it out and is covered by no theorem. Links are "
    "pairs that gossip; the maxima of counts, which all edges carry in every slot, are a meter "
    "of their own, and are a part of the numbers sent.",
    "dducb": "DDUCB mixes in every slot over every edge. Three defects of the released code are "
    "left out: C steps in every slot, counts entered twice, a grid scaled twice.",
    "dec_ucb": "Dec_UCB is the authors' code: Metropolis weights, and a random late arm where one "
    "is more than K pulls behind.",
    "gosine": "GosInE is the synchronous version of the authors' code, with α = 4.",
    "lcc_ucb": "LCC-UCB restarts UCB1 in each epoch. It is made for many more arms than agents: "
    "here its first epoch alone lasts 2,652 slots.",
    "lcc_ucb_graph": "The graph version tells neighbours only, after each sub-epoch.",
    "fed1_ucb": "Fed1-UCB with f = 5 pulls an arm and phase. The authors' f = 10 log T is longer "
    "than T / K at T = 10⁴: play would be uniform. The radius is the code's, not the text's.",
    "dp_se": "DP-SE draws one noise for each arm, as the source has it; a public code draws one "
    "for all arms, which cancels. Its first epoch is longer than T = 10⁴.",
    "adap_ucb": "AdaP-UCB has α = 3.1 and doubles each arm's episodes; its bonus has the ε that a "
    "public code drops.",
    "tree_ucb": "Private UCB with a binary tree for each arm, as Mishra and Thakurta have it; ε is "
    "not split over arms, whose data are disjoint.",
    "ldp_ucb": "LDP-UCB-L, every reward with Laplace noise before anybody looks; the phantom pull "
    "of the authors' code is left out.",
    "ldp_bits": "LDP-UCB-B, every reward as one random bit.",
    "ldp_ucb_pooled": "LDP-UCB-L where a server pools what all agents release, our reading of a "
    "federated version; t becomes M t.",
    "ldp_bits_pooled": "LDP-UCB-B, pooled likewise.",
    "ucb1": "UCB1 with α = 2, by every agent alone.",
    "ucb1_pooled": "UCB1 on all rewards, which a server pools in every slot: M pulls follow one "
    "index.",
    "thompson": "Thompson sampling with normal posteriors, for any rewards in [0, 1].",
    "thompson_pooled": "The same on all rewards; all agents follow one draw.",
    "kl_ucb": "KL-UCB with c = 0.",
    "kl_ucb_pooled": "The same on all rewards.",
    "uniform_play": "Nobody learns: the yardstick of an algorithm that explores all the time.",
}


class Data:
    """What the report is about: results of `arena` and `arena_settings`, by horizon."""

    def __init__(self, results: Callable[[str], Mapping[int, Any]]) -> None:
        self.arena = results("arena")
        self.settings = results("arena_settings")


def judge(data: Data, folder: Path) -> list[Path]:
    """Writes ARENA.md."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for horizon, parts in data.arena.items():
        section = [f"## T = {whole(horizon)}", "", *_table(parts["a"]), ""]
        section += ["**Who wins where.**", "", *_winners(parts)]
        written.append(folder / f"arena_T{common.power(horizon)}.md")
        _write(written[-1], section)
    lines = [
        "# The arena",
        "",
        "Every algorithm of the package on the paper's instance: 50 agents, 100 arms, Bernoulli "
        "means drawn from U[0, 1] for each seed, the same for everybody. Made by `python -m "
        "experiments arena arena_settings arena_protocols arena_report`. Brackets are 95 % "
        "confidence intervals over seeds (Student t).",
        "",
    ]
    # Horizons may have been run one at a time.
    for section in sorted(folder.glob("arena_T*.md")):
        lines += [section.read_text(encoding="utf-8"), ""]
    lines += ["## What was read how", ""]
    for name, text in READINGS.items():
        entry = LINE_UP[name]
        source = entry.algorithm.source
        lines += [f"**{entry.label}** (`{entry.algorithm.name}`; {source}). {text}", ""]
    lines += [
        "## The authors' own settings",
        "",
        "Table: [arena_settings.md](arena_settings.md). "
        f"{len(arena_settings.settings())} settings, each with what is known of its result.",
        "",
    ]
    _write(folder / "ARENA.md", lines)
    return [*written, folder / "ARENA.md"]


def _write(path: Path, lines: Sequence[str]) -> None:
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _table(parts: Mapping[str, Any]) -> list[str]:
    """Returns all contestants, the least regret first."""
    reference = parts[arena.REFERENCE]
    rows = [arena.final_row(name, data, reference) for name, data in parts.items()]
    rows.sort(key=lambda row: row["regret at T"][0])
    return common.table_lines(rows)


def _winners(parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns sentences, each about one comparison on common seeds."""
    lines = []
    finals = {name: data.regret.isel(time=-1).values for name, data in parts["a"].items()}
    for trust, words in TRUST.items():
        names = [name for name in finals if LINE_UP[name].trust == trust]
        lines.append(f"* Where {_told(words)}: {_ranking(names, finals)}")
    play = finals.get("uniform_play")
    if play is not None:
        useless = [
            LINE_UP[name].label
            for name, values in finals.items()
            if name != "uniform_play" and values.mean() > 0.95 * play[: len(values)].mean()
        ]
        listed = ", ".join(useless) if useless else "none"
        lines.append(f"* Within 5 % of uniform play, or worse: {listed}.")
    lines += _at_leaks(parts["b"])
    lines += _where_agents_differ(parts["c"])
    return lines


def _told(words: str) -> str:
    return words if words.startswith("nobody") else f"others get {words}"


def _ranking(names: Sequence[str], finals: Mapping[str, np.ndarray]) -> str:
    """Returns who has the least regret, and by how much."""
    order = sorted(names, key=lambda name: finals[name].mean())
    if not order:
        return "nobody was run."
    first, rest = order[0], order[1:]
    text = f"{LINE_UP[first].label} has the least regret, {_interval(finals[first])}"
    if not rest:
        return text + "."
    second = rest[0]
    return f"{text}; {_compared(first, second, finals)}."


def _compared(first: str, second: str, finals: Mapping[str, np.ndarray]) -> str:
    """Returns what the paired difference of the second to the first says."""
    shared = min(len(finals[first]), len(finals[second]))
    mean, low, high = common.interval(finals[second][:shared] - finals[first][:shared])
    name = LINE_UP[second].label
    told = f"{mean:,.0f} [{low:,.0f}, {high:,.0f}]"
    if low > 0:
        return f"{name} has {told} more"
    if high < 0:
        return f"{name} has {-mean:,.0f} [{-high:,.0f}, {-low:,.0f}] less"
    return f"{name} cannot be told from it (difference {told})"


def _interval(values: np.ndarray) -> str:
    mean, low, high = common.interval(values)
    return f"{mean:,.0f} [{low:,.0f}, {high:,.0f}]"


def _at_leaks(parts: Mapping[str, Any]) -> list[str]:
    """Returns who has the least regret at each leak, of those that tell others something."""
    lines = []
    names = list(dict.fromkeys(label.partition(",")[0] for label in parts))
    told = [name for name in names if LINE_UP[name].trust != "alone"]
    for leak in LEAKS:
        finals = {name: parts[f"{name}, {leak:g}"].regret.isel(time=-1).values for name in told}
        text = _ranking(told, finals)
        if "cdp" in finals and "ldp_bits_pooled" in finals:
            text = f"{text[:-1]}. Beside CDP-MAB, {_compared('cdp', 'ldp_bits_pooled', finals)}."
        lines.append(f"* At a leak of {leak:g} to the best informed other: {text}")
    return lines


def _where_agents_differ(parts: Mapping[str, Any]) -> list[str]:
    """Returns who has the least regret where agents differ."""
    names = list(dict.fromkeys(label.partition(",")[0] for label in parts))
    finals = {name: parts[f"{name}, agents differ"].regret.isel(time=-1).values for name in names}
    return [f"* Where agents differ (spread 1): {_ranking(names, finals)}"] if names else []
