"""What privacy costs in ratings: leaks by the ledger, points by hand, a figure that can be read."""

import re
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


LEVELS = fmab.Problem.ratings([1, 2], [[[0.5, 0.5], [0.1, 0.9]]] * 10)


def test_the_sweep_asks_for_every_leak_and_for_none(asked):
    """Would catch a leak that is lost on the way to the sweep, or long runs with all seeds."""
    ratings.sweep(10**5, 1000, problem=LEVELS)
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
        ratings.sweep(horizon, seeds, Path("s"), ["cdp", "pooled"], LEVELS)
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
    rows = {(row["algorithm"], row["epsilon"]): row for row in ratings._rows({10**4: found}, 4.5)}
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
    """Would catch labels on top of each other, a curve that is not drawn, or words without it."""
    figures = drawn(monkeypatch)
    chances = [[[0.2, 0.3, 0.5], [0.4, 0.3, 0.3], [0.3, 0.5, 0.2]]] * 10
    problem = fmab.Problem.ratings([1, 2, 3], chances)
    told = ratings.told_of(problem, "of a test")
    # Means are 1.3, 0.9 and 0.9 levels above the lowest.
    assert told.points == 2 and told.uniform == pytest.approx(0.8 / 3)
    results = {10**4: parts(), 10**5: parts()}
    ratings.draw(results, tmp_path, told)
    alt, caption = readable(figures, "ratings_leak", tmp_path)
    labels = {text.get_text() for text in figures["ratings_leak"].legends[0].get_texts()}
    assert labels == {each.label for each in ratings.EVERYBODY.values()} | {"uniform play"}
    assert "the best arm is 0.4 rating points above the second" in caption
    assert "T = 10⁴ and 10⁵ slots. 20 seeds. " in caption
    assert re.search(r"rating points for each rating are lost by CDP-MAB \(0\.0080? at", alt)
    again = ratings.words(common.read_rows(tmp_path / "ratings_leak.csv"), told)
    assert again == (caption, alt)
    rows = rows_of(tmp_path / "ratings_leak.csv")
    assert len(rows) == 2 * (len(ratings.PRIVATE) * 8 + 2)
    assert {row["epsilon"] for row in rows} == {"", "no noise", *map(str, ratings.LEAKS)}


def test_the_words_of_the_committed_figure_are_those_of_its_numbers():
    """Would catch words that were edited by hand, or that the code has changed since."""
    path = Path(ratings.__file__).parents[1] / "figures/ratings_leak.md"
    rows = common.read_rows(path.with_suffix(".csv"))
    caption, seen = ratings.words(rows, ratings.told_of_shipped())
    assert words_of(path) == (seen, caption)
    slow = (
        "1000 seeds; 100 seeds of LDP-UCB-B, pooled / UCB1, pooled, no privacy / UCB1, agents "
        "alone, at T = 10⁵. "
    )
    assert slow in caption
    assert "LDP-UCB-B, pooled: a server: every rating, noisy). Seeds: CDP-MAB: 1000" in seen
    few = [row for row in rows if row["algorithm"] != "LDP-UCB-B, pooled"]
    caption, _ = ratings.words(few, ratings.told_of_shipped())
    assert caption.endswith(" Not run, and so not shown: LDP-UCB-B, pooled.")
    # From the CSV by eye: 0.0298 beside 0.1613 to 0.1616.
    assert "Sharing pays at every ε: agents alone lose 0.161." in seen


def test_the_best_are_told_with_what_they_differ_in():
    """Would catch a winner whose interval meets another's, and unlike trust or seeds unsaid."""

    def row(name, mean, leak, told, seeds=9):
        lost = (mean, mean - 0.1, mean + 0.1)
        own = {"algorithm": name, "epsilon": leak, "others are told": told, "seeds": seeds}
        return own | {"points lost per rating": lost}

    best, close, far = row("a", 1.0, 2.0, "x"), row("b", 1.15, 2.0, "x"), row("c", 1.3, 2.0, "x")
    other = row("d", 1.0, 5.0, "x")  # at another leak
    told = ratings._unlike([best, close, far, other], [best])
    assert told == " At ε = 2 the interval of b meets that of a."
    assert ratings._unlike([best, far], [best]) == ""
    told = ratings._unlike([best, row("c", 1.3, 2.0, "y", 3)], [best])
    wanted = " At one ε they differ in what others are told (a: x / c: y). Seeds: a: 9 / c: 3."
    assert told == wanted


def test_from_where_on_sharing_pays():
    """Would catch a leak that is one too small, intervals that overlap, or a lucky small leak."""

    def told(*means):
        least = [
            {"epsilon": leak, "points lost per rating": (mean, mean - 0.01, mean + 0.01)}
            for leak, mean in zip((0.1, 1.0, 10.0), means, strict=True)
        ]
        return ratings._paying(least, {"points lost per rating": (0.2, 0.195, 0.205)})

    assert told(0.1, 0.1, 0.1) == "Sharing pays at every ε: agents alone lose 0.200."
    assert told(0.1, 0.25, 0.1) == (
        "Sharing pays from ε = 10 on: agents alone lose 0.200. "
        "At ε = 1 even the best private algorithm loses more (0.250)."
    )
    assert told(0.3, 0.19, 0.18) == (
        "Sharing pays from ε = 10 on: agents alone lose 0.200. "
        "At ε = 1 even the best private algorithm does not measurably lose less (0.190)."
    )
    assert told(0.1, 0.1, 0.3).startswith("Sharing does not pay at ε = 10: ")


def test_only_problems_of_ratings_are_run(tmp_path, capsys):
    """Would catch points of a problem that has none."""
    (tmp_path / "means.csv").write_text("0.1,0.2\n")
    assert ratings.main([str(tmp_path / "means.csv")]) == 2
    assert capsys.readouterr().err.startswith("error: problem='fixed': must be ratings; ")


def test_rows_are_told_at_their_own_horizon_and_agents():
    """Would catch a row of another horizon or contestant, and agents that are seeds."""
    found = {10**4: parts(), 10**5: parts()}
    rows = ratings._rows(found, 4.5)
    assert len(rows) == 2 * (len(ratings.PRIVATE) * 8 + 2)
    for row in rows:
        name = next(n for n, each in ratings.EVERYBODY.items() if each.label == row["algorithm"])
        leak = None if row["epsilon"] in ("", "no noise") else row["epsilon"]
        ends = found[row["T"]][name][leak].regret.values[:, 1]
        wanted = ends.mean() * 4.5 / (row["T"] * 10)
        assert row["points lost per rating"][0] == pytest.approx(wanted)
        assert row["others are told"] == ratings.EVERYBODY[name].told and row["seeds"] == 20
    seen = ratings._seen(rows, 0.5)
    assert seen.startswith("At T = 10⁵, ") and "Uniform play loses 0.500." in seen
    alone = next(r for r in rows[::-1] if r["algorithm"] == "UCB1, agents alone")
    assert f"UCB1, agents alone: {alone['points lost per rating'][0]:.3f}." in seen
