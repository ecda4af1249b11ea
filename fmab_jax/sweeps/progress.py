"""Progress of a run: a bar on terminals, lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from datetime import timedelta
from typing import NamedTuple

from rich.filesize import decimal

from fmab_jax.errors import flag, format_quantity
from fmab_jax.files import error_stream

# A log gets a line after so many seconds, and after this share of the elapsed time.
_LOG_INTERVAL_S, _LOG_SHARE = 10.0, 0.1
# The rate is that of the last so many seconds.
_MEMORY_S = 3600.0
# Seconds after which somebody may wonder what a silent run does.
LONG_S = 3.0
# Whether this is within a block of `say_later`.
_IS_WITHIN: ContextVar[bool] = ContextVar("_IS_WITHIN", default=False)


class Plan(NamedTuple):
    """The plan of a sweep."""

    cells: int  # of the grid
    distinct_cells: int  # different cells
    layouts: int  # programs to compile, one per array shape
    trials: int  # (cell, seed) pairs in all; with a precision, at first
    may_grow: bool  # whether a precision may ask for more trials
    missing: int  # trials that this process will compute
    blocks: int  # chunks that this process will compute
    disk_bytes: int  # of the missing chunks of all workers
    free_bytes: int  # of the disk; 0 without a store
    memory_bytes: int  # of open chunks, and of the results without a store
    available_bytes: int  # of memory, 0 if unknown


class Progress:
    """Reports the progress of a run; without a medium it only warns."""

    _medium, _brief, _silent, _has_warned, _has_noted = "", False, False, False, False
    _cells = 0

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
        if medium:
            from rich import progress as bars
            from rich.console import Console

            self._bar = bars.Progress(
                bars.TextColumn("{task.description}"),
                bars.BarColumn(),
                bars.MofNCompleteColumn(),
                bars.TimeRemainingColumn(),
                bars.TextColumn("{task.fields[note]}"),
                console=Console(file=error_stream()),
                transient=True,
                get_time=time.perf_counter,
                speed_estimate_period=_MEMORY_S,
                disable=medium != "terminal",
            )
            self._bar.add_task(self._noun, start=False, total=0, note="")
            self._task = self._bar.tasks[0]

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the bar, or writes the last line."""
        if self._medium:
            self._bar.stop()
        if self._medium == "lines" and self._task.completed:
            self._show_status()

    def report_plan(self, plan: Plan) -> None:
        """Shows the plan, before any compilation."""
        self._cells = plan.distinct_cells
        self.set_total(plan.missing)
        if self._medium and not self._brief:
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
        if self._medium:
            self._bar.update(self._task.id, total=trials)

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
            return f"fmab: compiling a program for {algorithm} ({LONG_S:.0f} s so far)\n"

        return say_later(note)

    def advance(self, trials: int) -> None:
        """Counts computed trials."""
        if not self._medium:
            return
        if self._brief and not self._task.started and trials >= (self._task.total or 0):
            self._medium = ""  # a run of one batch has no progress
            return
        self._bar.start()
        self._bar.start_task(self._task.id)
        self._bar.update(self._task.id, description=self._noun, advance=trials)
        now = time.perf_counter()
        # A long log gets fewer lines.
        interval = max(_LOG_INTERVAL_S, _LOG_SHARE * (now - self._start_time))
        if self._medium == "lines" and now - self._last_time >= interval:
            self._last_time = now
            self._show_status()

    def report_chunk(self, cells_done: int) -> None:
        """Shows, after a chunk is written, how many configurations are complete."""
        if self._medium and not self._brief:
            cells = format_quantity(self._cells, "configuration")
            self._bar.update(self._task.id, note=f"{cells_done:,} of {cells} done")

    @property
    def is_shown(self) -> bool:
        """Whether anybody sees lines."""
        return bool(self._medium)

    def show_line(self, line: str, short: str = "") -> None:
        """Shows a line; a bar shows the short text instead, if there is one."""
        if self._medium == "lines":
            # One write, so that processes with a common log do not mix lines.
            error_stream().write(line + "\n")
        elif self._medium and short:
            self._bar.update(self._task.id, description=short)
        elif self._medium:
            self._bar.console.print(line, highlight=False, markup=False)

    def _show_status(self) -> None:
        """Shows the computed trials, the rate and the remaining time."""
        task = self._task
        parts = [f"{task.completed:,.0f} of {task.total:,.0f} {self._noun}"]
        # Rich leaves out the first batch, whose time includes compilation.
        if task.speed and task.time_remaining:
            parts.append(f"{task.speed:,.3g} {self._noun}/s")
            parts.append(f"{timedelta(seconds=task.time_remaining)} left")
        self.show_line(", ".join([*parts, task.fields["note"]] if task.fields["note"] else parts))


def choose_medium(visible: bool | None) -> str:
    """Returns where progress is shown: "terminal", "lines", or "" for nowhere.

    Args:
        visible: Whether it is shown; None for terminals only.
    """
    is_terminal = error_stream().isatty()
    if not (is_terminal if visible is None else visible):
        return ""
    return "terminal" if is_terminal else "lines"


def resolve_progress(progress: Progress | bool | None, *, brief: bool = False) -> Progress:
    """Returns a `Progress` unchanged, or makes one; a bool or None as in `choose_medium`."""
    if isinstance(progress, Progress):
        return progress
    if progress is not None:
        flag("progress", progress, "or a Progress")
    is_silent = progress is False or (progress is None and _is_notebook())
    return Progress(choose_medium(progress), brief=brief, silent=is_silent)


def _is_notebook() -> bool:
    """Tells whether a notebook runs this, whose cells should show results alone."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


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
    if plan.distinct_cells != plan.cells:
        cells += f" ({plan.distinct_cells:,} different)"
    done = f", {plan.missing:,} of them to do" if plan.missing != plan.trials else ""
    least = "at least " if plan.may_grow else ""
    lines = f"{cells}, {least}{format_quantity(plan.trials, 'trial')}{done}: "
    lines += f"{format_quantity(plan.layouts, 'compilation')}, "
    lines += f"{format_quantity(plan.blocks, 'chunk')}, "
    if plan.free_bytes:
        lines += f"{decimal(plan.disk_bytes)} of {decimal(plan.free_bytes)} free disk, "
    return lines + f"{decimal(plan.memory_bytes)} of {decimal(plan.available_bytes)} free memory"


def describe_workers(number: int, threads: int) -> str:
    """Returns a line about the workers of a cluster."""
    if not threads:
        return "waiting for workers"
    workers = format_quantity(number, "worker")
    return f"computing on {workers} with {format_quantity(threads, 'thread')}"
