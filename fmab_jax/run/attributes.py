"""What the attributes of a result hold: texts, numbers and JSON."""

from __future__ import annotations

import json
from typing import Any

import xarray as xr

LONGEST = 1000
"""Letters of a heading."""


def said(data: xr.Dataset, name: str) -> Any:
    """Returns what an attribute in JSON says; {} where it is missing."""
    return json.loads(data.attrs.get(name) or "{}")


def study_at(data: xr.Dataset) -> dict[str, Any]:
    """Returns what the study of a result says, by name; {} where it has none.

    Of a parameter that was swept, it is the value at the result's coordinate, if that is one.
    """
    study, labels = said(data, "study"), said(data, "labels")
    for name in study.get("axes", ()):
        if name in data.coords and data[name].size == 1:
            label = data[name].values.reshape(-1).tolist()[0]
            # Labels of one's own stand for values that the study states.
            if label in labels.get(name, ()):
                study[name] = study[name][labels[name].index(label)]
            else:
                study[name] = None if label == "none" else label
    return study
