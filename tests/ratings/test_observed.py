"""Observed ratings against hand counts, pandas' own tables, and tastes that are known."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from refusals import refuses

import fmab_jax as fmab
from fmab_jax.ratings import from_table

EXAMPLE = Path(__file__).parents[2] / "docs/examples/ratings"
RATED = pd.read_csv(EXAMPLE / "ratings.csv").merge(
    pd.read_csv(EXAMPLE / "movies.csv"), on="movieId", how="left"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Returns an empty folder, the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(rows, names="agent arm value"):
    """Returns a data frame of rows that are separated by commas, cells by spaces."""
    cells = [row.split() for row in rows.split(",")]
    frame = pd.DataFrame(cells, columns=names.split())
    return frame.assign(value=frame.value.astype(float))


def counted(frame, **options):
    """Returns the ratings of a data frame with the plain names of columns."""
    return from_table(frame, "agent", "arm", "value", **options)


def test_the_shipped_table_against_pandas():
    """Would catch ratings of a group, a genre or a level that are mixed up anywhere on the way."""
    found = from_table(RATED, "userId", "genres", groups=5)
    has_genre = RATED.genres.notna() & (RATED.genres != "(no genres listed)")
    rows = RATED[has_genre].assign(genre=RATED.genres.str.split("|")).explode("genre")
    group = rows.userId.astype(str).map(found.members)
    due = pd.crosstab([group, rows.genre], rows.rating)
    own = found.counts.stack(cell=["agent", "arm"]).transpose("cell", "level").to_pandas()
    assert due.shape == (50, 10)
    assert (own.reindex(due.index)[due.columns.tolist()].values == due.values).all()
    assert found.dropped == {"no genres": int((~has_genre).sum())}
    shares = due.values / due.values.sum(axis=1, keepdims=True)
    means = (shares * due.columns.values).sum(axis=1).reshape(5, 10)
    np.testing.assert_allclose(found.levels[0] + found.points * found.problem.means, means)


def test_a_plain_table_is_the_problem_that_a_file_of_it_is(folder):
    """Would catch a saved table that is another problem, or labels in another order."""
    rng = np.random.default_rng(1)
    rows = [(a, b, rng.integers(1, 6)) for a in (10, 9, 100) for b in "xyz" for _ in range(7)]
    order = rng.permutation(len(rows))
    frame = pd.DataFrame([rows[i] for i in order], columns=["agent", "arm", "value"])
    frame.to_csv("plain.csv", index=False)
    found = from_table("plain.csv", "agent", "arm", "value")
    found.save("plain.npz")
    assert found.problem == fmab.Problem("plain.npz")
    assert found.agent_labels == ("9", "10", "100")
    # Nobody says that an agent rates an arm once: no row is a repetition.
    assert found.dropped == {} and int(found.counts.sum()) == 63


def test_too_few_ratings_leave_agents_arms_and_cells_out():
    """Would catch a threshold that is off by one, that counts another thing, or that is silent."""
    frame = table("a x 1,a x 2,a y 1,a y 2,a z 2,b x 1,b x 1,b y 2,b y 2,c x 1,c w 2,c w 1")
    found = counted(frame, least_per_agent=4, least_per_arm=2)
    assert found.agent_labels == ("a", "b") and found.arm_labels == ("x", "y")
    # Once c is left out, nobody rates w.
    few = {"agent with fewer than 4 ratings": 1, "arm with fewer than 2 ratings": 1}
    assert found.left_out == few
    most = counted(frame, most_arms=2, fill="arm")
    assert most.arm_labels == ("x", "y") and most.left_out == {"arm not among the 2 most rated": 2}
    assert most.filled == (("c", "y"),)
    # y over all agents: 1 once, 2 three times.
    assert most.problem.probabilities[2, 1].tolist() == [0.25, 0.75]


def test_smoothing_is_what_its_formula_says():
    """Would catch ratings added twice, like another arm's, or weighted by agents."""
    frame = table("a x 1,a x 1,a x 2,a y 3,b x 3,b y 2,b y 3,b y 3")
    like_x, like_y = np.array([2, 1, 1]) / 4, np.array([0, 1, 3]) / 4
    toward = counted(frame, smoothing=2).problem.probabilities
    np.testing.assert_allclose(toward[0, 0], (np.array([2, 1, 0]) + 2 * like_x) / 5, rtol=1e-14)
    np.testing.assert_allclose(toward[1, 1], (np.array([0, 1, 2]) + 2 * like_y) / 5, rtol=1e-14)
    lacks = counted(frame[:5], smoothing=1.7, fill="arm")
    assert lacks.filled == (("b", "y"),)
    # A filled cell is the arm's own, without what is added to the others.
    assert lacks.problem.probabilities[1, 1].tolist() == [0, 0, 1]
    line = "1.7 ratings added to every cell, like the arm's by all agents"
    assert dict(lacks.lines())["smoothing"] == line


