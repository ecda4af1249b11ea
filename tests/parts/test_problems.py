"""Instances against the laws they are said to follow; files good and bad; refusals word by word."""

import contextlib
import csv
import io
import json
import random
from fractions import Fraction
from pathlib import Path

import jax
import numpy as np
import pytest
from refusals import refused, refuses
from scipy import stats

from fmab_jax.errors import Refusal
from fmab_jax.parts.rewards import Gaussian
from fmab_jax.records.problem import Problem
from fmab_jax.sampling import keys

ALPHA = 1e-6
SEEDS = 20_000


@jax.jit
def _drawn(bound, root_seed, seeds):
    return jax.vmap(lambda seed: bound.draw(keys.seed_key(root_seed, seed)))(seeds)


def instances(problem, seeds=SEEDS, root_seed=0, room=None):
    """Returns the instances of seeds 0, 1, ... as NumPy arrays with a leading seed axis."""
    with jax.enable_x64(True):
        number = np.arange(seeds, dtype=np.uint32)
        actual = _drawn(problem.bind(room), np.uint32(root_seed), number)
        return jax.tree.map(np.asarray, actual)


def global_means(found):
    """Returns [seed, arm] means over the agents."""
    return found.means.mean(axis=1)


def uncorrelated(columns):
    """Whether no two columns are correlated, all pairs considered."""
    pairs = np.corrcoef(columns.T)[np.triu_indices(columns.shape[1], 1)]
    p_value = 2 * stats.norm.sf(np.abs(pairs).max() * np.sqrt(len(columns)))
    return bool(p_value * len(pairs) > ALPHA)


def test_uniform_means():
    """Catches another law, arms that share numbers, and gaps measured from another arm."""
    actual = instances(Problem.uniform(50, 7))
    assert actual.means.shape == (SEEDS, 1, 7) and actual.means.dtype == np.float64
    means = actual.means[:, 0]
    assert min(stats.kstest(arm, "uniform").pvalue for arm in means.T) > ALPHA
    assert uncorrelated(means)
    np.testing.assert_array_equal(actual.gaps, means.max(axis=1, keepdims=True) - means)
    np.testing.assert_array_equal(actual.smallest_gap, np.sort(actual.gaps, axis=1)[:, 1])


def test_seeds_and_root_seeds_draw_their_own_means():
    """Catches an instance that forgets its seed or root seed, or depends on the number of arms."""
    few, other = (instances(Problem.uniform(5, 3), 100, root) for root in (0, 1))
    assert len(np.unique(np.concatenate([few.means, other.means]))) == 2 * 100 * 3
    many = instances(Problem.uniform(8, 6), 100)
    np.testing.assert_array_equal(many.means[:, :, :3], few.means)


@pytest.mark.parametrize("gap", [0.3, 1e-9])
def test_with_gap(gap):
    """Catches a gap that is only a bound, a best arm that is always the same, clustered others."""
    drawn = instances(Problem.with_gap(10, 5, gap))
    means = drawn.means[:, 0]
    ranked = np.sort(means, axis=1)[:, ::-1]
    assert (means >= 0).all() and (means <= 1).all()
    np.testing.assert_allclose(drawn.smallest_gap, gap, rtol=0, atol=2e-16)
    np.testing.assert_allclose(ranked[:, 0] - ranked[:, 1], gap, rtol=0, atol=2e-16)
    assert stats.kstest(ranked[:, 0], stats.uniform(gap, 1 - gap).cdf).pvalue > ALPHA
    best, second = np.argsort(-means, axis=1)[:, :2].T
    pairs = np.bincount(5 * best + second, minlength=25)
    assert stats.chisquare(pairs[pairs > 0]).pvalue > ALPHA and (pairs > 0).sum() == 20
    # The others are independent and uniform below the second best; kept in the order of arms.
    rank = np.argsort(np.argsort(-means, axis=1), axis=1)
    others = means[rank >= 2].reshape(SEEDS, 3) / ranked[:, 1:2]
    assert min(stats.kstest(arm, "uniform").pvalue for arm in others.T) > ALPHA
    assert uncorrelated(np.column_stack([others, ranked[:, 0]]))


