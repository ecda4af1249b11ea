"""Attributes of a result: texts, numbers and JSON."""

from __future__ import annotations

import json

import xarray as xr

from fmab_jax.sampling.shapes import Record


def json_attr(data: xr.Dataset, name: str) -> Record:
    """Returns the value of an attribute in JSON; {} if it is missing."""
    record: Record = json.loads(data.attrs.get(name) or "{}")
    return record


def parse_study(data: xr.Dataset) -> Record:
    """Returns the study of a result, by name; {} if there is none.

    A swept parameter has its value at the result's coordinate, if there is only one.
    """
    study, labels = json_attr(data, "study"), json_attr(data, "labels")
    for name in study.get("axes", ()):
        if name in data.coords and data[name].size == 1:
            label = data[name].values.reshape(-1).tolist()[0]
            # The study has the values of labels that the user chose.
            if label in labels.get(name, ()):
                study[name] = study[name][labels[name].index(label)]
            else:
                study[name] = None if label == "none" else label
    return study
