"""Bandit instances: the mean reward of every arm at every agent, fixed or drawn anew by each seed.

A `Problem` is what a user states; `Law` and `draw_instance` are what the compiled loop needs of it.
"""

from __future__ import annotations

import csv
import math
import os
import stat
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fmab_jax.core import arrays, keys
from fmab_jax.core.scope import own_settings
from fmab_jax.errors import array_of, count, real, refuse
from fmab_jax.files import checked_path
from fmab_jax.resources import affordable, refuse_after_fork

MAX_ARMS = 10**6
MAX_AGENTS = 10**7
# Means that differ by less are equal: averaging over agents leaves rounding errors of this order.
TIE = 1e-12
_MAX_FILE_BYTES = 1 << 30
_MAX_MEANS = 1 << 27
# Bytes that drawing an instance holds at its peak, for each mean; measured by the tests.
_BYTES_PER_MEAN = 112


class Law(NamedTuple):
    """The static part of a problem: what a compilation depends on.

    Attributes:
        kind: "fixed", "uniform" or "gap".
        rows: Rows of the means: 1 where all agents share them, else the number of agents.
        arms: Number of arms.
    """

    kind: str
    rows: int
    arms: int


class Instance(NamedTuple):
    """One seed's problem.

    Attributes:
        means: [row, arm] Bernoulli means.
        gaps: [arm] best global mean minus the arm's; ties count as 0.
        smallest_gap: Smallest non-zero gap; 1 where all arms are tied.
    """

    means: Float[Array, "row arm"]
    gaps: Float[Array, " arm"]
    smallest_gap: Float[Array, ""]


