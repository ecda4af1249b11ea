"""The bounds against arithmetic by hand, exact laws, the slow reference and simulated regret."""

import math
from functools import partial

import networkx as nx
import numpy as np
import pytest
import quick
import reference
from oracle import elimination_probabilities
from refusals import refuses

import fmab_jax
from fmab_jax.analysis import theory
from fmab_jax.parts import exchanges as exchange

near = partial(pytest.approx, rel=1e-12, abs=0)
MEANS = np.array([0.9, 0.75, 0.6, 0.5, 0.45, 0.4, 0.3, 0.2, 0.1, 0.05])
GAPS = MEANS[0] - MEANS
RING = nx.cycle_graph(8)
# Half the width of a normal 99.9999 % interval, in standard errors.
SIGMAS = 4.9


def test_two_arms_by_hand():
    """Catches any wrong constant in S, C, the number of rounds, the union bound or their sum."""
    # N = 2, T = 1000, no noise: S_1 = ceil(16 ln 16000 = 154.9), S_2 = ceil(64 ln 64000 = 708.3).
    table = theory.epochs([0, 0.5], 2, 1000, None)
    assert list(table.fewest_pulls[:2]) == list(table.most_pulls[:2]) == [155, 709]
    # 4 C(1) = 4 sqrt(ln 16000 / 620) = 0.49981 < gap: one epoch.
    assert table.radius[0] == pytest.approx(math.sqrt(9.680344001221918 / 620), rel=1e-14)
    assert list(table.arms[:3]) == [2, 1, 1]
    assert list(table.target[:3]) == [0.5, 0.25, 0.125]
    found = theory.bounds([0, 0.5], exchange.server(2), 1000, None)
    # Epoch 2 would end in slot 2 x 709 > 1000, so only epoch 1 can fail: 1 / 16000^2, both ways.
    assert found.rounds == found.rounds_surely == 1
    assert found.best_arm_lost == near(3.90625e-9)
    assert found.bad_event == near(7.8125e-9)
    assert found.regret_exploration == 2 * 0.5 * 155
    assert found.regret_failure == near(2 * 1000 * 0.5 * 7.8125e-9)
    assert found.regret == near(155.0000078125)
    assert found.regret_waiting == found.regret_commitment == 0
    assert found.links == {"server": 2}
    assert found.epsilon_message == math.inf


def test_closed_form_by_hand():
    """Catches 16 or 32 for 128, M for N^1.5, a missing ceiling and the wrong number of rounds."""
    # r_k = ceil(log2(1 / 0.5) + 1) = 2; L = ln(8 x 2 x 4 x 1000) = 11.06664.
    log = 11.066638362341809
    noise_free = theory.closed_form([0, 0.5], exchange.server(2), 1000, None)
    found = noise_free.regret_exploration
    assert found == pytest.approx(2 * 0.5 * (128 * log / 0.5 + 2), rel=1e-12)
    assert noise_free.rounds == 1  # two on the good event, but the horizon has room for one
    # At epsilon = 0.01 the noise decides: 32 r sqrt(2 L) / (N^1.5 epsilon gap) pulls.
    private = theory.closed_form([0, 0.5], exchange.server(2), 1000, 0.01)
    pulls = 32 * 2 * math.sqrt(2 * log) / (2**1.5 * 0.01 * 0.5)
    assert private.regret_exploration == near(2 * 0.5 * (pulls + 2))
    assert private.regret == 2 * 1000 * 0.5  # more than all slots cost
    assert private.epsilon_message == 0.02


