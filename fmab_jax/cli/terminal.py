"""What the command line reads and how it prints: options, help, one-line refusals, numbers.

Options are turned into the package's objects as they are typed: what a value may be is decided, and
refused, where the package checks it. JAX is imported only once the words of a command make sense.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import io
import math
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import tyro
from tyro.conf import Positional, arg, subcommand
from tyro.constructors import PrimitiveConstructorSpec

from fmab_jax import __version__
from fmab_jax.errors import Refusal, number_of

# Columns of plain output where there is no terminal to ask.
_WIDTH = 100


def _value(text: str) -> Any:
    """Reads a number, or "none"; any other text stays, for the package's own check to refuse."""
    if text.lower() == "none":
        return None
    number = number_of(text)
    return text if number is None else number


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
class RunOptions:
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
class Cdp(RunOptions):
    """Centralised: a server hears ceil(p M) agents a round."""

    participation: _Number = 1
    """p, share of the agents that report in a round."""


@dataclass(frozen=True, kw_only=True)
class Ddp(RunOptions):
    """Decentralised: agents flood their means over a graph."""

    graph: str = "complete"
    """complete, star, ring, path, grid, regular-D, random[-P], preferential[-m], or a file: .txt,
    .edgelist, .csv or .graphml."""


@dataclass(frozen=True, kw_only=True)
class Hdp(RunOptions):
    """Hybrid: components collect at a sink, sinks report to a server."""

    components: Annotated[
        str | None, arg(metavar="SPEC"), _shown("five complete graphs, equally large")
    ] = None
    """Parts SIZExCOUNT:GRAPH joined by +, such as 20x5:star; the sizes sum to --agents."""
    weights: Annotated[str, arg(metavar="{agents,components}")] = "agents"
    """What weighs the same; components is the paper's print, biased where they differ."""


@dataclass(frozen=True, kw_only=True)
class Single(RunOptions):
    """Baseline: every agent learns alone, without links."""


_Numbers = tuple[_Number, ...]
_Wholes = tuple[_Whole, ...]
_Texts = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Storing:
    """How a sweep is run and where it is kept."""

    out: Annotated[str | None, arg(metavar="FOLDER"), _shown("runs/NAME")] = None
    """Where the results are kept; what is there already is not computed again."""
    worker: Annotated[str | None, arg(metavar="I/N"), _shown("alone")] = None
    """This process is the I-th of N that share the folder, such as 3/16."""
    dry_run: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Say what would be done and what it takes, and stop."""
    allow_changes: Annotated[_Texts, arg(metavar="FIELD"), _shown("none")] = ()
    """Fields in which the study, or the versions, may differ from the folder's."""
    chunk: Annotated[_Whole, _shown("about a second's work")] = None
    """Trials of a chunk: what a kill loses at most."""
    save_study: Annotated[str | None, arg(metavar="FILE.toml"), _shown("off")] = None
    """Write the study to a file as well; it runs again to the same results."""


@dataclass(frozen=True, kw_only=True)
class SweepOptions(Storing):
    """What the four algorithms' sweeps share; several values after an option are swept."""

    epsilon: Annotated[_Numbers, _shown("1")] = ()
    """Privacy parameter > 0, or none for no noise."""
    epsilon_message: Annotated[_Numbers, _shown("not given")] = ()
    """What one message may leak, N epsilon; in place of --epsilon."""
    agents: Annotated[_Wholes, _shown("50; hdp: 100")] = ()
    """M, agents."""
    arms: Annotated[_Wholes, _shown("100")] = ()
    """K, arms."""
    horizon: Annotated[_Wholes, _shown("100000")] = ()
    """T, slots that every agent plays; such as 1e6."""
    rounds: Annotated[_Wholes, _shown("none")] = ()
    """Round budget R, or none."""
    gap: Annotated[_Numbers, _shown("the instance's own")] = ()
    """Smallest gap that a round budget is spent on."""
    means: Annotated[_Texts, arg(metavar="FILE"), _shown("each seed draws its own")] = ()
    """Fixed means, .csv or .npz."""
    spread: Annotated[_Numbers, _shown("0, agents are alike")] = ()
    """How far the means differ between agents, up to 1."""
    smallest_gap: Annotated[_Numbers, _shown("left to chance")] = ()
    """Smallest gap of the means that each seed draws."""
    fixed_instance: Annotated[_Whole, arg(metavar="SEED"), _shown("off")] = None
    """Give all seeds the means that this seed would draw."""
    seeds: _Whole = 1000
    """How many trials of each cell; with --until, how many at first."""
    root_seed: _Whole = 0
    """Selects all randomness."""
    times: Annotated[_Wholes, _shown("100")] = ()
    """How many slots to record; two or more numbers are the slots themselves."""
    log_time: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Space the recorded slots evenly in log t."""
    keep: Annotated[str, arg(metavar="{curves,summary}")] = "curves"
    """Keep every seed's curve, or moments, a histogram and counts of very many seeds."""
    until: Annotated[_Number, arg(metavar="RELATIVE"), _shown("off")] = None
    """Double the seeds of each cell until its band's half-width is at most this share of the mean;
    needs --keep summary."""
    max_seeds: Annotated[_Whole, _shown("1000000")] = None
    """Most seeds of a cell, with --until."""


