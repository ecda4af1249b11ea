"""What results of version 0.3 and older leak, whose files state it in another form.

It is computed anew from their study where the algorithm is known; else nothing is said of it.
"""

from __future__ import annotations

import tomllib

import xarray as xr

from fmab_jax.parts.mechanisms import MECHANISMS
from fmab_jax.parts.plugins import source_digest
from fmab_jax.run.attributes import json_attr
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps import study_file
from fmab_jax.sweeps.grid import Grid, build_header
from fmab_jax.sweeps.study import Design
from fmab_jax.sweeps.subjects import RANDOM_PROBLEM


def add_known_leaks(data: xr.Dataset) -> xr.Dataset:
    """Returns a result with its ledgers and leaks; those of older versions if they are known."""
    data.attrs.pop("ledger", None)
    if "leak_messages" in data or not (description := json_attr(data, "study")):
        return data
    if (
        "seeds" not in data
        or {*data.seeds.dims} - {*description.get("axes", ())}
        or data.sizes.get("seed", 0) > int(data.seeds.max())
    ):
        return data  # runs that were joined, of which the study is that of the first
    whole = _find_leaks(description, data)
    if whole is None:
        return data
    labels = json_attr(data, "labels")
    whole = whole.assign_coords({n: labels[str(n)] for n in whole.dims if n in labels})
    try:
        cells = whole.sel({name: data.coords[name] for name in whole.dims})
    except KeyError:  # a coordinate was dropped, or renamed
        return data
    for name in ("leak_messages", "leak_messages_delta", "ledger"):
        values = cells[name].broadcast_like(data.seeds).transpose(*data.seeds.dims)
        pair = {name: (values.dims, values.values, values.attrs)}
        data = data.assign_coords(pair) if name == "ledger" else data.assign(pair)
    return data


def _find_leaks(description: Record, data: xr.Dataset) -> xr.Dataset | None:
    """Returns leaks and ledgers over the swept parameters of a study; None if it cannot be built.

    A study file has no algorithms with parameters of their own: they are one study each.
    """
    axes, entries = description.get("axes", ()), description.get("algorithm", ())
    if "algorithm" in axes and any(isinstance(entry, dict) for entry in entries):
        inner = description | {"axes": [name for name in axes if name != "algorithm"]}
        fields = [x if isinstance(x, dict) else {"algorithm": x} for x in entries]
        parts = [_find_leaks(inner | _drop_unset(entry), data) for entry in fields]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return xr.concat(known, "algorithm", coords="different", compat="equals")
    study = _rebuild_study(description, data)
    if study is None:
        return None
    grid = Grid(build_header(study, {}))
    variables, ledger = grid.leaks()
    return xr.Dataset(variables, {**grid.coordinates(), **ledger})


def _drop_unset(entry: Record) -> Record:
    """Returns an algorithm's parameters without the one of two epsilons that is not set."""
    unset = "epsilon" if entry.get("epsilon_message") is not None else "epsilon_message"
    return {name: value for name, value in entry.items() if name != unset}


def _rebuild_study(description: Record, data: xr.Dataset) -> Design | None:
    """Returns a study with the same ledgers; None where it cannot be built.

    Ledgers depend on the algorithm, the agents and their presence, and not on means, of which a
    description has a digest alone.
    """
    problems = description.get("problem", RANDOM_PROBLEM)
    fields: Record = {"problem": RANDOM_PROBLEM, "outputs": [], "seeds": 2}
    try:
        # Version 0.3 took a delta beside pure noise, which it did not change.
        laws = description.get("mechanism", "laplace")
        has_delta = isinstance(laws, list) or not MECHANISMS.parse(laws, "mechanism").pure
        free = {"problem"} if has_delta else {"problem", "delta"}
        fields["axes"] = [name for name in description.get("axes", ()) if name not in free]
        fields |= {} if has_delta or "delta" not in description else {"delta": None}
        if problems != RANDOM_PROBLEM:
            problems = problems if isinstance(problems, list) else [problems]
            sizes = [[problem[name] for name in ("agents", "arms")] for problem in problems]
            presences = [problem.get("presence") for problem in problems]
            if any(x != y[0] for y in (sizes, presences) for x in y):
                return None
            fields |= dict(zip(("agents", "arms"), sizes[0], strict=True))
            fields |= {"presence": presences[0]} if presences[0] else {}
        kept = {name: x for name, x in description.items() if name not in ("until", "listed")}
        document = study_file.build_document(kept | {"until": None} | fields)
        text = study_file.format_document(document)
        study = study_file.build_study(tomllib.loads(text))
        points = study.points
    except Exception:  # plug-ins that are not loaded, or a text that is no description
        return None
    digests = {source_digest(type(point.config.algorithm)) for point in points}
    codes = [text for name, text in json_attr(data, "settings").items() if name == "source code"]
    has_changed = digests != {None} and codes != [f"code {x[:8]}" for x in digests if x]
    return None if has_changed else study
