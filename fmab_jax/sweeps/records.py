"""What a store's records must hold; a right checksum says nothing about their content.

`header_in` checks run.json, `fit` the facts of a chunk, `fault` its arrays. Whatever passes can be
labelled and read without surprises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import numpy as np
from msgspec import Meta

from fmab_jax.analysis.summary import Moments
from fmab_jax.core.outputs import OF_RESULTS, Output, Reduce
from fmab_jax.core.problems import MAX_AGENTS, MAX_ARMS
from fmab_jax.errors import refuse
from fmab_jax.run import attributes, schema
from fmab_jax.run.outputs import gauges_of
from fmab_jax.run.outputs.usual import USUAL
from fmab_jax.run.resources import MAX_SEEDS
from fmab_jax.sweeps.store import Entry, Store

FORMAT = 4
"""Version of run.json and of the chunks beside it."""

# What a summary keeps of a series, besides the number of seeds.
KINDS = Moments._fields[1:]
# What is counted of the seeds of a summary.
_COUNTED = (
    "regret_bin",
    *(each.name for each in USUAL if each.coordinate),
    "undecided",
    "rounds",
    "numbers_sent",
)
_FIRST = "run the sweep again into another folder, or use the package that made it"


def state_name(output: str, number: int) -> str:
    """Returns the name of an array of a reduction's state in chunks."""
    return f"{output}_state{number}"


_Keep = Literal["curves", "summary"]
_Versions = Annotated[dict[str, str], Meta(min_length=1)]
_Seeds = Annotated[int, Meta(ge=0, le=MAX_SEEDS)]


class _Cell(TypedDict):
    hash: str
    algorithm: str
    agents: Annotated[int, Meta(ge=1, le=MAX_AGENTS)]
    arms: Annotated[int, Meta(ge=1, le=MAX_ARMS)]
    horizon: attributes.Count
    epsilon: attributes.Number | None
    epsilon_message: attributes.Number | None
    reporting: attributes.Count
    wait: attributes.Whole
    title: str
    settings: dict[str, str]
    ledger: attributes.Some[attributes.Row]
    links: dict[str, attributes.Whole]
    vectors: attributes.Whole
    numbers: attributes.Whole
    grid: attributes.Whole
    slots: attributes.Count
    number_bits: NotRequired[attributes.Count]


class _Header(TypedDict):
    hash: str
    study: attributes.Study
    made_by: _Versions
    dims: list[tuple[str, attributes.Some[str | bool | attributes.Number], _Versions]]
    meters: list[tuple[str, Literal["server", "peer"], bool, Any]]
    keep: _Keep
    seeds: Annotated[int, Meta(ge=1, le=MAX_SEEDS)]
    until: attributes.Until | None
    look_level: attributes.Share | None
    cells: attributes.Some[_Cell]
    grids: list[attributes.Some[attributes.Count]]


class _Facts(TypedDict):
    cells: attributes.Some[str]
    seeds: tuple[_Seeds, _Seeds]
    keep: _Keep
    made_by: _Versions


def header_in(store: Store) -> dict[str, Any] | None:
    """Returns what a store's run.json says, or None if nobody wrote it yet; refuses any other."""
    header = store.header()
    if header is None:
        return None
    found = header.get("format")
    if found != FORMAT:
        number = found if type(found) is int else 1
        version = f"of format {number}" if number > 1 else "of the first version"
        remedy = "use the newer package that made it" if number > FORMAT else _FIRST
        refuse("store", str(store.path), f"of format {FORMAT}", f"it is {version}: {remedy}")
    if wrong := attributes.misfit(header, _Header) or _contradiction(header):
        reason = f"its run.json has no proper {wrong!r}: put a good copy back"
        refuse("store", str(store.path), "a store", reason)
    return header


