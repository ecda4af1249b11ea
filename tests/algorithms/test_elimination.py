"""The loop against the slow reference, the exact oracle and its own limits."""

import math
from functools import partial

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
BY_COMPONENTS = partial(fmab.hdp_mab, components="4:path+1:complete", weights="components")
UNEQUAL_PARTS = [nx.path_graph(4), nx.empty_graph(1)]
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
        *(UNEQUAL, 2500, 0.1, BY_COMPONENTS, reference.sinks(UNEQUAL_PARTS, "components"), {}),
    ),
    "secure sum": (ALIKE, 3000, 0.5, fmab.dist_dp_se, None, {}),
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


COMPARED = [name for name in SETTINGS if name != "secure sum"]


# By default a setting of each exchange.
@pytest.mark.parametrize("times", quick.only([1, 10], 1))
@pytest.mark.parametrize(
    "name",
    quick.only(COMPARED, "server, few, private", "flooding, private waits", "sinks, by components"),
)
def test_the_loop_has_the_law_of_the_slow_reference(name, times):
    """Would catch any misreading of the algorithms: schedule, noise, waits, cuts, links, argmax."""
    p = compare_with_reference(name, slow_runs=1500 * times, seeds=20_000 * times)
    assert min(p.values()) > ALPHA, p


def oracle_p_values(seeds):
    p = {}
    for cell in oracle.CELLS:
        exact = oracle.elimination_probabilities(*cell)
        problem = fmab.Problem(cell.means, agents=cell.agents)
        data = fmab.simulate(fmab.cdp_mab(cell.epsilon), problem, cell.horizon, seeds, times=1)
        ended = data.active_arms.values == 1
        for epoch, (stopped, lost) in enumerate(exact, 1):
            here = ended & (data.rounds_made.values == epoch)
            observed = [here.sum(), (here & data.best_arm_lost.values).sum()]
            for what, count, chance in zip(
                ("stops", "loses"), observed, (stopped, lost), strict=True
            ):
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
    """Would catch a special case that is not the limit of the general one."""
    silent = run(fmab.cdp_mab(None))
    assert_same_bits(run(fmab.cdp_mab(math.inf)), silent)
    # The least noise has a leak and a ledger of its own.
    assert_same_bits(run(fmab.cdp_mab(1e100)), silent, ignore=("leak_messages", "ledger"))
    full = run(fmab.cdp_mab(0.5))
    assert_same_bits(run(fmab.cdp_mab(0.5, participation=0.999)), full)
    # Another exchange sends more, and has other meters.
    sent = ("links", "numbers_sent", "ledger", *METERS)
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


def test_kl_se_on_a_complete_graph_is_kl_se():
    """Would catch other noise, or another number of noises, where agents aggregate each other."""
    problem = fmab.Problem(SHARED, agents=5)
    served = run(fmab.kl_se(0.5), problem, seeds=4000)
    heard = run(fmab.kl_se_graph(0.5, graph="complete"), problem, seeds=range(4000, 8000))
    assert same_counts(served.rounds_made.values, heard.rounds_made.values) > ALPHA
    assert same_law(served.regret.values[:, -1], heard.regret.values[:, -1]) > ALPHA


SUMMED = ("server, private", "server, unequal", "flooding", "sinks", "secure sum")


@pytest.mark.parametrize("name", quick.only(SUMMED, "server, private", "secure sum"))
def test_summing_agents_out_changes_no_law(name):
    """Would catch totals over agents drawn with another law than the sum of the agents'."""
    summed = simulated(name, 20_000)
    apart = simulated(name, range(20_000, 40_000), sum_agents=False)
    assert same_counts(summed.rounds_made.values, apart.rounds_made.values) > ALPHA
    for time in summed.time.values:
        first, second = summed.sel(time=time), apart.sel(time=time)
        assert same_law(first.regret.values, second.regret.values) > ALPHA


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
    """Would catch < for <= where an epoch, or a wait, ends at T: a round that is not charged."""
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
    """Would catch a round more than R, or one less, or a choice among all arms."""
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


