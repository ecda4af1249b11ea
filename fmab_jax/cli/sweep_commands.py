"""The commands ``fmab sweep``, ``show``, ``plot`` and ``export``."""

from __future__ import annotations

import math
import os
import re
import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fmab_jax.cli.terminal import (
    Export,
    Plot,
    Show,
    SweepFile,
    SweepOptions,
    console,
    epsilon_text,
    equal_parts,
    short,
    spelt,
    visible,
)
from fmab_jax.errors import Refusal, count, refuse
from fmab_jax.files import told
from fmab_jax.sweeps.progress import counted

if TYPE_CHECKING:
    import xarray as xr

# How long a batch may take to end after Ctrl-C or a request to stop.
_GRACE_S = 8.0
_MOST_ROWS = 40
_MOST_CURVES = 28


class Stopped(BaseException):
    """Ctrl-C, or a request to end.

    Attributes:
        signal: Its number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


class OutOfSpace(Exception):
    """A disk or file gave out during a sweep; says what to do."""


def sweep(command: SweepOptions | SweepFile, name: str, words: list[str]) -> int:
    """Runs a sweep; returns the exit status."""
    from fmab_jax.sweeps import runner as sweeps
    from fmab_jax.sweeps import study_file

    if isinstance(command, SweepFile):
        with spelt(command):
            document = study_file.read_study(command.study)
        label = Path(command.study).stem
        if command.out is None and not re.fullmatch(r"\w[\w.-]{0,99}", label, re.ASCII):
            refuse("out", None, "given for a study of such a name", "it would name the folder")
    else:
        with spelt(command):
            document = _document(command, name)
        document["parameters"] = _as_typed(document["parameters"], words)
        label = name
    renamed = {"store": "out"}
    if isinstance(command, SweepOptions):
        renamed |= {"problem_gap": "smallest_gap", "relative": "until"}
    with spelt(command, **renamed):
        study = study_file.study_of(document)
        worker = _worker(command.worker)
        spots = study.spots  # refuses what does not go together
    if command.out is None:
        # Another study gets another folder; the same one goes on in its own.
        label = label if isinstance(command, SweepFile) else f"{label}-{study.hash[:8]}"
        out = os.path.join("runs", label)
    elif not command.out:
        refuse("out", command.out, "the name of a folder", "leave it out for the default")
    else:
        out = command.out
    if command.save_study is not None:
        with spelt(command):
            print("wrote", study_file.write_study(document, command.save_study))
    with spelt(command, **renamed), _stoppable(words):
        data = sweeps.run(
            study,
            store=out,
            worker=worker,
            allow_changes=command.allow_changes,
            chunk=command.chunk,
            progress=True,
            dry=command.dry_run,
        )
    if command.dry_run:
        return 0
    missing = data.attrs.get("missing_trials")
    if missing:
        print(f"{out}: this worker is done; at least {missing:,} trials are left to the others")
        return 0
    elapsed = data.attrs["elapsed_s"]
    compiled = data.attrs["compilations"]
    done = f"{counted(len(spots), 'cell')}, {counted(compiled, 'compilation')}"
    print(f"{out}: {done}, {elapsed:.3g} s")
    if data.seeds.size <= _MOST_ROWS and int(data.seeds.min()) > 1:
        _print_cells(data, Show(folder=out))
    print(f"next: fmab show {shlex.quote(out)}, fmab plot {shlex.quote(out)} --help")
    return 0


def show(command: Show) -> None:
    """Prints a row per cell."""
    _print_cells(_opened(command), command)


def plot(command: Plot, written: list[Path]) -> None:
    """Draws and writes a figure."""
    from fmab_jax.plots import parameters as sweep_plots
    from fmab_jax.plots import runs as plots
    from fmab_jax.sweeps import results

    kinds = [command.curves, command.pareto, command.x is not None]
    if sum(kinds) != 1:
        raise Refusal.line("fmab plot: must be given one of --x, --curves, --pareto; see --help")
    if command.y is not None and command.x is None:
        raise Refusal.line(f"--y {visible(command.y)}: must be given with --x; add it")
    if command.hue is not None and (command.curves or command.y is not None):
        other = "--curves" if command.curves else "--y"
        raise Refusal.line(f"--hue {visible(command.hue)}: must be left out with {other}; drop one")
    if command.metric != "regret" and command.x is None:
        raise Refusal.line(f"--metric {visible(command.metric)}: must be given with --x; drop one")
    shown = [name for name in (command.x, command.y, command.hue) if name is not None]
    kind = "curves" if command.curves else "-".join(["pareto"] * command.pareto + shown)
    default = f"{os.path.normpath(command.folder)}-{kind}.png"
    path = Path(command.out if command.out is not None else default)
    data = _selected(_opened(command), command.select)
    dims = [str(name) for name in data.seeds.dims]
    for option, name in (("x", command.x), ("y", command.y), ("hue", command.hue)):
        if name is not None and name not in dims:
            allowed = "one of " + ", ".join(dims) if dims else "left out, as nothing is swept"
            raise Refusal.line(f"--{option} {visible(name)}: must be {allowed}; see --help")
    open_dims = [n for n in dims if data.sizes[n] > 1 and n not in shown]
    if command.x is not None and open_dims:
        left = ", ".join(f"{name} ({data.sizes[name]} values)" for name in open_dims)
        example = " ".join(f"{name}={_label(data[name].values.tolist()[0])}" for name in open_dims)
        raise Refusal.line(
            f"--x {command.x}: must leave no parameter open, but {left}; add --select {example}"
        )
    if command.curves and data.seeds.size > _MOST_CURVES:
        raise Refusal.line(
            f"--curves: must show at most {_MOST_CURVES} of {data.seeds.size} cells; add --select"
        )
    prices = {"server_price": command.server_price, "peer_price": command.peer_price}
    if command.curves:
        with spelt(command):
            level = 0.95 if command.level is None else command.level
            runs = _runs(data)
            figure = plots.plot_runs(runs, level=level, **prices)
    else:
        with spelt(command):
            table = results.final_table(data, level=command.level, **prices).squeeze()
            if command.x is None:
                figure = sweep_plots.plot_pareto(table, command.hue)
            elif command.y is not None:
                figure = sweep_plots.plot_heat(table, command.x, command.y, metric=command.metric)
            else:
                figure = sweep_plots.plot_parameter(
                    table, command.x, command.hue, metric=command.metric
                )
    with spelt(command, path="out"):
        written.append(plots.save_figure(figure, path))
    print("wrote", path)


def export(command: Export, written: list[Path]) -> None:
    """Writes the results in another format."""
    from fmab_jax.sweeps import exports

    data = _opened(command, partial=False)
    with spelt(command, path="file"):
        written.append(exports.export(data, command.file))
    print("wrote", command.file)


def _opened(command: Show | Plot | Export, partial: bool = True) -> xr.Dataset:
    from fmab_jax.sweeps import results

    with spelt(command, store="folder"):
        return results.open_sweep(command.folder, partial=partial)


def _document(command: SweepOptions, name: str) -> dict[str, Any]:
    """Returns the study file that says the same as the options."""

    def one_or_more(values: tuple[Any, ...]) -> Any:
        return values[0] if len(values) == 1 else list(values)

    if command.epsilon and command.epsilon_message:
        value = command.epsilon_message[0]
        raise Refusal.line(f"--epsilon-message {value}: must be given without --epsilon; drop one")
    own = ("participation", "graph", "components", "weights")
    parameters = {}
    for option in ("epsilon", "epsilon_message", "rounds", "gap", *own):
        values = getattr(command, option, ())
        if option == "epsilon_message":
            # None would mean that it is not given.
            values = tuple(math.inf if value is None else value for value in values)
        if values:
            parameters[option] = one_or_more(values)
    if not command.epsilon_message:
        parameters.setdefault("epsilon", 1)
    problem: dict[str, Any] = {}
    for option in ("agents", "arms", "spread", "means"):
        if getattr(command, option):
            problem[option] = one_or_more(getattr(command, option))
    if command.smallest_gap:
        problem["gap"] = one_or_more(command.smallest_gap)
    if command.fixed_instance is not None:
        problem["fixed_instance"] = command.fixed_instance
    if name == "hdp":
        if command.means and "agents" not in problem and "components" not in parameters:
            raise Refusal.line("--means: must be given with --components or --agents here; add one")
        if not command.means:
            problem.setdefault("agents", 100)
        if "components" not in parameters:
            agents = problem["agents"]
            if isinstance(agents, list):
                remedy = "their sizes depend on --agents; give one number of agents"
                raise Refusal.line(
                    f"--components none: must be given with several --agents; {remedy}"
                )
            agents = count("agents", agents, 1, 10**7, "give the number of agents M")
            parameters["components"] = equal_parts(agents)
    if not command.means:
        # Written out, so that a saved study does not depend on defaults.
        problem = {"agents": 50, "arms": 100} | problem
    document: dict[str, Any] = {
        "algorithm": name,
        "horizon": one_or_more(command.horizon) if command.horizon else 100_000,
        "seeds": command.seeds,
        "root_seed": command.root_seed,
        "keep": command.keep,
        "spacing": "log" if command.log_time else "linear",
    }
    if command.times:
        document["times"] = one_or_more(command.times)
    document |= {"parameters": parameters, "problem": problem}
    if command.until is not None:
        document["until"] = {"relative": command.until}
        if command.max_seeds is not None:
            document["until"]["max_seeds"] = command.max_seeds
    elif command.max_seeds is not None:
        raise Refusal.line(f"--max-seeds {command.max_seeds}: must be given with --until; add it")
    return document


def _as_typed(parameters: dict[str, Any], words: list[str]) -> dict[str, Any]:
    """Returns parameters in the order of their options, which is that of the dimensions."""
    options = (word.partition("=")[0] for word in words if word.startswith("--"))
    typed = [option[2:].replace("-", "_") for option in options]
    place = {name: typed.index(name) if name in typed else len(typed) for name in parameters}
    return dict(sorted(parameters.items(), key=lambda item: place[item[0]]))


def _worker(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        refuse("worker", text, "I/N with I from 1 to N", "such as 3/16")
    return int(found[1]), int(found[2])


@contextmanager
def _stoppable(words: list[str]) -> Iterator[None]:
    """Has Ctrl-C and a request to end (SIGTERM) say how to go on; whatever is written stays."""
    again = "fmab " + shlex.join(words)

    def say() -> None:
        told().write(f"fmab: stopped; what is computed is kept; go on with: {again}\n")

    def give_up(number: int) -> None:
        say()
        os._exit(128 + number)

    def stop(number: int, _: Any) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        # A batch, or a compilation, cannot be interrupted: after a while the process just ends.
        timer = threading.Timer(_GRACE_S, give_up, (number,))
        timer.daemon = True
        timers.append(timer)
        timer.start()
        raise Stopped(number)

    signals = [signal.SIGINT, signal.SIGTERM]
    timers: list[threading.Timer] = []
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread is told of signals.
        return
    before = {number: signal.signal(number, stop) for number in signals}
    try:
        yield
    except Stopped:
        say()
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        kept = f"what is computed is kept; go on with: {again}"
        raise OutOfSpace(f"{where}{error.strerror or error}; {kept}") from error
    finally:
        # What could keep it from ending has ended.
        for timer in timers:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


def _selected(data: xr.Dataset, select: tuple[str, ...]) -> xr.Dataset:
    """Keeps the cells with the values asked for, such as ("epsilon=0.5", "rounds=none")."""
    dims = list(data.seeds.dims)
    chosen: dict[str, set[int]] = {}
    for text in select:
        name, _, value = text.partition("=")
        if name not in dims:
            allowed = "one of " + ", ".join(map(str, dims)) if dims else "left out"
            raise Refusal.line(f"--select {visible(text)}: must be {allowed}; write NAME=VALUE")
        labels = data[name].values.tolist()
        matches = [i for i, label in enumerate(labels) if _same(label, value)]
        if not matches:
            listed = ", ".join(map(_label, labels))
            raise Refusal.line(
                f"--select {visible(text)}: must be one of {listed[:200]}; choose one"
            )
        chosen.setdefault(name, set()).add(matches[0])
    return data.isel({name: sorted(places) for name, places in chosen.items()})


def _same(label: Any, text: str) -> bool:
    if str(label) == text or (label == "none" and text.lower() in ("none", "inf")):
        return True
    try:
        return not isinstance(label, str) and float(label) == float(text)
    except ValueError:
        return False


def _label(label: Any) -> str:
    if isinstance(label, str):
        return label
    number = float(label)
    if number.is_integer():
        return str(int(number))
    # Different values must not look the same.
    text = epsilon_text(number)
    return text if math.isinf(number) or float(text) == number else repr(number)


def _runs(data: xr.Dataset) -> dict[str, xr.Dataset]:
    """Returns the cells as runs for `plot_runs`, by their labels."""
    if "regret" not in data:
        refuse("keep", "summary", "'curves' for --curves", "draw --x, or keep curves")
    from fmab_jax.plots.parameters import told

    dims = list(data.seeds.dims)
    runs = {}
    facts = ("agents", "arms", "horizon", "epsilon")
    for place in np.ndindex(data.seeds.shape):
        cell = data.isel(dict(zip(dims, place, strict=True)))
        cell = cell.isel(seed=slice(int(cell.seeds)))
        if "slot" in cell.coords:
            cell = cell.assign_coords(time=("time", cell.slot.values))
        swept = [name for name in dims if data.sizes[name] > 1]
        label = ", ".join(told(n, cell[n].item()) for n in swept)
        rest = [n for n in dims if n not in swept and n not in facts]
        own: dict[str, Any] = {"setting": [told(n, cell[n].item()) for n in rest]}
        own |= {name: cell[name].item() for name in facts if name in cell.coords}
        if own.get("epsilon") == "none":
            own["epsilon"] = math.inf
        runs[label or str(data.attrs["algorithm"])] = cell.assign_attrs(own)
    return runs


def _print_cells(data: xr.Dataset, command: Show) -> None:
    """Prints a row per cell: what was lost, what it cost and how sure that is."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from fmab_jax.sweeps.results import final_table

    data = _selected(data, command.select)
    with spelt(command):
        table = final_table(
            data,
            level=command.level,
            server_price=command.server_price,
            peer_price=command.peer_price,
        )
    dims = list(table.seeds.dims)
    rows = []
    for place in np.ndindex(table.seeds.shape):
        cell = table.isel(dict(zip(dims, place, strict=True)))
        values = {name: cell[name].item() for name in (*dims, *table.data_vars)}
        rows.append(values)
    columns = {name: name for name in dims}
    columns |= {"regret": "regret", "cost": "cost", "seeds": "seeds", "lost": "best_arm_lost"}
    # A swept round budget is called rounds as well; then the rounds that were made are not.
    columns.setdefault("rounds", "rounds_made")
    if command.sort is not None:
        if command.sort not in columns:
            allowed = "one of " + ", ".join(columns)
            raise Refusal.line(
                f"--sort {visible(command.sort)}: must be {allowed}; choose a column"
            )
        key = columns[command.sort]
        # NaN, of cells with less than two seeds, has no place in an order: they come last.
        known = [row for row in rows if row[key] == row[key]]
        unknown = [row for row in rows if row[key] != row[key]]
        known.sort(key=lambda row: _order(row[key]), reverse=command.descending)
        rows = known + unknown
    level = f"{100 * table.attrs['level']:.6g} %"
    facts = [str(table.attrs["algorithm"])]
    facts += [
        f"{name} {epsilon_text(value) if name == 'epsilon' else short(value)}"
        for name in ("epsilon", "agents", "arms", "horizon")
        if (value := table.attrs.get(name)) is not None
    ]
    shown = Table(
        title=", ".join(facts),
        title_justify="left",
        title_style="",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    made = "rounds\nmade" if "rounds" in dims else "rounds"
    headings = (*dims, "regret\nat T", f"+-\n{level}", "+-, %\nof it", made, "cost", "seeds")
    for heading in (*headings, f"best arm lost\n{level}"):
        shown.add_column(heading, justify="right", no_wrap=heading not in dims)
    for row in rows:
        if not row["seeds"]:
            continue
        shown.add_row(*(_label(row[name]) for name in dims), *_found(row))
    out = console()
    out.print(shown)
    prices = f"{table.attrs['server_price']:g} per server link, {table.attrs['peer_price']:g} "
    prices += f"per peer link ({table.attrs['meter_bound']})"
    out.print(
        "\nRegret, rounds and cost are means over the seeds; +- half the "
        f"{table.attrs['description']}. "
        f"Best arm lost: seeds, with the {level} Clopper-Pearson interval. Cost: {prices}."
    )
    empty = int((table.seeds == 0).sum())
    if empty:
        out.print(f"{counted(empty, 'cell')} not begun yet: run the sweep's command again.")


def _order(value: Any) -> tuple[bool, Any]:
    """Sorts numbers, then texts."""
    return isinstance(value, str), value


def _found(row: dict[str, Any]) -> list[str]:
    seeds = int(row["seeds"])
    if seeds < 2:  # no interval
        return ["-", "-", "-", "-", "-", str(seeds), "-"]
    half = (row["regret_upper"] - row["regret_lower"]) / 2
    lost = f"{int(row['best_arm_lost'])}"
    lost += f" [{row['best_arm_lost_lower']:.2g}, {row['best_arm_lost_upper']:.2g}]"
    return [
        short(row["regret"]),
        short(half),
        f"{100 * half / row['regret']:.2g}" if row["regret"] else "0",
        short(row["rounds_made"]),
        short(row["cost"]),
        f"{seeds:,}",
        lost,
    ]
