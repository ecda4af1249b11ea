"""Results of sweeps: the numbers of simulate, read lazily, whatever chunks they lie in."""

import math

import numpy as np
import pandas as pd
import pytest
import sizes
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import refuses

import fmab_jax as fmab
from fmab_jax.analysis import bands, budgets, device_summary, summary
from fmab_jax.analysis.bands import compute_moments_band
from fmab_jax.run import resources
from fmab_jax.sweeps import results
from fmab_jax.sweeps.chunks import Memory, Results
from fmab_jax.sweeps.results import open_results, open_sweep
from fmab_jax.sweeps.store import Entry

# Bits of other processes are compared with those of this one.
pytestmark = pytest.mark.as_users_have_it

# 2 x 2 cells of one program; three chunks for each cell.
PARAMETERS = dict(**sizes.SMALL, horizon=20_000, times=10)
GRID = dict(epsilon=[0.5, None], rounds=[None, 2])
SMALL = dict(chunk=8, batch=8, progress=False)
WAITING = dict(**sizes.SMALL, horizon=[2000, 20_000], graph=["ring", "complete"], times=10)
SERIES = ("regret", "waiting_regret", "links")
PER_SEED = ("rounds_made", "numbers_sent", "active_arms", "chosen_arm", "agents_lost")
PER_SEED += ("agents_worse", "final_gap")
EVENTS = ("best_arm_lost", "worse_arm_played")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A folder with the sweeps ``curves`` and ``summary``, and ``waiting`` curves and summary."""
    folder = tmp_path_factory.mktemp("stores")
    for keep in ("curves", "summary"):
        fmab.sweep("cdp", store=folder / keep, seeds=20, keep=keep, **PARAMETERS, **GRID, **SMALL)
        store = folder / f"waiting-{keep}"
        fmab.sweep("ddp", store=store, seeds=20, keep=keep, epsilon=2, **WAITING, **SMALL)
    return folder


@pytest.fixture(scope="module")
def curves(stores):
    """The curves, in memory."""
    return open_sweep(stores / "curves").load()


def alone(algorithm, horizon):
    """Runs one configuration as `simulate` does."""
    problem = fmab.Problem.heterogeneous(4, 3, 0.0)
    return fmab.simulate(algorithm, problem, horizon, 20, times=10, batch=8, progress=False)


def same_cell(cell, expected):
    for name in (*SERIES, *PER_SEED, *EVENTS):
        np.testing.assert_array_equal(cell[name].values, expected[name].values, name)
        assert cell[name].dtype == expected[name].dtype, name
        assert cell[name].attrs["units"] == expected[name].attrs["units"]
    for name in ("meter", "side", "priced", "counts"):
        assert cell[name].values.tolist() == expected[name].values.tolist(), name
    for name in ("leak_messages", "leak_messages_delta", "ledger"):
        assert cell[name].item() == expected[name].item(), name
    slots = cell.slot if "slot" in cell.coords else cell.time
    np.testing.assert_array_equal(slots.values, expected.time.values)
    np.testing.assert_array_equal(cell.seed.values, expected.seed.values)


def test_every_cell_is_what_simulate_gives(stores):
    """Would catch cells, seeds, slots or kinds of links mixed up, or one bit of a value changed."""
    data = open_sweep(stores / "curves")
    assert data.regret.dims == ("epsilon", "rounds", "seed", "time")
    assert data.epsilon.values.tolist() == [0.5, "none"]
    assert data.rounds.values.tolist() == ["none", 2]
    assert data.seeds.values.tolist() == [[20, 20], [20, 20]]
    for epsilon in (0.5, None):
        for rounds in (None, 2):
            algorithm = fmab.cdp_mab(math.inf if epsilon is None else epsilon, rounds=rounds)
            cell = data.sel(epsilon=epsilon or "none", rounds=rounds or "none")
            same_cell(cell, alone(algorithm, 20_000))
    assert int(data.links.sel(meter="server").max()) > 0


def test_cells_that_wait_lie_beside_cells_that_do_not(stores):
    """Would catch regret while waiting lost, or not 0 where nobody waits, and slots of others."""
    data = open_sweep(stores / "waiting-curves")
    assert data.slot.dims == ("horizon", "time") and "time" not in data.coords
    waited = {}
    for horizon in (2000, 20_000):
        for graph in ("ring", "complete"):
            expected = alone(fmab.ddp_mab(2.0, graph=graph), horizon)
            cell = data.sel(horizon=horizon, graph=graph)
            same_cell(cell, expected)
            waited[graph] = float(cell.waiting_regret.max())
            assert int(cell.wait) == expected.attrs["wait"]
    assert waited["ring"] > 0
    assert data.wait.dims == ("graph",)
    assert "horizon" not in data.attrs and data.attrs["epsilon"] == 2.0


@pytest.mark.parametrize("keep", ["curves", "summary"])
def test_a_grid_with_fewer_slots_repeats_its_last(keep):
    """Would catch a sweep of horizons refused, or misread, where chosen slots are not its own."""
    options = {**PARAMETERS, "times": [100, 500], "horizon": [500, 1000, 20_000]}
    data = fmab.sweep("cdp", seeds=16, keep=keep, epsilon=2, **options, **SMALL)
    assert data.slot.values.tolist() == [[100, 500, 500], [100, 500, 1000], [100, 500, 20_000]]
    one = fmab.simulate(
        fmab.cdp_mab(2.0), fmab.Problem.heterogeneous(4, 3, 0.0), 500, 16, times=[100, 500], batch=8
    )
    short = data.sel(horizon=500)
    if keep == "curves":
        np.testing.assert_array_equal(short.regret.values, one.regret.values[:, [0, 1, 1]])
        np.testing.assert_array_equal(short.regret.isel(time=-1), one.regret.values[:, 1])
    else:
        mean, covariance = one.regret.values.mean(axis=0), np.cov(one.regret.values.T)
        np.testing.assert_allclose(short.regret_mean, mean[[0, 1, 1]], rtol=1e-12)
        whole = covariance[np.ix_([0, 1, 1], [0, 1, 1])]
        np.testing.assert_allclose(short.regret_covariance, whole, rtol=1e-10)
    table = fmab.table(data).set_index("horizon")
    expected = one.regret.values[:, -1].mean()
    assert float(table.regret[500]) == pytest.approx(expected, rel=1e-12)


def test_the_store_opens_as_what_sweep_returned(stores):
    """Would catch labels, attributes or types that do not survive the store."""
    for keep in ("curves", "summary"):
        data = fmab.sweep("cdp", seeds=20, keep=keep, **PARAMETERS, **GRID, **SMALL)
        for name in ("elapsed_s", "compilations", "compile_s", "device"):
            del data.attrs[name]
        xr.testing.assert_identical(data.load(), open_sweep(stores / keep).load())


def indexers(size):
    inside = st.integers(-size, size - 1)
    # Beyond -size xarray's own lazy slices go wrong.
    ends = st.one_of(st.none(), st.integers(-size, size + 2))
    steps = st.sampled_from([None, 1, 2, 3, -1, -2, -5])
    slices = st.builds(slice, ends, ends, steps)
    # Without a plain list of nothing, whose type NumPy takes for float.
    return st.one_of(inside, slices, st.lists(inside, min_size=1, max_size=6).map(np.array))


@given(st.sampled_from(["regret", "links", "rounds_made", "best_arm_lost"]), st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_indexing_is_that_of_the_loaded_array(lazy, name, drawn):
    """Would catch a wrong order, step, sign or dimension in what is read for an index."""
    array, loaded = lazy[name], LOADED[name]
    for _ in range(drawn.draw(st.integers(1, 2))):
        options = {
            dim: drawn.draw(indexers(size), label=str(dim))
            for dim, size in array.sizes.items()
            if size and drawn.draw(st.booleans())
        }
        array, loaded = array.isel(options), loaded.isel(options)
    result, expected = array.values, loaded.values
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(result, expected)
    assert array.dims == loaded.dims


LOADED = {}


@pytest.fixture(scope="module")
def lazy(stores, curves):
    """The curves, not read yet; what they must equal is in LOADED."""
    LOADED.update({str(name): curves[name] for name in curves.variables})
    yield open_sweep(stores / "curves")
    LOADED.clear()


def by_hand(parts, keep):
    """Returns the results of one cell, "a", with chunks of these seeds; nothing can be read."""
    common = {"cells": ["b", "a"], "keep": keep, "made_by": {"numpy": "2"}}
    entries = [
        Entry(f"{i:032x}", 0, "", {**common, "seeds": list(part)}) for i, part in enumerate(parts)
    ]
    return Results({"keep": keep}, Memory(), entries)


def reached(parts, start, stop):
    """Brute force: all seeds at which whole parts from ``start`` on can end."""
    ends = {start}
    for _ in parts:
        ends |= {b for a, b in parts if a in ends and b <= stop}
    return ends


PARTS = st.lists(
    st.tuples(st.integers(0, 14), st.integers(1, 8)).map(lambda p: (p[0], p[0] + p[1])), max_size=9
)
SPANS = st.tuples(st.integers(0, 12), st.integers(1, 12)).map(lambda p: (p[0], p[0] + p[1]))


@given(PARTS, SPANS)
@settings(max_examples=400, deadline=None)
def test_curves_come_from_parts_of_chunks(parts, span):
    """Would catch a seed taken twice, left out, from a chunk without it, or computed again."""
    result = by_hand(parts, "curves")
    start, stop = span
    there = {seed for a, b in parts for seed in range(a, b)}
    leading = next(seed for seed in range(100) if seed not in there)
    chain = result.find_chain("a", stop)
    assert result.count_seeds("a", stop) == min(leading, stop)
    seeds = [s for part in chain for s in range(part.start, part.stop)]
    assert seeds == [*range(min(leading, stop))]
    for part in chain:
        a, b = part.entry.facts["seeds"]
        assert a <= part.start < part.stop <= b and part.row == 1
    missing = [seed for seed in range(start, stop) if seed not in there]
    assert [s for a, b in result.find_gaps("a", start, stop) for s in range(a, b)] == missing
    gaps = result.find_gaps("a", start, stop)
    assert all(b < c for (_, b), (c, _) in zip(gaps, gaps[1:], strict=False))
    assert (result.count_seeds("c", stop), result.find_gaps("c", start, stop)) == (
        0,
        [(start, stop)],
    )


@given(PARTS, SPANS)
@settings(max_examples=400, deadline=None)
def test_summaries_come_from_whole_chunks(parts, span):
    """Would catch a way over the chunks that is missed, that overlaps, or that ends too late."""
    result = by_hand(parts, "summary")
    start, stop = span
    chain = result.find_chain("a", stop)
    assert result.count_seeds("a", stop) == max(reached(parts, 0, stop))
    at = 0
    for part in chain:
        assert [part.start, part.stop] == part.entry.facts["seeds"] and part.start == at
        at = part.stop
    gaps = result.find_gaps("a", 0, stop)
    assert by_hand([*parts, *gaps], "summary").count_seeds("a", stop) == stop
    inside = ((max(a, start), min(b, stop)) for a, b in gaps)
    assert result.find_gaps("a", start, stop, stop) == [(a, b) for a, b in inside if a < b]
    whole = [seed for a, b in parts if b <= stop for seed in range(a, b)]
    if len(whole) == len({*whole}):
        assert [s for a, b in gaps for s in range(a, b)] == sorted({*range(stop)} - {*whole})


def test_a_chunk_of_the_other_kind_is_not_used():
    """Would catch moments read as curves in a folder that was allowed to change its keep."""
    facts = {"cells": ["a"], "seeds": [0, 9], "keep": "summary", "made_by": {"numpy": "2"}}
    entry = Entry("0" * 32, 0, "", facts)
    assert Results({"keep": "curves"}, Memory(), [entry]).count_seeds("a", 9) == 0
    assert Results({"keep": "summary"}, Memory(), [entry]).count_seeds("a", 9) == 9


def subset(stores, keep, wanted):
    """Returns the results with only some chunks: by cell, the first seeds of its chunks."""
    whole = open_results(stores / keep)
    hashes = np.array([fact["hash"] for fact in whole.header["cells"]]).reshape(2, 2)
    firsts = {hashes[place]: starts for place, starts in wanted.items()}
    entries = [
        part.entry
        for cell, parts in whole.parts.items()
        for part in parts
        if part.start in firsts.get(cell, [])
    ]
    return Results(whole.header, whole.source, entries)


def test_seeds_are_found_where_chunks_overlap(stores, curves):
    """Would catch another seed's regret where a part begins inside its chunk."""
    whole, memory, entries = open_results(stores / "curves"), Memory(), []
    for cell, parts in whole.parts.items():
        pieces = [whole.load_chunk(part.entry) for part in sorted(parts, key=lambda x: x.start)]
        arrays = {name: np.concatenate([piece[name][0] for piece in pieces]) for name in pieces[0]}
        for start, stop in ((0, 12), (8, 20)):
            facts = {**parts[0].entry.facts, "cells": [cell], "seeds": [start, stop]}
            part_arrays = {name: values[None, start:stop] for name, values in arrays.items()}
            entries.append(memory.put(f"{cell}{start}", part_arrays, facts))
    data = results.dataset(Results(whole.header, memory, entries), "here")
    for name in SERIES:
        np.testing.assert_array_equal(data[name], curves[name])


