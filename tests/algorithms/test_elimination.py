"""The loop against the slow reference, the exact oracle, its own limits, and generated settings."""

import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import oracle
import protocols
import pytest
import quick
import reference
import scipy.stats
from altered import altered

import fmab_jax as fmab
from fmab_jax import accounts, elimination
from fmab_jax.algorithms.families import alone
from fmab_jax.core import keys, laplace
from fmab_jax.core.curves import Curves
from fmab_jax.core.scope import own_settings
from fmab_jax.core.trials import Outcome
from fmab_jax.draws.base import Round
from fmab_jax.draws.on_report import LastReport
from fmab_jax.run import configs

ALPHA = 1e-6
METERS = ("meter", "side", "priced", "counts")
SHARED = np.array([0.9, 0.7, 0.55, 0.2])
# Five agents whose own best arms differ; the global means are 0.8, 0.62, 0.5 and 0.3.
UNEQUAL = np.array(
    [
        [0.99, 0.40, 0.60, 0.30],
        [0.60, 0.95, 0.40, 0.20],
        [0.95, 0.45, 0.30, 0.60],
        [0.70, 0.50, 0.90, 0.10],
        [0.76, 0.80, 0.30, 0.30],
    ]
)
ALIKE = np.tile(SHARED, (5, 1))
UNEVEN = nx.Graph([(0, 1), (1, 2), (2, 3), (1, 4)])
PARTS = [nx.path_graph(3), nx.complete_graph(2)]
THREE_AND_TWO = "3:path+2:complete"


def gossip_on_a_path(tolerance):
    """Returns what gossip of five agents on a path costs, played message by message."""
    path = {agent: [n for n in (agent - 1, agent + 1) if 0 <= n < 5] for agent in range(5)}
    played = protocols.gossip(path, tolerance)
    pairs = len(played.data) // 2
    return reference.Exchange(5, 5, (0.2,) * 5, played.slots - 1, 0, pairs, pairs)


FEW, SOME = (partial(fmab.cdp_mab, participation=share) for share in (0.4, 0.6))
FLOODING, PATH = (partial(fmab.ddp_mab, graph=graph) for graph in (UNEVEN, "path"))
PRIVATE = partial(FLOODING, private_waiting=True)
ON_A_PATH, ON_A_RING = (partial(fmab.hdp_mab, components=f"5:{each}") for each in ("path", "ring"))
BY_COMPONENTS = partial(fmab.hdp_mab, components=THREE_AND_TWO, weights="components")
GOSSIP = partial(PATH, protocol="gossip", tolerance=0.01)
SERVER, SINKS = reference.server(5), reference.sinks([nx.path_graph(5)])
FLOODED, FLOODED_PATH = (reference.flooding(graph) for graph in (UNEVEN, nx.path_graph(5)))
# name: (means [agent, arm], horizon, epsilon, package's algorithm, reference's exchange, rules)
SETTINGS = {
    "server": (ALIKE, 3000, 0.5, fmab.cdp_mab, SERVER, {}),
    "server, no noise": (ALIKE, 3000, None, fmab.cdp_mab, SERVER, {}),
    "server, private": (ALIKE, 3000, 0.03, fmab.cdp_mab, SERVER, {}),
    "server, budget": (ALIKE, 3000, 0.5, fmab.cdp_mab, SERVER, {"rounds": 2}),
    "server, budget and gap": (
        *(ALIKE, 3000, 0.5, fmab.cdp_mab, SERVER, {"rounds": 3, "schedule_gap": 0.35}),
    ),
    "server, few": (ALIKE, 4000, 0.5, FEW, reference.server(5, 0.4), {}),
    "server, few, private": (ALIKE, 4000, 0.03, FEW, reference.server(5, 0.4), {}),
    "server, few, unequal": (UNEQUAL, 4000, 0.5, SOME, reference.server(5, 0.6), {"rounds": 4}),
    "server, unequal": (UNEQUAL, 3000, 0.2, fmab.cdp_mab, SERVER, {}),
    "flooding": (ALIKE, 3000, 0.2, FLOODING, FLOODED, {}),
    "flooding, unequal": (UNEQUAL, 3000, 0.5, PATH, FLOODED_PATH, {"rounds": 3}),
    "flooding, private waits": (ALIKE, 3000, 0.05, PRIVATE, FLOODED, {}),
    "sinks, unequal, private waits": (
        *(UNEQUAL, 2500, 0.05, partial(ON_A_PATH, private_waiting=True), SINKS, {}),
    ),
    "gossip": (ALIKE, 3000, 0.2, GOSSIP, gossip_on_a_path(0.01), {}),
    "sinks": (ALIKE, 2500, 0.5, ON_A_PATH, SINKS, {}),
    "sinks, unequal": (UNEQUAL, 2500, 0.5, ON_A_RING, reference.sinks([nx.cycle_graph(5)]), {}),
    "sinks, by components": (
        *(UNEQUAL, 2500, 0.1, BY_COMPONENTS, reference.sinks(PARTS, "components"), {}),
    ),
    "single": (ALIKE, 6000, 0.5, fmab.single_mab, None, {}),
    "single, unequal": (UNEQUAL, 6000, 0.5, fmab.single_mab, None, {"rounds": 2}),
}


def same_counts(first, second):
    """Returns the chi-square p-value that two samples of categories have one law."""
    values, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    table = np.array(
        [
            np.bincount(codes[: len(first)], minlength=len(values)),
            np.bincount(codes[len(first) :], minlength=len(values)),
        ]
    )
    # Rare categories are pooled, so that the chi-square law holds.
    rare = table.sum(axis=0) * min(len(first), len(second)) / table.sum() < 5
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return 1.0 if table.shape[1] < 2 else scipy.stats.chi2_contingency(table).pvalue


def same_law(first, second):
    """Returns the smaller p-value of Kolmogorov-Smirnov and of the t-test on the means, doubled."""
    # Equal up to rounding is equal.
    first, second = np.round(first, 6), np.round(second, 6)
    if np.ptp(np.concatenate([first, second])) == 0:
        return 1.0
    ks = scipy.stats.ks_2samp(first, second).pvalue
    return min(1.0, 2 * min(ks, scipy.stats.ttest_ind(first, second, equal_var=False).pvalue))


