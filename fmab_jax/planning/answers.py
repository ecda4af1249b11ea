"""The answer of a plan in words, and as a document for JSON, which is checked when it is read."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable
from pathlib import Path

from fmab_jax.analysis.costs import write_epsilon
from fmab_jax.core.shapes import Record
from fmab_jax.errors import Refusal, format_quantity, refuse
from fmab_jax.files import read_input
from fmab_jax.planning.plan import Plan
from fmab_jax.planning.runs import FIRST_SEEDS, FRESH_SEEDS, Summary
from fmab_jax.run.resources import MAX_SEEDS

FILES = FILE, FIGURE, _ = "plan.json", "race.png", "race.txt"
"""Files of an answer in the folder of a plan: the document, a figure and its caption."""

NO_COMMAND = (
    "No words of a command state a graph or a partition of this configuration. In Python, "
    "fmab_jax.plan with the same candidates returns it as answer.algorithm."
)

_MOST_BYTES = 1 << 26
# Rivals that a text names.
_MOST_NAMED = 8
# Figures can show numbers up to this size.
_LARGEST = 1e100


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


def read_document(path: Path, field: str) -> Record:
    """Returns the document of an answer.

    Args:
        path: The file.
        field: The argument's public name.

    Raises:
        Refusal: If the file cannot be read, or holds anything but the answer of a plan.
    """
    remedy = "run fmab plan --out again"
    try:
        document = json.loads(read_input(path, field, _MOST_BYTES))
    except (ValueError, RecursionError) as error:
        if isinstance(error, Refusal):
            raise
        refuse(field, str(path), "the answer of a plan", f"it is no JSON; {remedy}")
    if isinstance(document, dict):
        # Plans of earlier versions do not say these.
        document = {"delta": {}, "files": [*FILES, "means.csv"]} | document
    if fault := _find_fault(document, _DOCUMENT) or _find_contradiction(document):
        refuse(field, str(path), "the answer of a plan", f"{fault}; {remedy}")
    return dict(document)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_label(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_number(value: object) -> bool:
    is_real = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_real and abs(value) <= _LARGEST  # type: ignore[arg-type]


def _is_bound(value: object) -> bool:
    return value is None or _is_number(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and _is_number(value) and 1 <= value <= MAX_SEEDS


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_setting(value: object) -> bool:
    return isinstance(value, dict) and all(
        _is_text(x) or _is_flag(x) or _is_bound(x) for pair in value.items() for x in pair
    )


def _is_leak(value: object) -> bool:
    return isinstance(value, dict) and all(
        _is_text(view) and _is_bound(x) and (x is None or x >= 0.0) for view, x in value.items()
    )


def _is_delta(value: object) -> bool:
    return _is_leak(value) and all(x is not None and x < 1.0 for x in value.values())  # type: ignore[attr-defined]


# A table of names, a list of one form, or a test of a value.
_Form = dict[str, "_Form"] | list["_Form"] | Callable[[object], bool]
_SUMMARY: _Form = dict.fromkeys(Summary._fields, _is_number)
_LOOK: _Form = {
    "label": _is_label,
    "seeds": _is_count,
    **dict.fromkeys(("mean", "low", "high"), _is_number),
}
# What a page shows.
_DOCUMENT: _Form = {
    **dict.fromkeys(("statement", "command", "plan", "remark"), _is_text),
    **dict.fromkeys(("regret", "links", "numbers", "bits"), _SUMMARY),
    "label": _is_label,
    "final_gap": _is_bound,
    "leak": _is_leak,
    "delta": _is_delta,
    "files": [_is_text],
    "setting": _is_setting,
    "second": {"label": _is_text, "regret": _is_bound},
    "front": [{"label": _is_text, "for": _is_text, "regret": _is_bound}],
    "notes": [_is_text],
    "infeasible": [_is_label],
    "race": [
        {"label": _is_text, "seeds": _is_count, "regret": _is_bound, "survives": _is_flag},
    ],
    "looks": [_LOOK],
}


def _find_fault(value: object, form: _Form, name: str = "") -> str:
    """Returns which part of a value has another form; "" for none."""
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return f"{name or 'it'} is no table"
        start = f"{name}." if name else ""
        faults = (
            _find_fault(value[key], part, start + key) if key in value else f"no {start}{key}"
            for key, part in form.items()
        )
        return next(filter(None, faults), "")
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"{name} is no list"
        faults = (_find_fault(x, form[0], f"{name}[{place}]") for place, x in enumerate(value))
        return next(filter(None, faults), "")
    return "" if form(value) else f"{name} has a value that no plan writes"


def _find_contradiction(document: Record) -> str:
    """Returns what parts of a document say against each other; "" for nothing."""
    looks = document["looks"]
    if any(not row["low"] <= row["mean"] <= row["high"] for row in looks):
        return "looks has an interval without its mean"
    if document["label"] not in {x["label"] for x in looks if x["seeds"] >= FIRST_SEEDS}:
        return "looks has none of the answer"
    return ""


def write_statement(answer: Plan) -> str:
    """Writes how good the answer surely is."""
    share, confidence = f"{100 * answer.within:.3g} %", f"{100 * answer.confidence:.12g} %"
    number = format_quantity(answer.candidates, "candidate")
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
    """Writes the answer in lines; a command of "" is none."""
    leaks = ", ".join(
        f"{view} {write_epsilon(leak, answer.delta[view])}" for view, leak in answer.leak.items()
    )
    lines = [*textwrap.wrap(write_statement(answer), 80), ""]
    lines += [f"  {command}"] if command else textwrap.wrap(NO_COMMAND, 80)
    lines.append("")
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
        rivals = [label for label in answer.survivors if label != answer.label]
        names, rest = ", ".join(rivals[:_MOST_NAMED]), len(rivals) - _MOST_NAMED
        more = f", and {rest} more" if rest > 0 else ""
        lines += textwrap.wrap(f"Not surely worse: {names}{more}", 80)
    if not answer.holds:
        lines.append(
            "The race goes on with a larger --time or --max-seeds; --out keeps its trials."
        )
    lines += [
        "",
        *textwrap.wrap(
            f"Figures are over {FRESH_SEEDS:,} fresh seeds, with 95 % intervals of the mean. The "
            f"race took {format_quantity(answer.seeds, 'trial')}, at most {answer.most_seeds:,} "
            f"of a candidate, and {answer.elapsed_s:.3g} s.",
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
