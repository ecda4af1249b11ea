"""Answers what to run within budgets of leak and links, with a guarantee.

Configurations of all known algorithms race on the same seeds until one of them
is within --within of the best, with --confidence. The answer is a command. The
exit status is 0, or 3 where time, seeds or Ctrl-C ended the race before that.

Examples:
  fmab plan --agents 20 --arms 30 --horizon 2e5 --leak 2 --links 400
  fmab plan --means means.csv --graph net.edgelist --horizon 2e5 --leak 2 --out plan
  fmab plan --means monday.csv tuesday.csv --agents 20 --leak 2 --out plan
  fmab plan --agents 50 --arms 100 --horizon 1e5 --leak 1 --candidates study.toml
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fmab_jax.cli.options import Call, option, rename_fields, value_of
from fmab_jax.errors import Refusal, refuse
from fmab_jax.files import check_path, mark_write, whole_file
from fmab_jax.parameters import (
    LEAK,
    UNSET,
    VIEW,
    Choice,
    Flag,
    Kind,
    Parameter,
    Real,
    Whole,
    parameters_of,
)

if TYPE_CHECKING:
    import numpy as np
    from distributed import Client

    from fmab_jax.algorithms.base import Algorithm
    from fmab_jax.planning.plan import Plan
    from fmab_jax.records.problem import Problem

AVERAGE = "means.csv"
"""File of the average of several files of means, in the plan's folder."""

_UNDECIDED = 3  # exit status
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_BUDGET = Real(none_label="no budget", low=0.0)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to run."""

    agents: int | None = option(None, kind=Whole(low=1), default_text="50, or those of the means")
    """M, agents."""
    arms: int | None = option(None, kind=Whole(low=1), default_text="100, or those of the means")
    """K, arms."""
    horizon: int = option(100_000, kind=Whole())
    """T, slots that every agent plays; such as 2e5."""
    means: tuple[str, ...] = option((), metavar="FILE", default_text="each seed draws its own")
    """Fixed means, .csv or .npz; one row is shared by as many agents as --agents says. Several
    files estimate the same means: the plan uses their average, with the error that they show, and
    writes it to the folder of --out."""
    means_error: float | None = option(None, kind=Real(low=0.0), default_text="the means are exact")
    """Standard error of the means in FILE: each seed draws normal means around them."""
    fixed_instance: int | None = option(None, kind=Whole(), default_text="off")
    """Give all seeds the means that this seed would draw."""
    rewards: str | None = option(None, metavar="LAW", default_text="bernoulli, or a file's ratings")
    """Reward law."""
    world: str | None = option(
        None, kind=Kind(none_label="none"), metavar="WORLD", default_text="means do not change"
    )
    """How means change, such as drifting:3."""
    presence: str | None = option(
        None, kind=Kind(none_label="none"), metavar="PRESENCE", default_text="all are present"
    )
    """Who takes part in a round, such as absent:0.1."""
    leak: float | None = option(1.0, kind=LEAK.kind)
    """What one reward leaks in the view; none for no noise."""
    view: str = option("messages", kind=VIEW.kind)
    """Where the leak is counted: all messages, sums over agents alone, or actions alone."""
    links: float | None = option(None, kind=_BUDGET, default_text="no budget")
    """Most links of a run."""
    numbers: float | None = option(None, kind=_BUDGET, default_text="no budget")
    """Most numbers on all links of a run."""
    bits: float | None = option(None, kind=_BUDGET, default_text="no budget")
    """Most bits on all links of a run."""
    over: float = option(0.01, kind=Real(low=0.0, high=1.0, open_high=True))
    """Share of runs that may exceed a budget: 0.5 limits the median, 0 all runs surely."""
    graph: str | None = option(None, metavar="GRAPH", default_text="none")
    """Graph of the agents, a name or a file, for algorithms over a graph."""
    components: str | None = option(None, metavar="PARTS", default_text="none")
    """Components of the agents, such as 20x5:star, for algorithms over components."""
    server: bool = option(True, kind=Flag())
    """Whether there is a server."""
    secure: bool = option(False, kind=Flag())
    """There is a secure sum over agents, which hides single messages."""
    within: float = option(0.05, kind=Real(low=0.0, high=10.0, open_low=True))
    """x: the answer's mean regret is at most 1 + x times that of the best candidate."""
    confidence: float = option(0.95, kind=Real(low=0.0, high=1.0, open_low=True, open_high=True))
    """Chance that this holds, at least."""
    candidates: str | None = option(None, metavar="STUDY.toml", default_text="all known algorithms")
    """A study file whose configurations race. Its horizon is that of the plan, and so is its
    problem, if it states more than agents and arms."""
    proven: bool = option(False, kind=Flag())
    """Leave out values that the sources' theorems do not cover."""
    time: str | None = option(None, metavar="TIME", default_text="no limit")
    """When the race stops at its next look, such as 90s, 10m or 2h, with the answer so far."""
    max_seeds: int = option(10**6, kind=Whole())
    """Most seeds of a candidate, at least 200."""
    root_seed: int = option(0, kind=Whole(high=2**32 - 1))
    """Selects all randomness."""
    out: str | None = option(None, metavar="FOLDER", default_text="trials are not kept")
    """Keep all trials: a plan that is killed goes on, a later one with other budgets uses them.
    The answer is written there too, as plan.json and race.png; fmab report makes a page of it."""
    scheduler: str | None = option(None, metavar="ADDRESS", default_text="none")
    """Compute on the workers of a Dask scheduler: tcp://HOST:PORT, or the .json file it wrote."""
    format: str = option("text", kind=Choice(options=("text", "json")))
    """How to write the answer."""