def test_closed_form_of_a_budget_by_hand():
    """Catches gap^(R), a ratio left out, T^(2/R) for gap^(-2/R) and r_k beyond the budget."""
    # Gaps 1/4 and 1, R = 4: rho = (1/4)^(1/4), r_k = min(4, 4 (1 + 2) / 2 = 6) and 4 (1 + 0) / 2.
    found = theory.closed_form([0.25, 0, 1], exchange.server(6, 0.5), 10**9, None, rounds=4)
    rho_squared = 0.5
    small = 32 * math.log(8 * 3 * 16 * 10**9) / (3 * rho_squared / 16) + 4
    large = 32 * math.log(8 * 3 * 4 * 10**9) / (3 * rho_squared) + 2
    assert found.regret_exploration == near(6 * (0.25 * small + large))
    assert found.rounds == 4 and found.links == {"server": 12}
    assert found.regret_commitment == 0
    # Built for 0.5 the budget may end on the arm whose gap is 0.25.
    coarse = theory.closed_form(
        [0.25, 0, 1], exchange.server(6), 10**6, None, rounds=4, schedule_gap=0.5
    )
    assert coarse.regret_commitment == 6 * 10**6 * 0.25


def test_waiting_and_links_by_hand():
    """Catches a wait of the diameter, a round too few or too many, and swapped meters."""
    # A path of four waits two slots; 4 agents, gap 1/2. Links of a round: 3 hops x 3 edges.
    path = exchange.flooding(nx.path_graph(4))
    found = theory.bounds([0, 0.5], path, 10**6, None)
    assert found.rounds == 1 and found.regret_waiting == 4 * 2 * 0.5
    # All three edges carry data in slots 1 and 2, in slot 3 only the outer two.
    assert found.links == {"bound": 9, "used": 8}
    # min(0.5, 2) + min(0.5, 1) in two rounds.
    closed = theory.closed_form([0, 0.5], path, 10**6, None)
    assert closed.rounds == 2 and closed.regret_waiting == 4 * 2 * (0.5 + 0.5)
    assert closed.links == {"bound": 18, "used": 16}
    # Noise doubles 4 C(1) beyond one half: then a second wait, of any arm still there.
    assert theory.bounds([0, 0.3, 0.5], path, 10**6, None).regret_waiting == 4 * 2 * (0.5 + 0.3)


def test_room_for_rounds_by_hand():
    """Catches waits left out of, or counted twice in, the slots that rounds take."""
    # N = 4: S_2 = ceil(32 ln(64 T) = 342.3) pulls of two arms, 686 slots; two waits of two slots.
    path = exchange.flooding(nx.path_graph(4))
    assert theory.bounds([0, 1e-3], path, 689, None).rounds_surely == 1
    assert theory.bounds([0, 1e-3], path, 690, None).rounds_surely == 2
    assert theory.bounds([0, 1e-3], exchange.server(4), 686, None).rounds_surely == 2


def test_what_is_surely_explored_by_a_slot():
    """Catches a curve that is not exact in the first epoch or charges small gaps first."""
    # N = 1, T = 10^6, no noise; S_1 = ceil(32 ln 24 T = 543.8), and all three arms cost 0.8 / 3.
    gaps, alone = [0.1, 0, 0.7], exchange.alone(1)
    table = theory.epochs(gaps, 1, 10**6, None)
    assert table.most_pulls[0] == 544
    at = [0, 300, 3 * 544, 3 * 544 + 10, 10**6]
    curve = theory.regret_curve(at, gaps, alone, 10**6, None)
    failing = theory.bounds(gaps, alone, 10**6, None).regret_failure / 10**6
    due = np.array([0, 80, 0.8 * 544]) + failing * np.array(at[:3])
    assert curve[:3] == near(due)
    # 0.7 >= 4 C(1) <= 0.5, so that arm is gone and the arm of 0.1 is charged next.
    assert curve[3] == near(0.8 * 544 + 0.1 * 10 + failing * at[3])
    last = int(np.argmax(4 * table.radius <= 0.1))
    due_at_end = 0.7 * 544 + 0.1 * table.most_pulls[last] + failing * 10**6
    assert curve[4] == near(due_at_end)
    assert curve[4] == theory.bounds(gaps, alone, 10**6, None).regret


