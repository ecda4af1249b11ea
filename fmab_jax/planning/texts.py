"""The answer of a plan in words."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from fmab_jax.analysis.costs import write_epsilon
from fmab_jax.errors import format_quantity
from fmab_jax.planning.answers import Alternative, Answer, State
from fmab_jax.planning.runs import Look, Summary

_ENDS = {
    "time": ("the time is up", "Give a larger --time"),
    "seeds": ("no candidate may have more seeds", "Give a larger --max-seeds"),
    "stopped": ("it was stopped", "Start it again"),
}
# Rivals that a line names.
_MOST_NAMED = 4


def write_within(within: float) -> str:
    """Writes x: "5 %", "a factor of 13"."""
    return f"{100 * within:.3g} %" if within < 10.0 else f"a factor of {1.0 + within:,.0f}"


def write_seconds(seconds: float) -> str:
    """Writes a time to one digit or two: "40 s", "3 min"."""
    if seconds < 90.0:
        return f"{max(1, round(seconds, -1 if seconds >= 20 else 0)):.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def write_statement(answer: Answer) -> str:
    """Writes how good the answer surely is."""
    confidence = f"{100 * answer.question.confidence:.12g} % confidence"
    number = format_quantity(answer.candidates, "candidate")
    if answer.holds and answer.candidates == 1:
        return "The only candidate, and it keeps the budgets:"
    if answer.holds:
        return f"Within {100 * answer.within:,.4g} % of the best of {number}, with {confidence}:"
    if waiting := answer.list_labels(State.WAITING):
        judged = answer.candidates - len(waiting)
        number = f"the first {format_quantity(judged, 'candidate')}"
    bound = f"no bound yet of the leader of {number}"
    if not answer.keeps:
        bound = f"the leader of {number}, of which nothing shows that it keeps the budgets"
    elif math.isfinite(answer.within):
        share = write_within(answer.within)
        bound = f"the leader is within {share} of the best of {number} ({confidence})"
    return f"Not decided, since {_ENDS[answer.end][0]}: so far {bound}:"


def write_obstacles(answer: Answer) -> list[str]:
    """Writes why an answer is not decided, and what it would take, a reason a line."""
    if answer.holds:
        return []
    lines, parts, goal = [], [], answer.question.within
    if waiting := answer.list_labels(State.WAITING):
        number = format_quantity(len(waiting), "candidate")
        verb = "has" if len(waiting) == 1 else "have"
        lines.append(f"Why: {number} {verb} not run: {_list_names(waiting)}.")
        parts.append(f"the runs of {number}")
    if undecided := list(answer.frame.candidate[answer.frame.undecided]):
        number, names = format_quantity(len(undecided), "rival"), _list_names(undecided)
        lines.append(f"Why: {number} may be better by more than {100 * goal:.3g} %: {names}.")
    rare, excess = answer.rare, answer.tail.excess
    if rare + excess > 0.5 * goal * answer.regret.mean:
        seeds = format_quantity(int(answer.frame.seeds[0]), "seed")
        more = f", and {answer.tail.source} allows {excess:,.0f} more" if excess else ""
        lines.append(
            f"Why: losses that are too rare to be seen in {seeds} may add {rare:,.0f} to the "
            f"leader's mean regret{more}."
        )
    if not answer.keeps:
        lines.append("Why: too few seeds show that the leader keeps the budgets.")
    if answer.missing_trials:
        parts.append(f"{float(f'{answer.missing_trials:.2g}'):,.0f} trials of those that ran")
    lines.append(
        f"To decide: {' and '.join(parts) or 'more seeds'}, about "
        f"{write_seconds(answer.times.missing_s)}. {_ENDS[answer.end][1]}; with --out, a plan "
        "goes on from the trials of the one before."
    )
    return lines


def _wrap(text: str, indent: str = "") -> list[str]:
    """Returns the lines of a paragraph; options and calls are not broken at a hyphen."""
    return textwrap.wrap(text, 80, subsequent_indent=indent, break_on_hyphens=False)


def _list_names(labels: Sequence[str]) -> str:
    """Lists a few labels, and counts the others."""
    rest = len(labels) - _MOST_NAMED
    return ", ".join(labels[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def write_answer(answer: Answer, configuration: str) -> list[str]:
    """Writes the answer in lines.

    Args:
        answer: The answer.
        configuration: What to run: a command or a call, or that no words state it.
    """
    rows = {"regret at T": answer.regret, "links": answer.links}
    rows |= {"numbers": answer.numbers, "bits": answer.bits}
    facts = {name: _write_summary(summary) for name, summary in rows.items()}
    facts["leak of one reward"] = ", ".join(
        f"{view} {write_epsilon(leak.epsilon, leak.delta)}" for view, leak in answer.leaks.items()
    )
    if math.isfinite(answer.final_gap):
        facts["gap played at T"] = f"{answer.final_gap:.3g}, mean"
    if answer.remark:
        facts["note"] = f"{answer.remark}; --proven leaves it out"
    lines = [*_wrap(write_statement(answer)), "", configuration, ""]
    lines += [f"  {name:<20} {text}" for name, text in facts.items()]
    lines += [f"  with {row.purpose}: {_describe_alternative(row, answer)}" for row in answer.front]
    for paragraph in write_obstacles(answer):
        lines += _wrap(paragraph, "  ")
    if len(answer.rivals):
        lines += ["", *_write_rivals(answer)]
    lines += ["", *_wrap(write_account(answer))]
    for note in answer.notes:
        lines += _wrap(note, "  ")
    return lines


def _write_rivals(answer: Answer) -> list[str]:
    """Writes the best candidates that are not the answer, and why each of them is not."""
    raced = next(look for look in reversed(answer.looks) if look.label == answer.label)
    seeds = format_quantity(raced.seeds, "seed")
    lines = _wrap(
        f"In the race the answer has {_write_mean(raced)} ({seeds}). The next ones, best first, "
        "with how much more they lose there, or the budget they exceed:"
    )
    rivals = answer.rivals
    if ((rivals.more < 0.0) & (rivals.over == "")).any():
        lines += _wrap(
            "One with less regret is not the answer while few seeds show it, or while no theorem "
            "bounds its rare losses."
        )
    for row in rivals.itertuples():
        look = Look(row.candidate, row.seeds, row.regret, row.regret_low, row.regret_high)
        lines += [f"  {row.candidate}", f"    {_write_mean(look)}, {describe_rival(row)}"]
    return lines


def describe_rival(row: Any) -> str:
    """Returns how much more a row of a frame loses than the answer, or the budget it exceeds."""
    seeds = format_quantity(row.seeds, "seed")
    if row.over:
        return f"exceeds the {row.over}: up to {getattr(row, f'{row.over}_max'):,.0f} ({seeds})"
    if not math.isfinite(row.more):
        return f"where the answer loses 0 ({seeds})"
    if row.more > 9.0:
        return f"{1.0 + row.more:,.3g} times as much ({seeds})"
    low, high = (f"{100 * end:.3g}" for end in (row.more_low, row.more_high))
    return f"{100 * row.more:+.3g} % [{low}, {high}] ({seeds})"


def _describe_alternative(row: Alternative, answer: Answer) -> str:
    """Returns what another budget would cost, in words."""
    is_same = row.label == answer.label and row.purpose.endswith("links")
    return "the answer itself" if is_same else f"{row.label}, {_write_mean(row)}"


def _write_mean(row: Alternative | Look | Summary) -> str:
    return f"regret {row.mean:,.0f} [{row.low:,.0f}, {row.high:,.0f}]"


def write_account(answer: Answer) -> str:
    """Writes what the figures are over, and what the race took."""
    own = int(answer.frame.seeds[0])
    seeds = format_quantity(answer.fresh_seeds, "fresh seed")
    if not answer.fresh_seeds:
        seeds = f"the {format_quantity(own, 'seed')} of the race, which chose it"
    elapsed, compilers, simulation, _ = (f"{seconds:.3g} s" for seconds in answer.times)
    text = (
        f"The answer's figures are over {seeds}, those of others over their seeds in the race, "
        f"with 95 % intervals of the mean. The race took {format_quantity(answer.seeds, 'trial')}, "
        f"{own:,} of them of the answer. All took {elapsed}; compilers, two or more at once, "
        f"worked for {compilers}, and simulation for {simulation}."
    )
    limit, theorem = answer.tail.limit, answer.tail.source
    if theorem:
        text += f" Losses of a run above {limit:,.0f} are bounded by {theorem} (docs/theory.md)."
    elif answer.rare_trials:
        text += (
            f" No theorem bounds usefully what a run of the answer loses, so the race counts up to "
            f"{limit:,.0f}: about {answer.rare_trials:,} of its trials were for such losses alone."
        )
    if outclassed := answer.list_labels(State.OUTCLASSED):
        number = format_quantity(len(outclassed), "candidate")
        text += f" {number} did not run: what they surely lose is already too much."
    return text


def _write_summary(summary: Summary) -> str:
    mean, low, high = (f"{x:,.0f}" for x in summary[:3])
    return (
        f"{mean} [{low}, {high}], 95 % of runs at most {summary.p95:,.0f}, "
        f"maximum {summary.max:,.0f}"
    )