def _contradiction(header: Mapping[str, Any]) -> str | None:
    """Returns a field that does not go with the others."""
    names = [name for name, _, _ in header["dims"]]
    if len(set(names)) < len(names) or OF_RESULTS & {*names}:
        return "dims"
    if wrong := attributes.unswept(header["study"]):
        return f"study.{wrong}"
    grids, cells = header["grids"], header["cells"]
    if len(cells) != math.prod(len(labels) for _, labels, _ in header["dims"]):
        return "cells"
    for cell in cells:
        if not set(cell["links"]) <= {meter[0] for meter in header["meters"]}:
            return "links"
        if cell["grid"] >= len(grids) or cell["slots"] > len(grids[cell["grid"]]):
            return "grid"
        if not attributes.fits_ledger(cell["ledger"]):
            return "ledger"
        # Outputs are made of it.
        if header["study"].get("outputs") and "number_bits" not in cell:
            return "number_bits"
    if header["until"] is not None and header["keep"] != "summary":
        return "until"
    return "look_level" if (header["look_level"] is None) != (header["until"] is None) else None


def fit(facts: Mapping[str, Any]) -> bool:
    """Returns whether these are the facts of a chunk: cells, seeds, what is kept, versions."""
    return attributes.misfit(facts, _Facts) is None and facts["seeds"][0] < facts["seeds"][1]


def fault(
    entry: Entry,
    arrays: Mapping[str, np.ndarray],
    facts: Mapping[str, Mapping[str, int]],
    outputs: Sequence[Output] = (),
) -> str | None:
    """Returns what keeps arrays from being those of a chunk whose facts fit, or None.

    Of each cell's hash, ``facts`` has its recorded slots, agents and arms.
    """
    own = [facts[name] for name in entry.facts["cells"] if name in facts]
    over = max(each["slots"] for each in own)
    start, stop = entry.facts["seeds"]
    first: tuple[int, ...] = (len(entry.facts["cells"]), stop - start)
    fields = {name: over_time for name, (_, over_time) in schema.FIELDS.items()}
    if entry.facts["keep"] == "curves":
        shapes = {
            name: (*first, over) if over_time else first for name, over_time in fields.items()
        }
        asked = [(gauge.name, gauge.dims) for gauge in gauges_of(outputs)]
    else:
        first = first[:1]
        series = [name for name, over_time in fields.items() if over_time]
        shapes = {f"{name}_{kind}": (*first, over) for name in series for kind in KINDS}
        shapes["regret_scatter"] = (*first, over, over)
        asked = []
        for output in outputs:
            if isinstance(output, Reduce):
                for number, leaf in enumerate(output.leaves):
                    shapes[state_name(output.name, number)] = (*first, *leaf.shape)
                continue
            asked += [(f"{output.name}_{kind}", output.dims) for kind in KINDS]
        for name in _COUNTED:
            size = arrays[f"{name}_row"].size if f"{name}_row" in arrays else 0
            for each in (f"{name}_{kind}" for kind in ("row", "value", "count")):
                shapes[each] = (size,)
                if each in arrays and arrays[each].dtype.kind not in "iu":
                    return f"{each} holds no whole numbers"
    for name, dims in asked:
        if (wrong := _misfit(arrays, name, first, dims, own)) is not None:
            return wrong
    for name, shape in shapes.items():
        if name not in arrays:
            # Where nobody waits there is no such series.
            if name.startswith("waiting_regret"):
                continue
            return f"no array {name}"
        if arrays[name].shape != shape:
            return f"{name} has shape {arrays[name].shape} instead of {shape}"
        if arrays[name].dtype.kind not in "biuf":
            return f"{name} holds no numbers"
    return None


def _misfit(
    arrays: Mapping[str, np.ndarray],
    name: str,
    first: tuple[int, ...],
    dims: Sequence[str],
    own: Sequence[Mapping[str, int]],
) -> str | None:
    """Returns what is wrong with an array of what was asked for, or None.

    It may be padded: no cell has more agents, arms or slots; and one row of agents stands for all.
    """
    if name not in arrays:
        return f"no array {name}"
    shape = arrays[name].shape
    if shape[: len(first)] != first or len(shape) != len(first) + len(dims):
        return f"{name} has shape {shape} instead of {first} and {len(dims)} more"
    sizes = {"time": "slots", "agent": "agents", "arm": "arms"}
    for dim, size in zip(dims, shape[len(first) :], strict=True):
        least = max(each[sizes[dim]] for each in own)
        if size < least and not (dim == "agent" and size == 1 and len(first) == 2):
            return f"{name} has {size} values over {dim} instead of {least}"
    return None if arrays[name].dtype.kind == "f" else f"{name} holds no real numbers"