def execute(call: Call[Options]) -> int:
    """Finds and prints the answer; returns the exit status, 3 for one that is not decided."""
    from fmab_jax.planning.answers import FILES
    from fmab_jax.planning.plan import plan

    options = call.options
    if options.out is not None:
        check_path("out", options.out)
        call.stores.append(options.out)
    problem = _read_problem(options)
    names = [*FILES, *[AVERAGE] * (len(options.means) > 1)]
    if options.out is not None:
        names = _check_files(Path(options.out), names)
    with ExitStack() as stack:
        stack.enter_context(rename_fields(store="out"))
        answer = plan(
            problem,
            options.horizon,
            leak=options.leak,
            view=options.view,
            links=options.links,
            numbers=options.numbers,
            bits=options.bits,
            over=options.over,
            graph=options.graph,
            components=options.components,
            server=options.server,
            secure=options.secure,
            within=options.within,
            confidence=options.confidence,
            candidates=_read_candidates(options, problem),
            proven=options.proven,
            time=None if options.time is None else parse_time(options.time),
            store=options.out,
            max_seeds=options.max_seeds,
            root_seed=options.root_seed,
            client=_connect(options, stack),
            progress=options.format == "text",
        )
    # Whoever watches signals waits for the files.
    with mark_write():
        _write(call, answer, problem, names)
    return 0 if answer.holds else _UNDECIDED


def _write(call: Call[Options], answer: Plan, problem: Problem, names: list[str]) -> None:
    """Writes the answer and its files."""
    from fmab_jax.planning.answers import build_document, write_answer

    options = call.options
    command = write_command(answer.algorithm, problem, options, call.plugins)
    document = build_document(answer, command)
    document |= {"plan": shlex.join(["fmab", *call.words]), "setting": _describe(problem, options)}
    document["files"] = [] if options.out is None else names
    if options.format == "text":
        print("\n".join(write_answer(answer, command)), flush=True)
    files = [] if options.out is None else _write_files(Path(options.out), answer, document)
    if len(options.means) > 1:
        files.append(_write_means(Path(options.out or "", AVERAGE), problem))
    call.files.extend(files)
    if options.format == "json":
        print(json.dumps(document, indent=1))
        return
    for path in files:
        print(f"wrote {path}")


