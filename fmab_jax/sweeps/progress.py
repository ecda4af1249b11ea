"""What a sweep tells while it runs: a bar on terminals and in notebooks, lines, or nothing."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any, NamedTuple

from fmab_jax.errors import flag
from fmab_jax.files import told
from fmab_jax.notebook import Line, is_notebook

LOG_EVERY_S = 10.0


class Plan(NamedTuple):
    """What a sweep is going to do.

    Attributes:
        cells: Cells of the grid.
        seeds: Of each configuration; with a precision, at first.
        until: Whether a precision decides on further seeds.
        distinct: Different ones among them.
        layouts: Programs to compile, one per array shape.
        trials: (cell, seed) pairs in all.
        missing: Those still to be computed, here.
        blocks: Chunks still to be computed, here.
        disk_bytes: What is missing will take, of all workers together.
        free_bytes: Free disk space; 0 without a store.
        memory_bytes: What computing them will take, and without a store the results.
        available_bytes: Free memory, 0 if unknown.
        workers: So many workers at most have something to compute.
    """

    cells: int
    seeds: int
    until: bool
    distinct: int
    layouts: int
    trials: int
    missing: int
    blocks: int
    disk_bytes: int
    free_bytes: int
    memory_bytes: int
    available_bytes: int
    workers: int = 0


class Progress:
    """What a sweep tells while it runs; this one warns, of what needs somebody, and is silent."""

    _waited = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        """Ends whatever was shown."""

    def planned(self, plan: Plan) -> None:
        """Is told the plan, before anything is compiled."""

    def damaged(self, line: str) -> None:
        """Is told of a chunk that has to be computed again."""
        warnings.warn(line, stacklevel=2)

    def workers(self, number: int, threads: int) -> None:
        """Is told how many workers a cluster has, and their threads, whenever that changes."""
        if not threads and not self._waited:
            self._waited = True
            text = "the sweep waits for workers: the Dask scheduler has none"
            warnings.warn(text, stacklevel=2)

    def extended(self, trials: int) -> None:
        """Is told how many trials it will be in all, as far as is known."""

    def compiling(self, layout: int, layouts: int) -> None:
        """Is told that a program is about to be compiled."""

    def calibrated(self, seconds: float) -> None:
        """Is told how long the rest will take, about."""

    def advanced(self, trials: int) -> None:
        """Is told that so many more trials are computed."""

    def written(self, cells_done: int, widest: float) -> None:
        """Is told that a chunk is safe: complete configurations, widest relative half-width."""


def teller_of(progress: Progress | bool | None, keeps: bool) -> Progress:
    """Returns who is told: a `Progress` as it is; True for a bar or lines.

    None means a bar on terminals and in notebooks.
    """
    if isinstance(progress, Progress):
        return progress
    terminal, notebook = told().isatty(), is_notebook()
    if progress is not None:
        flag("progress", progress, "or a Progress")
    if not (terminal or notebook if progress is None else progress) or not keeps:
        return Progress()
    if notebook:
        return _Cell()
    return _Bar() if terminal else _Lines()


def describe_plan(plan: Plan) -> str:
    """Returns a plan in a line or two."""
    cells = counted(plan.cells, "configuration")
    if plan.distinct != plan.cells:
        cells += f" ({plan.distinct:,} different)"
    least = "at least " * plan.until
    done = f", {plan.missing:,} of them to do" if plan.missing != plan.trials else ""
    lines = (
        f"{cells} x {least}{counted(plan.seeds, 'seed')} = {counted(plan.trials, 'trial')}{done}: "
    )
    lines += f"{counted(plan.layouts, 'compilation')}, "
    lines += f"{counted(plan.blocks, 'chunk')}, "
    if plan.free_bytes:
        lines += f"{size_text(plan.disk_bytes)} of {size_text(plan.free_bytes)} free disk, "
    memory = f"{size_text(plan.memory_bytes)} of {size_text(plan.available_bytes)} free memory"
    return lines + memory


def workers_text(number: int, threads: int) -> str:
    """Writes how many workers a cluster has."""
    if not threads:
        return "waiting for workers"
    return f"computing on {counted(number, 'worker')} with {counted(threads, 'thread')}"


def counted(number: int, noun: str) -> str:
    """Writes a number with its noun."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


