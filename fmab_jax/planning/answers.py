"""The answer of a plan in words, and as a document for JSON, which is checked when it is read."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from fmab_jax.analysis.costs import write_epsilon
from fmab_jax.errors import Refusal, format_quantity, refuse
from fmab_jax.files import read_input
from fmab_jax.planning.plan import Alternative, Plan, Rival, write_seconds, write_within
from fmab_jax.planning.runs import FIRST_SEEDS, Look, Summary
from fmab_jax.run.resources import MAX_SEEDS
from fmab_jax.sampling.shapes import Record

FILES = FILE, FIGURE, _ = "plan.json", "race.png", "race.txt"
"""Files of an answer in the folder of a plan: the document, a figure and its caption."""

NO_COMMAND = (
    "No words of a command state a graph or a partition of this configuration. In Python, "
    "fmab_jax.plan with the same candidates returns it as answer.algorithm."
)

_ENDS = {
    "time": "the time is up",
    "seeds": "no candidate may have more seeds",
    "stopped": "it was stopped",
}
_REMEDIES = {
    "time": "Give a larger --time",
    "seeds": "Give a larger --max-seeds",
    "stopped": "Start it again",
}
_MOST_BYTES = 1 << 26
# Rivals that a text names.
_MOST_NAMED = 4
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
        "end": answer.end,
        "keeps": answer.keeps,
        "within": read(answer.within),
        "goal": answer.goal,
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
        **{
            name: list(getattr(answer, name))
            for name in ("survivors", "undecided", "waiting", "outclassed", "infeasible")
        },
        "seeds": answer.seeds,
        "most_seeds": answer.most_seeds,
        "missing_trials": answer.missing_trials,
        "fresh_seeds": answer.fresh_seeds,
        "rare": list(answer.rare),
        "rare_trials": answer.rare_trials,
        "limit": {"regret": answer.limit[0], "theorem": answer.limit[1]},
        "rivals": [
            {name: read(x) if isinstance(x, float) else x for name, x in rival._asdict().items()}
            for rival in answer.rivals
        ],
        "front": [
            {"label": row.label, "for": row.purpose, "regret": row.mean} for row in answer.front
        ],
        "notes": list(answer.notes),
        "race": [
            {"label": label, "seeds": seeds, "regret": regret, "survives": survives}
            for label, seeds, regret, survives in answer.race
        ],
        "looks": [look._asdict() for look in answer.looks],
        **answer.times._asdict(),
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
        document = {"delta": {}, "files": [*FILES, "means.csv"], "rivals": []} | document
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
    "rivals": [
        {
            **dict.fromkeys(("label", "budget"), _is_label),
            "seeds": _is_count,
            **dict.fromkeys(("mean", "low", "high"), _is_number),
            **dict.fromkeys(("more", "more_low", "more_high", "most"), _is_bound),
        }
    ],
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
    confidence = f"{100 * answer.confidence:.12g} % confidence"
    number = format_quantity(answer.candidates, "candidate")
    if answer.holds and answer.candidates == 1:
        return "The only candidate, and it keeps the budgets:"
    if answer.holds:
        return f"Within {100 * answer.within:,.4g} % of the best of {number}, with {confidence}:"
    if answer.waiting:
        judged = answer.candidates - len(answer.waiting)
        number = f"the first {format_quantity(judged, 'candidate')}"
    bound = f"no bound yet of the leader of {number}"
    if not answer.keeps:
        bound = f"the leader of {number}, of which nothing shows that it keeps the budgets"
    elif math.isfinite(answer.within):
        share = write_within(answer.within)
        bound = f"the leader is within {share} of the best of {number} ({confidence})"
    return f"Not decided, since {_ENDS[answer.end]}: so far {bound}:"


def write_obstacles(answer: Plan) -> list[str]:
    """Writes why an answer is not decided, and what it would take, a reason a line."""
    if answer.holds:
        return []
    lines = []
    if answer.waiting:
        number = format_quantity(len(answer.waiting), "candidate")
        verb = "has" if len(answer.waiting) == 1 else "have"
        lines.append(f"Why: {number} {verb} not run: {_list_names(answer.waiting)}.")
    if answer.undecided:
        number = format_quantity(len(answer.undecided), "rival")
        share = f"{100 * answer.goal:.3g} %"
        names = _list_names(answer.undecided)
        lines.append(f"Why: {number} may be better by more than {share}: {names}.")
    rare, excess = answer.rare
    if rare + excess > 0.5 * answer.goal * answer.regret.mean:
        seeds = format_quantity(_find_seeds(answer), "seed")
        more = f", and {answer.limit[1]} allows {excess:,.0f} more" if excess else ""
        lines.append(
            f"Why: losses that are too rare to be seen in {seeds} may add {rare:,.0f} to the "
            f"leader's mean regret{more}."
        )
    if not answer.keeps:
        lines.append("Why: too few seeds show that the leader keeps the budgets.")
    parts = []
    if answer.waiting:
        parts.append(f"the runs of {format_quantity(len(answer.waiting), 'candidate')}")
    if answer.missing_trials:
        parts.append(f"{float(f'{answer.missing_trials:.2g}'):,.0f} trials of those that ran")
    lines.append(
        f"To decide: {' and '.join(parts) or 'more seeds'}, about "
        f"{write_seconds(answer.times.missing_s)}. {_REMEDIES[answer.end]}; with --out, a plan "
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


def _find_seeds(answer: Plan) -> int:
    """Returns the seeds of the answer in the race."""
    return next(seeds for label, seeds, *_ in answer.race if label == answer.label)


def write_answer(answer: Plan, command: str) -> list[str]:
    """Writes the answer in lines; a command of "" is none."""
    leaks = ", ".join(
        f"{view} {write_epsilon(leak, answer.delta[view])}" for view, leak in answer.leak.items()
    )
    lines = [*_wrap(write_statement(answer)), ""]
    lines += [f"  {command}"] if command else _wrap(NO_COMMAND)
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
    lines += [f"  with {row.purpose}: {_describe_alternative(row, answer)}" for row in answer.front]
    for paragraph in write_obstacles(answer):
        lines += _wrap(paragraph, "  ")
    if answer.rivals:
        lines += ["", *write_rivals(answer)]
    lines += ["", *_wrap(write_account(answer))]
    for note in answer.notes:
        lines += _wrap(note, "  ")
    return lines


def write_rivals(answer: Plan) -> list[str]:
    """Writes the best candidates that are not the answer, and why each of them is not."""
    raced = next(look for look in reversed(answer.looks) if look.label == answer.label)
    seeds = format_quantity(raced.seeds, "seed")
    text = (
        f"In the race the answer has {_write_mean(raced)} ({seeds}). The next ones, best first, "
        "with how much more they lose there, or the budget they exceed:"
    )
    lines = _wrap(text)
    if any(rival.more < 0.0 and not rival.budget for rival in answer.rivals):
        text = (
            "One with less regret is not the answer while few seeds show it, or while no theorem "
        )
        lines += _wrap(text + "bounds its rare losses.")
    for rival in answer.rivals:
        lines += [f"  {rival.label}", f"    {_write_mean(rival)}, {describe_rival(rival)}"]
    return lines


def describe_rival(rival: Rival) -> str:
    """Returns how much more a rival loses than the answer, or the budget that it exceeds."""
    seeds = format_quantity(rival.seeds, "seed")
    if rival.budget:
        return f"exceeds the {rival.budget}: up to {rival.most:,.0f} ({seeds})"
    if not math.isfinite(rival.more):
        return f"where the answer loses 0 ({seeds})"
    if rival.more > 9.0:
        return f"{1.0 + rival.more:,.3g} times as much ({seeds})"
    low, high = (f"{100 * end:.3g}" for end in (rival.more_low, rival.more_high))
    return f"{100 * rival.more:+.3g} % [{low}, {high}] ({seeds})"


def _describe_alternative(row: Alternative, answer: Plan) -> str:
    """Returns what another budget would cost, in words."""
    is_same = row.label == answer.label and row.purpose.endswith("links")
    return "the answer itself" if is_same else f"{row.label}, {_write_mean(row)}"


def _write_mean(row: Rival | Alternative | Look) -> str:
    return f"regret {row.mean:,.0f} [{row.low:,.0f}, {row.high:,.0f}]"


def write_account(answer: Plan) -> str:
    """Writes what the figures are over, and what the race took."""
    seeds = format_quantity(answer.fresh_seeds, "fresh seed")
    if not answer.fresh_seeds:
        seeds = f"the {format_quantity(_find_seeds(answer), 'seed')} of the race, which chose it"
    trials, own = format_quantity(answer.seeds, "trial"), _find_seeds(answer)
    elapsed, compilers, simulation, _ = (f"{seconds:.3g} s" for seconds in answer.times)
    text = (
        f"The answer's figures are over {seeds}, those of others over their seeds in the race, "
        f"with 95 % intervals of the mean. The race took {trials}, {own:,} of them of the answer. "
        f"All took {elapsed}; compilers, two or more at once, worked for {compilers}, and "
        f"simulation for {simulation}."
    )
    limit, theorem = answer.limit
    if theorem:
        text += f" Losses of a run above {limit:,.0f} are bounded by {theorem} (docs/theory.md)."
    elif answer.rare_trials:
        text += (
            f" No theorem bounds usefully what a run of the answer loses, so the race counts up to "
            f"{limit:,.0f}: about {answer.rare_trials:,} of its trials were for such losses alone."
        )
    if answer.outclassed:
        number = format_quantity(len(answer.outclassed), "candidate")
        text += f" {number} did not run: what they surely lose is already too much."
    return text


def _write_summary(name: str, summary: Summary) -> str:
    mean, low, high = (f"{x:,.0f}" for x in summary[:3])
    tail = f"95 % of runs at most {summary.p95:,.0f}, maximum {summary.max:,.0f}"
    return f"  {name:<20} {mean} [{low}, {high}], {tail}"