def _connect(options: Options, stack: ExitStack) -> Client | None:
    """Connects to a Dask scheduler, if one is named."""
    if options.scheduler is None:
        return None
    from fmab_jax.sweeps import cluster

    return stack.enter_context(cluster.connect(options.scheduler))


def _check_files(folder: Path, names: list[str]) -> list[str]:
    """Returns the names with those that an earlier plan wrote; refuses files that none wrote."""
    from fmab_jax.planning.answers import FILE, read_document

    written: list[str] = []
    others = [name for name in names if os.path.lexists(folder / name)]
    if others:
        with suppress(Refusal):
            written = read_document(folder / FILE, "out")["files"]
            others = [name for name in others if name not in written]
    if others:
        allowed = f"a folder where no {', '.join(others)} of something else lies"
        refuse("out", str(folder), allowed, "name another one, or move the file")
    return list(dict.fromkeys([*names, *written]))


def _write_files(folder: Path, answer: Plan, document: dict[str, object]) -> list[Path]:
    """Writes the document and the figure of the race, in place of those of an earlier plan."""
    from fmab_jax.planning.answers import FIGURE, FILE
    from fmab_jax.plots.race import plot_race
    from fmab_jax.plots.runs import list_figure_files, save_figure

    path, picture = folder / FILE, folder / FIGURE
    figure = plot_race(answer.looks, answer.label, answer.infeasible)
    # The document says that the other files are the plan's, so it comes first.
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1), "utf-8")
    save_figure(figure, picture, overwrite=True)
    return [path, *list_figure_files(figure, picture)]


def _write_means(path: Path, problem: Problem) -> Path:
    """Writes means that a command reads, digit by digit."""
    import numpy as np

    with whole_file(path) as temporary:
        rows = [",".join(map(repr, row)) for row in np.asarray(problem.means).tolist()]
        temporary.write_text("\n".join(rows) + "\n", "utf-8")
    return path


def _describe(problem: Problem, options: Options) -> dict[str, object]:
    """Describes the question: sizes, means, leak and budgets."""
    budgets = ("leak", "view", "links", "numbers", "bits", "over")
    names = (*budgets, "graph", "components", "server", "secure", "within", "confidence")
    words = {"agents": problem.agents, "arms": problem.arms, "horizon": options.horizon}
    return {
        **words,
        **problem.settings(),
        **{name: value for name in names if (value := getattr(options, name)) is not None},
        "root_seed": options.root_seed,
    }


def _read_problem(options: Options) -> Problem:
    from fmab_jax.records.problem import Problem

    settings = {n: getattr(options, n) for n in ("agents", "arms", "rewards", "world", "presence")}
    error = options.means_error or 0.0
    if not options.means:
        if options.means_error is not None:
            refuse("means_error", options.means_error, "given with --means", "add --means FILE")
        defaults = {"agents": options.agents or 50, "arms": options.arms or 100}
        problem = Problem(**settings | defaults)
        fixed = options.fixed_instance
        return problem if fixed is None else problem.fixed(fixed, options.root_seed)
    if options.fixed_instance is not None:
        allowed = "left out with means"
        refuse("fixed_instance", options.fixed_instance, allowed, "the file fixes it")
    if len(options.means) == 1:
        problem = Problem(options.means[0], **settings, means_error=error)
    else:
        rows, error = _average(options)
        problem = Problem(rows, **settings, means_error=error)
    if options.agents is None and problem.agents == 1:
        allowed = f"given with {options.means[0]}, whose one row all agents share"
        refuse("agents", UNSET, allowed, "such as --agents 50")
    return problem