def test_budget_spent_on_a_gap_too_large():
    """Catches a commitment charged from slot 0, to an arm surely gone, or not at all."""
    # R = 1 with gap 1/2: Dt = 1/2, S_1 = ceil(32 ln(24 T)), 2 C(1) <= 1/4 without noise.
    gaps, T = [0, 0.2, 0.3], 10**5
    found = theory.bounds(gaps, exchange.server(1), T, None, rounds=1, schedule_gap=0.5)
    pulls = math.ceil(32 * math.log(24 * T))
    assert found.regret_commitment == near(0.2 * (T - 3 * pulls))
    assert found.regret_exploration == near(0.5 * pulls)
    assert found.rounds == 1
    # Messages of four agents on a path travel for two more slots before anything is played.
    path = exchange.flooding(nx.path_graph(4))
    waiting = theory.bounds(gaps, path, T, None, rounds=1, schedule_gap=0.5)
    pulls = math.ceil(8 * math.log(24 * T))
    assert waiting.regret_commitment == near(4 * 0.2 * (T - 3 * pulls - 2))
    # Built for its own smallest gap nothing is left: the best aggregate is the best arm's.
    for epsilon in (None, 1.0, 0.001):
        oracle = theory.bounds(gaps, exchange.server(1), 10**7, epsilon, rounds=3)
        assert oracle.regret_commitment == 0


def test_union_bound_by_hand():
    """Catches a sum over epochs or arms that misses a term, and one that ignores the noise."""
    # K = 3, T = 1000, three epochs: a = 3 once, then a in {2, 3} with at most T / a values of S.
    due = 24000.0**-2
    for r in (2, 3):
        for a in (2, 3):
            due += (1000 / a) / (8 * a * r**2 * 1000) ** 2
    assert theory.pair_failure(3, 50, None, 1000, 3) == near(due)
    noisy = theory.pair_failure(3, 1, 1.0, 1000, 3)
    assert noisy > 10 * due
    # Noise scales with the threshold: no epsilon changes it; and endless epochs change little.
    assert noisy == theory.pair_failure(3, 1, 1e-6, 1000, 3)
    assert noisy < theory.pair_failure(3, 1, 1.0, 1000, 10**9) < 1.01 * noisy
    assert theory.pair_failure(1, 1, 1.0, 1000, 3) == theory.pair_failure(3, 1, 1.0, 1000, 0) == 0


def chernoff(arms, reporting, horizon, r):
    """Returns Chernoff's bound of epoch r by its own terms: 2 N r variables, a tilt solved for."""
    threshold = 2 * r * math.sqrt(8 * reporting * math.log(8 * arms * r**2 * horizon))
    number = 2 * reporting * r
    # The exponent tilt x threshold + number log(1 - tilt^2) is largest where its slope is 0.
    tilt = (math.sqrt(number**2 + threshold**2) - number) / threshold
    return math.exp(-tilt * threshold) / (1 - tilt**2) ** number


@pytest.mark.parametrize(
    ("arms", "reporting", "horizon", "epochs"), [(2, 1, 10, 3), (2, 2, 1, 3), (3, 1, 1, 4)]
)
def test_each_epochs_noise_by_hand(arms, reporting, horizon, epochs):
    """Catches r for r^2 in the threshold, which epoch 1 does not show, and an epoch left out."""
    noise = theory.pair_failure(arms, reporting, 1.0, horizon, epochs)
    noise -= theory.pair_failure(arms, reporting, None, horizon, epochs)
    due = [chernoff(arms, reporting, horizon, r) for r in range(1, epochs + 1)]
    assert due[1] > 1e-7 * due[0]
    assert noise == pytest.approx(math.fsum(due), rel=1e-9, abs=0)