def test_noise_of_each_epoch_is_averaged_over_those_that_report():
    """Would catch a mean over M where N agents report, or noise that is left out."""
    scale = staticmethod(lambda e: e.number**0.0 / (e.reporting * e.params["epsilon"]))
    problem, owner = fmab.Problem(SHARED, agents=5), altered(fmab.cdp_mab, noise_scale=scale)
    usual = run(FEW(0.03), problem, 4000, 8000)
    stated = run(owner(0.03, participation=0.4), problem, 4000, range(8000, 16_000))
    assert same_counts(usual.rounds_made.values, stated.rounds_made.values) > ALPHA
    assert same_law(usual.regret.values[:, -1], stated.regret.values[:, -1]) > ALPHA
    # Noise decides among arms that nearly tie, after epochs in which agents did not report.
    rules = {"participation": 0.4, "rounds": 3, "schedule_gap": 0.5}
    problem = fmab.Problem([1.0, 0.98, 0.98, 0.98], agents=5)
    usual = run(fmab.cdp_mab(0.03, **rules), problem, 40_000, 8000)
    stated = run(owner(0.03, **rules), problem, 40_000, range(8000, 16_000))
    assert same_counts(usual.chosen_arm.values, stated.chosen_arm.values) > ALPHA


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
    """Would catch one agent's mean for another's, or gaps of an agent's own means."""
    if name not in ("server", "budget"):
        monkeypatch.setattr(configs, "_round_agents", lambda agents: 7)
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
        actual = data[field].values
        expected = np.broadcast_to(series, actual.shape)
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)
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


@pytest.mark.parametrize("decided", [3, 2])
def test_agents_alone_go_by_their_own_means(decided, monkeypatch):
    """Would catch an agent alone with another's means, or with the means of all."""
    monkeypatch.setattr(configs, "_round_agents", lambda agents: 7)
    # Agents that decide lose arm 1, which is the best of all; for the others two arms tie for ever.
    means = np.repeat([[1.0, 0.0, 0, 0], [0, 1.0, 1.0, 0]], (decided, 5 - decided), axis=0)
    means[:decided, 1] = 0.5
    expected = reference.single(np.random.default_rng(1), means, 6000, None)
    times = np.array([50, 1000, *expected.knots[1:]])
    data = run(fmab.single_mab(None), fmab.Problem(means), 6000, times=times)
    series = np.interp(times, expected.knots, expected.regret)
    np.testing.assert_allclose(
        data.regret.values, np.broadcast_to(series, data.regret.shape), rtol=1e-9
    )
    gaps = means.mean(axis=0).max() - means.mean(axis=0)
    lost = sum(agent.best_arm_lost for agent in expected.alone)
    for field, value in (
        *(("rounds_made", expected.rounds), ("chosen_arm", 0 if decided == 3 else -1)),
        *(("active_arms", 2), ("agents_lost", lost), ("numbers_sent", 0)),
        ("agents_worse", decided * (gaps[0] > 0)),
    ):
        np.testing.assert_array_equal(data[field].values, value, field)
    final = np.repeat([gaps[0], gaps[1:3].mean()], (decided, 5 - decided)).mean()
    np.testing.assert_allclose(data.final_gap.values, final, rtol=1e-12)


@pytest.mark.parametrize("make", [fmab.cdp_mab, fmab.hdp_mab])
def test_agents_one_by_one_without_noise_have_the_law_of_their_sum(make):
    """Would catch noise of another shape where rewards have no range, which ends in an error."""
    problem = fmab.Problem.uniform(6, 5, rewards="gaussian:0.2")
    apart = fmab.simulate(make(None), problem, 3000, 400, times=1, sum_agents=False)
    summed = fmab.simulate(make(None), problem, 3000, range(400, 800), times=1)
    actual = scipy.stats.ks_2samp(apart.regret[:, -1], summed.regret[:, -1])
    assert actual.pvalue > 1e-6
