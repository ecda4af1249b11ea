"""Instances against the laws they are said to follow; files good and bad; refusals word by word."""

import json
import struct
import zipfile
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from refusals import refused, refuses
from scipy import stats

from fmab_jax.core import keys
from fmab_jax.core.problems import Problem
from fmab_jax.core.rewards import Gaussian

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


@pytest.mark.parametrize("head", ["Agent,ARM,Value", "arm,value,agent"])
def test_ratings_are_no_means(head, folder):
    """Catches ratings in [0, 1] that are read as means."""
    Path("ratings.csv").write_text(f"{head}\n0,0,1\n0,1,0\n")
    assert "ratings.from_table" in refusal("ratings.csv")


@pytest.mark.parametrize(
    "row", ["1e-400,1e-400", "1_0,1_1", "infinity,infinity", "٠.١,٠.٢", '"1",0.5', '"0.1","0.5"']
)
def test_a_first_row_that_is_odd_is_refused(row, folder):
    """Catches odd numbers taken for a header, and so a lost agent, and quoted names for means."""
    for rest in ("", "0.25,0.75\n"):
        Path("means.csv").write_text(f"{row}\n{rest}", "utf-8")
        if rest or '"0' not in row:
            assert refusal("means.csv").startswith("means='means.csv")


def test_one_row_for_many_agents(folder):
    """Catches agents ignored, or demanded to be the rows, where one row is shared."""
    Path("means.CSV").write_bytes(b"0.1,0.2\n")
    Path("means.csv").write_bytes(b"0.1,0.2\n")
    shared = Problem.from_file(Path("means.CSV"), agents=7)
    assert shared.agents == 7 and shared.homogeneous and shared.means.tolist() == [[0.1, 0.2]]
    assert Problem.from_file("means.csv").agents == 1
    np.savez("means.npz", means=[0.1, 0.2])
    assert Problem.from_file("means.npz", agents=7).means.tolist() == [[0.1, 0.2]]


BARE = "to_csv(index=False, header=False)"


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
        assert BARE in refusal("means.csv")
        frame.to_csv("means.csv", index=False, header=False)
        assert Problem.from_file("means.csv").means.tolist() == means.tolist()


def test_paths_that_are_no_means(folder):
    """Catches a traceback from the file system."""
    Path("folder.csv").mkdir()
    assert refusal("folder.csv").startswith("means='folder.csv': must be a file; ")


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
ONE_ARRAY = "means='means.npz': must be an NPZ with one array, or one called means"
NOT_NPZ = "means='means.npz': must be an NPZ file; "
NOT_NUMBERS = "means='means.npz': must be numbers; "

BAD_NPY = {
    "eight terabytes": (npy("(1000000000000,)"), NOT_NPZ),
    "overflowing size": (npy("(1000000000, 1000000000, 1000000000)"), NOT_NPZ),
    "objects": (npy("(2,)", "'|O'", b"\x80\x04N."), NOT_NPZ),
    "records": (npy("(2,)", "[('a', '<f8')]", FOUR[:16]), NOT_NUMBERS),
    "complex": (npy("(2,)", "'<c16'", FOUR), NOT_NUMBERS),
    "text": (npy("(2,)", "'<U4'", FOUR), NOT_NUMBERS),
    "booleans": (npy("(2,)", "'|b1'", b"\0\1"), NOT_NUMBERS),
    "cut short": (npy("(2, 2)", data=FOUR[:-1]), NOT_NPZ),
    "negative size": (npy("(-2, 2)", data=FOUR), NOT_NPZ),
    "no header": (b"\x93NUMPY\1\0", NOT_NPZ),
    "later version": (npy("(2, 2)", data=FOUR, version=9), NOT_NPZ),
    "expression": (npy("(__import__('os').getpid(),)"), NOT_NPZ),
    "pickle": (b"\x80\x04]\x94.", NOT_NUMBERS),
    "nothing": (b"", NOT_NUMBERS),
    "three axes": (
        npy("(1, 2, 2)", data=FOUR),
        "means=(1, 2, 2): must be an array shaped [arm] or [agent, arm], ",
    ),
    "nan": (
        npy("(1, 1)", data=struct.pack("<d", float("nan"))),
        "means.npz: means[0, 0]=nan: must be in [0, 1]; ",
    ),
}


@pytest.mark.parametrize("name", BAD_NPY)
def test_bad_arrays_in_an_npz(name, folder):
    """Catches unpickling, and other numbers than floats and whole ones."""
    data, text = BAD_NPY[name]
    write_zip(("means.npy", data))
    assert refusal("means.npz").startswith(text)


def test_zips_that_are_no_means(folder):
    """Catches the wrong member read, and bytes that are no archive."""
    good = npy("(2, 2)", data=FOUR)
    for members in ((("a.npy", good), ("b.npy", good)), ()):
        assert refusal(write_zip(*members)).startswith(ONE_ARRAY)
    for data in (b"", b"PK\3\4", b"not a zip", good):
        Path("means.npz").write_bytes(data)
        assert refusal("means.npz").startswith(NOT_NPZ)


def test_every_damaged_npz_is_refused_or_read_right(folder):
    """Catches a flipped bit that changes a mean, or a truncated file that loads."""
    np.savez("means.npz", means=np.array(TABLE))
    good = Path("means.npz").read_bytes()
    for at in range(0, len(good), 5):
        Path("means.npz").write_bytes(good[:at])
        assert refusal("means.npz").startswith(NOT_NPZ)
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


def test_agents_alike_take_one_row():
    """Catches a room where agents are alike."""
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


def test_masked_means():
    """Catches masked entries that come back to life; an unused mask is no harm."""
    values = np.ma.masked_array([0.5, 0.2], mask=[False, True])
    values.mask = False
    assert Problem(values, 2).means.tolist() == [[0.5, 0.2]]


# --- paths of files ---


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
    refuses("^means=.*: must be a path", Problem.from_file, path)


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
    assert refusal("square.npz").startswith("levels=(1, 2): must be one row of numbers; ")
    np.savez("text.npz", levels=["a", "b"], probabilities=table)
    assert refusal("text.npz").startswith(NOT_NUMBERS.replace("means.npz", "text.npz"))
    np.savez("means.npz", means=[[-3.0, 2.0]])
    assert Problem.from_file("means.npz", rewards=Gaussian(1)).rewards == Gaussian(1)
