"""Exports read back to the same bits, stand whole or not at all, and refuse in one line."""

import errno
import math
import os
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from refusals import refuses

import fmab_jax as fmab
from fmab_jax import files
from fmab_jax.cli.main import main
from fmab_jax.sweeps import exports
from fmab_jax.sweeps.exports import export, tidy_tables

PARAMETERS = dict(agents=4, arms=3, horizon=20_000, times=10)
SMALL = dict(chunk=8, batch=8, progress=False)
SERIES = ("regret", "waiting_regret")
PER_SEED = ("rounds_made", "numbers_sent", "active_arms", "chosen_arm", "agents_lost")
PER_SEED += ("best_arm_lost", "worse_arm_played", "agents_worse", "final_gap")
EVENTS = ("best_arm_lost", "worse_arm_played", "undecided")
ENDINGS = (".nc", ".csv", ".parquet")


@pytest.fixture(scope="module")
def swept():
    """A sweep's curves and summary: numbers and "none", a horizon each, infinite epsilon."""
    result = {}
    for keep in ("curves", "summary"):
        grid = dict(epsilon=[0.5, None], horizon=[2000, 20_000])
        options = {**PARAMETERS, **grid, **SMALL}
        result[keep] = fmab.sweep("cdp", seeds=20, keep=keep, **options).load()
    return result


@pytest.mark.parametrize("keep", ["curves", "summary"])
def test_arrays_read_back_to_the_same_bits(swept, keep, tmp_path):
    """Would catch a variable, dimension, label or attribute lost or rounded, or a noisy writer."""
    data = swept[keep]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = export(data, tmp_path / "x.nc")
    assert path == tmp_path / "x.nc"
    back = fmab.load(path)
    assert set(back.variables) == set(data.variables)
    for name, variable in data.variables.items():
        assert back[name].dims == variable.dims, name
        if variable.dtype == object:
            assert back[name].values.tolist() == [0.5, "none"]
        else:
            np.testing.assert_array_equal(back[name].values, variable.values, str(name))
            assert back[name].dtype == variable.dtype, name
    for name, value in data.attrs.items():
        assert back.attrs[name] == value, name
    assert back.epsilon_message.values.tolist() == [2.0, math.inf]
    assert [result.name for result in tmp_path.iterdir()] == [path.name]


