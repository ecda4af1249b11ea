"""Progress of a run: a bar on terminals and in notebooks, lines in logs, or nothing."""

from __future__ import annotations

import html
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import NamedTuple

from fmab_jax.errors import flag, format_quantity
from fmab_jax.files import error_stream

# A log gets a line after so many seconds, and after this share of the elapsed time.
_LOG_INTERVAL_S, _LOG_SHARE = 10.0, 0.1
_NOTEBOOK_S = 0.2
# Seconds after which somebody may wonder what a silent run does.
LONG_S = 3.0
# Whether this is within a block of `say_later`.
_IS_WITHIN: ContextVar[bool] = ContextVar("_IS_WITHIN", default=False)


class Plan(NamedTuple):
    """The plan of a sweep."""

    cells: int  # of the grid
    seeds: int  # of each configuration; with a precision, at first
    until: bool  # whether a precision decides on further seeds
    distinct: int  # different cells
    layouts: int  # programs to compile, one per array shape
    trials: int  # (cell, seed) pairs in all
    missing: int  # trials that this process will compute
    blocks: int  # chunks that this process will compute
    disk_bytes: int  # of the missing chunks of all workers
    free_bytes: int  # of the disk; 0 without a store
    memory_bytes: int  # of open chunks, and of the results without a store
    available_bytes: int  # of memory, 0 if unknown
    workers: int = 0  # most workers that can get a chunk


class Progress:
    """Reports the progress of a run; without a medium it only warns."""

    _medium, _brief, _silent, _note, _has_warned, _has_noted = "", False, False, "", False, False
    _done = _total = _cells = 0
    # (trials, time) after the first batch, since its time includes compilation.
    _first: tuple[int, float] | None = None

    def __init__(self, medium: str = "", *, brief: bool = False, silent: bool = False) -> None:
        """Starts a report.

        Args:
            medium: See `choose_medium`.
            brief: Whether only seeds are counted, for a single configuration.
            silent: Whether not even a long compilation is reported.
        """
        self._medium, self._brief, self._silent = medium, brief, silent
        self._noun = "seeds" if brief else "trials"
        self._start_time = self._last_time = time.perf_counter()
        if medium == "notebook":
            from IPython.display import DisplayHandle

            blank = {"text/plain": "", "text/html": ""}
            self._cell = DisplayHandle()
            self._cell.display(blank, raw=True)
        if medium == "terminal":
            from rich import progress as bars
            from rich.console import Console

            columns = (
                bars.TextColumn("{task.description}"),
                bars.BarColumn(),
                bars.MofNCompleteColumn(),
                bars.TimeRemainingColumn(),
                bars.TextColumn("{task.fields[note]}"),
            )
            console = Console(file=error_stream())
            self._bar = bars.Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task(self._noun, start=False, total=None, note="")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the bar, or writes the last line."""
        if self._medium == "terminal":
            self._bar.stop()
        elif self._medium and self._done:
            self._show_status()

    def report_plan(self, plan: Plan) -> None:
        """Shows the plan, before any compilation."""
        self._cells = plan.distinct
        self.set_total(plan.missing)
        if not self._brief:
            if self._medium == "terminal":
                self._bar.start()
            self.show_line(describe_plan(plan))

    def report_damage(self, line: str) -> None:
        """Shows that a damaged chunk will be computed again."""
        if self._medium:
            self.show_line(line)
        else:
            warnings.warn(line, stacklevel=2)

    def report_workers(self, number: int, threads: int) -> None:
        """Shows a new number of workers and threads of a cluster."""
        self.show_line(describe_workers(number, threads))
        if not threads and not self._has_warned and not self._medium:
            self._has_warned = True
            text = "the sweep waits for workers: the Dask scheduler has none"
            warnings.warn(text, stacklevel=2)

    def set_total(self, trials: int) -> None:
        """Sets the total number of trials; it may grow."""
        self._total = trials
        if self._medium == "terminal":
            self._bar.update(self._task, total=trials)

    def report_compilation(self, layout: int, layouts: int) -> None:
        """Shows that a program is about to be compiled."""
        if not self._brief:
            self.show_line(
                f"compiling program {layout} of {layouts}", f"compiling {layout}/{layouts}"
            )

    def note_compilation(self, algorithm: str) -> AbstractContextManager[None]:
        """Says once, if the block takes long, that it compiles, where nothing else said so."""
        if self._silent or self._has_noted or (self._medium and not self._brief):
            return nullcontext()

        def note() -> str:
            self._has_noted = True
            line = f"compiling a program for {algorithm} ({LONG_S:.0f} s so far)"
            if self._medium == "notebook":
                self.show_line(line)
                return ""
            return f"fmab: {line}\n"

        return say_later(note)

    def advance(self, trials: int) -> None:
        """Counts computed trials."""
        self._done += trials
        now = time.perf_counter()
        if self._brief and self._first is None and self._done >= self._total:
            if self._has_noted and self._medium == "notebook":
                self._cell.update({"text/plain": "", "text/html": ""}, raw=True)
            self._medium = ""  # a run of one batch has no progress
        self._first = self._first or (self._done, now)
        if self._medium == "terminal":
            self._bar.start()
            self._bar.start_task(self._task)
            self._bar.update(self._task, description=self._noun, advance=trials)
        elif self._medium:
            # A long log gets fewer lines.
            interval = max(_LOG_INTERVAL_S, _LOG_SHARE * (now - self._start_time))
            if now - self._last_time >= (_NOTEBOOK_S if self._medium == "notebook" else interval):
                self._last_time = now
                self._show_status()

    def report_chunk(self, cells_done: int) -> None:
        """Shows, after a chunk is written, how many configurations are complete."""
        if not self._brief and self._medium:
            self._note = f"{cells_done:,} of {format_quantity(self._cells, 'configuration')} done"
        if self._medium == "terminal":
            self._bar.update(self._task, note=self._note)

    @property
    def is_shown(self) -> bool:
        """Whether anybody sees lines."""
        return bool(self._medium)

    def show_line(self, line: str, short: str = "") -> None:
        """Shows a line; a bar shows the short text instead, if there is one."""
        if self._medium == "lines":
            # One write, so that processes with a common log do not mix lines.
            error_stream().write(line + "\n")
        elif self._medium == "notebook":
            share = self._done / max(1, self._total)
            bar = f'<progress value="{share:.4f}" max="1"></progress> ' * (self._total > 0)
            self._cell.update({"text/plain": line, "text/html": bar + html.escape(line)}, raw=True)
        elif self._medium and short:
            self._bar.update(self._task, description=short)
        elif self._medium:
            self._bar.console.print(line, highlight=False, markup=False)

    def _show_status(self) -> None:
        """Shows the computed trials, the rate and the remaining time."""
        parts = [f"{self._done:,} of {self._total:,} {self._noun}"]
        first, start = self._first or (0, 0.0)
        trials_left = self._total - self._done
        if trials_left > 0 and self._done > first:
            rate = (self._done - first) / max(time.perf_counter() - start, 1e-9)
            parts += [f"{rate:,.3g} {self._noun}/s", f"{format_duration(trials_left / rate)} left"]
        self.show_line(", ".join([*parts, self._note] if self._note else parts))


def choose_medium(visible: bool | None) -> str:
    """Returns where progress is shown: "notebook", "terminal", "lines", or "" for nowhere.

    Args:
        visible: Whether it is shown; None for terminals and notebooks only.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    terminal, notebook = error_stream().isatty(), getattr(shell, "kernel", None) is not None
    if not (terminal or notebook if visible is None else visible):
        return ""
    return "notebook" if notebook else "terminal" if terminal else "lines"


