"""Writes ARENA.md: who wins where, from the same simulations as the figures, and what was read how.

Every number and every "wins" is computed: each two are compared on the seeds that both have, by the
interval of the paired difference, simultaneous over all pairs. Who has the least regret, and who
cannot be told from it, are those whose places start with the first. Only those are ranked that are
trusted alike and are covered by the same epsilon.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import fmab_jax as fmab
from experiments import (
    arena,
    arena_figures,
    arena_fronts,
    arena_protocols,
    arena_settings,
    audit,
    common,
    several,
)
from experiments.arena import LINE_UP, SPREADS, TRUST, VIEWS, YARDSTICK
from fmab_jax.analysis import costs
from fmab_jax.analysis.privacy import laplace_sum_epsilon
from fmab_jax.analysis.words import whole, written
from fmab_jax.core import graphs, ledgers
from fmab_jax.elimination import Epoch
from fmab_jax.files import whole_file

# What was read how; one paragraph for each algorithm. Numbers are computed, none is typed.
_READINGS = {
    "cdp": "CDP-MAB is Algorithm 1 of Li and Song as docs/semantics.md reads it, with p = {share} "
    "and no round budget. At ε = {epsilon} a message leaks {leak}; at matched trust the leak "
    "itself is set.",
    "cdp_scaled": "The same with the confidence radius multiplied by {scale}, and epochs as short "
    "as that allows. No theorem covers it; runs tell how often the best arm is lost.",
    "ddp": "DDP-MAB runs GIS on a ring of {agents}: {wait} slots of waiting a round, in which "
    "agents pull their own un-noised best arm. No ε covers these actions; `private_waiting=True` "
    "does.",
    "hdp": "HDP-MAB has {stars} stars of {size}, which collect without a wait. Weights are 1/M, "
    "not the print's 1/Q, which is the same here.",
    "single": "CDP-MAB with M = 1, by every agent alone: the paper's baseline.",
    "dist_dp_se": "Dist-DP-SE is adapted from users that arrive to agents that stay: 2^b pulls of "
    "each active arm by every agent. One Laplace variable stands for the discrete one that "
    "secure aggregation sums up; what is trusted is that aggregation.",
    "kl_se": "KL-SE is ours: an arm leaves when what the server has heard is too unlikely for it "
    "to be the best, as docs/theory.md proves. Epochs double; the first one is as long as the "
    "noise asks for.",
    "kl_se_split": "The same, where agents share the arms out: one line of all pulls is cut into "
    "{agents} equal parts. Agents must be alike.",
    "kl_se_graph": "KL-SE with the exchange of DDP-MAB on a ring of {agents}: {wait} slots of "
    "waiting a round, in which agents pull the arm of the best noisy mean.",
    "kl_se_components": "KL-SE with the exchange of HDP-MAB, {stars} stars of {size}.",
    "kl_se_sum": "KL-SE over a secure sum, with one Laplace variable on each arm's sum.",
    "dp_imed": "DP-IMED, by every agent alone: an arm is pulled until its pulls have doubled, and "
    "its rewards are told as one noisy sum. That pulls double is our reading of a summary.",
    "dp_imed_sum": "The same policy, played by all agents together over a secure sum, with log(Mt) "
    "for log t; not found published.",
    "dp_klucb": "DP-KLUCB, by every agent alone, with episodes as in DP-IMED.",
    "dp_klucb_sum": "The same over a secure sum; not found published.",
    "fed_ucb": "Fed_UCB's printed radius leads to nearly uniform play, even with {few} agents, "
    "{few_arms} arms and ε = {weak} at T = {short}. Shown is the radius divided by the square root "
    "of M, which no theorem covers. Who gossips with whom is not in the source; one pair a slot "
    "is assumed.",
    "gossip_ucb": "Gossip_UCB's radius is printed with a factor M under the root, with which play "
    "is nearly uniform. The scaled one leaves it out and is covered by no theorem. Links are "
    "pairs that gossip; the maxima of counts, which all edges carry in every slot, are a meter "
    "of their own, and are a part of the numbers sent.",
    "dducb": "DDUCB mixes in every slot over every edge. Defects of the released code are left "
    "out: C steps in every slot, counts entered twice, a grid scaled twice.",
    "dec_ucb": "Dec_UCB is the authors' code: Metropolis weights, and a random late arm where one "
    "is more than K pulls behind.",
    "gosine": "GosInE is the synchronous version of the authors' code, on the complete graph, "
    "with α = {alpha}.",
    "lcc_ucb": "LCC-UCB restarts UCB1 in each epoch. It is made for many more arms than agents: "
    "here its first epoch alone lasts {first} slots.",
    "lcc_ucb_graph": "The graph version tells neighbours only, after each sub-epoch.",
    "fed1_ucb": "Fed1-UCB with f = {pulls} pulls an arm and phase. The radius is the code's, not "
    "the text's.",
    "fed1_ucb_own": "Fed1-UCB with the authors' own f = 10 log T: at T = {least} one phase takes "
    "{phase} of the slots, which is nearly uniform play.",
    "demab": "DEMAB is read from a summary, as its pseudo-code was not found; what that "
    "leaves open is in docs/semantics.md. At T = {long} its agents explore alone for {alone} "
    "slots, in which no phase ends: its first phase takes {first} pulls of an arm.",
    "demab_private": "The same with noise on every sum of rewards, and phases as long as that "
    "asks for. This version is ours.",
    "dp_se": "DP-SE draws one noise for each arm, as the source has it; a public code draws one "
    "for all arms, which cancels. Its first epoch, {epoch} pulls of every arm at T = {long}, is "
    "longer than T.",
    "adap_ucb": "AdaP-UCB has α = {alpha} and doubles each arm's episodes; its bonus has the ε "
    "that a public code drops.",
    "adap_klucb": "AdaP-UCB with the index of Bernoulli divergence, from the same source.",
    "lazy_dp_ts": "Lazy-DP-TS, by every agent alone; each slot draws from a Beta law for each arm.",
    "tree_ucb": "Private UCB with a binary tree for each arm, as Mishra and Thakurta have it; ε is "
    "not split over arms, whose data are disjoint.",
    "ldp_ucb": "LDP-UCB-L, by every agent alone: every reward has Laplace noise before its agent "
    "looks, and nobody is told anything. The phantom pull of the authors' code is left out.",
    "ldp_bits": "LDP-UCB-B, by every agent alone: every reward is one random bit.",
    "ldp_ucb_pooled": "LDP-UCB-L where a server pools what all agents release, our reading of a "
    "federated version; t becomes M t.",
    "ldp_bits_pooled": "LDP-UCB-B, pooled likewise.",
    "ucb1": "UCB1 with α = {alpha}, by every agent alone.",
    "ucb1_pooled": "UCB1 on all rewards, which a server pools in every slot: M pulls follow one "
    "index.",
    "thompson": "Thompson sampling with normal posteriors, for any rewards in [0, 1].",
    "thompson_pooled": "The same on all rewards; all agents follow one draw.",
    "kl_ucb": "KL-UCB with c = {constant}.",
    "kl_ucb_pooled": "The same on all rewards.",
    "uniform_play": "Nobody learns: the yardstick of an algorithm that explores all the time.",
}


class Weak(NamedTuple):
    """A run in which Fed_UCB's printed radius would have to matter least; a test makes it."""

    agents: int = 5
    arms: int = 10
    epsilon: float = 5.0
    horizon: int = 10**4


