"""The command line ``fmab``: runs with a table, a figure and files; a look at this machine.

Options are turned into the package's objects as they are typed: what a value may be is decided, and
refused, where the package checks it. JAX is imported only once the words of a command make sense.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import io
import math
import os
import platform
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import arg, subcommand
from tyro.constructors import PrimitiveConstructorSpec

from fmab_jax import __version__
from fmab_jax.checks import Refusal, count, real, refuse

if TYPE_CHECKING:
    import xarray as xr

    from fmab_jax.elimination import Algorithm
    from fmab_jax.problems import Problem
    from fmab_jax.simulation import Estimate

# Columns of plain output where there is no terminal to ask.
_WIDTH = 100
_NUMBER = re.compile(
    r"[+-]?([0-9]+(_[0-9]+)*\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(inf|nan)", re.I
)
_REFUSAL = re.compile(r"(?P<field>\w+)=(?P<value>.*?): (?P<rest>must be .*)", re.S)


def _value(text: str) -> Any:
    """Reads a number, or "none"; any other text stays, for the package's own check to refuse."""
    if text.lower() == "none":
        return None
    if not _NUMBER.fullmatch(text):
        return text
    number = float(text)
    # 1e6 is a whole number, and so is one too large for float64's 53 bits.
    if abs(number) < 1e18 and Decimal(text) == (whole := int(Decimal(text))):
        return whole
    return number


def _typed(metavar: str) -> Any:
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda texts: _value(texts[0]),
        is_instance=lambda value: True,
        str_from_instance=lambda value: [str(value)],
    )


def _shown(default: str) -> Any:
    return arg(help_behavior_hint=f"(default: {default})")


_Number = Annotated[Any, _typed("X")]
_Whole = Annotated[Any, _typed("N")]


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What the four algorithms share."""

    epsilon: Annotated[tuple[_Number, ...], _shown("1")] = ()
    """Privacy parameter > 0, or none for no noise; several make one run, curve and row each."""
    epsilon_message: Annotated[tuple[_Number, ...], _shown("not given")] = ()
    """What one message may leak, N epsilon; in place of --epsilon."""
    agents: Annotated[_Whole, _shown("50; hdp: 100")] = None
    """M, agents."""
    arms: Annotated[_Whole, _shown("100")] = None
    """K, arms."""
    horizon: _Whole = 100_000
    """T, slots that every agent plays; such as 1e6."""
    seeds: _Whole = 1000
    """How many independent trials."""
    root_seed: _Whole = 0
    """Selects all randomness."""
    rounds: Annotated[_Whole, _shown("none")] = None
    """Round budget R."""
    gap: Annotated[_Number, _shown("the instance's own")] = None
    """Smallest gap that a round budget is spent on; without --rounds it has no effect."""
    means: Annotated[str | None, arg(metavar="FILE"), _shown("each seed draws its own")] = None
    """Fixed means, .csv (a row per agent, a column per arm) or .npz; one row is shared by all of
    --agents."""
    spread: Annotated[_Number, _shown("0, agents are alike")] = None
    """How far the means differ between agents, up to 1."""
    smallest_gap: Annotated[_Number, _shown("left to chance")] = None
    """Smallest gap of the means that each seed draws."""
    fixed_instance: Annotated[_Whole, arg(metavar="SEED"), _shown("off")] = None
    """Give all seeds the means that this seed would draw."""
    times: Annotated[tuple[_Whole, ...], _shown("100")] = ()
    """How many slots to record; two or more numbers are the slots themselves."""
    log_time: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Space the recorded slots evenly in log t."""
    level: _Number = 0.95
    """Confidence level of band and intervals."""
    band: Annotated[str, arg(metavar="{simultaneous,pointwise,quantile}")] = "simultaneous"
    """Kind of band in the figure."""
    server_price: _Number = 1
    """c1, price of a link between agent and server."""
    peer_price: _Number = 1
    """c2, price of a link between agents."""
    out: Annotated[str | None, arg(metavar="BASE"), _shown("fmab-ALGORITHM, in this folder")] = None
    """Write BASE.png and BASE.nc (several runs: BASE-EPSILON.nc); older files are replaced."""
    figure: bool = True
    """Draw the figure."""
    data: bool = True
    """Write the results, one file per run."""


