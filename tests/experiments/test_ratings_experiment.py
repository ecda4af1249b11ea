"""What privacy costs in ratings: leaks by the ledger, points by hand, a figure that can be read."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from legibility import drawn, readable, rows_of, words_of

import fmab_jax as fmab
from experiments import common, ratings


def test_everybody_is_run_at_an_equal_leak():
    """Would catch an epsilon of one agent's parameter in place of what the server is told."""
    for name, each in ratings.PRIVATE.items():
        for leak in (0.1, 100.0):
            rows = fmab.privacy_ledger(each.maker(leak), ratings.GROUPS)
            told = [row.epsilon for row in rows if row.observation != "actions"]
            assert max(told) == pytest.approx(leak), name
        plain = fmab.privacy_ledger(each.maker(None), ratings.GROUPS)
        assert max(row.epsilon for row in plain) == np.inf, name


@pytest.fixture
def asked(monkeypatch):
    """What is asked of `fmab.sweep`: an algorithm's name, and the settings."""
    found = []
    record = lambda algorithm, problem, **settings: found.append((algorithm.name, settings))  # noqa: E731
    monkeypatch.setattr(fmab, "sweep", record, raising=False)
    return found


def test_the_sweep_asks_for_every_leak_and_for_none(asked):
    """Would catch a leak that is lost on the way to the sweep, or long runs with all seeds."""
    ratings.sweep(10**5, 1000)
    cdp = [settings for name, settings in asked if name == "cdp"]
    assert [settings.get("epsilon_message") for settings in cdp] == [*ratings.LEAKS, None]
    assert cdp[-1]["epsilon"] is None and {settings["seeds"] for settings in cdp} == {1000}
    ldp = [settings for name, settings in asked if name == "ldp_ucb"]
    assert [settings["epsilon"] for settings in ldp] == [*ratings.LEAKS, None]
    assert {settings["seeds"] for settings in ldp} == {100}
    assert {settings["bits"] and settings["pooled"] for settings in ldp} == {True}
    assert [name for name, _ in asked[-2:]] == ["ucb1", "ucb1"] and len(asked) == 42
    assert ratings.horizons([10**4, 10**5, 10**6]) == [10**4, 10**5]
    assert ratings.horizons([10**6]) == [10**6]


def test_seeds_and_horizons_are_cut_where_runs_are_long(asked):
    """Would catch fewer seeds at T = 10⁴ already, of eliminations, or fewer than two."""
    for horizon, seeds in ((10**4, 1000), (10**5, 1000), (10**5, 7)):
        ratings.sweep(horizon, seeds, Path("s"), ["cdp", "pooled"])
    told = [(name, own["horizon"], own["seeds"], str(own["store"])) for name, own in asked]
    assert [each[:3] for each in told if each[3].endswith("none")] == [
        ("cdp", 10**4, 1000), ("ucb1", 10**4, 1000), ("cdp", 10**5, 1000), ("ucb1", 10**5, 100),
        ("cdp", 10**5, 7), ("ucb1", 10**5, 2),
    ]  # fmt: skip
    assert [each[3] for each in told[:2]] == ["s/cdp-0.1", "s/cdp-0.3"]


def made(seeds, lost, rng):
    """Returns results of ten agents that lose so many units of reward in each slot."""
    regret = 10**5 * (lost + rng.normal(0, 1e-3, (seeds, 1)) * [0.5, 1.0])
    data = xr.Dataset({"regret": (("seed", "time"), regret)}, attrs={"agents": 10})
    return data.assign(agents_worse=("seed", np.zeros(seeds)))


def parts():
    """Returns made-up results at T = 10^4 of everybody."""
    found = {}
    for place, name in enumerate(ratings.EVERYBODY):
        rng = np.random.default_rng(place)
        leaks = (*ratings.LEAKS, None) if name in ratings.PRIVATE else (None,)
        found[name] = {
            leak: made(20, 0.02 * (place + 1) * (1.0 if leak is None else 1 + 0.1 / leak), rng)
            for leak in leaks
        }
    return found


def test_points_and_differences_are_those_of_the_seeds():
    """Would catch regret that is not scaled back to points, per agent and slot, or is unpaired."""
    found = parts()
    rows = {(row["algorithm"], row["epsilon"]): row for row in ratings._rows({10**4: found})}
    row = rows["CDP-MAB", 0.3]
    own, plain = (found["cdp"][leak].regret.values[:, 1] for leak in (0.3, None))
    assert row["points lost per rating"][0] == pytest.approx(own.mean() * 4.5 / 10**5)
    mean, lower, upper = row["more than without noise, same seeds"]
    apart = (own - plain) * 4.5 / 10**5
    assert mean == pytest.approx(apart.mean())
    # Student's t with 19 degrees of freedom.
    assert upper - mean == pytest.approx(2.0930 * apart.std(ddof=1) / 20**0.5, rel=1e-4)
    assert upper - mean == pytest.approx(mean - lower)
    assert rows["UCB1, agents alone", ""]["more than without noise, same seeds"] == ""


@pytest.mark.as_users_see_it
def test_the_figure_can_be_read_and_says_what_it_shows(monkeypatch, tmp_path):
    """Would catch labels on top of each other, and a curve that is not drawn."""
    figures = drawn(monkeypatch)
    ratings.draw({10**4: parts(), 10**5: parts()}, tmp_path)
    _, caption = readable(figures, "ratings_leak", tmp_path)
    labels = {text.get_text() for text in figures["ratings_leak"].legends[0].get_texts()}
    assert labels == {each.label for each in ratings.EVERYBODY.values()} | {"uniform play"}
    assert "T = 10⁴ and 10⁵ slots. 20 seeds. " in caption
    assert len(rows_of(tmp_path / "ratings_leak.csv")) == 2 * (len(ratings.PRIVATE) * 8 + 2)


def test_the_caption_of_the_committed_figure_is_that_of_its_numbers():
    """Would catch words that were edited by hand, or that the code has changed since."""
    path = Path(ratings.__file__).parents[1] / "figures/ratings_leak.md"
    assert words_of(path)[1] == ratings.write_caption(common.read_rows(path.with_suffix(".csv")))
