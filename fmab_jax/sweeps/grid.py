"""The labelled grid of a study: dimensions, coordinates and attributes of its results."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from fmab_jax.analysis import words
from fmab_jax.analysis.accountant import leak
from fmab_jax.parameters import ViewKind
from fmab_jax.parts.exchanges import Meter
from fmab_jax.parts.worlds import ContextualWorld
from fmab_jax.run import schema
from fmab_jax.run.configs import Config
from fmab_jax.run.facts import Ledger, build_ledger, facts, read_ledger, write_ledger
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.precision import Precision
from fmab_jax.sweeps.store import FORMAT
from fmab_jax.sweeps.study import Design

# Facts of a configuration; a fact that all share becomes an attribute.
SHARED = (
    *("algorithm", "title", "epsilon", "epsilon_message", "agents", "arms", "horizon"),
    *("reporting", "wait"),
)
# Labels of these axes are names, not values.
_TEXT_AXES = ("problem", "rewards", "algorithm")
# Facts that outputs are computed from, besides recorded values.
_FACTS = ("counted", "agents", "arms", "vectors", "numbers", "number_bits")


def build_header(study: Design, versions: Mapping[str, str]) -> Record:
    """Returns the header of a study: all that labels its results, as JSON."""
    grids: list[list[int]] = []
    places: dict[str, int] = {}
    cells = []
    for point in study.points:
        place = places.setdefault(point.description["slots"], len(places))
        if place == len(grids):
            grids.append(point.config.grid[: point.config.requested_points].tolist())
        cells.append({"hash": point.hash, **_describe_cell(point.config, study), "grid": place})
    until = study.until
    exchanges = [point.config.exchange for point in study.points]
    return {
        "format": FORMAT,
        "hash": study.hash,
        "study": study.describe(),
        "made_by": dict(versions),
        "dims": [[axis.name, list(axis.labels), axis.words] for axis in study.axes],
        "meters": [list(meter) for meter in schema.meters_of(exchanges)],
        "keep": study.keep,
        "seeds": study.seeds,
        "until": None if until is None else until.plain(),
        "look_level": None if until is None else until.look_level(study.seeds),
        "cells": cells,
        "grids": grids,
    }


def _describe_cell(config: Config, study: Design) -> Record:
    """Returns the facts of one configuration, as JSON."""
    cell = facts(config, sum_agents=study.sum_agents)
    for name in ("epsilon", "epsilon_message"):
        cell[name] = None if math.isinf(cell[name]) else cell[name]
    cell["slots"] = config.points
    if isinstance(config.problem.world, ContextualWorld):
        cell["contexts"] = config.problem.world.dimension
    cell["number_bits"] = config.facts["number_bits"]
    costs = {**config.costs}
    if not config.messages:
        costs.pop("counted")  # as in older stores
    return cell | costs | encode_ledger(build_ledger(config))


def encode_ledger(ledger: Ledger) -> Record:
    """Returns the ledger of one configuration and what its messages leak, as JSON.

    The leak is stated, and not only its rows, because a file may name noise of a plug-in.
    """
    messages = leak(ledger.rows, ViewKind.MESSAGES)
    assert messages is not None
    epsilon = messages.epsilon if math.isfinite(messages.epsilon) else None
    return {"ledger": write_ledger(ledger), "leak_messages": [epsilon, messages.delta]}


def build_attributes(study: Design) -> Record:
    """Returns the attributes of a study's results."""
    return Grid(build_header(study, {})).attrs()