def test_groups_are_the_tastes_that_were_put_in():
    """Would catch users who are grouped by how generous they are, or by what they have seen."""
    rng = np.random.default_rng(2)
    likes = {"A": (2, 0, 0, 0), "B": (0, 2, 0, 0), "C": (0, 0, 2, 2)}
    rows = []
    for user, taste in enumerate(["A"] * 20 + ["B"] * 14 + ["C"] * 9):
        generous = rng.integers(0, 4)
        for arm in range(4):
            for _ in range(rng.integers(2, 9)):
                rows.append((user, f"arm {arm}", generous + likes[taste][arm] + rng.integers(0, 2)))
    frame = pd.DataFrame(rows, columns=["agent", "arm", "value"])
    found = counted(frame, groups=3)
    assert found.agent_labels == ("group 1", "group 2", "group 3")
    due = ["group 1"] * 20 + ["group 2"] * 14 + ["group 3"] * 9
    assert [found.members[str(user)] for user in range(43)] == due
    assert ("agents", "3 groups of agent (k-means, seed 0), of 20, 14, 9") in found.lines()
    assert int(found.counts.sel(agent="group 2").sum()) == int(frame.agent.between(20, 33).sum())


def test_a_problem_survives_the_trip_through_a_file(folder):
    """Would catch probabilities that change in their last bit, or agents that are merged."""
    found = from_table(RATED, "userId", "genres", groups=7, smoothing=1.7)
    assert found.save("p.npz") == Path("p.npz")
    again = fmab.Problem("p.npz")
    assert again == found.problem
    assert again.probabilities.tobytes() == found.problem.probabilities.tobytes()
    with np.load("p.npz") as kept:
        assert tuple(kept["arm_labels"]) == found.arm_labels
        assert tuple(kept["agent_labels"]) == found.agent_labels
        assert (kept["counts"] == found.counts.values).all()
    refuses("^path='p.npz': must be a new name; ", found.save, "p.npz")
    refuses("^path='p.csv': must be a name that ends in .npz; ", found.save, "p.csv")
    alike = counted(table("a x 1,a y 2,b x 1,b y 2"))
    alike.save("alike.npz")
    assert fmab.Problem("alike.npz") == alike.problem and alike.problem.agents == 2


def test_arms_of_a_result_have_names():
    """Would catch -1, still exploring, that is named like the last arm."""
    found = counted(table("a x 1,a y 2,b x 1,b y 2"))
    named = found.named(np.array([[0, 1], [-1, 0]]))
    assert named.tolist() == [["x", "y"], ["undecided", "x"]]
    for bad in ([2], [-2], [0.0], "x"):
        refuses(r"must be numbers of arms in \[-1, 1\]; ", found.named, bad)


def test_the_page_runs_and_shows_the_summary_that_it_prints(folder, capsys, monkeypatch):
    """Would catch an example that no longer runs, or a summary that is an older one's."""
    page = (EXAMPLE.parents[1] / "ratings.md").read_text("utf-8")
    for name in ("ratings.csv", "movies.csv"):
        Path(name).write_bytes((EXAMPLE / name).read_bytes())
    code = page.split("```python\n")[1].split("```")[0]
    shown = page.split("```\nsource")[1].split("```")[0]
    problems = []

    def run(algorithm, problem, **_):
        problems.append(problem)
        return xr.Dataset({"chosen_arm": ("seed", [-1, 4]), "regret": ("seed", [0.0, 1.0])})

    # The simulation itself has its own tests, and takes longer to compile.
    monkeypatch.setattr(fmab, "simulate", run, raising=False)
    names = {}
    exec(code, names)
    assert capsys.readouterr().out == f"source{shown}"
    assert problems == [names["found"].problem] and names["found"].points == 4.5
    assert names["found"].named([-1, 4]).tolist() == ["undecided", "Documentary"]


@pytest.mark.parametrize("seed", range(3))
def test_random_tables_against_a_loop_over_rows(seed):
    """Would catch a rare mixture of gaps, parts, thresholds and repeated labels that goes wrong."""
    rng = np.random.default_rng(seed)
    arms = ["p", "q", "p|q", "q|r", "r", "s|p|s", "", " "]
    rows = [
        (rng.choice(["a", "b", "c", "", "d"]), rng.choice(arms), rng.choice([1, 2, 3, np.nan, 2.5]))
        for _ in range(rng.integers(60, 200))
    ]
    frame = pd.DataFrame(rows, columns=["agent", "arm", "value"])
    enough = int(rng.integers(1, 9))
    found = counted(frame, levels=[1, 2, 3], least_per_agent=enough, fill="arm", smoothing=0.5)

    usable = [(a, b, v) for a, b, v in rows if v in (1, 2, 3) and a and b.strip()]
    known = Counter(a for a, _, _ in usable)
    known_rows = [row for row in usable if known[row[0]] >= enough]
    counts = Counter((a, part, v) for a, b, v in known_rows for part in dict.fromkeys(b.split("|")))
    assert found.agent_labels == tuple(sorted({a for a, _, _ in counts}))
    assert found.arm_labels == tuple(sorted({b for _, b, _ in counts}))
    assert len(rows) - sum(found.dropped.values()) == len(usable)
    assert int(found.counts.sum()) == counts.total()
    for i, a in enumerate(found.agent_labels):
        for k, b in enumerate(found.arm_labels):
            own = np.array([counts[a, b, v] for v in (1, 2, 3)])
            every = [[counts[c, b, v] for c in found.agent_labels] for v in (1, 2, 3)]
            everybody = np.array(every).sum(axis=1)
            due = (own + 0.5 * everybody / everybody.sum()) / (own.sum() + 0.5)
            np.testing.assert_allclose(found.problem.probabilities[i, k], due, atol=1e-14)
            assert ((a, b) in found.filled) == (own.sum() == 0)
