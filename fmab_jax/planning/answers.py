"""The answer of a plan: a configuration, a frame of all candidates, and how sure it is."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.accountant import Leak
from fmab_jax.errors import Refusal, refuse
from fmab_jax.files import read_input
from fmab_jax.planning.bounds import Tail
from fmab_jax.planning.candidates import write_call
from fmab_jax.planning.question import FIRST_SEEDS, Question
from fmab_jax.planning.runs import Look, Summary
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.api import Study

if TYPE_CHECKING:
    import pandas as pd

FILES = FILE, FIGURE, _ = "plan.json", "race.png", "race.txt"
"""Files of an answer in the folder of a plan: the document, a figure and its caption."""

_MOST_BYTES = 1 << 26
# Figures can show numbers up to this size.
_LARGEST = 1e100
# Rivals that a text or a page lists, and those of them that exceed a budget.
_MOST_RIVALS, _MOST_OVER = 8, 3


class State(enum.StrEnum):
    """What the race says of a candidate at its end."""

    ANSWER = "answer"
    SURVIVES = "not surely worse"
    WORSE = "surely worse"
    OVER = "exceeds a budget"
    UNSHOWN = "may exceed a budget"
    WAITING = "has not run, may be better"
    OUTCLASSED = "need not run, surely worse"


class Alternative(NamedTuple):
    """What another budget would cost.

    Attributes:
        label: The configuration.
        purpose: What it is for, such as "at most 150 links".
        mean: Mean regret.
        low: Lower end of the 95 % interval of the mean.
        high: Upper end.
    """

    label: str
    purpose: str
    mean: float
    low: float
    high: float


class Times(NamedTuple):
    """Seconds of a plan.

    Attributes:
        elapsed_s: Of all.
        compile_s: Of compilers, in all threads together.
        run_s: Of simulation.
        missing_s: That the goal would still need, an estimate; 0 if it holds.
    """

    elapsed_s: float
    compile_s: float
    run_s: float
    missing_s: float


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of `plan`; ``print(answer)`` shows it in words.

    Attributes:
        question: What was asked.
        algorithm: The configuration to run.
        frame: A row for each candidate, the answer first, then those that ran, by regret. Columns:
            ``candidate``, its call, with noise and network only where another one has the same;
            ``state``, see `State`, about those that ran a statement of its own at the same
            confidence; ``undecided``, whether it ran and may be better by more than ``goal``;
            ``seeds`` in the race; ``regret``, its mean, with the 95 % interval ``regret_low``,
            ``regret_high``; ``more``, how much more it loses than the answer on the same seeds, as
            a part of the answer's mean, with ``more_low`` and ``more_high``; the most of a run,
            ``links_max``, ``numbers_max``, ``bits_max``; ``over``, the budget that it exceeds.
        holds: Whether its mean regret is within ``within`` of the best candidate's, as asked.
        within: The x that is shown; larger than asked where seeds or time were spent before. It is
            about the candidates that ran, or that need not run.
        end: Why the race ended: "decided", "time", "seeds" or "stopped" (Ctrl-C).
        keeps: Whether the answer is shown to keep the budgets.
        rare: Bound of what the answer's mean regret may have beyond its runs, at this confidence.
        tail: What bounds its larger losses: a theorem of docs/theory.md, or the largest regret.
        rare_trials: Trials of the answer beyond those of all others, where no theorem bounds its
            losses; they show that large losses are rare.
        missing_trials: More trials that the goal would need, an estimate; 0 if it holds.
        fresh_seeds: Seeds of the figures that follow, which the race did not use; 0 if they are
            those of the race.
        regret: At the horizon.
        links: Links that the communication cost counts.
        numbers: Numbers on all links.
        bits: Bits on all links.
        final_gap: Gap of what agents play at the horizon.
        leaks: What one reward leaks, by view; views that nobody has are left out.
        remark: What no theorem covers; "" for nothing.
        front: The best within half of the links, and the answer at a tenth of the leak.
        notes: What the budgets leave out, and what was not tried.
        times: What took how long.
        looks: What each look of the race saw, in its order.
    """

    question: Question
    algorithm: Algorithm
    frame: pd.DataFrame
    holds: bool
    within: float
    end: str
    keeps: bool
    rare: float
    tail: Tail
    rare_trials: int
    missing_trials: int
    fresh_seeds: int
    regret: Summary
    links: Summary
    numbers: Summary
    bits: Summary
    final_gap: float
    leaks: dict[str, Leak]
    remark: str
    front: tuple[Alternative, ...]
    notes: tuple[str, ...]
    times: Times
    looks: tuple[Look, ...]

    @property
    def label(self) -> str:
        """The call of the answer, as in the frame."""
        return str(self.frame.candidate.iloc[0])

    @property
    def study(self) -> Study:
        """The study that runs the answer, on 1,000 seeds: run it, save it, or read its words."""
        problem, horizon = self.question.problem, self.question.horizon
        root_seed = self.question.root_seed
        return Study(self.algorithm, problem, horizon=horizon, seeds=1000, root_seed=root_seed)

    @property
    def candidates(self) -> int:
        """Number of candidates."""
        return len(self.frame)

    @property
    def seeds(self) -> int:
        """Trials of the race, of all candidates together."""
        return int(self.frame.seeds.sum())

    @property
    def leak(self) -> dict[str, float]:
        """Epsilon of one reward by view; infinity for no bound, 0 where nothing is sent."""
        return {view: leak.epsilon for view, leak in self.leaks.items()}

    @property
    def rivals(self) -> pd.DataFrame:
        """Rows of the best candidates that ran and are not the answer, best first."""
        return list_rivals(self.frame)

    def list_labels(self, *states: State) -> list[str]:
        """Returns the labels of candidates in one of these states."""
        return list(self.frame.candidate[self.frame.state.isin(states)])

    def __str__(self) -> str:
        from fmab_jax.planning.texts import write_answer

        return "\n".join(write_answer(self, f"  {write_call(self.algorithm, is_whole=True)}"))

    def build_document(self) -> Record:
        """Returns the answer as JSON values: null for no bound, and for nothing to measure."""
        from fmab_jax.planning.texts import write_statement

        document = {
            "statement": write_statement(self),
            "label": self.label,
            **vars(self),
            **self.times._asdict(),
            "question": self.question.describe(),
            "leaks": {view: leak[:2] for view, leak in self.leaks.items()},
            "seeds": self.seeds,
            "candidates": self.frame.to_dict("records"),
        }
        absent = "algorithm", "frame", "times"
        return {name: _make_plain(x) for name, x in document.items() if name not in absent}