@dataclass(frozen=True, kw_only=True)
class Cdp(_Run):
    """Centralised: a server hears ceil(p M) agents a round."""

    participation: _Number = 1
    """p, share of the agents that report in a round."""


@dataclass(frozen=True, kw_only=True)
class Ddp(_Run):
    """Decentralised: agents flood their means over a graph."""

    graph: str = "complete"
    """complete, star, ring, path, grid, regular-D, random[-P], preferential[-m], or a file: .txt,
    .edgelist, .csv or .graphml."""


@dataclass(frozen=True, kw_only=True)
class Hdp(_Run):
    """Hybrid: components collect at a sink, sinks report to a server."""

    components: Annotated[
        str | None, arg(metavar="SPEC"), _shown("five complete graphs, equally large")
    ] = None
    """Parts SIZExCOUNT:GRAPH joined by +, such as 20x5:star; the sizes sum to --agents."""
    weights: Annotated[str, arg(metavar="{agents,components}")] = "agents"
    """What weighs the same; components is the paper's print, biased where they differ."""


@dataclass(frozen=True, kw_only=True)
class Single(_Run):
    """Baseline: every agent learns alone, without links."""


@dataclass(frozen=True, kw_only=True)
class Doctor:
    """Versions, devices and caches, and what a run would need."""

    agents: _Whole = 50
    """M, agents."""
    arms: _Whole = 100
    """K, arms."""
    horizon: _Whole = 100_000
    """T, slots."""
    seeds: _Whole = 1000
    """How many independent trials."""
    times: _Whole = 100
    """How many slots to record."""


@dataclass(frozen=True)
class Run:
    """Simulate an algorithm: a table, a figure, and the results as netCDF."""

    algorithm: Annotated[
        Annotated[Cdp, subcommand("cdp")]
        | Annotated[Ddp, subcommand("ddp")]
        | Annotated[Hdp, subcommand("hdp")]
        | Annotated[Single, subcommand("single")],
        arg(name=""),
    ]


_Top = Annotated[Run, subcommand("run")] | Annotated[Doctor, subcommand("doctor")]

_ALGORITHMS: dict[str, type[_Run]] = {"cdp": Cdp, "ddp": Ddp, "hdp": Hdp, "single": Single}

