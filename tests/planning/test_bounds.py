"""What theorems and structure say of single candidates, before they run."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

import fmab_jax as fmab
from fmab_jax.parts.exchanges import server
from fmab_jax.planning import bounds, least, theorem5
from fmab_jax.planning.bounds import bound_tail
from fmab_jax.planning.candidates import list_candidates
from fmab_jax.planning.least import count_first_pulls, draw_gaps, find_least_regret
from fmab_jax.planning.question import Question
from fmab_jax.run.configs import bind

T = 10**4
DRAWN = fmab.Problem.uniform(agents=5, arms=5)
FIXED = fmab.Problem([0.8, 0.6, 0.5, 0.3, 0.1], agents=5)
DIFFERENT = fmab.Problem.heterogeneous(agents=5, arms=5, spread=0.5)
GRAPH = nx.cycle_graph(5)


def tail_of(algorithm, problem=DRAWN, horizon=T):
    """Returns the bound of an algorithm on a problem."""
    return bound_tail(bind(algorithm, problem, horizon))


def chances(n, m, b, pairs, offset, epsilon, mean, best):
    """Returns P of one arm and epoch, as docs/theory.md writes it, by trying everything."""

    def nu(x):
        return -m * math.log(1.0 - (x / epsilon) ** 2)

    def log_p(low, high, taken, s):
        needed = b + taken + n * high + nu(low) + nu(high)
        arms = math.log(1 - mean + mean * math.exp(s * low))
        arms += math.log(1 - best + best * math.exp(-s * high))
        return s * needed + n * arms + nu(s * low) + nu(s * high)

    def log_lead(x):
        arms = math.log(1 - mean + mean * math.exp(x)) + math.log(1 - best + best * math.exp(-x))
        return n * arms + 2.0 * nu(x)

    powers, tilts = np.geomspace(0.05, 20.0, 200), np.geomspace(1e-4, 0.999 * epsilon, 500)
    p = min(
        log_p(low, high, taken, s)
        for (low, high), taken in zip(pairs, offset, strict=True)
        for s in powers
        if s * max(low, high) < epsilon
    )
    return math.exp(min(p, 0.0)), math.exp(min(min(map(log_lead, tilts)), 0.0))


@pytest.mark.parametrize(
    "values", [{}, {"secure": True}, {"participation": 0.4}, {"split": True}], ids=str
)
def test_chances_of_staying_cover_those_of_single_instances(values):
    """Would catch a wrong term of P in theorem 5 (c), and cells that miss the worst means."""
    config = bind(fmab.kl_se(2.0, **values), DRAWN, T)
    table = theorem5.plan_likelihood(config)
    r = np.arange(1, len(table.rewards) + 1)
    pulls = table.pulls[:-1]
    share = {"secure": 1, "participation": 2 * r, "split": None}.get(next(iter(values), ""), 5 * r)
    if "split" in values:
        assert np.array_equal(table.rewards, pulls)
        fresh, active = np.diff(pulls, prepend=0), np.where(r == 1, 5, 2)
        parts = [
            1 + math.ceil((f - 1) / math.ceil(a * f / 5))
            for a, f in zip(active, fresh, strict=True)
        ]
        assert np.array_equal(table.noises, np.cumsum(np.minimum(parts, 5)))
    else:
        agents = 2 if "participation" in values else 5
        assert np.array_equal(table.rewards, agents * pulls)
        assert np.array_equal(table.noises, r if "secure" in values else share)
    assert np.allclose(table.radius, np.log(5 * r * (r + 1) * T))

    gaps = np.array([0.15, 0.4, 0.7])
    staying, leading = theorem5.bound_staying(table, gaps)
    ratios = []
    for i, gap in enumerate(gaps):
        # Where the chance is first small, between epochs that tell nothing or everything.
        place = int(np.argmax(staying[:, i] < 1e-2))
        assert staying[place, i] < 1e-2
        tilts = [np.asarray(x)[place] for x in table.tilts]
        pairs = list(zip(tilts[0], tilts[1], strict=True))
        found = np.array(
            [
                chances(
                    table.rewards[place],
                    table.noises[place],
                    table.radius[place],
                    pairs,
                    tilts[2],
                    2.0,
                    best - gap,
                    best,
                )
                for best in np.linspace(gap, 1.0, 12)
            ]
        )
        worst = found.max(axis=0)
        assert worst[1] <= leading[place, i] * (1 + 1e-9)
        # The twin may find a better s or pair; a wrong term is off by more.
        assert worst.sum() <= staying[place, i] * (1 + 1e-9)
        ratios.append(math.log(staying[place, i]) / math.log(worst.sum()))
    assert min(ratios) > 0.8


def test_chances_fall_with_the_gap(monkeypatch):
    """Would catch a grid whose cells take the value of the wrong end."""
    table = theorem5.plan_likelihood(bind(fmab.kl_se(1.0), DRAWN, T))
    gaps = np.geomspace(0.01, 0.99, 40)
    for values in theorem5.bound_staying(table, gaps):
        assert (np.diff(values, axis=1) <= 1e-9).all()
    fine = tail_of(fmab.kl_se(1.0)).limit
    monkeypatch.setattr(theorem5, "_GAP_RATIO", 2.0)
    assert theorem5.bound_likelihood(bind(fmab.kl_se(1.0), DRAWN, T), 1.0)[0] > fine


# Those of one group share a program.
CASES = {
    "server": (DRAWN, [fmab.kl_se(0.5), fmab.kl_se(None), fmab.kl_se(2.0, rounds=7)]),
    "split": (DRAWN, [fmab.kl_se(0.5, split=True), fmab.kl_se(2.0, split=True, rounds=9)]),
    "paper": (DRAWN, [fmab.cdp_mab(None), fmab.cdp_mab(5.0)]),
    "fixed": (FIXED, [fmab.kl_se(0.5), fmab.kl_se(None, rounds=7)]),
    "graph": (DRAWN, [fmab.kl_se_graph(2.0, graph=GRAPH)]),
    "components": (DRAWN, [fmab.kl_se_components(2.0, components="2,3")]),
    "secure": (DRAWN, [fmab.kl_se(2.0, secure=True)]),
    "participation": (DRAWN, [fmab.kl_se(2.0, participation=0.4)]),
    "secure split": (DRAWN, [fmab.kl_se(2.0, split=True, secure=True, growth=1.5)]),
    "fixed split": (FIXED, [fmab.kl_se(2.0, split=True, rounds=9)]),
    "different": (DIFFERENT, [fmab.kl_se(2.0)]),
    "paper on a graph": (DRAWN, [fmab.ddp_mab(None, graph=GRAPH)]),
    "paper fixed": (FIXED, [fmab.cdp_mab(2.0, rounds=3), fmab.cdp_mab(None)]),
}
QUICK = ("server", "split")


@pytest.mark.parametrize(
    "name", [x if x in QUICK else pytest.param(x, marks=pytest.mark.slow) for x in CASES]
)
def test_no_run_exceeds_its_limit_by_more_than_it_may(name):
    """Would catch a limit of one agent, or without waits, left-over slots or the spent budget."""
    problem, algorithms = CASES[name]
    chosen = {str(number): algorithm for number, algorithm in enumerate(algorithms)}
    problems = [problem]
    if problem is DRAWN:
        # Hard instances: all pulls are needed.
        problems = [DRAWN, *(hard_instance(gap) for gap in (0.06, 0.12))]
    for place, drawn in enumerate(problems):
        seeds = 200 if place else 2000
        data = fmab.sweep(chosen, drawn, horizon=T, seeds=seeds, times=[T])
        regrets = data.regret.isel(time=-1).transpose("algorithm", "seed").values
        for algorithm, regret in zip(algorithms, regrets, strict=True):
            tail = tail_of(algorithm, problem)
            assert tail.source and 0.0 < tail.excess < 0.01 * 5 * T
            # The bound is of an expectation; of so few runs none loses the best arm.
            assert regret.max() <= tail.limit
            assert np.maximum(regret - tail.limit, 0.0).mean() <= tail.excess


def hard_instance(gap):
    """Returns a problem whose worse arms are all as near to the best."""
    return fmab.Problem([0.5 + gap / 2] + [0.5 - gap / 2] * 4, agents=5)


def test_waits_and_budgets_and_left_over_slots_raise_the_limit():
    """Would catch a term that is left out: agents wait, play a lead, or have slots left over."""
    plain, waiting = (
        tail_of(x).limit for x in (fmab.kl_se(2.0), fmab.kl_se_graph(2.0, graph="ring"))
    )
    table = theorem5.plan_likelihood(bind(fmab.kl_se(2.0), DRAWN, T))
    rounds = len(table.rewards) + 1
    # A ring of five waits a slot.
    assert waiting == pytest.approx(plain + 5 * rounds)
    config = bind(fmab.kl_se(2.0, rounds=4), DRAWN, 10 * T)
    table = theorem5.plan_likelihood(config)
    assert len(table.rewards) == 4 and table.pulls[-1] == table.pulls[-2]
    # A gap that a lead may well have costs all slots, far more than all epochs do.
    leading, lost = theorem5.bound_staying(table, np.array([0.1]))[1][-1], 5 * 10 * T * 0.1
    assert leading > 0.1 and 4 * 5 * table.pulls[-1] < 0.5 * lost
    assert theorem5.bound_likelihood(config, 1.0)[0] > lost
    split = bind(fmab.kl_se(2.0, split=True), DRAWN, T)
    table = theorem5.plan_likelihood(split)
    assert bound_tail(split).limit > 4 * (len(table.rewards) + 1)


def test_a_failure_costs_all_agents():
    """Would catch an excess without the chance that the best arm is lost."""
    for failure in (1e-3, 1e-4):
        config = bind(fmab.kl_se(2.0, failure=failure), DRAWN, T)
        rounds = len(theorem5.plan_likelihood(config).rewards)
        lost = failure * 4 / 5 * rounds / (rounds + 1) * 5 * T
        # The rest is for arms that stay longer than the limit has it.
        assert lost < bound_tail(config).excess <= 2.0 * max(lost, 1.0)


def test_nothing_is_promised_without_a_theorem():
    """Would catch a theorem's limit for problems, noise or parameters that it does not cover."""
    trivial = {
        "world": (fmab.kl_se(1.0), fmab.Problem.uniform(5, 5, world="drifting:3")),
        "presence": (fmab.kl_se(1.0), fmab.Problem.uniform(5, 5, presence="absent:0.1")),
        "range": (fmab.kl_se(None), fmab.Problem([0.9, 0.5, 0.1], 5, rewards="gaussian:1")),
        "by agent": (fmab.kl_se("1x3,2x2"), DRAWN),
        "mechanism": (fmab.kl_se(1.0, mechanism="gaussian"), DRAWN),
        "scale": (fmab.cdp_mab(None, scale=0.3), DRAWN),
        "trim": (fmab.cdp_mab(None, trim=0.2), DRAWN),
        "by drawn gap": (fmab.cdp_mab(None, rounds=3), DRAWN),
        "some differ": (fmab.kl_se(None, participation=0.4), DIFFERENT),
        "paper's differ": (fmab.cdp_mab(None, participation=0.4), DIFFERENT),
        "index": (fmab.ucb1(), DRAWN),
        "failure": (fmab.kl_se(1.0, failure=0.5), DRAWN),
    }
    for name, (algorithm, problem) in trivial.items():
        limit = 5 * T * bounds.find_largest_gap(problem)
        assert tail_of(algorithm, problem) == (limit, 0.0, "", limit), name
    assert tail_of(fmab.kl_se(1.0), horizon=20) == (100.0, 0.0, "", 100.0)

    @dataclass(frozen=True)
    class Quick(fmab.cdp_mab):
        name = "quick"

        @classmethod
        def worse(cls, aggregate, epoch):
            return aggregate.mean < aggregate.best

    assert tail_of(fmab.cdp_mab(None)).source and not tail_of(Quick(None)).source


