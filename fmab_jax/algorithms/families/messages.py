"""Eliminations with noise on sums of one epoch, or on every message."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from fmab_jax.algorithms.base import check_equal_noise
from fmab_jax.algorithms.families.elimination import Elimination, Epoch, is_clearly_behind
from fmab_jax.algorithms.families.private import Private, failure_parameter
from fmab_jax.core.exchanges import Exchange, View
from fmab_jax.core.ledgers import ACTIONS, ANY_VIEWER, OUTSIDE, SERVER, Disclosure, together
from fmab_jax.core.per_agent import write_numbers
from fmab_jax.core.problems import Problem
from fmab_jax.core.shapes import Record, Scalar
from fmab_jax.errors import refuse
from fmab_jax.mechanisms import Mechanism, MechanismOf
from fmab_jax.mechanisms.laplace import LAPLACE
from fmab_jax.parameters import UNSET, Real, Whole, parameter

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
    number for each of them (`fmab_jax.core.per_agent`). Equations read the root mean square of the
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

    @property
    def noise(self) -> Mechanism:
        """Law of the noise on a message."""
        law: Mechanism = self.mechanism
        no_noise = None in (self.epsilon, getattr(self, "epsilon_message", UNSET))
        return LAPLACE if no_noise else law

    def scale_noise(self, exchange: Exchange) -> dict[str, float]:
        """Returns the scale at which a message leaks (epsilon, delta), of noise but Laplace."""
        if self.noise == LAPLACE:
            return {}
        scales = self.list_scales(exchange)
        if scales is not None:
            return {"noise_scale": self.pool_scales(scales, exchange)}
        return {"noise_scale": self._find_scale(self.privacy(exchange)["epsilon_message"])}

    def _find_scale(self, leak: float) -> float:
        delta = 1e-6 if self.delta is None else self.delta
        return self.noise.scale(leak, delta) if math.isfinite(leak) else 0.0

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
        """Returns the text of each value but defaults; Laplace noise has no delta."""
        texts = super().settings()
        return {n: text for n, text in texts.items() if n != "delta" or not self.noise.pure}

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
        """Returns the leak of each view of the exchange, and of actions, by the mechanism."""
        return self._trim_rows(self._by_mechanism(self._list_rows(exchange), exchange))

    def coalition(self, exchange: Exchange, size: int) -> tuple[Disclosure, ...]:
        """Returns single messages if agents get them, else the sums less the coalition's noise."""
        rows = self._by_mechanism(self._list_coalition(exchange, size), exchange)
        return self._trim_rows(rows)

    def _trim_rows(self, rows: tuple[Disclosure, ...]) -> tuple[Disclosure, ...]:
        """Returns rows of trimmed means, which may be the message of one agent."""
        if self.trimmed_share == 0.0:
            return rows
        reason = "a trimmed mean may be one agent's message, whose own noise alone hides it"
        return tuple(
            row._replace(
                over=1, observation=row.observation.replace("sum", "trimmed mean"), why=reason
            )
            if row.over > 1
            else row
            for row in rows
        )

    def _by_mechanism(
        self, rows: tuple[Disclosure, ...], exchange: Exchange
    ) -> tuple[Disclosure, ...]:
        """Returns rows of Laplace noise as those of the noise that there is."""
        noise = self.noise
        if noise == LAPLACE:
            return rows
        scales = self.list_scales(exchange)
        scale = self.scale_noise(exchange)["noise_scale"] if scales is None else scales.min()
        claimed = "" if noise.source else "; as claimed"
        return tuple(
            row._replace(
                law=noise.text(),
                scale=float(scale) if row.scale is None else row.scale,
                epsilon=row.epsilon if noise.pure else math.inf,
                why=row.why + claimed,
                source=noise.source if row.source else "",
            )
            if math.isfinite(row.epsilon) and row.over
            else row
            for row in rows
        )

    def _list_rows(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Returns the leak of each view of the exchange, and of actions.

        Actions are functions of the aggregate, except in waits.
        """
        leak = self.privacy(exchange)["epsilon_message"]
        if math.isinf(leak):
            unbounded = [
                Disclosure(view.viewer, "messages", leak, "no noise") for view in exchange.views
            ]
            return (*unbounded, Disclosure(ACTIONS, "actions", leak, "no noise"))
        default_views = () if exchange.alone else (View(ANY_VIEWER[1], 1),)
        rows = [
            row
            for v in exchange.views or default_views
            for row in self._list_view(exchange, v, leak)
        ]
        viewer, over, reason = ACTIONS, 1, "a function of noisy means"
        if exchange.wait and not self.waits_privately:
            leak, reason = math.inf, "agents that wait pull the best arm of their un-noised means"
        elif exchange.wait:
            reason = "agents that wait pull the best arm of the noisy means that they send"
        elif not exchange.alone and not exchange.exact:
            reason = "a function of averages, in which the noise of few agents may be"
        elif not exchange.alone and exchange.reporting == exchange.agents:
            reason = "a function of the sums over all agents"
            scales = self.list_scales(exchange)
            if scales is not None:
                row = Disclosure(OUTSIDE, "actions", leak, reason)
                return (*rows, self._hide(row, _relate(scales, exchange)))
            over = _count_hiding(exchange, exchange.agents)
            viewer = OUTSIDE if over > 1 else ACTIONS
        return (*rows, Disclosure(viewer, "actions", leak, reason, over))

    def _list_coalition(self, exchange: Exchange, size: int) -> tuple[Disclosure, ...]:
        """Returns single messages if agents get them, else the sums less the coalition's noise."""
        agents = exchange.agents
        views = [view for view in exchange.views if view.viewer != SERVER]
        leak = self.privacy(exchange)["epsilon_message"]
        sums = bool(views) and all(view.is_member and view.over == agents for view in views)
        if not sums or math.isinf(leak) or exchange.reporting < agents or not exchange.uniform:
            # A reward is in one message, which the coalition may see: only that noise hides it.
            rows = [row for row in self._list_rows(exchange) if row.viewer not in (SERVER, OUTSIDE)]
            latest = reversed(rows)  # prefers the row of all rounds to that of one round
            worst = max(
                latest, key=lambda row: (row.epsilon, -row.over, row.observation != "actions")
            )
            # With unlike noises a sum may claim less than the message in it.
            epsilon = max(leak, worst.epsilon)
            return (worst._replace(viewer=together(size), over=1, epsilon=epsilon, scale=None),)
        content = f"sums over {agents} agents, less their own"
        reason = "the noise of the agents that are left hides each of them"
        row = Disclosure(together(size), content, leak, reason, max(1, agents - size))
        scales = self.list_scales(exchange)
        # The coalition may be that of the largest noises.
        return (row if scales is None else self._hide(row, np.sort(scales)[: agents - size]),)

    def _list_view(self, exchange: Exchange, view: View, leak: float) -> tuple[Disclosure, ...]:
        """Returns the rows of a view of all rounds."""
        if view.over == 1:
            return (Disclosure(view.viewer, view.observation, leak, _DISJOINT, 1, self.shown_by),)
        if (scales := self.list_scales(exchange)) is not None:
            return self._list_unlike(exchange, view, scales, leak)
        over = _count_hiding(exchange, view.over)
        reason = "the noise of all agents of a sum hides each of them"
        if over < view.over:
            reason = "whoever weighs most is hidden by the noise of those that weigh as much"
        if view.is_member:
            over = max(1, over - 1)
            reason += "; an agent can take out its own message"
        if exchange.reporting < exchange.agents:
            # Ledgers are about whole runs, so this row names the round.
            content = f"one round's sum over {view.over} agents, that round alone and not the run"
            round_row = Disclosure(view.viewer, content, leak, reason, over)
            # The other agents change each round; the agent's noise of an epoch does not.
            reason = "agents are drawn anew: only its own noise stays with an agent's rewards"
            return round_row, Disclosure(view.viewer, "the sums of all rounds", leak, reason, 1)
        content = f"sums over {view.over} agents" + " or more" * (view.over < exchange.agents)
        return (Disclosure(view.viewer, content, leak, reason, over),)

    def _list_unlike(
        self, exchange: Exchange, view: View, scales: Scales, leak: float
    ) -> tuple[Disclosure, ...]:
        """Returns the rows of a view of sums, if the noises of agents differ."""
        agents, noises = exchange.agents, _relate(scales, exchange)
        reason = "the noises of a sum, of whichever agent, hide each reward in it"
        suffix = " or more" * (view.over < agents)
        if exchange.reporting < agents:
            noises = np.sort(scales)[: exchange.reporting]
            suffix = ", that round alone and not the run"
        elif view.over < agents:
            # No sum hides less than one over so many agents of the smallest noises.
            noises = np.sort(scales)[: view.over]
        if view.is_member:
            noises = np.sort(noises)[: max(1, len(noises) - 1)]
            reason += "; an agent can take out its own message"
        start = "one round's sum" if exchange.reporting < agents else "sums"
        row = Disclosure(view.viewer, f"{start} over {view.over} agents{suffix}", leak, reason)
        row = self._hide(row, noises)
        if exchange.reporting == agents:
            return (row,)
        reason = "agents are drawn anew: only its own noise stays with an agent's rewards"
        return row, Disclosure(view.viewer, "the sums of all rounds", leak, reason, 1)

    def _hide(self, row: Disclosure, scales: Scales) -> Disclosure:
        """Returns the row of a sum with noises of these scales, relative to a changed reward.

        Noise hides a reward whichever agent adds it. Noise of a larger scale counts as noise of a
        smaller one, so each scale gives a bound, by the number of noises that are as large. The
        bound of the row is the smallest one up to the usual delta, of two candidates: the largest
        noise alone, and the scale at which the variance that counts is largest.
        """
        noise, order = self.noise, np.sort(scales)[::-1]
        candidates = [(float(order[0]), 1)]
        if noise.nested:
            place = int(np.argmax(np.arange(1, len(order) + 1) * order**2))
            candidates.append((float(order[place]), place + 1))
        scale, over = min(candidates, key=lambda pair: noise.epsilon(pair[0], pair[1], 1e-6))
        if noise == LAPLACE:
            return row._replace(epsilon=1.0 / scale, over=over)
        pure = noise.epsilon(scale, 1, 0.0) if noise.pure else row.epsilon
        return row._replace(epsilon=pure, over=over, scale=scale)


def _relate(scales: Scales, exchange: Exchange) -> Scales:
    """Returns scales in a weighted sum, relative to a reward of the largest weight."""
    return np.asarray(scales * exchange.weights / exchange.weights.max())


def _count_hiding(exchange: Exchange, over: int) -> int:
    """Returns the number of noises in a sum that hide a reward as well as the agent's noise.

    Agents of the largest weight hide each other; within a component all weights are equal.
    """
    if over < exchange.agents or exchange.uniform:
        return over
    return int(np.isclose(exchange.weights, exchange.weights.max(), rtol=1e-9).sum())
