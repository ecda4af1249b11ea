"""What a run reports: a bar on terminals and in notebooks, lines in logs, or nothing."""

from __future__ import annotations

import html
import sys
import time
import warnings
from typing import Any, NamedTuple

from fmab_jax.errors import flag
from fmab_jax.files import error_stream

# Seconds between two lines of a log, at least, and the share of the time by then; between two
# texts in a notebook.
_EVERY_S, _SHARE = 10.0, 0.1
_NOTEBOOK_S = 0.2


class Plan(NamedTuple):
    """What a sweep is going to do."""

    cells: int  # of the grid
    seeds: int  # of each configuration; with a precision, at first
    until: bool  # whether a precision decides on further seeds
    distinct: int  # different cells
    layouts: int  # programs to compile, one per array shape
    trials: int  # (cell, seed) pairs in all
    missing: int  # trials still to be computed, here
    blocks: int  # chunks still to be computed, here
    disk_bytes: int  # that what is missing will take, of all workers together
    free_bytes: int  # of the disk; 0 without a store
    memory_bytes: int  # of chunks at work, and without a store of the results
    available_bytes: int  # of memory, 0 if unknown
    workers: int = 0  # so many at most have something to compute


class Progress:
    """What a run reports; without a place it only warns, of what needs somebody."""

    _where, _brief, _more, _waited = "", False, "", False
    _done = _total = _cells = 0
    # Trials done, and the time, at the end of the first batch: compiling has no rate.
    _first: tuple[int, float] | None = None

    def __init__(self, where: str = "", *, brief: bool = False) -> None:
        """Begins with nothing done.

        Args:
            where: See `place`.
            brief: Whether it is one configuration, of which only the seeds are counted.
        """
        self._where, self._brief = where, brief
        self._noun = "seeds" if brief else "trials"
        self._began = self._last = time.perf_counter()
        if where == "notebook":
            from IPython.display import display

            nothing = {"text/plain": "", "text/html": ""}
            self._cell: Any = display(nothing, raw=True, display_id=True)
        if where == "terminal":
            from rich import progress as bars
            from rich.console import Console

            columns = (
                bars.TextColumn("{task.description}"),
                bars.BarColumn(),
                bars.MofNCompleteColumn(),
                bars.TimeRemainingColumn(),
                bars.TextColumn("{task.fields[more]}"),
            )
            console = Console(file=error_stream())
            self._bar = bars.Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task(self._noun, start=False, total=None, more="")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        """Ends whatever was shown."""
        if self._where == "terminal":
            self._bar.stop()
        elif self._where and self._done:
            self._report()

    def planned(self, plan: Plan) -> None:
        """Takes the plan, before anything is compiled."""
        self._cells = plan.distinct
        self.extended(plan.missing)
        if not self._brief:
            if self._where == "terminal":
                self._bar.start()
            self._say(describe_plan(plan))

    def damaged(self, line: str) -> None:
        """Takes note of a chunk that has to be computed again."""
        if self._where:
            self._say(line)
        else:
            warnings.warn(line, stacklevel=2)

    def workers(self, number: int, threads: int) -> None:
        """Takes the number of a cluster's workers, and their threads, whenever that changes."""
        self._say(workers_text(number, threads))
        if not threads and not self._waited and not self._where:
            self._waited = True
            text = "the sweep waits for workers: the Dask scheduler has none"
            warnings.warn(text, stacklevel=2)

    def extended(self, trials: int) -> None:
        """Takes the number of trials in all, as far as it is known."""
        self._total = trials
        if self._where == "terminal":
            self._bar.update(self._task, total=trials)

    def compiling(self, layout: int, layouts: int) -> None:
        """Takes note that a program is about to be compiled."""
        if not self._brief:
            self._say(f"compiling program {layout} of {layouts}", f"compiling {layout}/{layouts}")

    def advanced(self, trials: int) -> None:
        """Counts so many more trials."""
        self._done += trials
        now = time.perf_counter()
        if self._brief and self._first is None and self._done >= self._total:
            self._where = ""  # a run that is one batch has nothing to show
        self._first = self._first or (self._done, now)
        if self._where == "terminal":
            self._bar.start()
            self._bar.start_task(self._task)
            self._bar.update(self._task, description=self._noun, advance=trials)
        elif self._where:
            # Lines become rarer in a log.
            pause = max(_EVERY_S, _SHARE * (now - self._began))
            if now - self._last >= (_NOTEBOOK_S if self._where == "notebook" else pause):
                self._last = now
                self._report()

    def written(self, cells_done: int) -> None:
        """Takes note of a safe chunk, and how many configurations are complete."""
        if not self._brief and self._where:
            self._more = f"{cells_done:,} of {self._cells:,} configurations done"
        if self._where == "terminal":
            self._bar.update(self._task, more=self._more)

    def _say(self, line: str, short: str = "") -> None:
        """Says a line; a bar shows a short text in its own place, if there is one."""
        if self._where == "lines":
            # In one piece, so that processes that share a log do not mix their lines.
            error_stream().write(line + "\n")
        elif self._where == "notebook":
            bar = f'<progress value="{self._done / max(1, self._total):.4f}" max="1"></progress> '
            self._cell.update({"text/plain": line, "text/html": bar + html.escape(line)}, raw=True)
        elif self._where and short:
            self._bar.update(self._task, description=short)
        elif self._where:
            self._bar.console.print(line, highlight=False, markup=False)

    def _report(self) -> None:
        """Says how far it has come, and how long the rest will take."""
        words = [f"{self._done:,} of {self._total:,} {self._noun}"]
        first, began = self._first or (0, 0.0)
        left = self._total - self._done
        if left > 0 and self._done > first:
            rate = (self._done - first) / max(time.perf_counter() - began, 1e-9)
            words += [f"{rate:,.3g} {self._noun}/s", f"{duration(left / rate)} left"]
        self._say(", ".join([*words, self._more] if self._more else words))


