"""The fronts of the arena: who is on them, and what is said of it."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from legibility import drawn, published, readable
from refusals import refused

import fmab_jax as fmab
from experiments import (
    arena,
    arena_fronts,
    arena_fronts_figures,
    common,
    pictures,
    redraw,
)
from experiments.arena_fronts import Point

T = 10**5


def point(name, regret, links, bits):
    """Returns a made-up configuration of two seeds with these means."""
    spread = np.array([-1.0, 1.0])
    return Point(name, "", regret + spread, links + 0 * spread, bits + 0 * spread, 0)


def ran(regret, links, seeds=4, lost=0):
    """Returns a made-up run: links on a meter that has a price, ten numbers for each of them."""
    values = regret * np.linspace(0.9, 1.1, seeds)[:, None] * [0.5, 1.0]
    data = {
        "regret": (("seed", "time"), values),
        "links": (("seed", "time", "meter"), np.full((seeds, 2, 1), float(links))),
        "numbers_sent": ("seed", np.full(seeds, 10.0 * links)),
        "best_arm_lost": ("seed", np.arange(seeds) < lost),
    }
    coords = {"time": [T // 2, T], "meter": ["used"], "priced": ("meter", [True])}
    return xr.Dataset(data, coords)


def made_up():
    """Returns results of an arena and of dials, of which everybody has other regret and links."""
    rng = np.random.default_rng(8)

    def one(name):
        links = 0 if arena.LINE_UP[name].alone else float(rng.integers(50, 6000))
        seeds = arena.LINE_UP[name].seeds("b", T, 1000)
        return ran(float(rng.uniform(2e3, 9e5)), links, seeds, lost=int(rng.integers(0, 4)))

    parts = {"a": {name: one(name) for name in arena.LINE_UP}}
    asked = [(v, n) for v, what in arena.VIEWS.items() for n in what.makers]
    asked = [pair for pair in asked if arena.LINE_UP[pair[1]].seeds("b", T, 1000)]
    parts["b"] = {(*pair, leak): one(pair[1]) for pair in asked for leak in arena.LEAKS}
    dials = {
        (view, leak, each.name, arena_fronts._words(settings)): one(each.name)
        for view, each, leak, settings in arena_fronts._placed(tuple(arena.LINE_UP))
    }
    return parts, dials


def results(parts, dials):
    """Returns what the fronts are made of."""
    return {"arena": {T: parts}, "arena_fronts": {T: dials}}.__getitem__


def panels_of(picture):
    """Returns the panels of a picture as it is drawn."""
    page = pictures.Page()
    picture.draw(page)
    return page.figure.axes


@pytest.mark.parametrize("sent", ["links", "bits"])
def test_the_front_is_who_nobody_beats_in_both(sent):
    """Catches one beaten on the front, left out, by the other price, equals, another order."""
    rng = np.random.default_rng(11)
    for _ in range(50):
        found = [point("cdp", *(float(each) for each in rng.integers(1, 9, 3))) for _ in range(12)]
        at = [(float(getattr(each, sent).mean()), each.mean) for each in found]
        undominated = {
            (x, y) for x, y in at if not any(a <= x and b <= y and (a, b) != (x, y) for a, b in at)
        }
        best = arena_fronts.front(found, sent)
        drawn = [(float(getattr(each, sent).mean()), each.mean) for each in best]
        assert drawn == sorted(undominated) and all(any(b is f for f in found) for b in best)


def test_dials_are_run_at_their_places_and_leaks(monkeypatch, tmp_path):
    """Catches a place left out or misnamed, another parameter's leak, one folder, other seeds."""
    asked = {}

    def run(entry, algorithm, spread, horizon, seeds, store, kept, times=None):
        name = next(name for name, each in arena.LINE_UP.items() if each is entry)
        assert (spread, store, times) == (0.0, tmp_path, 2) and (kept, name) not in asked
        asked[kept, name] = (algorithm, horizon, seeds)
        return kept, name

    monkeypatch.setattr(arena, "run", run)
    found = arena_fronts.sweep(T, 1000, tmp_path)
    # Of CDP-MAB three shares and five radii; of the others, all places but the arena's own.
    numbers = {"cdp": 8, "kl_se": 4, "kl_se_split": 11, "kl_se_sum": 4}
    numbers |= dict.fromkeys(("dp_imed_sum", "dp_klucb_sum", "dp_imed", "dp_klucb"), 4)
    assert len(found) == 3 * sum(numbers.values())
    for leak in (0.1, 1.0, 10.0):
        own = {key: value for key, value in found.items() if key[1] == leak}
        assert {n: sum(key[2] == n for key in own) for n in numbers} == numbers
        for (view, _, name, words), where in own.items():
            algorithm, horizon, seeds = asked[where]
            assert where[1] == name and horizon == T
            entry = arena.LINE_UP[name]
            assert seeds == entry.seeds("b", T, 1000)
            told = dict(pair.rsplit(" ", 1) for pair in words.split(", "))
            for key, value in told.items():
                assert getattr(algorithm, key) == float(value), (name, words)
            # All else is as in the arena at this leak.
            plain = arena.VIEWS[view].makers[name](leak)
            changed = {*arena.stated(plain), *arena.stated(algorithm)}
            changed = {k for k in changed if getattr(plain, k) != getattr(algorithm, k)}
            assert changed and changed <= {*told}, (name, words, changed)
    firsts = {key[3] for key in found if key[2] == "kl_se_split"}
    assert "growth 2" not in firsts and {"growth 3", "growth 2, first 500"} <= firsts
    assert arena_fronts.horizons([10**4, 10**5, 10**6]) == [10**5]
    assert arena_fronts.horizons([100, 1000]) == [1000]


