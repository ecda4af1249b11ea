"""The tutorials run as a reader runs them, say what is so, and show what they compute."""

import functools
import json

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")
import tutorials

SEEDS = 24
# What the test computes again from the seeds' regret, with other tools than the package's.
EXPORTS = {
    "first_comparison": """
import json
print(json.dumps({
    "few": few.regret.values[:, -1].tolist(), "full": full.regret.values[:, -1].tolist(),
    "saved": saved.tolist(), "price": found.difference / saved.mean(),
    "found": [found.difference, found.lower, found.upper, found.p_value, found.percent],
    "leaks": [float(run.attrs["epsilon_message"]) for run in equal_leak],
}))""",
    "from_ratings_to_epsilon": """
import json
finals_of = {leak: last.sel(epsilon_message=leak).values.tolist() for leak in leaks}
print(json.dumps({
    "finals": list(finals_of.items()), "without": without.tolist(), "allowed": allowed,
    "decision": decision, "points": found.points, "per_film": per_film.regret.values.tolist(),
    "others": others,
}))""",
}


# Each compiles much, in a kernel of its own. Every test run has the code of the pages.
RUN = [pytest.param(name, marks=pytest.mark.slow) for name in tutorials.NAMES]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Returns what gives a tutorial after it ran with few seeds."""

    @functools.cache
    def ran(name):
        folder = tmp_path_factory.mktemp(name)
        return tutorials.executed(name, folder, seeds=SEEDS, last=EXPORTS.get(name, ""))

    return ran


def exported(runs, name):
    """Returns what the last cell printed."""
    return json.loads(runs(name).cells[-1].outputs[0].text)


def kinds(cell):
    """Returns what a cell shows, without its values."""
    return [
        (each.output_type, each.get("name"), sorted(each.get("data", ()))) for each in cell.outputs
    ]


@pytest.mark.parametrize("name", RUN)
def test_a_tutorial_runs_without_a_warning(runs, name):
    """Would catch a cell that fails, an assertion of it that is wrong, or a word on stderr."""
    for cell in tutorials.code_cells(runs(name)):
        assert [each.text for each in cell.outputs if each.get("name") == "stderr"] == []


@pytest.mark.parametrize("name", RUN)
def test_the_committed_outputs_are_those_of_the_committed_code(runs, name):
    """Would catch outputs that the code does not give.

    Cells that depend on no seed must also show the same text, which catches a changed package.
    """
    cells = tutorials.code_cells(tutorials.notebook(name))
    again = tutorials.code_cells(runs(name))[:-1]
    assert [kinds(cell) for cell in cells] == [kinds(cell) for cell in again]
    exact = [place for place, cell in enumerate(cells) if "exact" in cell.metadata.get("tags", ())]
    assert exact
    for place in exact:
        assert cells[place].outputs == again[place].outputs, cells[place].source


@pytest.mark.parametrize("name", tutorials.NAMES)
def test_the_committed_code_was_run_in_order(name):
    """Would catch code that was edited and not run again, or cells that ran in another order."""
    book = tutorials.notebook(name)
    cells = tutorials.code_cells(book)
    assert book.metadata.code == tutorials.digest(book), "run: python tests/tutorials.py"
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


@pytest.mark.slow
def test_the_first_comparison_is_that_of_a_paired_t_test(runs):
    """Would catch a difference, interval, p-value or price that the seeds do not give."""
    found = exported(runs, "first_comparison")
    few, full = np.array(found["few"]), np.array(found["full"])
    test = stats.ttest_rel(few, full)
    low, high = test.confidence_interval(0.95)
    percent = 100 * (few.mean() / full.mean() - 1)
    wanted = [(few - full).mean(), low, high, test.pvalue, percent]
    assert found["found"] == pytest.approx(wanted, rel=1e-9)
    assert found["price"] == pytest.approx((few - full).sum() / sum(found["saved"]))
    assert found["leaks"] == pytest.approx([2.0, 2.0])


@pytest.mark.slow
def test_the_decision_is_what_the_rule_gives(runs):
    """Would catch another leak than the least one whose regret is surely at most 10 % larger.

    The regret is surely at most 10 % larger where a t interval of x - 1.1 y, seed by seed, is at
    most 0. That needs nothing of the package's intervals.
    """
    found = exported(runs, "from_ratings_to_epsilon")
    without, factor = np.array(found["without"]), 1 + found["allowed"] / 100
    chosen = None
    for leak, values in reversed(found["finals"]):
        excess = np.array(values) - factor * without
        level = 1 - 0.05 / len(found["finals"])
        interval = stats.ttest_1samp(excess, 0.0).confidence_interval(level)
        if interval.high > 0.0:
            break
        chosen = leak
    assert chosen is not None and found["decision"] == chosen
    films = 10 * 10**5
    wanted = [np.mean(values) for _, values in found["finals"]] + [without.mean()]
    assert found["per_film"] == pytest.approx(np.array(wanted) * found["points"] / films)
    assert len(found["others"]) == 10
    allowed = {f"{leak:g}" for leak, _ in found["finals"]} | {"none of these"}
    assert set(found["others"]) <= allowed