def place(wanted: bool | None) -> str:
    """Returns where progress is shown: "notebook", "terminal", "lines", or "" for nowhere.

    Args:
        wanted: None means on terminals and in notebooks.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    terminal, notebook = error_stream().isatty(), getattr(shell, "kernel", None) is not None
    if not (terminal or notebook if wanted is None else wanted):
        return ""
    return "notebook" if notebook else "terminal" if terminal else "lines"


def progress_of(progress: Progress | bool | None, *, brief: bool = False) -> Progress:
    """Returns a `Progress` as it is; True asks for a bar or lines, None as in `place`."""
    if isinstance(progress, Progress):
        return progress
    if progress is not None:
        flag("progress", progress, "or a Progress")
    return Progress(place(progress), brief=brief)


def describe_plan(plan: Plan) -> str:
    """Returns a plan in a line or two."""
    cells = quantity(plan.cells, "configuration")
    if plan.distinct != plan.cells:
        cells += f" ({plan.distinct:,} different)"
    least = "at least " * plan.until
    done = f", {plan.missing:,} of them to do" if plan.missing != plan.trials else ""
    seeds, trials = quantity(plan.seeds, "seed"), quantity(plan.trials, "trial")
    lines = f"{cells} x {least}{seeds} = {trials}{done}: "
    lines += f"{quantity(plan.layouts, 'compilation')}, "
    lines += f"{quantity(plan.blocks, 'chunk')}, "
    if plan.free_bytes:
        lines += f"{size_text(plan.disk_bytes)} of {size_text(plan.free_bytes)} free disk, "
    memory = f"{size_text(plan.memory_bytes)} of {size_text(plan.available_bytes)} free memory"
    return lines + memory


def workers_text(number: int, threads: int) -> str:
    """Writes how many workers a cluster has."""
    if not threads:
        return "waiting for workers"
    return f"computing on {quantity(number, 'worker')} with {quantity(threads, 'thread')}"


def quantity(number: int, noun: str) -> str:
    """Writes a number with its noun."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def size_text(size: float) -> str:
    """Writes a number of bytes."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{float(f'{size / factor:.3g}'):,g} {unit}"
    return f"{size:.0f} bytes"


def duration(seconds: float) -> str:
    """Writes how long something takes."""
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