@pytest.mark.slow
def test_least_regret_is_no_more_than_that_of_runs():
    """Would catch pulls of all agents for those of one, or of an epoch past the horizon."""
    given = {"links": 60, "numbers": None, "bits": None}
    given |= {"graph": GRAPH, "components": "2,3", "server": True, "secure": True}
    horizon, seeds = 300, 50
    question = Question(DRAWN, horizon, 4.0, **given)
    configs = {x.label: bind(x.algorithm, DRAWN, horizon) for x in list_candidates(question)[0]}
    alone = {"dp_se": fmab.dp_se(1.0), "single": fmab.single_mab(1.0)}
    configs |= {name: bind(algorithm, DRAWN, horizon) for name, algorithm in alone.items()}
    gaps = draw_gaps(DRAWN, 3, seeds)
    least = {name: find_least_regret(config, gaps) for name, config in configs.items()}
    for name, config in configs.items():
        is_known = isinstance(config.algorithm, (fmab.Elimination, fmab.uniform_play))
        assert (least[name] > 0.0).all() == is_known, name
    # Of candidates whose least regret is 0, runs show nothing.
    # What uniform play loses is a matter of chance.
    known = {name: x.algorithm for name, x in configs.items() if least[name].any()}
    chosen = {name: x for name, x in known.items() if isinstance(x, fmab.Elimination)}
    assert len(chosen) > 40
    data = fmab.sweep(chosen, DRAWN, horizon=horizon, seeds=seeds, times=[horizon], root_seed=3)
    regret = data.regret.isel(time=-1).transpose("algorithm", "seed").values
    bound = np.stack([least[name] for name in chosen])
    assert (bound <= regret).all()
    # Where the horizon ends the first epoch, that is all.
    whole = [i for i, name in enumerate(chosen) if bound[i].sum() > 0.99 * regret[i].sum()]
    names = {list(chosen)[i].partition("(")[0] for i in whole}
    assert {"cdp", "ddp", "hdp", "single"} <= names