def first_epoch(algorithm: fmab.Elimination, horizon: int) -> int:
    """Returns how often an elimination of the arena pulls every arm before any may leave."""
    exchange = algorithm.exchange(arena.AGENTS)
    begun = {"number": 1, "active": arena.ARMS, "arms": arena.ARMS, "agents": arena.AGENTS}
    begun |= {"reporting": exchange.reporting, "horizon": horizon, "previous": 0}
    with jax.enable_x64(True):
        told = {each: jnp.float64(begun.get(each, math.nan)) for each in Epoch._fields[:-1]}
        values = algorithm.values(exchange, horizon).items()
        own = {each: jnp.float64(value) for each, value in values}
        return int(algorithm.pulls_per_arm(Epoch(**told, own=own)))


def first_told(algorithm: fmab.IndexPolicy) -> int:
    """Returns after how many slots LCC-UCB tells anybody anything: K' (K' + 1), its K' arms."""
    own = algorithm.values(algorithm.exchange(arena.AGENTS), max(common.HORIZONS))
    most = math.ceil(arena.ARMS / arena.AGENTS) + round(own["degree"])
    return most * (most + 1)


def _numbers(name: str) -> dict[str, str]:
    """Returns the numbers of a paragraph, by their names in it."""
    algorithm = LINE_UP[name].algorithm
    exchange = algorithm.exchange(arena.AGENTS)
    settings = {
        each: f"{value:g}"
        for each in ("alpha", "constant", "epsilon", "pulls", "scale")
        if isinstance(value := getattr(algorithm, each, None), int | float)
    }
    if name == "cdp":
        told = {"share": f"{algorithm.participation:g}", "leak": arena.leaks(algorithm)["messages"]}
    elif name == "kl_se_split":
        told = {"agents": f"{arena.AGENTS}"}
    elif name in ("ddp", "kl_se_graph"):
        told = {"agents": f"{arena.AGENTS}", "wait": f"{exchange.wait}"}
    elif name in ("hdp", "kl_se_components"):
        stars = len(exchange.sinks)
        told = {"stars": f"{stars}", "size": f"{arena.AGENTS // stars}"}
    elif name == "fed_ucb":
        weak = Weak()
        told = {"few": f"{weak.agents}", "few_arms": f"{weak.arms}"}
        told |= {"weak": f"{weak.epsilon:g}", "short": whole(weak.horizon)}
    elif name == "lcc_ucb":
        told = {"first": f"{first_told(algorithm):,}"}
    elif name == "fed1_ucb_own":
        least = min(common.HORIZONS)
        phase = arena.ARMS * first_epoch(algorithm, least)
        told = {"least": whole(least), "phase": f"{phase:,}"}
    elif name == "demab":
        long = max(common.HORIZONS)
        log = math.log(arena.AGENTS * arena.ARMS * long)
        told = {"long": whole(long), "alone": f"{long // (arena.AGENTS * arena.ARMS)}"}
        told |= {"first": f"{math.ceil(4**4 * log):,}"}
    elif name == "dp_se":
        epochs = {T: first_epoch(algorithm, T) for T in common.HORIZONS}
        long = max(T for T, pulls in epochs.items() if arena.ARMS * pulls > T)
        told = {"epoch": f"{epochs[long]:,}", "long": whole(long)}
    else:
        told = {}
    return settings | told


