"""LDP-UCB: every reward gets its own noise before any agent sees it."""

from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.algorithms.families.private import Private
from fmab_jax.algorithms.families.slots import Params, Slot, Tally, first_best, upper_bound
from fmab_jax.algorithms.families.talking import Pooled, pooled_parameter
from fmab_jax.parameters import Flag, ViewKind, parameter
from fmab_jax.parts.exchanges import Exchange, Viewer
from fmab_jax.parts.mechanisms.bits import BITS
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.records.ledger import Disclosure
from fmab_jax.sampling import arrays, laplace
from fmab_jax.sampling.shapes import ArmPerRow, PerRow


@dataclass(frozen=True)
class LDPUCB(Private, Pooled):
    """LDP-UCB-L, or -B: UCB on rewards that are released with epsilon-local privacy.

    L releases r + Laplace(1/epsilon), and its index is mean + sqrt(2 log t / n) + sqrt(32 log t /
    (epsilon^2 n)) once every arm has more than 4 log(t + 1) pulls. B (``bits``) releases one random
    bit, 1 with chance (r e^epsilon + 1 - r) / (1 + e^epsilon), and plays UCB1 on the bits. Rewards
    are in [0, 1]. Pooled, a server sees what all agents release; the pulls of all count, t becomes
    M t, and a slot costs M links. The phantom pull of the authors' code is left out.

    Attributes:
        epsilon: Privacy of one reward towards everybody; None releases it as it is.
        bits: Whether a reward is released as one bit.
        pooled: Whether a server pools what is released in every slot.

    Example:
        Pooled, a server hears what every agent releases in every slot:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.ldp_ucb(1.0, pooled=True), problem, horizon=10**4, seeds=20)
        >>> data.links.sel(meter="server")[:, -1].mean().item()
        50000.0
        >>> [(row.viewer, row.epsilon) for row in fmab.privacy_ledger(fmab.ldp_ucb(1.0), agents=5)]
        [('anybody', 1.0), ('anybody who sees actions', 1.0)]
    """

    name = "ldp_ucb"
    title = "LDP-UCB"
    source = "Ren, Zhou, Liu and Shroff, arXiv 2007.03121, their code"
    trusted = "nobody: a reward leaks at most its epsilon"

    bits: bool = parameter(Flag(), "Release a reward as one random bit.", default=False)
    pooled: bool = pooled_parameter("A server pools what is released.")

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Covers every released reward, and all functions of it.

        Pooled, all agents pull the arm of the largest index of sums over all agents, so actions
        show an outsider a function of each slot's sum.
        """
        law = BITS if self.bits else LAPLACE
        if not self.pooled or exchange.agents == 1:
            follows = self.make_row("a function of the released rewards", noises=1, law=law)
            return (self._make_released_row(Viewer.ANYBODY), follows)
        why = "a function of each slot's sum over all agents"
        actions = self.make_row(why, Viewer.OUTSIDER, noises=exchange.agents, law=law)
        return (self._make_released_row(Viewer.ANYBODY), actions)

    def coalition(self, exchange: Exchange, size: int) -> tuple[Disclosure, ...]:
        """Covers every released reward, which anybody may see."""
        return (self._make_released_row(Viewer.COALITION)._replace(members=size),)

    def _make_released_row(self, viewer: Viewer) -> Disclosure:
        """Returns the ledger row of the released rewards."""
        form = "as one random bit" if self.bits else "with noise of its own"
        reason, law = f"each reward is released once, {form}", BITS if self.bits else LAPLACE
        row = self.make_row(reason, viewer, ViewKind.MESSAGES, noises=1, law=law)
        return row._replace(observation="every released reward", source=self.source)

    def number_bits(self, arms: int) -> int:
        """Returns the bits of a released reward: one where it is a random bit."""
        return 1 if self.bits else super().number_bits(arms)

    @staticmethod
    def release(rewards: PerRow, uniforms: PerRow, params: Params) -> PerRow:
        """Returns a noisy version, or a random bit, of each reward."""
        # A bit stays with probability 1 / (1 + e^-epsilon), which is 1 without noise.
        keep_chance = 1.0 / (1.0 + jnp.exp(-params["epsilon"]))
        chance = arrays.rounded(rewards * keep_chance) + arrays.rounded(
            (1.0 - rewards) * (1.0 - keep_chance)
        )
        noise = laplace.quantile(uniforms) / params["epsilon"]
        bit = jnp.where(uniforms > 1.0 - chance, 1.0, 0.0)
        return jnp.where(params["bits"] > 0.0, bit, rewards + noise)

    @staticmethod
    def choose(state: Tally, slot: Slot, params: Params) -> ArmPerRow:
        """Returns the first arm with too few pulls, else the arm of the largest index."""
        time = slot.sharing * slot.time
        log = jnp.log(time)
        root = jnp.sqrt(2.0 * log) + jnp.sqrt(32.0 * log) / params["epsilon"]
        noisy = params["bits"] == 0.0
        width = jnp.where(noisy, root * root, 2.0 * log)
        index = upper_bound(state.pulls, state.sums, width)
        few = noisy & (state.pulls <= 4.0 * jnp.log(time + 1.0))
        return first_best(jnp.where(few, jnp.inf, index))
