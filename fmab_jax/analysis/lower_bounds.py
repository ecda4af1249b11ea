"""What every algorithm loses in the end: lower bounds on regret, without privacy and with it."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from fmab_jax.core.evidence import private_divergence
from fmab_jax.core.instances import TIE
from fmab_jax.errors import count, flag, privacy, refuse


def lai_robbins(means: Any, horizon: int, agents: int = 1, *, alone: bool = False) -> float:
    """Returns what any algorithm that is good everywhere must lose, in the end, without privacy.

    The sum over worse arms of gap / kl(mean, best mean), times the logarithm of all pulls. "Good
    everywhere" means that regret grows slower than every power of time on every instance. "In the
    end" means that regret divided by this number has a lower limit of at least 1 as the horizon
    grows. At a given horizon it is a yardstick, not a bound: less may well be lost.

    A federation that shares all it sees is one player with M T pulls: log(M T). Agents that hear of
    nobody are M players with T pulls each: M log T.

    Args:
        means: [arm] of Bernoulli rewards, in [0, 1], the same for every agent.
        horizon: T, in slots, in [1, 10^12].
        agents: M.
        alone: Whether each agent is a player of its own.

    Raises:
        ValueError: If an argument is out of range.

    Source:
        Lai and Robbins, Asymptotically efficient adaptive allocation rules, Advances in Applied
        Mathematics 6 (1985), Theorem 1.

    Example:
        Fifty agents that play together lose little more than one of them would alone:

        >>> from fmab_jax.analysis import theory
        >>> [round(theory.lai_robbins([0.9, 0.6, 0.3], 10**6, agents)) for agents in (1, 50)]
        [21, 27]
        >>> round(theory.lai_robbins([0.9, 0.6, 0.3], 10**6, 50, alone=True))
        1067
    """
    return private_lower_bound(means, None, horizon, agents, alone=alone)


def private_lower_bound(
    means: Any, epsilon: float | None, horizon: int, agents: int = 1, *, alone: bool = False
) -> float:
    """Returns what any algorithm whose actions are epsilon-private must lose, in the end.

    As `lai_robbins`, with d_epsilon in place of kl: the infimum over z of
    epsilon |z - mean| + kl(z, best mean). What is private is all that players do, for one changed
    reward. A federation is one player with M T pulls if what all agents do together is: so it is
    over a secure sum with one noise, and also where every message hides its rewards, from which the
    actions follow. ``alone``, each agent's own actions are private by themselves.

    Args:
        means: [arm] of Bernoulli rewards, in [0, 1], the same for every agent.
        epsilon: Privacy parameter > 0; None (or infinity) for no privacy.
        horizon: T, in slots, in [1, 10^12].
        agents: M.
        alone: Whether each agent is a player of its own.

    Raises:
        ValueError: If an argument is out of range.

    Source:
        Azize, Wu, Honda, Orabona, Ito and Basu, NeurIPS 2025, arXiv 2505.05613.

    Example:
        Privacy costs something only where the log odds of two means are more than epsilon apart:

        >>> from fmab_jax.analysis import theory
        >>> given = [0.9, 0.6, 0.3], 10**6, 50
        >>> [round(theory.private_lower_bound(given[0], e, *given[1:])) for e in (None, 4, 1, 0.1)]
        [27, 27, 42, 359]
    """
    array = checked_means(means)
    level = privacy("epsilon", epsilon)
    T = count("horizon", horizon, 1, 10**12, "give the number of slots T")
    M = count("agents", agents, 1, 10**7, "give the number of agents M")
    flag("alone", alone)
    gaps = array.max() - array
    worse = gaps >= TIE
    if not worse.any():
        return 0.0
    with jax.enable_x64(True):
        low, high, hidden = map(jnp.asarray, (array[worse], np.full(1, array.max()), level))
        apart = np.asarray(_divergence(low, high, jnp.float64(hidden)))
    total = float((gaps[worse] / apart).sum())
    return total * (M * math.log(T) if alone else math.log(M * T))


_divergence = jax.jit(private_divergence)


def checked_means(means: Any) -> Float[np.ndarray, " arm"]:
    """Returns the means of arms, checked."""
    remedy = "give one mean per arm, the same for all agents"
    array = numbers_by_arm("mean", means, remedy)
    if not ((array >= 0) & (array <= 1)).all():
        refuse("means", means, "in [0, 1]", remedy)
    return array


def numbers_by_arm(what: str, values: Any, remedy: str) -> Float[np.ndarray, " arm"]:
    """Returns a number for each arm."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        refuse(f"{what}s", values, "an array of numbers", remedy)
    if array.ndim != 1 or not 1 <= array.size <= 10**6:
        refuse(f"{what}s", array.shape, f"one {what} per arm, at most 1,000,000 arms", remedy)
    return array
