"""Parameters with one number for all agents, or one for each of them."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fmab_jax.errors import format_quantity, refuse
from fmab_jax.files import check_path
from fmab_jax.means_files import plain_number, read_cells
from fmab_jax.parameters import Real, parameters_of
from fmab_jax.parts.exchanges.table import AGENTS_MAX

AgentNumbers = tuple[float, ...]
"""A number for each agent."""

# Attributes of a netCDF file hold 64 KB.
_MOST_RUNS = 2000
# Longer labels name the range and a digest.
_LONGEST = 40
_FILE = re.compile(r"(?P<path>.*\.csv)(?::(?P<column>.+))?", re.IGNORECASE | re.DOTALL)
_FORM = "VALUExAGENTS joined by commas, such as 1x40,10x10"


@dataclass(frozen=True)
class PerAgent(Real):
    """A real number in a range, or one for each agent.

    Numbers by agent are a list, a tuple or an array; a text such as ``1x40,10x10``, which is 1 for
    40 agents, then 10 for 10 agents; or a file ``a.csv`` or ``a.csv:column`` with one row for each
    agent, which a column ``agent`` may number, from 0 or from 1. Equal numbers are one number. A
    list is a sweep where a sweep may be; there an item may be such a list, a text, or a number.
    """

    def check_value(self, name: str, value: object, remedy: str) -> float | AgentNumbers | None:  # type: ignore[override]
        """Returns a number if all agents have the same, else a tuple of one for each."""
        if isinstance(value, str) and (values := _parse(name, value)) is not None:
            pass
        elif isinstance(value, (list, tuple)) or isinstance(value, np.ndarray) and value.ndim == 1:
            if len(value) > AGENTS_MAX:
                allowed = f"a number, or at most {AGENTS_MAX:,}"
                refuse(name, f"{len(value):,} numbers", allowed, "give one for each agent")
            values = list(value)
        else:
            return super().check_value(name, value, remedy)
        if not values:
            refuse(name, value, "a number, or one for each agent", "give at least one")
        # Equal neighbours are checked once.
        numbers: list[float] = []
        place = 0
        for item, run in itertools.groupby(values):
            field = f"{name}[{place}]"
            number = None if item is None else super().check_value(field, item, remedy)
            if number is None:
                refuse(field, item, "a number if agents differ", "give a large one")
            length = sum(1 for _ in run)
            numbers += [number] * length
            place += length
        if len(set(numbers)) == 1:
            return numbers[0]
        if (runs := len(_list_runs(numbers))) > _MOST_RUNS:
            allowed = f"at most {_MOST_RUNS:,} runs of equal numbers"
            refuse(name, f"{runs:,} runs", allowed, "round them, and sort the agents by them")
        return tuple(numbers)

    def text(self, value: float | AgentNumbers | None) -> str:
        """Writes a number, or the label."""
        return str(self.label(value)) if isinstance(value, tuple) else super().text(value)

    def label(self, value: float | AgentNumbers | None) -> float | str:
        """Returns a number, or a short text."""
        if not isinstance(value, tuple):
            return super().label(value)
        text = write_numbers(value)
        if len(text) <= _LONGEST:
            return text
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        return f"{min(value):.3g} to {max(value):.3g} ({digest})"

    def plain(self, value: float | AgentNumbers | None) -> float | str | None:  # type: ignore[override]
        """Returns a number, or the whole text, from which the numbers can be read."""
        return write_numbers(value) if isinstance(value, tuple) else super().plain(value)


def write_numbers(values: AgentNumbers) -> str:
    """Writes numbers as VALUExAGENTS, joined by commas."""
    return ",".join(f"{_write(x)}x{count}" for x, count in _list_runs(values))


def check_lengths(algorithm: object, agents: int) -> None:
    """Refuses parameters with numbers for another count of agents.

    Raises:
        ValueError: If a parameter has.
    """
    for name, parameter in parameters_of(type(algorithm)).items():
        value = getattr(algorithm, name)
        if isinstance(parameter.kind, PerAgent) and isinstance(value, tuple):
            if len(value) != agents:
                number = format_quantity(agents, "agent")
                allowed = f"one number, or one for each of {number}, not {len(value):,}"
                refuse(name, parameter.kind.label(value), allowed, "give as many as agents")


def _list_runs(values: Sequence[float]) -> list[tuple[float, int]]:
    return [(x, sum(1 for _ in run)) for x, run in itertools.groupby(values)]


def _write(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _parse(name: str, text: str) -> list[float] | None:
    """Returns the numbers of a text or of the file that it names; None for any other text."""
    if match := _FILE.fullmatch(text):
        return _read_column(name, match["path"], match["column"])
    if not re.search(r"[0-9.]\s*[x,]", text):
        return None
    values: list[float] = []
    for part in text.split(","):
        number_text, times, count = part.strip().partition("x")
        number = plain_number(number_text)
        if number is None or times and not re.fullmatch("[1-9][0-9]{0,7}", count.strip()):
            refuse(name, text, _FORM, f"mend {part.strip()[:20]!r}")
        values += [number] * (int(count) if times else 1)
    return values


def _read_column(name: str, file: str, column: str | None) -> list[float]:
    """Returns a column of a CSV file, in the order of its column ``agent`` if it has one."""
    names, cells, _ = read_cells(check_path(name, file), name)
    place = 0
    if column is not None:
        if names.count(column) != 1:
            remedy = f"choose from {', '.join(names)}" if names else "write names in the first line"
            refuse(name, f"{file}:{column}", "the name of one column", remedy)
        place = names.index(column)
    elif cells.shape[1] != 1:
        refuse(name, file, "a file of one column", f"name a column: {file}:COLUMN")
    values: list[float] = []
    for line, cell in cells.iloc[:, place].items():
        if (value := plain_number(cell)) is None:
            allowed, remedy = "a plain decimal number", f"mend {cell[:20]!r}"
            refuse(name, f"{file}, line {line}", allowed, remedy)
        values.append(value)
    return values
