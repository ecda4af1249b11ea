"""Answers what to run within budgets of leak and links, with a guarantee.

Configurations of all known algorithms race on the same seeds until one of them
is within --within of the best, with --confidence. The answer is a command. The
exit status is 0, or 3 where time, seeds or Ctrl-C ended the race before that.

Examples:
  fmab plan --agents 20 --arms 30 --horizon 2e5 --leak 2 --links 400
  fmab plan --means means.csv --graph net.edgelist --horizon 2e5 --leak 2 --out plan
  fmab plan --agents 50 --arms 100 --horizon 1e5 --leak 1 --candidates study.toml
"""

from __future__ import annotations

import json
import os
import re
import shlex
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from fmab_jax.cli.options import Call, Command, find_default, option, rename_fields
from fmab_jax.errors import Refusal, refuse
from fmab_jax.files import check_path, mark_write, whole_file
from fmab_jax.parameters import UNSET, Choice, Parameter, parameters_of

if TYPE_CHECKING:
    from distributed import Client

    from fmab_jax.algorithms.base import Algorithm
    from fmab_jax.planning.answers import Answer
    from fmab_jax.records.problem import Problem
    from fmab_jax.sweeps.api import Study

_UNDECIDED = 3  # exit status
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_FILES = _FILE, _FIGURE, _ = "plan.json", "race.png", "race.txt"
_NO_COMMAND = (
    "No words of a command state this configuration, such as a graph of one's own. In Python,\n"
    "fmab_jax.plan with the same candidates returns it as answer.algorithm."
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a plan beside its problem and the fields of its question."""

    candidates: str | None = option(None, metavar="STUDY.toml", default_text="all known algorithms")
    """A study file whose configurations race; its problem and its horizon are those of the plan."""
    time: str | None = option(None, metavar="TIME", default_text="no limit")
    """When the race stops at its next look, such as 90s, 10m or 2h, with the answer so far; all
    candidates run first."""
    out: str | None = option(None, metavar="FOLDER", default_text="trials are not kept")
    """Keep all trials: a plan that is killed goes on, a later one with other budgets uses them.
    The answer is written there too, as plan.json and race.png."""
    scheduler: str | None = option(None, metavar="ADDRESS", default_text="none")
    """Compute on the workers of a Dask scheduler: tcp://HOST:PORT, or the .json file it wrote."""
    format: str = option("text", kind=Choice(options=("text", "json")))
    """How to write the answer."""


def command(words: list[str]) -> Command:
    """Builds the command, whose options are the fields of a problem and of a question."""
    from fmab_jax.planning.question import Question

    fields = {name: p for name, p in parameters_of(Question).items() if name != "problem"}
    parameters = {**_list_problem_options(), **fields}
    return Command("fmab plan", Options, str(__doc__), words, parameters)


def _list_problem_options() -> dict[str, Parameter]:
    from fmab_jax.sweeps.fields import list_tables

    return list_tables([])["problem"]


def execute(call: Call[Any]) -> int:
    """Finds and prints the answer; returns the exit status, 3 for one that is not decided."""
    from fmab_jax.planning.planner import plan
    from fmab_jax.planning.question import Question

    options = join_options(call)
    if options.out is not None:
        call.stores.append(options.out)
        _check_files(check_path("out", options.out))
    problem = _build_problem(options)
    names = [name for name in parameters_of(Question) if name != "problem"]
    # Whoever watches signals waits for the answer and its files.
    with rename_fields(store="out"), _connect(options.scheduler) as client, mark_write():
        answer = plan(
            problem,
            candidates=_read_candidates(options, problem),
            time=None if options.time is None else parse_time(options.time),
            store=options.out,
            client=client,
            progress=options.format == "text",
            **{name: getattr(options, name) for name in names},
        )
        _write(call, options, answer)
    return 0 if answer.holds else _UNDECIDED


def join_options(call: Call[Options]) -> Any:
    """Returns the options of a plan, of its problem and of its question as attributes."""
    defaults = {name: find_default(p, {}) for name, p in call.command.parameters.items()}
    defaults |= dict.fromkeys(_list_problem_options(), UNSET)
    return SimpleNamespace(**vars(call.options) | defaults | call.values)


def state_study(options: Any, algorithm: Algorithm | str) -> Study:
    """Returns the study of an algorithm on the problem of the options."""
    from fmab_jax.sweeps.api import Study

    values = {name: getattr(options, name) for name in _list_problem_options()}
    settings = {name: value for name, value in values.items() if value is not UNSET}
    horizon, root_seed = options.horizon, options.root_seed
    return Study(algorithm, horizon=horizon, seeds=1000, root_seed=root_seed, **settings)


def _build_problem(options: Any) -> Problem:
    """Returns the problem of the options."""
    from fmab_jax.sweeps.subjects import RandomProblem, read_problem

    # Any algorithm checks them.
    study = state_study(options, "uniform_play")
    if study.files:
        return read_problem(**study.files)
    values = {name: study.settings[name] for name in parameters_of(RandomProblem)}
    return RandomProblem(**values).problem(options.root_seed)


def _connect(address: str | None) -> AbstractContextManager[Client | None]:
    """Connects to a Dask scheduler, if there is an address."""
    if address is None:
        return nullcontext()
    from fmab_jax.sweeps import cluster

    return cluster.connect(address)


def _write(call: Call[Options], options: Any, answer: Answer) -> None:
    """Writes the answer and its files."""
    from fmab_jax.planning.texts import write_answer

    line = ""
    with suppress(Refusal):
        line = shlex.join(["fmab", "run", *state_study(options, answer.algorithm).words()])
    again = shlex.join(["fmab", *call.words])
    document = answer.build_document() | {"command": line, "plan": again}
    if call.options.format == "text":
        print("\n".join(write_answer(answer, f"  {line}" if line else _NO_COMMAND)), flush=True)
    if call.options.out is not None:
        call.files.extend(_write_files(Path(call.options.out), answer, document))
    if call.options.format == "json":
        print(json.dumps(document, indent=1))
        return
    for path in call.files:
        print(f"wrote {path}")


def _check_files(folder: Path) -> None:
    """Refuses a folder with files of the same names that no plan wrote."""
    others = [name for name in _FILES if os.path.lexists(folder / name)]
    with suppress(OSError, ValueError):
        document = json.loads((folder / _FILE).read_text("utf-8"))
        if isinstance(document, dict) and "statement" in document:
            return
    if others:
        allowed = f"a folder where no {', '.join(others)} of something else lies"
        refuse("out", str(folder), allowed, "name another one, or move the file")


def _write_files(folder: Path, answer: Answer, document: dict[str, object]) -> list[Path]:
    """Writes the document and the figure of the race, in place of those of an earlier plan."""
    from fmab_jax.planning.answers import Standing
    from fmab_jax.plots.rivals import plot_race
    from fmab_jax.plots.saving import list_figure_files, save_figure

    path, picture = folder / _FILE, folder / _FIGURE
    figure = plot_race(answer.looks, answer.label, answer.list_labels(Standing.OVER))
    # The document says that the other files are the plan's, so it comes first.
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1), "utf-8")
    save_figure(figure, picture, overwrite=True)
    return [path, *list_figure_files(figure, picture)]


