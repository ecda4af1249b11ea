"""Results as netCDF files: lossless, written completely or not at all, with a digest."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Hashable, Mapping
from pathlib import Path

import numpy as np
import xarray as xr

from fmab_jax.errors import PlainText, describe_error, parse_number, refuse
from fmab_jax.files import check_path, refuse_taken, whole_file
from fmab_jax.run.schema import VERSION

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
    versioned = _encode_labels(data.drop_encoding()).assign_attrs({_SCHEMA: VERSION})
    # A file does not hold the seeds that a store holds besides.
    versioned.attrs.pop("stored_seeds", None)
    signed = versioned.assign_attrs({_DIGEST: _compute_digest(versioned)})
    # HDF5 crashes on a full disk, so it writes to memory; writing bytes raises a plain error.
    content = _write(signed)
    with whole_file(path) as temporary:
        temporary.write_bytes(content.getbuffer())
    return path


def _write(data: xr.Dataset) -> io.BytesIO:
    """Returns netCDF-4; refuses data that the file would not give back."""
    content = io.BytesIO()
    packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
    arrays = [name for name, x in data.variables.items() if x.ndim and x.dtype.kind in "biuf"]
    # One seed and one slot show what xarray would read as something else.
    few = {name: slice(1) for name in ("seed", "time")}
    try:
        data.to_netcdf(content, engine="h5netcdf", encoding=dict.fromkeys(arrays, packed))
        with xr.open_dataset(content, engine="h5netcdf") as file:
            read = file.isel(few, missing_dims="ignore").load()
        part = data.isel(few, missing_dims="ignore")
        reason = "" if _compute_digest(read) == _compute_digest(part) else "it changes in a file"
    except MemoryError:
        raise
    except Exception as error:  # xarray and h5py raise many types
        reason = describe_error(error)
    if reason:
        remedy = f"drop what you added, or add texts and numbers alone ({reason})"
        refuse("data", PlainText("..."), "a result that a file gives back as it is", remedy)
    return content


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
    whole = hashlib.sha256()
    for name in sorted(data.variables, key=str):
        variable = data.variables[name]
        head = (str(name), variable.dims, variable.dtype.str, variable.shape)
        whole.update(repr((*head, _sort_attrs(variable.attrs))).encode())
        for row in variable.values if variable.ndim > 1 else [variable.values]:
            # One row at a time, so that broadcast views are not copied.
            whole.update(np.ascontiguousarray(row).tobytes())
    whole.update(repr(_sort_attrs(data.attrs)).encode())
    return whole.hexdigest()


def _sort_attrs(attrs: Mapping[Hashable, object]) -> list[tuple[str, object]]:
    pairs = sorted((str(name), value) for name, value in attrs.items())
    return [(name, x.item() if isinstance(x, np.generic) else x) for name, x in pairs]


def _check_path(path: str | os.PathLike[str]) -> Path:
    path = check_path("path", path)
    if path.suffix != ".nc":
        refuse("path", str(path), "a file name ending in .nc", "change the ending")
    return path