@pytest.mark.parametrize(
    ("gaps", "table", "pairs", "ways"),
    [
        ([0, 0.5], exchange.server(2), 1, 2),
        ([0, 0.5, 0.6, 0.9], exchange.server(2), 3, 6),
        # Arms that tie with the best cannot overtake it both ways, and may stay for ever.
        ([0, 0, 0.5], exchange.server(2), 2, 3),
        ([0.5, 0, 0, 0], exchange.server(2), 3, 4),
        # Each of 6 agents is one that may fail.
        ([0, 0.5], exchange.alone(6), 6, 12),
        ([0, 0, 0.5], exchange.alone(6), 12, 18),
    ],
)
def test_what_can_fail_is_counted(gaps, table, pairs, ways):
    """Catches a best arm lost to itself, ties counted twice, and agents alone counted once."""
    found = theory.bounds(gaps, table, 10**5, 0.5)
    pair = theory.pair_failure(len(gaps), table.reporting, 0.5, 10**5, int(found.rounds_surely))
    assert found.best_arm_lost == near(pairs * pair)
    assert found.bad_event == near(ways * pair)
    due = found.bad_event / (6 if table.alone else 1) * 10**5 * table.agents * max(gaps)
    assert found.regret_failure == near(due)
    tied = gaps.count(0) > 1
    assert (found.rounds == found.rounds_surely) == tied


@pytest.mark.parametrize(("reporting", "epsilon", "arms"), [(4, 0.5, 2), (2, 0.05, 7)])
def test_two_epochs_with_noise_by_hand(reporting, epsilon, arms):
    """Catches r, log, N or epsilon with another power in S(r) or C(r), from epoch 2 on."""
    N, T, K = reporting, 10**6, arms
    found = theory.epochs([0, *[1e-3] * (K - 1)], N, T, epsilon)
    before = 0
    for r, (a, target) in enumerate([(K, 1 / 2), (2, 1 / 4), (2, 1 / 8)], 1):
        rewards = 8 * math.log(8 * a * r**2 * T) / (N * target**2)
        root = math.sqrt(2 * math.log(8 * K * r**2 * T))
        pulls = max(math.ceil(max(rewards, 8 * r * root / (N**1.5 * epsilon * target))), before + 1)
        assert found.fewest_pulls[r - 1] == pulls
        own = math.sqrt(math.log(8 * K * r**2 * T) / (2 * N * pulls))
        noise = r * 2 * root / (N**1.5 * epsilon * pulls)
        due = min(target / 4, own) + noise
        assert found.radius[r - 1] == near(due)
        before = pulls


@pytest.mark.parametrize("epsilon", [None, 0.5, 0.05])
@pytest.mark.parametrize(("agents", "horizon"), [(1, 4000), (5, 600)])
def test_best_arm_lost_against_the_exact_law(epsilon, agents, horizon):
    """Catches a failure probability below the true one, where two arms nearly tie."""
    exact = elimination_probabilities((0.5, 0.4999), agents, horizon, epsilon)
    lost = sum(each for _, each in exact)
    bound = theory.pair_failure(2, agents, epsilon, horizon, 2)
    assert lost <= bound + 1e-9


@pytest.mark.parametrize(
    ("means", "agents", "epsilon", "rounds"),
    [
        ((0.9, 0.3), 2, None, 1),
        ((0.7, 0.4), 2, None, 2),
        ((0.1, 0.95), 5, 0.5, 1),
        ((0.8, 0.3), 5, 0.5, 2),
        ((0.45, 0.9), 5, 0.05, 2),
    ],
)
def test_rounds_against_the_exact_law(means, agents, epsilon, rounds):
    """Catches too few rounds: the exact probability of being done by then is 1 - bad_event."""
    gaps = max(means) - np.array(means)
    found = theory.bounds(gaps, exchange.server(agents), 2000, epsilon)
    assert found.rounds == rounds <= found.rounds_surely
    ends = elimination_probabilities(means, agents, 2000, epsilon, rounds)
    assert sum(each for each, _ in ends) >= 1 - found.bad_event - 1e-8