def simulated(name, seeds, **more):
    means, horizon, epsilon, algorithm, _, rules = SETTINGS[name]
    times = [horizon // 5, horizon // 2, horizon]
    run = algorithm(epsilon, **rules)
    return fmab.simulate(run, fmab.Problem(means), horizon, seeds, times=times, **more)


def simulated_exchange(name):
    means, _, epsilon, algorithm, _, rules = SETTINGS[name]
    return algorithm(epsilon, **rules).exchange(len(means))


def compare_with_reference(name, slow_runs, seeds):
    """Returns a p-value for each statistic of a setting."""
    means, horizon, epsilon, _, setting, rules = SETTINGS[name]
    rng = np.random.default_rng(20240607)
    runs = []
    for _ in range(slow_runs):
        if setting is None:
            runs.append(reference.single(rng, means, horizon, epsilon, **rules))
        else:
            private = "private waits" in name
            more = {"exchange": setting, "private_waiting": private} | rules
            runs.append(reference.run(rng, means, horizon, epsilon, **more))
    data = simulated(name, seeds)

    def slow(field):
        return np.array([getattr(run, field) for run in runs])

    def slow_curve(field, slot):
        return np.array([np.interp(slot, run.knots, getattr(run, field)) for run in runs])

    p = {"rounds": same_counts(slow("rounds"), data.rounds_made.values)}
    for slot in data.time.values:
        fast = data.sel(time=slot)
        p[f"regret({slot})"] = same_law(slow_curve("regret", slot), fast.regret.values)
        waiting = slow_curve("waiting_regret", slot)
        p[f"waiting({slot})"] = same_law(waiting, fast.waiting_regret.values)
        done = np.array([sum(at <= slot for at in run.link_slots) for run in runs])
        if setting is not None:
            links = fast.links.sum("meter")
            each = setting.server_links + setting.peer_links_bound + setting.peer_links_used
            p[f"links({slot})"] = same_counts(done * each, links.values)
    if setting is not None:
        active = np.array([len(run.active) for run in runs])
        p["active"] = same_counts(active, data.active_arms.values)
        p["chosen"] = same_counts(slow("chosen"), data.chosen_arm.values)
        p["lost"] = same_counts(slow("best_arm_lost"), data.best_arm_lost.values)
        reported = np.array([sum(len(each.active) for each in run.history) for run in runs])
        vectors = simulated_exchange(name).vectors
        p["numbers"] = same_counts(reported * vectors, data.numbers_sent.values)
    else:
        lost = np.array([sum(one.best_arm_lost for one in run.alone) for run in runs])
        p["lost"] = same_counts(lost, data.agents_lost.values)
    return p


# By default a setting of each exchange, and of what shapes the sums.
@pytest.mark.parametrize("times", quick.only([1, 10], 1))
@pytest.mark.parametrize(
    "name", quick.only(SETTINGS, "server, private", "flooding", "flooding, private waits")
)
def test_the_loop_has_the_law_of_the_slow_reference(name, times):
    """Would catch any misreading of the algorithms: schedule, noise, waits, cuts, links, argmax."""
    p = compare_with_reference(name, slow_runs=1500 * times, seeds=20_000 * times)
    assert min(p.values()) > ALPHA, p


def test_private_waiting_is_told_where_it_is_on():
    """Would catch a figure that does not say what its agents go by."""
    off, on = (fmab.ddp_mab(1.0, "ring", private_waiting=private) for private in (False, True))
    assert on.settings() == off.settings() | {"private_waiting": "private waiting = yes"}


@pytest.mark.slow
def test_the_comparison_sees_a_small_change():
    """Would catch a comparison too weak to tell one waiting slot or 5 % of epsilon apart."""
    means, horizon, epsilon, *_ = SETTINGS["server, private"]
    others = range(20_000, 40_000)
    exact = simulated("server, private", 20_000)
    louder = fmab.cdp_mab(epsilon * 0.95)
    noisier = fmab.simulate(louder, fmab.Problem(means), horizon, others, times=3)
    assert same_law(exact.regret.values[:, -1], noisier.regret.values[:, -1]) < ALPHA
    means, horizon, epsilon, *_, rules = SETTINGS["flooding, unequal"]
    exact = simulated("flooding, unequal", 20_000)
    shorter = fmab.ddp_mab(epsilon, UNEVEN, **rules)
    waited = fmab.simulate(shorter, fmab.Problem(means), horizon, others, times=3)
    first = exact.waiting_regret.values[:, -1]
    assert same_law(first, waited.waiting_regret.values[:, -1]) < ALPHA


def oracle_p_values(seeds):
    p = {}
    for cell in oracle.CELLS:
        exact = oracle.elimination_probabilities(*cell)
        problem = fmab.Problem(cell.means, agents=cell.agents)
        data = fmab.simulate(fmab.cdp_mab(cell.epsilon), problem, cell.horizon, seeds, times=1)
        ended = data.active_arms.values == 1
        for epoch, (stopped, lost) in enumerate(exact, 1):
            here = ended & (data.rounds_made.values == epoch)
            seen = [here.sum(), (here & data.best_arm_lost.values).sum()]
            for what, count, chance in zip(("stops", "loses"), seen, (stopped, lost), strict=True):
                test = scipy.stats.binomtest(int(count), seeds, min(max(chance, 0.0), 1.0))
                p[f"{cell} {what} in {epoch}"] = test.pvalue
    return p


@pytest.mark.parametrize("seeds", [200_000, pytest.param(10**6, marks=pytest.mark.slow)])
def test_elimination_probabilities_are_the_exact_ones(seeds):
    """Would catch an error in C(r), the noise or the history too small for a sampled reference."""
    p = oracle_p_values(seeds)
    assert min(p.values()) > ALPHA, min(p, key=p.get)


def assert_same_bits(first, second, ignore=()):
    for name in first.variables:
        if name not in ignore:
            np.testing.assert_array_equal(first[name].values, second[name].values, str(name))


def run(algorithm, problem=None, horizon=3000, seeds=4000, times=3):
    # As many seeds and slots as the comparisons above, so that their programs serve again.
    problem = fmab.Problem(UNEQUAL) if problem is None else problem
    return fmab.simulate(algorithm, problem, horizon, seeds, times=times)


def test_limits_are_exact():
    """Would catch a special case that is not the limit of the general one (infinite epsilon, p = 1,
    components of one agent, complete graphs, one component)."""
    silent = run(fmab.cdp_mab(None))
    assert_same_bits(run(fmab.cdp_mab(math.inf)), silent)
    assert_same_bits(run(fmab.cdp_mab(1e100)), silent)
    full = run(fmab.cdp_mab(0.5))
    assert_same_bits(run(fmab.cdp_mab(0.5, participation=0.999)), full)
    # Another exchange sends more, and has other meters.
    sent = ("links", "numbers_sent", *METERS)
    assert_same_bits(run(fmab.hdp_mab(0.5, "1x5")), full, ignore=sent)
    assert_same_bits(run(fmab.ddp_mab(0.5, "complete")), full, ignore=sent)
    assert float(run(fmab.ddp_mab(0.5, "complete")).waiting_regret.sum()) == 0.0
    assert not np.array_equal(full.regret.values, silent.regret.values)


def test_one_agent_alone_is_one_agent_with_a_server():
    """Would catch a baseline that differs from CDP-MAB with M = 1 in anything but its links."""
    problem = fmab.Problem(SHARED, agents=1)
    slots = [4000, 8000, 20_000]
    served = run(fmab.cdp_mab(0.5), problem, 20_000, 20_000, slots)
    alone = run(fmab.single_mab(0.5), problem, 20_000, range(20_000, 40_000), slots)
    for time in (8000, 20_000):
        p = same_law(served.regret.sel(time=time).values, alone.regret.sel(time=time).values)
        assert p > ALPHA
    assert same_counts(served.rounds_made.values, alone.rounds_made.values) > ALPHA


SUMMED = ("server, private", "server, unequal", "flooding", "sinks")


@pytest.mark.parametrize("name", quick.only(SUMMED, "server, private"))
def test_summing_agents_out_changes_no_law(name):
    """Would catch totals over agents drawn with another law than the sum of the agents'."""
    summed = simulated(name, 20_000)
    apart = simulated(name, range(20_000, 40_000), sum_agents=False)
    assert same_counts(summed.rounds_made.values, apart.rounds_made.values) > ALPHA
    for time in summed.time.values:
        first, second = summed.sel(time=time), apart.sel(time=time)
        assert same_law(first.regret.values, second.regret.values) > ALPHA


# Global means of Shi and Shen's (AAAI 2021) setting; an agent's own are these times its weights.
FED1_MEANS = np.array([0.70, 0.71, 0.72, 0.73, 0.74, 0.75, 0.76, 0.765, 0.77, 0.79])
FED1_WEIGHTS = {1: (1.0, 1.0), 5: (4.2, 0.2), 10: (9.1, 0.1)}
# (agents, pulls of a phase): regret with one unit for every link, of an independent run of theirs.
FED1_LOSS = {
    (1, 138): 13_500,
    (5, 138): 13_400,
    (10, 138): 13_600,
    (5, 1): 147_000,
    (5, 10): 25_100,
    (5, 100): 13_900,
    (5, 500): 13_300,
}


def fed1_problem(agents):
    """Every arm's mean is large for one agent and small for the others, N(., 1/4) rewards."""
    large, small = FED1_WEIGHTS[agents]
    owner = np.arange(10) * agents // 10
    weights = np.where(owner == np.arange(agents)[:, None], large, small)
    return fmab.Problem(FED1_MEANS * weights, rewards=fmab.Gaussian(0.5))


@pytest.mark.slow
@pytest.mark.parametrize("setting", FED1_LOSS)
def test_fed1_ucb_has_the_loss_of_an_independent_run(setting):
    """Would catch another radius, local means in place of global ones, or links counted otherwise.

    The numbers are those of 60 runs, whose errors nobody stated: 5 % covers both samples.
    """
    agents, pulls = setting
    data = fmab.simulate(fmab.fed1_ucb(pulls=pulls), fed1_problem(agents), 10**6, 200, times=1)
    loss = data.regret[:, -1] + data.links.sel(meter="server")[:, -1]
    assert float(loss.mean()) == pytest.approx(FED1_LOSS[setting], rel=0.05)


def test_fed1_ucb_needs_the_means_of_all_agents():
    """Would catch agents that follow own means: no agent's own best arm is the best of all."""
    data = fmab.simulate(fmab.fed1_ucb(pulls=500), fed1_problem(5), 10**6, 20, times=1)
    assert (data.chosen_arm == 9).mean() > 0.9 and 0 < data.links[:, -1].values.max() < 1000


def ends_at(arms, agents, wait):
    """Returns a horizon at which the first round ends, its wait included, and its pulls per arm."""
    for horizon in range(100, 500):
        pulls, before = (
            math.ceil(8 * math.log(8 * arms * h) / (agents * 0.25)) for h in (horizon, horizon - 1)
        )
        if pulls == before and arms * pulls + wait == horizon:
            return horizon, pulls
    raise LookupError("no such horizon")


@pytest.mark.parametrize(
    ("algorithm", "wait"), [(fmab.cdp_mab(None), 0), (fmab.ddp_mab(None, UNEVEN), 2)]
)
def test_a_round_that_ends_with_the_horizon_counts(algorithm, wait):
    """Would catch < for <= where an epoch, or a wait, ends at T: a round that is not charged, and
    decides nothing; and one that ends a slot past T and counts.

    Rewards are certain: the first round leaves the best arm alone.
    """
    problem = fmab.Problem(np.tile([1.0, 0.0, 0.0, 0.0], (5, 1)))
    last, pulls = ends_at(4, 5, wait)
    for horizon, completed in ((last, 1), (last - 1, 0)):
        # As many seeds as the comparisons with the reference, whose program serves again.
        data = fmab.simulate(algorithm, problem, horizon, 20_000, times=3)
        explored = 5 * 0.75 * min(horizon, 4 * pulls)
        for name, expected in (
            ("rounds_made", completed),
            ("chosen_arm", completed - 1),
            ("active_arms", 1 if completed else 4),
            ("final_gap", 0.0 if completed else 0.75),
            ("agents_worse", 0),
            ("numbers_sent", 4 * completed * algorithm.exchange(5).vectors),
        ):
            np.testing.assert_array_equal(data[name].values, expected, name)
        np.testing.assert_allclose(data.regret.values[:, -1], explored, rtol=1e-12)
        for meter, each in algorithm.exchange(5).links:
            series = data.links.sel(meter=meter.name).values
            np.testing.assert_array_equal(series[:, -1], completed * each)
            np.testing.assert_array_equal(series[:, :-1], 0)


def test_a_budget_that_is_spent_decides_for_the_first_of_the_best():
    """Would catch a round more than R, or one less, a choice among all arms, ties that go to the
    last arm, or agents that are said to explore on.

    One round, for a gap of 1: S_1 = ceil(8 log(8 x 4 x 3000) / 5) = 19, and arms 1 and 2 tie.
    """
    problem = fmab.Problem(np.tile([0.0, 1.0, 1.0, 0.0], (5, 1)))
    for budget, pulls in ((1, 19), (2, 20)):
        algorithm = fmab.cdp_mab(None, rounds=budget, schedule_gap=1.0)
        data = fmab.simulate(algorithm, problem, 3000, 20_000, times=3)
        assert math.ceil(8 * math.log(8 * 4 * 3000) / 5) == 19
        slots = 4 * 19 + 2 * (pulls - 19)
        assert slots < 1000
        for name, expected in (("rounds_made", budget), ("chosen_arm", 1), ("active_arms", 2)):
            np.testing.assert_array_equal(data[name].values, expected, name)
        np.testing.assert_allclose(data.regret.values, 5 * 0.5 * 4 * 19, rtol=1e-12)
        np.testing.assert_array_equal(data.numbers_sent.values, 5 * (4 + 2 * (budget - 1)))


SIX = fmab.Problem.uniform(6, 7)


def bound(algorithm, problem=SIX, horizon=900, **more):
    """Returns the trial of a configuration, with arrays."""
    with own_settings():
        return jax.tree.map(
            jnp.asarray, configs.bind(algorithm, problem, horizon, times=2, **more).trial
        )


def state_of(trial, **known):
    """Returns a run between two epochs of which this is known; in 64 bits."""
    gaps, grid = jnp.zeros(7), jnp.zeros(2, jnp.int64)
    state = accounts.start_run(trial, gaps, grid, jnp.float64(1.0))
    values = {name: jnp.asarray(x, getattr(state, name).dtype) for name, x in known.items()}
    return state._replace(**values)


def test_an_epoch_is_planned_from_what_is_known():
    """Would catch an epoch that has S for n, a number that is one behind, N for M, no pull at all,
    or a length that is not cut."""
    seen, key = [], jax.random.key(0)

    def asked(wanted, slot, horizon):
        pulls = staticmethod(lambda e: seen.append(e) or jnp.full_like(e.number, wanted))
        algorithm = altered(fmab.cdp_mab, pulls_per_arm=pulls)(0.5, participation=0.8)
        trial = bound(algorithm, horizon=horizon)
        with own_settings():
            state = state_of(trial, number=2, active=4, pulls=30, slot=slot)
            return elimination.plan_epoch(trial, state, key, trial.horizon)

    for wanted, pulls in ((80.0, 80), (12.0, 31), (30.0, 31), (1e9, 931)):
        plan = asked(wanted, 0, 900)
        plain = {k: float(v) for k, v in plan.epoch._asdict().items() if k != "params"}
        assert plain == {
            **{"number": 3, "active": 4, "arms": 7, "agents": 6, "reporting": 5, "horizon": 900},
            **{"previous": 30, "pulls": pulls, "fresh": pulls - 30},
        }
        assert float(plan.epoch.params["epsilon"]) == 0.5 and float(seen[-1].pulls) == 30
        assert (int(plan.round.number), float(plan.round.scale)) == (3, 1 / (5 * 0.5))
        for late, fits in ((0, True), (-1, False)):
            horizon = 10 + 4 * (pulls - 30) + late
            if horizon > 900:
                continue
            cut = asked(wanted, 10, horizon)
            assert (bool(cut.fits), int(cut.end)) == (fits, horizon)
            # Nothing is uploaded of an epoch that does not end.
            assert float(cut.round.fresh) == (pulls - 30) * fits


@pytest.mark.parametrize(
    ("active", "done", "lost", "gap", "chosen", "worse", "final"),
    [
        (1, 3, False, 0.0, 2, 0, 0.0),
        (1, 3, True, 0.25, 2, 6, 0.25),
        # Exploring: nobody plays an arm, what is played costs the mean of the active gaps.
        (3, 3, False, 0.25, -1, 0, 0.125),
        (3, 3, True, 0.25, -1, 0, 0.125),
        # The budget of 4 rounds is spent.
        (3, 4, False, 0.25, 2, 6, 0.25),
        (3, 5, False, 0.0, 2, 0, 0.0),
    ],
)
def test_an_outcome_tells_what_was_decided(active, done, lost, gap, chosen, worse, final):
    """Would catch an arm said to be played while agents explore, a budget spent a round late, lost
    agents counted as one, or the regret of another arm from the last epoch on."""
    trial = bound(fmab.cdp_mab(0.5, rounds=4))
    known = dict(slot=60, regret=7.0, gaps=0.125 * active, active=active, best_arm=2)
    known |= dict(rounds=done, arms_reported=9, best_eliminated=lost, number=done, pulls=40.0)
    gaps = np.array([1.0, 1, gap, 1, 1, 1, 1])
    with own_settings():
        grid, curve = jnp.array([50, 70, 90]), jnp.array([1.0, 2.0, 3.0])
        curves = Curves(curve, None, jnp.array([1, 2, 3], jnp.int32))
        found, unknown = (
            accounts.finish_run(
                trial, jnp.asarray(gaps), grid, state_of(trial, **known | {"pulls": pulls}), curves
            )
            for pulls in (40.0, math.nan)
        )
    assert found.regret.tolist() == [1.0, 7 + 6 * gap * 10, 7 + 6 * gap * 30]
    assert (int(found.chosen_arm), int(found.agents_worse)) == (chosen, worse)
    assert (float(found.final_gap), int(found.agents_lost)) == (final, 6 * lost)
    told = int(found.rounds), int(found.arms_reported), int(found.active_arms)
    assert told == (done, 9, active) and found.rounds_by.tolist() == [1, 2, 3]
    assert found.waiting_regret is None and np.isnan(unknown.regret).all()


@pytest.mark.parametrize(
    ("chosen", "most"), [([0, 2, 2, -1, -1], 2), ([0, 2, -1, -1, -1], -1), ([3, 1, 1, 3, -1], 1)]
)
def test_agents_alone_are_counted_without_what_fills_the_array(chosen, most):
    """Would catch rows beyond the agents that are averaged, added, counted or heard; the gap of
    what is played is a mean over 5 agents, not over 7 rows."""
    junk = [1000, 1000]

    def rows(*values, dtype=jnp.int32):
        return jnp.asarray(np.array([*values, *junk]), dtype)

    with jax.enable_x64(True):
        real = jnp.float64
        gaps = rows(0.5, 0.25, 0, 0, 1, dtype=real)
        each = Outcome(
            regret=jnp.stack([rows(1, 2, 3, 4, 5, dtype=real), gaps], axis=1),
            waiting_regret=None,
            rounds_by=jnp.stack([rows(0, 1, 0, 0, 1), rows(4, 2, 3, 1, 1)], axis=1),
            rounds=rows(4, 2, 3, 1, 1),
            arms_reported=rows(9, 11, 2, 2, 2, dtype=jnp.int64),
            active_arms=rows(1, 3, 1, 2, 1),
            chosen_arm=jnp.asarray(np.array([*chosen, 3, 3]), jnp.int32),
            agents_lost=rows(1, 0, 0, 1, 0),
            agents_worse=rows(1, 1, 0, 0, 1),
            final_gap=gaps,
        )
        found = alone.together(each, 4, 7, jnp.float64(5.0))
    plain = {k: np.asarray(v).tolist() for k, v in found._asdict().items() if v is not None}
    assert plain == {
        **{"regret": [15.0, 1.75], "rounds_by": [1, 4], "rounds": 4, "arms_reported": 11},
        **{"active_arms": 3, "chosen_arm": most, "agents_lost": 2, "agents_worse": 3},
        "final_gap": 0.35,
    }


FIVE, REAL, FIFTHS = fmab.Problem.uniform(5, 4), [True] * 5 + [False] * 2, [0.2] * 5 + [0.0] * 2
SPREAD = fmab.Problem.heterogeneous(5, 4)
# Its noise is of another scale in each epoch.
LastScale = altered(fmab.cdp_mab, noise_scale=staticmethod(lambda e: e.number / e.own["epsilon"]))
# name: (algorithm, problem, more of `bind`, way of drawing, what it has; "noises" for variables of
# whose sum each row of noise has the law)
ROWS = {
    "server": (fmab.cdp_mab(0.5), FIVE, {}, "AgentSum", {"noises": [5]}),
    "server, differ": (
        *(fmab.cdp_mab(0.5), SPREAD, {}, "Groups"),
        {"noises": [5], "sizes": [5], "weights": [], "first": [0], "heterogeneous": True},
    ),
    "server, apart": (
        *(fmab.cdp_mab(0.5), FIVE, {"sum_agents": False}, "ByAgent"),
        {
            "real": REAL,
            "weights": FIFTHS,
            "noises": None,
            "partial_participation": False,
            "noise_in_rewards": False,
        },
    ),
    "server, few": (fmab.cdp_mab(0.5, participation=0.4), FIVE, {}, "OnReport", {"real": REAL}),
    "server, few, other noise": (
        *(LastScale(0.5, participation=0.4), FIVE, {}, "ByAgent"),
        {
            "real": REAL,
            "weights": [],
            "noises": None,
            "partial_participation": True,
            "noise_in_rewards": True,
        },
    ),
    "flooding": (
        *(fmab.ddp_mab(0.5, "ring"), FIVE, {}, "ByAgent"),
        {
            "real": REAL,
            "weights": [],
            "noises": [5],
            "partial_participation": False,
            "noise_in_rewards": False,
        },
    ),
    "private waits": (
        *(fmab.ddp_mab(0.5, "ring", private_waiting=True), FIVE, {}, "ByAgent"),
        {
            "real": REAL,
            "weights": FIFTHS,
            "noises": None,
            "partial_participation": False,
            "noise_in_rewards": True,
        },
    ),
    "components": (
        *(fmab.hdp_mab(0.5, THREE_AND_TWO, weights="components"), FIVE, {}, "Groups"),
        {"noises": [3, 2], "sizes": [3, 2], "weights": [1 / 6, 1 / 4], "first": [0, 3]},
    ),
    "components, wait": (
        *(fmab.hdp_mab(0.5, "4:path+1", weights="components"), FIVE, {}, "ByAgent"),
        {"noises": [4, 1], "weights": [1 / 8] * 4 + [1 / 2, 0, 0], "noise_weights": [1 / 8, 1 / 2]},
    ),
    "alone": (fmab.single_mab(0.5), FIVE, {}, "AgentSum", {"noises": None, "agents": 1.0}),
    "securely": (fmab.dist_dp_se(0.5), FIVE, {}, "AgentSum", {"noises": [1]}),
    "securely, apart": (
        *(fmab.dist_dp_se(0.5), FIVE, {"sum_agents": False}, "ByAgent"),
        {"real": REAL, "weights": [], "noises": [1], "noise_in_rewards": False},
    ),
    "shared out": (fmab.kl_se(0.5, split=True), FIVE, {}, "SplitArms", {"noises": range(5)}),
    "shared out, securely": (
        *(fmab.kl_se(0.5, split=True, secure=True), FIVE, {}, "SplitArms", {"noises": [1]}),
    ),
    "no noise": (fmab.fed1_ucb(), FIVE, {}, "AgentSum", {"noisy": False}),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_rewards_and_noise_are_of_the_agents_that_they_add_up(name):
    """Would catch agents drawn as one where each acts by itself, a noise for each agent where a
    secure sum has one, weights of another component, or padding that counts as an agent."""
    algorithm, problem, more, way, wanted = ROWS[name]
    exchange = algorithm.exchange(5)
    trial = algorithm.bind(problem, 100, exchange=exchange, room=7, **more)
    assert type(trial.draws).__name__ == way
    noises = wanted.get("noises")
    shapes = getattr(trial.draws, "shape" if way == "AgentSum" else "shapes", None)
    if noises is None:
        assert shapes is None or name == "no noise"
    else:
        by_hand = np.concatenate([laplace.laplace_sum_shape(count) for count in noises])
        np.testing.assert_array_equal(np.ravel(shapes.values), by_hand)
    for field, value in {"noisy": True, "agents": 5.0, **wanted}.items():
        if field != "noises":
            found = np.asarray(getattr(trial.draws, field)).tolist()
            assert found == pytest.approx(value, rel=1e-12), field
    told = float(trial.agents), float(trial.reporting), int(trial.wait), int(trial.horizon)
    assert told == (5.0, exchange.reporting, exchange.wait, 100)
    assert trial.padded_agents == (7 if name == "alone" else 0)


def test_aggregates_are_weighted_sums_of_rewards_and_noise():
    """Would catch weights of the other rows, noise left out or counted twice, or a mean over M
    where N agents report."""
    # [arm, agent], and [arm, agent] or [arm, group].
    rewards, noise = np.array([[6.0, 8, 2], [3, 1, 5]]), np.array([[0.5, 1, 0], [-1, 2, 4]])
    weights = np.array([0.5, 0.25, 0.125])
    none, uniform = np.empty(0), bound(fmab.ddp_mab(0.5, "path"), fmab.Problem.uniform(3, 2)).draws
    apart = replace(uniform, weights=weights, noise_weights=weights)
    own = replace(apart, noise_weights=none, shapes=None)
    kinds = {
        "uniform": (uniform, noise[:, :1], [(16 + 0.5) / 3, (9 - 1) / 3]),
        "own": (own, noise, [3.25 + 2.25 + 0.25, 1 + 0.75 + 1.125]),
        "apart": (apart, noise, [3.25 + 2.25 + 0.25, 1 + 0.75 + 1.125]),
        "groups": (
            *(replace(apart, noise_weights=weights[:2]), noise[:, :2]),
            [3 + 2 + 0.25 + 0.25 + 0.25, 1.5 + 0.25 + 0.625 - 0.5 + 0.5],
        ),
        "merged": (replace(own, noise_in_rewards=True), None, [3 + 2 + 0.25, 1.5 + 0.25 + 0.625]),
    }
    for name, (draws, noises, expected) in kinds.items():
        with own_settings():
            sums = {"rewards": jnp.asarray(rewards)}
            sums |= {} if noises is None else {"noise": jnp.asarray(noises)}
            found = draws.sum_agents(sums, Round(*[None] * 7))
        assert found.tolist() == pytest.approx(expected, rel=1e-15), name
    # Of three agents and a row of padding, two report: a mean over these two.
    padded = np.concatenate([rewards, [[1e9], [1e9]]], axis=1)
    pairs = [((rewards[:, i] + rewards[:, j]) / 2).tolist() for i, j in ((0, 1), (0, 2), (1, 2))]
    algorithm = LastScale(0.5, participation=0.5)
    some = bound(algorithm, fmab.Problem.uniform(3, 2), room=4).draws
    with own_settings():

        @jax.jit
        def one(some, number):
            reports, _ = some.update_memory((), jax.random.key(3), Round(number, *[None] * 6))
            now = Round(*[None] * 7, reports=reports)
            return some.sum_agents({"rewards": jnp.asarray(padded)}, now)

        seen = [one(some, jnp.int32(number)).tolist() for number in range(40)]
    assert all(each in pairs for each in seen) and all(each in seen for each in pairs)


@pytest.mark.parametrize("remembers", [True, False])
def test_noises_are_those_of_the_aggregate_where_arms_are_shared_out(remembers):
    """Would catch noise of earlier epochs counted where an aggregate is over the last one alone."""
    draws = bound(fmab.kl_se(0.5, split=True), fmab.Problem.uniform(3, 2)).draws
    draws = replace(draws, remembers=remembers)
    with own_settings():

        @jax.jit
        def counts(draws):
            zero = jnp.zeros(2)
            arms = {"arm": jnp.arange(2, dtype=jnp.uint32), "alive": zero == 0.0}
            arms |= {"rank": jnp.arange(2), "parameters": (zero + 0.5,)}
            arms |= {name: zero for name in draws.sums}
            found = []
            for number, pulls in ((1, 9.0), (2, 18.0)):
                slots = draws.count_slots(jnp.float64(2.0), jnp.float64(9.0))
                words = keys.stream_key(jax.random.key(0), jnp.int32(number), keys.NOISE)
                given = (jnp.int32(number), jnp.float64(pulls), jnp.float64(9.0), slots)
                now = Round(*given, words, words, jnp.float64(1.0))
                sums, _ = draws.aggregate(arms, now)
                arms = {**arms, **sums}
                found.append(draws.count_terms(arms, jnp.float64(number), now)[1])
            return jnp.stack(found)

        first, second = counts(draws).tolist()
    # Six slots of three agents for 18 pulls: one agent pulls both arms.
    assert first == [2.0, 2.0]
    assert second == ([4.0, 4.0] if remembers else first)


@pytest.mark.parametrize("remembers", [True, False])
def test_what_is_new_from_an_agent_is_all_since_it_was_heard(remembers):
    """Would catch an agent that reports the last epoch alone, or a report of it sent twice."""
    draws = bound(fmab.cdp_mab(0.5, participation=0.5), fmab.Problem.uniform(3, 2), room=4).draws
    draws = replace(draws, remembers=remembers)
    seen = set()
    with own_settings():
        before = LastReport(jnp.array([0.0, 30.0, 10.0, 0.0]), jnp.array([0, 3, 2, 0], jnp.int32))
        now = Round(jnp.int32(4), jnp.float64(70.0), jnp.float64(40.0), *[None] * 4)
        remember = jax.jit(lambda draws, *given: draws.update_memory(*given))
        for number in range(20):
            reports, after = remember(draws, before, jax.random.key(number), now)
            agents, pulls, epochs = (x.values[0, :2].tolist() for x in reports)
            seen.add(tuple(agents))
            assert pulls == [[70.0, 40.0, 60.0][x] if remembers else 40.0 for x in agents]
            assert epochs == [[4, 1, 2][x] if remembers else 1 for x in agents]
            assert [after.pulls[x] for x in agents] == [70.0] * 2
            assert [after.epoch[x] for x in agents] == [4] * 2
            (silent,) = {0, 1, 2} - set(agents)
            assert after.pulls[silent] == before.pulls[silent]
            assert after.epoch[silent] == before.epoch[silent]
    assert seen == {(0, 1), (0, 2), (1, 2)}


# Every pull of an agent gives its mean. Arm 0 is the best arm of all but agent 4.
SURE = np.array([[1.0, 1.0, 0.0, 0.0]] * 4 + [[0.0, 1.0, 0.0, 0.0]])
# name: (algorithm, the reference's exchange, its rules, horizon)
SURE_SETTINGS = {
    "server": (fmab.cdp_mab(None), reference.server(5), {}, 1000),
    "budget": (fmab.cdp_mab(None, rounds=1), reference.server(5), {"rounds": 1}, 1000),
    "star": (fmab.ddp_mab(None, nx.star_graph(4)), reference.flooding(nx.star_graph(4)), {}, 1000),
    # The first epoch ends at 228, and the wait would take three slots.
    "path, cut": (fmab.ddp_mab(None, "path"), reference.flooding(nx.path_graph(5)), {}, 230),
    "components": (
        *(fmab.hdp_mab(None, THREE_AND_TWO, weights="components"),),
        *(reference.sinks(PARTS, "components"), {}, 1000),
    ),
}


@pytest.mark.parametrize("name", SURE_SETTINGS)
def test_certain_rewards_of_agents_that_differ_give_the_run_of_the_reference(name, monkeypatch):
    """Would catch one agent's mean for another's, gaps of an agent's own means, weights of the
    other component, a wait on the arm that is best for all, or one that is not cut at T, padding
    that waits or is heard, and links that are charged before messages have arrived."""
    if name not in ("server", "budget"):
        monkeypatch.setattr(configs, "_snug", lambda agents: 7)
    algorithm, exchange_, rules, horizon = SURE_SETTINGS[name]
    wanted = reference.run(
        *(np.random.default_rng(1), SURE, horizon, None), exchange=exchange_, **rules
    )
    assert name != "path, cut" or (wanted.rounds == 0 and wanted.knots.tolist() == [0, 228, 230])
    assert ("star" in name or "cut" in name) == (wanted.waiting_regret[-1] > 0)
    times = np.unique([50, *wanted.knots[1:], horizon])
    data = run(algorithm, fmab.Problem(SURE), horizon, times=times)
    for field in ("regret", "waiting_regret"):
        series = np.interp(times, wanted.knots, getattr(wanted, field))
        found = data[field].values
        expected = np.broadcast_to(series, found.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    done = np.array([sum(at <= slot for at in wanted.link_slots) for slot in times])
    each = exchange_.server_links + exchange_.peer_links_bound + exchange_.peer_links_used
    links = data.links.sum("meter").values
    np.testing.assert_array_equal(links, np.broadcast_to(done * each, links.shape))
    for field, value in (
        ("rounds_made", wanted.rounds),
        ("chosen_arm", wanted.chosen),
        ("active_arms", len(wanted.active)),
        ("best_arm_lost", wanted.best_arm_lost),
    ):
        np.testing.assert_array_equal(data[field].values, value, field)


def test_agents_alone_go_by_their_own_means(monkeypatch):
    """Would catch an agent alone with another's means, with the means of all, or regret that is
    counted by its own gaps: two of five agents end with an arm that is best for them alone."""
    monkeypatch.setattr(configs, "_snug", lambda agents: 7)
    means = np.repeat([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], (3, 2), axis=0)
    wanted = reference.single(np.random.default_rng(1), means, 6000, None)
    times = np.array([50, 1000, *wanted.knots[1:]])
    data = run(fmab.single_mab(None), fmab.Problem(means), 6000, times=times)
    series = np.interp(times, wanted.knots, wanted.regret)
    found = data.regret.values
    np.testing.assert_allclose(found, np.broadcast_to(series, found.shape), rtol=1e-9)
    for field, value in (
        *(("rounds_made", wanted.rounds), ("chosen_arm", 0), ("active_arms", 1)),
        *(("agents_lost", 2), ("agents_worse", 2), ("numbers_sent", 0)),
    ):
        np.testing.assert_array_equal(data[field].values, value, field)
    np.testing.assert_allclose(data.final_gap.values, 2 * 0.2 / 5, rtol=1e-12)


@pytest.mark.slow
def test_private_waits_go_by_the_noise_that_is_sent():
    """Would catch waits that stay un-noised, and a parameter that changes what it should not.

    Nobody waits on a complete graph; without noise there is nothing to go by but rewards.
    """
    means, horizon, epsilon, *_ = SETTINGS["flooding, private waits"]
    problem = fmab.Problem(means)

    def waited(noise, graph, private, seeds=4000, **more):
        algorithm = fmab.ddp_mab(noise, graph, private_waiting=private)
        return fmab.simulate(algorithm, problem, horizon, seeds, times=3, **more)

    bare, noisy = (waited(epsilon, UNEVEN, private) for private in (False, True))
    assert float(noisy.waiting_regret[:, -1].mean()) > 1.1 * float(
        bare.waiting_regret[:, -1].mean()
    )
    p = same_law(noisy.waiting_regret.values[:, -1], bare.waiting_regret.values[:, -1])
    assert p < ALPHA
    alone = waited(epsilon, UNEVEN, True, sum_agents=False)
    assert alone.regret.identical(noisy.regret)
    for noise, graph in ((None, UNEVEN), (epsilon, "complete")):
        first, second = (waited(noise, graph, private, 64) for private in (False, True))
        assert np.allclose(first.regret, second.regret, rtol=1e-12)
        assert np.array_equal(first.waiting_regret, second.waiting_regret)


@pytest.mark.slow
def test_agents_alone_that_lose_the_best_arm_are_all_counted():
    """Would catch the agents that lost the best arm counted as one, or as their largest number."""
    # Agents 1, 3 and 4 have another best arm of their own than the global one.
    data = run(fmab.single_mab(None), horizon=10**7, seeds=200)
    np.testing.assert_array_equal(data.agents_lost.values, 3)
    np.testing.assert_array_equal(data.chosen_arm.values, 0)
    np.testing.assert_allclose(data.final_gap.values, np.mean([0, 0.18, 0, 0.3, 0.18]), rtol=1e-12)
    np.testing.assert_array_equal(data.agents_worse.values, 3)


@pytest.mark.slow
def test_agents_that_explore_play_no_worse_arm():
    """Would catch seeds said to play a worse arm because some agent still explores."""
    problem = fmab.Problem([0.9, 0.6, 0.1], agents=5)
    data = fmab.simulate(fmab.single_mab(None), problem, horizon=1500, seeds=200)
    mixed = (data.chosen_arm == 0) & (data.final_gap > 0)
    assert int(mixed.sum()) > 10
    # Whoever kept the best arm, and has one arm left, plays the best one.
    assert int(data.agents_lost.sum()) == 0 and not data.worse_arm_played.any()


@pytest.mark.slow
def test_what_is_played_at_the_horizon_costs_its_gap():
    """Would catch a final gap of another arm than the one that is played, or in other units."""
    times = [9_999, 10_000]
    for algorithm in (fmab.cdp_mab(0.5, rounds=2, schedule_gap=0.9), fmab.cdp_mab(0.5)):
        data = run(algorithm, horizon=10_000, times=times)
        rate = np.diff(data.regret.values, axis=1)[:, 0]
        np.testing.assert_allclose(rate, 5 * data.final_gap.values, atol=1e-6)
    # A budget that is spent at once leaves a worse arm in some seeds, and the table counts them.
    hasty = run(fmab.cdp_mab(0.03, rounds=1, schedule_gap=1.0), horizon=10_000, times=times)
    rate = np.diff(hasty.regret.values, axis=1)[:, 0]
    np.testing.assert_allclose(rate, 5 * hasty.final_gap.values, atol=1e-6)
    assert 0 < int(hasty.worse_arm_played.sum()) < hasty.sizes["seed"]
    np.testing.assert_array_equal(hasty.worse_arm_played.values, rate > 1e-6)


def test_certain_rewards_give_the_run_computed_by_hand():
    """Would catch a schedule, a regret rate or a link charge that is off by a slot or a factor."""
    sure = run(fmab.cdp_mab(None), fmab.Problem([1.0, 0.0, 0.0], agents=4), 1000, 5, times=1000)
    # S_1 = ceil(8 log(8 x 3 x 1000) / (4 / 4)) = 81 pulls; 2 C(1) = 0.25 < 1 ends it.
    pulls = math.ceil(8 * math.log(8 * 3 * 1000) / (4 * 0.25))
    slots = np.arange(1, 1001)
    expected = 4 * (2 / 3) * np.minimum(slots, 3 * pulls)
    np.testing.assert_allclose(sure.regret.values, np.tile(expected, (5, 1)), rtol=1e-12)
    links = sure.links.sel(meter="server").values[0]
    np.testing.assert_array_equal(links, 4 * (slots >= 3 * pulls))


# Algorithms whose shapes repeat, so that hundreds of settings need six compilations.
def generated(rng):
    agents, arms = 6, 5
    epsilon = None if rng.random() < 0.15 else float(10 ** rng.uniform(-2, 1))
    rules = {"rounds": None if rng.random() < 0.5 else int(rng.integers(1, 8))}
    if rng.random() < 0.3:
        rules["schedule_gap"] = float(rng.uniform(0.02, 1.0))
    kind = rng.integers(4)
    if kind == 0:
        share = float(rng.choice([0.1, 0.34, 0.5, 0.8, 1.0]))
        algorithm = fmab.cdp_mab(epsilon, participation=share, **rules)
    elif kind == 1:
        graph = str(rng.choice(["random", "path", "star", "ring", "grid"]))
        algorithm = fmab.ddp_mab(epsilon, graph, **rules)
    elif kind == 2:
        spec = str(rng.choice(["6:path", "3x2:path", "2x3", "5:star+1", "6:ring"]))
        algorithm = fmab.hdp_mab(epsilon, spec, **rules)
    else:
        algorithm = fmab.single_mab(epsilon, **rules)
    if rng.random() < 0.5:
        problem = fmab.Problem.uniform(agents, arms)
    else:
        problem = fmab.Problem.heterogeneous(agents, arms, float(rng.uniform(0.1, 1)))
    horizon = int(10 ** rng.uniform(0, 6))
    return algorithm, problem, horizon


def rules_of(algorithm):
    return algorithm.rounds is not None


@pytest.mark.slow
def test_invariants_hold_in_many_settings():
    """Would catch negative or decreasing regret, links that no round explains, lost time, arms that
    come back, budgets overspent, and choices without a decision."""
    rng = np.random.default_rng(7)
    seen = set()
    for number in range(520):
        algorithm, problem, horizon = generated(rng)
        first = int(rng.integers(2**31))
        data = fmab.simulate(
            algorithm, problem, horizon, range(first, first + 32), times=[0, horizon], batch=32
        )
        note = (number, algorithm, horizon)
        regret, waiting = data.regret.values, data.waiting_regret.values
        agents, slots = problem.agents, horizon
        assert np.isfinite(regret).all() and (regret[:, 0] == 0).all(), note
        assert (np.diff(regret, axis=1) >= -1e-9).all(), note
        assert (regret[:, -1] <= agents * slots + 1e-6).all(), note
        assert (waiting >= 0).all() and (waiting <= regret + 1e-6).all(), note
        rounds, budget = data.rounds_made.values, algorithm.rounds or math.inf
        assert (rounds >= 0).all() and (rounds <= budget).all(), note
        table = algorithm.exchange(agents)
        for meter, each in table.links:
            series = data.links.sel(meter=meter.name).values
            np.testing.assert_array_equal(series[:, -1], rounds * each, str(note))
        assert data.sizes["meter"] == {"single": 0, "cdp": 1, "ddp": 2, "hdp": 3}[algorithm.name]
        active, arm = data.active_arms.values, data.chosen_arm.values
        assert ((active >= 1) & (active <= problem.arms)).all(), note
        if algorithm.name != "single":
            decided = (active == 1) | (rounds == budget)
            np.testing.assert_array_equal(arm >= 0, decided, str(note))
            # Waiting costs at most rounds + 1 waits of the worst arm.
            waited = (rounds + 1) * table.wait * agents
            assert (waiting[:, -1] <= waited + 1e-9).all(), note
            lost = data.agents_lost.values
            assert set(np.unique(lost)) <= {0, agents}, note
            # The only arm left, where no best arm was lost, is a best one.
            good = (active == 1) & (lost == 0)
            final = data.final_gap.values
            assert (final[good] == 0).all(), note
            # A set that lost every best arm plays a worse one, once it has decided.
            assert (final[decided & (lost > 0)] > 0).all(), note
            worse = data.agents_worse.values
            np.testing.assert_array_equal(worse, agents * (decided & (final > 0)), str(note))
        np.testing.assert_array_equal(data.worse_arm_played, data.agents_worse > 0, str(note))
        assert (data.agents_worse <= agents).all(), note
        seen.add((algorithm.name, problem.homogeneous, rules_of(algorithm)))
    assert len(seen) >= 14


@pytest.mark.parametrize("make", [fmab.cdp_mab, fmab.hdp_mab])
def test_agents_one_by_one_without_noise_have_the_law_of_their_sum(make):
    """Would catch noise of another shape where rewards have no range, which ends in an error."""
    problem = fmab.Problem.uniform(6, 5, rewards="gaussian:0.2")
    apart = fmab.simulate(make(None), problem, 3000, 400, times=1, sum_agents=False)
    summed = fmab.simulate(make(None), problem, 3000, range(400, 800), times=1)
    found = scipy.stats.ks_2samp(apart.regret[:, -1], summed.regret[:, -1])
    assert found.pvalue > 1e-6
