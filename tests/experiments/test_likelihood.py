"""The bounds of elimination by likelihood, against arithmetic by hand, searches, and runs."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
import scipy.optimize
import scipy.stats
from refusals import refuses

import fmab_jax
from experiments import likelihood
from fmab_jax.core import evidence

MEANS = np.array([0.9, 0.75, 0.6, 0.5, 0.45, 0.4, 0.3, 0.2, 0.1, 0.05])
# Half the width of a normal 99.9999 % interval, in standard errors.
SIGMAS = 4.9


def exponent(tilts, n, m, low, high, b, epsilon):
    """The exponent of docs/theory.md at given tilts l, k and scale s, with no algebra done."""
    l, k, s = tilts  # noqa: E741
    if not all(0 < x < min(epsilon, 300) for x in (l, k, s * l, s * k)):
        return math.inf

    def noise(tilt):
        return -math.log1p(-((tilt / epsilon) ** 2)) if m else 0.0

    q = np.linspace(0.0, 1.0, 4001)
    least = -math.log(((1 - q + q * np.exp(-l)) * (q + (1 - q) * np.exp(-k))).max())
    # l Y_a - k Y_b is above this where the tilts show less than b.
    level = -k * n + n * least - m * (noise(l) + noise(k)) - b
    worse = n * math.log1p(low * math.expm1(s * l)) + m * noise(s * l)
    better = n * math.log1p(high * math.expm1(-s * k)) + m * noise(s * k)
    return -s * level + worse + better


@pytest.mark.parametrize(
    "case",
    [
        (924.0, 16.0, 0.34, 0.59, 18.7, 10.0),
        (9233.0, 29.0, 0.08, 0.82, 18.4, 1.0),
        (5335.0, 58.0, 0.56, 0.92, 18.6, 0.1),
        (977.0, 0.0, 0.21, 0.51, 5.8, math.inf),
        (300.0, 20.0, 0.0, 1.0, 12.0, 2.0),
        (60.0, 30.0, 0.4, 0.6, 20.0, 0.5),
    ],
)
def test_staying_is_as_unlikely_as_a_search_finds(case):
    """Would catch a term of the exponent, its sign, or a search that stops early or oversteps."""
    n, m, low, high, b, epsilon = case
    ready = prepared(b, n, m, epsilon)
    wanted = 0.0
    for l, k, offset in zip(ready.low, ready.high, ready.offset, strict=True):  # noqa: E741
        q = np.linspace(0.0, 1.0, 4001)
        top = n * np.log((1 - q + q * np.exp(-l)) * (q + (1 - q) * np.exp(-k))).max()
        level = offset - top
        assert 0.0 <= level + 1e-3
        found = scipy.optimize.minimize_scalar(
            lambda x, l=l, k=k, level=level: exponent(  # noqa: E741
                (l, k, math.exp(x)), n, m, low, high, b + level, epsilon
            ),
            bounds=(-4.0, math.log(min(100.0, 0.9999 * min(epsilon, 300.0) / max(l, k)))),
            method="bounded",
        )
        wanted = min(wanted, found.fun)
    arrays = (np.array([n]), np.array([m]), np.array([low]), high, np.array([b]), epsilon)
    told = likelihood._log_below(*arrays, jax.tree.map(lambda x: x[None], ready))[0, 0]
    assert told == pytest.approx(wanted, rel=5e-3, abs=1e-3)
    assert told < -1.0 or m > 0.4 * n


def prepared(b, n, m, epsilon):
    """The tilts that an epoch is judged by."""
    with jax.enable_x64(True):
        given = jnp.float64(b), jnp.float64(n), jnp.array([m]), jnp.float64(epsilon)
        return jax.tree.map(np.asarray, evidence.choose_tilts(*given))


def test_leading_is_as_unlikely_as_by_hand():
    """Would catch one noise for two, or the exponent of one arm alone."""
    arrays = (np.array([200.0]), np.array([0.0]), np.array([0.3]), 0.7)
    # Without noise and with means p and 1 - p the best tilt is the log odds: 2 log 2 sqrt(p q).
    free = likelihood._log_leads(*arrays, math.inf)[0, 0]
    assert free == pytest.approx(400 * math.log(2 * math.sqrt(0.21)), rel=1e-6)
    numbers = (200.0, 25.0, 0.3, 0.7, 0.5)

    def by_tilt(tilt):
        n, m, low, high, epsilon = numbers
        told = math.log1p(low * math.expm1(tilt)) + math.log1p(high * math.expm1(-tilt))
        return n * told - 2 * m * math.log1p(-((tilt / epsilon) ** 2))

    wanted = scipy.optimize.minimize_scalar(by_tilt, bounds=(0, 0.5), method="bounded").fun
    arrays = (*(np.array([x]) for x in numbers[:3]), *numbers[3:])
    assert likelihood._log_leads(*arrays)[0, 0] == pytest.approx(wanted, rel=1e-6)


def test_the_schedule_is_that_of_the_algorithm():
    """Would catch another S_r or b_r than the algorithm has, by hand."""
    algorithm = fmab_jax.kl_se(2.0, growth=2.5, failure=0.01)
    exchange = algorithm.exchange(4)
    params = algorithm.values(exchange, 1000)
    pulls, needed, _ = likelihood._schedule(algorithm, params, exchange, 3, 1000)
    for r, b in enumerate(needed, 1):
        assert math.exp(-b) == pytest.approx(0.01 / (3 * r * (r + 1)), rel=1e-9)
    # sqrt(32 b_1 / 4) / 2, and then 2.5 times as many each time, rounded up.
    wanted = [math.ceil(math.sqrt(8 * needed[0]) / 2)]
    while wanted[-1] <= 1000:
        wanted.append(math.ceil(2.5 * wanted[-1]))
    assert pulls.tolist() == wanted


def test_two_arms_by_hand():
    """Would catch a part of the sum: pulls, chances to stay, rounds, failures or links."""
    algorithm = fmab_jax.kl_se(1.0, first=20, failure=0.1)
    found = likelihood.likelihood_bounds([0.8, 0.3], algorithm, 5, 1000)
    # S = 20, 40, ..., 320 take at most 640 slots; 640 pulls of two arms have no room.
    assert found.rounds_surely == 5
    assert found.best_arm_lost == pytest.approx(0.1 / 2 * (1 - 1 / 6), rel=1e-12)
    n, m = 100.0 * 2.0 ** np.arange(5), 5.0 * np.arange(1.0, 6.0)
    stays = []
    for r in range(5):
        b = math.log(2 * (r + 1) * (r + 2) / 0.1)
        arrays = (n[r : r + 1], m[r : r + 1], np.array([0.3]), 0.8)
        ready = jax.tree.map(lambda x: x[None], prepared(b, n[r], m[r], 1.0))
        below = math.exp(likelihood._log_below(*arrays, np.array([b]), 1.0, ready)[0, 0])
        stays.append(min(1.0, below + math.exp(likelihood._log_leads(*arrays, 1.0)[0, 0])))
    assert stays[0] > 0.01 > stays[2]
    # Two arms have 500 slots each; the last epoch is cut there.
    upto = [20, 40, 80, 160, 320, 500]
    pulls = 20 + float(np.array(stays) @ np.diff(upto))
    assert found.regret_exploration == pytest.approx(5 * 0.5 * pulls, rel=1e-9)
    assert found.regret_failure == pytest.approx(found.best_arm_lost * 5 * 1000 * 0.5, rel=1e-12)
    assert found.regret == pytest.approx(found.regret_exploration + found.regret_failure)
    rounds = 1 + sum(stays[:4]) + 4 * found.best_arm_lost
    assert found.rounds == pytest.approx(rounds, rel=1e-9)
    assert found.links == {"server": 5 * found.rounds}
    assert found.epsilon_message == 1.0


def test_the_horizon_leaves_room_for_two_arms():
    """Would catch a last epoch that is cut as if all arms were in play, or not cut at all."""
    # Nothing is seen through so much noise: S = 100, 200, 400, of which 300 + 2 x 300 slots fit.
    algorithm = fmab_jax.kl_se(1e-3, first=100)
    found = likelihood.likelihood_bounds([0.6, 0.5, 0.3], algorithm, 5, 1000)
    assert found.rounds == found.rounds_surely == 3
    assert found.regret_exploration == pytest.approx(5 * (0.1 + 0.3) * (100 + 700 / 2), rel=1e-12)


def test_all_agents_wait_for_messages():
    """Would catch the waits of one agent charged for those of all."""
    # In a ring of 6 agents messages take 3 slots, of which the first is the epoch's last.
    algorithm = fmab_jax.kl_se_graph(1.0, graph="ring", first=20)
    found = likelihood.likelihood_bounds([0.8, 0.3], algorithm, 6, 10**5)
    assert found.regret_waiting == pytest.approx(found.rounds * 2 * 6 * 0.5, rel=1e-12)
    assert found.rounds > 1 and found.regret > found.regret_waiting


def test_who_commits_after_more_epochs_than_are_looked_at_may_commit_to_any_arm():
    """Would catch the chance of the last epoch of the table told of a later one."""
    given, horizon = {"growth": 1.001, "first": 100}, 10**6
    short, long = (
        likelihood.likelihood_bounds([0.8, 0.3], fmab_jax.kl_se(1.0, rounds=R, **given), 5, horizon)
        for R in (likelihood._EPOCHS, likelihood._EPOCHS + 88)
    )
    assert (short.rounds_surely, long.rounds_surely) == (512, 600)
    # Of two arms the worse one costs half a reward in each slot that is left.
    assert short.regret_commitment < 1e-6
    assert 0.99 * 5 * 0.5 * horizon < long.regret_commitment < 5 * 0.5 * horizon


def configurations():
    """Returns algorithm, problem and horizon."""
    alike = fmab_jax.Problem(MEANS, agents=8)
    tilt = np.linspace(-1, 1, 8)[:, None] * np.minimum(MEANS, 1 - MEANS)
    kl_se = fmab_jax.kl_se
    return {
        "server": (kl_se(1.0), alike, 10**5),
        "no noise": (kl_se(None), alike, 10**5),
        "much noise": (kl_se(0.05), alike, 10**6),
        "cut": (kl_se(1.0), alike, 300),
        "cut in the first": (kl_se(0.1), alike, 300),
        "secure sum": (kl_se(0.2, secure=True, growth=3.0), alike, 10**5),
        "shared out": (kl_se(0.2, secure=True, split=True), alike, 10**5),
        "shared out, messages": (kl_se(0.2, split=True), alike, 10**5),
        "shared out, budget": (kl_se(1.0, split=True, rounds=4), alike, 3000),
        "partial": (kl_se(1.0, participation=0.3), alike, 10**5),
        "budget": (kl_se(1.0, rounds=3), alike, 3000),
        "differ": (kl_se(1.0, growth=1.3, first=5), fmab_jax.Problem(MEANS + tilt), 10**5),
        "failures": (kl_se(1.0, failure=0.5), alike, 10**4),
    }


@pytest.mark.parametrize("name", quick.only(configurations(), "server", "shared out, messages"))
def test_simulated_regret_stays_below(name):
    """Would catch a bound of regret, rounds or links that runs exceed, or an idle one."""
    algorithm, problem, horizon = configurations()[name]
    means = np.asarray(problem.means).mean(axis=0)
    differ = not problem.homogeneous
    found = likelihood.likelihood_bounds(means, algorithm, 8, horizon, heterogeneous=differ)
    data = fmab_jax.simulate(algorithm, problem, horizon, 400, times=1)
    for bound, values in (
        (found.regret, data.regret.values[:, -1]),
        (found.rounds, data.rounds_made.values),
        (found.links["server"], data.links.sel(meter="server").values[:, -1]),
    ):
        error = values.std(ddof=1) / math.sqrt(len(values))
        assert values.mean() + SIGMAS * error <= bound * (1 + 1e-9) or error == 0
        assert values.mean() <= bound * (1 + 1e-9)
    assert found.regret <= 3 * data.regret.values[:, -1].mean() + found.regret_failure
    assert data.rounds_made.values.max() <= found.rounds_surely
    lost = int(data.best_arm_lost.sum())
    assert scipy.stats.binomtest(lost, 400, found.best_arm_lost, "greater").pvalue > 1e-6


def test_no_promise_where_there_is_none():
    """Would catch a bound for some of agents that differ."""
    scarce = fmab_jax.kl_se(1.0, participation=0.5)
    found = likelihood.likelihood_bounds(MEANS, scarce, 8, 1000, heterogeneous=True)
    assert found.regret == found.regret_failure == pytest.approx(8 * 1000 * 0.85)
    assert found.rounds == found.rounds_surely > 0
    assert found.best_arm_lost == 1.0


def pulling(arms, fresh, agents):
    """Returns how many agents pull each arm in an epoch, pull by pull along the line."""
    part = -(-arms * fresh // agents)
    return [len({(arm * fresh + pull) // part for pull in range(fresh)}) for arm in range(arms)]


@pytest.mark.parametrize("agents", [1, 2, 5, 8, 13])
def test_no_arm_has_more_noises_than_are_counted(agents):
    """Would catch noises of K arms where two are left, a part that is cut by an arm's end on
    either side and counted once, and a bound that no line reaches."""
    reached = 0
    for arms in (2, 3, 7):
        for fresh in range(1, 60):
            # An epoch of all arms, and one of as many pulls in which any number may be left.
            told = likelihood._most_pulling(np.array([fresh, fresh], float), arms, agents)
            most = [max(pulling(left, fresh, agents)) for left in range(2, arms + 1)]
            assert most[-1] <= told[0] and max(most) <= told[1]
            reached += told[1] == max(most)
    assert reached > 20


def test_corners():
    """Would catch one arm, tied arms, one slot, a mean of 0 or 1, or more epochs than the table."""
    algorithm = fmab_jax.kl_se(1.0)
    bounds = likelihood.likelihood_bounds
    one = bounds([0.5], algorithm, 4, 1000)
    assert one.regret == one.rounds == one.best_arm_lost == 0
    tied = bounds([0.5, 0.5, 0.2], algorithm, 4, 10**5)
    assert tied.rounds == tied.rounds_surely > 1 and tied.regret_exploration > 0
    slot = bounds([1.0, 0.0], algorithm, 4, 1)
    assert slot.regret == 2 and slot.rounds == 0
    sure = bounds([1.0, 0.0], fmab_jax.kl_se(None), 4, 10**5)
    assert 0 < sure.regret < 100 and math.isfinite(sure.rounds)
    slow = fmab_jax.kl_se(1.0, growth=1.0001, first=3)
    found = bounds([0.52, 0.5], slow, 4, 10**5)
    assert found.rounds_surely == found.rounds == 49_998
    assert found.regret == pytest.approx(4000, rel=1e-3)
    few = bounds([0.52, 0.5], fmab_jax.kl_se(1.0, growth=1.0001, first=3, rounds=600), 4, 10**5)
    assert few.rounds == 600 and few.regret_commitment > 0.9 * few.regret


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("means", {"means": [0.1, 1.2]}),
        ("algorithm", {"algorithm": fmab_jax.cdp_mab(1.0)}),
        ("agents", {"agents": 0}),
        ("horizon", {"horizon": 2.5}),
        ("heterogeneous", {"heterogeneous": 1}),
    ],
)
def test_refusals(field, changed):
    """Would catch bad input that becomes a number."""
    given = dict(means=[0.5, 0.2], algorithm=fmab_jax.kl_se(1.0), agents=3, horizon=100) | changed
    refuses(f"^{field}=", likelihood.likelihood_bounds, **given)


def lost(seeds, arms, agents, **given):
    """Returns how many runs lose the best of arms that are all but alike, and what is promised."""
    # Nothing tells them apart, so that whoever leaves first is soon the best of two.
    means = np.array([0.5 + 1e-9] + [0.5] * (arms - 1))
    algorithm, horizon = fmab_jax.kl_se(**given), 10**5
    problem = fmab_jax.Problem(means, agents=agents)
    data = fmab_jax.simulate(algorithm, problem, horizon, seeds, times=1)
    found = likelihood.likelihood_bounds(means, algorithm, agents, horizon)
    return int(data.best_arm_lost.sum()), found.best_arm_lost


@pytest.mark.parametrize("failure", [0.3, 0.01])
def test_the_best_arm_is_lost_as_rarely_as_promised(failure):
    """Would catch a third of the level, noises of one agent or of one epoch, and rules by exponents
    without noise: each of them loses it more often at a failure of 0.01."""
    given = {"epsilon": 0.1, "first": 1, "growth": 1.2, "failure": failure}
    times, promised = lost(4000, 2, 4, **given)
    assert promised == pytest.approx(failure / 2, rel=0.1)
    assert scipy.stats.binomtest(times, 4000, promised, "greater").pvalue > 1e-6


@pytest.mark.slow
@pytest.mark.as_users_have_it  # many runs: worth compiling well
@pytest.mark.parametrize("given", [{}, {"secure": True}, {"split": True}, {"participation": 0.5}])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_best_arm_is_lost_as_rarely_as_promised_in_a_million_runs(epsilon, given):
    """Would catch tails that exceed their bounds at small levels."""
    seeds = 10**6
    times, promised = lost(seeds, 3, 8, epsilon=epsilon, first=1, failure=1e-3, **given)
    print(f"epsilon {epsilon} {given}: {times:,} of {seeds:,}, promised {promised:.3g}")
    assert scipy.stats.binomtest(times, seeds, promised, "greater").pvalue > 1e-6
