"""The trials of a plan: simulated, stored, and summarised."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.bands import student_critical
from fmab_jax.analysis.budgets import find_tail, read_spending
from fmab_jax.planning.candidates import Candidate
from fmab_jax.planning.question import FIRST_SEEDS, Question
from fmab_jax.planning.race import Sample, list_sizes
from fmab_jax.run.configs import bind
from fmab_jax.sweeps.layout import Room
from fmab_jax.sweeps.runner import run
from fmab_jax.sweeps.study import Design
from fmab_jax.sweeps.subjects import describe_problem

FRESH_SEEDS = 2000
"""Fresh seeds of the answer's figures."""
FRESH_LEVEL = 1000
"""Fresh seeds are of a level that no look has."""

# Trials of a batch on processors, so that one program serves all looks.
_BATCH = 256
# Later looks of more trials are worth a program that takes longer to compile.
_MANY = 20_000


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
    """The trials of a plan: each further part of the seeds, a level, has a root seed of its own.

    Attributes:
        configs: The candidates on their problem.
        looks: What each look saw, in their order.
        trials: Trials that were simulated or read.
        compile_s: Seconds that trials waited for compilers.
    """

    def __init__(
        self,
        question: Question,
        candidates: Sequence[Candidate],
        store: Path | None,
        client: Any,
        progress: bool | None,
    ) -> None:
        self.question, self.candidates = question, candidates
        self._store, self._client, self._progress = store, client, progress
        self.looks: list[Look] = []
        self.trials, self.compile_s = 0, 0.0
        problem, horizon = question.problem, question.horizon
        self.configs = [bind(x.algorithm, problem, horizon, times=[horizon]) for x in candidates]
        most = max(Counter(config.program for config in self.configs).values())
        self._room = Room(max(_BATCH, FIRST_SEEDS * most), most)
        self._blocks: dict[tuple[int, int], pd.DataFrame] = {}

    def observe(self, group: Sequence[int], seeds: int) -> list[Sample]:
        """Returns the samples of some candidates for the first so many seeds."""
        for level, number in _list_levels(seeds):
            missing = [i for i in group if len(self._blocks.get((i, level), ())) < number]
            if missing:
                chosen = [self.candidates[i] for i in missing]
                blocks = self.simulate({x.label: x.algorithm for x in chosen}, level, number)
                self._blocks |= {(i, level): x for i, x in zip(missing, blocks, strict=True)}
        samples = []
        budgets = self.question.budgets._asdict()
        for i in group:
            trials = self.collect(i)
            mean, low, high = summarise(trials.regret)[:3]
            self.looks.append(Look(self.candidates[i].label, seeds, mean, low, high))
            is_over = (trials[[*budgets]] > budgets).any(axis="columns")
            samples.append(Sample(trials.regret.to_numpy(), is_over.to_numpy()))
        return samples

    def collect(self, candidate: int) -> pd.DataFrame:
        """Returns all trials of a candidate in the race, a row each; see `read_trials`."""
        levels = sorted(level for i, level in self._blocks if i == candidate)
        return pd.concat([self._blocks[candidate, x] for x in levels], ignore_index=True)

    def simulate(
        self, algorithms: dict[str, Algorithm], level: int, seeds: int
    ) -> list[pd.DataFrame]:
        """Runs algorithms for a level, a part of the seeds with its own root seed."""
        problem, horizon = self.question.problem, self.question.horizon
        root_seed, on_workers = self.question.root_seed, self._client is not None
        root = hashlib.sha256(f"{root_seed} {level}".encode()).digest()[:4]
        study = Design(
            algorithms,
            problem,
            horizon=horizon,
            seeds=seeds,
            times=[horizon],
            root_seed=int.from_bytes(root),
            fast_compile=level == 0 or seeds * len(algorithms) <= _MANY,
        )
        store = None
        if self._store is not None:
            # Plans of several problems may share a folder.
            facts = json.dumps([describe_problem(problem), horizon, root_seed], default=str)
            store = self._store / f"{hashlib.sha256(facts.encode()).hexdigest()[:8]}-{level}"
        data = run(
            study,
            store=store,
            allow_changes=("algorithm", "seeds") if store else (),
            client=self._client,
            batch=_BATCH if jax.default_backend() == "cpu" and not on_workers else None,
            progress=self._progress if level == 0 else False,
            room=self._room,
        )
        self.trials += seeds * len(algorithms)
        self.compile_s += data.attrs["compile_s"]
        return [read_trials(data.isel(algorithm=place)) for place in range(len(algorithms))]


def read_trials(data: xr.Dataset) -> pd.DataFrame:
    """Returns regret, priced links, numbers, bits and final gap at the horizon, a row a seed."""
    regret = data.regret.isel(time=-1).values
    trials = pd.DataFrame({"regret": regret, **read_spending(data)}, dtype=float)
    # With contexts no arm has a gap.
    return trials.assign(final_gap=data.final_gap.values if "final_gap" in data else math.nan)


def _list_levels(seeds: int) -> Iterator[tuple[int, int]]:
    """Yields the levels of the first so many seeds, with the seeds of each."""
    start = 0
    for level, size in enumerate(list_sizes(FIRST_SEEDS)):
        yield level, min(size, seeds) - start
        start = size
        if start >= seeds:
            return


def summarise(values: Any) -> Summary:
    """Returns mean, its 95 % interval (Student), the 95 % quantile and the maximum of [seed]."""
    mean, seeds = float(np.mean(values)), len(values)
    half = student_critical(seeds - 1, 0.05) * float(np.std(values, ddof=1)) / math.sqrt(seeds)
    return Summary(mean, mean - half, mean + half, *find_tail(values))


def compare_means(
    other: Float[np.ndarray, " seed"], winner: Float[np.ndarray, " seed"]
) -> tuple[float, float, float]:
    """Returns how much more another one loses, as a part of the winner's mean, with its interval.

    On shared seeds; over all seeds of both where those are less than half of the winner's, since a
    rare loss may be among few seeds. The interval (95 %) is that of the ratio's first-order
    expansion. NaN where the winner loses nothing.
    """
    other = other[: len(winner)]
    if 2 * len(other) >= len(winner):
        winner = winner[: len(other)]
    mean = float(np.mean(winner))
    if mean == 0.0:
        return math.nan, math.nan, math.nan
    ratio = float(np.mean(other)) / mean
    if len(winner) == len(other):
        half = _find_half_width((other - ratio * winner) / mean)
    else:
        half = math.hypot(_find_half_width(other), ratio * _find_half_width(winner)) / mean
    return ratio - 1.0, ratio - 1.0 - half, ratio - 1.0 + half


def _find_half_width(values: Float[np.ndarray, " seed"]) -> float:
    summary = summarise(values)
    return summary.high - summary.mean