UNFINISHED = {
    (0, 0): [0, 8, 16],
    (0, 1): [0, 8],
    (1, 0): [0, 16],  # with a gap
    (1, 1): [8],  # without its beginning
}


def test_unfinished_curves_are_nan_where_they_are_missing(stores, curves):
    """Would catch zeros for what is missing, seeds after a gap, or values that move."""
    result = subset(stores, "curves", UNFINISHED)
    refuses(
        "^store='here': must be finished; it lacks at least 24 trials",
        results.dataset,
        result,
        "here",
    )
    data = results.dataset(result, "here", partial=True)
    assert data.seeds.values.tolist() == [[20, 16], [8, 0]]
    for name in (*SERIES, *PER_SEED):
        for place in np.ndindex(2, 2):
            seeds = int(data.seeds[place])
            values, expected = data[name].values[place], curves[name].values[place]
            np.testing.assert_array_equal(values[:seeds], expected[:seeds], name)
            if place != (0, 1):
                assert np.isnan(values[max(seeds, 8 if place == (1, 0) else 0) :]).all(), name
            else:
                assert np.isnan(values[16:]).all()
    table = fmab.table(data)
    for name in ("regret", "best_arm_lost_upper"):
        assert table[name].isna().tolist() == [False, False, False, True]
    expected = curves.regret.values[0, 1, :16, -1].mean()
    assert table.regret[1] == pytest.approx(expected, rel=1e-12)
    # A configuration with fewer seeds than others is not one of runs that were joined.
    for place in np.ndindex(2, 2):
        alone = {dim: index for dim, index in zip(data.seeds.dims, place, strict=True)}
        leaks = [fmab.table(item.isel(alone)).leak_messages[0] for item in (data, curves)]
        assert leaks[0] == leaks[1] > 0.0
    empty = results.dataset(subset(stores, "curves", {}), "here", partial=True)
    assert empty.sizes["seed"] == 0 and fmab.table(empty).regret.isna().all()


