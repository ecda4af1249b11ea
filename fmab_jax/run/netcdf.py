"""Results as netCDF files: lossless, written completely or not at all, with a digest."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Hashable, Mapping
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import xarray as xr

from fmab_jax.errors import PlainText, Refusal, describe_error, parse_number, refuse
from fmab_jax.files import check_path, refuse_taken, whole_file
from fmab_jax.run.schema import VERSION

if TYPE_CHECKING:
    import h5netcdf

_DIGEST, _SCHEMA, _MIXED = "sha256", "schema", "mixed"


def save(data: xr.Dataset, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Writes a result as netCDF-4, without loss and whole or not at all.

    Args:
        data: From `simulate` or `sweep`.
        path: A name ending in .nc.
        overwrite: Whether a file of that name may be replaced.

    Returns:
        The path written.

    Raises:
        ValueError: For another ending, a name that is taken, or a result with something in it that
            a file would not give back.
        OSError: If the folder cannot be written.

    Example:
        >>> import tempfile
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> fmab.save(data, tempfile.mkdtemp() + "/run.nc").name
        'run.nc'
    """
    path = _check_path(path)
    if not isinstance(data, xr.Dataset):
        refuse("data", data, "a result of simulate", "pass it unchanged")
    refuse_taken(path, overwrite)
    # What else a store holds is no part of a file.
    data = data.drop_attrs(deep=False).assign_attrs(
        {name: value for name, value in data.attrs.items() if name != "stored_seeds"}
    )
    versioned = _encode_labels(data).assign_attrs({_SCHEMA: VERSION})
    signed = versioned.assign_attrs({_DIGEST: _compute_digest(versioned)})
    # HDF5 crashes on a full disk, so it writes to memory; writing bytes raises a plain error.
    whole = io.BytesIO()
    _write(signed, whole)
    with whole_file(path) as temporary:
        temporary.write_bytes(whole.getbuffer())
    return path


def _write(data: xr.Dataset, file: io.BytesIO) -> None:
    """Writes netCDF-4, and refuses data that the file would not give back.

    xarray's writer takes six times as long for a small result, and imports Dask.
    """
    # Imported here, since most commands write no file.
    import h5netcdf

    try:
        variables, attrs = _encode_checked(data)
        with h5netcdf.File(file, "w", decode_vlen_strings=True) as root:
            root.dimensions = {str(name): size for name, size in data.sizes.items()}
            _write_attrs(root, attrs, "attrs")
            for name, variable in variables.items():
                _write_values(root, name, variable)
    except (Refusal, MemoryError):
        raise
    except Exception as error:  # xarray and h5py raise many types
        _refuse_lossy("...", f"drop what is not ({describe_error(error)})")


def _encode_checked(data: xr.Dataset) -> tuple[dict[str, xr.Variable], dict[str, object]]:
    """Returns variables and attributes by the conventions that xarray reads.

    Refuses what xarray would read as something else; reads one seed and one slot to see.
    """
    for name in [*data.variables, *data.dims]:
        _check_name(name)
        if "/" in str(name) or (name in data.variables and data[name].dtype == object):
            _refuse_lossy(str(name))
    plain, attrs = xr.conventions.encode_dataset_coordinates(data.drop_encoding())
    variables = {
        str(name): xr.conventions.encode_cf_variable(variable, name=name)
        for name, variable in plain.items()
    }
    few = {name: slice(1) for name in ("seed", "time")}
    parts = {name: x.isel(few, missing_dims="ignore") for name, x in variables.items()}
    source = data.isel(few, missing_dims="ignore")
    read, read_attrs, coordinates = xr.conventions.decode_cf_variables(parts, attrs)
    for name in variables:
        if _hash({name: source.variables[name]}, {}) != _hash({name: read[name]}, {}):
            _refuse_lossy(name)
    coordinates = (coordinates | {*data.dims}) & {*variables}
    if _hash({}, data.attrs) != _hash({}, read_attrs) or {*data.coords} != coordinates:
        _refuse_lossy("attrs")
    return variables, dict(attrs)


def _write_values(root: h5netcdf.File, name: str, variable: xr.Variable) -> None:
    """Writes a variable with its attributes; reads texts again."""
    import h5py

    values = variable.values
    if values.dtype.kind == "U":
        texts = values.tolist()
        place = root.create_variable(name, variable.dims, dtype=h5py.string_dtype())
        place[...] = values.astype(object)
        is_narrow = np.array(texts, "U" if values.size else "U1").dtype == values.dtype
        if not is_narrow or np.asarray(place[...]).tolist() != texts:
            _refuse_lossy(name)
    else:
        packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
        options = packed if values.ndim else {}
        place = root.create_variable(name, variable.dims, values.dtype, values, **options)
    _write_attrs(place, variable.attrs, name)