def test_below_a_cap_stands_the_least_of_all_that_keep_it():
    """Catches a cap on another view, one who breaks it, the least of a part, another's tails."""
    parts, dials = made_up()
    rows = arena_fronts.capped(parts, dials, T)
    rows = iter(rows)
    for view, leak, cap in arena_fronts.CAPS:
        every = {(n, ""): d for (v, n, e), d in parts["b"].items() if (v, e) == (view, leak)}
        every |= {key[2:]: d for key, d in dials.items() if key[:2] == (view, leak)}
        # No proof covers a smaller radius.
        every = {(n, s): d for (n, s), d in every.items() if n != "cdp_scaled" and "scale" not in s}
        fits = {k: d for k, d in every.items() if float(d.links[:, -1].sum("meter").mean()) <= cap}
        if not fits:  # there is no row of it
            continue
        row = next(rows)
        (name, words), best = min(fits.items(), key=lambda i: float(i[1].regret[:, -1].mean()))
        values = best.regret.values[:, -1]
        label = arena.LINE_UP[name].label + (f" ({words})" if words else "")
        assert (row["view"], row["ε"]) == (arena.VIEWS[view].who, f"{leak:g}")
        assert (row["links, at most"], row["least regret"]) == (f"{cap:,}", label)
        assert row["regret at T"] == common.interval(values) and row["seeds"] == len(values)
        assert row["largest"] == f"{values.max():,.0f}"
        assert row["seeds that lost the best arm"] == int(best.best_arm_lost.sum())
        theirs = every["single" if cap == 0 else "cdp", ""]
        mean, links = theirs.regret.values[:, -1].mean(), theirs.links.values[0, -1, 0]
        assert row["CDP-MAB"] == f"{mean:,.0f} with {links:,.0f} links"
        assert row["lower bound"] == f"{arena.least_possible(leak, T, alone=cap == 0):,.0f}"
    assert not list(rows)


def test_tails_are_told_beside_means():
    """Would catch the largest of means, a share above three times the mean, and one above or at."""
    values = np.array([10.0, 10.0, 10.0, 30.0, 31.0, 400.0, 9.0, 8.0])
    assert arena.tails(values) == {"largest": "400", "seeds above 3 × the median": "25 %"}
    assert arena.tails(np.ones(4)) == {"largest": "1", "seeds above 3 × the median": "0 %"}


