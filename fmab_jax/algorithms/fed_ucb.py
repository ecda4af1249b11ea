"""Fed_UCB: Gossip_UCB whose agents send noisy sample means, with a binary tree for each arm."""

from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.algorithms.families import tree
from fmab_jax.algorithms.families.private import Private
from fmab_jax.algorithms.families.slots import Params, Slot, at, first_best
from fmab_jax.algorithms.gossip_ucb import (
    GossipState,
    GossipUCB,
    choose_arm,
    radius_factor,
    update_state,
)
from fmab_jax.parameters import ViewKind
from fmab_jax.parts.exchanges import Exchange, Viewer
from fmab_jax.records.ledger import COMPUTED_HERE, Disclosure
from fmab_jax.sampling import arrays, normal
from fmab_jax.sampling.shapes import ArmPerRow, PerRowArm


@dataclass(frozen=True)
# Private comes second, so that epsilon is the first argument.
class FedUCB(GossipUCB, Private):
    """Fed_UCB: Gossip_UCB on sample means with tree noise, and a radius that covers the noise.

    The sum of an arm's first n rewards is released with the noise of a binary tree
    (`families.tree`), Laplace(L / epsilon) for each block, L = ceil(log2(T + 1)) of which hold a
    reward. The source does not state the share 1 / L; its eq. 12 implies 1 / log T. All that others
    see of an agent, estimates and counts, follows from these sums, so it leaks epsilon for one
    changed reward. The first reward is noisy, too: the source's line 1 tells it as it is. The
    radius is sqrt(2 M (128 M log(T)^2 log(t) log(n) / (n epsilon)^2 + 1 / n) log t) (eq. 12), which
    tells nothing within any usual horizon: agents play almost uniformly.

    Attributes:
        epsilon: Privacy of what neighbours see of an agent, for one changed reward; None for no
            noise.
        graph: Who talks to whom; see `fmab_jax.parts.graphs.make`.
        radius: "theory" is the paper's; "scaled" divides it by sqrt(M) and is covered by no
            theorem.

    Example:
        What neighbours see is covered by epsilon:

        >>> import fmab_jax as fmab
        >>> for row in fmab.privacy_ledger(fmab.fed_ucb(0.5, graph="ring"), agents=5):
        ...     print(row.viewer, row.epsilon)
        neighbours 0.5
        anybody who sees actions 0.5
    """

    name = "fed_ucb"
    title = "Fed_UCB"
    source = "Zhu, Zhu, Liu and Liu, SIGMETRICS 2021, arXiv 2010.12763"
    trusted = "nobody: a message leaks at most its epsilon"

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Covers messages and actions: both are functions of the released sums."""
        reason = "sums are released by a binary tree, ceil(log2(T + 1)) noises for each reward"
        # The source gives a block another part of epsilon, so it cannot be cited for this bound.
        views = [view.viewer for view in exchange.views]
        messages = [
            self.make_row(
                reason,
                viewer,
                ViewKind.MESSAGES,
                source=COMPUTED_HERE,
                observation="estimates and counts",
            )
            for viewer in views
        ]
        return (*messages, self.make_row("a function of released sums", source=COMPUTED_HERE))

    def coalition(self, exchange: Exchange, size: int) -> tuple[Disclosure, ...]:
        """Covers any number of neighbours: all their messages are functions of the same sums."""
        why, viewer = "functions of the same sums", Viewer.COALITION
        row = self.make_row(why, viewer, ViewKind.MESSAGES, source=COMPUTED_HERE)
        return (row._replace(members=size, observation="estimates and counts"),)

    @staticmethod
    def choose(state: GossipState, slot: Slot, params: Params) -> ArmPerRow:
        """Returns a random late arm, or the one of the largest upper bound (eq. 12)."""
        n, log, agents = jnp.maximum(state.pulls, 1.0), jnp.log(slot.time), slot.agents
        per_pull = jnp.log(slot.horizon) / (n * params["epsilon"])
        private = arrays.rounded(128.0 * agents * log * normal.log(n) * per_pull * per_pull)
        return choose_arm(
            state, jnp.sqrt(2.0 * radius_factor(slot, params) * (private + 1.0 / n) * log), slot
        )

    @staticmethod
    def update(
        state: GossipState, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, params: Params
    ) -> GossipState:
        """Adds pulls and rewards; the pulled arm's sum gets the noise of its blocks."""
        arm = first_best(pulls)
        noise = tree.draw_noise(slot, arm, at(state.pulls, arm) + 1.0, pulls.shape[1])
        scale = tree.count_levels(slot.horizon) / params["epsilon"]
        return update_state(state, pulls, state.sums + rewards, arrays.rounded(scale * noise), slot)
