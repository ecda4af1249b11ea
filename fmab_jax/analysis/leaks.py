"""One leak for all algorithms: the epsilon at which a view learns exactly so much of a reward."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from fmab_jax.algorithms.base import Algorithm, collect_algorithms, find_by_name
from fmab_jax.analysis.accountant import DELTA
from fmab_jax.analysis.privacy import privacy_ledger
from fmab_jax.core.presences import Presence
from fmab_jax.errors import Refusal, choice, real, refuse
from fmab_jax.parameters import VIEWS, parameters_of
from fmab_jax.run.contract import refuse_errors

NOISE = ("epsilon_message", "epsilon")
"""Parameters that set the noise; the first that an algorithm has is solved for."""

# A leak that a bounded number of doublings does not reach is none that the algorithm can have.
_DOUBLINGS = 60


def find_leak(
    algorithm: Algorithm,
    agents: int,
    view: str = "messages",
    delta: float = DELTA,
    presence: Presence | str | None = None,
) -> float:
    """Returns the epsilon of one reward against whoever learns most in a view, over a whole run.

    Args:
        algorithm: Configured, such as ``kl_se(1)``.
        agents: M.
        view: "messages": everybody who gets a message, pure epsilon where the noise has one.
            "sum": who sees sums over agents alone, up to ``delta``. "actions": who sees only the
            arms that agents pull, up to ``delta``.
        delta: In [1e-12, 1).
        presence: Which agents take part in a round; absent ones hide nobody in a sum.

    Returns:
        Epsilon; infinity for no bound, NaN where nobody has this view.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> import fmab_jax as fmab
        >>> fmab.find_leak(fmab.cdp_mab(0.02), 50), fmab.find_leak(fmab.kl_se(1), 50)
        (1.0, 1.0)
    """
    choice("view", view, VIEWS, "choose who is looked at")
    leaks = [math.nan]
    for row in privacy_ledger(algorithm, agents, delta, presence=presence):
        is_action = row.observation == "actions"
        is_sum = row.observation.startswith("sums over")
        if view == "actions" and is_action or view == "sum" and is_sum:
            # One noise hides a reward without delta; several hide it better up to delta.
            leaks.append(row.epsilon if row.over == 1 else row.epsilon_at_delta)
        elif view == "messages" and not is_action:
            leaks.append(row.epsilon)
        # Noise without pure epsilon hides a reward up to delta only.
        if math.isinf(leaks[-1]):
            leaks[-1] = row.epsilon_at_delta
    return max(leaks[1:], default=math.nan)


def at_leak(
    algorithm: Any,
    leak: float | None,
    *,
    agents: int,
    view: str = "messages",
    presence: Presence | str | None = None,
    **parameters: Any,
) -> Algorithm:
    """Returns an algorithm whose noise is such that a view learns exactly ``leak``.

    Algorithms count epsilon in different ways: with the paper's, a message of CDP-MAB leaks
    N epsilon. The leak of the privacy ledger is the same for all.

    Args:
        algorithm: A class such as `kl_se`, or its name.
        leak: Epsilon of one reward in the view, > 0; None for no noise.
        agents: M.
        view: As in `find_leak`.
        presence: As in `find_leak`.
        **parameters: Other parameters of the algorithm; its ``delta`` is also that of the view.

    Raises:
        ValueError: If a value is out of range, or the algorithm cannot bound this view.

    Example:
        >>> import fmab_jax as fmab
        >>> fmab.at_leak(fmab.cdp_mab, 2, agents=50).epsilon_message
        2.0
        >>> fmab.at_leak("kl_se", 2, agents=50).epsilon
        2.0
    """
    owner = find_by_name(algorithm) if isinstance(algorithm, str) else algorithm
    if not (isinstance(owner, type) and issubclass(owner, Algorithm)):
        refuse(
            "algorithm",
            algorithm,
            "a class such as fmab_jax.kl_se, or its name",
            "see fmab algorithms",
        )
    choice("view", view, VIEWS, "choose who is looked at")
    known, delta = parameters_of(owner), parameters.get("delta") or DELTA
    for name in NOISE:
        if name in parameters:
            refuse(name, parameters[name], "left out with leak, which sets it", "drop one")
    name = next((name for name in NOISE if name in known), "")
    if not name:
        _refuse_view(owner, leak, agents, view, delta, "which has no noise")

    def build(epsilon: float | None) -> Algorithm:
        with refuse_errors(owner):
            algorithm: Algorithm = owner(**{name: epsilon}, **parameters)
        return algorithm

    if leak is None:
        return build(None)
    goal = real("leak", leak, 0.0, math.inf, "give the epsilon of one reward", open_low=True)
    if math.isinf(goal):
        return build(None)

    def measure(epsilon: float) -> float:
        return find_leak(build(epsilon), agents, view, delta, presence)

    if not math.isfinite(measure(goal)):
        _refuse_view(owner, leak, agents, view, delta, "which does not bound it", parameters)
    return build(_solve(measure, goal))


def _solve(measure: Callable[[float], float], goal: float) -> float:
    """Returns where a growing function of epsilon reaches ``goal``, rounded down."""
    # Most leaks are proportional to epsilon.
    leak = measure(goal)
    if leak == goal:
        return goal
    guess = goal * goal / leak if leak > 0.0 else goal
    if math.isclose(measure(guess), goal, rel_tol=1e-12):
        return guess
    low = high = goal
    for _ in range(_DOUBLINGS):
        if measure(high) > goal:
            break
        low, high = high, 2.0 * high
    for _ in range(_DOUBLINGS):
        if measure(low) <= goal:
            break
        low, high = 0.5 * low, low
    while low < (middle := math.sqrt(low) * math.sqrt(high)) < high and high / low > 1 + 1e-13:
        low, high = (middle, high) if measure(middle) <= goal else (low, middle)
    return low


def _refuse_view(
    owner: type[Algorithm],
    leak: float | None,
    agents: int,
    view: str,
    delta: float,
    reason: str,
    parameters: Mapping[str, object] | None = None,
) -> None:
    """Refuses a leak that an algorithm cannot have; names the nearest one that can."""
    nearest = find_nearest(owner, agents, view, delta)
    if parameters is not None and "secure" in parameters_of(owner) and not parameters.get("secure"):
        nearest = f"{owner.name} with secure=True"
    remedy = f"the nearest that bounds it is {nearest}" if nearest else "choose another view"
    field = "leak" if leak is not None else "view"
    value = leak if leak is not None else view
    allowed = f"left out with {owner.name}, {reason} in the view of {view}"
    refuse(field, value, allowed, remedy)


def find_nearest(owner: type[Algorithm], agents: int, view: str, delta: float = DELTA) -> str:
    """Returns the name of the most similar algorithm that bounds a view; "" for none.

    Similar are those of one way to communicate, then those of one family.
    """
    found: list[tuple[tuple[bool, int], str]] = []
    for name, other in collect_algorithms().items():
        solved = next((n for n in NOISE if n in parameters_of(other)), "")
        if other is owner or not solved:
            continue
        try:
            algorithm = other(**{solved: 1.0})
            bounded = math.isfinite(find_leak(algorithm, agents, view, delta))
        except Refusal:
            continue
        if bounded:
            shared = len({*other.__mro__} & {*owner.__mro__})
            found.append(((other.communication != owner.communication, -shared), name))
    return min(found)[1] if found else ""
