"""The command line ``fmab``: runs, sweeps, tables and figures; a look at this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
import os
import platform
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmab_jax.cli import sweep_commands
from fmab_jax.cli.terminal import (
    Bounds,
    Doctor,
    Export,
    Plot,
    RunOptions,
    Show,
    console,
    epsilon_text,
    equal_parts,
    parse,
    short,
    spelt,
    visible,
)
from fmab_jax.errors import Damaged, Refusal, count, price, refuse
from fmab_jax.files import drop_unwritable_errors, hold_standard_streams

if TYPE_CHECKING:
    import xarray as xr

    from fmab_jax.algorithms.families.elimination import Algorithm
    from fmab_jax.core.problems import Problem
    from fmab_jax.run.simulation import Estimate


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
    if ours:
        hold_standard_streams()
    try:
        return _main(arguments, ours)
    finally:
        if ours:
            drop_unwritable_errors()


def _main(arguments: Sequence[str] | None, ours: bool) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    written: list[Path] = []
    try:
        command = parse(words)
        if command is None:
            return 0
        if ours:
            if isinstance(sys.stdout, io.TextIOWrapper):
                # A path may hold letters that the output's encoding lacks.
                sys.stdout.reconfigure(errors="backslashreplace")
            _use_compilation_cache()
        if isinstance(command, Doctor):
            _doctor(command)
        elif isinstance(command, Bounds):
            _bounds(command)
        elif isinstance(command, RunOptions):
            _simulate(command, words[1], written)
        elif isinstance(command, Show):
            sweep_commands.show(command)
        elif isinstance(command, Plot):
            sweep_commands.plot(command, written)
        elif isinstance(command, Export):
            sweep_commands.export(command, written)
        else:
            sweep_commands.sweep(command, words[1], words)
        # What cannot be shown is found out here, not while the interpreter ends.
        sys.stdout.flush()
        return 0
    except Refusal as error:
        line = str(error)
        return _fail(2, f"{line}; {_kept(written)}" if written else line)
    except sweep_commands.Stopped as stopped:
        return 128 + stopped.signal
    except sweep_commands.OutOfSpace as error:
        return _fail(1, str(error))
    except Damaged as error:
        return _fail(1, f"{error}; run the sweep again: it mends what is damaged")
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
    with contextlib.suppress(OSError):
        print("fmab:", " ".join(line.split()), file=sys.stderr)
    return status


def _kept(written: Sequence[Path]) -> str:
    return f"whole files written: {', '.join(map(str, written))}" if written else "nothing written"


def _simulate(command: RunOptions, name: str, written: list[Path]) -> None:
    """Runs, prints and writes; every bad value is refused before the first trial."""
    import numpy as np
    import xarray as xr

    from fmab_jax.analysis.bands import confidence_band
    from fmab_jax.run import netcdf as store
    from fmab_jax.run import simulation

    problem = _problem(command, 100 if name == "hdp" else 50)
    with spelt(command, kind="band"):
        runs = _epsilons(command)
        algorithms = {
            label: _algorithm(command, name, run, problem.agents) for label, run in runs.items()
        }
        remedy = "an interval needs at least 2 seeds"
        seeds = count("seeds", command.seeds, 2, simulation.MAX_SEEDS, remedy)
        for field in ("server_price", "peer_price"):
            price(field, getattr(command, field))
        nothing = xr.DataArray(np.zeros((2, 1)), dims=("seed", "time"))
        confidence_band(nothing, command.level, command.band)
        figure_path, data_paths = _paths(command, name, list(runs))
    times = command.times or (100,)
    results = {}
    for label, algorithm in algorithms.items():
        with spelt(command):
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
            written.append(store.save(results[label], data_paths[label], overwrite=True))
    if command.figure:
        from fmab_jax.plots import runs as plots

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


def _algorithm(command: RunOptions, name: str, epsilon: dict[str, Any], agents: int) -> Algorithm:
    """Binds the algorithm's own options, those that not every run has, to its maker."""
    from fmab_jax.algorithms.families import elimination

    shared = {field.name for field in dataclasses.fields(RunOptions)}
    own = {f.name: getattr(command, f.name) for f in dataclasses.fields(command)}
    own = {option: value for option, value in own.items() if option not in shared}
    if own.get("components", "") is None:
        own["components"] = equal_parts(agents)
    make = getattr(elimination, f"{name}_mab")
    return make(**epsilon, rounds=command.rounds, gap=command.gap, **own)


def _epsilons(command: RunOptions) -> dict[str, dict[str, Any]]:
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
        label = prefix + ("none" if value == math.inf else visible(str(value)))
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


def _paths(command: RunOptions, name: str, labels: Sequence[str]) -> tuple[Path, dict[str, Path]]:
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