def test_an_unfinished_summary_is_of_the_seeds_that_it_has(tmp_path, curves):
    """Would catch moments of seeds after a gap, and zeros for a cell that has not begun."""
    half = {"store": tmp_path / "s", "seeds": 20, "keep": "summary", "worker": (1, 2)}
    fmab.sweep("cdp", **half, **PARAMETERS, **GRID, **SMALL)
    data = open_sweep(tmp_path / "s", partial=True)
    assert data.seeds.values.tolist() == [[8, 0], [8, 0]]
    expected = curves.regret[:, 0, :8].mean("seed")
    np.testing.assert_allclose(data.regret_mean[:, 0], expected, rtol=1e-12)
    assert data.regret_histogram.sum("bin").values.tolist() == [[8, 0], [8, 0]]
    assert np.isnan(data.regret_mean[:, 1]).all() and np.isnan(data.regret_quantile[:, 1]).all()


@pytest.mark.parametrize("case", ["", "waiting-"])
def test_a_summary_is_that_of_the_curves(stores, case):
    """Would catch moments, counts or links of other cells, slots, seeds or degrees of freedom."""
    curves = open_sweep(stores / f"{case}curves").load()
    data = open_sweep(stores / f"{case}summary")
    dims = curves.seeds.dims
    assert data.seeds.dims == dims and (data.seeds == curves.seeds).all()
    if case:
        np.testing.assert_array_equal(data.slot, curves.slot)
    for name in SERIES:
        mean = curves[name].mean("seed")
        np.testing.assert_allclose(data[f"{name}_mean"], mean, rtol=1e-12, err_msg=name)
        if name == "links":
            variance = curves[name].astype(float).var("seed", ddof=1)
            np.testing.assert_allclose(data[f"{name}_variance"], variance, rtol=1e-9, atol=1e-12)
    rounds = curves.rounds_made.astype(float)
    np.testing.assert_allclose(data.rounds_made_mean, rounds.mean("seed"), rtol=1e-12)
    numbers = curves.numbers_sent.astype(float)
    assert (numbers > 0).any()
    np.testing.assert_allclose(data.numbers_sent_mean, numbers.mean("seed"), rtol=1e-12)
    near = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(data.numbers_sent_variance, numbers.var("seed", ddof=1), **near)
    np.testing.assert_allclose(data.rounds_made_variance, rounds.var("seed", ddof=1), **near)
    for name in EVENTS:
        np.testing.assert_array_equal(data[name], curves[name].sum("seed"), name)
    np.testing.assert_array_equal(data.undecided, (curves.chosen_arm < 0).sum("seed"))
    for place in np.ndindex(2, 2):
        regret = curves.regret.values[place]
        result = data.regret_covariance.values[place]
        np.testing.assert_allclose(result, np.cov(regret.T), rtol=1e-9)
        last = np.sort(regret[:, -1])
        histogram = data.regret_histogram.values[place]
        assert histogram.sum() == 20
        low, high = data.bin_low.values, data.bin_high.values
        inside = [((last >= a) & (last < b)).sum() for a, b in zip(low, high, strict=True)]
        np.testing.assert_array_equal(histogram, inside)
        expected = last[np.ceil(data["quantile"].values * 20).astype(int) - 1]
        np.testing.assert_allclose(data.regret_quantile.values[place], expected, rtol=1e-3)