@dataclass(frozen=True, kw_only=True)
class SweepCdp(SweepOptions):
    """Centralised: a server hears ceil(p M) agents a round."""

    participation: Annotated[_Numbers, _shown("1")] = ()
    """p, share of the agents that report in a round."""


@dataclass(frozen=True, kw_only=True)
class SweepDdp(SweepOptions):
    """Decentralised: agents flood their means over a graph."""

    graph: Annotated[_Texts, _shown("complete")] = ()
    """complete, star, ring, path, grid, regular-D, random[-P], preferential[-m], or files."""


@dataclass(frozen=True, kw_only=True)
class SweepHdp(SweepOptions):
    """Hybrid: components collect at a sink, sinks report to a server."""

    components: Annotated[
        _Texts, arg(metavar="SPEC"), _shown("five complete graphs, equally large")
    ] = ()
    """Parts SIZExCOUNT:GRAPH joined by +, such as 20x5:star; the sizes sum to --agents."""
    weights: Annotated[_Texts, arg(metavar="{agents,components}"), _shown("agents")] = ()
    """What weighs the same."""


@dataclass(frozen=True, kw_only=True)
class SweepSingle(SweepOptions):
    """Baseline: every agent learns alone, without links."""


@dataclass(frozen=True, kw_only=True)
class SweepFile(Storing):
    """A study file, with the options of how it is run."""

    words: ClassVar[tuple[str, ...]] = ("study",)
    study: Annotated[Positional[str], arg(metavar="STUDY.toml")]
    """The study, a .toml file."""


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """What the commands that read a sweep share."""

    level: Annotated[_Number, _shown("0.95")] = None
    """Confidence level of intervals and bands; after --until, over all looks together."""
    server_price: _Number = 1
    """c1, price of a link between agent and server."""
    peer_price: _Number = 1
    """c2, price of a link between agents."""
    select: Annotated[_Texts, arg(metavar="NAME=VALUE"), _shown("all cells")] = ()
    """Only cells with these values."""


