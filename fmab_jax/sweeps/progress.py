"""What a sweep tells while it runs: a bar on terminals and in notebooks, lines, or nothing."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any, NamedTuple

from fmab_jax.errors import flag
from fmab_jax.progress import Bar, duration, place


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
    """What a sweep tells while it runs; without a place it only warns, of what needs somebody."""

    _noun, _timed = "trials", True
    _bar = Bar("trials", 0, "")
    _cells, _part = 0, ""
    _waited = False

    def __init__(self, where: str = "") -> None:
        """Tells it at a place, see `fmab_jax.progress.place`."""
        self._bar = Bar(self._noun, 0, where, timed=self._timed)

    def __enter__(self) -> Progress:
        self._bar.__enter__()
        return self

    def __exit__(self, *_: Any) -> None:
        """Ends whatever was shown."""
        self._bar.__exit__()

    def planned(self, plan: Plan) -> None:
        """Is told the plan, before anything is compiled."""
        self._cells = plan.distinct
        # Of a resumed sweep only what is computed now is looked at.
        self._part = " of the seeds computed now" if plan.missing != plan.trials else ""
        self._bar.expect(plan.missing)
        self._bar.besides(self._complete(0, math.nan), "")
        if self._bar.where != "notebook":
            self._bar.say(describe_plan(plan))
        elif not plan.missing:
            self._bar.say(f"nothing left to compute: {quantity(plan.trials, 'trial')} are there")

    def damaged(self, line: str) -> None:
        """Is told of a chunk that has to be computed again."""
        if self._bar.where:
            self._bar.say(line)
        else:
            warnings.warn(line, stacklevel=2)

    def workers(self, number: int, threads: int) -> None:
        """Is told how many workers a cluster has, and their threads, whenever that changes."""
        self._bar.say(workers_text(number, threads))
        if not threads and not self._waited and not self._bar.where:
            self._waited = True
            text = "the sweep waits for workers: the Dask scheduler has none"
            warnings.warn(text, stacklevel=2)

    def extended(self, trials: int) -> None:
        """Is told how many trials it will be in all, as far as is known."""
        self._bar.expect(trials)

    def compiling(self, layout: int, layouts: int) -> None:
        """Is told that a program is about to be compiled."""
        short = f"compiling {layout}/{layouts}"
        self._bar.say(f"compiling program {layout} of {layouts}", short)

    def calibrated(self, seconds: float) -> None:
        """Is told how long the rest will take, about."""
        if self._bar.where != "notebook":
            self._bar.say(f"expected to take {duration(seconds)}")
        self._bar.began = time.perf_counter()

    def advanced(self, trials: int) -> None:
        """Is told that so many more trials are computed."""
        self._bar.advance(trials)

    def written(self, cells_done: int, widest: float) -> None:
        """Is told that a chunk is safe: complete configurations, widest relative half-width."""
        short = f"{cells_done:,}/{self._cells:,} configurations, band {_percent(widest)}"
        self._bar.besides(self._complete(cells_done, widest), short)

    def _complete(self, cells_done: int, widest: float) -> str:
        return (
            f"{cells_done:,} of {self._cells:,} configurations done, "
            f"widest 95 % interval{self._part} {_percent(widest)} of the mean"
        )


class Brief(Progress):
    """What a run of one configuration tells: how many seeds are done."""

    _noun, _timed = "seeds", False

    def planned(self, plan: Plan) -> None:
        """Is told the plan."""
        self._bar.expect(plan.missing)

    def compiling(self, layout: int, layouts: int) -> None:
        """Is told that its program is about to be compiled."""

    def written(self, cells_done: int, widest: float) -> None:
        """Is told that all is there."""


def teller_of(
    progress: Progress | bool | None, keeps: bool, kind: type[Progress] = Progress
) -> Progress:
    """Returns who is told: a `Progress` as it is; True for a bar or lines; None for a bar only."""
    if isinstance(progress, Progress):
        return progress
    if progress is not None:
        flag("progress", progress, "or a Progress")
    return kind(place(progress) if keeps else "")


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


def _percent(share: float) -> str:
    return "unknown" if math.isnan(share) else f"+-{100 * share:.2g} %"


def size_text(size: float) -> str:
    """Writes a number of bytes."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} bytes"