@pytest.mark.parametrize("graph", [None, "ring"])
def test_curves_that_stay_on_a_device_give_the_same_summary(graph, monkeypatch):
    """Would catch series of other trials, or of padding, where only a summary leaves the device."""
    maker, extra = ("cdp", {}) if graph is None else ("ddp", {"graph": graph})
    grid = {**PARAMETERS, **extra, "keep": "summary", "seeds": 20, "epsilon": [0.5, 1.0, None]}
    expected = fmab.sweep(maker, **grid, batch=8, progress=False).load()
    monkeypatch.setattr(resources, "keeps_curves", lambda devices: True)
    content = []
    monkeypatch.setattr(
        device_summary, "compute_moments", kept(content, device_summary.compute_moments)
    )
    result = fmab.sweep(maker, **grid, batch=16, progress=False).load()
    assert len(content) == (3 if graph else 2)
    assert result.equals(expected)


def kept(calls, function):
    """Returns a function that notes each call."""

    def noted(*given, **named):
        calls.append(given)
        return function(*given, **named)

    return noted


def test_a_sweep_until_precise_is_judged_by_its_looks():
    """Would catch a cell that stops too early or late, or a table of another band than judged."""
    until = fmab.until_precise(0.3, level=0.9, max_seeds=160)
    options = {**PARAMETERS, **GRID, **SMALL}
    data = fmab.sweep("cdp", seeds=20, keep="summary", until=until, **options)
    level = 1 - 0.1 / 4  # looks at 20, 40, 80 and 160 seeds
    assert data.attrs["look_level"] == pytest.approx(level, rel=1e-12)
    curves = fmab.sweep("cdp", seeds=160, **options).regret.values
    table = fmab.table(data)
    for index, place in enumerate(np.ndindex(2, 2)):
        for look in (20, 40, 80, 160):
            moments = summary.compute_moments(curves[place][:look])
            mean, half = compute_moments_band(
                look, moments.mean, moments.covariance, level, resamples=round(200 / 0.025)
            )
            if half[-1] <= 0.3 * mean[-1]:
                break
        assert int(data.seeds[place]) == look
        assert float(data.relative_width[place]) == pytest.approx(half[-1] / mean[-1], rel=1e-6)
        ends = [table[f"regret{end}"][index] for end in ("", "_lower", "_upper")]
        expected = [mean[-1], mean[-1] - half[-1], mean[-1] + half[-1]]
        assert ends == pytest.approx(expected, rel=1e-6)
    assert table.attrs["level"] == 0.9
    text = "90 % simultaneous band at T (97.5 % a look, 4 possible looks)"
    assert table.attrs["interval"] == text
    # Another level is one over all looks as well.
    variant = fmab.table(data, level=0.95)
    assert "98.75 % a look" in variant.attrs["interval"]
    assert (variant.regret_upper > table.regret_upper).all()
    # Otherwise this test has seen one look only.
    assert int(data.seeds.min()) < int(data.seeds.max())