_HELP = {
    "fmab": """\
Private, communication-limited federated bandits: the algorithms of Li and
Song (IEEE JSAC 40(3), 2022, arXiv 2111.01570), simulated for many seeds.
Every command has its own --help; fmab --version prints the version.

Examples:
  fmab run cdp --epsilon 0.1 0.3 0.5 1 --horizon 1e6
  fmab run ddp --graph ring
  fmab doctor --seeds 1e6""",
    "fmab run": """\
Simulates an algorithm for many seeds: prints a table, draws regret and links
over time, and keeps the results as netCDF. Bad input is refused in one line
before anything is computed or written.

Examples:
  fmab run cdp --epsilon 0.5 --agents 50 --arms 100 --horizon 1e6
  fmab run ddp --graph star --epsilon 0.5 none
  fmab run hdp --components 20x5:star --server-price 50""",
    "fmab run cdp": """\
CDP-MAB: every round a server averages the noisy means of ceil(p M) agents
(Algorithm 1 and section IV-B).

Examples:
  fmab run cdp --epsilon 0.1 0.3 0.5 1 --out eps
  fmab run cdp --participation 0.4 --rounds 3 --gap 0.0625
  fmab run cdp --means means.csv --agents 5 --horizon 1e6""",
    "fmab run ddp": """\
DDP-MAB: agents without a server flood their noisy means over a graph with
GIS, and play their own best arm while messages travel (Algorithms 2 and 3).

Examples:
  fmab run ddp --graph ring
  fmab run ddp --graph regular-4 --agents 100 --horizon 1e6 --log-time
  fmab run ddp --graph friends.graphml --agents 12 --spread 1""",
    "fmab run hdp": """\
HDP-MAB: the agents of a component collect their noisy means at its sink with
SAC, and the sinks report to a server (Algorithms 4 and 5).

Examples:
  fmab run hdp --components 20x5:star --server-price 50
  fmab run hdp --components 53,24,10,6,7:complete --spread 1
  fmab run hdp --components 20x2:ring+10x6:star --weights components""",
    "fmab run single": """\
The baseline: every agent runs CDP-MAB with M = 1 on its own rewards; regret
is summed over agents.

Examples:
  fmab run single --agents 5 --arms 10
  fmab run single --agents 5 --arms 10 --spread 1 --out alone""",
    "fmab doctor": """\
Shows what results can depend on (versions, devices, precision), where
compiled programs are kept, and what a run of a given size would need here.

Examples:
  fmab doctor
  fmab doctor --agents 1000 --seeds 1e5 --times 1000""",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        arguments: The words after ``fmab``; those of this process by default. Only then is the
            process taken for our own, and JAX's compilation cache switched on.

    Returns:
        The exit status: 0; 2 for bad input, 1 for a disk, file or memory that gives out and 130
        after Ctrl-C, each with one line on standard error.
    """
    ours = arguments is None
    words = list(sys.argv[1:] if arguments is None else arguments)
    written: list[Path] = []
    try:
        command = _parse(words)
        if command is None:
            return 0
        if ours:
            if isinstance(sys.stdout, io.TextIOWrapper):
                # A path may hold letters that the output's encoding lacks.
                sys.stdout.reconfigure(errors="backslashreplace")
            _use_compilation_cache()
        if isinstance(command, Doctor):
            _doctor(command)
        else:
            _simulate(command, words[1], written)
        # What cannot be shown is found out here, not while the interpreter ends.
        sys.stdout.flush()
        return 0
    except Refusal as error:
        line = str(error)
        return _fail(2, f"{line}; {_kept(written)}" if written else line)
    except KeyboardInterrupt:
        return _fail(130, "interrupted; " + _kept(written))
    except BrokenPipeError:
        # Whoever read the output has left; the files stand.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(1, f"{where}{error.strerror or error}; {_kept(written)}")
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)):
            raise
        return _fail(1, f"out of memory; use fewer agents, arms or times; {_kept(written)}")


def _fail(status: int, line: str) -> int:
    print("fmab:", " ".join(line.split()), file=sys.stderr)
    return status


def _kept(written: Sequence[Path]) -> str:
    return f"whole files written: {', '.join(map(str, written))}" if written else "nothing written"


def _parse(words: list[str]) -> _Run | Doctor | None:
    """Returns the command, or None where help or the version was all that was asked for.

    Raises:
        Refusal: One line for words that make no sense.
    """
    if words[:1] == ["--version"]:
        print(f"fmab {__version__}")
        return None
    wants_help = any(word in ("-h", "--help") for word in words)
    chosen: Any = _Top
    name, rest = "fmab", words
    for choices in ({"run": Run, "doctor": Doctor}, _ALGORITHMS):
        if wants_help and rest[:1] in ([], ["-h"], ["--help"]):
            break
        if not rest or rest[0] not in choices:
            near = difflib.get_close_matches("".join(rest[:1]), choices, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"see {name} --help"
            word = _visible(rest[0]) if rest else "no command"
            raise Refusal(f"{word}: must be one of {', '.join(choices)}; {remedy}")
        chosen, name, rest = choices[rest[0]], f"{name} {rest[0]}", rest[1:]
        if chosen is Doctor:
            break
    if wants_help:
        rest = ["--help"]
    else:
        _check_words(chosen, rest, name)
    # Whatever tyro still has to say goes into one line as well.
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed = tyro.cli(
                chosen,
                prog=name,
                # tyro keeps the line breaks before indented lines only.
                description=textwrap.indent(_HELP[name], "  "),
                args=rest,
                config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
            )
    except SystemExit as end:
        if not end.code:
            return None
        told = re.sub(r"\x1b\[[0-9;]*m|[^\x20-\x7e]+", " ", said.getvalue())
        raise Refusal(f"{name}: must be words that make sense; {told}") from None
    return parsed


def _check_words(command: type[_Run] | type[Doctor], words: Sequence[str], name: str) -> None:
    """Refuses unknown and repeated options, missing and surplus values."""
    takes = {name: "options only"}
    for field in dataclasses.fields(command):
        option = "--" + field.name.replace("_", "-")
        if isinstance(field.default, bool):
            takes[option] = takes["--no-" + option[2:]] = "no value"
        else:
            takes[option] = (
                "one or more values" if isinstance(field.default, tuple) else "one value"
            )
    # Every option with the words after it; words before any option belong to the command.
    given = [[name]]
    for word in words:
        if word.startswith("--") or (re.match(r"-[a-z]", word, re.I) and not _NUMBER.match(word)):
            spelling, *values = word.split("=", 1)
            given.append([spelling.replace("_", "-"), *values])
        else:
            given[-1].append(word)
    for place, (option, *values) in enumerate(given):
        if option not in takes:
            near = difflib.get_close_matches(option, takes, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"see {name} --help"
            raise Refusal(f"{_visible(option)}: must be an option of {name}; {remedy}")
        if any(option == other for other, *_ in given[:place]):
            remedy = "several values go after one --epsilon or --times"
            raise Refusal(f"{option}: must be given once; {remedy}")
        fits = {"one value": len(values) == 1, "one or more values": bool(values)}
        if not fits.get(takes[option], not values):
            shown = " ".join([option, *map(_visible, values)])
            raise Refusal(f"{shown}: must be given with {takes[option]}; see {name} --help")


def _visible(word: str) -> str:
    return word[:80] if word.isprintable() and word else repr(word[:80])


@contextlib.contextmanager
def _spelt(command: _Run | Doctor, **other: str) -> Iterator[None]:
    """Spells the fields in the package's refusals as options: ``--horizon 0`` for ``horizon=0``."""
    names = {field.name: field.name for field in dataclasses.fields(command)} | other
    try:
        yield
    except ValueError as error:
        found = _REFUSAL.fullmatch(str(error))
        if not found or found["field"] not in names:
            raise
        option = "--" + names[found["field"]].replace("_", "-")
        # As typed: text without Python's quotes, and none for None.
        value = re.sub(r"""^(['"])(.*?)(\1|\.\.\.)$""", r"\2", found["value"])
        said = re.sub(r"\bNone\b", "none", f"{value}: {found['rest']}")
        raise Refusal(f"{option} {said}") from None


def _simulate(command: _Run, name: str, written: list[Path]) -> None:
    """Runs, prints and writes; every bad value is refused before the first trial."""
    import numpy as np
    import xarray as xr

    from fmab_jax import simulation, store
    from fmab_jax.bands import confidence_band

    with _spelt(command, kind="band"):
        runs = _epsilons(command)
        algorithms = {label: _algorithm(command, name, run) for label, run in runs.items()}
        remedy = "an interval needs at least 2 seeds"
        seeds = count("seeds", command.seeds, 2, simulation.MAX_SEEDS, remedy)
        for price in ("server_price", "peer_price"):
            remedy = "give the price of one link"
            real(price, getattr(command, price), 0, math.inf, remedy, open_high=True)
        nothing = xr.DataArray(np.zeros((2, 1)), dims=("seed", "time"))
        confidence_band(nothing, command.level, command.band)
        figure_path, data_paths = _paths(command, name, list(runs))
    problem = _problem(command, 100 if name == "hdp" else 50)
    times = command.times or (100,)
    results = {}
    for label, algorithm in algorithms.items():
        with _spelt(command):
            results[label] = simulation.simulate(
                algorithm,
                problem,
                command.horizon,
                seeds,
                root_seed=command.root_seed,
                times=times[0] if len(times) == 1 else list(times),
                spacing="log" if command.log_time else "linear",
            )
        if command.data:
            written.append(store.save(results[label], data_paths[label]))
    if command.figure:
        from fmab_jax import plots

        drawn = plots.plot_runs(
            {_legend(label): data for label, data in results.items()},
            level=command.level,
            kind=command.band,
            server_price=command.server_price,
            peer_price=command.peer_price,
        )
        written.append(plots.save_figure(drawn, figure_path))
    _print_table(results, command)
    for path in written:
        print("wrote", path)


def _algorithm(command: _Run, name: str, epsilon: dict[str, Any]) -> Algorithm:
    """Binds the algorithm's own options, those that not every run has, to its maker."""
    from fmab_jax import elimination

    shared = {field.name for field in dataclasses.fields(_Run)}
    own = {f.name: getattr(command, f.name) for f in dataclasses.fields(command)}
    own = {option: value for option, value in own.items() if option not in shared}
    if own.get("components", "") is None:
        agents = count("agents", command.agents or 100, 1, 10**7, "give the number of agents M")
        parts = min(5, agents)
        sizes = [agents // parts + (part < agents % parts) for part in range(parts)]
        own["components"] = ",".join(map(str, sizes)) + ":complete"
    make = getattr(elimination, f"{name}_mab")
    return make(**epsilon, rounds=command.rounds, gap=command.gap, **own)


def _epsilons(command: _Run) -> dict[str, dict[str, Any]]:
    """Returns the algorithms' epsilon argument of each run, by the label of the run."""
    if command.epsilon_message:
        if command.epsilon:
            refuse(
                "epsilon_message", command.epsilon_message[0], "given without --epsilon", "drop one"
            )
        field, values, prefix = "epsilon_message", command.epsilon_message, "message-"
    else:
        field, values, prefix = "epsilon", command.epsilon or (1,), ""
    runs: dict[str, dict[str, Any]] = {}
    for value in values:
        value = math.inf if value is None else value
        label = prefix + ("none" if value == math.inf else _visible(str(value)))
        if label in runs:
            refuse(field, value, "distinct values", "a repeated value repeats its run")
        runs[label] = {field: value}
    if len(runs) > 28:
        refuse(field, len(runs), "at most 28 values", "split the figure")
    return runs


def _legend(label: str) -> str:
    """Names a curve in the words of the caption, which then says them once."""
    if label == "none":
        return "no noise"
    return f"\N{GREEK SMALL LETTER EPSILON} = {label}".replace("= message-", "per message = ")


def _paths(command: _Run, name: str, labels: Sequence[str]) -> tuple[Path, dict[str, Path]]:
    """Returns where figure and results shall stand, having made sure that they can.

    Raises:
        Refusal: If the folder is missing or cannot be written, or a folder has such a name.
    """
    base = f"fmab-{name}" if command.out is None else re.sub(r"\.(png|nc)$", "", command.out)
    allowed = "a file name in an existing folder that can be written"
    if not base:
        refuse("out", base, allowed, "leave it out for the default")
    if base.endswith(("/", os.sep)) or os.path.isdir(base):
        base = os.path.join(base, f"fmab-{name}")
    figure_path = Path(f"{base}.png")
    single = len(labels) == 1
    data_paths = {label: Path(f"{base}.nc" if single else f"{base}-{label}.nc") for label in labels}
    wanted = [figure_path] * command.figure + list(data_paths.values()) * command.data
    for path in wanted:
        if os.path.isdir(path):
            refuse("out", base, allowed, f"{path} is a folder")
        try:
            # Written as store.whole_file will: in the folder, under a longer name.
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
                continue
        except OSError as error:
            reason = str(error.strerror or error)
        except ValueError as error:  # a NUL character
            reason = str(error)
        refuse("out", base, allowed, f"{path.parent}: {reason}")
    return figure_path, data_paths


def _problem(command: _Run, agents: int) -> Problem:
    from fmab_jax.problems import Problem

    drawn = {
        "--arms": command.arms,
        "--spread": command.spread,
        "--smallest-gap": command.smallest_gap,
        "--fixed-instance": command.fixed_instance,
    }
    with _spelt(command):
        if command.means is not None:
            for option, value in drawn.items():
                if value is not None:
                    reason = "which fixes them; drop one"
                    raise Refusal(f"{option} {value}: must be left out with --means, {reason}")
            return Problem.from_file(command.means, command.agents)
    with _spelt(command, gap="smallest_gap", seed="fixed_instance"):
        problem = Problem.heterogeneous(
            agents if command.agents is None else command.agents,
            100 if command.arms is None else command.arms,
            0.0 if command.spread is None else command.spread,
            command.smallest_gap,
        )
        if command.fixed_instance is not None:
            problem = problem.fixed(command.fixed_instance, command.root_seed)
    return problem


def _print_table(results: dict[str, xr.Dataset], command: _Run) -> None:
    """Prints one row per run: what was lost, what it cost and how sure that is."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    first = next(iter(results.values()))
    facts = first.attrs
    level = f"{100 * command.level:.6g} %"
    table = Table(
        title=(
            f"{facts['algorithm'].upper()}-MAB: agents M = {facts['agents']:,}, "
            f"arms K = {facts['arms']:,}, slots T = {facts['horizon']:,}, "
            f"seeds {first.sizes['seed']:,}"
        ),
        title_justify="left",
        title_style="",
        box=SIMPLE_HEAD,
        pad_edge=False,
        leading=1,
    )
    headings = (
        "epsilon\nper message",
        f"regret at T\n+- {level}",
        "rounds",
        "links at T",
        "cost",
        f"best arm lost\n{level}",
        "time\ntrials/s",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    for data in results.values():
        table.add_row(*_cells(data, command))
    console = _console()
    console.print(table)
    prices = f"{command.server_price:g} per server link, {command.peer_price:g} per peer link"
    prices += f" ({facts['meter_bound']})" * (facts["meter_bound"] in _meters(first))
    compiled = sum(data.attrs["compile_s"] for data in results.values())
    console.print(
        f"\nRegret, rounds, links and cost are means over the seeds; +- half the {level} Student t "
        f"interval of mean regret. Best arm lost: seeds, with the {level} Clopper-Pearson interval "
        f"of its probability. Cost: {prices}. Compiling took {compiled:.1f} s more."
    )


def _meters(data: xr.Dataset) -> dict[str, Any]:
    """Returns the link series of a run that count anything, by the name of their meter."""
    meters = {"server": data.server_links}
    if data.attrs["algorithm"] in ("ddp", "hdp"):
        meters[data.attrs["meter_bound"]] = data.peer_links_bound
        meters[data.attrs["meter_used"]] = data.peer_links_used
    if data.attrs["algorithm"] in ("ddp", "single"):
        del meters["server"]
    return meters


def _cells(data: xr.Dataset, command: _Run) -> tuple[str, ...]:
    """Returns a run's row of the table."""
    from fmab_jax.bands import confidence_band
    from fmab_jax.simulation import communication_cost

    end = {"time": -1}
    band = confidence_band(data.regret.isel(time=[-1]), command.level, "pointwise").isel(end)
    cost = communication_cost(data.isel(end), command.server_price, command.peer_price)
    links = [
        f"{_short(float(series.isel(end).mean()))} {meter}"
        for meter, series in _meters(data).items()
    ]
    lost = [float(band[f"best_arm_lost_{side}"]) for side in ("lower", "upper")]
    elapsed = data.attrs["elapsed_s"] - data.attrs["compile_s"]
    return (
        f"{_epsilon(data.attrs['epsilon'])}\n{_epsilon(data.attrs['epsilon_message'])}",
        f"{_short(float(band['mean']))}\n+- {_short(float(band['upper'] - band['mean']))}",
        _short(float(data.rounds.mean())),
        "\n".join(links) or "none",
        _short(float(cost.mean())),
        f"{int(band.best_arm_lost)}/{int(band.seeds)}\n[{lost[0]:.3g}, {lost[1]:.3g}]",
        f"{elapsed:.2g} s\n{_short(data.attrs['trials_per_s'])}",
    )


def _epsilon(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:.4g}"


def _short(number: float) -> str:
    """Writes a number in few characters: four digits, or the whole part where that is longer."""
    if number and not 1e-4 <= abs(number) < 1e12:
        return f"{number:.3e}"
    return f"{number:,.0f}" if abs(number) >= 1000 or number == int(number) else f"{number:.4g}"


def _console() -> Any:
    from rich.console import Console

    # A terminal decides on colours and width; a file or a pipe gets plain lines of a fixed width.
    width = None if sys.stdout.isatty() else _WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, markup=False)


def _doctor(command: Doctor) -> None:
    """Prints what results can depend on, and what a run of the given size would need."""
    with _spelt(command):
        import jax

        from fmab_jax import simulation
        from fmab_jax.elimination import cdp_mab
        from fmab_jax.problems import Problem

        horizon = count(
            "horizon", command.horizon, 1, simulation.MAX_HORIZON, "give T, such as 1e6"
        )
        seeds = count("seeds", command.seeds, 1, simulation.MAX_SEEDS, "give the number of seeds")
        devices = jax.local_devices()
        needs: dict[str, Estimate] = {}
        for case, spread in (("agents alike", 0.0), ("agents apart", 1.0)):
            problem = Problem.heterogeneous(command.agents, command.arms, spread)
            cell = simulation.resolve(cdp_mab(1.0), problem, horizon, times=command.times)
            needs[case] = simulation.estimate(cell, seeds, devices)
    with jax.enable_x64(True):
        inside = jax.numpy.zeros(()).dtype
    outside = jax.numpy.zeros(()).dtype
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    rows = [(f"{name}", version) for name, version in simulation.versions().items()]
    rows += [
        ("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        (
            "devices",
            ", ".join(
                f"{device.platform}:{device.id} ({device.device_kind})" for device in devices
            ),
        ),
        ("precision", f"{inside} in simulations, {outside} elsewhere"),
        ("compiled programs", jax.config.values["jax_compilation_cache_dir"] or "not kept"),
        ("cores", str(cores)),
    ]
    available = next(iter(needs.values())).available_bytes
    rows.append(("memory available", f"{available / 1e9:.3g} GB" if available else "unknown"))
    for name, value in rows:
        print(f"{name:<18} {value}")
    print(
        f"\nfmab run cdp, agents M = {problem.agents:,}, arms K = {problem.arms:,}, "
        f"slots T = {horizon:,}, {len(cell.grid):,} of them recorded, seeds {seeds:,}:"
    )
    for case, need in needs.items():
        fits = "fits" if need.fits else "does not fit"
        print(
            f"{case:<18} {fits}: {need.batches:,} x {need.batch:,} seeds, "
            f"{need.working_bytes / 1e9:.3g} GB at work, {need.result_bytes / 1e9:.3g} GB results"
        )


def _use_compilation_cache() -> None:
    """Keeps compiled programs between processes, in JAX_COMPILATION_CACHE_DIR or the user's caches.

    A folder that cannot be written costs time only: every process then compiles for itself.
    """
    import jax

    if sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        caches = "~/Library/Caches"
    else:
        caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    chosen = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    folder = Path(chosen) if chosen else Path(caches).expanduser() / "fmab_jax"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", None)
    else:
        jax.config.update("jax_compilation_cache_dir", str(folder))
        # JAX keeps what took a second to compile; a second is long for a command.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


if __name__ == "__main__":
    sys.exit(main())
