"""The trials of a plan: compiled ahead, simulated, stored, and summarised."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import Float

from fmab_jax import machine
from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.bands import student_critical
from fmab_jax.analysis.budgets import find_tail, read_spending
from fmab_jax.errors import Refusal, refuse
from fmab_jax.planning.bounds import Tail, bound_tail
from fmab_jax.planning.candidates import Candidate
from fmab_jax.planning.least import count_first_pulls, draw_gaps, find_least_regret
from fmab_jax.planning.question import FIRST_SEEDS, Question, Spending
from fmab_jax.planning.race import Sample, list_sizes
from fmab_jax.run import compilation, resources
from fmab_jax.run.configs import Config, Program, bind
from fmab_jax.sweeps.blocks import Job
from fmab_jax.sweeps.layout import Room
from fmab_jax.sweeps.runner import run
from fmab_jax.sweeps.study import Design

if TYPE_CHECKING:
    import xarray as xr

Trials = dict[str, np.ndarray]
"""Regret, links, numbers, bits and final gap of one configuration, [seed] each."""

# Fresh seeds of the answer's figures.
FRESH_SEEDS = 2000
# On processors, so that one program serves all looks.
_BATCH = 256
# Programs that are compiled before they are used.
_AHEAD = 3
# Looks of more trials are worth a program that takes longer to compile.
_MANY = 20_000
# Fresh seeds are of a level that no look has.
FRESH_LEVEL = 1000
# Seconds that a program takes to compile, before one has.
_COMPILE_S = 8.0
# Most seconds without a word.
_SILENCE_S = 10.0
_Result = TypeVar("_Result")


class Summary(NamedTuple):
    """A quantity over seeds.

    Attributes:
        mean: Mean.
        low: Lower end of the 95 % interval of the mean.
        high: Upper end.
        p95: What 95 % of the runs do not exceed.
        max: Largest.
    """

    mean: float
    low: float
    high: float
    p95: float
    max: float


class Look(NamedTuple):
    """What a look of the race saw of one candidate.

    Attributes:
        label: The candidate.
        seeds: Its seeds so far.
        mean: Mean regret at the horizon.
        low: Lower end of the 95 % interval of the mean.
        high: Upper end.
    """

    label: str
    seeds: int
    mean: float
    low: float
    high: float


class Runs:
    """The trials of a plan: each further part of the seeds has a root seed of its own.

    Attributes:
        groups: Candidates that share a program, in the order in which they start: those first whose
            first epoch has the fewest pulls, last those of which nothing is known.
        run_s: Seconds of simulation.
        trials: Trials that were simulated or read.
        on_wait: Is called where nothing else can be said for some seconds.
    """

    def __init__(
        self,
        question: Question,
        candidates: Sequence[Candidate],
        store: Path | None,
        client: Any,
    ) -> None:
        self.question, self.candidates = question, candidates
        self.store, self.client = store, client
        self.blocks: dict[tuple[int, int], Trials] = {}
        self.looks: list[Look] = []
        self.configs = [self._bind(candidate.algorithm) for candidate in candidates]
        self.members: dict[Program, list[int]] = {}
        for i, config in enumerate(self.configs):
            self.members.setdefault(config.program, []).append(i)
        first_pulls = [count_first_pulls(config) or math.inf for config in self.configs]
        self.groups = sorted(
            self.members.values(), key=lambda group: min(first_pulls[i] for i in group)
        )
        self.run_s, self.trials = 0.0, 0
        self.on_wait: Callable[[], None] = lambda: None
        self._compile_times: list[float] = []
        self._gaps: dict[int, np.ndarray] = {}
        self._least: dict[int, np.ndarray] = {}
        self._compilers = ThreadPoolExecutor(max(2, machine.cores() // 2))
        self._runner = ThreadPoolExecutor(1)
        self._compilations: dict[Program, Future[None]] = {}
        self._tails: dict[int, Tail] = {}
        self.prepare(range(len(candidates)))

    def prepare(self, waiting: Sequence[int]) -> None:
        """Compiles the next programs of candidates that have not run, in other threads."""
        ahead = sum(not future.done() for future in self._compilations.values())
        for group in self.groups:
            program = self.configs[group[0]].program
            if self.client is not None or ahead >= _AHEAD:
                return
            if program not in self._compilations and not {*group}.isdisjoint(waiting):
                self._compilations[program] = self._compilers.submit(self._compile, group)
                ahead += 1

    def close(self) -> None:
        """Gives up what is not compiled; a running compiler cannot be stopped."""
        self._compilers.shutdown(wait=False, cancel_futures=True)
        self._runner.shutdown(wait=False, cancel_futures=True)

    @property
    def compile_s(self) -> float:
        """Seconds of compilation, of all threads together."""
        return sum(self._compile_times)

    @property
    def compiled(self) -> int:
        """Number of programs that are compiled; a cluster compiles its own."""
        if self.client is not None:
            return len(self.groups)
        return sum(future.done() for future in self._compilations.values())

    def estimate_seconds(self, trials: int, waiting: Sequence[int]) -> float:
        """Estimates the time of more trials, and of candidates that have not run."""
        rate = self.run_s / max(1, self.trials)
        programs = len({self.configs[i].program for i in waiting})
        left = min(programs, len(self.groups) - self.compiled)
        each = self.compile_s / self.compiled if self.compiled else _COMPILE_S
        return rate * (trials + FIRST_SEEDS * len(waiting)) + 0.5 * each * left

    def _bind(self, algorithm: Algorithm) -> Config:
        """Binds a configuration as looks do."""
        horizon = self.question.horizon
        return bind(algorithm, self.question.problem, horizon, times=[horizon], fast_compile=True)

    def _compile(self, group: Sequence[int]) -> None:
        """Compiles the program of a group."""
        config, devices = self.configs[group[0]], resources.checked_devices(None)
        room = self._find_room(config)
        rows = compilation.count_table_rows(room.configs)
        job = Job((config,), range(1), 0, "curves", room.trials, self._batch, rows)
        start = time.perf_counter()
        compilation.fit_sizes(config.program, job.sizes(devices), devices)
        self._compile_times.append(time.perf_counter() - start)

    @property
    def _batch(self) -> int | None:
        return _BATCH if jax.default_backend() == "cpu" else None

    def _find_room(self, config: Config) -> Room:
        """Returns the room of a program, equal for all looks."""
        group = self.members.get(config.program, [0])
        trials = _BATCH if self._batch else FIRST_SEEDS * len(group)
        return Room(trials, len(group))

    def observe(self, group: Sequence[int], seeds: int) -> list[Sample]:
        """Returns the samples of some candidates for the first so many seeds."""
        pieces: dict[int, list[Trials]] = {i: [] for i in group}
        for level, start, stop in _list_levels(seeds):
            block = self._run(group, level, stop - start)
            for i in group:
                pieces[i].append(block[i])
        samples = [self._build_sample(pieces[i]) for i in group]
        for i, sample in zip(group, samples, strict=True):
            mean, low, high = summarise(sample.regret)[:3]
            self.looks.append(Look(self.candidates[i].label, seeds, mean, low, high))
        return samples

    def find_tail(self, candidate: int) -> Tail:
        """Returns what theorems say of a candidate's large losses."""
        if candidate not in self._tails:
            self._tails[candidate] = bound_tail(self.configs[candidate])
        return self._tails[candidate]

    def find_least(self, candidate: int, seeds: int) -> Float[np.ndarray, " seed"]:
        """Returns what a candidate surely loses in the first so many seeds, without a run."""
        config, known = self.configs[candidate], self._least.get(candidate)
        if known is not None and len(known) >= seeds:
            return known[:seeds]
        if config.problem.world is not None or config.problem.presence is not None:
            return np.zeros(seeds)
        parts = []
        for level, start, stop in _list_levels(seeds):
            gaps = self._gaps.get(level)
            if gaps is None or len(gaps) < stop - start:
                gaps = draw_gaps(config, self._find_root(level), stop - start)
                self._gaps[level] = gaps
            parts.append(gaps[: stop - start])
        self._least[candidate] = find_least_regret(config, np.concatenate(parts))
        return self._least[candidate]

    def collect(self, candidate: int) -> Trials:
        """Returns all trials of a candidate in the race."""
        levels = sorted(level for i, level in self.blocks if i == candidate and level < FRESH_LEVEL)
        blocks = [self.blocks[candidate, level] for level in levels]
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def _build_sample(self, pieces: list[Trials]) -> Sample:
        """Returns what the parts of a candidate's seeds show."""
        joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        budgets = self.question.budgets._asdict().items()
        is_over = np.any([joined[name] > most for name, most in budgets], axis=0)
        return Sample(joined["regret"], is_over)

    def _run(self, group: Sequence[int], level: int, seeds: int) -> dict[int, Trials]:
        """Returns the trials of a level; computes those that are missing."""
        missing = [
            i for i in group if len(self.blocks.get((i, level), {"regret": ()})["regret"]) < seeds
        ]
        by_program: dict[Program, list[int]] = {}
        for i in missing:
            by_program.setdefault(self.configs[i].program, []).append(i)
        for members in by_program.values():
            algorithms = {self.candidates[i].label: self.candidates[i].algorithm for i in members}
            for i, trials in zip(members, self.simulate(algorithms, level, seeds), strict=True):
                self.blocks[i, level] = trials
        return {
            i: {name: values[:seeds] for name, values in self.blocks[i, level].items()}
            for i in group
        }

    def _find_root(self, level: int) -> int:
        """Returns the root seed of a level."""
        root = hashlib.sha256(f"{self.question.root_seed} {level}".encode()).digest()[:4]
        return int.from_bytes(root)

    def simulate(self, algorithms: dict[str, Algorithm], level: int, seeds: int) -> list[Trials]:
        """Runs algorithms of one program for a level, a part of the seeds with its own root."""
        config = self._bind(next(iter(algorithms.values())))
        if compiling := self._compilations.get(config.program):
            self._wait(compiling)
        start = time.perf_counter()
        arguments = algorithms, config, level, seeds
        if self.client is None:
            # In another thread, so that Ctrl-C is heard meanwhile.
            data = self._wait(self._runner.submit(self._simulate, *arguments))
        else:
            data = self._simulate(*arguments)
        compile_s = data.attrs["compile_s"]
        self.run_s += time.perf_counter() - start - compile_s
        self.trials += seeds * len(algorithms)
        self._compile_times.append(compile_s)
        return [extract_trials(data.isel(algorithm=place)) for place in range(len(algorithms))]

    def _wait(self, future: Future[_Result]) -> _Result:
        """Waits for another thread."""
        while True:
            try:
                return future.result(timeout=_SILENCE_S)
            except TimeoutError:
                if future.done():
                    raise
                self.on_wait()

    def _simulate(
        self, algorithms: dict[str, Algorithm], config: Config, level: int, seeds: int
    ) -> xr.Dataset:
        name = f"seeds-{self.question.root_seed}-{level}"
        store = None if self.store is None else self.store / name
        if store is not None and store.is_symlink():
            remedy = f"its {name} is a symbolic link: put the real one in its place"
            refuse("store", str(self.store), "a folder of plans", remedy)
        study = Design(
            algorithms,
            self.question.problem,
            horizon=self.question.horizon,
            seeds=seeds,
            times=[self.question.horizon],
            root_seed=self._find_root(level),
            fast_compile=seeds * len(algorithms) <= _MANY,
        )
        with self._rename_store_refusal():
            return run(
                study,
                store=store,
                allow_changes=("algorithm", "seeds") if store else (),
                client=self.client,
                batch=self._batch,
                progress=False,
                room=self._find_room(config),
            )

    @contextmanager
    def _rename_store_refusal(self) -> Iterator[None]:
        """Turns a sweep's refusal of its store into one of the plan's folder."""
        try:
            yield
        except Refusal as error:
            if "allow_changes" not in error.remedy:
                raise
            allowed = f"a folder of plans with the same {error.field}"
            refuse("store", str(self.store), allowed, "name another one")

    def find_cheapest(self) -> dict[str, float]:
        """Returns the fewest links, numbers and bits of a run."""
        return {
            name: float(min(trials[name].min() for trials in self.blocks.values()))
            for name in Spending._fields
        }


