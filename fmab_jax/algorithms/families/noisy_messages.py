"""Eliminations with noise on sums of one epoch, or on every message."""

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from fmab_jax.algorithms.base import check_equal_noise, list_unbounded
from fmab_jax.algorithms.families.elimination import Elimination, is_clearly_behind
from fmab_jax.algorithms.families.private import Private, failure_parameter
from fmab_jax.equations import Epoch
from fmab_jax.errors import refuse
from fmab_jax.parameters import UNSET, Real, ViewKind, Whole, parameter
from fmab_jax.parts.exchanges import Exchange, View, Viewer
from fmab_jax.parts.mechanisms import DELTA, Mechanism, MechanismOf
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.parts.per_agent import write_numbers
from fmab_jax.records.ledger import Disclosure, Noise
from fmab_jax.records.problem import Problem
from fmab_jax.sampling.shapes import Record, Scalar

Scales = Float[np.ndarray, " agent"]


def participation_parameter() -> float:
    """Returns the parameter of the part of agents that report in a round."""
    return parameter(
        Real(low=0.0, high=1.0, open_low=True),
        "p, share of the agents that report in a round.",
        default=1.0,
        symbol="p",
        grid=(0.2, 0.5),
    )


def rounds_parameter() -> int | None:
    """Returns the parameter of a round budget."""
    # A run with arms that never separate has this many epochs.
    kind = Whole(none_label="no round budget", low=1, high=10**5)
    words, label = "Round budget R, or none.", "round budget R"
    return parameter(kind, words, default=None, symbol="R", label=label)