def resolve_progress(progress: Progress | bool | None, *, brief: bool = False) -> Progress:
    """Returns a `Progress` unchanged, or makes one; a bool or None as in `choose_medium`."""
    if isinstance(progress, Progress):
        return progress
    if progress is not None:
        flag("progress", progress, "or a Progress")
    return Progress(choose_medium(progress), brief=brief, silent=progress is False)


@contextmanager
def say_later(write_line: Callable[[], str]) -> Iterator[None]:
    """Writes a line to standard error if the block takes long; not inside another such block."""
    is_inner = _IS_WITHIN.get()
    timer = threading.Timer(LONG_S, lambda: error_stream().write(write_line()))
    timer.daemon = True
    if not is_inner:
        timer.start()
    token = _IS_WITHIN.set(True)
    try:
        yield
    finally:
        _IS_WITHIN.reset(token)
        timer.cancel()


def describe_plan(plan: Plan) -> str:
    """Returns a plan in a line or two."""
    cells = format_quantity(plan.cells, "configuration")
    if plan.distinct != plan.cells:
        cells += f" ({plan.distinct:,} different)"
    least = "at least " * plan.until
    done = f", {plan.missing:,} of them to do" if plan.missing != plan.trials else ""
    seeds, trials = format_quantity(plan.seeds, "seed"), format_quantity(plan.trials, "trial")
    lines = f"{cells} x {least}{seeds} = {trials}{done}: "
    lines += f"{format_quantity(plan.layouts, 'compilation')}, "
    lines += f"{format_quantity(plan.blocks, 'chunk')}, "
    if plan.free_bytes:
        lines += f"{format_size(plan.disk_bytes)} of {format_size(plan.free_bytes)} free disk, "
    memory = f"{format_size(plan.memory_bytes)} of {format_size(plan.available_bytes)} free memory"
    return lines + memory


def describe_workers(number: int, threads: int) -> str:
    """Returns a line about the workers of a cluster."""
    if not threads:
        return "waiting for workers"
    workers = format_quantity(number, "worker")
    return f"computing on {workers} with {format_quantity(threads, 'thread')}"


def format_size(size: float) -> str:
    """Formats a number of bytes."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{float(f'{size / factor:.3g}'):,g} {unit}"
    return f"{size:.0f} bytes"


def format_duration(seconds: float) -> str:
    """Formats a duration."""
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
