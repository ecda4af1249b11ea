"""Writes ARENA.md: who wins where, from the same simulations as the figures, and what was read how.

Every number and every place is computed: each two are compared on the seeds that both have, by the
interval of the paired difference, simultaneous over all pairs. Only those are ranked that are
trusted alike and are covered by the same epsilon.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

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
from experiments.arena import LEAKS, LINE_UP, TRUST, VIEWS, YARDSTICK
from fmab_jax.analysis import costs
from fmab_jax.analysis.privacy import laplace_sum_epsilon
from fmab_jax.analysis.words import write_count, write_number
from fmab_jax.core import graphs, ledgers
from fmab_jax.files import whole_file

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


def judge(load: Callable[[str], Mapping[int, Any]], folder: Path) -> list[Path]:
    """Writes ARENA.md, and its tables as CSV, from what `load` has of an experiment, by horizon."""
    found, settings = load("arena"), load("arena_settings")
    tables = {f"arena_T{common.power(T)}": _rows(parts["a"]) for T, parts in found.items()}
    ledger = _ledger()
    folder.mkdir(parents=True, exist_ok=True)
    written = [
        common.save_rows(rows, folder / f"{name}.csv")
        for name, rows in {**tables, "arena_ledger": ledger}.items()
    ]
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
    for (T, parts), (name, rows) in zip(found.items(), tables.items(), strict=True):
        lines += [*_horizon(T, parts, rows, name.removeprefix("arena_"), folder), ""]
    lines += arena_fronts.sections(found, load("arena_fronts"))
    lines += ["## Who sees what", "", *common.table_lines(ledger), "", _LEDGER_NOTES, ""]
    lines += ["## Who takes part", "", READ, "", *common.table_lines(_sources()), ""]
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
        *arena_settings.section(settings),
    ]
    with whole_file(folder / "ARENA.md") as temporary:
        temporary.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return [*written, folder / "ARENA.md"]


READ = (
    "How each source is read, and what is this project's own choice: "
    "[docs/semantics.md](../docs/semantics.md#other-algorithms)."
)


def _sources() -> list[dict[str, str]]:
    """Returns whose algorithm each contestant is."""
    return [
        {
            "algorithm": entry.label,
            "in Python": f"`{entry.algorithm.name}`",
            "source": entry.algorithm.source,
        }
        for entry in LINE_UP.values()
    ]


SHOWN = {
    "regret": "regret over time",
    "links": "regret against links and bits",
    "leak": "regret at matched trust",
    "differ": "agents that differ",
}


def _horizon(
    horizon: int,
    parts: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    end: str,
    folder: Path,
) -> list[str]:
    """Returns the section of a horizon."""
    listed = (
        f"{words}: [figure](arena_{name}_{end}.png), [table](arena_{name}_{end}.md)"
        for name, words in SHOWN.items()
    )
    return [
        *(f"## T = {write_count(horizon)}", "", *common.table_lines(rows), "", TABLE, ""),
        *_list_useless(horizon, parts["a"]),
        *_at_matched_trust(horizon, parts, folder),
        f"{'; '.join(listed)}.",
    ]


def _ledger() -> list[dict[str, Any]]:
    """Returns the privacy ledger of every contestant, and of coalitions that something covers."""

    def told(epsilon: float) -> str:
        return "no bound" if math.isinf(epsilon) else f"{epsilon:.3g}"

    return [
        {
            "algorithm": entry.label,
            "who": row.viewer,
            "sees": row.observation,
            "ε": told(row.epsilon),
            "ε up to δ": told(row.epsilon_at_delta),
            "why": row.why,
            "source": row.source,
        }
        for entry in LINE_UP.values()
        for row in fmab.privacy_ledger(
            entry.algorithm, arena.AGENTS, delta=arena.DELTA, colluding=COLLUDING
        )
        if math.isfinite(row.epsilon) or not row.viewer.endswith("together")
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
        places = several.Ranks(entrants, common.LEVEL).places
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
    return leak["actions"] if leak["messages"] == costs.NO_MESSAGES else leak["messages"]


def _list_useless(horizon: int, runs: Mapping[str, Any]) -> list[str]:
    """Says who does no better than uniform play, and who was not run."""
    if (play := runs.get("uniform_play")) is None:
        return []
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
    start = f"Surely within 5 % of uniform play, or worse, T = {write_count(horizon)}"
    return [f"{start}: {surely}; not decided: {open_}. {missing}".rstrip(), ""]


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
        told.append(
            f"{' / '.join(f'{each:#.3g}' for each in found)} up to δ = {write_number(delta)}"
        )
    return (
        f"δ = {write_number(arena.DELTA)} is not small for this unit, which is one reward among "
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
    """Returns a table for each view, and who is better than agents who tell nobody anything."""
    at, runs = f"T = {write_count(horizon)}", parts["b"]
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
        if missing := arena.not_run(arena.absent_of_view(view, LEAKS[0], runs)):
            lines += [missing, ""]
        if view != "actions" and YARDSTICK in parts["a"]:
            lines += [
                f"* ε = {leak:g}: {_yardstick(entrants, parts['a'][YARDSTICK])}"
                for leak in arena.TOLD
                if (entrants := arena.matched(view, leak, runs))
            ]
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
