"""The answer of a plan in words, and as a document for JSON."""

from __future__ import annotations

import math
import textwrap

from fmab_jax.analysis.costs import write_epsilon
from fmab_jax.planning.plan import Plan
from fmab_jax.planning.runs import FRESH_SEEDS, Summary


def build_document(answer: Plan, command: str) -> dict[str, object]:
    """Builds the answer for JSON."""

    def build(summary: Summary) -> dict[str, float]:
        return summary._asdict()

    def read(value: float) -> float | None:
        """Returns a number; None for no bound, and for nothing to measure."""
        return value if math.isfinite(value) else None

    return {
        "statement": write_statement(answer),
        "command": command,
        "label": answer.label,
        "holds": answer.holds,
        "within": read(answer.within),
        "confidence": answer.confidence,
        "regret": build(answer.regret),
        "links": build(answer.links),
        "numbers": build(answer.numbers),
        "bits": build(answer.bits),
        "leak": {view: read(leak) for view, leak in answer.leak.items()},
        "delta": answer.delta,
        "final_gap": read(answer.final_gap),
        "remark": answer.remark,
        "candidates": answer.candidates,
        "survivors": list(answer.survivors),
        "infeasible": list(answer.infeasible),
        "seeds": answer.seeds,
        "most_seeds": answer.most_seeds,
        "missing_seeds": answer.missing_seeds,
        "second": {"label": answer.second[0], "regret": read(answer.second[1])},
        "front": [
            {"label": label, "for": purpose, "regret": regret}
            for label, purpose, regret in answer.front
        ],
        "notes": list(answer.notes),
        "race": [
            {"label": label, "seeds": seeds, "regret": regret, "survives": survives}
            for label, seeds, regret, survives in answer.race
        ],
        "looks": [look._asdict() for look in answer.looks],
        "elapsed_s": answer.elapsed_s,
    }


def write_statement(answer: Plan) -> str:
    """Writes how good the answer surely is."""
    share, confidence = f"{100 * answer.within:.3g} %", f"{100 * answer.confidence:.12g} %"
    number = f"{answer.candidates} candidate{'s' * (answer.candidates != 1)}"
    if answer.holds:
        return f"Within {share} of the best of {number}, with {confidence} confidence:"
    if answer.within > 10.0:
        share = f"a factor of {1.0 + answer.within:,.0f}"
    bound = f"surely within {share} of the best" if math.isfinite(answer.within) else "no bound yet"
    return (
        f"Not decided. The leader of {number} so far, {bound} (confidence "
        f"{confidence}); it needs {answer.missing_seeds:,} more seeds of its own or so:"
    )


def write_answer(answer: Plan, command: str) -> list[str]:
    """Writes the answer in lines."""
    leaks = ", ".join(
        f"{view} {write_epsilon(leak, answer.delta[view])}" for view, leak in answer.leak.items()
    )
    lines = [*textwrap.wrap(write_statement(answer), 80), "", f"  {command}", ""]
    lines += [
        _write_summary("regret at T", answer.regret),
        _write_summary("links", answer.links),
        _write_summary("numbers", answer.numbers),
        _write_summary("bits", answer.bits),
        f"  {'leak of one reward':<20} {leaks}",
    ]
    if math.isfinite(answer.final_gap):
        lines.append(f"  {'gap played at T':<20} {answer.final_gap:.3g}, mean")
    if answer.remark:
        lines.append(f"  {'note':<20} {answer.remark}; --proven leaves it out")
    if answer.second[0]:
        raced = next(regret for label, _, regret, _ in answer.race if label == answer.label)
        second = f"{answer.second[0]}: {answer.second[1]:,.0f} in the race, the answer {raced:,.0f}"
        lines.append(f"  {'second':<20} {second}")
    lines += [
        f"  {f'with {purpose}':<20} {label}: {regret:,.0f}"
        for label, purpose, regret in answer.front
    ]
    if not answer.holds and len(answer.survivors) > 1:
        names = ", ".join(answer.survivors[:8])
        lines += textwrap.wrap(f"Not surely worse: {names}", 80)
    if not answer.holds:
        lines.append(
            "The race goes on with a larger --time or --max-seeds; --out keeps its trials."
        )
    lines += [
        "",
        *textwrap.wrap(
            f"Figures are over {FRESH_SEEDS:,} fresh seeds, with 95 % intervals of the mean. The "
            f"race took {answer.seeds:,} trials, at most {answer.most_seeds:,} of a candidate, and "
            f"{answer.elapsed_s:.3g} s.",
            80,
        ),
    ]
    for note in answer.notes:
        lines += textwrap.wrap(note, 80, subsequent_indent="  ")
    return lines


def _write_summary(name: str, summary: Summary) -> str:
    mean, low, high = (f"{x:,.0f}" for x in summary[:3])
    tail = f"95 % of runs at most {summary.p95:,.0f}, maximum {summary.max:,.0f}"
    return f"  {name:<20} {mean} [{low}, {high}], {tail}"
