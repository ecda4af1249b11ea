"""The schedule against its equations evaluated in 60 decimal digits, and at the paper's corners."""

import itertools
import math
from decimal import Decimal, getcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fmab_jax.algorithms.families import schedule

INF = math.inf


@pytest.fixture(autouse=True)
def x64():
    """The package calls the schedule under 64-bit types; the oracle needs its digits."""
    digits = getcontext().prec
    getcontext().prec = 60
    with jax.enable_x64(True):
        yield
    getcontext().prec = digits


def exact_pulls(a, r, dt, before, K, N, eps, T):
    """Returns S_r = max(ceil(S(r)), S_{r-1} + 1) as the page writes it."""
    dt, root_n = Decimal(dt), Decimal(N) ** Decimal("1.5")
    pulls = 8 * (8 * Decimal(a) * r * r * T).ln() / (N * dt * dt)
    if eps != INF:
        privacy = 8 * r * (2 * (8 * Decimal(K) * r * r * T).ln()).sqrt()
        pulls = max(pulls, privacy / (root_n * Decimal(eps) * dt))
    return max(math.ceil(pulls), before + 1)


def exact_radius(a, r, pulls, K, N, eps, T):
    """Returns C(r) as the page writes it."""
    radius = ((8 * Decimal(a) * r * r * T).ln() / (2 * N * pulls)).sqrt()
    if eps != INF:
        privacy = r * (8 * (8 * Decimal(K) * r * r * T).ln()).sqrt()
        radius += privacy / (Decimal(N) ** Decimal("1.5") * Decimal(eps) * pulls)
    return radius


def f64(value):
    """Returns a float64 scalar."""
    return jnp.float64(value)


@jax.jit
def _pulls(active, epoch, target, previous, arms, reporting, epsilon, horizon):
    common = schedule.Setting(arms, reporting, epsilon, horizon)
    return schedule.pulls_per_arm(active, epoch, target, previous, common)


@jax.jit
def _radius(active, epoch, pulls, arms, reporting, epsilon, horizon):
    common = schedule.Setting(arms, reporting, epsilon, horizon)
    return schedule.confidence_radius(active, epoch, pulls, common)


@jax.jit
def _target(gap, rounds, epoch):
    return schedule.target_gap(schedule.shrink_ratio(gap, rounds), epoch)


def pulls_per_arm(a, r, dt, before, K, N, eps, T):
    """Calls the package with plain numbers."""
    return float(_pulls(*map(f64, (a, r, dt, before, K, N, eps, T))))


def confidence_radius(a, r, pulls, K, N, eps, T):
    """Calls the package with plain numbers."""
    return float(_radius(*map(f64, (a, r, pulls, K, N, eps, T))))


def target_gap(gap, rounds, r):
    """Calls the package with plain numbers."""
    return float(_target(*map(f64, (gap, rounds, r))))


def lengths(gap, rounds, K, N, eps, T, epochs):
    """Returns the package's S_1, S_2, ... with all arms in play, fed back as the loop does."""
    found = []
    for r in range(1, epochs + 1):
        before = found[-1] if found else 0
        pulls = pulls_per_arm(K, r, target_gap(gap, rounds, r), before, K, N, eps, T)
        assert pulls == int(pulls)
        found.append(int(pulls))
    return found


CASES = list(
    itertools.product(
        (2, 7, 100),  # K
        (1, 20, 50),  # N
        (0.01, 0.3, 1.0, INF),  # epsilon
        (1, 10**4, 10**9, 10**12),  # T
    )
)


