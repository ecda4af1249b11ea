"""Files of results: another version, an edited attribute or a name that is taken is refused."""

from __future__ import annotations

import os

import h5py
import numpy as np
import pytest
import xarray as xr
from refusals import refuses

import fmab_jax as fmab
from fmab_jax.files import whole_file
from fmab_jax.run import netcdf


def result(**attrs):
    """Returns something as small as a result can be."""
    values = np.arange(6.0).reshape(2, 3)
    return xr.Dataset(
        {"regret": (("seed", "time"), values, {"units": "reward"})},
        {"time": [1, 5, 9]},
        {"algorithm": "cdp", "epsilon": 0.5, "schema": 5, **attrs},
    )


CHANGES = {
    "a value": lambda d: d.assign(regret=d.regret + np.eye(2, 3)),
    "a last bit": lambda d: d.assign(regret=d.regret * (1 + 2**-52)),
    "a sign of zero": lambda d: d.assign(regret=d.regret.where(d.regret != 0, -0.0)),
    "a coordinate": lambda d: d.assign_coords(time=[1, 5, 8]),
    "a type": lambda d: d.assign(regret=d.regret.astype(np.int64)),
    "a variable's name": lambda d: d.rename(regret="regrets"),
    "a dimension's name": lambda d: d.rename_dims(seed="agent"),
    "the order of dimensions": lambda d: d.assign(square=(("more", "time"), np.ones((3, 3)))),
    "a shape": lambda d: d.drop_vars("flat").assign(flat=(("few", "many"), np.ones((1, 9)))),
    "a variable more": lambda d: d.assign(another=0.0),
    "an attribute of a variable": lambda d: d.assign(regret=d.regret.assign_attrs(units="slots")),
    "an attribute": lambda d: d.assign_attrs(epsilon=0.25),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_digest_holds_all_that_a_result_says(what):
    """Would catch a digest without names, dimensions, types, shapes, values or attributes: such a
    result would load as another one."""
    first = result().assign(
        square=(("time", "more"), np.ones((3, 3))), flat=(("few", "many"), np.ones((3, 3)))
    )
    variant = CHANGES[what](first)
    assert netcdf._compute_digest(first) != netcdf._compute_digest(variant)
    assert netcdf._compute_digest(first) == netcdf._compute_digest(first.copy(deep=True))


@pytest.mark.parametrize("where", ["epsilon", "algorithm", "units", "new", "dimensions"])
def test_an_edited_attribute_does_not_load(tmp_path, where):
    """Would catch a digest that leaves out attributes, or the names of dimensions: an edited
    epsilon would label the curves, agents would pass for seeds."""
    path = fmab.save(result(), tmp_path / "x.nc")
    xr.testing.assert_identical(fmab.load(path), result())
    with h5py.File(path, "r+") as file:
        if where == "units":
            file["regret"].attrs["units"] = "regret"
        elif where == "dimensions":
            file.move("seed", "agent")
        else:
            file.attrs[where] = 1.5 if where == "epsilon" else "ddp"
    refuses("it is damaged: its digest does not fit$", fmab.load, path)


@pytest.mark.parametrize("version", [None, 1, 6, "two"])
def test_a_file_of_another_schema_is_refused_by_name(tmp_path, version):
    """Would catch a file whose variables mean something else, read as if they did not."""
    path = fmab.save(result(), tmp_path / "x.nc")
    with h5py.File(path, "r+") as file:
        assert file.attrs["schema"].tolist() == [5]
        del file.attrs["schema"]
        if version is not None:
            file.attrs["schema"] = version
    words = "of the first version" if version is None else version
    refuses(f": must be a result of schema 5; it is {words}: read it with the", fmab.load, path)


def test_nothing_temporary_is_left_by_an_error(tmp_path):
    """Would catch half a file that stays behind, or an old one lost, where writing breaks off or
    the name cannot be taken."""
    (tmp_path / "x").write_text("old")
    with pytest.raises(RuntimeError), whole_file(tmp_path / "x") as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert (tmp_path / "x").read_text() == "old" and os.listdir(tmp_path) == ["x"]
    (tmp_path / "x").unlink()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError) as caught, whole_file(tmp_path / "folder") as temporary:
        temporary.write_text("half")
    assert caught.value.filename == str(tmp_path / "folder") and caught.value.filename2 is None
    assert os.listdir(tmp_path) == ["folder"]


def regret_with(**attrs):
    data = result()
    data.regret.attrs.update(attrs)
    return data


UNKEPT = {
    "a NUL": result(note="a\0b"),
    "half a letter": result(note="\ud800"),
    "a label with a NUL": result().assign_coords(agent=["a", "b\0c"]),
    "a list": result(note=[1, 2]),
    "a dictionary": result(note={"a": 1}),
    "a date": regret_with(units="days since 2000-01-01"),
    "a scale": regret_with(scale_factor=2.0),
    "a value that is none": regret_with(_FillValue=0.0),
    "a folder in a dimension": result().assign(z=(("a/b",), np.arange(2.0))),
    "a dimension with a NUL": result().assign(z=(("a\0b",), np.arange(2.0))),
    "texts of none": result().assign(z=(("q",), np.zeros(0, "U3"))),
    "objects": result().assign(who=("seed", np.array(["a", 1], object))),
}


@pytest.mark.parametrize("what", UNKEPT)
def test_what_a_file_would_not_give_back_is_not_written(tmp_path, what):
    """Would catch a file that is called damaged, or something else, when it is read."""
    line = "data=...: must be a result that a file gives back as it is; drop what you added"
    refuses(line, fmab.save, UNKEPT[what], tmp_path / "x.nc")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("place", [slice(None), [1], 0, 1], ids=str)
def test_labels_of_mixed_kinds_come_back_as_they_were(tmp_path, place):
    """Would catch "none" beside texts that were numbers, and one label that is read letter by
    letter."""
    labels = np.empty(3, object)
    labels[:] = [0.1, "none", 12]
    data = xr.concat([result()] * 3, "epsilon").assign_coords(
        epsilon=("epsilon", labels, {"a": "b"})
    )
    data = data.isel(epsilon=place)
    actual = fmab.load(fmab.save(data, tmp_path / "x.nc"))
    assert actual.epsilon.values.tolist() == data.epsilon.values.tolist()
    assert actual.epsilon.attrs == {"a": "b"} and actual.epsilon.dims == data.epsilon.dims
