"""Private UCB: one agent's UCB on sums that a binary tree for each arm makes private."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp

from fmab_jax.algorithms.families import tree
from fmab_jax.algorithms.families.index import IndexPolicy
from fmab_jax.algorithms.families.private import Private
from fmab_jax.algorithms.families.slots import Params, Slot, at, first_best
from fmab_jax.parameters import Flag, Real, parameter
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.records.ledger import COMPUTED_HERE, Disclosure
from fmab_jax.sampling.arrays import rounded
from fmab_jax.sampling.shapes import ArmPerRow, PerRowArm


class TreeState(NamedTuple):
    """An agent's state, by arm.

    Attributes:
        pulls: Pulls of the arm, n.
        sums: Sums of its rewards.
        noise: Noise of the released sum, in units of one block's scale.
    """

    pulls: PerRowArm
    sums: PerRowArm
    noise: PerRowArm


@dataclass(frozen=True)
class TreeUCB(Private, IndexPolicy):
    """Private UCB: the largest noisy mean + sqrt(2 log t / n) + Gamma / n, each agent alone.

    An arm's rewards are summed with the noise of a binary tree of T leaves (`families.tree`),
    Laplace(L / epsilon_0) for each block, and Gamma = log(T)^2 log(K T log(T) / failure) /
    epsilon_0. epsilon_0 is epsilon / K in the paper. Arms are disjoint data, so that one changed
    reward enters one tree: without ``split``, epsilon_0 is epsilon, and the factor K of Gamma goes.
    L = ceil(log2(T + 1)) blocks hold a reward; the paper's log2 T is a little less, and epsilon
    would not be what is told.

    Attributes:
        epsilon: Privacy of an agent's actions, for one changed reward; None for no noise.
        split: Whether epsilon is divided by K, as in the paper.
        failure: Chance gamma that Gamma does not cover the noise; the paper leaves it open.

    Example:
        No message is sent. Epsilon covers what an agent does.

        >>> import fmab_jax as fmab
        >>> for row in fmab.privacy_ledger(fmab.tree_ucb(0.5), agents=5):
        ...     print(row.viewer, row.epsilon)
        anybody who sees actions 0.5
    """

    name = "tree_ucb"
    title = "Private UCB"
    source = "Mishra and Thakurta, UAI 2015, algorithm 1"
    communication = "nobody: each agent alone"
    trusted = "nobody: no message is sent"

    split: bool = parameter(Flag(), "Divide epsilon by K, as in the paper.", default=False)
    failure: float = parameter(
        Real(low=0.0, high=1.0, open_low=True, open_high=True),
        "Chance that the index does not cover the noise.",
        default=0.1,
    )

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Covers actions, which are functions of the released sums."""
        if not self.split:
            why = "an arm's tree holds a reward in ceil(log2(T + 1)) noisy blocks"
            return (self.make_row(why, source=COMPUTED_HERE),)
        # A reward enters only one arm's tree.
        why = "an arm's tree has epsilon / K, and arms are disjoint data: less leaks"
        return (self.make_row(why, source=self.source),)

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, params: Params) -> TreeState:
        """Returns the state of agents that know nothing."""
        return TreeState(*(jnp.zeros((rows, arms)),) * 3)

    @staticmethod
    def choose(state: TreeState, slot: Slot, params: Params) -> ArmPerRow:
        """Returns the arm of the largest index, which is infinite before the first pull."""
        # epsilon_0 of one arm's tree
        epsilon = params["epsilon"] / jnp.where(params["split"] > 0.0, slot.arms, 1.0)
        log = jnp.log(slot.horizon)
        covered = log * log * jnp.log(slot.arms * slot.horizon * log / params["failure"])
        scale = tree.count_levels(slot.horizon) / epsilon
        total = state.sums + rounded(scale * state.noise)
        width = jnp.sqrt(2.0 * jnp.log(slot.time) * state.pulls)
        index = (total + width + covered / epsilon) / state.pulls
        return first_best(jnp.where(state.pulls > 0.0, index, jnp.inf))

    @staticmethod
    def update(
        state: TreeState, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, params: Params
    ) -> TreeState:
        """Adds pulls and rewards; the pulled arm's sum gets the noise of its blocks."""
        after = IndexPolicy.update(state, pulls, rewards, slot, params)
        arm = first_best(pulls)
        noise = tree.draw_noise(slot, arm, at(after.pulls, arm), pulls.shape[1])
        return after._replace(noise=jnp.where(pulls > 0.0, noise[:, None], state.noise))
