"""Records of stores: what they say, and which of them are refused."""

import json
import shutil

import numpy as np
import pytest
from refusals import refused

import fmab_jax as fmab
from fmab_jax import Study
from fmab_jax.algorithms import base
from fmab_jax.cli import study_options
from fmab_jax.sweeps import claims, grid
from fmab_jax.sweeps.store import Store

KEEPS = ("curves", "summary")
STUDY = dict(agents=4, arms=3, horizon=2000, times=6, epsilon=[0.5, None], chunk=8, batch=8)


def swept(store, keep, **changes):
    extra = {}
    if keep == "summary":
        extra = dict(until=fmab.until_precise(relative=1e-9, max_seeds=16))
    return fmab.sweep(
        "cdp", store=store, seeds=16, keep=keep, **{"progress": False, **STUDY, **extra, **changes}
    )


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A finished store of curves, and one of a summary."""
    folder = tmp_path_factory.mktemp("stores")
    for keep in KEEPS:
        swept(folder / keep, keep)
    return folder


@pytest.mark.parametrize("until", [None, fmab.until_precise(relative=0.1, max_seeds=4)])
@pytest.mark.parametrize("name", sorted(base.ALGORITHMS.by_name()))
def test_whatever_a_study_writes_can_be_read(tmp_path, name, until):
    """Would catch a check that is too strict: no parameters, no noise, no links, no rounds."""
    owner = base.ALGORITHMS.by_name()[name]
    algorithm = owner(**study_options.add_suggestions(owner, {}))
    options = {"agents": 12, "arms": 3, "horizon": 50, "times": 4, "seeds": 2}
    options |= {"until": until, "keep": "summary" if until else "curves"}
    study = Study(algorithm, fixed_instance=[None, 7], **options)
    header = grid.build_header(study, {"jax": "1"})
    store = Store(tmp_path / "s", create=True)
    store.write_header(header)
    assert claims.header_in(store) == json.loads(json.dumps(header))
    data = fmab.open_sweep(store.path, partial=True)
    assert data.attrs["algorithm"] == name and data.attrs["study_hash"] == study.hash
    assert data.seeds.values.tolist() == [0, 0] and data.attrs["title"] == algorithm.title


def copied(stores, keep, tmp_path):
    """Returns a copy of a store, and its header."""
    shutil.copytree(stores / keep, tmp_path / "s")
    store = Store(tmp_path / "s")
    header = store.header()
    assert header is not None and header["format"] == 4
    return store, header


@pytest.mark.parametrize(
    "version, words",
    [
        (None, "it is of format 1: run the sweep again into another folder, or use"),
        (2, "it is of format 2: run the sweep again into another folder"),
        (5, "it is of format 5: use the newer package that made it"),
    ],
)
def test_a_store_of_another_format_is_refused_by_name(stores, tmp_path, version, words):
    """Would catch a store of another version that is read, resumed, or called damaged."""
    store, header = copied(stores, "curves", tmp_path)
    header.pop("format")
    store.write_header(header | ({} if version is None else {"format": version}))
    # The first version kept its chunks elsewhere.
    (store.path / "chunks").rename(store.path / "units")
    for use in (lambda: fmab.open_sweep(store.path), lambda: swept(store.path, "curves")):
        assert f"must be of format 4; {words}" in refused(use)
    assert not (store.path / "chunks").exists()


def test_chunks_say_what_they_were_made_by(tmp_path, monkeypatch):
    """Would catch chunks without versions: old ones would pass for those of the package in use."""
    from fmab_jax.sweeps import runner

    real = runner.collect_provenance
    monkeypatch.setattr(
        runner, "collect_provenance", lambda platform: {**real(platform), "numpy": "1.0"}
    )
    swept(tmp_path / "s", "curves")
    store = Store(tmp_path / "s")
    entries = store.entries()[0]
    versions = set(real("cpu")) | {"numpy"}
    assert [set(entry.facts["made_by"]) for entry in entries] == [versions] * 4
    assert {entry.facts["made_by"]["numpy"] for entry in entries} == {"1.0"}
    monkeypatch.undo()
    changes = {"epsilon": [0.5, None, 2.0], "allow_changes": ["epsilon", "numpy"]}
    data = swept(tmp_path / "s", "curves", **changes)
    assert data.attrs["numpy_version"] == f"1.0, {np.__version__}"
