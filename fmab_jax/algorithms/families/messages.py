"""Eliminations whose sums have noise: of an epoch alone, or of every message."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fmab_jax.algorithms.families.elimination import Elimination, Epoch, is_clearly_behind
from fmab_jax.algorithms.families.private import Private, failure_parameter
from fmab_jax.core.exchanges import Exchange, View
from fmab_jax.core.ledgers import ACTIONS, ANYBODY, OUTSIDE, SERVER, Seen, together
from fmab_jax.core.shapes import Scalar
from fmab_jax.parameters import Real, Whole, parameter


def participation_parameter() -> Any:
    """Returns the parameter that says how many agents report in a round."""
    return parameter(
        Real(low=0.0, high=1.0, open_low=True),
        "p, share of the agents that report in a round.",
        default=1.0,
        symbol="p",
    )


def rounds_parameter() -> Any:
    """Returns the parameter of a round budget."""
    # With arms that never separate, a run makes as many epochs.
    kind = Whole(none_label="no round budget", low=1, high=10**5)
    words, label = "Round budget R, or none.", "round budget R"
    return parameter(kind, words, default=None, symbol="R", label=label)


@dataclass(frozen=True)
class ForgettingElimination(Private, Elimination):
    """An elimination that judges by an epoch's own rewards, with one noise on an arm's sum of them.

    Attributes:
        failure: Chance that a confidence interval may fail; None for 1 / T.
    """

    noisy = True
    remembers = False
    elementwise = True
    leaves = staticmethod(is_clearly_behind)

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

    What a message leaks is ``epsilon_message`` of `privacy`.

    Attributes:
        shown_by: Where it is shown that a message hides its rewards; "" for nowhere.
    """

    shown_by: ClassVar[str] = ""

    def ledger(self, exchange: Exchange) -> tuple[Seen, ...]:
        """Returns what each view of the exchange tells, and what actions tell.

        Actions follow from the aggregate, except in waits.
        """
        leak = self.privacy(exchange)["epsilon_message"]
        if math.isinf(leak):
            nothing = [Seen(view.who, "messages", leak, "no noise") for view in exchange.views]
            return (*nothing, Seen(ACTIONS, "actions", leak, "no noise"))
        none = () if exchange.alone else (View(ANYBODY[1], 1),)
        rows = [row for v in exchange.views or none for row in self._viewed(exchange, v, leak)]
        who, over, why = ACTIONS, 1, "a function of noisy means"
        if exchange.wait and not self.waits_privately:
            leak, why = math.inf, "agents that wait pull the best arm of their un-noised means"
        elif exchange.wait:
            why = "agents that wait pull the best arm of the noisy means that they send"
        elif not exchange.alone and not exchange.exact:
            why = "a function of averages, in which the noise of few agents may be"
        elif not exchange.alone and exchange.reporting == exchange.agents:
            over, why = _hiding(exchange, exchange.agents), "a function of the sums over all agents"
            who = OUTSIDE if over > 1 else ACTIONS
        return (*rows, Seen(who, "actions", leak, why, over))

    def coalition(self, exchange: Exchange, size: int) -> tuple[Seen, ...]:
        """Returns single messages where agents get them, else the sums less their own noise."""
        agents = exchange.agents
        views = [view for view in exchange.views if view.who != SERVER]
        leak = self.privacy(exchange)["epsilon_message"]
        sums = bool(views) and all(view.inside and view.over == agents for view in views)
        if not sums or math.isinf(leak) or exchange.reporting < agents or not exchange.uniform:
            # A reward is in one message, which all of them may see: its own noise is left.
            rows = [row for row in self.ledger(exchange) if row.who not in (SERVER, OUTSIDE)]
            latest = reversed(rows)  # of all rounds, rather than of one
            worst = max(latest, key=lambda row: (row.epsilon, -row.over, row.what != "actions"))
            return (worst._replace(who=together(size), over=1),)
        what = f"sums over {agents} agents, less their own"
        why = "the noise of the agents that are left hides each of them"
        return (Seen(together(size), what, leak, why, max(1, agents - size)),)

    def _viewed(self, exchange: Exchange, view: View, leak: float) -> tuple[Seen, ...]:
        """Returns what somebody sees of all rounds."""
        if view.over == 1:
            return (Seen(view.who, view.what, leak, _DISJOINT, 1, self.shown_by),)
        over = _hiding(exchange, view.over)
        why = "the noise of all agents of a sum hides each of them"
        if over < view.over:
            why = "whoever weighs most is hidden by the noise of those that weigh as much"
        if view.inside:
            over = max(1, over - 1)
            why += "; an agent can take out its own message"
        if exchange.reporting < exchange.agents:
            # A ledger is about whole runs: this row is not.
            what = f"one round's sum over {view.over} agents, that round alone and not the run"
            one = Seen(view.who, what, leak, why, over)
            # Other agents hide an agent each time, whose own noise in an epoch is drawn once.
            why = "agents are drawn anew: only its own noise stays with an agent's rewards"
            return one, Seen(view.who, "the sums of all rounds", leak, why, 1)
        what = f"sums over {view.over} agents" + " or more" * (view.over < exchange.agents)
        return (Seen(view.who, what, leak, why, over),)


def _hiding(exchange: Exchange, over: int) -> int:
    """Returns how many noises in a sum over agents hide a reward at least as well as its own.

    Whoever weighs the most is hidden by those that weigh as much; within a component all do.
    """
    if over < exchange.agents or exchange.uniform:
        return over
    return int(np.isclose(exchange.weights, exchange.weights.max(), rtol=1e-9).sum())