def _problem(command: RunOptions | Bounds, agents: int) -> Problem:
    from fmab_jax.core.problems import Problem

    drawn = {
        "--arms": command.arms,
        "--spread": command.spread,
        "--smallest-gap": command.smallest_gap,
        "--fixed-instance": command.fixed_instance,
    }
    with spelt(command):
        if command.means is not None:
            for option, value in drawn.items():
                if value is not None:
                    reason = "which fixes them; drop one"
                    raise Refusal.line(f"{option} {value}: must be left out with --means, {reason}")
            return Problem.from_file(command.means, command.agents)
    with spelt(command, gap="smallest_gap", seed="fixed_instance"):
        problem = Problem.heterogeneous(
            agents if command.agents is None else command.agents,
            100 if command.arms is None else command.arms,
            0.0 if command.spread is None else command.spread,
            command.smallest_gap,
        )
        if command.fixed_instance is not None:
            problem = problem.fixed(command.fixed_instance, command.root_seed)
    return problem


def _print_table(results: dict[str, xr.Dataset], command: RunOptions) -> None:
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
    out = console()
    out.print(table)
    prices = f"{command.server_price:g} per server link, {command.peer_price:g} per peer link"
    prices += f" ({facts['meter_bound']})" * (facts["meter_bound"] in _meters(first))
    compiled = sum(data.attrs["compile_s"] for data in results.values())
    out.print(
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


def _cells(data: xr.Dataset, command: RunOptions) -> tuple[str, ...]:
    """Returns a run's row of the table."""
    from fmab_jax.analysis.bands import confidence_band
    from fmab_jax.run.simulation import communication_cost

    end = {"time": -1}
    band = confidence_band(data.regret.isel(time=[-1]), command.level, "pointwise").isel(end)
    cost = communication_cost(data.isel(end), command.server_price, command.peer_price)
    links = [
        f"{short(float(series.isel(end).mean()))} {meter}"
        for meter, series in _meters(data).items()
    ]
    lost = [float(band[f"best_arm_lost_{side}"]) for side in ("lower", "upper")]
    elapsed = data.attrs["elapsed_s"] - data.attrs["compile_s"]
    return (
        f"{epsilon_text(data.attrs['epsilon'])}\n{epsilon_text(data.attrs['epsilon_message'])}",
        f"{short(float(band['mean']))}\n+- {short(float(band['upper'] - band['mean']))}",
        short(float(data.rounds.mean())),
        "\n".join(links) or "none",
        short(float(cost.mean())),
        f"{int(band.best_arm_lost)}/{int(band.seeds)}\n[{lost[0]:.3g}, {lost[1]:.3g}]",
        f"{elapsed:.2g} s\n{short(data.attrs['trials_per_s'])}",
    )


def _doctor(command: Doctor) -> None:
    """Prints what results can depend on, and what a run of the given size would need."""
    with spelt(command):
        import jax

        from fmab_jax.algorithms.families.elimination import cdp_mab
        from fmab_jax.core.problems import Problem
        from fmab_jax.run import simulation

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


def _bounds(command: Bounds) -> None:
    """Prints the theorems' bounds for one instance."""
    import numpy as np

    from fmab_jax.algorithms.families import elimination
    from fmab_jax.analysis import theory
    from fmab_jax.core import problems

    name = command.algorithm
    if name not in ("cdp", "ddp", "hdp", "single"):
        raise Refusal.line(f"{visible(name)}: must be one of cdp, ddp, hdp, single; see --help")
    problem = _problem(command, 100 if name == "hdp" else 50)
    own: dict[str, Any] = {
        "cdp": {"participation": command.participation},
        "ddp": {"graph": command.graph},
        "hdp": {"components": command.components or equal_parts(problem.agents)},
    }.get(name, {})
    with spelt(command):
        make = getattr(elimination, f"{name}_mab")
        algorithm = make(command.epsilon, rounds=command.rounds, gap=command.gap, **own)
        exchange = algorithm.exchange(problem.agents)
        horizon = count("horizon", command.horizon, 1, 10**12, "give T, such as 1e6")
        instance = problem if problem.means is not None else problem.fixed(0, command.root_seed)
        means = np.asarray(instance.means).mean(axis=0)
        gaps = means.max() - means
        gaps[gaps < problems.TIE] = 0.0
        options: dict[str, Any] = {"heterogeneous": not instance.homogeneous}
        if command.rounds is not None:
            smallest = float(gaps[gaps > 0].min(initial=1.0))
            options |= {"rounds": algorithm.rounds, "gap": algorithm.gap or smallest}
        found = [
            bound(gaps, exchange, horizon, command.epsilon, **options)
            for bound in (theory.bounds, theory.closed_form)
        ]
    print(
        f"{name.upper()}-MAB, agents M = {problem.agents:,}, arms K = {problem.arms:,}, slots T = "
        f"{horizon:,}, smallest gap {gaps[gaps > 0].min(initial=1.0):.4g}\n"
    )
    print(f"{'':<22}{'epoch by epoch':>16}{'closed form':>16}")
    for field in found[0]._fields:
        values = [float(getattr(each, field)) for each in found]
        row = "".join(f"{short(value) if value < 1e15 else 'unbounded':>16}" for value in values)
        print(f"{field.replace('_', ' '):<22}{row}")


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