@dataclass(frozen=True, kw_only=True)
class Show(_Reading):
    """A table of what a sweep has found, with intervals."""

    words: ClassVar[tuple[str, ...]] = ("folder",)
    folder: Annotated[Positional[str], arg(metavar="FOLDER")]
    """The sweep's folder."""
    sort: Annotated[str | None, arg(metavar="COLUMN"), _shown("order of the grid")] = None
    """A swept parameter, or regret, rounds, cost, seeds, lost."""
    descending: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Largest first."""


@dataclass(frozen=True, kw_only=True)
class Plot(_Reading):
    """A figure of a sweep: a metric against parameters, curves, or regret against cost."""

    words: ClassVar[tuple[str, ...]] = ("folder",)
    folder: Annotated[Positional[str], arg(metavar="FOLDER")]
    """The sweep's folder."""
    x: Annotated[str | None, arg(metavar="PARAMETER"), _shown("off")] = None
    """Parameter on the horizontal axis."""
    y: Annotated[str | None, arg(metavar="PARAMETER"), _shown("off")] = None
    """Second parameter: a heat map over --x and --y."""
    hue: Annotated[str | None, arg(metavar="PARAMETER"), _shown("off")] = None
    """Parameter told apart by colour."""
    metric: Annotated[str, arg(metavar="{regret,cost,rounds}")] = "regret"
    """What is drawn against --x."""
    curves: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Regret and links over time, a curve for each cell."""
    pareto: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Regret against communication cost, with the front of the cells that none beats in both."""
    out: Annotated[str | None, arg(metavar="FILE"), _shown("FOLDER-KIND.png")] = None
    """Where to write, .png or .pdf; an older file is replaced."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """Results of a sweep as netCDF, Zarr, CSV or Parquet."""

    words: ClassVar[tuple[str, ...]] = ("folder", "file")
    folder: Annotated[Positional[str], arg(metavar="FOLDER")]
    """The sweep's folder."""
    file: Annotated[Positional[str], arg(metavar="FILE")]
    """A new name ending in .nc, .zarr, .csv or .parquet."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What the theorems guarantee, with explicit constants, for one instance."""

    words: ClassVar[tuple[str, ...]] = ("algorithm",)
    algorithm: Annotated[Positional[str], arg(metavar="{cdp,ddp,hdp,single}")]
    """Whose."""
    epsilon: _Number = 1
    """Privacy parameter > 0, or none for no noise."""
    agents: Annotated[_Whole, _shown("50; hdp: 100")] = None
    """M, agents."""
    arms: Annotated[_Whole, _shown("100")] = None
    """K, arms."""
    horizon: _Whole = 100_000
    """T, slots."""
    rounds: Annotated[_Whole, _shown("none")] = None
    """Round budget R."""
    gap: Annotated[_Number, _shown("the instance's own")] = None
    """Smallest gap that a round budget is spent on."""
    participation: _Number = 1
    """p, of cdp."""
    graph: str = "complete"
    """Of ddp."""
    components: Annotated[str | None, arg(metavar="SPEC"), _shown("five complete graphs")] = None
    """Of hdp."""
    means: Annotated[str | None, arg(metavar="FILE"), _shown("drawn")] = None
    """Fixed means, .csv or .npz."""
    spread: Annotated[_Number, _shown("0, agents are alike")] = None
    """How far the means differ between agents, up to 1."""
    smallest_gap: Annotated[_Number, _shown("left to chance")] = None
    """Smallest gap of the means that are drawn."""
    fixed_instance: Annotated[_Whole, arg(metavar="SEED"), _shown("0")] = None
    """The seed whose means they are."""
    root_seed: _Whole = 0
    """Selects all randomness."""


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


_RUNS: dict[str, type] = {"cdp": Cdp, "ddp": Ddp, "hdp": Hdp, "single": Single}
_SWEEPS: dict[str, type] = {
    "cdp": SweepCdp,
    "ddp": SweepDdp,
    "hdp": SweepHdp,
    "single": SweepSingle,
    "STUDY.toml": SweepFile,
}


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


@dataclass(frozen=True)
class Sweep:
    """Run a grid of configurations, resumable at any moment."""

    algorithm: Annotated[
        Annotated[SweepCdp, subcommand("cdp")]
        | Annotated[SweepDdp, subcommand("ddp")]
        | Annotated[SweepHdp, subcommand("hdp")]
        | Annotated[SweepSingle, subcommand("single")]
        | Annotated[SweepFile, subcommand("STUDY.toml")],
        arg(name=""),
    ]


_Top = (
    Annotated[Run, subcommand("run")]
    | Annotated[Sweep, subcommand("sweep")]
    | Annotated[Show, subcommand("show")]
    | Annotated[Plot, subcommand("plot")]
    | Annotated[Export, subcommand("export")]
    | Annotated[Bounds, subcommand("bounds")]
    | Annotated[Doctor, subcommand("doctor")]
)
_COMMANDS: dict[str, type] = {
    "run": Run,
    "sweep": Sweep,
    "show": Show,
    "plot": Plot,
    "export": Export,
    "bounds": Bounds,
    "doctor": Doctor,
}
Command = RunOptions | SweepOptions | SweepFile | Show | Plot | Export | Bounds | Doctor

