"""One leak for all algorithms: the epsilon at which a view learns exactly so much of a reward."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

from fmab_jax.algorithms.base import ALGORITHMS, Algorithm
from fmab_jax.analysis.accountant import DELTA, Leak, check_delta, leak
from fmab_jax.analysis.privacy import list_disclosures
from fmab_jax.errors import Refusal, choice, real, refuse
from fmab_jax.parameters import VIEWS, ViewKind, parameters_of
from fmab_jax.parts.mechanisms import MECHANISMS
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.parts.presences import Presence
from fmab_jax.run.promises import refuse_errors

NOISE = ("epsilon_message", "epsilon")
"""Parameters that set the noise; the first that an algorithm has is solved for."""

# A leak is at most the goal. It is less by so much of it, where its last digits are lost by more.
_PRECISION, _TOLERANCE = 1e-12, 1e-9
# Largest step, as a factor, by which an epsilon is looked for.
_MOST_STEP = 1e3


def measure_leak(
    algorithm: Algorithm,
    agents: int,
    view: str = "messages",
    delta: float = DELTA,
    presence: Presence | str | None = None,
) -> Leak | None:
    """Returns what a view leaks, with the delta at which it holds; arguments as in `find_leak`.

    None where nobody has this view.
    """
    choice("view", view, VIEWS, "choose who is looked at")
    rows = list_disclosures(algorithm, agents, presence)
    return leak(rows, ViewKind(view), check_delta(delta))


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
        view: "messages": everybody who gets a message, pure epsilon where the noise has one, else
            up to ``delta``. "sum": who sees only sums over agents. "actions": who sees only the
            arms that agents pull. These two are up to ``delta``, but pure where one noise alone
            hides a reward and has a pure epsilon.
        delta: In [1e-12, 1).
        presence: Which agents take part in a round; absent ones hide nobody in a sum.

    Returns:
        Epsilon; infinity for no bound, 0 in the view of messages where none are sent.

    Raises:
        ValueError: If an argument is out of range, or nobody has this view.

    Example:
        >>> import fmab_jax as fmab
        >>> fmab.find_leak(fmab.cdp_mab(0.02), 50), fmab.find_leak(fmab.kl_se(1), 50)
        (1.0, 1.0)
    """
    found = measure_leak(algorithm, agents, view, delta, presence)
    if found is None:
        allowed = f"a view that somebody has of {algorithm.name}"
        refuse("view", view, allowed, "see fmab_jax.privacy_ledger")
    return found.epsilon


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
        **parameters: Other parameters of the algorithm. ``delta`` is that of the view, and that of
            noise without pure epsilon.

    Returns:
        The algorithm, which leaks no more than ``leak``, and less by at most 1e-9 of it.

    Raises:
        ValueError: If a value is out of range, or the algorithm cannot have this leak.

    Example:
        >>> import fmab_jax as fmab
        >>> fmab.at_leak(fmab.cdp_mab, 2, agents=50).epsilon_message
        2.0
        >>> fmab.at_leak("kl_se", 2, agents=50).epsilon
        2.0
    """
    owner = ALGORITHMS.find(algorithm) if isinstance(algorithm, str) else algorithm
    if not (isinstance(owner, type) and issubclass(owner, Algorithm)):
        allowed = "a class such as fmab_jax.kl_se, or its name"
        refuse("algorithm", algorithm, allowed, "see fmab list")
    choice("view", view, VIEWS, "choose who is looked at")
    known, delta = parameters_of(owner), parameters.get("delta") or DELTA
    for name in NOISE:
        if name in parameters:
            refuse(name, parameters[name], "left out with leak, which sets it", "drop one")

    def refuse_view(reason: str) -> NoReturn:
        """Refuses a leak that the algorithm cannot have; names the nearest one that can."""
        nearest = find_nearest(owner, agents, view, delta)
        if name and "secure" in known and not parameters.get("secure"):
            nearest = f"{owner.name} with secure=True"
        remedy = f"the nearest that bounds it is {nearest}" if nearest else "choose another view"
        field, value = ("view", view) if leak is None else ("leak", leak)
        refuse(field, value, f"left out with {owner.name}, {reason} in the view of {view}", remedy)

    name = next((name for name in NOISE if name in known), "")
    if not name:
        refuse_view("which has no noise")

    # Pure noise has no delta; a view of sums or actions may have one.
    mechanism = MECHANISMS.parse(parameters.get("mechanism", LAPLACE), "mechanism")
    if view != ViewKind.MESSAGES and mechanism.pure:
        parameters.pop("delta", None)

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
        result = measure_leak(build(epsilon), agents, view, delta, presence)
        if result is None or result.row is None:
            refuse_view("which shows nothing")
        return result.epsilon

    if not math.isfinite(measure(goal)):
        refuse_view("which does not bound it")
    epsilon = _solve(measure, goal)
    nearest = measure(epsilon)
    if not goal * (1.0 - _TOLERANCE) <= nearest <= goal:
        allowed = f"one that {owner.name} can have in the view of {view}, nearest {nearest:.12g}"
        refuse("leak", leak, allowed, "ask for another, or for another view")
    return build(epsilon)


def _solve(measure: Callable[[float], float], goal: float) -> float:
    """Returns where a growing function of epsilon reaches ``goal``, rounded down.

    If it never does, the result is an end of the range in which it was looked for.
    """
    from scipy.optimize import brentq

    # Most leaks are proportional to epsilon.
    leak = measure(goal)
    guess = goal * goal / leak if leak > 0.0 else goal
    for epsilon in (goal, guess, guess * (1.0 - 2e-16), guess * (1.0 - 1e-15)):
        if goal * (1.0 - _PRECISION) <= measure(epsilon) <= goal:
            return epsilon
    low, high, step = guess, guess, 1e-6
    while measure(low) > goal and step < _MOST_STEP:
        low, step = low / (1.0 + step), 8.0 * step
    while measure(high) <= goal and step < _MOST_STEP**2:
        high, step = high * (1.0 + step), 8.0 * step
    if not measure(low) <= goal < measure(high):
        return low
    root = brentq(lambda epsilon: measure(epsilon) - goal, low, high, xtol=1e-15 * high)
    gaps = (1.0 - 1e-15 * 4.0**k for k in range(24))
    return next((root * gap for gap in gaps if measure(root * gap) <= goal), low)


def find_nearest(owner: type[Algorithm], agents: int, view: str, delta: float = DELTA) -> str:
    """Returns the name of the most similar algorithm that bounds a view; "" for none.

    Similar are those of one way to communicate, then those of one family.
    """
    found: list[tuple[tuple[bool, int], str]] = []
    for name, other in ALGORITHMS.by_name().items():
        solved = next((n for n in NOISE if n in parameters_of(other)), "")
        if other is owner or not solved:
            continue
        try:
            result = measure_leak(other(**{solved: 1.0}), agents, view, delta)
        except Refusal:
            continue
        if result is not None and result.row is not None and result.epsilon < math.inf:
            shared = len({*other.__mro__} & {*owner.__mro__})
            found.append(((other.communication != owner.communication, -shared), name))
    return min(found)[1] if found else ""
