"""Instances against the laws they are said to follow; files good and bad; refusals word by word."""

import json
import os
import re
import struct
import tracemalloc
import zipfile
from fractions import Fraction
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from refusals import refused, refuses
from scipy import stats

from fmab_jax.core import keys, tables
from fmab_jax.core.problems import Problem
from fmab_jax.core.rewards import Gaussian, Ratings

ALPHA = 1e-6
SEEDS = 20_000


@jax.jit
def _drawn(bound, root_seed, seeds):
    return jax.vmap(lambda seed: bound.draw(keys.seed_key(root_seed, seed)))(seeds)


def instances(problem, seeds=SEEDS, root_seed=0, room=None):
    """Returns the instances of seeds 0, 1, ... as NumPy arrays with a leading seed axis."""
    with jax.enable_x64(True):
        number = np.arange(seeds, dtype=np.uint32)
        found = _drawn(problem.bind(room), np.uint32(root_seed), number)
        return jax.tree.map(np.asarray, found)


def global_means(found):
    """Returns [seed, arm] means over the agents."""
    return found.means.mean(axis=1)


def uncorrelated(columns):
    """Whether no two columns are correlated, all pairs considered."""
    pairs = np.corrcoef(columns.T)[np.triu_indices(columns.shape[1], 1)]
    p_value = 2 * stats.norm.sf(np.abs(pairs).max() * np.sqrt(len(columns)))
    return bool(p_value * len(pairs) > ALPHA)


# --- drawn instances ---


def test_uniform_means():
    """Catches another law, arms that share numbers, and gaps measured from another arm."""
    found = instances(Problem.uniform(50, 7))
    assert found.means.shape == (SEEDS, 1, 7) and found.means.dtype == np.float64
    means = found.means[:, 0]
    assert min(stats.kstest(arm, "uniform").pvalue for arm in means.T) > ALPHA
    assert uncorrelated(means)
    np.testing.assert_array_equal(found.gaps, means.max(axis=1, keepdims=True) - means)
    np.testing.assert_array_equal(found.smallest_gap, np.sort(found.gaps, axis=1)[:, 1])


def test_seeds_and_root_seeds_draw_their_own_means():
    """Catches an instance that forgets its seed or root seed, or depends on the number of arms."""
    few, other = (instances(Problem.uniform(5, 3), 100, root) for root in (0, 1))
    assert len(np.unique(np.concatenate([few.means, other.means]))) == 2 * 100 * 3
    many = instances(Problem.uniform(8, 6), 100)
    np.testing.assert_array_equal(many.means[:, :, :3], few.means)


@pytest.mark.parametrize("gap", [0.3, 1e-3, 1e-9, 0.99])
def test_with_gap(gap):
    """Catches a gap that is only a bound, a best arm that is always the same, clustered others."""
    found = instances(Problem.with_gap(10, 5, gap))
    means = found.means[:, 0]
    ranked = np.sort(means, axis=1)[:, ::-1]
    assert (means >= 0).all() and (means <= 1).all()
    np.testing.assert_allclose(found.smallest_gap, gap, rtol=0, atol=2e-16)
    np.testing.assert_allclose(ranked[:, 0] - ranked[:, 1], gap, rtol=0, atol=2e-16)
    top = stats.uniform(gap, 1 - gap)
    assert stats.kstest(ranked[:, 0], top.cdf).pvalue > ALPHA
    best, second = np.argsort(-means, axis=1)[:, :2].T
    pairs = np.bincount(5 * best + second, minlength=25)
    assert stats.chisquare(pairs[pairs > 0]).pvalue > ALPHA and (pairs > 0).sum() == 20
    # The others are independent and uniform below the second best; kept in the order of arms.
    rank = np.argsort(np.argsort(-means, axis=1), axis=1)
    others = means[rank >= 2].reshape(SEEDS, 3) / ranked[:, 1:2]
    assert min(stats.kstest(arm, "uniform").pvalue for arm in others.T) > ALPHA
    assert uncorrelated(np.column_stack([others, ranked[:, 0]]))


def test_two_arms_with_a_gap():
    """Catches a maker that needs a third arm."""
    found = instances(Problem.with_gap(1, 2, 0.25), 50)
    np.testing.assert_allclose(np.sort(found.gaps, axis=1), [[0.0, 0.25]] * 50, atol=2e-16)
    assert 5 < (found.gaps[:, 0] == 0).sum() < 45