def configurations():
    """Returns algorithm, problem, horizon and the arguments of `bounds`."""
    homogeneous = fmab_jax.Problem(MEANS, agents=8)
    tilt = np.linspace(-1, 1, 8)[:, None] * np.minimum(MEANS, 1 - MEANS)
    different = fmab_jax.Problem(MEANS + tilt)
    server, ring = exchange.server(8), exchange.flooding(RING)
    paths = exchange.sinks([nx.path_graph(5), nx.path_graph(3)])
    budget = dict(rounds=3)
    coarse, differ = dict(rounds=2, schedule_gap=0.5), dict(heterogeneous=True)
    return {
        "server": (fmab_jax.cdp_mab(0.5), homogeneous, 30_000, server, {}),
        "no noise": (fmab_jax.cdp_mab(None), homogeneous, 30_000, server, {}),
        "much noise": (fmab_jax.cdp_mab(0.01), homogeneous, 300_000, server, {}),
        "cut": (fmab_jax.cdp_mab(0.5), homogeneous, 1000, server, {}),
        "budget": (fmab_jax.cdp_mab(0.5, **budget), homogeneous, 10**6, server, budget),
        "coarse": (fmab_jax.cdp_mab(0.5, **coarse), homogeneous, 30_000, server, coarse),
        "partial": (
            fmab_jax.cdp_mab(0.5, participation=0.3), homogeneous, 30_000,
            exchange.server(8, 0.3), {},
        ),
        "alone": (fmab_jax.single_mab(0.5), homogeneous, 30_000, exchange.alone(8), {}),
        "ring": (fmab_jax.ddp_mab(0.5, RING), different, 30_000, ring, differ),
        "sinks": (
            fmab_jax.hdp_mab(0.5, [nx.path_graph(5), nx.path_graph(3)]), different, 30_000,
            paths, differ,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", quick.only(configurations(), "ring"))
def test_simulated_regret_stays_below(name):
    """Catches a bound that the algorithm exceeds at any slot, in any round, or one that is idle."""
    algorithm, problem, horizon, table, options = configurations()[name]
    data = fmab_jax.simulate(algorithm, problem, horizon, 64)
    mean = data.regret.mean("seed").values
    upper = mean + SIGMAS * data.regret.std("seed", ddof=1).values / math.sqrt(64)
    arguments = GAPS, table, horizon, algorithm.epsilon
    curve = theory.regret_curve(data.time.values, *arguments, **options)
    found = theory.bounds(*arguments, **options)
    assert (upper <= curve * (1 + 1e-9)).all()
    assert curve[-1] == found.regret <= 4 * mean[-1] + found.regret_commitment
    waiting = data.waiting_regret.mean("seed").values[-1]
    assert waiting <= found.regret_waiting and (waiting > 0) == (table.wait > 0)
    assert data.rounds_made.values.max() <= found.rounds
    assert list(found.links) == data.meter.values.tolist()
    for meter, most in found.links.items():
        assert data.links.sel(meter=meter).values.max() <= most
    assert not data.best_arm_lost.any() and found.best_arm_lost < 0.1


def test_closed_form_is_never_smaller():
    """Catches a constant of the closed form that its own derivation does not give."""
    rng = np.random.default_rng(1)
    for case in range(60):
        gaps = np.append(rng.uniform(0.01, 1, rng.integers(1, 20)) ** rng.integers(1, 3), 0)
        table = exchange.server(int(rng.integers(1, 40)), float(rng.uniform(0.05, 1)))
        if case % 3 == 0:
            table = exchange.flooding(nx.path_graph(int(rng.integers(1, 9))))
        epsilon = [None, 1.0, 0.03, 1e-4][case % 4]
        options = [
            {},
            dict(rounds=3),
            dict(rounds=8, schedule_gap=0.3),
            dict(rounds=2, schedule_gap=1.0),
        ][case % 4]
        horizon = int(10 ** rng.uniform(0, 12))
        forms = [
            form(gaps, table, horizon, epsilon, **options)
            for form in (theory.bounds, theory.closed_form)
        ]
        sharp, closed = forms
        numbers = [[*(each._replace(links=0)), *each.links.values()] for each in forms]
        assert all(a <= b * (1 + 1e-9) for a, b in zip(*numbers, strict=True)), case
        assert list(sharp.links) == list(closed.links) == [meter.name for meter, _ in table.links]
        assert 0 <= sharp.regret <= table.agents * horizon * gaps.max() * (1 + 1e-12)


def test_agents_that_differ_and_only_some_report():
    """Catches a promise where there is none: here the best arm is lost about every second time."""
    means = np.array([[1.0, 0.0], [0.2, 0.9]])
    half = reference.server(2, 0.5)
    runs = [
        reference.run(np.random.default_rng(seed), means, 3000, None, exchange=half)
        for seed in range(30)
    ]
    assert sum(run.best_arm_lost for run in runs) >= 5
    gaps = [0, 0.15]
    alike = theory.bounds(gaps, exchange.server(2, 0.5), 3000, None)
    assert alike.best_arm_lost < 1e-5
    for table in (exchange.server(2, 0.5), exchange.alone(2)):
        for form in (theory.bounds, theory.closed_form):
            found = form(gaps, table, 3000, None, heterogeneous=True)
            assert found.best_arm_lost == found.bad_event == 1
            assert found.regret == found.regret_failure == 2 * 3000 * 0.15
            assert found.rounds == found.rounds_surely
    # All of them report: differing changes nothing.
    same = [
        theory.bounds(gaps, exchange.server(2), 10**5, 0.5, heterogeneous=differ)
        for differ in (False, True)
    ]
    assert same[0] == same[1]
    unequal = exchange.sinks([nx.path_graph(3), nx.path_graph(1)], weights="components")
    assert theory.bounds(gaps, unequal, 10**5, 0.5).best_arm_lost == 1


def test_corners():
    """Catches a division by zero with one arm, tied arms, one slot, a gap of 1 or a vast budget."""
    server = exchange.server(3)
    one = theory.bounds([0.0], server, 100, 0.5)
    assert one.regret == one.rounds == one.links["server"] == one.best_arm_lost == 0
    tied = theory.bounds([0.0, 1e-13, 0.0], server, 10**6, 0.5)
    assert tied.regret == 0 and tied.rounds == tied.rounds_surely > 1 and tied.best_arm_lost > 0
    slot = theory.bounds([0.0, 1.0], server, 1, 0.5)
    assert slot.regret == 1.5 and slot.rounds == 0
    assert theory.bounds([0.0, 1.0], server, 10**6, None, rounds=1).regret_commitment == 0
    flat = theory.closed_form([0.0, 0.5], server, 10**6, None, rounds=3, schedule_gap=1.0)
    assert flat.rounds == 3 and math.isfinite(flat.regret_exploration)
    vast = theory.bounds(GAPS, server, 10**12, 1.0, rounds=10**5)
    assert math.isfinite(vast.regret) and vast.rounds <= 10**5
    # More epochs than slots: the epochs of one pull fill the horizon and no more.
    assert theory.bounds([0.0, 0.1], exchange.server(10**7), 50, None, rounds=1000).rounds <= 24


@pytest.mark.parametrize(
    "changed",
    [
        *(dict(gaps=bad) for bad in ([0.1, 0.2], [0, 1.2], [0, math.nan], [[0, 0.1]], ["a"])),
        *(dict(horizon=bad) for bad in (0, 1e13)),
        *(dict(epsilon=bad) for bad in (0.0, math.nan)),
        *(dict(exchange=8), dict(rounds=2.5), dict(schedule_gap=0.0, rounds=3)),
    ],
)
def test_refusals(changed):
    """Catches bad input that becomes a number."""
    given = dict(gaps=[0, 0.1], exchange=exchange.server(2), horizon=100, epsilon=0.5) | changed
    for bound in (theory.bounds, theory.closed_form):
        refuses(f"^{next(iter(changed))}=", bound, **given)