WHOLE = {
    # An epoch that the horizon ends, and one that ends with the horizon.
    "cut": (DRAWN, 100, [fmab.kl_se(1.0, first=500), fmab.kl_se(1.0, first=20)]),
    "split": (DRAWN, 100, [fmab.kl_se(1.0, first=x, split=True) for x in (500, 100)]),
    "drawn gap": (DRAWN, 100, [fmab.cdp_mab(None, rounds=2), fmab.cdp_mab(None)]),
    "fixed gap": (FIXED, 100, [fmab.cdp_mab(None, rounds=2)]),
    "alone": (DIFFERENT, 100, [fmab.single_mab(None)]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_least_regret_is_all_of_it_where_nothing_is_decided(name):
    """Would catch a first epoch that is a pull too long or too short, or of another gap."""
    problem, horizon, algorithms = WHOLE[name]
    chosen = {str(number): algorithm for number, algorithm in enumerate(algorithms)}
    data = fmab.sweep(chosen, problem, horizon=horizon, seeds=30, times=[horizon], root_seed=1)
    regrets = data.regret.isel(time=-1).transpose("algorithm", "seed").values
    for algorithm, regret in zip(algorithms, regrets, strict=True):
        config = bind(algorithm, problem, horizon)
        ratio = find_least_regret(config, draw_gaps(config, 1, 30)) / regret
        assert (ratio <= 1.0).all() and (ratio >= 0.99).all()


def test_first_pulls_are_of_all_agents_together():
    """Would catch pulls of one agent, or of each where they split the arms."""
    for split, pulls in ((False, 35.0), (True, 7.0)):
        assert count_first_pulls(bind(fmab.kl_se(1.0, first=7, split=split), DRAWN, 100)) == pulls
    assert count_first_pulls(bind(fmab.cdp_mab(None, rounds=2), DRAWN, 100)) == 0.0
    assert count_first_pulls(bind(fmab.ucb1(), DRAWN, 100)) == 0.0


def test_uniform_play_surely_loses_nothing():
    """Would catch a mean of runs for the least of a run."""
    least = find_least_regret(bind(fmab.uniform_play(), FIXED, 100), draw_gaps(FIXED, 0, 3))
    assert least.tolist() == [0.0, 0.0, 0.0]


def test_plugins_pull_what_their_equations_say():
    """Would catch a plan that fails with an equation, or trusts one that it cannot read."""

    def count(equation, problem=DRAWN, rounds=math.inf, resolve=None):
        @dataclass(frozen=True)
        class Other(fmab.Elimination):
            name = "other"

            def exchange(self, agents):
                return server(agents)

            @staticmethod
            def resolve_params(params, instance):
                return params if resolve is None else resolve(params, instance)

            @staticmethod
            def budget(params):
                return rounds

            @staticmethod
            def pulls_per_arm(epoch):
                return equation(epoch)

            @staticmethod
            def radius(epoch):
                return 1.0 / epoch.pulls

        if resolve is None:
            Other.resolve_params = fmab.Elimination.resolve_params
        return count_first_pulls(bind(Other(), problem, 1000))

    assert count(lambda epoch: epoch.previous + 12.0) == 60.0
    assert count(lambda epoch: epoch.previous - 3.0) == 5.0
    assert count(lambda epoch: epoch.previous + 1e9) == 1000.0
    assert count(lambda epoch: epoch.previous + 12.0, rounds=0.0) == 0.0
    assert count(lambda epoch: epoch.previous * jnp.nan) == 0.0
    assert count(lambda epoch: epoch.params["none"]) == 0.0
    assert count(lambda epoch: jnp.full(3, 12.0)) == 0.0

    def oracle(params, instance):
        return params | {"gap": jnp.nan_to_num(instance.smallest_gap, nan=1e-3)}

    def pulls(epoch):
        return jnp.ceil(1.0 / epoch.params["gap"])

    assert count(pulls, FIXED, resolve=oracle) == 5 * 5
    assert count(pulls, resolve=oracle) == 0.0
    assert (
        count(lambda epoch: epoch.previous + 12.0, fmab.Problem.uniform(5, 5, world="drifting:3"))
        == 0.0
    )


@pytest.mark.parametrize(
    "problem",
    [
        DRAWN,
        DIFFERENT,
        FIXED,
        fmab.Problem.with_gap(5, 5, 0.1),
        fmab.Problem([0.9, 0.5, 0.4], 3, means_error=0.2),
    ],
    ids=["uniform", "different", "fixed", "gap", "estimates"],
)
def test_gaps_are_those_of_simulated_instances(problem, monkeypatch):
    """Would catch other seeds, another root seed, or chunks that shift them."""
    found = draw_gaps(problem, 9, 11)
    assert found.shape == (11, problem.arms) and found.dtype == np.float64
    for seed in (0, 7):
        means = problem.fixed(seed, 9).means.mean(axis=0)
        assert np.allclose(found[seed], means.max() - means, atol=1e-12)
    config = bind(fmab.ucb1(), problem, 100)
    monkeypatch.setattr(least, "_MOST_GAPS", 4 * problem.arms * 16)
    assert np.array_equal(draw_gaps(config, 9, 11), found)
    assert draw_gaps(problem, 9, 0).shape == (0, problem.arms)
