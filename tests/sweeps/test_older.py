"""Results of version 0.3, which stated what leaks in another form: data/make.py wrote them."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import fmab_jax as fmab
from fmab_jax import Study
from fmab_jax.algorithms import base
from fmab_jax.algorithms.base import load_plugin
from fmab_jax.analysis.costs import read_exposure
from fmab_jax.run import netcdf
from fmab_jax.sweeps import chunks, grid, older, results

DATA = Path(__file__).parent / "data"
NAMES = ("leak_messages", "leak_messages_delta", "ledger")
GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files and the store of version 0.3."""
    path = tmp_path_factory.mktemp("older")
    with zipfile.ZipFile(DATA / "results.zip") as archive:
        archive.extractall(path)
    return path


def alone(algorithm):
    """Returns a run of today on the problem of the files."""
    return fmab.simulate(algorithm, fmab.Problem([0.9, 0.5, 0.1], agents=4), 100, 2, times=3)


def same_leaks(found, due):
    """Asserts that two results of one configuration leak the same, and say so in one way."""
    assert [found[name].item() for name in NAMES] == [due[name].item() for name in NAMES]
    views = ("leak_sum", "leak_sum_delta", "leak_actions", "leak_actions_delta")
    pair = [[float(fmab.add_leaks(each)[name]) for name in views] for each in (found, due)]
    np.testing.assert_array_equal(*pair)
    assert read_exposure(found) == read_exposure(due) and read_exposure(due).trust


def list_unknown(data):
    """Returns the remarks on leaks that are not known."""
    return [
        line for line in fmab.table(data).attrs["remarks"] if line.startswith("What leaks is not")
    ]


CASES = {
    "deltas.nc": {
        "delta": {
            d: fmab.cdp_mab(epsilon_message=1, **GAUSSIAN | {"delta": d}) for d in (1e-6, 1e-3)
        }
    },
    "means.nc": {None: {None: fmab.kl_se(0.5)}},
    "pure.nc": {None: {None: fmab.kl_se(0.5)}},
    "laws": {
        "mechanism": {"laplace": fmab.kl_se(0.5), "gaussian": fmab.kl_se(0.5, **GAUSSIAN)},
    },
}


@pytest.mark.parametrize("name", CASES)
def test_a_file_of_version_03_leaks_what_its_algorithm_does(name, folder):
    """Would catch leaks that are lost, or those of a neighbour or of another delta."""
    data = (fmab.open_sweep if name == "laws" else fmab.load)(folder / name)
    assert (data.leak_messages.dims, data.ledger.dims) == (data.seeds.dims,) * 2
    ((axis, algorithms),) = CASES[name].items()
    assert [*data.seeds.dims] == [axis] * (axis is not None)
    for label, algorithm in algorithms.items():
        cell = data if axis is None else data.sel({axis: label})
        same_leaks(cell, alone(algorithm))
    assert list_unknown(data) == [] and set(fmab.table(data).trust) != {""}


@pytest.mark.parametrize("name", ["deltas.nc", "means.nc", "mine.nc", "joined.nc", "seeds.nc"])
def test_nothing_else_of_an_older_file_changes(name, folder):
    """Would catch a variable, a label, an attribute or a bit that is lost or added."""
    data, bare = fmab.load(folder / name), netcdf.load(folder / name)
    assert bare.attrs.pop("ledger") and "ledger" not in data.attrs
    xr.testing.assert_identical(data.drop_vars(NAMES, errors="ignore"), bare)
    assert [name for name in NAMES if name in bare.variables] == []


def test_nothing_else_of_an_older_store_changes(folder):
    """Would catch numbers of a store that open as others, and a store that is refused."""
    data = fmab.open_sweep(folder / "laws").load()
    laws = fmab.sweep(
        *("kl_se",),
        **{"mechanism": ["laplace", "gaussian"], "epsilon": 0.5, "delta": 1e-3},
        **{"agents": 4, "arms": 3, "horizon": 100, "seeds": 2, "times": 3, "progress": False},
    ).load()
    assert set(data.variables) == set(laws.variables)
    for variable in data.variables:
        np.testing.assert_array_equal(data[variable].values, laws[variable].values, str(variable))
        assert data[variable].dtype == laws[variable].dtype
    json.loads(data.attrs["study"])
    kept = ("title", "epsilon", "agents", "arms", "horizon", "study_hash", "root_seed", "keep")
    assert [data.attrs[name] for name in kept] == [laws.attrs[name] for name in kept]


def test_a_plug_in_that_is_not_loaded_has_unknown_leaks(folder, tmp_path, monkeypatch):
    """Would catch the leaks of another algorithm, a leak of 0, silence, and a changed plug-in."""
    unknown = fmab.load(folder / "mine.nc")
    (line,) = list_unknown(unknown)
    assert line.startswith("What leaks is not known in 2 of 2 rows: ") and "--plugin" in line
    changed = tmp_path / "mine.py"
    changed.write_text((DATA / "mine.py").read_text("utf-8") + "\n# Another noise.\n", "utf-8")
    monkeypatch.setattr(base.ALGORITHMS, "loaded", dict(base.ALGORITHMS.loaded))
    load_plugin(changed)
    other = fmab.load(folder / "mine.nc")
    for data in (unknown, other):
        table = fmab.final_table(data)
        assert np.isnan([table.leak_messages, table.leak_messages_delta]).all()
        assert np.isnan(fmab.add_leaks(data).leak_sum).all() and list_unknown(data)
        assert set(fmab.overview(data).iloc[:, 1]) == {""}
        assert fmab.overview(data, where="leak_messages <= 1e300").empty