def _average(options: Options) -> tuple[np.ndarray, float]:
    """Returns the average of several estimates of the means, and its standard error."""
    import numpy as np

    from fmab_jax import tables

    if options.means_error is not None:
        allowed = "left out with several files, which show it"
        refuse("means_error", options.means_error, allowed, "drop it, or give one file")
    if options.out is None:
        remedy = "add --out FOLDER, where means.csv gets their average"
        refuse("out", UNSET, "given with several files of means", remedy)
    if Path(options.out, AVERAGE).resolve() in [Path(path).resolve() for path in options.means]:
        remedy = f"name another file, or another folder: {AVERAGE} gets the average"
        refuse("means", str(Path(options.out, AVERAGE)), "outside the folder of the plan", remedy)
    estimates = []
    for path in options.means:
        values, levels = tables.read(path, options.agents)
        if levels is not None:
            refuse("means", path, "a file of means: ratings are not averaged", "give it alone")
        estimates.append(np.atleast_2d(values))
        if estimates[-1].shape != estimates[0].shape:
            refuse("means", path, f"a file of means of the size of {options.means[0]}", "see both")
    # As many digits as a reader wants to see in the command.
    means = np.asarray(np.mean(estimates, axis=0)).round(12)
    error = math.sqrt(float(np.var(estimates, axis=0, ddof=1).mean()) / len(estimates))
    return means, float(f"{error:.3g}")


def _read_candidates(options: Options, problem: Problem) -> list[Algorithm] | None:
    if options.candidates is None:
        return None
    from fmab_jax.sweeps import study_file

    document = study_file.read_study(options.candidates)
    with study_file.as_toml_errors(document):
        study = study_file.build_study(document)
        for config in (point.config for point in study.points):
            # A leak is solved for a number of agents.
            sizes = {"agents": config.problem.agents, "arms": config.problem.arms}
            for name, size in (sizes | {"horizon": config.horizon}).items():
                wanted = getattr(problem, name, options.horizon)
                if size != wanted:
                    allowed = f"{wanted} in the study of candidates, as in the plan"
                    refuse(name, size, allowed, "change the study or the plan")
            _check_study_problem(config.problem, problem, options)
        return list(dict.fromkeys(point.config.algorithm for point in study.points))


def _check_study_problem(studied: Problem, problem: Problem, options: Options) -> None:
    """Refuses candidates of a study that is about another problem; errors of means may differ."""
    from fmab_jax.records.problem import Problem

    plain = Problem(agents=problem.agents, arms=problem.arms)
    described = [x.describe() | {"kind": "", "means_error": 0} for x in (studied, problem, plain)]
    if described[0] not in described[1:]:
        allowed = "a study of the plan's problem, or one that states agents and arms alone"
        refuse("candidates", options.candidates, allowed, "state the same problem in both")


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
    for form in forms if typed is None else [typed, *forms]:
        text = str(form).lower() if isinstance(form, bool) else str(form)
        with suppress(Refusal):
            if kind.check(parameter.name, value_of(kind, text), "") == value:
                return text
    return None


def write_command(
    algorithm: Algorithm, problem: Problem, options: Options, plugins: Sequence[str] = ()
) -> str:
    """Writes the command that runs a configuration; "" where no words state it."""
    words = ["fmab", "run", algorithm.name]
    known = parameters_of(type(algorithm))
    for name, parameter in known.items():
        value = getattr(algorithm, name)
        if value is UNSET or value == parameter.default:
            continue
        text = _write_value(parameter, value, getattr(options, name, None))
        if text is None:
            return ""
        words += [f"--{name.replace('_', '-')}", text]
    words += ["--agents", str(problem.agents), "--horizon", str(options.horizon)]
    if options.means:
        is_one = len(options.means) == 1
        words += ["--means", options.means[0] if is_one else str(Path(options.out or "", AVERAGE))]
        if problem.means_error:
            words += ["--means-error", f"{problem.means_error!r}"]
    else:
        words += ["--arms", str(problem.arms)]
    if options.fixed_instance is not None:
        words += ["--fixed-instance", str(options.fixed_instance)]
        words += ["--root-seed", str(options.root_seed)]
    for name in ("rewards", "world", "presence"):
        if (setting := getattr(options, name)) is not None:
            words += [f"--{name}", setting]
    words += [word for plugin in plugins for word in ("--plugin", plugin)]
    return shlex.join(words)
