"""KL-SE: elimination by likelihood, from messages each of which hides every reward by epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool

from fmab_jax.algorithms.base import SERVER, Seen
from fmab_jax.algorithms.families.elimination import Epoch, Heard, Scalar
from fmab_jax.algorithms.families.messages import NoisyMessages
from fmab_jax.algorithms.families.private import secure_sum, shares_left
from fmab_jax.core import exchanges
from fmab_jax.core.evidence import evidence, evidence_needed
from fmab_jax.core.exchanges import Exchange, View
from fmab_jax.errors import refuse
from fmab_jax.parameters import Flag, Real, Whole, parameter


@dataclass(frozen=True)
class KLSE(NoisyMessages):
    """KL-SE: arms leave by a likelihood ratio of pairs; a whole run leaks epsilon.

    Every epoch makes an arm's pulls so far ``growth`` times as many. Each agent adds
    Laplace(1/epsilon) noise to the sum of this epoch's rewards: a reward is in one noisy sum. The
    server adds up those sums of all epochs, of the agents that report. An arm leaves when the
    evidence that its mean is below the leading one's (`fmab_jax.core.evidence`) reaches b_r,
    (1 + b_r) e^-b_r = failure / (K r (r+1)).

    So the best arm is lost with a probability of at most ``failure``, for rewards in [0, 1] and
    agents that are alike or all report. Where they ``split`` without a secure sum, past data decide
    how many noises are in a sum, and b_r is a little larger for it.

    Own work of this project, without a source; docs/theory.md has the proofs.

    Attributes:
        epsilon: Privacy of a whole run to whoever reads messages, for one changed reward; None for
            no noise.
        growth: By which factor the pulls of an arm grow each epoch.
        first: Pulls of an arm by each agent in the first epoch (by all together where they
            ``split``); None for as many as noise alone needs to tell a gap of one half.
        secure: Whether a secure sum hides single messages, and adds one noise to all of them.
        split: Whether agents, which must be alike, share the arms out: fewer of them pull an arm,
            each for longer, so that less noise is on it.
        participation: Share p of the agents that report in a round, in (0, 1].
        rounds: Round budget R, after which the best arm is played; None for none.
        failure: Probability that the best arm is lost, at most; None for 1 / T.

    Example:
        Two agents of five report in a round. A run leaks epsilon, not N epsilon.

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> algorithm = fmab.kl_se(0.5, participation=0.4)
        >>> data = fmab.simulate(algorithm, problem, horizon=10**4, seeds=20)
        >>> bool((data.links.sel(meter="server")[:, -1] == 2 * data.rounds_made).all())
        True
        >>> algorithm.privacy(algorithm.exchange(5))
        {'epsilon': 0.5, 'epsilon_message': 0.5}
    """

    name: ClassVar[str] = "kl_se"
    title: ClassVar[str] = "KL-SE"
    source: ClassVar[str] = "this project, docs/theory.md"
    heard: ClassVar[str] = "a server hears ceil(pM) agents a round, or a secure sum"
    trusted: ClassVar[str] = "nobody, up to the epsilon of a message; or secure aggregation"
    examples: ClassVar[tuple[str, ...]] = (
        "--epsilon 0.1 1 10 --out kl",
        "--epsilon 1 --growth 2 3 5 --split true",
    )
    noisy: ClassVar[bool] = True

    growth: float = parameter(
        Real(low=1.0, high=1000.0, open_low=True),
        "Factor by which the pulls of an arm grow each epoch.",
        default=2.0,
    )
    first: int | None = parameter(
        Whole(none="as long as noise asks for", low=1, high=10**9),
        "Pulls of an arm by each agent in the first epoch; of all together where they split.",
        default=None,
        shown="as noise asks for",
    )
    secure: bool = parameter(
        Flag(),
        "A secure sum hides single messages, with one noise on all.",
        default=False,
        symbol="secure sum",
        label="over a secure sum",
    )
    split: bool = parameter(
        Flag(),
        "Agents, which must be alike, share the arms out.",
        default=False,
        symbol="split",
        label="arms shared out",
    )
    participation: float = parameter(
        Real(low=0.0, high=1.0, open_low=True),
        "p, share of the agents that report in a round.",
        default=1.0,
        remedy="give the share of agents that report in a round, such as 0.4",
        symbol="p",
        label="participation p",
    )
    rounds: int | None = parameter(
        Whole(none="no round budget", low=1, high=10**5),
        "Round budget R, or none.",
        default=None,
        symbol="R",
        label="round budget R",
        shown="none",
    )
    failure: float | None = parameter(
        Real(none="1 / T", low=0.0, high=1.0, open_low=True),
        "Chance that the best arm is lost.",
        default=None,
        shown="1 / T",
    )

    def check(self) -> None:
        """Refuses a secure sum over some agents, and arms shared out among them."""
        super().check()
        for name in ("secure", "split"):
            if getattr(self, name) and self.participation < 1.0:
                remedy = "let everybody report, or drop it"
                refuse(name, True, "False where participation is below 1", remedy)

    def _grid(self, agents: int) -> float:
        # How many agents pull an arm depends on which arms are left, and that on what was heard.
        if self.epsilon is None or self.secure or not self.split:
            return 0.0
        return 1.0 + math.ceil(math.log2(agents))

    @property
    def shares_arms(self) -> bool:
        """As `split` says."""
        return self.split

    @property
    def homogeneous_only(self) -> bool:
        """Whether agents whose means differ are refused: those that share the arms out.

        Example:
            >>> import fmab_jax as fmab
            >>> fmab.kl_se(1.0).homogeneous_only, fmab.kl_se(1.0, split=True).homogeneous_only
            (False, True)
        """
        return self.split

    @property
    def sums_securely(self) -> bool:  # type: ignore[override]
        """As `secure` says.

        Example:
            >>> import fmab_jax as fmab
            >>> fmab.kl_se(1.0).sums_securely, fmab.kl_se(1.0, secure=True).sums_securely
            (False, True)
        """
        return self.secure

    def exchange(self, agents: int) -> Exchange:
        """Returns the server's table."""
        table = exchanges.server(agents, self.participation)
        if self.secure:
            table = replace(table, views=(View(SERVER, agents),))
        # All pulls lie in one line, arm by arm; each cut of it makes one number more.
        return replace(table, vectors=1, numbers=agents - 1) if self.split else table

    def ledger(self, exchange: Exchange) -> tuple[Seen, ...]:
        """Covers messages, or the secure sum, and all that follows from them."""
        if self.secure:
            return secure_sum(self, exchange, "epochs are disjoint data, each with one noise")
        rows = super().ledger(exchange)
        # Of an arm that few agents pull, few noises are in a sum.
        return tuple(row._replace(over=min(row.over, 1)) for row in rows) if self.split else rows

    def coalition(self, exchange: Exchange, size: int) -> tuple[Seen, ...]:
        """Returns what a coalition sees of another agent's reward."""
        if self.secure:
            return shares_left(self, exchange, size)
        rows = super().coalition(exchange, size)
        return tuple(row._replace(over=min(row.over, 1)) for row in rows) if self.split else rows

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Returns what the equations find."""
        first = math.nan if self.first is None else float(self.first)
        return {
            "epsilon": self.noise_level,
            "growth": self.growth,
            "first": first,
            "noises": 1.0 if self.secure or self.split else float(exchange.reporting),
            "heard": 1.0 if self.split else float(exchange.reporting),
            "rounds": math.inf if self.rounds is None else float(self.rounds),
            "failure": 1.0 / horizon if self.failure is None else self.failure,
            "grid": self._grid(exchange.agents),
        }

    @staticmethod
    def budget(own: dict[str, Scalar]) -> Scalar:
        """Returns R."""
        return own["rounds"]

    @staticmethod
    def radius(epoch: Epoch) -> Scalar:
        """Returns b_r, the evidence that is needed: (1 + b) e^-b = failure / (K r (r + 1)).

        Where past data decide how many noises there are, the two sums are not independent, and each
        number on a grid has to hold: failure is divided by e times the numbers of the grid.
        """
        tries = epoch.arms * epoch.number * (epoch.number + 1.0)
        grid = epoch.own["grid"]
        return evidence_needed(epoch.own["failure"] / (tries * jnp.maximum(math.e * grid, 1.0)))

    @classmethod
    def pulls_per_arm(cls, epoch: Epoch) -> Scalar:
        """Returns S_r: the first epoch's, then ``growth`` times as many each time."""
        own = epoch.own
        needed = cls.radius(epoch._replace(number=jnp.ones_like(epoch.number)))
        # Where the difference of two sums of noise would be half of the rewards, with b_1.
        asked = jnp.sqrt(32.0 * needed * own["noises"]) / (own["epsilon"] * own["heard"])
        first = jnp.where(jnp.isnan(own["first"]), jnp.maximum(jnp.ceil(asked), 1.0), own["first"])
        return jnp.where(epoch.number == 1.0, first, jnp.ceil(own["growth"] * epoch.previous))

    @classmethod
    def worse(cls, heard: Heard, epoch: Epoch) -> Bool[Array, " arm"]:
        """Drops an arm against which there is enough evidence."""
        # The most that there can be, halved as often as there are no more than that.
        fewer, most = epoch.own["grid"] - 1.0, epoch.number * epoch.agents
        times = most / jnp.maximum(heard.noises, heard.best_noises)
        steps = jnp.minimum(jnp.floor(jnp.log2(times) + 1e-9), fewer)
        gridded = most / 2.0**steps
        noises = jnp.where(fewer < 0.0, heard.noises, gridded)
        best_noises = jnp.where(fewer < 0.0, heard.best_noises, gridded)
        known = (heard.rewards, noises, best_noises, epoch.own["epsilon"])
        told = evidence(heard.aggregate, heard.best, *known)
        return (heard.aggregate < heard.best) & (told >= heard.radius)

    @staticmethod
    def noise_scale(epoch: Epoch) -> Scalar:
        """Returns 1 / epsilon."""
        return 1.0 / epoch.own["epsilon"]
