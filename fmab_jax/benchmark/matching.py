"""Matched trust: which epsilon an algorithm needs, so that one view of it leaks what is asked.

Whoever is compared at a leak is covered by the same epsilon against the same view: whoever reads
single messages, whoever sees sums over agents and no message, or an outsider who sees actions. With
sums count agents, who can take out of a sum what they know: their message, or their share of the
noise. The privacy ledger says what a view leaks at a parameter; here that is solved for the
parameter. Nothing is guessed: a view that the ledger does not bound has no such epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from scipy.optimize import brentq

from fmab_jax.algorithms.base import ACTIONS, OUTSIDE, SHARER, Algorithm
from fmab_jax.analysis.privacy import DELTA, LedgerRow, privacy_ledger
from fmab_jax.benchmark.suites import Contestant
from fmab_jax.errors import Refusal
from fmab_jax.parameters import parameters_of

PARAMETERS = ("epsilon", "epsilon_message")
"""What the benchmark sets; the first of them that an algorithm has."""

# Parameters between which one is looked for, and how near its leak has to be.
_ENDS = 1e-7, 1e7
_NEAR = 1e-9
_DIGITS = 12


class View(NamedTuple):
    """Whom a leak is about."""

    sees: str  # what is seen
    accountant: str | float  # "pure", or the delta up to which the leak holds


VIEWS = {
    "messages": View("single messages", "pure"),
    "sums": View("secure sums and no message", DELTA),
    "actions": View("actions alone", DELTA),
}
NO_BOUND = "no bound"
"""The group of those that no epsilon covers by their parameters."""


class Matched(NamedTuple):
    """Who a contestant is at matched trust."""

    values: dict[tuple[str, float], float]  # the parameter's value by view and leak
    absent: dict[str, str]  # why it takes no part, by view


def parameter_of(contestant: Contestant) -> str | None:
    """Returns the parameter that the benchmark sets, None where there is none to set."""
    if not set(PARAMETERS).isdisjoint(contestant.options):
        return None
    known = parameters_of(contestant.owner)
    return next((name for name in PARAMETERS if name in known), None)


def at_value(contestant: Contestant, value: float = 1.0) -> Algorithm:
    """Returns the algorithm with its parameter at a value; as it is where there is none to set.

    A ValueError if a parameter is out of range.
    """
    name = parameter_of(contestant)
    return contestant.owner(**contestant.options, **({name: value} if name else {}))


def leak_of(algorithm: Algorithm, agents: int, view: str) -> float:
    """Returns what a view leaks of one reward over a run, against whoever of that view sees most.

    That is an epsilon in the view's accountant; infinity for no bound, NaN where nobody has it.
    """
    rows = _rows(privacy_ledger(algorithm, agents), algorithm.exchange(agents).alone, view)
    pure = VIEWS[view].accountant == "pure"
    found = [row.epsilon if pure else row.epsilon_at_delta for row in rows]
    return max(found, default=math.nan)


def matched(contestant: Contestant, agents: int, leaks: Sequence[float]) -> Matched:
    """Returns the value of a contestant's parameter for each view and leak, and where is none.

    Without a parameter to set, both are empty. A ValueError if it does not fit so many agents.
    """
    found = Matched({}, {})
    name = parameter_of(contestant)
    if name is None:
        return found
    for view in VIEWS:

        def leak(value: float, view: str = view) -> float:
            return leak_of(at_value(contestant, value), agents, view)

        if why := _why_not(at_value(contestant), agents, view):
            found.absent[view] = why
            continue
        for asked in leaks:
            try:
                value = _solved(leak, asked)
            except Refusal:  # the algorithm does not take some value on the way
                continue
            if value is not None:
                # Rounded: last digits differ between machines, and would change the bits of runs.
                found.values[view, asked] = float(f"{value:.{_DIGITS}g}")
        if not any((view, asked) in found.values for asked in leaks):
            listed = " or ".join(f"{asked:g}" for asked in leaks)
            found.absent[view] = f"because no {name} in its range leaks {listed}"
    return found


def _solved(leak: Callable[[float], float], asked: float) -> float | None:
    """Returns the parameter at which a leak, which grows with it, is what is asked; or None."""
    # In most ledgers the leak is a multiple of the parameter: then it is solved exactly.
    guess = asked / leak(1.0) if leak(1.0) else asked
    if abs(leak(guess) / asked - 1.0) <= _NEAR:
        return guess

    def over(log_value: float) -> float:
        return leak(math.exp(log_value)) - asked

    low = high = math.log(asked)
    while over(low) > 0.0 and low > math.log(_ENDS[0]):
        low -= 1.0
    while over(high) < 0.0 and high < math.log(_ENDS[1]):
        high += 1.0
    if not over(low) <= 0.0 <= over(high):
        return None
    return math.exp(brentq(over, low, high, xtol=1e-12))


def _rows(ledger: Sequence[LedgerRow], alone: bool, view: str) -> list[LedgerRow]:
    """Returns the rows of a ledger that are about a view."""
    if view == "actions":
        return [row for row in ledger if row.what == "actions" and row.who in (ACTIONS, OUTSIDE)]
    # Agents that are alone send nothing, whatever noise their rewards have.
    if alone:
        return []
    if view == "messages":
        return [row for row in ledger if row.what != "actions" and "sum" not in row.what]
    # An agent's knowledge of a sum counts, whether of its message or of its share of the noise.
    shares = [row for row in ledger if row.who == SHARER and row.what == "actions"]
    # "one round's sum" is not about the run.
    sums = [row for row in ledger if "sums" in row.what]
    return sums and sums + shares


def _why_not(algorithm: Algorithm, agents: int, view: str) -> str:
    """Returns why no epsilon of a view can be matched; "" if one can."""
    leak = leak_of(algorithm, agents, view)
    if math.isfinite(leak):
        return ""
    if math.isinf(leak):
        return "because its ledger has no bound"
    if algorithm.exchange(agents).alone:
        return "because it tells nobody anything"
    if view == "messages":
        return "because no ε covers a message: the noise of a secure sum is shared out"
    if view == "sums":
        return "because its ledger knows no sum over agents"
    return "because its ledger says nothing of actions"
