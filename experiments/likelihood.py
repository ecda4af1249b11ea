"""Upper bounds on regret and links with explicit constants, of elimination by likelihood.

They are for `kl_se` and what shares its equations, whose schedule and level they ask for.
docs/theory.md derives them.

An arm that is still in play after epoch r leads a best arm, or the evidence against it is below
b_r. Then what any one pair of the prepared tilts shows is below b_r as well. That is linear in both
sums, and Chernoff's bound at a scale s says how likely it is. Whatever pair and s are, the bound
holds: how they are looked for decides only how sharp it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from fmab_jax.algorithms.families.elimination import Epoch
from fmab_jax.algorithms.families.likelihood import LikelihoodElimination
from fmab_jax.analysis.epochs import check_arm_values
from fmab_jax.core.evidence import Tilts
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.instances import TIE
from fmab_jax.errors import count, flag, refuse

# Most epochs of the table; if growth is near 1 and a run has more, the rest count as one.
_EPOCHS = 512
_Parts = tuple[float, float, float, float, float]
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class LikelihoodBounds(NamedTuple):
    """Upper bounds on expectations at the horizon, summed over agents."""

    regret: float  # the sum of the five parts below, at most agents x horizon x the largest gap
    regret_exploration: float  # of epochs, while a best arm is in play
    regret_rounding: float  # of slots that are left over where agents share the arms out
    regret_waiting: float  # of slots in which agents wait for messages
    regret_commitment: float  # of playing the best aggregate once a round budget is spent
    regret_failure: float  # ``best_arm_lost`` x agents x horizon x largest gap
    rounds: float  # completed rounds
    rounds_surely: float  # completed rounds that the budget and the horizon have room for
    # ``rounds`` times the links of a round, by the name of each of the exchange's meters
    links: dict[str, float]
    best_arm_lost: float  # probability that no best arm is left at the horizon
    epsilon_message: float  # what all messages together leak of one reward


def likelihood_bounds(
    means: Any, algorithm: Any, agents: int, horizon: int, *, heterogeneous: bool = False
) -> LikelihoodBounds:
    """Bounds regret, rounds and links of `kl_se` on one instance.

    Rewards are of any law in [0, 1]. Where agents differ and only some report, nothing is promised:
    ``best_arm_lost`` is 1 and ``regret`` the trivial bound. Where agents share the arms out without
    a secure sum, how many noises an arm has depends on what was heard before; the bounds take the
    largest number that there can be. With gossip they are for agents that hold the exact mean, as
    they do in a simulation, and not for averages that are near it.

    Args:
        means: [arm] global means, in [0, 1].
        algorithm: A `kl_se`, `kl_se_graph` or `kl_se_components`.
        agents: M.
        horizon: T, in slots, in [1, 10^12].
        heterogeneous: Whether the agents' means differ.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> import fmab_jax as fmab
        >>> from experiments import likelihood
        >>> found = likelihood.likelihood_bounds([0.9, 0.6, 0.3], fmab.kl_se(1.0), 50, 10**5)
        >>> round(found.regret), round(found.rounds, 1), found.best_arm_lost < 1e-5
        (566, 3.9, True)
    """
    array = check_arm_values("mean", means, "give one mean per arm, the same for all agents")
    if not isinstance(algorithm, LikelihoodElimination):
        refuse("algorithm", algorithm, "a kl_se", "use fmab_jax.kl_se(1.0)")
    M = count("agents", agents, 1, 10**7, "give the number of agents M")
    T = count("horizon", horizon, 1, 10**12, "give the number of slots T")
    flag("heterogeneous", heterogeneous)
    exchange, K = algorithm.exchange(M), len(array)
    gaps = array.max() - array
    gaps[gaps < TIE] = 0.0
    params = algorithm.values(exchange, T)
    pulls, needed, ready = _schedule(algorithm, params, exchange, K, T)
    # S_r is of each agent, or of all together where they share the arms out.
    share = M if algorithm.shares_arms else 1
    surely, rest = _surely(pulls, K, T * share, params["rounds"])
    trivial = M * T * float(gaps.max())
    made = float(surely + rest)
    lost = params["failure"] * (K - 1) / K * (made / (made + 1.0))

    def bounds(parts: _Parts, whole: float, rounds: float) -> LikelihoodBounds:
        links = {meter.name: rounds * number for meter, number in exchange.links}
        regret = min(whole, trivial)
        return LikelihoodBounds(regret, *parts, rounds, made, links, lost, params["epsilon"])

    if heterogeneous and exchange.reporting < M:
        lost = 1.0
        return bounds((0.0, 0.0, 0.0, 0.0, trivial), trivial, made)
    bad, best = array[gaps > 0], float(array.max())
    costs = (M // share) * gaps[gaps > 0]
    # How likely each arm is in play after each epoch, beside a best one.
    n = params["senders"] * pulls[:surely]
    m = np.arange(1.0, surely + 1) * params["noises"]
    if not math.isfinite(params["epsilon"]):
        m = np.zeros(surely)
    elif "most_noises" in params:
        m = np.cumsum(_most_pulling(np.diff(pulls[:surely], prepend=0.0), K, M))
    leads = np.exp(_log_leads(n, m, bad, best, params["epsilon"]))
    ready = jax.tree.map(lambda x: x[:surely], ready)
    below = np.exp(_log_below(n, m, bad, best, needed[:surely], params["epsilon"], ready))
    stays = np.minimum(below + leads, 1.0)
    begun = surely + (made < params["rounds"] or rest > 0)
    # Of the slots, K S_1 are of the first epoch; later ones are of two arms or more.
    slots = float(T * share)
    room = pulls[0] + (slots - K * pulls[0]) / 2.0 if surely else slots / K
    upto = np.minimum(pulls[:begun], room)
    exploration = float(costs @ (upto[0] + stays[:, : begun - 1] @ np.diff(upto)))
    rounds = made
    if np.count_nonzero(gaps == 0) == 1 and surely:
        more = np.minimum(stays.sum(axis=0), 1.0)
        later = float(more[: surely - 1].sum()) + rest * float(more[-1])
        rounds = min(made, 1.0 + later + lost * (made - 1.0))
    rounding = (share - 1) * float(gaps.max()) * (rounds + 1)
    waiting = rounds * exchange.wait * M * float(gaps.max())
    commitment = 0.0
    if made == params["rounds"]:
        left = T - (K * pulls[0] + 2 * (pulls[surely - 1] - pulls[0])) / share
        # Epochs past the table may hold more noise: then any arm may be committed to.
        ahead = leads[:, -1] if rest == 0 else np.ones(len(bad))
        chosen = min(float(gaps[gaps > 0] @ ahead), float(gaps.max()))
        commitment = M * max(float(left), 0.0) * chosen
    failure = lost * trivial
    whole = exploration + rounding + waiting + commitment + failure
    return bounds((exploration, rounding, waiting, commitment, failure), whole, rounds)


def _most_pulling(
    fresh: Float[np.ndarray, " epoch"], arms: int, agents: int
) -> Float[np.ndarray, " epoch"]:
    """Returns how many agents may pull one arm in an epoch, at most, where they share the arms out.

    All pulls lie in one line, which is cut into a part for each agent. Later epochs may have two
    arms; with more of them the parts are longer, and fewer meet an arm's pulls.
    """
    active = np.where(np.arange(len(fresh)) == 0, arms, 2)
    part = np.ceil(active * fresh / agents)
    return np.minimum(1.0 + np.ceil((fresh - 1.0) / part), agents)


def _surely(
    pulls: Float[np.ndarray, " epoch"], arms: int, slots: int, budget: float
) -> tuple[int, int]:
    """Returns how many epochs the slots have room for, of which later ones have two arms.

    Those of the table, and the others, each of which takes a pull of both arms at least.
    """
    if arms == 1:
        return 0, 0
    taken = arms * pulls[0] + 2 * (pulls - pulls[0])
    fits = int(min(float(np.count_nonzero(taken <= slots)), budget))
    if fits < _EPOCHS:
        return fits, 0
    return fits, int(min((slots - taken[fits - 1]) // 2, budget - fits))


def _schedule(
    algorithm: LikelihoodElimination,
    params: dict[str, float],
    exchange: Exchange,
    arms: int,
    horizon: int,
) -> tuple[Float[np.ndarray, " epoch"], Float[np.ndarray, " epoch"], Tilts]:
    """Returns S_r and b_r of all epochs that the horizon may have room for, and one more.

    And the tilts that each is judged by, [epoch, place].
    """
    with jax.enable_x64(True):
        given = (arms, exchange.agents, exchange.reporting, horizon)
        numbers = [jnp.float64(x) for x in given]
        values = {name: jnp.float64(value) for name, value in params.items()}
        found = _planned(type(algorithm), values, *numbers)
        pulls, needed, ready = jax.tree.map(np.asarray, found)
    most = horizon * (exchange.agents if algorithm.shares_arms else 1)
    last = 1 + np.count_nonzero(pulls <= most)
    # One endless epoch stands for all epochs past the table.
    return np.append(pulls, np.inf)[:last], np.append(needed, np.inf)[:last], ready


@partial(jax.jit, static_argnums=0)
def _planned(
    algorithm: type[LikelihoodElimination],
    params: dict[str, Array],
    arms: Array,
    agents: Array,
    heard: Array,
    slots: Array,
) -> tuple[Float[Array, " epoch"], Float[Array, " epoch"], Tilts]:
    def one(previous: Array, number: Array) -> tuple[Array, tuple[Array, Array, Tilts]]:
        # Neither S_r nor b_r depends on how many arms are in play.
        epoch = Epoch(
            number, arms, arms, agents, heard, slots, previous, previous, previous, params
        )
        asked = algorithm.pulls_per_arm(epoch)
        pulls = jnp.clip(asked, previous + 1.0, previous + slots * agents + 1.0)
        radius = algorithm.radius(epoch)
        return pulls, (pulls, radius, algorithm.precompute(epoch._replace(pulls=pulls), radius))

    numbers = jnp.arange(1.0, _EPOCHS + 1.0, dtype=jnp.float64)
    return lax.scan(one, jnp.zeros((), jnp.float64), numbers)[1]


def _log_below(
    n: Float[np.ndarray, " epoch"],
    m: Float[np.ndarray, " epoch"],
    low: Float[np.ndarray, " arm"],
    high: float,
    needed: Float[np.ndarray, " epoch"],
    epsilon: float,
    ready: Tilts,
) -> Float[np.ndarray, "arm epoch"]:
    """Returns the logarithm of a bound on the probability that tilts show less than b_r.

    Of sums of n rewards of the means ``low`` and ``high``, with m Laplace variables each.
    """
    if not len(n):
        return np.zeros((len(low), 0))
    mean, count = low[:, None, None], n[None, :, None]
    share = np.where(np.isinf(epsilon), 0.0, m / n)[None, :, None]
    l, k, offset, *noises = (x[None] for x in ready)  # noqa: E741
    level = (needed[None, :, None] + offset) / count + k - share * (noises[0] + noises[1])
    square = min(epsilon, 1e100) ** 2

    def found(x: np.ndarray) -> np.ndarray:
        s = np.exp(x)
        spent = np.log1p(mean * np.expm1(s * l)) + np.log1p(high * np.expm1(-s * k))
        return s * level + spent + _noise(s * l, share, square) + _noise(s * k, share, square)

    start = np.zeros(np.broadcast_shapes(mean.shape, level.shape))
    return np.minimum((count * _searched(found, start)).min(axis=2), 0.0)


def _noise(tilt: np.ndarray, share: np.ndarray, square: float) -> np.ndarray:
    """Returns the logarithm of the moment-generating function of noise, infinite past its end."""
    outside = (tilt * tilt >= square) & (share > 0.0)
    ratio = np.minimum(tilt * tilt / square, 1.0 - 1e-16)
    return np.where(outside, np.inf, -share * np.log1p(-np.where(share > 0.0, ratio, 0.0)))


def _log_leads(
    n: Float[np.ndarray, " epoch"],
    m: Float[np.ndarray, " epoch"],
    low: Float[np.ndarray, " arm"],
    high: float,
    epsilon: float,
) -> Float[np.ndarray, "arm epoch"]:
    """Returns the logarithm of a bound on the probability that the worse of two sums is no less."""
    mean, end, count = low[:, None], min(epsilon, 300.0), n[None, :]
    share = np.where(np.isinf(epsilon), 0.0, m / n)[None, :]

    def found(x: np.ndarray) -> np.ndarray:
        l = np.exp(x)  # noqa: E741
        spent = np.log1p(mean * np.expm1(l)) + np.log1p(high * np.expm1(-l))
        return spent + 2.0 * _noise(l, share, end * end)

    middle = (mean + high) / 2.0
    spread = np.maximum(middle * (1.0 - middle), 1e-3) + 2.0 * share / (end * end)
    start = np.log(np.clip((high - mean) / (2.0 * spread), 1e-9, 0.5 * min(end, 10.0)))
    return np.minimum(count * _searched(found, start), 0.0)


def _searched(
    function: Callable[[np.ndarray], np.ndarray], at: np.ndarray
) -> Float[np.ndarray, "arm epoch ..."]:
    """Returns small values of a function, by golden sections around the best place so far."""

    def found(x: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            value = function(x)
        return np.where(np.isfinite(value), value, np.inf)

    best = found(at)
    for width in (3.0, 1.5, 0.75, 0.4, 0.2, 0.1):
        low, high = at - width, at + width
        first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        left, right = found(first), found(second)
        for _ in range(16):
            lower = left <= right
            high, low = np.where(lower, second, high), np.where(lower, low, first)
            step = _GOLDEN * (high - low)
            other = np.where(lower, high - step, low + step)
            value = found(other)
            first, second = np.where(lower, other, second), np.where(lower, first, other)
            left, right = np.where(lower, value, right), np.where(lower, left, value)
        point, value = np.where(left <= right, first, second), np.minimum(left, right)
        at = np.where(value < best, point, at)
        best = np.minimum(best, value)
    return best