_HELP = {
    "fmab": """\
Private, communication-limited federated bandits: the algorithms of Li and
Song (IEEE JSAC 40(3), 2022, arXiv 2111.01570), simulated for many seeds.
Every command has its own --help; fmab --version prints the version.

Examples:
  fmab run cdp --epsilon 0.1 0.3 0.5 1 --horizon 1e6
  fmab run ddp --graph ring
  fmab sweep cdp --epsilon 0.1 0.3 1 --participation 0.2 1 --out runs/eps
  fmab show runs/eps
  fmab plot runs/eps --x epsilon --hue participation
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
    "fmab sweep": """\
Runs a grid: several values after an option are swept, every cell with the
same seeds. Results are kept in a folder, chunk by chunk; the same command goes
on where it was interrupted, and computes only what is missing when seeds are
added. A study file says the same as options.

Examples:
  fmab sweep cdp --epsilon 0.1 0.3 0.5 1 --participation 0.2 1 --out runs/eps
  fmab sweep ddp --graph ring star complete --horizon 1e5 1e6 --seeds 200
  fmab sweep study.toml --worker 3/16""",
    "fmab sweep cdp": """\
A grid of CDP-MAB configurations.

Examples:
  fmab sweep cdp --epsilon 0.1 0.3 0.5 1 --participation 0.2 1 --rounds none 3
  fmab sweep cdp --agents 10 100 1000 --seeds 1e5 --keep summary
  fmab sweep cdp --epsilon 0.1 1 --keep summary --until 0.01 --seeds 200""",
    "fmab sweep ddp": """\
A grid of DDP-MAB configurations.

Examples:
  fmab sweep ddp --graph ring star complete --epsilon 0.5 none
  fmab sweep ddp --graph ring --agents 10 20 40 --save-study rings.toml""",
    "fmab sweep hdp": """\
A grid of HDP-MAB configurations.

Examples:
  fmab sweep hdp --components 20x5:star 20x5:ring 10x10:star --agents 100
  fmab sweep hdp --components 20x5:star --agents 100 --epsilon 0.1 1""",
    "fmab sweep single": """\
A grid of single-agent baselines.

Examples:
  fmab sweep single --agents 5 --arms 10 20 --spread 0 1""",
    "fmab sweep STUDY.toml": """\
Runs a study file. What fmab_jax.sweep takes stands at its top and under
[parameters], [problem] and [until]; lists are swept.

Examples:
  fmab sweep study.toml
  fmab sweep study.toml --worker 3/16 --out runs/shared
  fmab sweep study.toml --dry-run""",
    "fmab show": """\
Prints a row per cell: regret at T with its interval, rounds, cost, seeds and
how many of them lost the best arm; of an unfinished sweep, what is there.

Examples:
  fmab show runs/eps
  fmab show runs/eps --sort regret --select participation=1""",
    "fmab plot": """\
Draws the final regret, cost or rounds against a parameter (--x), a heat map
(--x and --y), curves over time (--curves) or regret against cost (--pareto).

Examples:
  fmab plot runs/eps --x epsilon --hue participation
  fmab plot runs/eps --x epsilon --y participation --metric cost
  fmab plot runs/eps --curves --select participation=1 --out curves.pdf
  fmab plot runs/eps --pareto --hue epsilon --server-price 25""",
    "fmab export": """\
Writes the results under a new name: netCDF (.nc) and Zarr (.zarr) with all
dimensions; CSV (.csv) and Parquet (.parquet) as one tidy table, a row for each
cell, seed and slot (of a summary: each cell and slot). Zarr and Parquet need
pip install "fmab_jax[export]".

Examples:
  fmab export runs/eps eps.nc
  fmab export runs/eps eps.csv""",
    "fmab bounds": """\
Prints what the theorems guarantee for one instance: expected regret at T, its
parts, rounds, links, and the probability that the best arm is lost, once
epoch by epoch and once in the paper's closed form (docs/theory.md).

Examples:
  fmab bounds cdp --epsilon 0.5 --horizon 1e6
  fmab bounds ddp --graph ring --agents 20 --smallest-gap 0.1""",
    "fmab doctor": """\
Shows what results can depend on (versions, devices, precision), where
compiled programs are kept, and what a run of a given size would need here.

Examples:
  fmab doctor
  fmab doctor --agents 1000 --seeds 1e5 --times 1000""",
}


def parse(words: list[str]) -> Command | None:
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
    choices = _COMMANDS
    while choices:
        if wants_help and rest[:1] in ([], ["-h"], ["--help"]):
            break
        word = rest[0] if rest else ""
        if choices is _SWEEPS and word.endswith(".toml"):
            chosen, name = SweepFile, f"{name} STUDY.toml"
            break
        if word not in choices:
            near = difflib.get_close_matches(word, choices, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"see {name} --help"
            shown = visible(word) if rest else "no command"
            raise Refusal.line(f"{shown}: must be one of {', '.join(choices)}; {remedy}")
        chosen, name, rest = choices[word], f"{name} {word}", rest[1:]
        choices = {"run": _RUNS, "sweep": _SWEEPS}.get(word, {}) if choices is _COMMANDS else {}
    if wants_help:
        rest = ["--help"]
    else:
        rest = _checked_words(chosen, rest, name)
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
        raise Refusal.line(f"{name}: must be words that make sense; {told}") from None
    return parsed


def _checked_words(command: type, words: Sequence[str], name: str) -> list[str]:
    """Refuses unknown and repeated options, missing and surplus values."""
    takes = {name: "options only"}
    wanted: tuple[str, ...] = getattr(command, "words", ())
    for field in dataclasses.fields(command):
        if field.name in wanted:
            continue
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
        letter = re.match(r"-[a-z]", word, re.I) and number_of(word) is None
        if letter or word.startswith("--"):
            spelling, *values = word.split("=", 1)
            given.append([spelling.replace("_", "-"), *values])
        else:
            given[-1].append(word)
    if wanted:
        named, given[0] = given[0][1:], [name]
        if len(named) != len(wanted):
            shown = " ".join([name, *map(visible, named)])
            words_wanted = " and ".join(word.upper() for word in wanted)
            raise Refusal.line(f"{shown}: must be given {words_wanted}; see {name} --help")
    for place, (option, *values) in enumerate(given):
        if option not in takes:
            near = [known for known in takes if known.startswith(option)]
            near = near or difflib.get_close_matches(option, takes, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"see {name} --help"
            raise Refusal.line(f"{visible(option)}: must be an option of {name}; {remedy}")
        if any(option == other for other, *_ in given[:place]):
            remedy = f"several values go after one {option}"
            if takes[option] != "one or more values":
                remedy = "drop one of them"
            raise Refusal.line(f"{option}: must be given once; {remedy}")
        fits = {"one value": len(values) == 1, "one or more values": bool(values)}
        if not fits.get(takes[option], not values):
            shown = " ".join([option, *map(visible, values)])
            raise Refusal.line(f"{shown}: must be given with {takes[option]}; see {name} --help")
    return list(words)


def visible(word: str) -> str:
    """Returns a word as typed, cut, with what cannot be printed spelt out."""
    return word[:80] if word.isprintable() and word else repr(word[:80])


@contextlib.contextmanager
def spelt(command: Command, **other: str) -> Iterator[None]:
    """Spells the fields in the package's refusals as options: ``--horizon 0`` for ``horizon=0``."""
    names = {field.name: field.name for field in dataclasses.fields(command)} | other
    try:
        yield
    except Refusal as error:
        if error.field not in names:
            raise
        name = names[error.field]
        # A word of the command's own has no option before it.
        option = "" if name in getattr(command, "words", ()) else f"--{name.replace('_', '-')}"
        raise Refusal.line(error.spelt(option)) from None


def equal_parts(agents: int) -> str:
    """Returns the default components: five complete graphs, as equally large as can be."""
    parts = min(5, agents)
    sizes = [agents // parts + (part < agents % parts) for part in range(parts)]
    return ",".join(map(str, sizes)) + ":complete"


def epsilon_text(value: float) -> str:
    """Writes a privacy parameter; infinity is no noise."""
    return "none" if math.isinf(value) else f"{value:.4g}"


def short(number: float) -> str:
    """Writes a number in few characters: four digits, or the whole part where that is longer."""
    if number and not 1e-4 <= abs(number) < 1e12:
        return f"{number:.3e}"
    return f"{number:,.0f}" if abs(number) >= 1000 or number == int(number) else f"{number:.4g}"


def console() -> Any:
    """Returns where tables are printed."""
    from rich.console import Console

    # A terminal decides on colours and width; a file or a pipe gets plain lines of a fixed width.
    width = None if sys.stdout.isatty() else _WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, markup=False)
