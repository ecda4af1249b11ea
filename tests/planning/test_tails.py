"""What a theorem says of the losses of single candidates, before they run."""

import math
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pytest

import fmab_jax as fmab
from fmab_jax.planning import theorem5
from fmab_jax.planning.tails import bound_tail, find_largest_gap
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
    "fixed": (FIXED, [fmab.kl_se(0.5), fmab.kl_se(None, rounds=7)]),
    "graph": (DRAWN, [fmab.kl_se_graph(2.0, graph=GRAPH)]),
    "components": (DRAWN, [fmab.kl_se_components(2.0, components="2,3")]),
    "secure": (DRAWN, [fmab.kl_se(2.0, secure=True)]),
    "participation": (DRAWN, [fmab.kl_se(2.0, participation=0.4)]),
    "secure split": (DRAWN, [fmab.kl_se(2.0, split=True, secure=True, growth=1.5)]),
    "fixed split": (FIXED, [fmab.kl_se(2.0, split=True, rounds=9)]),
    "different": (DIFFERENT, [fmab.kl_se(2.0)]),
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
        "paper": (fmab.cdp_mab(None), DRAWN),
        "some differ": (fmab.kl_se(None, participation=0.4), DIFFERENT),
        "index": (fmab.ucb1(), DRAWN),
        "failure": (fmab.kl_se(1.0, failure=0.5), DRAWN),
    }
    for name, (algorithm, problem) in trivial.items():
        limit = 5 * T * find_largest_gap(problem)
        assert tail_of(algorithm, problem) == (limit, 0.0, "", limit), name
    assert tail_of(fmab.kl_se(1.0), horizon=20) == (100.0, 0.0, "", 100.0)

    @dataclass(frozen=True)
    class Quick(fmab.kl_se):
        name = "quick"

        @classmethod
        def worse(cls, aggregate, epoch):
            return aggregate.mean < aggregate.best

    assert tail_of(fmab.kl_se(1.0)).source and not tail_of(Quick(1.0)).source


def test_the_largest_gap_covers_what_seeds_may_draw():
    """Would catch a bound of rare regrets that a seed's means exceed."""
    means = [0.6, 0.5, 0.4]
    for error, law in ((0.01, "bernoulli"), (0.3, "bernoulli"), (1.0, "gaussian:1")):
        problem = fmab.Problem(means, 3, rewards=law, means_error=error)
        gaps = [np.ptp(problem.fixed(seed).means) for seed in range(20)]
        assert max(gaps) <= find_largest_gap(problem)
    assert find_largest_gap(fmab.Problem(means, 3)) == pytest.approx(0.2)
    assert find_largest_gap(fmab.Problem(means, 3, means_error=0.3)) == 1
    assert find_largest_gap(fmab.Problem(means, 3, world="drifting:2")) == 1
    problem = fmab.Problem([5.0, 0.0], 3, rewards="gaussian:1", world="drifting:2")
    assert find_largest_gap(problem) == 5