def _write_attrs(place: Any, attrs: Mapping[str, Any], name: str) -> None:
    """Writes the attributes of a variable, and reads them again."""
    for key, value in attrs.items():
        _check_name(key)
        numbers = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iuf"
        is_number = isinstance(value, Number) and not isinstance(value, bool)
        if not (type(value) is str or is_number or numbers):
            _refuse_lossy(name)
        place.attrs[key] = value
        if repr(_sort_attrs({key: value})) != repr(_sort_attrs({key: place.attrs[key]})):
            _refuse_lossy(name)


def _check_name(name: Hashable) -> None:
    """Refuses names that a file cannot have."""
    if not isinstance(name, str) or not name or "\0" in name:
        _refuse_lossy("...", f"rename {name!r}")


def _refuse_lossy(name: str, remedy: str = "") -> NoReturn:
    remedy = remedy or "drop it, or what it has of attributes; keep texts and numbers alone"
    refuse("data", PlainText(name), "a result that a file gives back as it is", remedy)


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """Reads a file of `save`, as `fmab_jax.load` does, without a look at what it leaks."""
    path = _check_path(path)
    if not path.is_file():
        refuse("path", str(path), "an existing file", "check the path or save one there first")
    try:
        data = xr.load_dataset(path, engine="h5netcdf")
    except Exception as error:  # h5py raises many types on damaged bytes
        remedy = f"it is damaged or something else ({describe_error(error)})"
        refuse("path", str(path), "a readable result", remedy)
    digest = data.attrs.pop(_DIGEST, None)
    if digest is None:
        refuse("path", str(path), "a result of fmab_jax.save", "it is some other netCDF file")
    version = data.attrs.get(_SCHEMA, "of the first version")
    if version != VERSION:
        remedy = f"it is {version}: read it with the package that wrote it, or run it again"
        refuse("path", str(path), f"a result of schema {VERSION}", remedy)
    if digest != _compute_digest(data):
        refuse("path", str(path), "a readable result", "it is damaged: its digest does not fit")
    data.attrs[_SCHEMA] = VERSION
    return _decode_labels(data)


def _encode_labels(data: xr.Dataset) -> xr.Dataset:
    """Converts coordinates of mixed types, such as "none" and numbers, to texts."""
    mixed = {n: c.astype(str) for n, c in data.coords.items() if c.dtype == object}
    data = data.assign_coords({n: c.assign_attrs({_MIXED: 1}) for n, c in mixed.items()})
    # Texts read from a file are as wide as the longest of them; selected ones may be wider.
    texts = {n: c for n, c in data.coords.items() if c.dtype.kind == "U" and c.size}
    return data.assign_coords(
        {n: (c.dims, np.array(c.values.tolist()), c.attrs) for n, c in texts.items()}
    )


def _decode_labels(data: xr.Dataset) -> xr.Dataset:
    """Reverts `_encode_labels`."""
    for name, coordinate in data.coords.items():
        if _MIXED in coordinate.attrs:
            labels = np.empty(coordinate.shape, object)
            for place, text in np.ndenumerate(coordinate.values):
                number = parse_number(str(text))
                labels[place] = str(text) if number is None else number
            attrs = {n: value for n, value in coordinate.attrs.items() if n != _MIXED}
            data = data.assign_coords({name: (coordinate.dims, labels, attrs)})
    return data


def _compute_digest(data: xr.Dataset) -> str:
    """Returns a SHA-256 of all names, shapes, types, values and attributes.

    HDF5 checks neither its metadata nor, by default, its chunks: one flipped bit can change numbers
    unseen.
    """
    return _hash(data.variables, data.attrs)


def _hash(variables: Mapping[Hashable, xr.Variable], attrs: Mapping[Hashable, object]) -> str:
    whole = hashlib.sha256()
    for name in sorted(variables, key=str):
        variable = variables[name]
        head = (str(name), variable.dims, variable.dtype.str, variable.shape)
        whole.update(repr((*head, _sort_attrs(variable.attrs))).encode())
        for row in variable.values if variable.ndim > 1 else [variable.values]:
            # One row at a time, so that broadcast views are not copied.
            whole.update(np.ascontiguousarray(row).tobytes())
    whole.update(repr(_sort_attrs(attrs)).encode())
    return whole.hexdigest()


def _sort_attrs(attrs: Mapping[Hashable, object]) -> list[tuple[str, object]]:
    pairs = sorted((str(name), value) for name, value in attrs.items())
    return [(name, x.item() if isinstance(x, np.generic) else x) for name, x in pairs]


def _check_path(path: str | os.PathLike[str]) -> Path:
    path = check_path("path", path)
    if path.suffix != ".nc":
        refuse("path", str(path), "a file name ending in .nc", "change the ending")
    return path
