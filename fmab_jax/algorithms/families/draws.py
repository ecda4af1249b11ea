"""The rewards and the noise of an epoch, in arrays of arms."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from fmab_jax.algorithms.families.rounds import Epoch, since_heard
from fmab_jax.core import arrays, keys, laplace, normal, sums
from fmab_jax.core.instances import Instance
from fmab_jax.core.shapes import PerArm, Scalar, Table


class Columns(NamedTuple):
    """Constants of the arms that an array's columns stand for, in ascending order.

    Not a part of the loop's state: a vmapped loop rewrites all of that at every step.

    Attributes:
        arm: Identity; decides the arm's random numbers.
        gap: The arm's gap.
        parameters: Of its rewards, [agent or 1, arm] each; none where rows of agents that differ
            are summed: that takes cumulants.
        cumulants: [7, row, arm] of a pull by every agent of a row; None where means are shared.
    """

    arm: UInt32[Array, " arm"]
    gap: PerArm
    parameters: tuple[Float[Array, "agent arm"], ...]
    cumulants: Float[Array, "cumulant row arm"] | None


def of_all(
    trial: Any,
    instance: Instance,
    key: Array,
    number: Array,
    epoch: Epoch,
    columns: Columns,
    need: Bool[Array, " arm"],
    pieces: Int[Array, " arm"] | None = None,
) -> tuple[Table, Float[Array, "heard arm"]]:
    """Returns the rewards of an epoch, and the noise on what is sent of them, by row.

    ``pieces`` says how many Laplace variables are on each arm, where they are not as many on all.
    """
    width = instance.gaps.shape[0]
    sizes = (trial.reward_sizes, trial.noise_sizes)
    needed = [need[None, :] & (each > 0.0)[:, None] for each in sizes]
    lanes = [keys.lanes(each.shape[0], columns.arm, width) for each in sizes]
    words = keys.stream_key(key, number, keys.REWARD)
    disturbing = keys.stream_key(key, number, keys.NOISE)
    # The mapped function must not hold the trial: its arrays would outlive the trace.
    law, by_group = trial.law, trial.noise_by_group
    scale = trial.filling.noise_scale(epoch) * law.sensitivity
    alike = all(len(x) == 1 for x in columns.parameters)
    if trial.room > 0 and not trial.alone and alike:
        return _alike(trial, words, disturbing, scale, width, epoch.fresh, columns, need)
    if trial.apart:
        fixed = (columns.cumulants, instance.parameters, trial.member)
        rewarding = sums.group_sum(law, words, columns.arm, width, epoch.fresh, *fixed)
    else:
        total = epoch.fresh * sizes[0][:, None]
        rewarding = sums.own_sum(law, *words, lanes[0], total, *columns.parameters)
    sample, count = rewarding.sample, rewarding.outputs
    if not trial.noisy:
        found = arrays.masked_map(sample, needed[0], *rewarding.operands, outputs=count)
        return rewarding.finish(needed[0], *found), jnp.zeros((len(sizes[1]), len(need)))
    operands, shapes = (*disturbing, lanes[1]), trial.noise_shapes

    # A sum of noise is a function of one normal variable, which 0 stands for where none is needed.
    def noise(k0: Array, k1: Array, lane: Array) -> Array:
        if by_group:
            return normal.quantile(keys.uniform(k0, k1, lane))
        return laplace.laplace(k0, k1, lane)

    # Rewards and noise are drawn in one map: the needed places are then found only once.
    def both(*own: Any) -> tuple[Array, ...]:
        return noise(*own[:3]), *sample(*own[3:])

    if trial.rows_agree:
        joint = (*operands, *rewarding.operands)
        disturbed, *found = arrays.masked_map(both, needed[0], *joint, outputs=1 + count)
    else:
        found = arrays.masked_map(sample, needed[0], *rewarding.operands, outputs=count)
        disturbed = arrays.masked_map(noise, needed[1], *operands)
    if by_group:
        of_each = shapes[:, :, None] if pieces is None else shapes[:, None, pieces]
        disturbed = laplace.laplace_sum(disturbed, of_each)
    rewarded, disturbed = rewarding.finish(needed[0], *found), arrays.rounded(scale * disturbed)
    if trial.merged:
        return rewarded + disturbed, jnp.zeros((0, len(need)))
    return rewarded, disturbed


def of_some(
    trial: Any,
    key: Array,
    number: Array,
    epoch: Epoch,
    columns: Columns,
    need: Bool[Array, " arm"],
    fresh: Float[Array, " agent"],
    silent: Int[Array, " agent"],
) -> Table:
    """Returns rewards plus noise of the agents that are heard, since each was heard last.

    Args:
        trial: One that is ``lazy``.
        key: As in `run`.
        number: Of the epoch.
        epoch: What the equations see.
        columns: The arms.
        need: Which of them are in play.
        fresh: Pulls of each arm since; 0 where an agent is not heard.
        silent: Epochs since.
    """
    lanes = keys.lanes(trial.room, columns.arm, trial.arms)
    words = keys.stream_key(key, number, keys.REWARD)
    disturbing = keys.stream_key(key, number, keys.NOISE)
    law, noisy = trial.law, trial.noisy
    scale = trial.filling.noise_scale(epoch) * law.sensitivity if noisy else 0.0

    def both(*own: Array) -> Array:
        n0, n1, count, scale, *rest = own
        return since_heard(law, noisy, n0, n1, count, scale, *rest)

    wanted = need[None, :] & (silent > 0)[:, None]
    noise = (*disturbing, silent[:, None], scale)
    rewards = (*words, lanes, fresh[:, None], *columns.parameters)
    return arrays.masked_map(both, wanted, *map(jnp.asarray, (*noise, *rewards)))


def _alike(
    trial: Any,
    words: keys.Words,
    disturbing: keys.Words,
    scale: Scalar,
    width: int,
    pulls: Scalar,
    columns: Columns,
    need: Bool[Array, " arm"],
) -> tuple[Table, Float[Array, "heard arm"]]:
    """Does what `of_all` does where agents are alike, each with rewards of its own.

    What is drawn for an arm is a row of agents, with one distribution.
    """
    law, merged, rows = trial.law, trial.merged, len(trial.reward_sizes)
    by_agent = trial.noisy and not trial.noise_by_group

    def row(small: bool, *own: Array) -> tuple[Array, ...]:
        k0, k1, n0, n1, scale, arm, *rest = own
        agent = jnp.arange(rows, dtype=jnp.uint32)
        lane = agent[:, None] * jnp.uint32(width) + arm[None]
        rewards = law.totals(k0, k1, lane, *rest, small=small)
        if not by_agent:
            return (rewards,)
        noise = arrays.rounded(scale[None] * laplace.laplace(n0[None], n1[None], lane))
        return (rewards + noise,) if merged else (rewards, noise)

    shared = [x[0] for x in columns.parameters]
    operands = (*words, *disturbing, scale, columns.arm, pulls, *shared)
    kind, ways = need, [partial(row, False)]
    if (small := law.small(jnp.broadcast_to(pulls, need.shape), *shared)) is not None:
        kind = jnp.where(need, jnp.where(small, 1, 2), 0)
        ways = [partial(row, True), partial(row, False)]
    count = 1 + (by_agent and not merged)
    found = arrays.masked_map(ways, kind, *operands, outputs=count, rows=rows)
    real = trial.reward_sizes[:, None] > 0.0
    rewarded, *noise = (jnp.where(real, x, 0.0) for x in found)
    if merged or not trial.noisy:
        return rewarded, jnp.zeros((0 if merged else len(trial.noise_sizes), len(need)))
    if by_agent:
        return rewarded, noise[0]
    groups = need[None, :] & (trial.noise_sizes > 0.0)[:, None]
    lanes = keys.lanes(len(groups), columns.arm, width)
    z = arrays.masked_map(_normal, groups, *disturbing, lanes)
    disturbed = laplace.laplace_sum(z, trial.noise_shapes[:, :, None])
    return rewarded, arrays.rounded(scale * disturbed)


def _normal(k0: Array, k1: Array, lane: Array) -> Array:
    return normal.quantile(keys.uniform(k0, k1, lane))
