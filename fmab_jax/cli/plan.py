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

from fmab_jax.cli.options import (
    Call,
    Command,
    find_default,
    format_flag,
    option,
    rename_fields,
    value_of,
)
from fmab_jax.errors import Refusal, refuse
from fmab_jax.files import check_path, mark_write, whole_file
from fmab_jax.parameters import UNSET, Choice, Parameter, Real, parameters_of

if TYPE_CHECKING:
    from distributed import Client

    from fmab_jax.algorithms.base import Algorithm
    from fmab_jax.planning.answers import Answer
    from fmab_jax.records.problem import Problem

_UNDECIDED = 3  # exit status
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_NO_COMMAND = (
    "No words of a command state a graph of this configuration. In Python,\n"
    "fmab_jax.plan with the same candidates returns it as answer.algorithm."
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a plan beside its problem and the fields of its question."""

    means: str | None = option(None, metavar="FILE", default_text="each seed draws its own")
    """Fixed means, .csv or .npz; one row is shared by as many agents as --agents says."""
    means_error: float | None = option(None, kind=Real(low=0.0), default_text="the means are exact")
    """Standard error of the means in FILE: each seed draws normal means around them."""
    candidates: str | None = option(None, metavar="STUDY.toml", default_text="all known algorithms")
    """A study file whose configurations race. Its horizon is that of the plan, and so is its
    problem, if it states more than agents and arms."""
    time: str | None = option(None, metavar="TIME", default_text="no limit")
    """When the race stops at its next look, such as 90s, 10m or 2h, with the answer so far."""
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
    from fmab_jax.sweeps.subjects import RandomProblem

    fields = {name: p for name, p in parameters_of(Question).items() if name != "problem"}
    parameters = {**parameters_of(RandomProblem), **fields}
    return Command("fmab plan", Options, str(__doc__), words, parameters)


def execute(call: Call[Any]) -> int:
    """Finds and prints the answer; returns the exit status, 3 for one that is not decided."""
    from fmab_jax.planning.plan import plan
    from fmab_jax.planning.question import Question

    options = _join_options(call)
    if options.out is not None:
        check_path("out", options.out)
        call.stores.append(options.out)
        _check_files(Path(options.out))
    problem = _read_problem(options)
    names = [name for name in parameters_of(Question) if name != "problem"]
    question = {name: getattr(options, name) for name in names}
    with rename_fields(store="out"), _connect(options.scheduler) as client:
        answer = plan(
            problem,
            candidates=_read_candidates(options, problem),
            time=None if options.time is None else parse_time(options.time),
            store=options.out,
            client=client,
            progress=options.format == "text",
            **question,
        )
    # Whoever watches signals waits for the files.
    with mark_write():
        _write(call, answer)
    return 0 if answer.holds else _UNDECIDED


def _join_options(call: Call[Options]) -> Any:
    """Returns the options of a plan, of its problem and of its question as attributes."""
    from fmab_jax.sweeps.subjects import RandomProblem

    defaults = {name: find_default(p, {}) for name, p in call.command.parameters.items()}
    defaults |= dict.fromkeys(parameters_of(RandomProblem), UNSET)
    return SimpleNamespace(**vars(call.options) | defaults | call.values)


def _connect(address: str | None) -> AbstractContextManager[Client | None]:
    """Connects to a Dask scheduler, if there is an address."""
    if address is None:
        return nullcontext()
    from fmab_jax.sweeps import cluster

    return cluster.connect(address)


def _write(call: Call[Any], answer: Answer) -> None:
    """Writes the answer and its files."""
    from fmab_jax.planning.texts import write_answer

    line = write_command(answer.algorithm, answer.question.problem, call)
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
    from fmab_jax.planning.answers import FILE, FILES, read_document

    if others := [name for name in FILES if os.path.lexists(folder / name)]:
        with suppress(Refusal):
            read_document(folder / FILE, "out")
            return
        allowed = f"a folder where no {', '.join(others)} of something else lies"
        refuse("out", str(folder), allowed, "name another one, or move the file")


def _write_files(folder: Path, answer: Answer, document: dict[str, object]) -> list[Path]:
    """Writes the document and the figure of the race, in place of those of an earlier plan."""
    from fmab_jax.planning.answers import FIGURE, FILE, State
    from fmab_jax.plots.rivals import plot_race
    from fmab_jax.plots.saving import list_figure_files, save_figure

    path, picture = folder / FILE, folder / FIGURE
    figure = plot_race(answer.looks, answer.label, answer.list_labels(State.OVER))
    # The document says that the other files are the plan's, so it comes first.
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1), "utf-8")
    save_figure(figure, picture, overwrite=True)
    return [path, *list_figure_files(figure, picture)]


def _read_problem(options: Any) -> Problem:
    """Builds the problem of the options, as `fmab run` does."""
    from fmab_jax.sweeps.subjects import RandomProblem, read_problem

    values = {name: getattr(options, name) for name in parameters_of(RandomProblem)}
    settings: dict[str, Any] = {name: x for name, x in values.items() if x is not UNSET}
    error = options.means_error
    if options.means is None:
        if error is not None:
            refuse("means_error", error, "given with --means", "add --means FILE")
        return RandomProblem(**settings).problem(options.root_seed)
    return read_problem(options.means, means_error=error or 0.0, **settings)


def _read_candidates(options: Any, problem: Problem) -> list[Algorithm] | None:
    """Reads the configurations of a study, which must be about the problem of the plan."""
    from fmab_jax.records.problem import Problem
    from fmab_jax.sweeps import study_file

    if options.candidates is None:
        return None
    document = study_file.read_study(options.candidates)
    plain = Problem(agents=problem.agents, arms=problem.arms)
    wanted = {"agents": problem.agents, "arms": problem.arms, "horizon": options.horizon}
    configs = [point.config for point in study_file.build_study(document).points]
    for config in configs:
        studied = config.problem
        sizes = {"agents": studied.agents, "arms": studied.arms, "horizon": config.horizon}
        for name, size in sizes.items():
            if size != wanted[name]:
                # A leak is solved for a number of agents.
                allowed = f"{wanted[name]} in the study of candidates, as in the plan"
                refuse(name, size, allowed, "change the study or the plan")
        # Errors of means may differ.
        described = [
            x.describe() | {"kind": "", "means_error": 0} for x in (studied, problem, plain)
        ]
        if described[0] not in described[1:]:
            allowed = "a study of the plan's problem, or one that states agents and arms alone"
            refuse("candidates", options.candidates, allowed, "state the same problem in both")
    return list(dict.fromkeys(config.algorithm for config in configs))


def parse_time(text: str) -> float:
    """Returns seconds of a text such as "90s", "10m" or "2h".

    Raises:
        ValueError: If it is none.
    """
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if parts is None:
        refuse("time", text, "a number and s, m or h", "such as 10m")
    return float(parts[1]) * _SECONDS[parts[2]]


def _write_value(parameter: Parameter, value: object, typed: object) -> str | None:
    """Returns a word that is read as a value, such as the option typed; None for no such word."""
    kind = parameter.kind
    forms = [kind.label(value), kind.plain(value)]
    for form in forms if typed in (None, UNSET) else [typed, *forms]:
        text = str(form)
        with suppress(Refusal):
            if kind.check(parameter.name, value_of(kind, text), "") == value:
                return text
    return None


def write_command(algorithm: Algorithm, problem: Problem, call: Call[Any]) -> str:
    """Writes the command that runs a configuration; "" where no words state it."""
    from fmab_jax.sweeps.subjects import RandomProblem

    options, words = vars(_join_options(call)), ["fmab", "run", algorithm.name]
    for name, parameter in parameters_of(type(algorithm)).items():
        value = getattr(algorithm, name)
        if value is UNSET or value == parameter.default:
            continue
        if isinstance(value, bool):
            words.append(format_flag(name if value else f"no_{name}"))
            continue
        text = _write_value(parameter, value, options.get(name))
        if text is None:
            return ""
        words += [format_flag(name), text]
    sizes = {"agents": problem.agents, "horizon": options["horizon"]}
    if not options["means"]:
        sizes["arms"] = problem.arms
    names = ("means", "means_error", *parameters_of(RandomProblem))
    extra = {name: options[name] for name in names if options[name] not in (None, UNSET)}
    if "fixed_instance" in extra:
        extra["root_seed"] = options["root_seed"]
    for name, value in (sizes | extra).items():
        words += [format_flag(name), str(value)]
    words += [word for plugin in call.plugins for word in ("--plugin", plugin)]
    return shlex.join(words)
