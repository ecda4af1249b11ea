"""Partitions of the agents of one graph into components, as values of a configuration."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from jaxtyping import Int

from fmab_jax.errors import PlainText, format_quantity, refuse
from fmab_jax.lazy_imports import nx
from fmab_jax.parameters import Kind
from fmab_jax.parts import graphs

_RANGE = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?")
# Attributes of a netCDF file hold 64 KB.
_LONGEST_TEXT = 30_000
_LONGEST_LABEL = 80
_REMEDY = "for example partition='0-4+5,7,9+6,8'"


@dataclass(frozen=True)
class Partition:
    """A partition of the agents 0..M-1.

    Attributes:
        labels: [agent] number of the agent's part, int32, as bytes; parts are numbered by their
            smallest agents.
    """

    labels: bytes = field(repr=False)

    @classmethod
    def from_labels(cls, labels: Iterable[object]) -> Partition:
        """Numbers the parts of any labels by their smallest agents."""
        numbers: dict[object, int] = {}
        values = [numbers.setdefault(label, len(numbers)) for label in labels]
        return cls(np.array(values, np.int32).tobytes())

    @property
    def parts(self) -> list[Int[np.ndarray, " member"]]:
        """The agents of each part, ascending."""
        labels = np.frombuffer(self.labels, np.int32)
        order = np.argsort(labels, kind="stable")
        return np.split(order, np.cumsum(np.bincount(labels))[:-1])

    def text(self) -> str:
        """Returns the parts as an option is written."""
        return "+".join(map(_format_part, self.parts))


def _format_part(agents: Int[np.ndarray, " member"]) -> str:
    runs = np.split(agents, np.flatnonzero(np.diff(agents) > 1) + 1)
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


@dataclass(frozen=True)
class PartitionOf(Kind):
    """Parts of agents: a list of lists, or a text."""

    metavar = "PARTS"

    def check_value(self, name: str, value: Any, remedy: str) -> Partition:
        """Returns the partition.

        Raises:
            ValueError: If parts overlap, or agents are missing.
        """
        if isinstance(value, Partition):
            return value
        if isinstance(value, str):
            return _from_parts(_parse(value, name), name, value)
        is_list = isinstance(value, (list, tuple)) and len(value) > 0
        if not is_list or not all(map(_is_part, value)):
            refuse(name, value, "a text, or a list of lists of agents", _REMEDY)
        return _from_parts([[int(x) for x in part] for part in value], name, "a list")

    def plain(self, value: Any) -> Any:
        """Returns the text; of a very long one the digest."""
        if value is None or len(text := value.text()) <= _LONGEST_TEXT:
            return None if value is None else text
        return {
            "agents": len(value.labels) // 4,
            "sha256": hashlib.sha256(value.labels).hexdigest(),
        }

    def text(self, value: Any) -> str:
        """Writes the parts, or their number if that is too long."""
        if value is None:
            return str(self.none_label)
        return self.label(value) or format_quantity(len(value.parts), "part")

    def label(self, value: Any) -> Any:
        """Returns the parts; "" where they are too long."""
        if value is None:
            return "none"
        return text if len(text := value.text()) <= _LONGEST_LABEL else ""

    def is_list_value(self, value: object) -> bool:
        """Tells one list of parts from a list of partitions."""
        return isinstance(value, (list, tuple)) and len(value) > 0 and all(map(_is_part, value))


def _is_part(value: object) -> bool:
    if not isinstance(value, (list, tuple, set, frozenset, range, np.ndarray)):
        return False
    return all(isinstance(x, Integral) and not isinstance(x, bool) for x in value)


def _parse(text: str, name: str) -> list[list[int]]:
    parts: list[list[int]] = []
    total = 0
    for part in text.split("+"):
        parts.append([])
        for entry in part.split(","):
            match = _RANGE.fullmatch(entry.strip())
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
            total += last - first + 1
            # "0-9999999+0-9999999" must cost nothing.
            if first > last or total > graphs.AGENTS_MAX:
                allowed = "parts of agents or ranges A-B, joined by '+'"
                refuse(name, text, allowed, _REMEDY)
            parts[-1] += range(first, last + 1)
    return parts


def _from_parts(parts: list[list[int]], name: str, text: str) -> Partition:
    agents = [agent for part in parts for agent in part]
    label = {agent: q for q, part in enumerate(parts) for agent in part}
    allowed = "parts that have each agent 0..M-1 once, and no empty part"
    value = PlainText(text)
    if len(label) < len(agents):
        repeated_agent = Counter(agents).most_common(1)[0][0]
        refuse(name, value, allowed, f"agent {repeated_agent} is listed twice")
    if not all(parts):
        refuse(name, value, allowed, "drop the empty part")
    if absent := set(range(len(agents))) - set(label):
        refuse(name, value, allowed, f"agent {min(absent)} is missing")
    return Partition.from_labels(label[i] for i in range(len(agents)))


def split_graph(
    graph: nx.Graph, partition: Partition | None
) -> tuple[list[list[int]], list[nx.Graph]]:
    """Returns the agents of each part and the graph between them, whose nodes are in that order.

    Args:
        graph: A graph of `graphs.make`, connected or not.
        partition: Of its nodes; None for its connected components.

    Raises:
        ValueError: If the partition is of other agents, or a part is not connected or too large.
    """
    agents = graph.number_of_nodes()
    if partition is None:
        pieces = sorted(map(sorted, nx.connected_components(graph)))
        members = [list(map(int, piece)) for piece in pieces]
    else:
        value = PlainText(PartitionOf().text(partition))
        if (divided := len(partition.labels) // 4) != agents:
            allowed = f"a partition of {format_quantity(agents, 'agent')} (it has {divided:,})"
            refuse("partition", value, allowed, "match the partition to the graph")
        members = [part.tolist() for part in partition.parts]
    networks = []
    for part in members:
        graphs.refuse_too_far(len(part), f"a part of {len(part):,} agents", "partition")
        subgraph = nx.convert_node_labels_to_integers(graph.subgraph(part), ordering="sorted")
        if (pieces_of_part := nx.number_connected_components(subgraph)) > 1:
            head = ",".join(map(str, part[:5])) + ",..." * (len(part) > 5)
            remedy = f"divide the part {head}, which has {pieces_of_part} pieces"
            refuse("partition", value, "parts that are connected in the graph", remedy)
        networks.append(subgraph)
    return members, networks
