"""Records of stores: what they say, and which of them are refused."""

import json

import pytest

import fmab_jax as fmab
from fmab_jax import Study
from fmab_jax.algorithms import base
from fmab_jax.cli import study_options
from fmab_jax.sweeps import claims, grid
from fmab_jax.sweeps.store import Store


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
