"""Elimination: explore the active arms equally for an epoch, aggregate, drop the worse arms.

Subclasses replace the equations of fmab_jax/equations.py; the loop is fmab_jax/elimination.py. The
exchange states who reports, how long agents wait and which links a round builds; the loop never
looks inside a graph. It draws no single pull: an epoch needs one sum of rewards per (agent, arm),
or per arm where agents sum out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Array, Bool, Float

from fmab_jax import draws
from fmab_jax.algorithms.base import Algorithm, collect_numbers
from fmab_jax.draws.by_agent import TRIM_SLACK
from fmab_jax.elimination import EliminationTrial
from fmab_jax.equations import NUMBERS, Equations
from fmab_jax.errors import refuse
from fmab_jax.parts.exchanges import SERVER, Exchange
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.parts.mechanisms.mechanism import Mechanism
from fmab_jax.records.problem import Problem
from fmab_jax.sampling.shapes import PerArm, Scalar

# Each number of agents that share arms needs a noise law of its own, which takes time to fit.
_MOST_SHARING = 1000


def is_clearly_behind(deficit: PerArm, radius: Scalar) -> Bool[Array, " arm"]:
    """Tells which arms have an upper bound below the best lower one."""
    return deficit > 2.0 * radius


@dataclass(frozen=True)
class Elimination(Equations, Algorithm):
    """The family: an algorithm states `exchange` and its equations, as static functions of `Epoch`.

    `fmab_jax.equations.Equations` has the equations, and three attributes that make runs faster.

    Attributes:
        noisy: Whether messages carry noise; if not, the loop draws none.
        remembers: Whether the aggregate is over all epochs so far, or over the last one alone.
        sharing_flag: Name of the parameter that lets agents split the arms.
        sums_securely: Whether the server sees only the sum over all agents, with one Laplace
            variable on it; otherwise each agent adds a variable.

    Example:
        An oracle knows the smallest gap, and so the length of its epochs. It judges arms by the
        variance of their rewards. Messages have no noise; ``docs/own_algorithm.md`` shows noise.

        >>> from dataclasses import dataclass
        >>> import jax.numpy as jnp
        >>> import fmab_jax as fmab
        >>> from fmab_jax.parts.exchanges import server
        >>> @dataclass(frozen=True)
        ... class Oracle(fmab.Elimination):
        ...     name = "oracle"
        ...     elementwise = True
        ...     rounds: int = 20
        ...
        ...     def exchange(self, agents):
        ...         return server(agents)
        ...
        ...     @staticmethod
        ...     def resolve_params(params, instance):
        ...         return params | {"gap": instance.smallest_gap}
        ...
        ...     @staticmethod
        ...     def budget(params):
        ...         return params["rounds"]
        ...
        ...     @staticmethod
        ...     def pulls_per_arm(epoch):
        ...         return epoch.previous + jnp.ceil(1.0 / epoch.params["gap"])
        ...
        ...     @staticmethod
        ...     def radius(epoch):
        ...         log = jnp.log(4.0 * epoch.arms * epoch.number**2 * epoch.horizon)
        ...         return jnp.sqrt(2.0 * log / (epoch.reporting * epoch.pulls))
        ...
        ...     @classmethod
        ...     def precompute(cls, epoch, radius):
        ...         return radius**2
        ...
        ...     @classmethod
        ...     def worse(cls, aggregate, epoch):
        ...         mean = jnp.clip(aggregate.mean, 0.0, 1.0)
        ...         deviation = jnp.sqrt(mean * (1.0 - mean))
        ...         width = deviation * aggregate.radius + aggregate.precomputed
        ...         return aggregate.best - mean >= width
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(Oracle(rounds=3), problem, horizon=10**4, seeds=20)
        >>> int(data.rounds_made.max()), int(data.links.sel(meter="server").max())
        (3, 15)
    """

    noisy: ClassVar[bool] = False
    remembers: ClassVar[bool] = True
    sums_securely: ClassVar[bool] = False
    sharing_flag: ClassVar[str] = "shares_arms"

    @property
    def noise(self) -> Mechanism:
        """Law of the noise of messages; by default the paper's."""
        return LAPLACE

    @property
    def waits_privately(self) -> bool:
        """Whether waiting agents act on the noisy means that they send."""
        return False

    @property
    def shares_arms(self) -> bool:
        """Whether agents split the arms: each pulls a part. Agents must be homogeneous."""
        return False

    @property
    def homogeneous_only(self) -> bool:
        """Whether agents whose means differ are refused, because they split the arms."""
        return self.shares_arms

    @property
    def trimmed_share(self) -> float:
        """Share of the largest and of the smallest messages that an aggregate drops."""
        return 0.0

    def noise_ratios(self, exchange: Exchange) -> Float[np.ndarray, " agent"] | None:
        """Returns the scale of each agent's noise over `noise_scale`; None for one scale."""
        return None

    def make_trial(
        self,
        problem: Problem,
        horizon: int,
        exchange: Exchange,
        padded_agents: int,
        sum_agents: bool,
    ) -> EliminationTrial:
        """Returns the trial.

        Rewards are drawn as sums over groups of agents of one weight if all agents report and none
        waits; noise is drawn as sums if all agents report.
        """
        if self.sums_securely and (exchange.alone or exchange.reporting < problem.agents):
            name, remedy = f"{type(self).__name__}.exchange", "let everybody report, or drop it"
            refuse(name, "some agents", "one that hears all, where sums_securely = True", remedy)
        self.check_noise(problem, self.privacy(exchange)["epsilon"])
        if self.shares_arms:
            self._check_shared(exchange, sum_agents)
            if problem.world is not None:
                remedy = "drop it, or leave the world out"
                refuse(self.sharing_flag, True, "for means that do not change", remedy)
        self._check_presence(problem, exchange)
        lasting = self._is_stated_for("lasting_scale", "noise_scale")
        restated = not self._is_stated_for("precompute_fields", "precompute")
        values: dict[str, Any] = {
            "horizon": np.int64(horizon),
            "agents": np.float64(problem.agents),
            "reporting": np.float64(exchange.reporting),
            "wait": np.int64(exchange.wait),
            "params": collect_numbers(self, exchange, horizon),
        }
        return EliminationTrial(
            algorithm=type(self),
            elementwise=self._is_stated_for("elementwise", "worse", "eliminates"),
            precompute_fields=NUMBERS if restated else self.precompute_fields,
            mean_rows=1 if problem.homogeneous or exchange.alone else padded_agents,
            alone=exchange.alone,
            waits=exchange.wait > 0,
            padded_agents=padded_agents if exchange.alone else 0,
            draws=draws.choose(self, problem, exchange, padded_agents, lasting, sum_agents),
            **values,
        )

    def _is_stated_for(self, name: str, *functions: str) -> bool:
        """Tells whether a flag holds: no later class overrides a function that it describes."""
        order = type(self).__mro__

        def place(name: str) -> int:
            return next(n for n, owner in enumerate(order) if name in vars(owner))

        return bool(getattr(self, name)) and place(name) <= min(map(place, functions))

    def check_exchange(self, exchange: Exchange) -> None:
        """Refuses trimmed means over a graph, and those that drop no message.

        The ledger counts a trimmed mean as one message, even if it is the mean of all.
        """
        share, heard = self.trimmed_share, exchange.reporting
        if share == 0.0:
            return
        if not _is_star(exchange):
            refuse("trim", share, "0 but with a server that hears agents", "drop it")
        if heard < 3:
            remedy = "let more agents report, or drop it"
            refuse("trim", share, "0 with fewer than 3 agents heard", remedy)
        if share * heard + TRIM_SLACK < 1.0:
            allowed = f"0, or at least 1/{heard} with {heard} agents heard"
            # Four digits of 1/N, rounded up.
            digits = 10 ** (3 + len(str(heard)))
            least = math.ceil(digits / heard) / digits
            refuse("trim", share, allowed, f"drop it, or take {least:g} to drop one message")

    def _check_presence(self, problem: Problem, exchange: Exchange) -> None:
        """Refuses a presence that the exchange cannot follow."""
        presence = problem.presence
        if presence is None:
            return
        name, title = presence.text(), self.title or self.name
        if exchange.alone or self.shares_arms:
            allowed = "left out where agents are alone or share arms"
            refuse("presence", name, allowed, "no message of an agent is about all arms")
        if presence.cuts_links:
            allowed = "for policies by slot on a graph"
            refuse("presence", name, allowed, f"the rounds of {title} have fixed links")
        if presence.loses_messages and not (_is_star(exchange) and exchange.exact):
            allowed = "for a server that hears agents"
            refuse("presence", name, allowed, f"the protocol of {title} needs every agent")

    def _check_shared(self, exchange: Exchange, sum_agents: bool) -> None:
        """Refuses shared arms where one agent's rewards cannot stand for those of all agents."""
        name = self.sharing_flag
        if not sum_agents:
            allowed = "True where agents split the arms"
            refuse("sum_agents", False, allowed, "who pulls what is not worked out")
        if exchange.alone or exchange.wait or exchange.reporting < exchange.agents:
            refuse(name, True, "for a server that hears everybody", "drop it")
        if exchange.agents > _MOST_SHARING:
            refuse(name, True, f"for at most {_MOST_SHARING:,} agents", "drop it")

    def check_noise(self, problem: Problem, epsilon: float) -> None:
        """Refuses noise without a stated epsilon, and noise for rewards without a range."""
        if self.noisy and type(self).privacy is Algorithm.privacy:
            field_name, remedy = (
                f"{type(self).__name__}.privacy",
                "return epsilon and epsilon_message",
            )
            refuse(
                field_name, "inherited, which states no noise", "its own where noisy = True", remedy
            )
        if math.isfinite(epsilon) and not math.isfinite(problem.rewards.sensitivity):
            remedy = "clip rewards to a range (Problem.ratings), or pass epsilon=None"
            allowed = "None (no noise) where rewards have no range"
            refuse("epsilon", epsilon, allowed, remedy)


def _is_star(exchange: Exchange) -> bool:
    """Returns whether a server takes the mean of the messages of a round, which it hears."""
    is_mean = exchange.uniform and exchange.wait == 0
    return is_mean and exchange.links == ((SERVER, exchange.reporting),)