def test_equations_in_sixty_digits():
    """Catches a wrong argument of a logarithm, K for a, M for N, T for r, or float32 anywhere.

    Every S_r is the exact integer, up to 10^12 slots; the lengths reach 10^10.
    """
    longest = 0
    for K, N, eps, T in CASES:
        before = 0
        for r, a in zip((1, 2, 5, 9, 15), (K, K, max(K // 2, 2), max(K // 3, 2), 2), strict=True):
            due = exact_pulls(a, r, 0.5**r, before, K, N, eps, T)
            found = pulls_per_arm(a, r, target_gap(0.1, INF, r), before, K, N, eps, T)
            if due > before + T:
                # Past the horizon the length is cut: the epoch never ends.
                assert found == before + T + 1, (K, N, eps, T, r)
                break
            assert found == due, (K, N, eps, T, r)
            radius = float(exact_radius(a, r, due, K, N, eps, T))
            found = confidence_radius(a, r, due, K, N, eps, T)
            assert found == pytest.approx(radius, rel=1e-13)
            before, longest = due, max(longest, due)
    assert longest > 10**10


@pytest.mark.parametrize(
    ("gap", "rounds"), [(0.5, 20), (0.9, 5), (0.0625, 4), (0.003, 7), (0.2, 1)]
)
@pytest.mark.parametrize("eps", [0.05, INF])
def test_budgeted_equations(gap, rounds, eps):
    """Catches a ratio of 1/2 under a budget, gap^(r R), or a last epoch that misses the gap."""
    before = 0
    for r in range(1, rounds + 1):
        dt = Decimal(gap) ** (Decimal(r) / rounds)
        assert target_gap(gap, rounds, r) == pytest.approx(float(dt), rel=1e-14)
        due = exact_pulls(10, r, dt, before, 10, 5, eps, 10**9)
        assert pulls_per_arm(10, r, target_gap(gap, rounds, r), before, 10, 5, eps, 10**9) == due
        before = due
    assert target_gap(gap, rounds, rounds) == pytest.approx(gap, rel=1e-14)


@pytest.mark.parametrize("gap", [1.0, 0.5, 1e-9])
def test_target_without_a_budget(gap):
    """Catches a doubling schedule that depends on the gap, or 0^0 and inf^0 in its ratio."""
    assert [target_gap(gap, INF, r) for r in (1, 2, 10, 60)] == [2.0**-r for r in (1, 2, 10, 60)]


def test_a_budget_of_four_with_a_sixteenth_is_the_doubling_schedule():
    """Catches an off-by-one in the exponent: 1/16 = (1/2)^4, the paper's figure 6."""
    budget = lengths(1 / 16, 4, 100, 50, 0.5, 10**6, 4)
    assert budget == lengths(1 / 16, INF, 100, 50, 0.5, 10**6, 4) == [14, 57, 233, 954]


def test_a_gap_of_one_is_a_schedule_of_constant_target():
    """Catches a division by log(gap): with a gap of 1 every epoch aims at 1."""
    assert [target_gap(1.0, 3, r) for r in (1, 2, 3)] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("gap", "rounds"), [(0.5, 20), (0.9, 5)])
def test_every_epoch_pulls_at_least_once(gap, rounds):
    """Catches the paper's empty epochs: with slow targets ceil(S(r)) repeats itself."""
    raw = [exact_pulls(100, r, target_gap(gap, rounds, r), -1, 100, 50, INF, 10**6)
           for r in range(1, rounds + 1)]  # fmt: skip
    assert min(np.diff(raw)) <= 0
    found = lengths(gap, rounds, 100, 50, INF, 10**6, rounds)
    assert found[0] == raw[0] and min(np.diff(found)) >= 1
    # One more where the equation stands still, the equation where it has caught up.
    due = list(itertools.accumulate(raw, lambda before, s: max(s, before + 1)))
    assert found == due


def test_fewer_arms_never_undo_pulls():
    """Catches S_r < S_{r-1} when arms leave and the logarithm shrinks."""
    assert pulls_per_arm(2, 2, 0.99, 500, 100, 50, INF, 10**4) == 501


def test_epsilon_at_its_ends():
    """Catches NaN from inf / inf, noise that does not vanish, and overflow of 1 / epsilon."""
    rows = [(10, 1, 0.5, 0), (3, 6, 0.5**6, 400)]
    for a, r, dt, before in rows:
        none = pulls_per_arm(a, r, dt, before, 10, 5, INF, 10**12)
        assert none == exact_pulls(a, r, dt, before, 10, 5, INF, 10**12)
        assert pulls_per_arm(a, r, dt, before, 10, 5, 1e300, 10**12) == none
        assert pulls_per_arm(a, r, dt, before, 10, 5, 1e-300, 10**12) == before + 10**12 + 1
        free = confidence_radius(a, r, 500, 10, 5, INF, 10**12)
        assert free == confidence_radius(a, r, 500, 10, 5, 1e300, 10**12)
        assert free == pytest.approx(float(exact_radius(a, r, 500, 10, 5, INF, 10**12)), rel=1e-13)
        huge = confidence_radius(a, r, 500, 10, 5, 1e-300, 10**12)
        due = float(exact_radius(a, r, 500, 10, 5, 1e-300, 10**12))
        assert huge == pytest.approx(due, rel=1e-12)


def test_shortest_horizon():
    """Catches log(0) or a negative length at T = 1, one arm and one agent."""
    assert pulls_per_arm(1, 1, 0.5, 0, 1, 1, 1.0, 1) == 2
    assert pulls_per_arm(1, 1, 0.5, 7, 1, 1, INF, 1) == 9
    assert confidence_radius(1, 1, 2, 1, 1, INF, 1) == pytest.approx(math.sqrt(math.log(8) / 4))


@pytest.mark.parametrize("gap", [5e-324, 1e-310])
def test_a_target_too_small_for_a_float(gap):
    """Catches NaN pulls when the target gap underflows and there is no noise."""
    assert pulls_per_arm(10, 1, target_gap(gap, 1, 1), 0, 10, 5, INF, 10**6) == 10**6 + 1


def test_noise_scale():
    """Catches a scale on the mean instead of the sum, or 2 / epsilon, or N left out."""

    def scale(N, eps):
        return float(schedule.noise_scale(f64(N), f64(eps)))

    assert scale(50, 0.5) == 1 / 25
    assert scale(1, 0.1) == 10.0
    assert scale(20, INF) == 0.0
    assert scale(1, 1e-300) == pytest.approx(1e300)
    assert 0 <= scale(10, 1e300) < 1e-300


# The paper's instance: M = N = 50, K = 100, T = 10^4; active arms as a run of it might have them.
# S_r and C(r) from the printed equations, evaluated with decimals outside this test.
PAPER = {
    1.0: [(11, 0.12310749704851398), (45, 0.06344803845796478), (181, 0.03173041267319617),
          (699, 0.01581944094147184), (2641, 0.007878403978150466)],
    0.1: [(11, 0.14920322540997827), (45, 0.07675066841441411), (181, 0.03680640066891624),
          (699, 0.01759960023893987), (2641, 0.008474351386556462)],
}  # fmt: skip


@pytest.mark.parametrize("epsilon", PAPER)
def test_table_of_the_papers_instance(epsilon):
    """Catches a changed constant or power in S(r) or C(r): the numbers are written down here."""
    before = 0
    for r, (active, row) in enumerate(zip((100, 100, 60, 20, 5), PAPER[epsilon], strict=True), 1):
        pulls = pulls_per_arm(active, r, 0.5**r, before, 100, 50, epsilon, 10**4)
        radius = confidence_radius(active, r, row[0], 100, 50, epsilon, 10**4)
        assert pulls == row[0]
        assert radius == pytest.approx(row[1], rel=1e-13)
        before = row[0]


def test_huge_horizon_is_exact():
    """Catches float32, off by 213 here, and an integer that float64 has rounded."""
    found = pulls_per_arm(100, 15, 0.5**15, 0, 100, 50, INF, 10**12)
    assert found == exact_pulls(100, 15, 0.5**15, 0, 100, 50, INF, 10**12) == 6_825_859_797
    assert float(np.float32(found)) != found


@pytest.mark.parametrize("eps", [0.2, INF])
def test_monotone_where_the_paper_needs_it(eps):
    """Catches a swapped division: S and C against each argument, one at a time."""
    base = dict(a=20, r=3, dt=0.125, before=0, K=100, N=10, eps=eps, T=10**9)

    def pulls(**changed):
        return pulls_per_arm(**(base | changed))

    def radius(**changed):
        kept = {k: v for k, v in base.items() if k not in ("dt", "before")}
        return confidence_radius(**(kept | {"pulls": 5000} | changed))

    for name, values, sign, whose in (
        ("a", (2, 5, 20, 100), 1, (pulls, radius)),
        ("r", (1, 2, 3, 8), 1, (pulls, radius)),
        ("T", (10**7, 10**8, 10**9, 10**12), 1, (pulls, radius)),
        ("N", (1, 2, 10, 50), -1, (pulls, radius)),
        ("dt", (0.01, 0.1, 0.5, 1.0), -1, (pulls,)),
        ("pulls", (1, 2, 100, 10**10), -1, (radius,)),
    ):
        for function in whose:
            found = np.diff([function(**{name: value}) for value in values])
            assert (sign * found > 0).all(), name
    # The number of all arms is met in the privacy terms only.
    assert (radius(K=1000) > radius()) == (eps != INF)
