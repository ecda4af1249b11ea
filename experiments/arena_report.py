"""Writes ARENA.md: who wins where, from the same simulations as the figures, and what was read how.

Every number and every "wins" is computed, on common seeds: who has the smallest mean, and who
cannot be told from it by the interval of the paired difference, simultaneous over the contestants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import fmab_jax as fmab
from experiments import arena, arena_protocols, arena_settings, common
from experiments.arena import LEAKS, LINE_UP, TRUST
from fmab_jax.analysis import statements
from fmab_jax.analysis.words import whole
from fmab_jax.core import graphs
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
    "fed_ucb": "Fed_UCB's printed radius leads to nearly uniform play, even with 5 agents, 10 arms "
    "and ε = 5 at T = 10⁴. Shown is the radius divided by the square root of M, which no theorem "
    "covers. Who gossips with whom is not in the source; one pair a slot is assumed.",
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
    "fed1_ucb": "Fed1-UCB with f = 5 pulls an arm and phase. With the authors' f = 10 log T "
    "one phase would take 9,200 of 10⁴ slots: play would be nearly uniform. The radius is the "
    "code's, not the text's.",
    "dp_se": "DP-SE draws one noise for each arm, as the source has it; a public code draws one "
    "for all arms, which cancels. Its first epoch, 2,034 pulls of "
    "every arm at T = 10⁵, is longer than T.",
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


STAND_INS = (
    f"Where agents are alone and alike and are simulated slot by slot, {arena.STAND_INS} agents "
    "are run, and their regret and the agents that play a worse arm are multiplied by "
    f"{arena.AGENTS // arena.STAND_INS}."
)
COLLUDING = 10
_LEDGER_NOTES = (
    f"For one changed reward of one agent, over the whole run, M = {arena.AGENTS}; private "
    "algorithms at ε = 1 as each defines it. Up to δ: the hockey-stick divergence at this ε is at "
    f"most {arena.DELTA:g}; smaller where the noise of several agents adds up. {COLLUDING} agents "
    "together share all that they know; their row is left out where it has no bound. What the "
    "words mean: docs/semantics.md."
)


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
        end = f"T{common.power(horizon)}"
        section += ["**Who wins where.** Intervals of differences are paired, seed by seed, and "]
        section[-1] += "simultaneous over the contestants of a comparison (Bonferroni)."
        section += ["", *_winners(horizon, parts), ""]
        shown = {
            "regret": "regret over time",
            "links": "regret against links and numbers",
            "leak": "regret at an equal leak",
            "differ": "agents that differ",
        }
        listed = (
            f"{words}: [figure](arena_{name}_{end}.png), [table](arena_{name}_{end}.md)"
            for name, words in shown.items()
        )
        section += [f"{'; '.join(listed)}."]
        written.append(folder / f"arena_T{common.power(horizon)}.md")
        _write(written[-1], section)
    lines = [
        "# The arena",
        "",
        "Every algorithm of the package on the paper's instance: 50 agents, 100 arms, Bernoulli "
        "means drawn from U[0, 1] for each seed, the same for everybody. Made by `python -m "
        "experiments arena arena_settings arena_protocols arena_report`. Brackets are 95 % "
        f"confidence intervals over seeds (Student t). {STAND_INS}",
        "",
    ]
    # Horizons may have been run one at a time.
    for section in sorted(folder.glob("arena_T*.md")):
        lines += [section.read_text(encoding="utf-8").rstrip(), ""]
    ledger = _ledger()
    written += common.save_table(ledger, folder, "arena_ledger", _LEDGER_NOTES)
    lines += ["## Who sees what", "", *common.table_lines(ledger), "", _LEDGER_NOTES, ""]
    lines += ["## What was read how", ""]
    for name, text in READINGS.items():
        entry = LINE_UP[name]
        source = entry.algorithm.source
        lines += [f"**{entry.label}** (`{entry.algorithm.name}`; {source}). {text}", ""]
    lines += [
        "## What a round of DDP-MAB's protocols takes, M = 50",
        "",
        "Over more sizes: [table](arena_protocols.md), [figure](arena_protocols.png); what they "
        "cost in regret: [table](arena_protocols_regret.md). SAC collects and does not send back.",
        "",
        *_protocols(),
        "",
        "## The authors' own settings",
        "",
        *arena_settings.table(data.settings),
        "",
        *arena_settings.not_run(data.settings),
    ]
    _write(folder / "ARENA.md", lines)
    return [*written, folder / "ARENA.md"]


def _write(path: Path, lines: Sequence[str]) -> None:
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _ledger() -> list[dict[str, Any]]:
    """Returns the privacy ledger of every contestant, and of coalitions that something covers."""

    def told(epsilon: float) -> str:
        return "no bound" if math.isinf(epsilon) else f"{epsilon:.3g}"

    return [
        {
            "algorithm": entry.label,
            "who": row.who,
            "sees": row.what,
            "ε": told(row.epsilon),
            "ε up to δ": told(row.epsilon_at_delta),
            "why": row.why,
            "source": row.source,
        }
        for entry in LINE_UP.values()
        for row in fmab.privacy_ledger(
            entry.algorithm, arena.AGENTS, delta=arena.DELTA, colluding=COLLUDING
        )
        if math.isfinite(row.epsilon) or not row.who.endswith("together")
    ]


def _table(parts: Mapping[str, Any]) -> list[str]:
    """Returns all contestants, the least regret first."""
    reference = parts[arena.REFERENCE]
    rows = [arena.final_row(name, data, reference) for name, data in parts.items()]
    rows.sort(key=lambda row: row["regret at T"][0])
    return common.table_lines(rows)


STEPS = "because simulating them slot by slot takes too long"
ALIKE_ONLY = "because they are stated for agents alike only"


def _winners(horizon: int, parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns sentences, each about one comparison on common seeds."""
    lines = []
    at = f"T = {whole(horizon)}"
    finals = {name: data.regret.isel(time=-1).values for name, data in parts["a"].items()}
    lines.append(_ranking(f"Of all, {at}", list(LINE_UP), finals))
    for trust, words in TRUST.items():
        names = [name for name, entry in LINE_UP.items() if entry.trust == trust]
        if sum(name in finals for name in names) > 1:
            lines.append(_ranking(f"Trusted: {words}, {at}", names, finals))
    if (play := finals.get("uniform_play")) is not None:
        useless = []
        for name, values in finals.items():
            shared = min(len(values), len(play))
            _, low, _ = common.interval(values[:shared] - 0.95 * play[:shared])
            if name != "uniform_play" and low > 0:
                useless.append(LINE_UP[name].label)
        told = " / ".join(useless) if useless else "nobody"
        lines.append(f"* Within 5 % of uniform play, or worse, {at}: {told}.")
    return [*lines, *_at_leaks(at, parts["b"]), *_where_agents_differ(at, parts["c"])]