class _Lines(Progress):
    """Plain lines on standard error, where it is no terminal."""

    def __init__(self) -> None:
        self.began = self.last = time.perf_counter()
        self.trials = self.done = self.cells = self.cells_done = 0
        self.expected = ""
        self.widest = math.nan
        self.out = told()

    def say(self, line: str) -> None:
        # In one piece, so that processes that share it do not mix their lines.
        self.out.write(line + "\n")

    def planned(self, plan: Plan) -> None:
        self.trials, self.cells = plan.missing, plan.distinct
        self.say(describe_plan(plan))

    def extended(self, trials: int) -> None:
        self.trials = trials

    def damaged(self, line: str) -> None:
        self.say(line)

    def workers(self, number: int, threads: int) -> None:
        self.say(workers_text(number, threads))

    def compiling(self, layout: int, layouts: int) -> None:
        self.say(f"compiling program {layout} of {layouts}")

    def calibrated(self, seconds: float) -> None:
        self.say(f"expected to take {_duration(seconds)}")
        self.began = time.perf_counter()

    def advanced(self, trials: int) -> None:
        self.done += trials
        now = time.perf_counter()
        if now - self.last >= LOG_EVERY_S:
            self.last = now
            self.report()

    def written(self, cells_done: int, widest: float) -> None:
        self.cells_done, self.widest = cells_done, widest

    def report(self) -> None:
        """Says how far it has come."""
        rate = self.done / max(time.perf_counter() - self.began, 1e-9)
        left = _duration(max(0, self.trials - self.done) / max(rate, 1e-9))
        self.say(
            f"{self.done:,} of {self.trials:,} trials, {rate:,.3g} trials/s, {left} left, "
            f"{self.cells_done:,} of {self.cells:,} configurations done, "
            f"widest 95 % interval {_percent(self.widest)} of the mean"
        )

    def __exit__(self, *_: Any) -> None:
        if self.done:
            self.report()


class _Cell(_Lines):
    """A line in a notebook's cell, with a bar; what has been told last stays."""

    def __init__(self) -> None:
        super().__init__()
        self.line = Line()

    def say(self, line: str) -> None:
        self.line.show(line, now=True)

    def planned(self, plan: Plan) -> None:
        self.trials, self.cells = plan.missing, plan.distinct
        if not plan.missing:
            self.say(f"nothing left to compute: {counted(plan.trials, 'trial')} are there")

    def calibrated(self, seconds: float) -> None:
        self.began = time.perf_counter()

    def advanced(self, trials: int) -> None:
        self.done += trials
        self.report(now=self.done >= self.trials)

    def report(self, now: bool = False) -> None:
        seconds = max(time.perf_counter() - self.began, 1e-9)
        rate = self.done / seconds
        left = _duration(max(0, self.trials - self.done) / max(rate, 1e-9))
        when = f"{left} left" if self.done < self.trials else f"in {_duration(seconds)}"
        words = f"{self.done:,} of {self.trials:,} trials, {rate:,.3g} trials/s, {when}"
        self.line.show(words, min(1.0, self.done / max(1, self.trials)), now=now)

    def __exit__(self, *_: Any) -> None:
        if self.done:
            self.report(now=True)


class _Bar(Progress):
    """A bar over trials, on a terminal."""

    def __init__(self) -> None:
        from rich import progress as bars
        from rich.console import Console

        columns = (
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[rate]}"),
            bars.TimeRemainingColumn(),
            bars.TextColumn("{task.fields[cells]}"),
        )
        self.bar = bars.Progress(*columns, console=Console(file=told()), transient=True)
        self.task = self.bar.add_task("trials", total=None, rate="", cells="", start=False)
        self.cells = 0

    def __enter__(self) -> Progress:
        self.bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.bar.stop()

    def planned(self, plan: Plan) -> None:
        self.cells = plan.distinct
        self.bar.console.print(describe_plan(plan), highlight=False)
        self.bar.update(self.task, total=plan.missing)

    def extended(self, trials: int) -> None:
        self.bar.update(self.task, total=trials)

    def damaged(self, line: str) -> None:
        self.bar.console.print(line, highlight=False, markup=False)

    def workers(self, number: int, threads: int) -> None:
        self.bar.console.print(workers_text(number, threads), highlight=False)

    def compiling(self, layout: int, layouts: int) -> None:
        self.bar.update(self.task, description=f"compiling {layout}/{layouts}")

    def calibrated(self, seconds: float) -> None:
        self.bar.console.print(f"expected to take {_duration(seconds)}", highlight=False)

    def advanced(self, trials: int) -> None:
        self.bar.start_task(self.task)
        self.bar.update(self.task, description="trials")
        self.bar.advance(self.task, trials)
        speed = self.bar.tasks[0].speed
        self.bar.update(self.task, rate=f"{speed:,.0f}/s" if speed else "")

    def written(self, cells_done: int, widest: float) -> None:
        said = f"{cells_done:,}/{self.cells:,} configurations, band {_percent(widest)}"
        self.bar.update(self.task, cells=said)


def _percent(share: float) -> str:
    return "unknown" if math.isnan(share) else f"+-{100 * share:.2g} %"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def size_text(size: float) -> str:
    """Writes a number of bytes."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} bytes"
