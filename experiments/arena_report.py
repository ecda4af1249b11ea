"""Writes ARENA.md: who wins where, from the same simulations as the figures, and what was read how.

Every number and every place is computed: each two are compared on the seeds that both have, by the
interval of the paired difference, simultaneous over all pairs. Only those are ranked that are
trusted alike and are covered by the same epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import fmab_jax as fmab
from experiments import arena, arena_figures, arena_fronts, arena_settings, common, several
from experiments.arena import LINE_UP, TRUST, VIEWS
from fmab_jax.analysis import costs
from fmab_jax.analysis.words import write_count
from fmab_jax.files import whole_file
from fmab_jax.parts.exchanges import Viewer
from fmab_jax.parts.mechanisms.bits import BITS

STAND_INS = (
    f"Where agents are alone and alike and are simulated in slots or episodes, {arena.STAND_INS} "
    "agents are run, and their regret and the agents that play a worse arm are multiplied by "
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
    results, settings = load("arena"), load("arena_settings")
    tables = {f"arena_T{common.power(T)}": _rows(parts["a"]) for T, parts in results.items()}
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
        "everybody. Made by `python -m experiments arena arena_settings arena_fronts "
        f"arena_report`. Brackets are {100 * common.LEVEL:g} % confidence intervals "
        f"over seeds (Student t). {STAND_INS}",
        "",
    ]
    for (T, parts), (name, rows) in zip(results.items(), tables.items(), strict=True):
        lines += [*_horizon(T, parts, rows, name.removeprefix("arena_")), ""]
    lines += arena_fronts.sections(results, load("arena_fronts"))
    lines += ["## Who sees what", "", *common.table_lines(ledger), "", _LEDGER_NOTES, ""]
    lines += ["## Who takes part", "", READ, "", *common.table_lines(_sources()), ""]
    lines += ["## The authors' own settings", "", *arena_settings.section(settings)]
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


def _horizon(
    horizon: int, parts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], end: str
) -> list[str]:
    """Returns the section of a horizon: the table of all, and one for each view."""
    at = f"T = {write_count(horizon)}"
    figures = (
        f"{words}: [figure](arena_{name}_{end}.png), [table](arena_{name}_{end}.md)"
        for name, words in FIGURES.items()
    )
    lines = [f"## {at}", "", *common.table_lines(rows), "", TABLE, ""]
    absent = (entry for name, entry in LINE_UP.items() if name not in parts["a"])
    lines += write_absent({entry.label: entry.reason for entry in absent})
    lines += [f"**At matched trust, {at}.** {MATCHED}", ""]
    for view, settings in VIEWS.items():
        if rows := arena_figures.matched_table(view, parts["b"]):
            heading = (
                f"View: **{settings.who}**; accountant: {settings.leak}. {write_note(settings)}"
            )
            lines += [heading, "", *common.table_lines(rows), ""]
            lines += write_absent(arena.absent_of_view(view, arena.LEAKS[0], parts["b"]))
    return [*lines, f"{'; '.join(figures)}."]


def write_absent(reasons: Mapping[str, str]) -> list[str]:
    """Writes who takes no part in a table, by the reason; no lines if all do."""
    groups: dict[str, list[str]] = {}
    for label, reason in reasons.items():
        groups.setdefault(reason, []).append(label)
    text = (f"Not run, {reason}: {' / '.join(labels)}." for reason, labels in groups.items())
    return [" ".join(text), ""] if groups else []


def write_note(view: arena.View) -> str:
    """Writes what to know of a view, with the noise that its messages have."""
    return view.note.format(
        all=arena.message_leak(1.0, arena.AGENTS),
        star=arena.message_leak(1.0, 5),
        bits=arena.message_leak(1.0, arena.AGENTS, BITS),
    )


FIGURES = {
    "regret": "regret over time",
    "leak": "regret at matched trust",
    "differ": "agents that differ",
}
MATCHED = (
    "All of a column are covered by the same ε of one reward, over the whole run, against the one "
    "whose view is named. Cells: regret, its 95 % interval, and the place in the column. "
    "Contestants are all that have a finite ε above 0 in some view; the CSV of the figure lists "
    "who takes no part, and why. How much hangs on δ: "
    "[docs/privacy.md](../docs/privacy.md#who-sees-what)."
)


def _ledger() -> list[dict[str, Any]]:
    """Returns the privacy ledger of every contestant, and of coalitions that something covers."""

    def write_epsilon(epsilon: float) -> str:
        return "no bound" if math.isinf(epsilon) else f"{epsilon:.3g}"

    return [
        {
            "algorithm": entry.label,
            "who": row.label,
            "sees": row.observation,
            "ε": write_epsilon(row.epsilon),
            "ε up to δ": write_epsilon(row.epsilon_at_delta),
            "why": row.why,
            "source": row.source,
        }
        for entry in LINE_UP.values()
        for row in fmab.privacy_ledger(
            entry.algorithm, arena.AGENTS, delta=arena.DELTA, colluding=COLLUDING
        )
        if math.isfinite(row.epsilon) or row.viewer is not Viewer.COALITION
    ]


TABLE = (
    "Place: among those that are trusted alike and covered by the same ε, by paired differences of "
    "all pairs on the seeds that both have, simultaneous 95 % (Bonferroni); 2–4 of 6: one of the "
    "six is surely better, two are surely worse. Others are not ranked against each other. Epsilon "
    "of messages: pure, of one reward in all that is told, against whoever sees most of it; of "
    "actions: pure, against an outsider who sees all actions. Bits: a released bit has 1, an arm's "
    f"name {arena.NAME}, every other number {arena.REAL}. Seeds are fewer where one takes long. "
    "Links of DDP-MAB are charged as in the paper, diameter × edges a round."
)


def _rows(parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns all contestants, those of one trust and leak together, in the order of places."""
    reference = parts[arena.REFERENCE]
    rows = []
    for names in _groups(parts).values():
        entrants = [arena.entrant(name, parts[name]) for name in names]
        places = several.Ranks(entrants, common.LEVEL).places
        common_seeds = min(len(item.regret) for item in entrants)
        ranked = []
        for name, entrant in zip(names, entrants, strict=True):
            place = places[entrant.label]
            row = arena.final_row(name, parts[name], reference)
            head, trust = row.pop("algorithm"), row.pop("who is trusted")
            rank = f"{place.text} of {len(names)}"
            row = {"algorithm": head, "who is trusted": trust, "place": rank} | row
            ranked.append((place[:2], entrant.regret[:common_seeds].mean(), row))
        rows += [row for _, _, row in sorted(ranked, key=lambda item: item[:2])]
    return rows


def _groups(names: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """Returns contestants by who is trusted, in words, and what leaks: in messages, or actions."""
    results: dict[tuple[str, str], list[str]] = {}
    order = list(TRUST)
    for name in sorted(names, key=lambda item: order.index(LINE_UP[item].trust)):
        results.setdefault((arena.trusted(name), leak_of(name)), []).append(name)
    return results


def leak_of(name: str) -> str:
    """Returns the epsilon of messages, or of actions of those that tell nobody anything."""
    leak = arena.leaks(LINE_UP[name].algorithm)
    return leak["actions"] if leak["messages"] == costs.NO_MESSAGES else leak["messages"]