@dataclass(frozen=True, eq=False)
class Problem:
    """M agents, K arms and their Bernoulli means.

    ``Problem(means)`` fixes an [agent, arm] array; ``Problem(means, agents=M)`` lets M agents share
    an [arm] vector. `uniform`, `heterogeneous` and `with_gap` draw the means anew for each seed, as
    the paper's experiments do (section VII-A); `fixed` keeps one such draw for all seeds.

    Attributes:
        means: [agent, arm] or, shared by all agents, [1, arm]; None where each seed draws its own.
        agents: M.
        arms: K.
        spread: Size of the zero-sum perturbation over agents, in [0, 1].
        gap: Prescribed smallest gap in (0, 1), or None.
    """

    means: np.ndarray | None
    agents: int
    arms: int
    spread: float
    gap: float | None

    def __init__(self, means: Any, agents: int | None = None) -> None:
        """Fixes the means.

        Args:
            means: [arm] with ``agents``, or [agent, arm]; every entry in [0, 1].
            agents: Number of agents that share an [arm] vector.

        Raises:
            ValueError: If the array is not numeric, not one- or two-dimensional, empty, outside
                [0, 1], or if ``agents`` contradicts it.
        """
        remedy = "give one row per agent, all equally long"
        array = array_of("means", means, _MAX_MEANS, "an array of numbers", remedy)
        with np.errstate(over="ignore"):
            array = np.array(array, np.float64)
        if array.ndim not in (1, 2) or array.size == 0:
            refuse(
                "means",
                array.shape,
                "an array shaped [arm] or [agent, arm], not empty",
                "give one mean per agent and arm",
            )
        bad = ~((array >= 0) & (array <= 1))
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            refuse(
                f"means{list(where)}",
                float(array[bad][0]),
                "in [0, 1]",
                "rewards lie in [0, 1], so rescale them",
            )
        if array.ndim == 1:
            if agents is None:
                refuse(
                    "agents", None, "given with [arm] means", "pass agents=M or [agent, arm] means"
                )
            array = array[None, :]
        elif agents is not None and agents != len(array):
            refuse("agents", agents, f"{len(array)}, the rows of means", "leave agents out")
        else:
            agents = len(array)
        if np.ptp(array, axis=0).max() == 0:
            array = array[:1]
        array.setflags(write=False)
        self._set(array, agents, array.shape[1], 0.0, None)

    def _set(self, means: Any, agents: Any, arms: Any, spread: Any, gap: Any) -> None:
        agents = count("agents", agents, 1, MAX_AGENTS, "give the number of agents M")
        arms = count("arms", arms, 1, MAX_ARMS, "give the number of arms K")
        if agents * arms >= 2**32:
            refuse(
                "agents", agents, f"below {2**32 // arms:,} with {arms} arms", "use fewer agents"
            )
        spread = real("spread", spread, 0.0, 1.0, "0 makes the agents alike, 1 is the most")
        if gap is not None:
            remedy = "give the smallest non-zero gap, or None to leave it to chance"
            gap = real("gap", gap, 1e-9, 1.0, remedy, open_high=True)
            if arms < 2:
                refuse("gap", gap, "None with one arm", "use at least two arms")
        fields = dict(means=means, agents=agents, arms=arms, spread=spread, gap=gap)
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _drawn(cls, agents: int, arms: int, spread: float, gap: float | None) -> Problem:
        problem = cls.__new__(cls)
        problem._set(None, agents, arms, spread, gap)
        return problem

    @classmethod
    def uniform(cls, agents: int, arms: int) -> Problem:
        """All agents share means that each seed draws from U[0, 1] (the paper's section VII-A)."""
        return cls._drawn(agents, arms, 0.0, None)

    @classmethod
    def heterogeneous(
        cls, agents: int, arms: int, spread: float = 1.0, gap: float | None = None
    ) -> Problem:
        """Agents differ: global means as in `uniform` or `with_gap`, plus a zero-sum perturbation.

        The perturbation of an arm is centred noise over the agents, stretched to ``spread`` times
        the most that keeps every mean in [0, 1]; the global means are exact.

        Args:
            agents: M.
            arms: K.
            spread: In [0, 1].
            gap: Smallest gap of the global means, or None for U[0, 1] global means.
        """
        return cls._drawn(agents, arms, spread, gap)

    @classmethod
    def with_gap(cls, agents: int, arms: int, gap: float) -> Problem:
        """Each seed draws means whose smallest gap is ``gap``.

        The best mean is U[gap, 1]; the second best is ``gap`` below it; the others are spread
        uniformly below that.

        Args:
            agents: M.
            arms: K >= 2.
            gap: In [1e-9, 1).
        """
        return cls._drawn(agents, arms, 0.0, gap)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], agents: int | None = None) -> Problem:
        """Reads fixed means from a CSV (one row per agent, one column per arm) or an NPZ file.

        A CSV may have a header line; one row with ``agents=M`` is shared by M agents. An NPZ holds
        one array, or one called ``means``.

        Raises:
            ValueError: If the file cannot be read, is too large, or its numbers are not means.
        """
        path = checked_path("means", path)
        reader = {".csv": _read_csv, ".npz": _read_npz}.get(path.suffix.lower())
        if reader is None:
            refuse("means", str(path), "a .csv or .npz file", "convert it")
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode):
                # A pipe would be waited for.
                refuse("means", str(path), "a file", "this path is no regular file")
            if found.st_size > _MAX_FILE_BYTES:
                refuse("means", str(path), "at most 1 GiB", "use a smaller file")
            array = reader(path)
        except OSError as error:
            refuse("means", str(path), "a readable file", str(error.strerror or error))
        if array.ndim == 2 and len(array) == 1 and agents is not None:
            array = array[0]
        return cls(array, agents)

    @property
    def homogeneous(self) -> bool:
        """Whether all agents share the means."""
        return self.spread == 0.0 if self.means is None else len(self.means) == 1

    @property
    def law(self) -> Law:
        """What a compilation depends on."""
        kind = "fixed" if self.means is not None else "uniform" if self.gap is None else "gap"
        return Law(kind, 1 if self.homogeneous else self.agents, self.arms)

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The values a compilation does not depend on."""
        if self.means is not None:
            return {"means": self.means}
        spread = np.float64(self.spread)
        gap = np.float64(0.0 if self.gap is None else self.gap)
        return {"spread": np.asarray(spread), "gap": np.asarray(gap)}

    def fixed(self, seed: int = 0, root_seed: int = 0) -> Problem:
        """Returns the problem that fixes the means that ``seed`` would draw."""
        seed = keys.checked_seed("seed", seed)
        root_seed = keys.checked_seed("root_seed", root_seed)
        if self.means is not None:
            return self
        # Levels, offsets and means of every agent are held at once.
        needed = _BYTES_PER_MEAN * self.law.rows * self.arms
        affordable("memory", needed, "use fewer agents or arms")
        refuse_after_fork()
        with own_settings():
            key = keys.seed_key(jnp.uint32(root_seed), jnp.uint32(seed))
            means = np.asarray(draw_instance(self.law, self.parameters, key).means)
        return Problem(means[0], self.agents) if len(means) == 1 else Problem(means)

    def describe(self) -> dict[str, Any]:
        """Returns a JSON-able description that identifies the problem."""
        described: dict[str, Any] = {
            "kind": self.law.kind,
            "agents": self.agents,
            "arms": self.arms,
        }
        if self.means is not None:
            described["means"] = self.means.tolist()
        else:
            described |= {"spread": self.spread, "gap": self.gap}
        return described


def draw_instance(law: Law, parameters: dict[str, Any], key: Array) -> Instance:
    """Returns one seed's instance; pure, for use under ``jit`` and ``vmap``.

    Args:
        law: Static.
        parameters: `Problem.parameters`.
        key: The seed's key; round 0 of it belongs to the instance.
    """
    if law.kind == "fixed":
        means = jnp.asarray(parameters["means"])
        return Instance(means, *_gaps(arrays.pairwise_sum(means) / law.rows))
    words = keys.stream_key(key, 0, keys.INSTANCE)
    arm = jnp.arange(law.arms, dtype=jnp.uint32)
    level = keys.uniform(*words, arm)
    if law.kind == "gap":
        gap = parameters["gap"]
        index = jnp.arange(law.arms)
        best = jnp.argmax(level)
        second = jnp.argmax(jnp.where(index == best, -1.0, level))
        top = gap + arrays.rounded((1.0 - gap) * keys.uniform(*words, arm[0], draw=2))
        level = jnp.where(index == best, top, (top - gap) * (level / level[second]))
    if law.rows == 1:
        return Instance(level[None, :], *_gaps(level))
    raw = keys.uniform(*words, keys.lanes(law.rows, arm, law.arms), draw=1)
    offset = raw - arrays.rounded(arrays.pairwise_sum(raw) / law.rows)[None, :]
    # The most the offsets of an arm can be stretched with every mean still in [0, 1].
    down = level / jnp.maximum(-jnp.min(offset, axis=0), 1e-300)
    up = (1.0 - level) / jnp.maximum(jnp.max(offset, axis=0), 1e-300)
    stretch = parameters["spread"] * jnp.minimum(down, up)
    shift = arrays.rounded(stretch[None, :] * offset)
    means = jnp.clip(level[None, :] + shift, 0.0, 1.0)
    return Instance(means, *_gaps(level))


def _gaps(global_means: Float[Array, " arm"]) -> tuple[Array, Array]:
    gaps = jnp.max(global_means) - global_means
    gaps = jnp.where(gaps < TIE, 0.0, gaps)
    smallest = jnp.min(jnp.where(gaps > 0.0, gaps, 1.0))
    return gaps, smallest


def _read_csv(path: Path) -> np.ndarray:
    rows: list[list[float]] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            table = [[cell.strip() for cell in row] for row in csv.reader(lines)]
    except (UnicodeDecodeError, csv.Error):
        refuse("means", str(path), "a UTF-8 CSV file", "save it as CSV")
    for number, cells in enumerate(table, 1):
        values = [_float(cell) for cell in cells]
        if number == 1 and all(value is None for value in values):
            continue  # a header, or an empty line
        if not any(cells):
            continue
        if None in values:
            refuse("means", f"{path}, line {number}", "all numbers", "mend that line")
        rows.append([value for value in values if value is not None])
    if len({len(row) for row in rows}) != 1:
        refuse("means", str(path), "a table with equally long rows", "give one column per arm")
    return np.array(rows)


def _float(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _read_npz(path: Path) -> np.ndarray:
    # Damaged archives raise whatever zipfile, zlib and tokenize come across.
    wanted: list[str] = []
    size, kind = 0, "f"
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            wanted = [name for name in names if name == "means.npy"] or names
            if len(wanted) == 1:
                # A small file can claim terabytes: its header decides before anything is read.
                with archive.open(wanted[0]) as stream:
                    shape, dtype = _npy_header(stream)
                size, kind = math.prod(shape) * dtype.itemsize, dtype.kind
    except OSError:
        raise
    except Exception:
        refuse("means", str(path), "an NPZ file", "save it with numpy.savez")
    if len(wanted) != 1:
        refuse("means", str(path), "an NPZ with one array, or one called means", "rename it")
    if kind not in "fiu" or size > _MAX_FILE_BYTES:
        refuse("means", str(path), "numbers, at most 1 GiB", "save float64 means")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return np.asarray(arrays[wanted[0].removesuffix(".npy")])
    except Exception:
        refuse("means", str(path), "an NPZ file", "save it with numpy.savez")


def _npy_header(stream: Any) -> tuple[Sequence[int], np.dtype]:
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ValueError("unknown format")
    shape, _, dtype = read(stream)
    return shape, dtype