@dataclass(frozen=True)
class ForgettingElimination(Private, Elimination):
    """An elimination that judges arms by the rewards of one epoch, with one noise on each sum.

    Attributes:
        failure: Chance that a confidence interval may fail; None for 1 / T.
    """

    noisy = True
    remembers = False
    elementwise = True
    eliminates = staticmethod(is_clearly_behind)

    failure: float | None = failure_parameter("Chance that a confidence interval may fail.")

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Adds the chance, by default 1 / T."""
        failure = 1.0 / horizon if self.failure is None else self.failure
        return super().values(exchange, horizon) | {"failure": failure}

    @staticmethod
    def noise_scale(epoch: Epoch) -> Scalar:
        """Returns 1 / epsilon."""
        return 1.0 / epoch.params["epsilon"]


_DISJOINT = "a reward enters one message; later means are sums of messages"


@dataclass(frozen=True)
class NoisyMessages(Private, Elimination):
    """An elimination in which every reward enters one message, with noise of its sender.

    What a message leaks is ``epsilon_message`` of `privacy`, the largest of any agent. Agents may
    differ: then ``epsilon_message`` of the paper's algorithms, or ``epsilon`` of others, has a
    number for each of them (`fmab_jax.parts.per_agent`). Equations read the root mean square of the
    scales of noise, which gives the variance of the sum; if some agents report, that of as many
    agents with the largest scales, which bounds it.

    Attributes:
        shown_by: Where the source proves that a message hides its rewards; "" if it does not.
    """

    shown_by: ClassVar[str] = ""

    mechanism: Any = parameter(
        MechanismOf(),
        "Law of the noise on a message.",
        default=LAPLACE,
        label="noise",
        remedy="docs/own_mechanism.md lists them",
    )
    delta: float | None = parameter(
        Real(none_label="1e-6", low=1e-12, high=1.0, open_high=True),
        "Delta at which a message leaks epsilon, of noise without pure epsilon.",
        default=None,
        symbol="δ",
    )

    def check(self) -> None:
        """Refuses a delta that has no effect."""
        super().check()
        self.check_delta()

    def check_delta(self) -> None:
        """Refuses a delta if the noise has a pure epsilon."""
        # Noise that wrongly says that it is pure is refused when its scale is solved for.
        is_pure = self.mechanism.pure and self.mechanism.epsilon(1.0, 1, 0.0) < math.inf
        if self.delta is not None and is_pure:
            allowed = f"left out with {self.mechanism.title} noise, whose epsilon needs no delta"
            refuse("delta", self.delta, allowed, "drop it, or take other noise, such as gaussian")

    @property
    def noise(self) -> Mechanism:
        """Law of the noise on a message."""
        law: Mechanism = self.mechanism
        no_noise = None in (self.epsilon, getattr(self, "epsilon_message", UNSET))
        return LAPLACE if no_noise else law

    def find_noise_params(self, exchange: Exchange) -> dict[str, float]:
        """Returns ``noise_scale`` for ``params``; {} for Laplace noise, known by its epsilon.

        At this scale a message leaks (epsilon, delta). Where agents differ, it is `pool_scales`.
        """
        if self.noise == LAPLACE:
            return {}
        scales = self.list_scales(exchange)
        if scales is not None:
            return {"noise_scale": self.pool_scales(scales, exchange)}
        return {"noise_scale": self._find_scale(self.privacy(exchange)["epsilon_message"])}

    def _find_scale(self, leak: float) -> float:
        return _solve_scale(self.noise, leak, self.delta or DELTA) if leak < math.inf else 0.0

    def list_scales(self, exchange: Exchange) -> Scales | None:
        """Returns the scale of the noise of each agent; None if all agents have one.

        Raises:
            ValueError: If agents differ and do not send messages with noises of their own.
        """
        values = {n: getattr(self, n, None) for n in ("epsilon_message", "epsilon")}
        name, leaks = next(((n, x) for n, x in values.items() if isinstance(x, tuple)), ("", ()))
        if not leaks:
            return None
        if exchange.alone or self.sums_securely or self.shares_arms:
            allowed = "one number where agents are alone, split arms or use a secure sum"
            refuse(name, write_numbers(leaks), allowed, "give all agents the same epsilon")
        levels, agents = np.unique(leaks, return_inverse=True)
        return np.array([self._find_scale(float(level)) for level in levels])[agents]

    def pool_scales(self, scales: Scales, exchange: Exchange) -> float:
        """Returns the one scale by which equations account for all of them."""
        if not self.noise.nested:
            return float(scales.max())
        weights = exchange.weights
        if exchange.reporting < exchange.agents:
            scales, weights = np.sort(scales)[-exchange.reporting :], np.ones(exchange.reporting)
        return math.sqrt(np.sum((weights * scales) ** 2) / np.sum(weights**2))

    def pool_epsilon(self, exchange: Exchange) -> float:
        """Returns what a message leaks; if agents differ, one with Laplace noise of that scale."""
        scales = self.list_scales(exchange)
        if scales is None or self.noise != LAPLACE:
            return self.privacy(exchange)["epsilon_message"]
        return 1.0 / self.pool_scales(scales, exchange)

    def noise_ratios(self, exchange: Exchange) -> Scales | None:
        """Returns the scale of each agent's noise over that of the equations."""
        scales = self.list_scales(exchange)
        return None if scales is None else scales / self.pool_scales(scales, exchange)

    def settings(self) -> dict[str, str]:
        """Returns the text of each value but defaults, and delta wherever the noise has one."""
        texts = {n: text for n, text in super().settings().items() if n != "delta"}
        return texts if self.noise.pure else texts | {"delta": f"δ = {self.delta or DELTA:g}"}

    def plain(self) -> Record:
        """Returns all parameters; the mechanism only if it is not Laplace."""
        values = super().plain()
        return {n: v for n, v in values.items() if n != "mechanism" or self.mechanism != LAPLACE}

    def describe(self) -> Record:
        """Returns the identity; that of Laplace noise has no delta, as in older stores."""
        values = super().describe()
        return {n: v for n, v in values.items() if n != "delta" or self.mechanism != LAPLACE}

    def check_noise(self, problem: Problem, epsilon: float) -> None:
        """Refuses noise whose claims are for a range of 1 if rewards have another range.

        And noises that differ where agents may be absent, since the sum's law is then unknown.
        """
        super().check_noise(problem, epsilon)
        if problem.presence is not None and problem.presence.loses_messages:
            check_equal_noise(self)
        law = problem.rewards
        if math.isfinite(epsilon) and not self.noise.scales and law.sensitivity != 1.0:
            allowed = f"laplace or gaussian with {law.name} rewards, whose range is not 1"
            refuse("mechanism", self.noise.text(), allowed, "scale rewards to a range of 1")
        has_integers = law.step == 1.0 and float(law.low).is_integer()
        if math.isfinite(epsilon) and self.noise.integers and not has_integers:
            allowed = f"laplace or gaussian with {law.name} rewards, which are no whole numbers"
            refuse("mechanism", self.noise.text(), allowed, "take rewards of 0 and 1: bernoulli")

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Returns the leak of each view of the exchange, and of actions, by the mechanism.

        Actions are functions of the aggregate, except in waits.
        """
        if math.isinf(self.privacy(exchange)["epsilon_message"]):
            return list_unbounded(exchange, "no noise")
        views = exchange.views or (View(Viewer.RECEIVERS, 1),) * (not exchange.alone)
        rows = [row for view in views for row in self._list_view(exchange, view)]
        viewer, reason = Viewer.WATCHERS, "a function of noisy means"
        noises = self._list_noises(exchange, 1)
        if exchange.wait and not self.waits_privately:
            noises, reason = (), "agents that wait pull the best arm of their un-noised means"
        elif exchange.wait:
            reason = "agents that wait pull the best arm of the noisy means that they send"
        elif not exchange.alone and not exchange.exact:
            reason = "a function of averages, in which the noise of few agents may be"
        elif not exchange.alone and exchange.reporting == exchange.agents:
            noises = self._list_noises(exchange, exchange.agents)
            limit = self._find_limit(exchange, exchange.agents)
            reason = limit or "a function of the sums over all agents"
            # The largest of unlike noises is known to its agent.
            is_alone = sum(noise.number for noise in noises) == 1 and not limit
            is_alone = is_alone and self.list_scales(exchange) is None
            viewer = Viewer.WATCHERS if is_alone else Viewer.OUTSIDER
        actions = self._make_row(exchange, viewer, ViewKind.ACTIONS, reason, noises)
        return (*rows, actions)

    def coalition(self, exchange: Exchange, size: int) -> tuple[Disclosure, ...]:
        """Returns single messages if agents get them, else the sums less the coalition's noise."""
        agents = exchange.agents
        views = [view for view in exchange.views if view.viewer is not Viewer.SERVER]
        sums = bool(views) and all(view.is_member and view.over == agents for view in views)
        is_noisy = math.isfinite(self.privacy(exchange)["epsilon_message"])
        if sums and is_noisy and exchange.reporting == agents and exchange.uniform:
            limit = self._find_limit(exchange, agents)
            reason = limit or "the noise of the agents that are left hides each of them"
            # The coalition may be that of the largest noises.
            noises = self._list_noises(exchange, agents, size)
            row = self._make_row(exchange, Viewer.COALITION, ViewKind.SUM, reason, noises)
            content = self._name_sums(agents) + ", less their own" * (not limit)
            return (row._replace(observation=content, members=size),)
        # A reward is in one message, which the coalition may see: only that noise hides it.
        hidden = (Viewer.SERVER, Viewer.OUTSIDER)
        rows = [row for row in self.ledger(exchange) if row.viewer not in hidden]
        # The last one is about all rounds, where another is about one round.
        worst = max(
            reversed(rows),
            key=lambda row: (row.epsilon, -row.number, row.view is not ViewKind.ACTIONS),
        )
        if worst.noises:
            noises = self._list_noises(exchange, 1)
            worst = worst._replace(noises=noises, epsilon=self._find_pure(exchange, noises))
        return (worst._replace(viewer=Viewer.COALITION, members=size),)

    def _find_limit(self, exchange: Exchange, over: int) -> str:
        """Returns why its own noise alone hides a reward in an aggregate; "" where others' do."""
        if self.trimmed_share:
            return "a trimmed mean may be one agent's message, whose own noise alone hides it"
        if self.shares_arms:
            return "of those who pull an arm there may be one: its own noise hides it"
        if over == exchange.agents and not (exchange.uniform or self.noise.scales):
            return "noise times another weight is of another law: its own noise alone hides it"
        return ""

    def _name_sums(self, over: int) -> str:
        """Names sums over agents, for people."""
        whose = "the agents that pull an arm" if self.shares_arms else f"{over} agents"
        return f"{'trimmed means' if self.trimmed_share else 'sums'} over {whose}"

    def _list_view(self, exchange: Exchange, view: View) -> tuple[Disclosure, ...]:
        """Returns the rows of a view of all rounds."""
        alone = self._list_noises(exchange, 1)
        if view.over == 1:
            row = self._make_row(exchange, view.viewer, ViewKind.MESSAGES, _DISJOINT, alone)
            source = self.shown_by and (
                self.shown_by if self.noise == LAPLACE else self.noise.source
            )
            return (row._replace(observation=view.observation, source=source),)
        noises = self._list_noises(exchange, view.over, int(view.is_member))
        reason = "the noise of all agents of a sum hides each of them"
        if self.list_scales(exchange) is not None:
            reason = "the noises of a sum, of whichever agent, hide each reward in it"
        elif view.over == exchange.agents and not exchange.uniform:
            reason = "whoever weighs most is hidden by the noise of those that weigh as much"
        reason += "; an agent can take out its own message" * view.is_member
        reason = self._find_limit(exchange, view.over) or reason
        row = self._make_row(exchange, view.viewer, ViewKind.SUM, reason, noises)
        noun = "trimmed mean" if self.trimmed_share else "sum"
        if exchange.reporting < exchange.agents:
            # Ledgers are about whole runs, so this row names the round.
            content = f"one round's {noun} over {view.over} agents, that round alone"
            round_row = row._replace(observation=f"{content} and not the run", is_one_round=True)
            # The other agents change each round; the agent's noise of an epoch does not.
            reason = "agents are drawn anew: only its own noise stays with an agent's rewards"
            row = self._make_row(exchange, view.viewer, ViewKind.SUM, reason, alone)
            return round_row, row._replace(observation=f"the {noun}s of all rounds")
        content = self._name_sums(view.over) + " or more" * (view.over < exchange.agents)
        return (row._replace(observation=content),)

    def _make_row(
        self,
        exchange: Exchange,
        viewer: Viewer,
        view: ViewKind,
        reason: str,
        noises: tuple[Noise, ...],
    ) -> Disclosure:
        """Returns a row that noises cover, without a bound if there are none."""
        pure = self._find_pure(exchange, noises)
        claimed = "; as claimed" * bool(noises and not self.noise.source)
        return Disclosure(viewer, view, pure, reason + claimed, noises)

    def _find_pure(self, exchange: Exchange, noises: tuple[Noise, ...]) -> float:
        """Returns the epsilon that holds without delta: that of the largest noise."""
        if not noises or not self.noise.pure:
            return math.inf
        if self.list_scales(exchange) is None:
            return self.privacy(exchange)["epsilon_message"]
        return min(self.noise.epsilon(noise.scale, 1, 0.0) for noise in noises)

    def _list_noises(self, exchange: Exchange, over: int, taken: int = 0) -> tuple[Noise, ...]:
        """Returns the noises that hide a reward in a sum over some agents.

        Noise hides a reward whichever agent adds it. Noise of a larger scale counts as noise of a
        smaller one if the law is nested, so each scale gives a bound, by the number of noises that
        are as large. Two of them are kept: the largest noises alone, and the scale at which the
        variance that counts is largest.

        Args:
            exchange: The exchange.
            over: Number of agents in the sum; 1 for a message.
            taken: Number of noises that the viewer knows, at worst the largest.
        """
        noise, agents = self.noise, exchange.agents
        scales = self.list_scales(exchange)
        is_own = over == 1 or bool(self._find_limit(exchange, over))
        # Of like agents, whoever weighs most knows the noise of its own reward and no other.
        first = int(scales is None)
        if scales is None:
            leak = self.privacy(exchange)["epsilon_message"]
            scale = (
                1.0 / leak if noise == LAPLACE else self.find_noise_params(exchange)["noise_scale"]
            )
            if is_own:
                return (Noise(noise, scale),)
            if over < agents or exchange.uniform:
                return (Noise(noise, scale, max(1, over - taken)),)
            scales = np.full(agents, scale)
        if is_own:
            return (Noise(noise, float(scales.min())),)
        # No sum hides less than one over so many agents of the smallest noises; and of all agents,
        # a noise counts relative to a reward of the largest weight.
        heaviest = exchange.weights.max()
        kept = np.sort(scales)[:over] if over < agents else scales * (exchange.weights / heaviest)
        order = np.delete(np.sort(kept)[::-1], slice(first, first + min(taken, over - 1)))
        largest = int(np.isclose(order, order[0], rtol=1e-9).sum())
        place = int(np.argmax(np.arange(1, len(order) + 1) * order**2)) + 1
        largest_noises = Noise(noise, float(order[largest - 1]), largest)
        if not noise.nested or place <= largest:
            return (largest_noises,)
        return largest_noises, Noise(noise, float(order[place - 1]), place - largest)


@functools.lru_cache(maxsize=4096)
def _solve_scale(noise: Mechanism, leak: float, delta: float) -> float:
    return noise.scale(leak, delta)