def table(path):
    if path.suffix == ".csv":
        # Read by Python, whose floats are exact.
        texts = pd.read_csv(path, dtype=str, keep_default_na=False)
        numbers = {"True": 1.0, "False": 0.0, "": math.nan}
        return pd.DataFrame(
            {
                name: texts[name]
                if name in ("algorithm", "epsilon", "leak_view")
                else [numbers[x] if x in numbers else float(x) for x in texts[name]]
                for name in texts
            }
        )
    return pd.read_parquet(path)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables_of_curves_hold_a_row_for_each_cell_seed_and_slot(swept, ending, tmp_path):
    """Would catch rows in another order than their labels, a rounded float, or a column lost."""
    data = swept["curves"]
    frame = table(export(data, tmp_path / f"x{ending}"))
    sizes = ["algorithm", "agents", "arms"]
    leak = ["leak_messages", "leak_messages_delta", "leak_view"]
    assert frame.columns[:9].tolist() == [*sizes, "epsilon", "horizon", *leak, "seed"]
    assert frame.groupby(sizes).size().to_dict() == {("cdp", 4, 3): 800}
    # All four agents are heard.
    assert frame.leak_messages.tolist() == [2.0] * 400 + [math.inf] * 400
    assert frame.leak_messages_delta.tolist() == [0.0] * 800
    assert frame.leak_view.tolist() == ["single messages"] * 400 + ["messages"] * 400
    labels = [
        (epsilon, horizon, seed, slot)
        for epsilon in ("0.5", "none")
        for horizon in (2000, 20_000)
        for seed in range(20)
        for slot in data.slot.sel(horizon=horizon).values.tolist()
    ]
    # Horizons differ, so "time" counts the slots, and "slot" names them.
    assert list(zip(frame.epsilon, frame.horizon, frame.seed, frame.slot, strict=True)) == labels
    assert frame.time.tolist() == list(range(10)) * 80
    for name in SERIES:
        np.testing.assert_array_equal(frame[name], data[name].values.ravel(), name)
    links = data.links.sel(meter="server").values.ravel()
    np.testing.assert_array_equal(frame.links_server, links)
    assert links.max() > 0 and "links" not in frame
    for name in PER_SEED:
        values = np.repeat(data[name].values.ravel(), 10)
        np.testing.assert_array_equal(frame[name].to_numpy(), values, name)
    message = np.where(frame.epsilon == "none", math.inf, 2.0)
    np.testing.assert_array_equal(frame.epsilon_message.astype(float), message)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables_of_summaries_hold_a_row_for_each_cell_and_slot(swept, ending, tmp_path):
    """Would catch a table without the variance of regret, or one of another slot."""
    data = swept["summary"]
    frame = table(export(data, tmp_path / f"x{ending}"))
    assert frame.epsilon.tolist() == ["0.5"] * 20 + ["none"] * 20
    assert frame.horizon.tolist() == ([2000] * 10 + [20_000] * 10) * 2
    np.testing.assert_array_equal(frame.regret_mean, data.regret_mean.values.ravel())
    for name in ("links_mean", "links_variance"):
        expected = data[name].sel(meter="server").values.ravel()
        np.testing.assert_array_equal(frame[f"{name}_server"], expected, name)
    for name in ("rounds_made_mean", "rounds_made_variance", "seeds", *EVENTS):
        np.testing.assert_array_equal(frame[name], np.repeat(data[name].values.ravel(), 10), name)
    curves = swept["curves"].regret.var("seed", ddof=1).values.ravel()
    np.testing.assert_allclose(frame.regret_variance, curves, rtol=1e-9)


def test_a_single_run_is_exported_too(tmp_path):
    """Would catch a result of `simulate` refused, or labelled as if it had been swept."""
    data = fmab.simulate(
        fmab.cdp_mab(0.5), fmab.Problem.heterogeneous(4, 3, 0.0), 20_000, 20, times=10, batch=8
    )
    frame = table(export(data, tmp_path / "x.parquet"))
    what = {"algorithm": "cdp", "agents": 4, "arms": 3, "horizon": 20_000, "epsilon": 0.5}
    what |= {"leak_messages": 2.0, "leak_messages_delta": 0.0, "leak_view": "single messages"}
    assert frame.columns[:10].tolist() == [*what, "seed", "time"]
    assert frame[list(what)].drop_duplicates().to_dict("records") == [what]
    np.testing.assert_array_equal(frame.seed, np.repeat(np.arange(20), 10))
    np.testing.assert_array_equal(frame.time, np.tile(data.time.values, 20))
    np.testing.assert_array_equal(frame.regret, data.regret.values.ravel())
    np.testing.assert_array_equal(frame.rounds_made, np.repeat(data.rounds_made.values, 10))
    links = data.links.sel(meter="server").values.ravel()
    np.testing.assert_array_equal(frame.links_server, links)
    xr.testing.assert_identical(fmab.load(export(data, tmp_path / "x.nc")), data)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_leak_is_exported_with_its_delta(ending, tmp_path):
    """Would catch a Gaussian epsilon that reads as one without delta, the leak of a neighbour, and
    views that were added left out."""
    noise = {"epsilon": [0.5, None], "mechanism": "gaussian", "delta": 1e-3}
    options = {**PARAMETERS, **SMALL, "horizon": 300, "times": 2, "seeds": 2}
    data = fmab.sweep("cdp", **noise, **options)
    assert 2 < float(data.leak_messages[0]) < math.inf
    frame = table(export(data, tmp_path / f"x{ending}"))
    leaks = frame[["leak_messages", "leak_messages_delta", "leak_view"]].drop_duplicates()
    first = [float(data.leak_messages[0]), 1e-6, "single messages"]
    assert leaks.values.tolist() == [first, [math.inf, 0.0, "messages"]]
    assert "ledger" not in frame and "leak_sum" not in frame
    frame = table(export(fmab.add_leaks(data), tmp_path / f"y{ending}"))
    for name in ("leak_sum", "leak_actions"):
        due = np.repeat(fmab.add_leaks(data)[name].values, 4)
        np.testing.assert_array_equal(frame[name], due)
        assert frame[f"{name}_delta"].tolist()[0] == 1e-6


