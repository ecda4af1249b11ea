"""The answer of a plan in words."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from fmab_jax.analysis.costs import write_epsilon
from fmab_jax.errors import format_quantity
from fmab_jax.planning.answers import Answer
from fmab_jax.planning.race import Verdict
from fmab_jax.planning.runs import Summary

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


def write_statement(answer: Answer) -> str:
    """Writes how good the answer surely is."""
    confidence = f"{100 * answer.question.confidence:.12g} % confidence"
    number = format_quantity(answer.candidates, "candidate")
    if answer.holds and answer.candidates == 1:
        return "The only candidate, and it keeps the budgets:"
    if answer.holds:
        return f"Within {100 * answer.within:,.4g} % of the best of {number}, with {confidence}:"
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
    lines, goal = [], answer.question.within
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
    trials = f"{float(f'{answer.missing_trials:.2g}'):,.0f}"
    lines.append(
        f"To decide: about {trials} more trials. {_ENDS[answer.end][1]}; with --out, a plan goes "
        "on from the trials of the one before."
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
    for paragraph in write_obstacles(answer):
        lines += _wrap(paragraph, "  ")
    if len(answer.rivals):
        lines += ["", *_wrap("The next candidates, and how much more they lose in the race:")]
        lines += _write_rivals(answer)
    lines += ["", *_wrap(write_account(answer))]
    for note in answer.notes:
        lines += _wrap(note, "  ")
    return lines


def _write_rivals(answer: Answer) -> list[str]:
    """Writes the best candidates that are not the answer as a table."""
    rivals = answer.rivals
    ends = zip(rivals.more, rivals.more_low, rivals.more_high, strict=True)
    more = [
        f"{100 * x:+,.3g} % [{100 * low:,.3g}, {100 * high:,.3g}]" if math.isfinite(x) else ""
        for x, low, high in ends
    ]
    table = rivals[["candidate", "regret", "seeds", "links_max", "state"]].assign(more=more)
    return table.to_string(index=False, float_format="{:,.0f}".format).splitlines()


def write_account(answer: Answer) -> str:
    """Writes what the figures are over, and what the race took."""
    raced = int(answer.frame.seeds[0])
    seeds = format_quantity(answer.fresh_seeds, "fresh seed")
    if not answer.fresh_seeds:
        seeds = f"the {format_quantity(raced, 'seed')} of the race, which chose it"
    text = (
        f"The answer's figures are over {seeds}, those of others over their seeds in the race, "
        f"with 95 % intervals of the mean. The race took {format_quantity(answer.seeds, 'trial')}, "
        f"{raced:,} of them of the answer, and {answer.elapsed_s:.3g} s. "
    )
    limit, theorem = f"{answer.tail.limit:,.0f}", answer.tail.source
    if theorem:
        return text + f"Losses of a run above {limit} are bounded by {theorem} (docs/theory.md)."
    return text + f"No theorem bounds what a run loses: the race counts up to {limit}."


def write_look(verdict: Verdict, best: tuple[str, Summary]) -> str:
    """Writes in a line what a look of the race saw; ``best`` is the leader and its regret."""
    label, regret = best
    words = [f"so far {label}: regret {regret.mean:,.0f} [{regret.low:,.0f}, {regret.high:,.0f}]"]
    if verdict.holds:
        return f"{words[0]}; decided"
    if math.isfinite(verdict.within):
        words.append(f"within {write_within(verdict.within)} of the best")
    if verdict.near:
        words.append(f"{format_quantity(len(verdict.near), 'rival')} in the way")
    return "; ".join([*words, f"about {verdict.missing:,} more trials"])


def _write_summary(summary: Summary) -> str:
    mean, low, high = (f"{x:,.0f}" for x in summary[:3])
    return (
        f"{mean} [{low}, {high}], 95 % of runs at most {summary.p95:,.0f}, "
        f"maximum {summary.max:,.0f}"
    )
