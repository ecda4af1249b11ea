"""The one line in which a call, a command or a study is refused, and the golden file of them.

tests/refusals.json has, below the mistake that they catch, rows of door, input and line. The door
is "python" (an expression), "command" or "study". To add a case, add its row with an empty line;
``python tests/refusals.py --write`` writes all lines anew, and without the option shows changes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

from fmab_jax.errors import Refusal

GOLDEN = Path(__file__).with_suffix(".json")


def refused(call, *given, **named):
    """Returns the line of the refusal that a call must end in."""
    with pytest.raises(Refusal) as caught:
        call(*given, **named)
    line = str(caught.value)
    assert "\n" not in line
    return line


def refuses(words, call, *given, **named):
    """Asserts that a call is refused in a line in which a pattern is found."""
    line = refused(call, *given, **named)
    assert re.search(words, line), line


class Case(NamedTuple):
    """An input that must be refused, the mistake of letting it through, and its golden line."""

    mistake: str
    door: str
    input: str
    line: str


def cases() -> list[Case]:
    """Returns all cases of the golden file."""
    golden = json.loads(GOLDEN.read_text("utf-8"))
    return [Case(mistake, *row) for mistake, rows in golden.items() for row in rows]


def write(cases: list[Case]) -> str:
    """Returns a golden file: a case a line, below its mistake."""
    parts = []
    for mistake in dict.fromkeys(case.mistake for case in cases):
        rows = [json.dumps(case[1:]) for case in cases if case.mistake == mistake]
        parts.append(f"{json.dumps(mistake)}: [\n" + ",\n".join(rows) + "\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def line_of(case: Case) -> str:
    """Returns the line in which a case is refused, in an empty folder.

    Names of algorithms are left out, so that a new one is no change of wording. AssertionError if
    it is not refused in one line, or writes a file; AttributeError if a program would be compiled.
    """
    from fmab_jax.algorithms.base import ALGORITHMS
    from fmab_jax.parts.outputs import OUTPUTS
    from fmab_jax.run import compilation

    inputs: set[str] = set()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        mock.patch.object(compilation, "compile_program", mock.Mock(side_effect=AssertionError)),
        mock.patch.object(OUTPUTS, "loaded", {}),
    ):
        if case.door == "python":
            line = refused(eval, case.input, _names(inputs))
        else:
            words = shlex.split(case.input)[1:]
            if case.door == "study":
                words = ["sweep", _file(inputs, "study.toml", case.input)]
            line = _command_line(words)
        assert {path.name for path in Path().iterdir()} == inputs
    return line.replace(", ".join(sorted(ALGORITHMS.by_name())), "<algorithms>")


def _names(inputs: set[str]) -> dict[str, Any]:
    """Returns the names of an expression; `file` writes a file and returns its name."""
    from decimal import Decimal
    from fractions import Fraction

    import networkx as nx
    import numpy as np
    import xarray as xr

    import fmab_jax as fmab
    from experiments.common import DEMAB
    from fmab_jax.algorithms.base import load_plugin
    from fmab_jax.parts import exchanges

    return {
        **{"fmab": fmab, "exchanges": exchanges, "np": np, "nx": nx, "xr": xr},
        "load_plugin": load_plugin,
        **{"Decimal": Decimal, "Fraction": Fraction, "inf": float("inf"), "nan": float("nan")},
        "__name__": __name__,  # of the module of a class that an expression defines
        "CDP": fmab.cdp_mab(1.0),
        "DEMAB": DEMAB,
        "PROBLEM": fmab.Problem([0.9, 0.5, 0.5, 0.1], agents=3),
        "STUDY": {"horizon": 50, "seeds": 2, "times": 5, "agents": 2, "arms": 2, "epsilon": 1},
        "VALUES": xr.DataArray(np.zeros((5, 3)), dims=("seed", "time")),
        "file": lambda name, content: _file(inputs, name, content),
    }


def _file(inputs: set[str], name: str, content: str | bytes) -> str:
    """Writes a file and returns its name."""
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    inputs.add(name)
    return name


def _command_line(words: list[str]) -> str:
    """Returns the one line that a command ends in, with status 2 and nothing on its output."""
    from fmab_jax.cli.main import main

    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        status = main(words)
    errors = err.getvalue()
    assert (status, out.getvalue(), errors.count("\n")) == (2, "", 1), errors
    assert errors.startswith("fmab: ") and errors.endswith("\n")
    return errors[6:-1]


def main() -> None:
    """Shows the lines that differ from the golden file; with --write, writes them into it."""
    rows = []
    for case in cases():
        try:
            line = line_of(case)
        except (Exception, pytest.fail.Exception) as error:
            line = f"{type(error).__name__}: {error}"
            print(f"not refused: {case.input}\n! {line}\n")
        if line != case.line:
            print(case.door, case.input, f"- {case.line}", f"+ {line}", "", sep="\n")
        rows.append(case._replace(line=line))
    if sys.argv[1:] == ["--write"]:
        GOLDEN.write_text(write(rows), "utf-8")


if __name__ == "__main__":
    sys.path.insert(0, os.fspath(Path(__file__).parents[1]))
    main()