def test_what_must_be_lost_is_a_mean_over_the_first_instances():
    """Would catch a bound of one instance, of other seeds, or without the agents."""
    lost = []
    for seed in range(200):
        means = np.sort(np.asarray(fmab.Problem.uniform(50, 100).fixed(seed).means)[0])
        best, worse = means[-1], means[:-1]
        apart = worse * np.log(worse / best) + (1 - worse) * np.log((1 - worse) / (1 - best))
        lost.append(float(((best - worse) / apart).sum()))
    mean = np.mean(lost)
    assert arena.least_possible(None, T) == pytest.approx(mean * math.log(50 * T), rel=1e-5)
    wanted = 50 * mean * math.log(T)
    assert arena.least_possible(None, T, alone=True) == pytest.approx(wanted, rel=1e-5)


def test_pictures_of_fronts_show_the_data(monkeypatch, tmp_path):
    """Catches another leak, price, bound or year in a panel, a false front, and other names."""
    kept, (parts, dials) = published(monkeypatch), made_up()
    written = arena_fronts_figures.judge(results(parts, dials), tmp_path)
    names = [*(f"arena_front_{view}" for view in arena.VIEWS), "arena_radius"]
    assert list(kept) == names
    wanted = [*(f"{name}.md" for name in names), "arena_caps.csv"]
    assert [path.name for path in written] == wanted
    for view in arena.VIEWS:
        picture = kept[f"arena_front_{view}"]
        assert "T = 10⁵ slots, " in picture.caption and "to 1,000 seeds" in picture.caption
        kinds = list(itertools.product(arena.FRONT_LEAKS, ("links", "bits")))
        for panel, (leak, sent) in zip(panels_of(picture), kinds, strict=True):
            found = arena_fronts.points(view, leak, parts["b"], dials)
            dots, line, bound, usual, *marks = panel.lines
            at = sorted((getattr(each, sent).mean(), each.mean) for each in found)
            np.testing.assert_allclose(sorted(zip(*dots.get_data(), strict=True)), at)
            best = arena_fronts.front(found, sent)
            at = [(getattr(each, sent).mean(), each.mean) for each in best]
            np.testing.assert_allclose(np.transpose(line.get_data()), at)
            drawn_at = [(mark.get_xdata()[0], mark.get_ydata()[0]) for mark in marks]
            np.testing.assert_allclose(drawn_at, at)
            plain = parts["b"][view, "cdp", leak].regret.values[:, -1].mean()
            assert usual.get_ydata()[0] == pytest.approx(plain)
            assert set(bound.get_ydata()) == {arena.least_possible(leak, T)}
            assert panel.get_title(loc="left") == f"leak {leak:g}"
            assert panel.get_xlabel() == f"{sent} at T, mean over seeds"
        # The table has everybody, the least first, and says who leads in what.
        for leak in arena.FRONT_LEAKS:
            found = arena_fronts.points(view, leak, parts["b"], dials)
            rows = [row for row in picture.table if row["ε"] == f"{leak:g}"]
            assert [row["regret at T"][0] for row in rows] == sorted(each.mean for each in found)
            for sent in ("links", "bits"):
                leads = [row for row in rows if sent in row["on the front of"]]
                best = arena_fronts.front(found, sent)
                means = sorted(each.mean for each in best)
                assert [row["regret at T"][0] for row in leads] == means