def _ranking(
    about: str,
    names: Sequence[str],
    finals: Mapping[str, np.ndarray],
    leak: float | None = None,
    *,
    differ: bool = False,
) -> str:
    """Returns who has the least regret, of those of the names that were run.

    Their leak is that of the line-up, if no other is given. Where agents differ, some cannot run.
    """
    run = [name for name in names if name in finals]
    entrants = []
    for name in run:
        entry = LINE_UP[name]
        told = arena.leaks(entry.algorithm)["messages"] if leak is None else f"{leak:g}"
        entrants.append(statements.Entrant(entry.label, TRUST[entry.trust], told, finals[name]))
    absent: dict[str, list[str]] = {}
    for name in names:
        if name not in finals:
            why = STEPS if LINE_UP[name].steps else "in this run"
            if differ and getattr(LINE_UP[name].algorithm, "homogeneous_only", False):
                why = ALIKE_ONLY
            absent.setdefault(why, []).append(LINE_UP[name].label)
    found = statements.least(about, entrants, absent, common.LEVEL, unlike=True)
    return f"* {found.sentence}"


def _at_leaks(at: str, parts: Mapping[str, Any]) -> list[str]:
    """Returns who has the least regret at each leak, of those that tell others something."""
    names = [name for name in arena.AT_LEAK if not LINE_UP[name].alone]
    lines = []
    for leak in LEAKS:
        labels = {name: f"{name}, {leak:g}" for name in names}
        finals = {
            name: parts[label].regret.isel(time=-1).values
            for name, label in labels.items()
            if label in parts
        }
        if finals:
            about = f"At ε = {leak:g} of what others are told, {at}"
            lines.append(_ranking(about, names, finals, leak))
    return lines


def _where_agents_differ(at: str, parts: Mapping[str, Any]) -> list[str]:
    """Returns who has the least regret where agents differ."""
    finals = {
        name: parts[label].regret.isel(time=-1).values
        for name in LINE_UP
        if (label := f"{name}, agents differ") in parts
    }
    about = f"Where agents differ, {at}"
    return [_ranking(about, list(LINE_UP), finals, differ=True)] if finals else []


def _protocols() -> list[str]:
    """Returns a sentence for each graph of 50 agents: what a round takes."""
    lines = []
    for name in arena_protocols.GRAPHS:
        found = arena_protocols.tables(graphs.make(name, arena_protocols.AGENTS))
        told = [
            f"{arena_protocols.spoken(words)} {table.wait + 1:,} slot{'s' * (table.wait > 0)}, "
            f"{arena_protocols.links(table):,} links and "
            f"{arena_protocols.vectors(table):,} vectors"
            for words, table in found.items()
        ]
        lines.append(f"* {name}: {'; '.join(told)}.")
    return lines