def extract_trials(data: xr.Dataset) -> Trials:
    """Returns regret, priced links, numbers, bits and final gap of every seed, at the horizon."""
    regret = np.asarray(data.regret.isel(time=-1).values, np.float64)
    # With contexts no arm has a gap.
    gap = data.final_gap.values if "final_gap" in data else np.full(len(regret), math.nan)
    return {
        "regret": regret,
        "final_gap": np.asarray(gap, np.float64),
        **read_spending(data),
    }


def _list_levels(seeds: int) -> Iterator[tuple[int, int, int]]:
    """Yields the levels of the first so many seeds, with their first seed and their end."""
    start = 0
    for level, size in enumerate(list_sizes(FIRST_SEEDS)):
        yield level, start, min(size, seeds)
        start = size
        if start >= seeds:
            return


def summarise(values: Float[np.ndarray, " seed"]) -> Summary:
    """Returns mean, its 95 % interval (Student), the 95 % quantile and the maximum."""
    mean, seeds = float(np.mean(values)), len(values)
    half = student_critical(seeds - 1, 0.05) * float(np.std(values, ddof=1)) / math.sqrt(seeds)
    return Summary(mean, mean - half, mean + half, *find_tail(values))


def compare_means(
    other: Float[np.ndarray, " seed"], own: Float[np.ndarray, " seed"]
) -> tuple[float, float, float]:
    """Returns how much more another one loses, as a part of the own mean, with its 95 % interval.

    On shared seeds; over all seeds of both where those are less than half of the own ones, since a
    rare loss may be among few seeds. The interval is that of the ratio's first-order expansion.
    """
    other = other[: len(own)]
    seeds, mean = len(other), float(np.mean(own))
    if 2 * seeds >= len(own):
        own, mean = own[:seeds], float(np.mean(own[:seeds]))
    if mean == 0.0:
        return math.nan, math.nan, math.nan
    ratio = float(np.mean(other)) / mean
    if len(own) == len(other):
        middle, _, high, *_ = summarise((other - ratio * own) / mean)
        half = high - middle
    else:
        halves = [x.high - x.mean for x in (summarise(other), summarise(own))]
        half = math.hypot(halves[0], ratio * halves[1]) / mean
    return ratio - 1.0, ratio - 1.0 - half, ratio - 1.0 + half