@pytest.fixture
def streamed(stores, monkeypatch):
    """Curves that are not in memory, and blocks so small that every curve takes several."""
    monkeypatch.setattr(bands, "_CHUNK", 40)
    return open_sweep(stores / "curves")


@pytest.mark.parametrize("kind", ["simultaneous", "pointwise", "quantile"])
def test_bands_of_curves_that_are_read_in_blocks(streamed, curves, kind, monkeypatch):
    """Would catch a block left out, read twice or in another order, and events not counted."""
    result = fmab.confidence_band(streamed.regret, kind=kind)
    # Of the same blocks in memory, to the last digit; of one block, to rounding, whose square root
    # the factor of nearly equal slots' correlation has.
    xr.testing.assert_identical(result, fmab.confidence_band(curves.regret, kind=kind))
    monkeypatch.setattr(bands, "_CHUNK", 1 << 23)
    whole = fmab.confidence_band(curves.regret, kind=kind)
    assert {"best_arm_lost", "worse_arm_played"} <= set(result)
    for name in whole:
        rtol = 1e-8 if kind == "simultaneous" else 1e-12
        np.testing.assert_allclose(result[name], whole[name], rtol=rtol, atol=1e-9, err_msg=name)
    if kind == "simultaneous":
        tables = (fmab.table(data, server_price=25) for data in (streamed, curves))
        pd.testing.assert_frame_equal(*tables)


def test_summaries_say_what_runs_spend():
    """Would catch a mean or another quantile in a summary."""
    spent = []
    for keep in ("curves", "summary"):
        parameters = PARAMETERS | {"horizon": 100_000, "epsilon": [0.5, None]}
        data = fmab.sweep("cdp", seeds=60, keep=keep, **parameters, **SMALL)
        spent.append(fmab.table(data)[[*budgets.COLUMNS]].to_dict("records"))
    for first, second in zip(*spent, strict=True):
        assert first == pytest.approx(second, rel=1e-12)
    assert any(row["numbers"] < row["numbers_p95"] < row["numbers_max"] for row in spent[0])
