"""Algorithm 1 of Li and Song (arXiv 2111.01570): the equations that its structures share."""

import math
from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.algorithms.families import schedule
from fmab_jax.algorithms.families.noisy_messages import NoisyMessages, rounds_parameter
from fmab_jax.algorithms.families.private import MAX_EPSILON
from fmab_jax.elimination import EliminationTrial
from fmab_jax.equations import Epoch
from fmab_jax.errors import refuse
from fmab_jax.parameters import UNSET, Flag, Real, Unset, parameter
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.instances import Instance
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.parts.per_agent import AgentNumbers, PerAgent
from fmab_jax.records.problem import Problem
from fmab_jax.sampling.shapes import Scalar


@dataclass(frozen=True)
class PaperElimination(NoisyMessages):
    """Elimination with the schedule, the radius and the noise of Algorithm 1.

    Attributes:
        epsilon: Privacy parameter > 0; None (or infinity) adds no noise. A message leaks N epsilon.
        epsilon_message: Privacy parameter of one message, N epsilon, in place of ``epsilon``; a
            list, or a text such as "1x40,10x10", has one for each agent.
        rounds: Round budget R >= 1, or None for the doubling schedule.
        schedule_gap: Smallest gap in (0, 1] for which a budgeted schedule is built; without
            ``rounds`` it has no effect. The default is the gap of the instance, which only an
            oracle knows.
        scale: Factor of the confidence radius. An epoch is as much shorter as the smaller radius
            allows for the same target gap: scale^2 for rewards, scale for noise. The theorems hold
            for 1, the default; below it nothing is promised.

    Raises:
        ValueError: If a value is out of range, or not exactly one epsilon is given.
    """

    noisy = True
    lasting_scale = True
    source = "Li and Song, IEEE JSAC 40(3), 2022, arXiv 2111.01570"
    shown_by = "Theorem 1"
    trusted = "nobody: a message leaks at most its epsilon"

    epsilon_message: Unset | float | AgentNumbers | None = parameter(
        PerAgent(none_label="no noise", low=0.0, high=MAX_EPSILON, open_low=True),
        "What one message may leak, N epsilon, not epsilon; by agent: 1x40,10x10 or a file.",
        default=UNSET,
        symbol="Nε",
        label="privacy parameter of a message, Nε",
        default_text="not given",
    )
    rounds: int | None = rounds_parameter()
    schedule_gap: float | None = parameter(
        Real(none_label="schedule for the instance's own gap", low=0.0, high=1.0, open_low=True),
        "Smallest gap that a round budget is spent on; without rounds it has no effect.",
        default=None,
        label="gap that the schedule is built for",
        default_text="the instance's own",
    )
    scale: float = parameter(
        Real(low=0.0, high=100.0, open_low=True),
        "Factor of the confidence radius, for which epochs are as long as it asks for.",
        default=1.0,
        remedy="1 is the paper's; theorems hold for no smaller one",
        label="factor of the confidence radius",
        proven=Real(low=1.0),
        grid=(0.1, 0.15, 0.2, 0.3, 0.5),
    )

    def check(self) -> None:
        """Refuses unless exactly one epsilon is given, and a delta that has no effect."""
        if self.epsilon_message is not UNSET and self.epsilon is not UNSET:
            refuse("epsilon_message", self.epsilon_message, "given without epsilon", "drop one")
        if self.epsilon_message is UNSET and self.epsilon is UNSET:
            refuse("epsilon", UNSET, "given, or epsilon_message", "None is no noise")
        self.check_delta()

    def make_trial(
        self,
        problem: Problem,
        horizon: int,
        exchange: Exchange,
        padded_agents: int,
        sum_agents: bool,
    ) -> EliminationTrial:
        """Returns the trial; refuses an oracle of the gap where gaps change."""
        if problem.world is not None and self.rounds is not None and self.schedule_gap is None:
            allowed = "given with rounds and a world, whose smallest gap changes"
            refuse("schedule_gap", None, allowed, "such as 0.1")
        return super().make_trial(problem, horizon, exchange, padded_agents, sum_agents)

    @classmethod
    def has_theorems(cls) -> bool:
        """Tells whether the theorems are about this class: it restates none of the equations."""
        bases = [vars(base) for base in PaperElimination.__mro__]
        names = {n for fields in bases for n, x in fields.items() if isinstance(x, staticmethod)}
        return all(getattr(cls, n) is getattr(PaperElimination, n) for n in names)

    def settings(self) -> dict[str, str]:
        """Returns texts of values that are not the default; drops the gap without a budget."""
        words = super().settings()
        return {n: word for n, word in words.items() if n != "schedule_gap" or self.rounds}

    def privacy(self, exchange: Exchange) -> dict[str, float]:
        """Returns epsilon, and N epsilon, the leak of one message (Theorem 1)."""
        by_message, agents = self.epsilon_message is not UNSET, exchange.reporting
        value = self.epsilon_message if by_message else self.epsilon
        assert not isinstance(value, Unset)
        value = max(value) if isinstance(value, tuple) else value
        level = math.inf if value is None else value
        epsilon = level / agents if by_message else level
        return {"epsilon": epsilon, "epsilon_message": epsilon * agents}

    def _find_epsilon(self, exchange: Exchange) -> float:
        """Returns the epsilon of the equations."""
        if self.list_scales(exchange) is None:
            return self.privacy(exchange)["epsilon"]
        return self.pool_epsilon(exchange) / exchange.reporting

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Returns epsilon, rounds, schedule_gap, scale and N, as numbers."""
        return {
            "epsilon": self._find_epsilon(exchange),
            "rounds": math.inf if self.rounds is None else float(self.rounds),
            "schedule_gap": math.nan if self.schedule_gap is None else self.schedule_gap,
            "scale": self.scale,
            "reporting": float(exchange.reporting),
        } | self.find_noise_params(exchange)

    @staticmethod
    def resolve_params(params: dict[str, Scalar], instance: Instance) -> dict[str, Scalar]:
        """Sets the default of the gap to that of the instance."""
        gap = params["schedule_gap"]
        return params | {"schedule_gap": jnp.where(jnp.isnan(gap), instance.smallest_gap, gap)}

    @staticmethod
    def budget(params: dict[str, Scalar]) -> Scalar:
        """Returns R."""
        return params["rounds"]

    @staticmethod
    def pulls_per_arm(epoch: Epoch) -> Scalar:
        """Returns S_r (line 4, section IV-B)."""
        ratio = schedule.shrink_ratio(epoch.params["schedule_gap"], epoch.params["rounds"])
        target = schedule.target_gap(ratio, epoch.number)
        inputs = epoch.active, epoch.number, target
        return schedule.pulls_per_arm(*inputs, *_get_setting(epoch))

    @staticmethod
    def radius(epoch: Epoch) -> Scalar:
        """Returns C(r) (line 5, section IV-B)."""
        inputs = epoch.active, epoch.number, epoch.pulls
        return schedule.confidence_radius(*inputs, *_get_setting(epoch))

    @staticmethod
    def noise_scale(epoch: Epoch) -> Scalar:
        """Returns the scale on an agent's sum: 1/(N epsilon) (line 9), or the mechanism's."""
        if epoch.mechanism != LAPLACE:
            return epoch.params["noise_scale"]
        return schedule.noise_scale(epoch.reporting, epoch.params["epsilon"])


def _get_setting(epoch: Epoch) -> tuple[schedule.Setting, Scalar | None]:
    """Returns what the equations read, and the deviation of noise that is not Laplace."""
    params = epoch.params
    # A weighted mean is worth fewer messages than it has.
    messages = epoch.reporting * params["worth"] if "worth" in params else epoch.reporting
    # Where agents are absent, the noise of each is still that of N agents.
    epsilon = params["epsilon"] * (params.get("reporting", epoch.reporting) / messages)
    setting = schedule.Setting(epoch.arms, messages, epsilon, epoch.horizon, params["scale"])
    if epoch.mechanism == LAPLACE:
        return setting, None
    level = jnp.log(8.0 * epoch.arms * epoch.number**2 * epoch.horizon)
    scale = params["noise_scale"]
    deviation = epoch.mechanism.deviation(messages, level, scale)
    return setting, jnp.where(scale > 0.0, deviation, 0.0)


@dataclass(frozen=True)
class PaperWaiting(PaperElimination):
    """Elimination in which agents wait for messages.

    Attributes:
        private_waiting: Whether a waiting agent pulls the arm of the largest noisy mean, which it
            sends, so that the noise also covers its actions. The paper's agents pull the arm of
            the largest mean without noise, which no epsilon covers.
    """

    trusted = "nobody: a message leaks at most its epsilon; in waits without noise, "
    trusted += "whoever sees actions"
    private_waiting: bool = parameter(
        Flag(),
        "Waiting agents go by the noisy means that they send, so that the noise covers actions.",
        default=False,
    )

    @property
    def waits_privately(self) -> bool:
        """As `private_waiting` says."""
        return self.private_waiting
