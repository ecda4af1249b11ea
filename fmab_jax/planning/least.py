"""What a candidate surely loses, before it runs: an elimination pulls all arms in its first epoch.

Nothing is simulated; the gaps of a seed's instance are drawn as simulations draw them.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.algorithms.families.paper import PaperElimination
from fmab_jax.elimination import EliminationTrial
from fmab_jax.equations import Epoch
from fmab_jax.parts.instances import TIE, BoundProblem, Instance
from fmab_jax.parts.mechanisms.mechanism import Mechanism
from fmab_jax.records.problem import Problem
from fmab_jax.run.configs import Config
from fmab_jax.sampling import keys
from fmab_jax.sampling.scope import own_settings

# A sum of regret in float64 may be smaller than the exact one by less than this part.
_ROUNDING = 1e-9
# Gaps of seeds that are drawn at once.
_MOST_GAPS = 2**20


def get_gaps(problem: Problem) -> Float[np.ndarray, " arm"] | None:
    """Returns the gaps of all instances; None where seeds draw them."""
    if problem.means is None or problem.drawn:
        return None
    means = problem.means.mean(axis=0)
    gaps = means.max() - means
    gaps[gaps < TIE] = 0.0
    return gaps


def count_first_pulls(config: Config) -> float:
    """Returns the pulls of each arm, by all agents together, before anything can be eliminated.

    0 for anything but an elimination, and where the first epoch depends on the instance that a
    seed draws.

    Args:
        config: The candidate on its problem.
    """
    trial, problem = config.trial, config.problem
    # Another trial may run differently.
    if type(trial) is not EliminationTrial or problem.world or problem.presence:
        return 0.0
    gaps, owner = get_gaps(problem), trial.algorithm
    reads_gap = owner.resolve_params is not Elimination.resolve_params
    if gaps is None and reads_gap and not _has_paper_schedule(owner):
        return 0.0
    # The paper's equations give NaN where they need a gap that is not known.
    smallest = np.float64(math.nan) if gaps is None else _find_smallest(gaps)
    try:
        pulls = _count_first_pulls(config, smallest)
        return float(pulls) if np.ndim(pulls) == 0 else 0.0
    except Exception:  # an equation of a plug-in
        return 0.0


def _has_paper_schedule(owner: type[Any]) -> bool:
    """Tells whether the first epoch is the paper's, which reads no more than the smallest gap."""
    names = ("resolve_params", "pulls_per_arm", "budget")
    return all(getattr(owner, n) is getattr(PaperElimination, n) for n in names)


def _find_smallest(gaps: Float[np.ndarray, "... arm"]) -> Any:
    """Returns the smallest gap that is not 0, as instances have it."""
    return np.min(np.where(gaps > 0.0, gaps, 1.0), axis=-1)


def _count_first_pulls(config: Config, smallest_gap: Any) -> Any:
    """Returns as `count_first_pulls`, by the smallest gap: a number, or [seed]."""
    trial: Any = config.trial
    T, M, K = config.horizon, config.problem.agents, config.problem.arms
    gaps = get_gaps(config.problem)
    if gaps is None:
        means, gaps = np.full((1, K), np.nan), np.full(K, np.nan)
    else:
        means = np.asarray(config.problem.means)
    owner, mechanism = trial.algorithm, trial.draws.mechanism
    sizes = 1.0 if trial.alone else float(M), float(trial.reporting), float(T)
    with own_settings():
        values = (trial.params, sizes, means, gaps, smallest_gap)
        arrays = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), values)
        if np.ndim(smallest_gap):
            found = _find_paper_pulls(mechanism, *arrays)
        else:
            found = _find_pulls(owner, mechanism, *arrays)
        pulls, budget = (np.asarray(x, np.float64) for x in found)
    is_shared = trial.draws.shares_arms
    each, most = (1, M * T) if is_shared else (M, T)
    # An epoch that the horizon ends is charged to all arms alike.
    counts = np.minimum(np.maximum(np.floor(pulls), 1.0), most // K)
    # A run that has no rounds decides at once.
    return each * np.where((budget > 0.0) & ~np.isnan(pulls), counts, 0.0)


def _find_pulls(
    owner: type[Any],
    mechanism: Mechanism,
    params: dict[str, Array],
    sizes: tuple[Array, Array, Array],
    means: Array,
    gaps: Array,
    smallest_gap: Array,
) -> tuple[Any, Any]:
    """Returns the pulls of the first epoch, and the budget of rounds, by the equations."""
    params = owner.resolve_params(params, Instance(means, gaps, smallest_gap, ()))
    arms, zero = jnp.full((), float(len(gaps))), jnp.zeros(())
    numbers = jnp.ones(()), arms, arms, *sizes, zero
    epoch = Epoch(*numbers, params, mechanism=mechanism)
    return owner.pulls_per_arm(epoch), owner.budget(params)


@partial(jax.jit, static_argnums=0)
def _find_paper_pulls(
    mechanism: Mechanism,
    params: dict[str, Array],
    sizes: tuple[Array, Array, Array],
    means: Array,
    gaps: Array,
    smallest_gap: Array,
) -> tuple[Any, Any]:
    """Returns pulls and budget by the paper's equations, for the smallest gap of each instance."""
    find = partial(_find_pulls, PaperElimination, mechanism, params, sizes, means, gaps)
    return jax.vmap(find)(smallest_gap)


def find_least_regret(
    config: Config, gaps: Float[np.ndarray, "seed arm"]
) -> Float[np.ndarray, " seed"]:
    """Returns what is surely lost by the horizon on each seed; 0 where nothing is known.

    No run of an elimination loses less.

    Args:
        config: The candidate on its problem.
        gaps: Of the seeds' instances, as `draw_gaps` returns them.
    """
    problem, trial = config.problem, config.trial
    total, certain = gaps.sum(axis=1), 1.0 - _ROUNDING
    if problem.world or problem.presence:
        return np.zeros(len(gaps))
    # With a budget, the paper's first epoch is made for the gap of the instance.
    is_oracle = type(trial) is EliminationTrial and _has_paper_schedule(trial.algorithm)
    if problem.drawn and is_oracle and getattr(config.algorithm, "rounds", None) is not None:
        return certain * _count_first_pulls(config, _find_smallest(gaps)) * total
    return certain * count_first_pulls(config) * total


def draw_gaps(
    problem: Config | Problem, root_seed: int, seeds: int
) -> Float[np.ndarray, "seed arm"]:
    """Returns the gaps of the instances of the first seeds, as simulations draw them.

    Args:
        problem: The problem, without a world, or a configuration with it.
        root_seed: As in `simulate`.
        seeds: Number of seeds.
    """
    bound = problem.bound if isinstance(problem, Config) else problem.bind()
    arms = bound.arms
    chunk = max(1, min(1 << max(0, seeds - 1).bit_length(), _MOST_GAPS // (arms * bound.rows)))
    parts = []
    with own_settings():
        for first in range(0, seeds, chunk):
            numbers = np.arange(first, first + chunk, dtype=np.uint32)
            parts.append(np.asarray(_draw_gaps(bound, np.uint32(root_seed), numbers)))
    return np.concatenate([np.zeros((0, arms)), *parts])[:seeds]


@jax.jit
def _draw_gaps(
    bound: BoundProblem, root_seed: UInt32[Array, ""], seeds: UInt32[Array, " seed"]
) -> Float[Array, "seed arm"]:
    """Returns the gaps of some seeds."""
    draw = jax.vmap(lambda seed: bound.draw(keys.seed_key(root_seed, seed)).gaps)
    return draw(seeds)