def test_a_plug_in_that_is_loaded_has_its_leaks(folder):
    """Would catch a digest of a plug-in that never fits."""
    load_plugin(DATA / "mine.py")
    data = fmab.load(folder / "mine.nc")
    assert data.leak_messages.values.tolist() == [2.0, np.inf] and list_unknown(data) == []
    assert data.leak_messages.dims == ("epsilon",)


@pytest.mark.parametrize("name", ["joined.nc", "seeds.nc"])
def test_runs_that_were_joined_have_no_leak_of_a_neighbour(name, folder):
    """Would catch the leak of the first run, whose study the file has, told of the others."""
    data = fmab.load(folder / name)
    leaks = fmab.final_table(data).leak_messages
    assert leaks.dims == (("who",) if name == "joined.nc" else ())
    assert np.isnan(leaks).all() and len(list_unknown(data)) == 1


SIZES = {"agents": 4, "arms": 3}
MEANS = [0.9, 0.5, 0.1]
STUDIES = {
    "labels": lambda: ({"a": fmab.cdp_mab(0.5), "b": fmab.kl_se(1, secure=True)}, SIZES),
    "none": lambda: ("cdp", {"epsilon": [0.5, None], "rounds": [None, 2]} | SIZES),
    "agents": lambda: ("kl_se", {"epsilon": 1, "agents": [2, 4], "arms": 3, "secure": True}),
    "by agent": lambda: ("cdp", {"epsilon_message": ["1x2,3x2", 1.0], **SIZES}),
    "absent": lambda: ("cdp", {"epsilon": 1, "presence": [None, "absent:0.2"], **SIZES}),
    "graphs": lambda: ("ddp", {"epsilon": 1, "graph": ["ring", "complete"], **SIZES}),
    "means": lambda: (
        *("cdp", {"epsilon": [0.5, 1]}),
        {"low": fmab.Problem(MEANS, 4), "high": fmab.Problem(MEANS[::-1], 4)},
    ),
    "messages": lambda: ({"a": fmab.cdp_mab(epsilon_message=2), "b": fmab.kl_se(1)}, SIZES),
    "means, absent": lambda: (
        *("cdp", {"epsilon": [0.5, 1]}),
        fmab.Problem(MEANS, 4, presence="absent:0.2"),
    ),
    "presences": lambda: (
        *("cdp", {"epsilon": 1}),
        {"all": fmab.Problem(MEANS, 4), "some": fmab.Problem(MEANS, 4, presence="absent:0.2")},
    ),
    "laws": lambda: (
        ("kl_se", {"epsilon": 1, "mechanism": ["laplace", "gaussian"], "delta": 1e-3})
        + (fmab.Problem(MEANS, 4),)
    ),
    "sizes": lambda: (
        *("kl_se", {"epsilon": 1, "secure": True}),
        {"few": fmab.Problem(MEANS, 2), "many": fmab.Problem(MEANS, 4)},
    ),
}


@pytest.mark.parametrize("case", STUDIES)
def test_leaks_are_found_again_by_the_study(case):
    """Would catch a study that is read as another one: labels, "none", epsilons by agent, sizes,
    epsilons of a message, or of agents that are all there.
    """
    algorithm, swept, *problem = STUDIES[case]()
    study = Study(algorithm, *problem, **swept, horizon=100, seeds=2, times=3)
    header = grid.build_header(study, {})
    data = results.dataset(chunks.Results(header, chunks.Memory(), []), "", partial=True)
    assert {*NAMES} <= {*data.variables}
    found = older.add_known_leaks(data.drop_vars(NAMES))
    if case in ("sizes", "presences"):  # a study does not say which label has which
        assert "leak_messages" not in found
        return
    xr.testing.assert_identical(found, data)
    # One configuration, and some of several.
    for place in ({name: 1 for name in data.seeds.dims}, dict.fromkeys(data.seeds.dims, [0])):
        part = data.isel(place)
        xr.testing.assert_identical(older.add_known_leaks(part.drop_vars(NAMES)), part)


def test_seeds_that_were_joined_are_of_no_known_study(folder):
    """Would catch the leak of one study, told of seeds of others, where a join keeps its number."""
    bare = netcdf.load(folder / "means.nc")
    assert "leak_messages" in older.add_known_leaks(bare.copy())
    joined = xr.concat(
        [bare, bare], "seed", data_vars="minimal", coords="minimal", combine_attrs="override"
    )
    assert joined.seeds.item() == bare.sizes["seed"] == joined.sizes["seed"] // 2
    assert "leak_messages" not in older.add_known_leaks(joined)


def test_leaks_are_unknown_where_one_of_several_algorithms_is():
    """Would catch the leaks of those that are known under the labels of all."""
    algorithms, sizes = STUDIES["labels"]()
    study = Study(algorithms, **sizes, horizon=100, seeds=2, times=3)
    header = grid.build_header(study, {})
    data = results.dataset(chunks.Results(header, chunks.Memory(), []), "", partial=True)
    description = json.loads(data.attrs["study"])
    description["algorithm"][1]["algorithm"] = "nobody"
    bare = data.drop_vars(NAMES).assign_attrs(study=json.dumps(description))
    assert "leak_messages" not in older.add_known_leaks(bare)