def test_the_radius_is_told_with_what_it_costs(monkeypatch, tmp_path):
    """Catches another factor's regret or losses, a wrong marker, bound or rival."""
    kept, (parts, dials) = published(monkeypatch), made_up()
    arena_fronts_figures.judge(results(parts, dials), tmp_path)
    picture = kept["arena_radius"]
    for leak, panel in zip(arena.FRONT_LEAKS, panels_of(picture), strict=True):
        runs = {1.0: parts["b"]["messages", "cdp", leak]}
        runs[arena.SCALE] = parts["b"]["messages", "cdp_scaled", leak]
        for factor in (0.1, 0.15, 0.2, 0.5, 0.7):
            runs[factor] = dials["messages", leak, "cdp", f"scale {factor:g}"]
        ends = {f: data.regret.values[:, -1] for f, data in sorted(runs.items())}
        lost = {f: int(runs[f].best_arm_lost.sum()) for f in ends}
        rows = [row for row in picture.table if row["ε"] == f"{leak:g}"]
        told = [row for row in rows if row["algorithm"] == "CDP-MAB"]
        assert [row["factor of the radius"] for row in told] == [*ends]
        assert [row["regret at T"] for row in told] == [common.interval(v) for v in ends.values()]
        assert [row["seeds that lost the best arm"] for row in told] == [*lost.values()]
        beside = [row["algorithm"] for row in rows if row not in told]
        assert beside == ["KL-SE", "KL-SE, arms split"]
        line, full, hollow, first, second, bound = panel.lines
        np.testing.assert_allclose(line.get_ydata(), [v.mean() for v in ends.values()])
        assert list(full.get_xdata()) == [f for f in ends if not lost[f]]
        assert list(hollow.get_xdata()) == [f for f in ends if lost[f]]
        for drawn_line, name in ((first, "kl_se"), (second, "kl_se_split")):
            mean = parts["b"]["messages", name, leak].regret.values[:, -1].mean()
            assert drawn_line.get_ydata()[0] == pytest.approx(mean)
        assert bound.get_ydata()[0] == arena.least_possible(leak, T)


@pytest.mark.slow
@pytest.mark.as_users_see_it
def test_pictures_of_fronts_are_legible(monkeypatch, tmp_path):
    """Would catch names that cover each other or leave the page."""
    kept = drawn(monkeypatch)
    arena_fronts_figures.judge(results(*made_up()), tmp_path)
    for name in ("arena_front_messages", "arena_radius"):
        assert "yardstick" in readable(kept, name, tmp_path)[1]


FIGURES = Path(common.__file__).parents[1] / "figures"


def test_every_published_picture_can_be_drawn_from_its_csv():
    """Would catch a picture whose numbers are not all beside it, or that nothing draws anew."""
    names = [path.stem for path in FIGURES.glob("*.png") if path.with_suffix(".csv").exists()]
    assert len(names) > 25
    drawings = {name: redraw.drawing_of(FIGURES, name) for name in names}
    for name in names[::5]:
        page = pictures.Page()
        drawings[name](page)
        assert page.figure.axes, name
    with pytest.raises(LookupError, match="arena_caps"):
        redraw.drawing_of(FIGURES, "arena_caps")


def test_pictures_for_print_are_written_by_a_command(tmp_path, capsys):
    """Catches a width or a kind of file left out, and a name that is passed over."""
    name = "fig09_graphs"
    (tmp_path / f"{name}.csv").symlink_to(FIGURES / f"{name}.csv")
    redraw.main([name, "--pdf", "--figures", str(tmp_path)])
    ends = (".csv", ".pdf")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{name}{end}" for end in ends]
    redraw.main(["--figures", str(tmp_path)])
    assert f"{name}.png" in capsys.readouterr().out and (tmp_path / f"{name}.png").exists()
    assert "one of fig09_graphs" in refused(redraw.main, ["fig4", "--figures", str(tmp_path)])


def test_rows_are_read_as_they_were_written(tmp_path):
    """Catches an interval in three columns, a number as text, and a blank for a number."""
    rows = [
        {"a": (1.5, 1.0, 2.0), "b": "1/16", "c": True, "d": 3},
        {"a": "", "b": "none", "c": False, "d": 0.25},
    ]
    assert common.read_rows(common.save_rows(rows, tmp_path / "t.csv")) == rows