@pytest.mark.parametrize("gap", [None, 0.05])
def test_heterogeneous_means(gap):
    """Catches offsets that move global means, leave [0, 1], stop short of it or favour an agent."""
    seeds = 4000
    actual = instances(Problem.heterogeneous(6, 4, instance_gap=gap), seeds)
    level = instances(Problem.heterogeneous(6, 4, 0.0, instance_gap=gap), seeds)
    assert actual.means.shape == (seeds, 6, 4)
    assert (actual.means >= 0).all() and (actual.means <= 1).all()
    # The global means are those of the homogeneous instance of the seed.
    np.testing.assert_allclose(global_means(actual), level.means[:, 0], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(actual.gaps, level.gaps)
    np.testing.assert_array_equal(actual.smallest_gap, level.smallest_gap)
    # The most that fits: every arm has an agent on the nearer border.
    border = np.minimum(actual.means.min(axis=1), 1 - actual.means.max(axis=1))
    assert np.abs(border).max() < 1e-15
    # Agents are alike: each is as often the highest, and no two arms share their offsets.
    offset = actual.means - level.means
    for arm in range(4):
        for side in (offset[:, :, arm].argmax(axis=1), offset[:, :, arm].argmin(axis=1)):
            assert stats.chisquare(np.bincount(side, minlength=6)).pvalue > ALPHA
    scaled = offset / np.abs(offset).max(axis=1, keepdims=True)
    assert uncorrelated(scaled[:, 0, :])


def test_means_around_estimates():
    """Catches another law, arms and agents that share noise, and the noise of another stream."""
    rows = [[0.5, 0.4, 0.6], [0.3, 0.5, 0.2]]
    for problem, estimates in (
        (Problem(rows, means_error=0.01), np.array(rows)),
        (Problem(rows[0], 7, rewards=Gaussian(0.5), means_error=2.0), np.array(rows[:1])),
    ):
        actual = instances(problem)
        noise = ((actual.means - estimates) / problem.means_error).reshape(SEEDS, -1)
        assert min(stats.kstest(x, "norm").pvalue for x in noise.T) > ALPHA
        level = instances(Problem.uniform(2, 3)).means[:, 0]
        assert uncorrelated(np.hstack([noise, level]))
        due = global_means(actual)
        np.testing.assert_allclose(actual.gaps, due.max(axis=1, keepdims=True) - due, atol=1e-15)
    padded = instances(Problem(rows, means_error=0.01), 9, room=5)
    np.testing.assert_array_equal(padded.means[:, 2:], 0.0)
    np.testing.assert_array_equal(
        padded.means[:, :2], instances(Problem(rows, means_error=0.01), 9).means
    )


def test_rows_of_estimates_that_are_given_have_an_error_each():
    """Would catch equal rows with one shared error, and agents that no longer share a vector's."""
    rows = [[0.7, 0.68]] * 4
    equal = Problem(rows, means_error=0.05)
    actual = instances(equal)
    assert actual.means.shape == (SEEDS, 4, 2) and not equal.homogeneous
    noise = ((actual.means - np.array(rows)) / 0.05).reshape(SEEDS, -1)
    inside = np.abs(noise) < 5
    assert min(stats.kstest(x, "norm").pvalue for x in noise.T) > ALPHA and inside.all()
    assert uncorrelated(noise)
    # The law does not jump where rows become equal: the same errors, around other estimates.
    near = instances(Problem([[0.7, 0.68]] * 3 + [[0.7 + 1e-9, 0.68]], means_error=0.05))
    np.testing.assert_allclose(near.means, actual.means, rtol=0, atol=2e-9)
    for shared in (Problem(rows[0], 4, means_error=0.05), Problem(rows[:1], 4, means_error=0.05)):
        assert shared.homogeneous and instances(shared, 9).means.shape == (9, 1, 2)
        assert shared != equal and shared.describe() != equal.describe()
    assert Problem(rows) == Problem(rows[0], 4)


def test_means_around_estimates_stay_in_the_range_of_a_reward():
    """Catches means outside [0, 1], and noise that is drawn again where it leaves the range."""
    means = instances(Problem([1.0, 0.5], 3, means_error=0.5)).means[:, 0]
    assert means.min() == 0.0 and means.max() == 1.0
    at_end = int((means[:, 0] == 1.0).sum())
    assert stats.binomtest(at_end, SEEDS, 0.5).pvalue > ALPHA
    assert Problem([0.9, 0.5], 3, means_error=0) == Problem([0.9, 0.5], 3)


@pytest.mark.parametrize(
    "problem",
    [
        *(Problem.uniform(50, 9), Problem.with_gap(3, 9, 0.1)),
        *(Problem.heterogeneous(4, 9, 0.7, instance_gap=0.2), Problem(np.eye(9), means_error=0.2)),
    ],
    ids=["uniform", "gap", "heterogeneous", "estimates"],
)
def test_fixed_keeps_the_draw_of_its_seed(problem):
    """Catches float32 means (made outside the 64-bit scope) or another seed's means."""
    drawn = instances(problem, 8, root_seed=3)
    for seed in (0, 7):
        fixed = problem.fixed(seed, root_seed=3)
        assert (fixed.agents, fixed.arms, fixed.kind) == (problem.agents, 9, "fixed")
        assert fixed.homogeneous == problem.homogeneous
        np.testing.assert_array_equal(fixed.means, drawn.means[seed])
        assert fixed.fixed(1) is fixed
        # The same instance for every seed, with the gaps it was drawn with.
        again = instances(fixed, 3)
        np.testing.assert_array_equal(again.means, [fixed.means] * 3)
        np.testing.assert_allclose(again.gaps, [drawn.gaps[seed]] * 3, rtol=0, atol=4e-16)


GAPS = [
    ([0.5], [0.0], 1.0),
    ([0.0, 0.0], [0, 0], 1.0),
    ([0.75, 0.5, 0.25], [0, 0.25, 0.5], 0.25),
    # Rounding errors are ties, a billionth is not.
    ([0.1 + 0.2, 0.3, 0.0], [0, 0, 0.3], 0.3),
    ([0.5, 0.5 - 1e-9], [0, 1e-9], 1e-9),
    # Agents disagree, their averages tie.
    ([[0.1, 0.2, 0.3], [0.2, 0.3, 0.1], [0.3, 0.1, 0.2]], [0, 0, 0], 1.0),
    ([[0.0, 1.0], [1.0, 0.5]], [0.25, 0], 0.25),
]


@pytest.mark.parametrize(("means", "gaps", "smallest"), GAPS, ids=str)
def test_gaps_of_fixed_means(means, gaps, smallest):
    """Catches ties broken by rounding, a smallest gap of 0, and gaps of one agent's means."""
    agents = 4 if np.ndim(means) == 1 else None
    actual = instances(Problem(means, agents), 2)
    np.testing.assert_allclose(actual.gaps, [gaps] * 2, rtol=0, atol=2e-16)
    np.testing.assert_allclose(actual.smallest_gap, [smallest] * 2, rtol=0, atol=2e-16)
    assert (actual.gaps[:, np.array(gaps) == 0] == 0).all()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Makes file names in messages short: the folder is the current one."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    # Nothing is ever unpacked.
    assert not [path for path in tmp_path.iterdir() if path.suffix.lower() not in (".csv", ".npz")]


def refusal(path, agents=None):
    """Returns the text that reading a file must end in."""
    return refused(Problem, path, agents)


TABLE = [[0.1, 0.2, 0.25], [1.0, 0.0, 1e-3]]

GOOD_CSV = {
    "plain": b"0.1,0.2,0.25\n1.0,0,1e-3\n",
    "header": b"arm 1,arm 2,arm 3\n0.1,0.2,0.25\n1.0,0,1e-3\n",
    "quoted header": b'"a,b","c","d"\n0.1,0.2,0.25\n1.0,0,1e-3\n',
    "byte order mark": b"\xef\xbb\xbf0.1,0.2,0.25\n1.0,0,1e-3\n",
    "agents from 0": b"agent,a,b,c\n1,1.0,0,1e-3\n0,0.1,0.2,0.25\n",
    "agents from 1, in the middle, and names as pandas has them": (
        b"0,1,Agent,2\n1.0,0,2,1e-3\n0.1,0.2,1,0.25\n"
    ),
    "spaces and blank lines": b" 0.1 , 0.2,0.25\n\n1.0,0,\t1e-3\n,,\n\n",
    "unicode header": "μ₁,μ₂,μ₃\n0.1,0.2,0.25\n1.0,0,1e-3\n".encode(),
}


@pytest.mark.parametrize("name", GOOD_CSV)
def test_good_csv(name, folder):
    """Catches a header read as numbers, a mark that spoils the first cell, or a lost row."""
    Path("means.csv").write_bytes(GOOD_CSV[name])
    problem = Problem("means.csv")
    assert problem.means.tolist() == TABLE and problem.agents == 2


CELLS = "0.5 0 1 .5 1. +0.5 -0 5e-1 1e-400 1e400 nan inf -0.1 1_0 0,5 0x1p-1 1e true".split()
CELLS += ["", " 0.5 ", '"0.5"', '"0.5', "\u0661", "0.5\r", "\x00", "5e-324", "0.30000000000000004"]


def is_number(text):
    with contextlib.suppress(ValueError):
        return np.isfinite(float(text)) and (float(text) != 0) == (Fraction(text) != 0)
    return False


def test_random_tables_are_refused_or_read_as_they_stand(folder):
    """Would catch a cell that is another number than the csv module and Python have."""
    rng, accepted = random.Random(4), 0
    for hostile in 100 * [0.0, 0.05, 0.1, 0.5]:
        width = rng.randint(1, 4)
        cells = [CELLS if rng.random() < hostile else [f"{rng.random():.3f}"] for _ in range(12)]
        rows = [[rng.choice(rng.choice(cells)) for _ in range(width)] for _ in range(3)]
        text = rng.choice(["\n", "\r\n", "\n\n"]).join(map(",".join, rows))
        Path("means.csv").write_bytes(text.encode())
        try:
            means = Problem("means.csv").means
        except Refusal:
            continue
        table = csv.reader(io.StringIO(text, newline=""), strict=True)
        table = [[cell.strip() for cell in row] for row in table if any(map(str.strip, row))]
        assert '"' not in text
        table = table if all(map(is_number, table[0])) else table[1:]
        assert all(is_number(cell) for row in table for cell in row), text
        expected = [[*map(float, row)] for row in table]
        assert np.broadcast_to(means, np.shape(expected)).tolist() == expected, text
        accepted += 1
    assert 100 < accepted < 390


MISREAD = {
    "a column that pandas adds": "a,b\n0,0.5,0.4\n1,0.3,0.2\n",
    "rows that are counted": "1,0.5,0.4\n2,0.3,0.2\n",
    "names of rows in R": '"","a","b"\n"1",0.5,0.4\n',
    "columns that pandas counts": "0,1,2\n0.5,0.4,0.3\n",
    "decimal commas": "0,5;0,4\n0,3;0,2\n",
    "no number": "0.5,nan\n",
    "a row too short": "0.5,0.4\n0.3\n",
    "a row too long": "0.5,0.4\n0.3,0.2,0.1\n",
    "a typo in the first line": "0.5,0.4O\n0.3,0.2\n",
    "ratings": "agent,arm,value\n0,0,1\n0,1,1\n1,0,0\n1,1,1\n",
    "an agent twice": "agent,a\n0,0.5\n0,0.4\n",
    "an agent that lacks": "agent,a\n0,0.5\n2,0.4\n",
    "agents from 2": "agent,a\n2,0.5\n3,0.4\n",
    "a misspelt first row": "O.5,O.4\n0.3,0.2\n",
    "a missing first row": "NA,NA\n0.3,0.2\n",
    "names alone": "a,b\n",
    "nothing": "",
    "another encoding": "0.5,0.4\n".encode("utf-16"),
}


@pytest.mark.parametrize("name", MISREAD)
def test_numbers_that_may_be_misread(name, folder):
    """Would catch counters, names, ids and broken cells that are read as means, in any order."""
    text = MISREAD[name]
    Path("means.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert refusal("means.csv").startswith("means='means.csv")


def test_agents_of_a_file_are_all_agents(folder):
    """Would catch a row of one agent that all share, and a file that was edited meanwhile."""
    path = Path("means.csv")
    path.write_text("agent,a,b\n0,0.5,0.4\n")
    assert Problem(path).agents == 1
    assert "column agent has 0 to 3, or 1 to 4, each once" in refusal("means.csv", 4)
    path.write_text("agent,a,b\n2,0.5,0.4\n1,0.3,0.2\n")
    first = Problem(path)
    assert first.means.tolist() == [[0.3, 0.2], [0.5, 0.4]]
    path.write_text("agent,a,b\n1,0.5,0.4\n2,0.3,0.2\n")
    assert first.means.tolist() == [[0.3, 0.2], [0.5, 0.4]] != Problem(path).means.tolist()
    path.write_text("agent,a,b\n1,0.5,0.4\n1,0.3,0.2\n")
    assert refusal("means.csv", 2).startswith("means='means.csv': must be a file whose column")


def test_one_row_for_many_agents(folder):
    """Catches agents ignored, or demanded to be the rows, where one row is shared."""
    Path("means.CSV").write_bytes(b"0.1,0.2\n")
    Path("means.csv").write_bytes(b"0.1,0.2\n")
    shared = Problem(Path("means.CSV"), agents=7)
    assert shared.agents == 7 and shared.homogeneous and shared.means.tolist() == [[0.1, 0.2]]
    assert Problem("means.csv").agents == 1
    np.savez("means.npz", means=[0.1, 0.2])
    assert Problem("means.npz", agents=7).means.tolist() == [[0.1, 0.2]]


def test_good_npz(folder):
    """Catches byte order, Fortran order or a second array that changes the means."""
    means = np.array([[0.5, 0.25, 1.0], [0.125, 0.0, 0.75]], ">f8")
    np.savez("named.npz", means=np.asfortranarray(means), labels=np.arange(4))
    np.savez_compressed("alone.npz", table=means)
    for name in ("named.npz", "alone.npz"):
        assert Problem(name).means.tolist() == means.tolist()
    Path("cut.npz").write_bytes(Path("named.npz").read_bytes()[:-40])
    assert refusal("cut.npz").startswith("means='cut.npz': must be an NPZ file; ")
    np.savez("objects.npz", means=np.array([0.5, None], object))
    assert refusal("objects.npz").startswith("means='objects.npz': must be an NPZ file; ")


NAMED = {
    "uniform": lambda: Problem.uniform(5, 4),
    "widest spread": lambda: Problem.heterogeneous(5, 4),
    "spread": lambda: Problem.heterogeneous(5, 4, 0.5),
    "other spread": lambda: Problem.heterogeneous(5, 4, 0.5000000000000001),
    "gap": lambda: Problem.with_gap(5, 4, 0.1),
    "other gap": lambda: Problem.with_gap(5, 4, 0.2),
    "both": lambda: Problem.heterogeneous(5, 4, 0.5, instance_gap=0.1),
    "gaussian": lambda: Problem.uniform(5, 4, rewards=Gaussian(0.1)),
    "other sd": lambda: Problem.uniform(5, 4, rewards=Gaussian(0.2)),
    "fixed": lambda: Problem([0.1, 0.2, 0.3, 0.4], 5),
    "estimates": lambda: Problem([0.1, 0.2, 0.3, 0.4], 5, means_error=0.1),
    "less sure": lambda: Problem([0.1, 0.2, 0.3, 0.4], 5, means_error=0.2),
    "a bit": lambda: Problem([0.1, 0.2, 0.3, 0.4 + 2**-54], 5),
    "more share them": lambda: Problem([0.1, 0.2, 0.3, 0.4], 6),
    "rows": lambda: Problem([[0.1, 0.2, 0.3, 0.4]] * 4 + [[0.1, 0.2, 0.3, 0.5]]),
    "fixed gaussian": lambda: Problem([0.1, 0.2, 0.3, 0.4], 5, rewards=Gaussian(0.1)),
    "ratings": lambda: Problem.ratings([1, 2, 3], np.full((4, 3), 1 / 3), 5),
    "levels": lambda: Problem.ratings([1, 2, 4], np.full((4, 3), 1 / 3), 5),
    "shares": lambda: Problem.ratings([1, 2, 3], [[0.5, 0, 0.5]] * 4, 5),
}


def test_problems_are_values():
    """Catches equality by identity or a hash that forgets a field."""
    first, again = ([make() for make in NAMED.values()] for _ in range(2))
    assert first == again and list(map(hash, first)) == list(map(hash, again))
    assert len(set(first)) == len(NAMED)
    described = [json.dumps(problem.describe(), allow_nan=False) for problem in first]
    assert len(set(described)) == len(NAMED)
    texts = [tuple(p.settings().items()) for p in first if (p.agents, p.arms) == (5, 4)]
    assert len(set(texts)) == len(texts) == len(NAMED) - 1
    bit = first[list(NAMED).index("a bit")].describe()
    assert json.loads(json.dumps(bit))["means"] == [[0.1, 0.2, 0.3, 0.4 + 2**-54]]
    assert Problem.uniform(5, 4) != "problem"
    assert Problem([0.0, 0.5], 2) == Problem([-0.0, 0.5], 2)
    assert Problem([[0.5, 0.25]] * 3) == Problem([0.5, 0.25], 3)


@pytest.mark.parametrize(
    "problem",
    [
        Problem.heterogeneous(5, 6, 0.4, instance_gap=0.1),
        Problem.ratings([1, 2, 5], np.random.default_rng(0).dirichlet(np.ones(3), (5, 6))),
    ],
    ids=["drawn", "ratings"],
)
def test_padded_agents_change_no_bit(problem):
    """Catches a mean, gap or parameter that depends on rows which do not exist."""
    tight = instances(problem, 30)
    for room in (6, 13):
        wide = instances(problem, 30, room=room)
        assert wide.means.shape == (30, room, 6)
        np.testing.assert_array_equal(wide.means[:, :5], tight.means)
        assert (wide.means[:, 5:] == 0).all()
        np.testing.assert_array_equal(wide.gaps, tight.gaps)
        np.testing.assert_array_equal(wide.smallest_gap, tight.smallest_gap)
        for there, here in zip(wide.parameters, tight.parameters, strict=True):
            np.testing.assert_array_equal(there[:, : here.shape[1]][:, :5], here)


def test_means_of_ratings():
    """Catches ratings that are not scaled, or probabilities in another order."""
    table = np.random.default_rng(1).dirichlet(np.ones(4), (3, 5))
    levels = np.array([1, 2, 4, 9])
    problem = Problem.ratings(levels, table)
    expected = table @ (levels - 1) / 8
    np.testing.assert_allclose(problem.means, expected, rtol=1e-14)
    actual = instances(problem, 2)
    np.testing.assert_allclose(actual.means, [expected] * 2, rtol=1e-14)
    np.testing.assert_allclose(np.stack(actual.parameters, -1), [table] * 2, rtol=1e-14)
    global_mean = expected.mean(axis=0)
    np.testing.assert_allclose(actual.gaps[0], global_mean.max() - global_mean, atol=1e-15)
    alike = Problem.ratings(levels, table[0], agents=7)
    assert (alike.agents, alike.rows, alike.homogeneous) == (7, 1, True)
    assert alike == Problem.ratings(levels, [table[0]] * 7)
    assert problem.fixed(3) is problem


def test_gaussian_means_may_be_any_finite_number():
    """Catches Bernoulli's range forced upon other laws, and a fixed draw that loses its law."""
    problem = Problem([[-5.0, 3.0], [1e6, 0.0]], rewards=Gaussian(0.5))
    actual = instances(problem, 1)
    np.testing.assert_array_equal(actual.gaps, [[0, 499997.5 - 1.5 + 0.0 + 0.0]])
    mean, sd = actual.parameters
    np.testing.assert_array_equal(mean, [problem.means])
    np.testing.assert_array_equal(sd, [[[0.5, 0.5]]])
    drawn = Problem.heterogeneous(3, 4, rewards=Gaussian(2.0))
    assert drawn.fixed(1).rewards == Gaussian(2.0)
    np.testing.assert_array_equal(drawn.fixed(1).means, Problem.heterogeneous(3, 4).fixed(1).means)


def test_ratings_in_an_npz(folder):
    """Catches probabilities read as means, or a law that is overruled in silence."""
    table = np.random.default_rng(0).dirichlet(np.ones(3), (2, 4))
    np.savez("ratings.npz", levels=[1, 2, 7], probabilities=table, other=np.ones(3))
    problem = Problem("ratings.npz")
    assert problem == Problem.ratings([1, 2, 7], table)
    line = "^rewards=Gaussian.*: must be left out with ratings; "
    refuses(line, Problem, "ratings.npz", rewards=Gaussian(1))
    np.savez("square.npz", levels=[[1, 2]], probabilities=table)
    assert refusal("square.npz").startswith("levels=(1, 2): must be one row of numbers; ")
    np.savez("text.npz", levels=["a", "b"], probabilities=table)
    assert refusal("text.npz").startswith("means='text.npz': must be numbers; ")
    np.savez("means.npz", means=[[-3.0, 2.0]])
    assert Problem("means.npz", rewards=Gaussian(1)).rewards == Gaussian(1)