def _read_candidates(options: Any, problem: Problem) -> list[Algorithm] | None:
    """Reads the configurations of a study, which must be about the problem of the plan."""
    from fmab_jax.records.problem import Problem
    from fmab_jax.sweeps.api import Study

    if options.candidates is None:
        return None
    # A leak is solved for a number of agents; errors of means may differ.
    plain = Problem(agents=problem.agents, arms=problem.arms)
    subjects = [(_describe_problem(x), options.horizon) for x in (problem, plain)]
    configs = [point.config for point in Study.read(options.candidates).points]
    for config in configs:
        if (_describe_problem(config.problem), config.horizon) not in subjects:
            allowed = "a study of the plan's horizon and problem, or agents and arms alone"
            refuse("candidates", options.candidates, allowed, "state the same in both")
    return list(dict.fromkeys(config.algorithm for config in configs))


def _describe_problem(problem: Problem) -> dict[str, object]:
    return problem.describe() | {"kind": "", "means_error": 0}


def parse_time(text: str) -> float:
    """Returns seconds of a text such as "90s", "10m" or "2h".

    Raises:
        ValueError: If it is none.
    """
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if parts is None:
        refuse("time", text, "a number and s, m or h", "such as 10m")
    return float(parts[1]) * _SECONDS[parts[2]]