@pytest.mark.parametrize("gap", [None, 0.05])
def test_heterogeneous_means(gap):
    """Catches offsets that move global means, leave [0, 1], stop short of it or favour an agent."""
    seeds = 4000
    found = instances(Problem.heterogeneous(6, 4, instance_gap=gap), seeds)
    level = instances(Problem.heterogeneous(6, 4, 0.0, gap), seeds)
    assert found.means.shape == (seeds, 6, 4)
    assert (found.means >= 0).all() and (found.means <= 1).all()
    # The global means are those of the homogeneous instance of the seed.
    np.testing.assert_allclose(global_means(found), level.means[:, 0], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(found.gaps, level.gaps)
    np.testing.assert_array_equal(found.smallest_gap, level.smallest_gap)
    # The most that fits: every arm has an agent on the nearer border.
    border = np.minimum(found.means.min(axis=1), 1 - found.means.max(axis=1))
    assert np.abs(border).max() < 1e-15
    # Agents are alike: each is as often the highest, and no two arms share their offsets.
    offset = found.means - level.means
    for arm in range(4):
        for side in (offset[:, :, arm].argmax(axis=1), offset[:, :, arm].argmin(axis=1)):
            assert stats.chisquare(np.bincount(side, minlength=6)).pvalue > ALPHA
    scaled = offset / np.abs(offset).max(axis=1, keepdims=True)
    assert uncorrelated(scaled[:, 0, :])


def test_spread_scales_the_offsets():
    """Catches a spread that is squared, or acts on the global means."""
    spreads = (1.0, 0.25, 0.0)
    made = (instances(Problem.heterogeneous(6, 4, spread), 200).means for spread in spreads)
    wide, narrow, level = made
    np.testing.assert_allclose(narrow - level, (wide - level) / 4, rtol=0, atol=4e-16)


def test_no_spread_is_homogeneous():
    """Catches a second path for agents that do not differ; it must be the first one, bit by bit."""
    plain, spread = Problem.uniform(6, 4), Problem.heterogeneous(6, 4, 0.0)
    assert spread == plain and spread.homogeneous
    assert (spread.kind, spread.rows) == (plain.kind, plain.rows) == ("uniform", 1)
    np.testing.assert_array_equal(instances(spread, 50).means, instances(plain, 50).means)
    assert not Problem.heterogeneous(6, 4, 1e-3).homogeneous


def test_one_heterogeneous_agent():
    """Catches 0 / 0 where there is nobody to differ from."""
    found, level = instances(Problem.heterogeneous(1, 4), 20), instances(Problem.uniform(1, 4), 20)
    np.testing.assert_array_equal(found.means, level.means)


@pytest.mark.parametrize(
    "problem",
    [Problem.uniform(50, 9), Problem.with_gap(3, 9, 0.1), Problem.heterogeneous(4, 9, 0.7, 0.2)],
    ids=["uniform", "gap", "heterogeneous"],
)
def test_fixed_keeps_the_draw_of_its_seed(problem):
    """Catches float32 means (made outside the 64-bit scope), another seed's means, or means that an
    eager and a compiled program round differently."""
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


@pytest.mark.parametrize(
    "problem",
    [
        Problem.uniform(50, 40),
        pytest.param(Problem.with_gap(50, 40, 0.01), marks=pytest.mark.slow),
        Problem.heterogeneous(50, 40),
        pytest.param(Problem.heterogeneous(50, 40, 0.5, 0.01), marks=pytest.mark.slow),
    ],
    ids=["uniform", "gap", "heterogeneous", "both"],
)
def test_instances_do_not_depend_on_the_batch(problem):
    """Catches sums in an order, or products rounded, as the size of the batch decides."""
    one = instances(problem, 1)
    many = instances(problem, 250)
    jax.tree.map(lambda value, due: np.testing.assert_array_equal(value[:1], due), many, one)


# --- fixed instances ---

GAPS = [
    ([0.5], [0.0], 1.0),
    ([0.5, 0.5, 0.5], [0, 0, 0], 1.0),
    ([0.9, 0.9, 0.4], [0, 0, 0.5], 0.5),
    ([0.4, 0.9, 0.4, 0.9], [0.5, 0, 0.5, 0], 0.5),
    ([0.0, 1.0], [1, 0], 1.0),
    ([1.0, 1.0, 0.0], [0, 0, 1], 1.0),
    ([0.0, 0.0], [0, 0], 1.0),
    ([0.75, 0.5, 0.25], [0, 0.25, 0.5], 0.25),
    # Rounding errors are ties, a billionth is not.
    ([0.1 + 0.2, 0.3, 0.0], [0, 0, 0.3], 0.3),
    ([0.5, 0.5 - 1e-9], [0, 1e-9], 1e-9),
    # Agents disagree, their averages tie.
    ([[0.2, 0.4], [0.4, 0.2]], [0, 0], 1.0),
    ([[0.1, 0.2, 0.3], [0.2, 0.3, 0.1], [0.3, 0.1, 0.2]], [0, 0, 0], 1.0),
    ([[0.0, 1.0], [1.0, 0.5]], [0.25, 0], 0.25),
]


@pytest.mark.parametrize(("means", "gaps", "smallest"), GAPS, ids=str)
def test_gaps_of_fixed_means(means, gaps, smallest):
    """Catches ties broken by rounding, a smallest gap of 0, and gaps of one agent's means."""
    agents = 4 if np.ndim(means) == 1 else None
    found = instances(Problem(means, agents), 2)
    np.testing.assert_allclose(found.gaps, [gaps] * 2, rtol=0, atol=2e-16)
    np.testing.assert_allclose(found.smallest_gap, [smallest] * 2, rtol=0, atol=2e-16)
    assert (found.gaps[:, np.array(gaps) == 0] == 0).all()


def test_equal_rows_are_one_row():
    """Catches agents simulated one by one although they share their means."""
    problem = Problem([[0.1, 0.7], [0.1, 0.7], [0.1, 0.7]])
    assert problem.homogeneous and (problem.kind, problem.rows) == ("fixed", 1)
    assert (problem.agents, problem.arms, problem.means.tolist()) == (3, 2, [[0.1, 0.7]])
    different = Problem([[0.1, 0.7], [0.1, 0.7 + 2**-53]])
    assert different.rows == 2 and not different.homogeneous


def test_means_are_copied_and_frozen():
    """Catches a problem that changes with the caller's array, or under the caller's hands."""
    mine = np.array([[0.1, 0.7], [0.2, 0.3]])
    problem = Problem(mine)
    mine[0, 0] = 0.9
    assert problem.means[0, 0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        problem.means[0, 0] = 0.5
    with pytest.raises(AttributeError):
        problem.agents = 3


# --- refusals ---

INF, NAN = float("inf"), float("nan")
WHOLE_AGENTS = "must be a whole number in [1, 10,000,000]; give the number of agents M"
WHOLE_ARMS = "must be a whole number in [1, 1,000,000]; give the number of arms K"
RANGE = "must be in [0, 1]; rewards lie in [0, 1], so rescale them"
GAP = (
    "must be a number in [1e-09, 1); give the smallest non-zero gap, or None to leave it to chance"
)
SPREAD = "must be a number in [0, 1]; 0 makes the agents alike, 1 is the most"
SHAPE = "must be an array shaped [arm] or [agent, arm], not empty; give one mean per agent and arm"
NUMBERS = "must be an array of numbers; give one row per agent, all equally long"
ALONE = "must be given with [arm] means; give agents too, or [agent, arm] means"
SEED = "must be a whole number in [0, 4,294,967,295]; larger seeds would repeat the streams of "
ONE_ARM = "must be None with one arm; use at least two arms"

ROWS_GIVEN = "agents=3: must be 2, the rows of means; leave agents out"
MANY = "agents=10000000: must be below 4,294,967 with 1000 arms; use fewer agents"

REFUSED = [
    (lambda: Problem([0.5, 1.1], 2), f"means[1]=1.1: {RANGE}"),
    (lambda: Problem([-0.1, 0.5], 2), f"means[0]=-0.1: {RANGE}"),
    (lambda: Problem([0.5, NAN], 2), f"means[1]=nan: {RANGE}"),
    (lambda: Problem([0.5, INF], 2), f"means[1]=inf: {RANGE}"),
    (lambda: Problem([[0.5, 0.5], [0.5, 1 + 2**-52]]), f"means[1, 1]=1.0000000000000002: {RANGE}"),
    (lambda: Problem([[0.5, None]]), f"means=[[0.5, None]]: {NUMBERS}"),
    (lambda: Problem([], 2), f"means=(0,): {SHAPE}"),
    (lambda: Problem([[]]), f"means=(1, 0): {SHAPE}"),
    (lambda: Problem(0.5, 2), f"means=(): {SHAPE}"),
    (lambda: Problem(np.zeros((2, 2, 2))), f"means=(2, 2, 2): {SHAPE}"),
    (lambda: Problem([[0.5], [0.5, 0.5]]), f"means=[[0.5], [0.5, 0.5]]: {NUMBERS}"),
    (lambda: Problem("uniform", 2), f"means='uniform': {NUMBERS}"),
    (lambda: Problem({"a": 1}, 2), f"means={{'a': 1}}: {NUMBERS}"),
    (lambda: Problem([0.5j], 2), f"means=[0.5j]: {NUMBERS}"),
    (lambda: Problem([0.5, 0.4]), f"agents=None: {ALONE}"),
    (lambda: Problem([[0.5, 0.4], [0.1, 0.2]], 3), ROWS_GIVEN),
    (lambda: Problem([0.5], 0), f"agents=0: {WHOLE_AGENTS}"),
    (lambda: Problem([0.5], 2.5), f"agents=2.5: {WHOLE_AGENTS}"),
    (lambda: Problem([0.5], True), f"agents=True: {WHOLE_AGENTS}"),
    (lambda: Problem([0.5], "5"), f"agents='5': {WHOLE_AGENTS}"),
    (lambda: Problem.uniform(0, 3), f"agents=0: {WHOLE_AGENTS}"),
    (lambda: Problem.uniform(10**7 + 1, 3), f"agents=10000001: {WHOLE_AGENTS}"),
    (lambda: Problem.uniform(3, 0), f"arms=0: {WHOLE_ARMS}"),
    (lambda: Problem.uniform(3, -2), f"arms=-2: {WHOLE_ARMS}"),
    (lambda: Problem.uniform(3, 10**6 + 1), f"arms=1000001: {WHOLE_ARMS}"),
    (lambda: Problem.uniform(3, NAN), f"arms=nan: {WHOLE_ARMS}"),
    (lambda: Problem.uniform(10**7, 1000), MANY),
    (lambda: Problem.heterogeneous(3, 4, -0.1), f"spread=-0.1: {SPREAD}"),
    (lambda: Problem.heterogeneous(3, 4, 1.1), f"spread=1.1: {SPREAD}"),
    (lambda: Problem.heterogeneous(3, 4, NAN), f"spread=nan: {SPREAD}"),
    (lambda: Problem.heterogeneous(3, 4, "1"), f"spread='1': {SPREAD}"),
    (lambda: Problem.with_gap(3, 4, 0.0), f"instance_gap=0.0: {GAP}"),
    (lambda: Problem.with_gap(3, 4, 1.0), f"instance_gap=1.0: {GAP}"),
    (lambda: Problem.with_gap(3, 4, 1e-10), f"instance_gap=1e-10: {GAP}"),
    (lambda: Problem.with_gap(3, 4, NAN), f"instance_gap=nan: {GAP}"),
    (lambda: Problem.heterogeneous(3, 4, instance_gap=-1), f"instance_gap=-1: {GAP}"),
    (lambda: Problem.with_gap(3, 1, 0.1), f"instance_gap=0.1: {ONE_ARM}"),
    (lambda: Problem.uniform(3, 4).fixed(2**32), f"seed=4294967296: {SEED}smaller ones"),
    (lambda: Problem.uniform(3, 4).fixed(0, -1), f"root_seed=-1: {SEED}smaller ones"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED, ids=[text[:32] for _, text in REFUSED])
def test_refusals(call, text):
    """Catches a bad problem that is built, and a message that lost its field, range or remedy."""
    assert refused(call) == text


def test_largest_problems_that_are_allowed():
    """Catches a limit that refuses its own end."""
    for agents, arms in ((10**7, 400), (4000, 10**6), (1, 1)):
        assert Problem.uniform(agents, arms).arms == arms
    for gap in (1e-9, 1 - 2**-53):
        assert Problem.with_gap(1, 2, gap).instance_gap == gap
    assert Problem([0.5], np.float64(3.0)).agents == 3


# --- files ---


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Makes file names in messages short: the folder is the current one."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    # Nothing is ever unpacked.
    assert not [path for path in tmp_path.iterdir() if path.suffix.lower() not in (".csv", ".npz")]


def refusal(path, agents=None):
    """Returns the text that reading a file must end in."""
    return refused(Problem.from_file, path, agents)


TABLE = [[0.1, 0.2, 0.25], [1.0, 0.0, 1e-3]]

GOOD_CSV = {
    "plain": b"0.1,0.2,0.25\n1.0,0,1e-3\n",
    "no last newline": b"0.1,0.2,0.25\n1.0,0,1e-3",
    "header": b"arm 1,arm 2,arm 3\n0.1,0.2,0.25\n1.0,0,1e-3\n",
    "quoted header": b'"a,b","c","d"\n0.1,0.2,0.25\n1.0,0,1e-3\n',
    "byte order mark": b"\xef\xbb\xbf0.1,0.2,0.25\n1.0,0,1e-3\n",
    "mark and header": b"\xef\xbb\xbfa,b,c\r\n0.1,0.2,0.25\r\n1.0,0,1e-3\r\n",
    "a word for an index that counts nothing": b"agent,a,b\n0.1,0.2,0.25\n1.0,0,1e-3\n",
    "windows": b"0.1,0.2,0.25\r\n1.0,0,1e-3\r\n",
    "spaces and blank lines": b" 0.1 , 0.2,0.25\n\n1.0,0,\t1e-3\n,,\n\n",
    "quoted numbers": b'"0.1","0.2","0.25"\n"1.0","0","1e-3"\n',
    "unicode header": "μ₁,μ₂,μ₃\n0.1,0.2,0.25\n1.0,0,1e-3\n".encode(),
}


@pytest.mark.parametrize("name", GOOD_CSV)
def test_good_csv(name, folder):
    """Catches a header read as numbers, a mark that spoils the first cell, or a lost row."""
    Path("means.csv").write_bytes(GOOD_CSV[name])
    problem = Problem.from_file("means.csv")
    assert problem.means.tolist() == TABLE and problem.agents == 2


@pytest.mark.parametrize(
    "text", ["Agent,ARM,Value\n0,0,1\n0,1,0\n0,1,1\n", "arm,value,agent\n0,1,0\n1,0,0\n1,1,0\n"]
)
def test_ratings_in_another_case_or_order(text, folder):
    """Catches ratings in [0, 1] that are read as means because of how their header is written."""
    Path("ratings.csv").write_text(text)
    problem = Problem.from_file("ratings.csv")
    assert problem.probabilities.tolist() == [[[0.0, 1.0], [0.5, 0.5]]]


def test_one_row_for_many_agents(folder):
    """Catches agents ignored, or demanded to be the rows, where one row is shared."""
    Path("means.CSV").write_bytes(b"0.1,0.2\n")
    Path("means.csv").write_bytes(b"0.1,0.2\n")
    shared = Problem.from_file(Path("means.CSV"), agents=7)
    assert shared.agents == 7 and shared.homogeneous and shared.means.tolist() == [[0.1, 0.2]]
    assert Problem.from_file("means.csv").agents == 1
    np.savez("means.npz", means=[0.1, 0.2])
    assert Problem.from_file("means.npz", agents=7).means.tolist() == [[0.1, 0.2]]


ROWS = "must be a table with equally long rows; give one column per arm"
WIDTH = "must be a row of 2 cells, as the first one; it has 1: give one column per arm"
MEND = "must be all numbers; mend that line"
DECIMAL = "must be all numbers; write {!r} as a plain decimal number"
RATING = "must be an observed rating; give agent, arm and a number in every line"
CELLS = "must be plain cells; drop the mark of UTF-8, or the space before the quote"
NUL = "must be a table of text; it holds a NUL: save it as CSV in UTF-8"
CSV = "must be a row of CSV; it has a {}"
COMMAS = (
    "must be separated by commas; it has {}: save it with commas, and points in decimal numbers"
)
INDEX = "must be means alone; its first column {}: save it without, as {} does".format
BARE = "to_csv(index=False, header=False)"
POINT = ", or write means with a point, such as 1.0"
HEADER = (
    f"must be means or names, not whole numbers alone; drop that line ({BARE}), "
    "or write means with a point, such as 1.0"
)
NAMELESS = "drop names of rows (in R, row.names=FALSE), or the header"
AS_HEADER = "must be a row of {} cells, as the header; it has {}: {}".format
QUOTES = "must be means as those below; its quotes make it names: drop the quotes, or that line"
LABEL = "must be one label per agent; two labels are the same number: write it in one way"
LIKE = (
    "must be the header agent,arm,value or one name for each arm; for ratings, use fmab problem "
    "or fmab_jax.ratings.from_table; for means, name arms"
)
SHORTENED = (
    "means='means.csv, agent 9.78014E+12': must be whole labels of each agent; "
    "a spreadsheet has shortened it: save the column as texts"
)
QUOTED = "must be a row of CSV; write quotes in a quoted cell twice, and a comma behind it"
LONG_CELL = "cell of more than 131,072 characters, or a quote that nothing closes"
RETURN = CSV.format("carriage return that ends no line")
HEAD = b"agent,arm,value\n"


def at(line, text):
    """Returns the refusal of a line of means.csv."""
    return f"means='means.csv, line {line}': {text}"


NO_NUMBERS = {
    "nan": "nan",
    "infinity": "-inf",
    "underscore": "0.1_5",
    "arabic digits": "\u0660.\u0661",
    "full-width digits": "\uff10.5",
    "overflow": "1e400",
    "complex": "1+0j",
}
BAD_CSV = {
    "empty": (b"", f"means='means.csv': {ROWS}"),
    "header only": (b"a,b\n", f"means='means.csv': {ROWS}"),
    "ragged": (b"0.1,0.2\n0.3\n", at(2, WIDTH)),
    **{
        f"{cell} that becomes zero": (
            *(f"0.1,0.2\n0.3,{cell}\n".encode(), at(2, DECIMAL.format(cell))),
        )
        for cell in ("1e-400", "-1e-400", "1E-9999", "0.001e-323")
    },
    "a rating that becomes zero": (HEAD + b"a,x,0\na,x,1e-400\n", at(3, RATING)),
    "a short rating": (HEAD + b"a,x,0\na,1\n", at(3, RATING)),
    "a rating behind a space and a quote": (HEAD + b'a,x,0\na, "x",1\n', at(3, CELLS)),
    "two files of ratings in one": (HEAD + b"a,x,0\n\xef\xbb\xbfa,x,1\n", at(3, CELLS)),
    "an agent in two forms": (HEAD + b"1,x,0\n1.0,x,1\n", f"means='means.csv': {LABEL}"),
    "an agent that a spreadsheet has shortened": (HEAD + b"9.78014E+12,x,0\n", SHORTENED),
    "a carriage return in a row": (b"0.1,0.2\n0.3,0.4\r0.5,0.6\n", at(2, RETURN)),
    "carriage returns alone": (b"0.1,0.2\r0.3,0.4\r", at(1, RETURN)),
    "an open quote": (b'0.1,0.2\n"0.3,0.4\n', at(2, CSV.format("quote that nothing closes"))),
    "a quote inside": (*(b'0.1,"0."2\n', at(1, QUOTED)),),
    "a NUL": (HEAD + b"a,x,0\na\0,x,1\n", at(3, NUL)),
    "text": (b"a,b\n0.1,0.2\n0.3,oops\n", at(3, MEND)),
    "missing cell": (b"0.1,0.2\n0.3,\n", at(2, MEND)),
    "semicolons": (b"0.1;0.2\n0.3;0.4\n", at(1, COMMAS.format("semicolons"))),
    "semicolons in a header": (b"a;b\n0,3;0,4\n", at(1, COMMAS.format("semicolons"))),
    "tabs": (b"a,b\n0.3\t0.4\n", at(2, COMMAS.format("tabs"))),
    **{
        f"{name}, line {line}": (
            *((line - 1) * b"0.1,0.1\n" + cell.encode() + b",0.2\n0.3,0.4\n",),
            at(line, DECIMAL.format(cell)),
        )
        for line in (1, 2)
        for name, cell in NO_NUMBERS.items()
    },
    "a header of nothing but nan": (b"nan,nan\n0.1,0.2\n", at(1, DECIMAL.format("nan"))),
    "blanks": (b"0.1 0.2\n0.3 0.4\n", at(1, COMMAS.format("blanks"))),
    "blanks, as R writes them": (b'"V1" "V2"\n"1" 0.1 0.2\n', at(1, QUOTED)),
    **{
        f"pandas index {first!r}": (
            *(first + b",arm 1,arm 2\n0,0.1,0.2\n1,0.3,0.4\n",),
            f"means='means.csv': {INDEX('has no name', BARE)}",
        )
        for first in (b"", b"Unnamed: 0", b'""')
    },
    "an unnamed column that counts nothing": (
        *(b",arm 1\n0.1,0.2\n", f"means='means.csv': {INDEX('has no name', BARE)}"),
    ),
    **{
        f"index {header!r} of {first}": (
            *(header + "\n{},0.1,0.2\n{},0.3,0.4\n".format(*first).encode(),),
            f"means='means.csv': {INDEX('counts the rows', BARE)}, or call it otherwise",
        )
        for header in (b"agent,a,b", b"Index,a,b", b"id,a,b")
        for first in ((0, 1), (1, 2), (1, 0), (7, 7), ("0.0", "1.0"))
    },
    **{
        f"index of {first}, above {header!r}": (
            *(header + "{},0.1,0.2\n{},0.3,0.4\n".format(*first).encode(),),
            f"means='means.csv': {INDEX('seems to count the rows', BARE)}{POINT}",
        )
        for header in (b"", b"player,a,b\n")
        for first in ((0, 1), (1, 2), (1, 0), (7, 9))
    },
    "index of one row": (
        *(
            b"player,a,b\n1,0.1,0.2\n",
            f"means='means.csv': {INDEX('seems to count the rows', BARE)}{POINT}",
        ),
    ),
    "index in quotes, of one row": (
        *(b'"1",0.1,0.2\n', f"means='means.csv': {INDEX('is in quotes, as names are', BARE)}"),
    ),
    **{
        f"index of names, above {header!r}": (
            *(header + b"ann,0.1,0.2\n", f"means='means.csv': {INDEX('names the rows', BARE)}"),
        )
        for header in (b"", b"agent,a,b\n", b"player,a,b\n", b"index,0,1\n")
    },
    **{
        f"a header of {header}": (f"{header}\n0.1,0.2\n".encode(), at(1, HEADER))
        for header in ("0,1", "1,2", "1,0", '"0","1"', "2019,2020")
    },
    "a header of one number": (b"0\n0.1\n", at(1, HEADER)),
    "a header below an empty line": (b"\n0,1\n0.1,0.2\n", at(2, HEADER)),
    "a header of quoted numbers": (b'"0.1","0.5"\n0.1,0.2\n', at(1, QUOTES)),
    "a narrow header": (
        *(b'"a","b"\n"1",0.1,0.2\n"2",0.3,0.4\n',),
        at(2, AS_HEADER(2, 3, NAMELESS)),
    ),
    "a much narrower header": (*(b"# means\n0.1,0.2\n", at(2, AS_HEADER(1, 2, NAMELESS))),),
    "a wide header": (*(b"a,b,c\n0.1,0.2\n", at(2, AS_HEADER(3, 2, "give one column per arm"))),),
    "a row that is wider than the header": (
        *(b"a,b\n0.1,0.2\n0.1,0.2,0.3,0.4\n",),
        at(3, AS_HEADER(2, 4, "give one column per arm")),
    ),
    "a name that two columns have": (
        *(b"a,b,a\n0,1,0\n",),
        at(1, "must be a table with one column of each name; rename one 'a'"),
    ),
    **{
        f"like ratings: {header}": (
            *(header.encode() + b"\n" + b",".join([b"0"] * (header.count(",") + 1)) + b"\n",),
            at(1, LIKE),
        )
        for header in (
            *("agent,arm,value,time", "user,item,rating", "User_ID,item id,stars"),
            *("agent,arm,reward", "value,arm"),
        )
    },
    "too large": (b"a,b\n0.1,0.2\n0.3,1.5\n", f"means.csv: means[1, 1]=1.5: {RANGE}"),
    "negative": (b"0.1,-0.2\n", f"means.csv: means[0, 1]=-0.2: {RANGE}"),
    "utf-16": ("0.1,0.2\n".encode("utf-16"), at(1, NUL)),
    "Latin-1": (
        *(b"\xe9,b\n0.1,0.2\n", "means='means.csv': must be a UTF-8 CSV file; save it as CSV"),
    ),
    "endless cell": (b"0.1," + b"9" * 200_000 + b"\n", at(1, CSV.format(LONG_CELL))),
}


@pytest.mark.parametrize("arms", [1, 2, 3])
@pytest.mark.parametrize("names", [None, "abc"])
@pytest.mark.parametrize("index", [None, "agent", "player"])
@pytest.mark.parametrize(
    "how", [{}, {"index": False}, {"header": False}, {"index_label": False}], ids=str
)
def test_what_pandas_writes_is_what_is_read(arms, names, index, how, folder):
    """Catches a header or an index that is read as means, and a remedy that is refused in turn."""
    means = np.array([[0.5, 0.25, 1.0], [0.125, 0.0, 0.75]])[:, :arms]
    frame = pd.DataFrame(means, columns=names and [*names[:arms]]).rename_axis(index)
    frame.to_csv("means.csv", **how)
    if how == {"index": False} and names:
        assert Problem.from_file("means.csv").means.tolist() == means.tolist()
    else:
        # Of columns that have names, R's option leaves the header.
        bare = f"in R, row.names=FALSE|{re.escape(BARE)}"
        (remedy,) = re.findall(bare, refusal("means.csv"))
        frame.to_csv("means.csv", index=False, header=remedy != BARE)
        assert Problem.from_file("means.csv").means.tolist() == means.tolist()


@pytest.mark.parametrize("first", [b"0.1,0.2x", b"0.1,0.2,", b"0.1,O.2", b"0.1,"])
def test_a_first_line_with_numbers_is_no_header(first, folder):
    """Catches an agent that is dropped in silence because of a slip in the first line."""
    Path("means.csv").write_bytes(first + b"\n0.3,0.4\n")
    assert refusal("means.csv") == at(1, MEND)


def test_rows_that_contradict_agents(folder):
    """Catches rows that are dropped or repeated to fit the number of agents."""
    Path("means.csv").write_bytes(b"0.1,0.2\n0.3,0.4\n")
    assert refusal("means.csv", 3) == ROWS_GIVEN


def test_paths_that_are_no_means(folder):
    """Catches a traceback from the file system."""
    Path("folder.csv").mkdir()
    for name, why in (
        ("none.csv", "readable file; check the path (no such file or directory)"),
        ("means.txt", ".csv or .npz file; convert it"),
        ("means", ".csv or .npz file; convert it"),
        ("folder.csv", "readable file; check the path (is a directory)"),
    ):
        assert refusal(name) == f"means={name!r}: must be a {why}"


def test_files_are_refused_by_size(folder, monkeypatch):
    """Catches a file that is read before its size is looked at."""
    Path("means.csv").write_bytes(b"0.1,0.2\n")
    monkeypatch.setattr(tables, "_MAX_FILE_BYTES", 8)
    assert Problem.from_file("means.csv").arms == 2
    monkeypatch.setattr(tables, "_MAX_FILE_BYTES", 7)
    monkeypatch.setattr(tables, "_read_csv", lambda *_: pytest.fail("read"))
    assert refusal("means.csv") == "means='means.csv': must be at most 1 GiB; use a smaller file"


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<f2"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_good_npz(dtype, save, folder):
    """Catches byte order, Fortran order or a second array that changes the means."""
    means = np.array([[0.5, 0.25, 1.0], [0.125, 0.0, 0.75]], dtype)
    for name, arrays in {
        "named": {"means": means, "labels": np.arange(4)},
        "alone": {"table": means},
        "fortran": {"means": np.asfortranarray(means)},
    }.items():
        save(f"{name}.npz", **arrays)
        assert Problem.from_file(f"{name}.npz").means.tolist() == means.tolist()
    save("whole.npz", means=np.array([[0, 1], [1, 0]]))
    assert Problem.from_file("whole.npz").means.tolist() == [[0, 1], [1, 0]]


def test_long_numbers_that_become_zero(folder):
    """Catches a mean of 1e-400, in a long double, that is read as 0."""
    tiny = np.longdouble("1e-400")
    if tiny == 0:
        pytest.skip("long doubles are doubles here")
    np.savez("means.npz", means=np.array([[tiny, 0.5]]))
    due = "means[0, 0]=np.longdouble('1e-400'): must be a number of float64's range; give float64"
    assert refusal("means.npz") == f"means.npz: {due}"
    with pytest.raises(ValueError, match=r"^probabilities\[0, 0\]=np.longdouble\('1e-400'\): "):
        Problem.ratings([0, 1], np.array([[tiny, 1]]), 2)
    np.savez("means.npz", means=np.array([[0.25, 0.5]], np.longdouble))
    assert Problem.from_file("means.npz").means.tolist() == [[0.25, 0.5]]


def test_names_of_arms_in_files_of_ratings(folder):
    """Catches names of agents, or of another number of arms, and a file that is refused for them:
    they change no number."""
    levels, table = np.array([1.0, 2.0]), np.array([[[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]])
    ratings = {"levels": levels, "probabilities": table}
    names = ["x", "", "äöü\n"]
    agents = np.array(["a"])
    np.savez("means.npz", **ratings, arm_labels=np.array(names), agent_labels=agents)
    assert tables.read("means.npz").arm_labels == tuple(names)
    np.savez("means.npz", probabilities=table[0], levels=levels, arm_labels=np.array(names))
    assert tables.read("means.npz").arm_labels == tuple(names)
    for other in (names[:2], [names], [1, 2, 3], [b"x", b"y", b"z"], np.array(names, object)):
        np.savez("means.npz", **ratings, arm_labels=np.array(other))
        assert tables.read("means.npz").arm_labels is None
        assert Problem.from_file("means.npz", 4).probabilities.tolist() == table.tolist()
    np.savez("means.npz", means=table[0], arm_labels=np.array(names))
    assert tables.read("means.npz").arm_labels is None
    Path("means.csv").write_text("agent,arm,value\na,10,1\na,9,2\n")
    assert tables.read("means.csv").arm_labels == ("9", "10")


def npy(shape, descr="'<f8'", data=b"", version=1):
    """Returns the bytes of an array file that claims what it likes."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(header)) + header + data


def write_zip(*members):
    """Writes means.npz from raw members."""
    with zipfile.ZipFile("means.npz", "w") as archive:
        for name, data in members:
            archive.writestr(name, data)
    return "means.npz"


FOUR = struct.pack("<4d", 0.1, 0.2, 0.3, 0.4)
ONE_ARRAY = "means='means.npz': must be an NPZ with one array, or one called means; rename it"
NOT_NPZ = "means='means.npz': must be an NPZ file; save it with numpy.savez"
NOT_NUMBERS = "means='means.npz': must be numbers, at most 1 GiB; save float64 means"

BAD_NPY = {
    "eight terabytes": (npy("(1000000000000,)"), NOT_NUMBERS),
    "overflowing size": (npy("(1000000000, 1000000000, 1000000000)"), NOT_NUMBERS),
    "objects": (npy("(2,)", "'|O'", b"\x80\x04N."), NOT_NUMBERS),
    "records": (npy("(2,)", "[('a', '<f8')]", FOUR[:16]), NOT_NUMBERS),
    "complex": (npy("(2,)", "'<c16'", FOUR), NOT_NUMBERS),
    "text": (npy("(2,)", "'<U4'", FOUR), NOT_NUMBERS),
    "booleans": (npy("(2,)", "'|b1'", b"\0\1"), NOT_NUMBERS),
    "cut short": (npy("(2, 2)", data=FOUR[:-1]), NOT_NPZ),
    "negative size": (npy("(-2, 2)", data=FOUR), NOT_NPZ),
    "no header": (b"\x93NUMPY\1\0", NOT_NPZ),
    "later version": (npy("(2, 2)", data=FOUR, version=9), NOT_NPZ),
    "expression": (npy("(__import__('os').getpid(),)"), NOT_NPZ),
    "pickle": (b"\x80\x04]\x94.", NOT_NPZ),
    "nothing": (b"", NOT_NPZ),
    "three axes": (npy("(1, 2, 2)", data=FOUR), f"means=(1, 2, 2): {SHAPE}"),
    "nan": (npy("(1, 1)", data=struct.pack("<d", NAN)), f"means.npz: means[0, 0]=nan: {RANGE}"),
}


def frugal_refusal():
    """Returns the text that reading means.npz must end in, with less than 20 MB."""
    tracemalloc.start()
    try:
        found = refusal("means.npz")
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    return found


@pytest.mark.parametrize("name", BAD_NPY)
def test_bad_arrays_in_an_npz(name, folder):
    """Catches unpickling, or memory taken on the word of a header; less than 20 MB may be used."""
    data, text = BAD_NPY[name]
    write_zip(("means.npy", data))
    assert frugal_refusal() == text


def test_zips_that_are_no_means(folder):
    """Catches the wrong member read, and bytes that are no archive."""
    good = npy("(2, 2)", data=FOUR)
    for members in ((("a.npy", good), ("b.npy", good)), ()):
        assert refusal(write_zip(*members)) == ONE_ARRAY
    for data in (b"", b"PK\3\4", b"not a zip", good):
        Path("means.npz").write_bytes(data)
        assert refusal("means.npz") == NOT_NPZ


def test_members_outside_the_archive_write_nothing(folder):
    """Catches a member's name used as a path."""
    good = npy("(2, 2)", data=FOUR)
    inner = folder / "a" / "b"
    write_zip(("../../../means.npy", good))
    assert Problem.from_file("means.npz").means.tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert not inner.exists() and sorted(path.name for path in folder.iterdir()) == ["means.npz"]
    write_zip(("/etc/means.npy", good), ("means.npy", good))
    assert Problem.from_file("means.npz").agents == 2


def test_a_hundred_thousand_members(folder, monkeypatch):
    """Catches members being opened one by one to find the means; the names alone tell."""
    write_zip(*((f"{number}.npy", b"") for number in range(10**5)))
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("opened"))
    assert refusal("means.npz") == ONE_ARRAY


def test_every_damaged_npz_is_refused_or_read_right(folder):
    """Catches a flipped bit that changes a mean, or a truncated file that loads."""
    np.savez("means.npz", means=np.array(TABLE))
    good = Path("means.npz").read_bytes()
    for at in range(0, len(good), 5):
        Path("means.npz").write_bytes(good[:at])
        assert refusal("means.npz") == NOT_NPZ
    rng = np.random.default_rng(0)
    flips = zip(rng.permutation(len(good))[:200], rng.integers(0, 8, 200), strict=True)
    assert refused_flips(good, flips) > 100


def refused_flips(good, flips):
    """Returns how many flipped bits are refused; with all others, the means stay as they were."""
    refused = 0
    for at, bit in flips:
        damaged = bytearray(good)
        damaged[at] ^= 1 << bit
        Path("means.npz").write_bytes(damaged)
        try:
            assert Problem.from_file("means.npz").means.tolist() == TABLE
        except ValueError as error:
            assert str(error).startswith("means='means.npz': must be "), error
            refused += 1
    return refused


def damaged_npz(how):
    """Writes a compressed means.npz, damaged in one of the ways that zipfile has names for."""
    np.savez_compressed("means.npz", means=np.random.default_rng(0).random((5, 50)))
    data = bytearray(Path("means.npz").read_bytes())
    directory = data.rindex(b"PK\1\2")
    if how == "stream":
        # After the local header, its name, and 20 bytes of extra field: the deflate stream.
        data[60:90] = b"\xff" * 30
    elif how == "encrypted":
        data[directory + 8] |= 1
    elif how == "method":
        data[directory + 10] = 99
    elif how == "version":
        data[directory + 6] = 99
    Path("means.npz").write_bytes(data)


@pytest.mark.parametrize("how", ["stream", "encrypted", "method", "version", "header", "shape"])
def test_npz_damage_that_libraries_report_in_their_own_ways(how, folder):
    """Catches tracebacks of zlib, zipfile and tokenize, where one line should name the file."""
    damaged_npz(how)
    if how == "header":
        write_zip(("means.npy", b"\x93NUMPY\1\0" + struct.pack("<H", 3) + b"((\n"))
    if how == "shape":
        write_zip(("means.npy", npy("(0, 1000000000000000000000000000)")))
    assert refusal("means.npz").startswith("means='means.npz': must be ")


# --- problems as values ---

NAMED = {
    "uniform": lambda: Problem.uniform(5, 4),
    "agents": lambda: Problem.uniform(6, 4),
    "arms": lambda: Problem.uniform(5, 3),
    "widest spread": lambda: Problem.heterogeneous(5, 4),
    "spread": lambda: Problem.heterogeneous(5, 4, 0.5),
    "other spread": lambda: Problem.heterogeneous(5, 4, 0.5000000000000001),
    "gap": lambda: Problem.with_gap(5, 4, 0.1),
    "other gap": lambda: Problem.with_gap(5, 4, 0.2),
    "both": lambda: Problem.heterogeneous(5, 4, 0.5, 0.1),
    "gaussian": lambda: Problem.uniform(5, 4, Gaussian(0.1)),
    "other sd": lambda: Problem.uniform(5, 4, Gaussian(0.2)),
    "fixed": lambda: Problem([0.1, 0.2, 0.3, 0.4], 5),
    "a bit": lambda: Problem([0.1, 0.2, 0.3, 0.4 + 2**-54], 5),
    "more share them": lambda: Problem([0.1, 0.2, 0.3, 0.4], 6),
    "rows": lambda: Problem([[0.1, 0.2, 0.3, 0.4]] * 4 + [[0.1, 0.2, 0.3, 0.5]]),
    "fixed gaussian": lambda: Problem([0.1, 0.2, 0.3, 0.4], 5, Gaussian(0.1)),
    "ratings": lambda: Problem.ratings([1, 2, 3], np.full((4, 3), 1 / 3), 5),
    "levels": lambda: Problem.ratings([1, 2, 4], np.full((4, 3), 1 / 3), 5),
    "shares": lambda: Problem.ratings([1, 2, 3], [[0.5, 0, 0.5]] * 4, 5),
}


def test_problems_are_values():
    """Catches equality by identity, a hash that forgets a field, or texts that two problems share.

    The texts name what agents and arms do not: captions and file names are made of them.
    """
    first, again = ([make() for make in NAMED.values()] for _ in range(2))
    assert first == again and list(map(hash, first)) == list(map(hash, again))
    assert len(set(first)) == len(NAMED)
    described = [json.dumps(problem.describe(), allow_nan=False) for problem in first]
    assert len(set(described)) == len(NAMED)
    texts = [tuple(p.settings().items()) for p in first if (p.agents, p.arms) == (5, 4)]
    assert len(set(texts)) == len(texts) == len(NAMED) - 3
    bit = first[list(NAMED).index("a bit")].describe()
    assert json.loads(json.dumps(bit))["means"] == [[0.1, 0.2, 0.3, 0.4 + 2**-54]]
    assert Problem.uniform(5, 4) != "problem"
    assert Problem([0.0, 0.5], 2) == Problem([-0.0, 0.5], 2)
    assert Problem([[0.5, 0.25]] * 3) == Problem([0.5, 0.25], 3)


def test_settings_name_what_differs_from_the_default():
    """Catches a setting that is left out, or named although nobody set it."""
    assert Problem.uniform(5, 4).settings() == {}
    problem = Problem.heterogeneous(5, 4, 0.5, 0.1, Gaussian(0.25))
    assert problem.settings() == {
        "spread": "spread = 0.5",
        "instance_gap": "smallest gap = 0.1",
        "rewards": "Gaussian rewards, sd 0.25",
    }
    ratings = NAMED["ratings"]()
    assert ratings.settings()["rewards"] == "ratings 1, 2, 3"
    assert ratings.settings()["means"].startswith("fixed means ")


# --- room for more agents ---


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(Problem.heterogeneous(5, 6), marks=pytest.mark.slow),
        pytest.param(Problem.heterogeneous(5, 6, 0.4, 0.1), marks=pytest.mark.slow),
        pytest.param(Problem.heterogeneous(1, 6), marks=pytest.mark.slow),
        pytest.param(Problem(np.random.default_rng(0).random((5, 6))), marks=pytest.mark.slow),
        Problem(np.random.default_rng(0).normal(size=(5, 6)), rewards=Gaussian(0.5)),
        Problem.ratings([1, 2, 5], np.random.default_rng(0).dirichlet(np.ones(3), (5, 6))),
    ],
    ids=["drawn", "gap", "one", "fixed", "gaussian", "ratings"],
)
def test_room_for_more_agents_changes_no_bit(problem):
    """Catches a mean, gap or parameter that depends on rows which do not exist."""
    tight = instances(problem, 30)
    agents = problem.agents
    for room in (agents, agents + 1, 8, 13, 64):
        wide = instances(problem, 30, room=room)
        assert wide.means.shape == (30, room, 6)
        np.testing.assert_array_equal(wide.means[:, :agents], tight.means)
        assert (wide.means[:, agents:] == 0).all()
        np.testing.assert_array_equal(wide.gaps, tight.gaps)
        np.testing.assert_array_equal(wide.smallest_gap, tight.smallest_gap)
        for there, here in zip(wide.parameters, tight.parameters, strict=True):
            np.testing.assert_array_equal(there[:, : here.shape[1]][:, :agents], here)
    trees = {jax.tree.structure(Problem.heterogeneous(m, 6).bind(8)) for m in (2, 5, 8)}
    assert len(trees) == 1


def test_room_is_at_least_the_agents():
    """Catches agents that are dropped to fit a room, and a room where agents are alike."""
    refuses(r"^room=4: must be a whole number in \[5, ", Problem.heterogeneous(5, 6).bind, 4)
    assert Problem.uniform(5, 6).bind(64).rows == 1


def test_bound_problems_differ_where_compilations_do():
    """Catches a value in the tree's structure, which would compile anew for each."""

    def structure(problem):
        return jax.tree.structure(problem.bind())

    assert structure(Problem.uniform(5, 4)) == structure(Problem.uniform(9, 4))
    assert structure(Problem.with_gap(5, 4, 0.1)) == structure(Problem.with_gap(5, 4, 0.2))
    alike = [structure(Problem.uniform(5, 4, Gaussian(sd))) for sd in (0.1, 0.2)]
    assert alike[0] == alike[1] != structure(Problem.uniform(5, 4))
    assert structure(Problem.uniform(5, 4)) != structure(Problem.uniform(5, 3))
    assert structure(Problem([0.1] * 4, 5)) != structure(Problem.uniform(5, 4))


# --- laws of rewards ---


def test_means_of_ratings():
    """Catches ratings that are not scaled, or probabilities in another order."""
    table = np.random.default_rng(1).dirichlet(np.ones(4), (3, 5))
    levels = np.array([1, 2, 4, 9])
    problem = Problem.ratings(levels, table)
    due = table @ (levels - 1) / 8
    np.testing.assert_allclose(problem.means, due, rtol=1e-14)
    found = instances(problem, 2)
    np.testing.assert_allclose(found.means, [due] * 2, rtol=1e-14)
    np.testing.assert_allclose(np.stack(found.parameters, -1), [table] * 2, rtol=1e-14)
    global_mean = due.mean(axis=0)
    np.testing.assert_allclose(found.gaps[0], global_mean.max() - global_mean, atol=1e-15)
    alike = Problem.ratings(levels, table[0], agents=7)
    assert (alike.agents, alike.rows, alike.homogeneous) == (7, 1, True)
    assert alike == Problem.ratings(levels, [table[0]] * 7)
    assert problem.fixed(3) is problem


def test_gaussian_means_may_be_any_finite_number():
    """Catches Bernoulli's range forced upon other laws, and a fixed draw that loses its law."""
    problem = Problem([[-5.0, 3.0], [1e6, 0.0]], rewards=Gaussian(0.5))
    found = instances(problem, 1)
    np.testing.assert_array_equal(found.gaps, [[0, 499997.5 - 1.5 + 0.0 + 0.0]])
    mean, sd = found.parameters
    np.testing.assert_array_equal(mean, [problem.means])
    np.testing.assert_array_equal(sd, [[[0.5, 0.5]]])
    drawn = Problem.heterogeneous(3, 4, rewards=Gaussian(2.0))
    assert drawn.fixed(1).rewards == Gaussian(2.0)
    np.testing.assert_array_equal(drawn.fixed(1).means, Problem.heterogeneous(3, 4).fixed(1).means)


TABLE_SUM = "must be 1 in sum over levels; divide the cell by its sum"
LAW = "must be a reward law: bernoulli, gaussian:SD, "
FOLLOWS = (
    "must be a law that follows from means; "
    "state ratings with Problem.ratings(levels, probabilities)"
)
FINITE = "must be a finite number; give the mean of each arm"
SHARE = "must be in [0, 1]; probabilities of a cell sum to 1"
LEVELS = "must be a table with 3 levels, its last axis; give one probability per level"
SHARED = (
    "must be given with [arm, level] probabilities; give agents too, or [agent, ...] probabilities"
)
TABLED = (
    "must be an array shaped [arm, level] or [agent, arm, level], not empty; give a whole table"
)
LAW_REFUSALS = [
    (lambda: Problem([0.5], 2, "normal"), f"rewards='normal': {LAW}"),
    (lambda: Problem([0.5], 2, Gaussian), "rewards=<class "),
    (lambda: Problem.uniform(2, 3, Ratings([1, 2])), f"rewards='ratings 1, 2': {FOLLOWS}"),
    (lambda: Problem([0.5, INF], 2, Gaussian(1)), f"means[1]=inf: {FINITE}"),
    (lambda: Problem.ratings([1, 2], [[0.5, 0.4]], 3), f"probabilities[0]=0.9: {TABLE_SUM}"),
    (
        lambda: Problem.ratings([1, 2], [[[0.5, 0.5], [0.5, 0.5000001]]]),
        f"probabilities[0, 1]=1.0000000999999998: {TABLE_SUM}",
    ),
    (lambda: Problem.ratings([1, 2], [[1.5, -0.5]], 3), f"probabilities[0, 0]=1.5: {SHARE}"),
    (lambda: Problem.ratings([1, 2], [[NAN, 0.5]], 3), f"probabilities[0, 0]=nan: {SHARE}"),
    (lambda: Problem.ratings([1, 2, 3], [[0.5, 0.5]], 3), f"probabilities=(1, 2): {LEVELS}"),
    (lambda: Problem.ratings([1, 2], [[0.5, 0.5]]), f"agents=None: {SHARED}"),
    (lambda: Problem.ratings([1, 2], [0.5, 0.5], 3), f"probabilities=(2,): {TABLED}"),
    (lambda: Problem.ratings([2, 1], [[0.5, 0.5]], 3), "levels=[2, 1]: must be increasing; "),
]


@pytest.mark.parametrize(("call", "text"), LAW_REFUSALS, ids=[t[:24] for _, t in LAW_REFUSALS])
def test_refusals_of_laws(call, text):
    """Catches a law that does not fit its means, and probabilities that are none."""
    assert refused(call).startswith(text)


class _Loud:
    def __array__(self, *_, **__):
        raise TypeError("no array")


MISREAD = {
    "complex": np.array([0.5 + 0.1j, 0.2]),
    "complex without imaginary part": np.array([0.5 + 0j, 0.2]),
    "text": ["0.5", "0.2"],
    "byte text": np.array([b"0.5"]),
    "objects": np.array([0.5, "0.2"], object),
    "beyond float": [0.5, 10**400],
    "an integer beyond 2^63": [0, 2**70],
    "fractions": [Fraction(1, 2)],
    "durations": np.array([1, 0], "m8[s]"),
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "records": np.array([(0.5,)], [("a", float)]),
    "truths": [True, False],
    "no array at all": _Loud(),
}


@pytest.mark.parametrize("name", MISREAD)
def test_values_that_numpy_would_read_as_something_else(name):
    """Catches an imaginary part that is dropped, text that is parsed, or a traceback."""
    refuses("^means=.*: must be an array of numbers; ", Problem, MISREAD[name], 2)


def test_masked_means():
    """Catches masked entries that come back to life; an unused mask is no harm."""
    values = np.ma.masked_array([0.5, 0.2], mask=[False, True])
    due = "means='masked values': must be an array without gaps; fill the masked entries"
    assert refused(Problem, values, 2) == due
    values.mask = False
    assert Problem(values, 2).means.tolist() == [[0.5, 0.2]]


def test_endless_ranges_are_not_read():
    """Catches a range of 10^12, or 10^30, that is made into an array."""
    for size in (10**12, 10**30):
        refuses("^means=.*: must be at most 10,000,000 rows; ", Problem, range(size), 2)


def test_agents_that_are_an_array():
    """Catches NumPy's complaint about the truth of an array, in place of a refusal."""
    found = refused(Problem, [[0.5], [0.4]], np.array([2, 2]))
    assert found == f"agents=array([2, 2]): {WHOLE_AGENTS}"
    refuses("^agents=1000", Problem, [[0.5], [0.4]], 10**400)


# --- doors of files ---

PIPE = "must be a plain file; it is a pipe or a device: copy its content"


@pytest.mark.parametrize("name", ["means.csv", "means.npz"])
def test_pipes_and_devices_are_refused(name, folder):
    """Catches a reader that waits for ever at a pipe, or reads a device without end."""
    os.mkfifo(name)
    assert refusal(name) == f"means={name!r}: {PIPE}"
    Path(name).unlink()
    for target in ("/dev/zero", "/dev/null", "pipe.csv"):
        if target == "pipe.csv":
            os.mkfifo(target)
        Path(name).symlink_to(target)
        assert refusal(name) == f"means={name!r}: {PIPE}"
        Path(name).unlink()


def test_a_file_that_becomes_a_pipe_is_refused(folder, monkeypatch):
    """Catches a check before the file is opened, and none after."""
    os.mkfifo("means.csv")
    Path("plain.csv").write_bytes(b"0.1,0.2\n")
    plain = os.stat("plain.csv")
    monkeypatch.setattr(os, "stat", lambda *_, **__: plain)
    assert refusal("means.csv") == f"means='means.csv': {PIPE}"
    monkeypatch.undo()


def test_links_to_plain_files_are_read(folder):
    """Catches links refused where they are only read through."""
    Path("plain.csv").write_bytes(b"0.1,0.2\n0.3,0.4\n")
    Path("means.csv").symlink_to("plain.csv")
    assert Problem.from_file("means.csv").means.tolist() == [[0.1, 0.2], [0.3, 0.4]]
    Path("lost.csv").symlink_to("nothing.csv")
    assert refusal("lost.csv").endswith(
        "a readable file; check the path (no such file or directory)"
    )


@pytest.mark.parametrize("path", [None, 3, b"means.csv", "means\0.csv", ["means.csv"]])
def test_paths_that_are_no_paths(path):
    """Catches a TypeError of pathlib, or of the file system, in place of one line."""
    refuses("^means=.*: must be the path of a .csv or .npz file; ", Problem.from_file, path)


def test_a_huge_header_is_not_read(folder):
    """Catches an array file whose header claims gigabytes, and compresses to nothing."""
    length = 200 * 2**20
    data = b"\x93NUMPY\2\0" + struct.pack("<I", length) + b" " * length
    with zipfile.ZipFile("means.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("means.npy", data)
    del data
    assert frugal_refusal() == NOT_NPZ


def test_a_line_of_too_many_columns(folder, monkeypatch):
    """Catches a line that is turned into numbers before anybody counts them."""
    monkeypatch.setattr(tables, "_MAX_COLUMNS", 3)
    Path("means.csv").write_bytes(b"0.1,0.1,0.1,0.1\n")
    found = refusal("means.csv")
    assert found == "means='means.csv, line 1': must be at most 1,000,000 columns; use fewer arms"


LONG = b"agent,arm,value\n10,1,5\n10,1,4\n9,1,1\n9,2,1\n10,2,5\n10,1,4\n9,1,3\n9,2,1\n"


def test_observed_ratings(folder):
    """Catches labels in the order of their text, or frequencies over the wrong axis."""
    Path("ratings.csv").write_bytes(LONG)
    problem = Problem.from_file("ratings.csv")
    due = [[[0.5, 0.5, 0, 0], [1, 0, 0, 0]], [[0, 0, 2 / 3, 1 / 3], [0, 0, 0, 1]]]
    assert problem == Problem.ratings([1, 3, 4, 5], due)
    assert problem.kind == "ratings" and problem.rewards == Ratings([1, 3, 4, 5])
    np.testing.assert_allclose(problem.means, [[0.25, 0], [(1.5 + 1) / 3, 1]], rtol=1e-15)
    Path("one.csv").write_bytes(b"agent,arm,value\nme,b,1\nme,a,0\nme,a,1\n")
    shared = Problem.from_file("one.csv", agents=4)
    assert shared.agents == 4 and shared.means.tolist() == [[0.5, 1.0]]


RATED = "must be rated at least once; drop that agent or arm, or add what was observed"
FEW_LEVELS = (
    "levels=[3.0]: must be 2 to 1,000 increasing numbers; "
    "give the possible ratings, such as [1, 2, 3, 4, 5]"
)
NO_RATINGS = {
    "no value": b"9,1,",
    "no agent": b",1,3",
    "nan": b"9,1,nan",
    "underscore": b"9,1,1_0",
    "overflow": b"9,1,1e999",
    "four cells": b"9,1,3,4",
    "a word": b"9,1,good",
}
BAD_LONG = {
    "empty cell": (LONG.replace(b"10,2,5\n", b""), f"means='means.csv, agent 10, arm 2': {RATED}"),
    "nothing": (HEAD, f"means='means.csv, no line at all': {RATED}"),
    "one level": (HEAD + b"1,1,3\n", FEW_LEVELS),
    **{name: (LONG + line + b"\n", at(10, RATING)) for name, line in NO_RATINGS.items()},
    "one label twice": (LONG + b"09,1,3\n", f"means='means.csv': {LABEL}"),
}


@pytest.mark.parametrize("name", [*BAD_CSV, *BAD_LONG])
def test_bad_csv(name, folder):
    """Catches a broken table that is read in part, a cell that is made up, or a message without its
    line."""
    data, text = (BAD_CSV | BAD_LONG)[name]
    Path("means.csv").write_bytes(data)
    assert refusal("means.csv") == text


def test_a_table_that_was_scaled_once_stays(folder):
    """Catches probabilities that move by a bit each time they are written and read."""
    rng = np.random.default_rng(4)
    for levels in (2, 3, 10, 99):
        once = Problem.ratings(range(levels), rng.dirichlet(np.ones(levels), (30, 20)))
        again = Problem.ratings(range(levels), once.probabilities)
        assert again == once and (again.probabilities == once.probabilities).all()
    off = Problem.ratings([0, 1], [[0.5, 0.5 + 4e-10]], 2).probabilities
    assert off.sum() == 1.0 and off[0, 0, 0] < 0.5


def test_ratings_in_an_npz(folder):
    """Catches probabilities read as means, or a law that is overruled in silence."""
    table = np.random.default_rng(0).dirichlet(np.ones(3), (2, 4))
    np.savez("ratings.npz", levels=[1, 2, 7], probabilities=table, other=np.ones(3))
    problem = Problem.from_file("ratings.npz")
    assert problem == Problem.ratings([1, 2, 7], table)
    line = "^rewards=Gaussian.*: must be left out with a file of r"
    refuses(line, Problem.from_file, "ratings.npz", rewards=Gaussian(1))
    np.savez("square.npz", levels=[[1, 2]], probabilities=table)
    assert refusal("square.npz") == "levels=(1, 2): must be one row of numbers; save levels [level]"
    np.savez("text.npz", levels=["a", "b"], probabilities=table)
    assert refusal("text.npz") == NOT_NUMBERS.replace("means.npz", "text.npz")
    np.savez("means.npz", means=[[-3.0, 2.0]])
    assert Problem.from_file("means.npz", rewards=Gaussian(1)).rewards == Gaussian(1)


@pytest.mark.slow
def test_every_flipped_bit_of_an_npz(folder):
    """Catches one bit, anywhere in a stored file, that changes a mean in silence."""
    np.savez("means.npz", means=np.array(TABLE))
    good = Path("means.npz").read_bytes()
    assert refused_flips(good, ((number // 8, number % 8) for number in range(8 * len(good)))) > 0
