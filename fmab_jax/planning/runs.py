"""The trials of a plan: simulated, stored, and summarised."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.bands import student_critical
from fmab_jax.analysis.budgets import find_tail, read_spending
from fmab_jax.errors import Refusal, format_quantity, refuse
from fmab_jax.files import error_stream
from fmab_jax.planning.candidates import Candidate, Setting
from fmab_jax.planning.race import Sample
from fmab_jax.sweeps.runner import sweep

if TYPE_CHECKING:
    import xarray as xr

Trials = dict[str, np.ndarray]
"""Regret, links, numbers, bits and final gap of one configuration, [seed] each."""

# Seeds of the first look, and fresh seeds of the answer's figures.
FIRST_SEEDS, FRESH_SEEDS = 200, 2000
# On processors, so that one program serves all looks.
_BATCH = 200
# Fresh seeds are of a level that no look has.
FRESH_LEVEL = 1000


class Summary(NamedTuple):
    """A quantity over fresh seeds.

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
    """The trials of a plan: each doubling of the seeds has a root seed of its own."""

    def __init__(
        self,
        setting: Setting,
        candidates: Sequence[Candidate],
        root_seed: int,
        store: Path | None,
        client: Any,
        progress: bool,
    ) -> None:
        self.setting, self.candidates, self.root_seed = setting, candidates, root_seed
        self.store, self.client, self.progress = store, client, progress
        self.blocks: dict[tuple[int, int], Trials] = {}
        self.looks: list[Look] = []

    def observe(self, group: Sequence[int], seeds: int) -> list[Sample]:
        """Returns the samples of some candidates for the first so many seeds."""
        level, start = 0, 0
        pieces: dict[int, list[Trials]] = {i: [] for i in group}
        while start < seeds:
            whole = FIRST_SEEDS if level == 0 else FIRST_SEEDS * 2 ** (level - 1)
            block = self._run(group, level, min(whole, seeds - start))
            for i in group:
                pieces[i].append(block[i])
            start, level = start + whole, level + 1
        if self.progress:
            number = format_quantity(len(self.candidates), "candidate")
            line = f"{len(group)} of {number}: {format_quantity(seeds, 'seed')}"
            print(line, file=error_stream(), flush=True)
        samples = [self._judge(pieces[i]) for i in group]
        for i, sample in zip(group, samples, strict=True):
            mean, low, high = summarise(sample.regret)[:3]
            self.looks.append(Look(self.candidates[i].label, seeds, mean, low, high))
        return samples

    def _judge(self, pieces: list[Trials]) -> Sample:
        joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        setting = self.setting
        is_over = (
            (joined["links"] > setting.links)
            | (joined["numbers"] > setting.numbers)
            | (joined["bits"] > setting.bits)
        )
        return Sample(joined["regret"], is_over)

    def _run(self, group: Sequence[int], level: int, seeds: int) -> dict[int, Trials]:
        """Returns the trials of a level; computes those that are missing."""
        missing = [
            i for i in group if len(self.blocks.get((i, level), {"regret": ()})["regret"]) < seeds
        ]
        if missing:
            algorithms = {self.candidates[i].label: self.candidates[i].algorithm for i in missing}
            for i, trials in zip(missing, self.simulate(algorithms, level, seeds), strict=True):
                self.blocks[i, level] = trials
        return {
            i: {name: values[:seeds] for name, values in self.blocks[i, level].items()}
            for i in group
        }

    def simulate(self, algorithms: dict[str, Algorithm], level: int, seeds: int) -> list[Trials]:
        """Runs algorithms for the seeds of a level."""
        name = f"seeds-{self.root_seed}-{level}"
        root = hashlib.sha256(f"{self.root_seed} {level}".encode()).digest()[:4]
        store = None if self.store is None else self.store / name
        if store is not None and store.is_symlink():
            remedy = f"its {name} is a symbolic link: put the real one in its place"
            refuse("store", str(self.store), "a folder of plans", remedy)
        with self._rename_store_refusal():
            data = sweep(
                algorithms,
                self.setting.problem,
                horizon=self.setting.horizon,
                seeds=seeds,
                times=[self.setting.horizon],
                root_seed=int.from_bytes(root),
                store=store,
                allow_changes=("algorithm", "seeds") if store else (),
                client=self.client,
                batch=_BATCH if jax.default_backend() == "cpu" else None,
                progress=False,
            )
        return [extract_trials(data.isel(algorithm=place)) for place in range(len(algorithms))]

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

    def find_least(self) -> dict[str, float]:
        """Returns the fewest links, numbers and bits of a run."""
        return {
            name: float(min(trials[name].min() for trials in self.blocks.values()))
            for name in ("links", "numbers", "bits")
        }

    def find_most(self, candidate: int, name: str) -> float:
        """Returns the most links, numbers or bits of a run of a candidate."""
        return float(max(x[name].max() for (i, _), x in self.blocks.items() if i == candidate))


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


def summarise(values: Float[np.ndarray, " seed"]) -> Summary:
    """Returns mean, its 95 % interval (Student), the 95 % quantile and the maximum."""
    mean, seeds = float(np.mean(values)), len(values)
    half = student_critical(seeds - 1, 0.05) * float(np.std(values, ddof=1)) / math.sqrt(seeds)
    return Summary(mean, mean - half, mean + half, *find_tail(values))