class Grid:
    """The labelled dimensions of a study."""

    def __init__(self, header: Record) -> None:
        self.header = header
        self.dims = [name for name, _, _ in header["dims"]]
        self.shape = tuple(len(labels) for _, labels, _ in header["dims"])
        self.cells: list[Record] = header["cells"]
        self.hashes = [cell["hash"] for cell in self.cells]
        self.meters = [Meter(*meter) for meter in header["meters"]]

    def coordinates(self) -> Record:
        """Returns the dimensions' coordinates; mixed numbers and texts keep their types."""
        coords = {}
        for name, labels, attrs in self.header["dims"]:
            mixed = len({isinstance(label, str) for label in labels}) > 1
            coords[name] = (name, np.array(labels, object if mixed else None), attrs)
        return coords

    @property
    def has_world(self) -> bool:
        """Whether means change in a cell."""
        return any("world" in cell["settings"] for cell in self.cells)

    @property
    def has_contexts(self) -> bool:
        """Whether means follow from contexts in a cell."""
        return any("contexts" in cell for cell in self.cells)

    def leaks(self) -> tuple[Record, Record]:
        """Returns what messages leak, as variables, and the ledgers, as a coordinate."""
        pairs = [cell["leak_messages"] for cell in self.cells]
        epsilons = [math.inf if epsilon is None else epsilon for epsilon, _ in pairs]
        attrs = {"long_name": "leak of one reward in messages", "symbol": "ε"}
        at = {"long_name": "δ up to which the leak in messages holds", "symbol": "δ"}
        return {
            "leak_messages": (self.dims, self.table(epsilons), attrs),
            "leak_messages_delta": (self.dims, self.table([delta for _, delta in pairs]), at),
        }, {"ledger": (self.dims, self.table([cell["ledger"] for cell in self.cells]))}

    def links(self, cell: Record) -> np.ndarray:
        """Returns the links of a completed round of a cell, or of a message: int64 [meter]."""
        return np.array([cell["links"].get(meter.name, 0) for meter in self.meters], np.int64)

    def sizes(self, cells: Sequence[Record], points: int) -> dict[str, int]:
        """Returns the lengths of all dimensions of outputs of some cells."""
        agents, arms = (max(cell[name] for cell in cells) for name in ("agents", "arms"))
        return {"time": points, "meter": len(self.meters), "agent": agents, "arm": arms}

    def facts(self, cell: Record) -> Record:
        """Returns the facts of a cell that outputs are computed from."""
        facts = {"counted": "rounds_by"} | {name: cell.get(name) for name in _FACTS if name in cell}
        return dict.fromkeys(_FACTS) | facts | {"links": self.links(cell)}

    def table(self, values: Sequence[ArrayLike] | np.ndarray) -> np.ndarray:
        """Arranges one value per cell over the dimensions."""
        return np.array(values).reshape((*self.shape, *np.shape(values[0])))

    def reduce_fact(self, name: str) -> tuple[list[str], np.ndarray]:
        """Returns a fact of the cells over the dimensions along which it changes."""
        values = [cell[name] for cell in self.cells]
        if name.startswith("epsilon"):
            values = [math.inf if value is None else value for value in values]
        return self.drop_constant_dims(self.table(values))

    def drop_constant_dims(self, table: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Drops the dimensions along which a table is constant."""
        dims = list(self.dims)
        for place, name in reversed(list(enumerate(self.dims))):
            first = np.take(table, [0], axis=place)
            if (table == first).all():
                table = np.asarray(np.take(table, 0, axis=place))
                dims.remove(name)
        return dims, table

    def time(self) -> tuple[int, Record]:
        """Returns the number of recorded slots, and their coordinate.

        A grid that is shorter than another repeats its last slot.
        """
        attrs = {"long_name": "slot", "units": "slot"}
        places = {cell["grid"] for cell in self.cells}
        if len(places) == 1:
            points = self.cells[0]["slots"]
            slots = np.array(self.header["grids"][places.pop()][:points])
            return points, {"time": ("time", slots, attrs)}
        grids = [np.array(self.header["grids"][cell["grid"]]) for cell in self.cells]
        points = max(map(len, grids))
        pairs = zip(grids, self.cells, strict=True)
        slots = self.table([grid[self.columns(cell, points)] for grid, cell in pairs])
        dims, table = self.drop_constant_dims(slots)
        return points, {"slot": ([*dims, "time"], table, attrs)}

    def columns(self, cell: Record, points: int) -> np.ndarray:
        """Returns the columns of the recorded slots in a cell's arrays."""
        return np.minimum(np.arange(points), len(self.header["grids"][cell["grid"]]) - 1)

    def attrs(self, versions: Mapping[str, str] | None = None) -> Record:
        """Returns the facts that all cells share, and the study for another run."""
        versions = self.header["made_by"] if versions is None else versions
        shared: Record = {}
        for name in SHARED:
            dims, value = self.reduce_fact(name)
            if not dims:
                shared[name] = value.item()
        for name in ("algorithm", "title"):
            if name not in shared:
                names = ", ".join(dict.fromkeys(cell[name] for cell in self.cells))
                shared[name] = words.shorten(names)
        common, by = self._split_settings()
        shared["settings"] = json.dumps(common)
        if by:
            shared["settings_by"] = json.dumps(by)
        labels = {
            name: labels
            for name, labels, _ in self.header["dims"]
            if self._has_text_labels(name, labels)
        }
        if labels:
            shared["labels"] = json.dumps(labels)
        if self.header["until"] is not None:
            until = Precision(**self.header["until"])
            looks = len(until.looks(self.header["seeds"]))
            shared |= {"look_level": self.header["look_level"], "looks": looks}
            shared["until_level"] = until.level
        return {
            **shared,
            "root_seed": self.header["study"]["root_seed"],
            "keep": self.header["keep"],
            "schema": schema.VERSION,
            "study": json.dumps(self.header["study"]),
            "study_hash": self.header["hash"],
            **{f"{name}_version": version for name, version in versions.items()},
        }

    def _split_settings(self) -> tuple[dict[str, str], dict[str, dict[str, dict[str, str]]]]:
        """Returns the settings that all cells share, and those that belong to labels of one axis.

        Settings of some algorithms or problems belong to their labels, and so do settings whose
        name is not that of a parameter.
        """
        rows = []
        for cell in self.cells:
            epsilon = math.inf if cell["epsilon"] is None else cell["epsilon"]
            row = {
                "title": cell["title"],
                "epsilon": words.write_privacy(epsilon, read_ledger(cell["ledger"]).rows),
            }
            rows.append(row | cell["settings"])
        labels = {name: [str(label) for label in labels] for name, labels, _ in self.header["dims"]}
        common: dict[str, str] = {}
        by_label: dict[str, dict[str, dict[str, str]]] = {}
        for name in dict.fromkeys(name for row in rows for name in row):
            if name in self.dims:
                continue
            values = np.array([row.get(name) for row in rows], object)
            dims, table = self.drop_constant_dims(values.reshape(self.shape))
            if not dims and name not in SHARED:
                common[name] = table.item()
            elif dims in (["algorithm"], ["problem"]) or len(dims) == 1 and " " in name:
                owners = by_label.setdefault(dims[0], {label: {} for label in labels[dims[0]]})
                for label, text in zip(labels[dims[0]], table.tolist(), strict=True):
                    if text is not None:
                        owners[label][name] = text
        return common, by_label

    def _has_text_labels(self, name: str, labels: Sequence[object]) -> bool:
        """Returns whether labels differ from the values of their axis."""
        if name in _TEXT_AXES:
            return True
        values = self.header["study"].get(name)
        if not isinstance(values, list) or any(isinstance(value, (list, dict)) for value in values):
            return False
        return ["none" if value is None else value for value in values] != [*labels]