def list_rivals(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the best rows of a frame that ran and are not the answer; see `Answer.rivals`."""
    ran = frame.iloc[1:][frame.seeds.iloc[1:] > 0].sort_values("regret", kind="stable")
    # The same runs under another name.
    ran = ran[(ran.more != 0.0) | (ran.more_low != ran.more_high)]
    dropped = ran.index[ran.over != ""][_MOST_OVER:]
    return ran.drop(dropped)[:_MOST_RIVALS]


def _make_plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(name): _make_plain(x) for name, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [_make_plain(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_document(path: Path, field: str) -> Record:
    """Returns the document that ``fmab plan`` wrote of an answer.

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
    if fault := _find_fault(document, _DOCUMENT) or _find_contradiction(document):
        refuse(field, str(path), "the answer of a plan", f"{fault}; {remedy}")
    return dict(document)


def _is_number(value: object) -> bool:
    is_real = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_real and abs(value) <= _LARGEST  # type: ignore[arg-type]


def _is_bound(value: object) -> bool:
    return value is None or _is_number(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


# A table of names, where "" stands for any other, a list of one form, or a test of a value.
_Form = dict[str, "_Form"] | list["_Form"] | Callable[[object], bool]
_SUMMARY: _Form = dict.fromkeys(Summary._fields, _is_number)
# What a page shows.
_DOCUMENT: _Form = {
    **dict.fromkeys(("statement", "command", "plan", "remark", "label"), _is_text),
    **dict.fromkeys(("regret", "links", "numbers", "bits"), _SUMMARY),
    "final_gap": _is_bound,
    "question": {"": _is_text},
    "leaks": {"": [_is_bound]},
    "candidates": [
        {
            **dict.fromkeys(("candidate", "state", "over"), _is_text),
            "seeds": _is_number,
            **dict.fromkeys(("regret", "more", "more_low", "more_high"), _is_bound),
        }
    ],
    "front": [{**dict.fromkeys(("label", "purpose"), _is_text), "mean": _is_number}],
    "notes": [_is_text],
    "looks": [{"label": _is_text, **dict.fromkeys(Look._fields[1:], _is_number)}],
}


def _find_fault(value: object, form: _Form, name: str = "") -> str:
    """Returns which part of a value has another form; "" for none."""
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return f"{name or 'it'} is no table"
        form = dict.fromkeys(value, form[""]) if "" in form else form
        if absent := [key for key in form if key not in value]:
            return f"no {absent[0]}"
        faults = (_find_fault(value[key], part, key) for key, part in form.items())
    elif isinstance(form, list):
        if not isinstance(value, list):
            return f"{name} is no list"
        faults = (_find_fault(x, form[0], f"{name}[{place}]") for place, x in enumerate(value))
    else:
        return "" if form(value) else f"{name} has a value that no plan writes"
    return next(filter(None, faults), "")


def _find_contradiction(document: Record) -> str:
    """Returns what parts of a document say against each other; "" for nothing."""
    looks = document["looks"]
    if any(row["seeds"] < 1 or not row["low"] <= row["mean"] <= row["high"] for row in looks):
        return "looks has an interval without its mean"
    if document["label"] not in {x["label"] for x in looks if x["seeds"] >= FIRST_SEEDS}:
        return "looks has none of the answer"
    return ""