def test_tables_leave_out_seeds_that_a_cell_does_not_have(swept):
    """Would catch rows of NaN for the seeds of other cells."""
    data = swept["curves"].copy()
    data["seeds"] = data.seeds.copy(data=[[20, 3], [0, 1]])
    frames = list(tidy_tables(data))
    assert [sorted(set(frame.seed)) for frame in frames] == [[*range(20)], [0, 1, 2], [], [0]]
    np.testing.assert_array_equal(frames[1].regret, data.regret.values[0, 1, :3].ravel())


@pytest.mark.parametrize("ending", ENDINGS)
def test_older_files_are_replaced_on_request_alone(swept, ending, tmp_path):
    """Would catch an export that overwrites an older file or a folder unasked, writes through a
    link, or mixes the old file with the new one."""
    path, link, folder = (tmp_path / f"{name}{ending}" for name in ("x", "link", "folder"))
    path.write_text("mine")
    link.symlink_to(tmp_path / "nowhere")
    folder.mkdir()
    (folder / "thesis.tex").write_text("mine")
    data = swept["summary"]
    for occupied in (path, link):
        refuses("^path=.*: must be a new name; ", export, data, occupied)
    for overwrite in (False, True):
        line = "^path=.*: must be the name of a file; a folder has"
        refuses(line, export, data, folder, overwrite=overwrite)
    assert path.read_text() == "mine" and not (tmp_path / "nowhere").exists()
    for part in (data, data.isel(epsilon=[0]), data):
        assert export(part, path, overwrite=True) == path
        if ending == ".nc":
            back = fmab.load(path)
            np.testing.assert_array_equal(back.regret_mean, part.regret_mean)
            assert set(back.variables) == set(part.variables)
        else:
            assert len(table(path)) == part.regret_mean.size
    assert {result.name for result in tmp_path.rglob("*")} == {
        *(path.name, link.name, folder.name, "thesis.tex")
    }


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_left_of_an_export_that_fails(swept, ending, tmp_path, monkeypatch):
    """Would catch half a file under the name, or a temporary one left beside it."""
    full = OSError(errno.ENOSPC, "No space left on device")
    if ending == ".nc":
        # Everything is written, and then cannot be put in its place.
        def replace(*_):
            assert len(list(tmp_path.iterdir())) == 1
            raise full

        monkeypatch.setattr(files.os, "replace", replace)
    else:
        tables = exports.tidy_tables

        def some(data):
            yield next(tables(data))
            assert len(list(tmp_path.iterdir())) == 1
            raise full

        monkeypatch.setattr(exports, "tidy_tables", some)
    with pytest.raises(OSError) as error:
        export(swept["curves"], tmp_path / f"x{ending}")
    assert error.value.errno == errno.ENOSPC and list(tmp_path.iterdir()) == []


def test_what_a_killed_export_left_is_removed_a_day_later(swept, tmp_path, capsys):
    """Would catch half a table that stays for ever, and one that is shown as a result."""
    left, variant = files.temporary_beside(tmp_path / "x.csv"), tmp_path / ".y.csv.0a1b2c3d.tmp"
    for path in (left, variant):
        path.write_bytes(b"half")
    assert main(["show", str(left)]) == 2
    assert ": must be a" in capsys.readouterr().err
    export(swept["summary"], tmp_path / "x.csv")
    assert left.exists()  # somebody may be writing it
    for path in (left, variant):
        os.utime(path, (time.time() - 100_000,) * 2)
    export(swept["summary"], tmp_path / "x.csv", overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"x.csv", variant.name}