@functools.cache
def readings() -> dict[str, str]:
    """Returns what was read how, a paragraph for each contestant."""
    return {name: text.format(**_numbers(name)) for name, text in _READINGS.items()}


_, DIFFER = SPREADS
STAND_INS = (
    "Where agents are alone and alike and are simulated in slots or episodes, "
    f"{arena.STAND_INS} agents are run, and their regret and the agents that play a worse arm are "
    "multiplied by "
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
        self.fronts = arena_fronts.Data(results)


def judge(data: Data, folder: Path) -> list[Path]:
    """Writes ARENA.md."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for horizon, parts in data.arena.items():
        end = f"T{common.power(horizon)}"
        table = _rows(parts["a"])
        written.append(common.save_rows(table, folder / f"arena_{end}.csv"))
        section = [f"## T = {whole(horizon)}", "", *common.table_lines(table), "", TABLE, ""]
        section += ["**Who wins where.** Intervals of differences are paired, seed by seed, and "]
        section[-1] += "simultaneous over all pairs of a comparison (Bonferroni); each two are "
        section[-1] += "compared on the seeds that both have. Means are over all seeds of each."
        section += ["", *_winners(horizon, parts), ""]
        section += _at_matched_trust(horizon, parts, folder)
        shown = {
            "regret": "regret over time",
            "links": "regret against links and bits",
            "leak": "regret at matched trust",
            "differ": "agents that differ",
        }
        listed = (
            f"{words}: [figure](arena_{name}_{end}.png), [table](arena_{name}_{end}.md)"
            for name, words in shown.items()
        )
        section += [f"{'; '.join(listed)}."]
        written.append(folder / f"arena_{end}.md")
        _write(written[-1], section)
    lines = [
        "# The arena",
        "",
        f"Every algorithm of the package on the paper's instance: {arena.AGENTS} agents, "
        f"{arena.ARMS} arms, Bernoulli means drawn from U[0, 1] for each seed, the same for "
        "everybody. Made by `python -m experiments arena arena_settings arena_protocols audit "
        f"arena_fronts arena_report`. Brackets are {100 * common.LEVEL:g} % confidence intervals "
        f"over seeds (Student t). {STAND_INS}",
        "",
    ]
    # Horizons may have been run one at a time.
    for section in sorted(folder.glob("arena_T*.md")):
        lines += [section.read_text(encoding="utf-8").rstrip(), ""]
    lines += arena_fronts.sections(data.fronts)
    ledger = _ledger()
    written += common.save_table(ledger, folder, "arena_ledger", _LEDGER_NOTES)
    lines += ["## Who sees what", "", *common.table_lines(ledger), "", _LEDGER_NOTES, ""]
    lines += ["## What was read how", ""]
    for name, text in readings().items():
        entry = LINE_UP[name]
        source = entry.algorithm.source
        lines += [f"**{entry.label}** (`{entry.algorithm.name}`; {source}). {text}", ""]
    lines += [
        f"## What a round of DDP-MAB's protocols takes, M = {arena_protocols.AGENTS}",
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


TABLE = (
    "Place: among those that are trusted alike and covered by the same ε, by paired differences of "
    "all pairs on the seeds that both have, simultaneous 95 % (Bonferroni); 2–4 of 6: one of the "
    "six is surely better, two are surely worse. Others are not ranked against each other. Epsilon "
    "of messages: pure, of one reward in all that is told, against whoever sees most of it; of "
    "actions: pure, against an outsider who sees all actions. Bits: a released bit has 1, an arm's "
    f"name {arena.NAME}, every other number {arena.REAL}. Seeds are fewer where one takes long. "
    "Links of DDP-MAB are charged as in the paper, diameter × edges a round; the section on "
    "protocols counts edges that carry data."
)


def _rows(parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns all contestants, those of one trust and leak together, in the order of places."""
    reference = parts[arena.REFERENCE]
    rows = []
    for names in _groups(parts).values():
        entrants = [arena.entrant(name, parts[name]) for name in names]
        places = several.places(entrants, common.LEVEL)
        common_seeds = min(len(each.regret) for each in entrants)
        own = []
        for name, entrant in zip(names, entrants, strict=True):
            place = places[entrant.label]
            row = arena.final_row(name, parts[name], reference)
            head, trust = row.pop("algorithm"), row.pop("who is trusted")
            told = f"{place.text} of {len(names)}"
            row = {"algorithm": head, "who is trusted": trust, "place": told} | row
            own.append((place[:2], entrant.regret[:common_seeds].mean(), row))
        rows += [row for _, _, row in sorted(own, key=lambda each: each[:2])]
    return rows


def _groups(names: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """Returns contestants by who is trusted, in words, and what leaks: in messages, or actions."""
    found: dict[tuple[str, str], list[str]] = {}
    order = list(TRUST)
    for name in sorted(names, key=lambda each: order.index(LINE_UP[each].trust)):
        found.setdefault((arena.trusted(name), leak_of(name)), []).append(name)
    return found


def leak_of(name: str) -> str:
    """Returns the epsilon of messages, or of actions of those that tell nobody anything."""
    leak = arena.leaks(LINE_UP[name].algorithm)
    return leak["actions"] if leak["messages"] == costs.NOTHING else leak["messages"]


def _winners(horizon: int, parts: Mapping[str, Mapping[Any, Any]]) -> list[str]:
    """Returns sentences, each about one comparison."""
    lines = []
    at = f"T = {whole(horizon)}"
    runs = parts["a"]
    lines.append(_least(f"Of all, {at}", list(LINE_UP), runs, unlike=True))
    for (trust, leak), names in _groups(LINE_UP).items():
        if sum(name in runs for name in names) > 1:
            of = "actions" if trust == TRUST["alone"] else "messages"
            told = leak if leak == "no bound" else f"ε = {leak}"
            lines.append(_least(f"Trusted: {trust}; {of}: {told}, {at}", names, runs))
    if (play := runs.get("uniform_play")) is not None:
        base = play.regret.isel(time=-1).values
        useless: dict[str, list[str]] = {"surely": [], "open": []}
        for name, data in runs.items():
            values = data.regret.isel(time=-1).values
            shared = min(len(values), len(base))
            _, low, high = common.interval(values[:shared] - 0.95 * base[:shared])
            if name != "uniform_play" and high > 0:
                useless["surely" if low > 0 else "open"].append(LINE_UP[name].label)
        surely, open_ = (" / ".join(labels) or "nobody" for labels in useless.values())
        missing = arena.not_run(arena.absent(LINE_UP, runs))
        start = f"* Surely within 5 % of uniform play, or worse, {at}"
        lines.append(f"{start}: {surely}; not decided: {open_}. {missing}".rstrip())
    differ = {name: data for (name, words), data in parts["c"].items() if words == DIFFER}
    if differ:
        about = f"Where agents differ, {at}"
        lines.append(_least(about, list(LINE_UP), differ, unlike=True, differ=True))
    return lines


def _least(
    about: str,
    names: Sequence[str],
    runs: Mapping[str, Any],
    *,
    unlike: bool = False,
    differ: bool = False,
) -> str:
    """Returns who of the contestants has the least regret, as a line of a list."""
    entrants = [arena.entrant(name, runs[name]) for name in names if name in runs]
    if not unlike:
        # Those that tell nobody anything are compared by what their actions leak.
        entrants = [
            each._replace(leak=leak_of(name))
            for name, each in zip((n for n in names if n in runs), entrants, strict=True)
        ]
    missing = arena.absent(names, runs, differ)
    found = several.least(about, entrants, missing, common.LEVEL, unlike=unlike)
    return f"* {found.sentence}"


def noted(what: arena.View, folder: Path) -> str:
    """Returns what to know of a view, with its numbers."""
    return what.note.format(
        all=arena.message_leak(1.0, arena.AGENTS),
        star=arena.message_leak(1.0, 5),
        bits=arena.message_leak(1.0, arena.AGENTS, ledgers.BITS),
        shown=_shown(folder / "audit_mechanisms.csv"),
    )


def small(horizon: int) -> str:
    """Says how small delta is for one reward, and what a smaller one would leave of a message."""
    agents, leaks = arena.AGENTS, (50.0, 5.0, 1.0)
    others = [arena.DELTA * factor for factor in (1.0, 1e-3, 1e-6)]
    told = []
    for delta in others:
        found = (laplace_sum_epsilon(agents, 1.0 / leak, delta) for leak in leaks)
        told.append(f"{' / '.join(f'{each:#.3g}' for each in found)} up to δ = {written(delta)}")
    return (
        f"δ = {written(arena.DELTA)} is not small for this unit, which is one reward among "
        f"M T = {agents * horizon:,}. How much hangs on it: where a message leaks "
        f"{' / '.join(f'{leak:g}' for leak in leaks)}, a sum over {agents} agents leaks "
        f"{', '.join(told[:-1])} and {told[-1]}."
    )


def _shown(path: Path) -> str:
    """Says which part of the claims about index policies' actions the audit shows; "" without."""
    if not path.exists():
        return ""
    with path.open(newline="", encoding="utf-8") as file:
        shares = [
            # A claim of which no run shows anything has no share; that is 0 of it.
            float(row["share of the claim"] or 0)
            for row in csv.DictReader(file)
            if row["view"] == "actions"
            if row["share of the claim"] or row.get("claim", "0") not in ("0", "none")
            if (case := audit.SOUND.get(row["mechanism"]))
            if isinstance(case.make(), (fmab.IndexPolicy, fmab.Episodes))
        ]
    if not shares:
        return ""
    low, high = (f"{end:.2g}" for end in (min(shares), max(shares)))
    return f": of the actions of index policies the audit shows {low} to {high} of it"


def _at_matched_trust(
    horizon: int, parts: Mapping[str, Mapping[Any, Any]], folder: Path
) -> list[str]:
    """Returns a table for each view, and who has the least regret at some leaks."""
    at, runs = f"T = {whole(horizon)}", parts["b"]
    lines = [
        f"**At matched trust, {at}.** All of a column are covered by the same ε of one reward, "
        "over the whole run, against the one whose view is named. Cells: regret, its 95 % "
        "interval, and the place in the column. Contestants are all that have a finite ε above 0 "
        "in some view.",
        "",
        small(horizon),
        "",
    ]
    for view, what in VIEWS.items():
        rows = arena_figures.matched_table(view, runs)
        if not rows:
            continue
        note = noted(what, folder)
        lines += [f"View: **{what.who}**; accountant: {what.leak}. {note}", ""]
        lines += [*common.table_lines(rows), ""]
        for leak in arena.TOLD:
            about = f"At matched trust, {at}"
            entrants = arena.matched(view, leak, runs)
            if not entrants:
                continue
            missing = arena.absent_of_view(view, leak, runs)
            found = several.least(about, entrants, missing, common.LEVEL)
            lines.append(f"* {found.sentence}")
            if view != "actions" and YARDSTICK in parts["a"]:
                lines[-1] += f" {_yardstick(entrants, parts['a'][YARDSTICK])}"
        lines.append("")
    return lines


def _yardstick(entrants: Sequence[Any], run: Any) -> str:
    """Says which of some have surely less regret than the best that tells nobody anything."""
    quiet = arena.entrant(YARDSTICK, run)
    level = 1 - (1 - common.LEVEL) / len(entrants)
    less = []
    for each in entrants:
        shared = min(len(each.regret), len(quiet.regret))
        _, _, high = common.interval(each.regret[:shared] - quiet.regret[:shared], level)
        if high < 0:
            less.append(each.label)
    mean = common.cell(common.interval(quiet.regret))
    return (
        f"Yardstick: {quiet.label} by every agent alone, which tells nobody anything, has {mean}; "
        f"surely less than that has: {' / '.join(less) or 'nobody'}."
    )


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
