"""Graphs from files: edge lists and GraphML, which may be damaged or hostile."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any
from xml.parsers import expat

from fmab_jax.errors import refuse
from fmab_jax.files import read_input
from fmab_jax.later import nx

FILE_MAX = 64 * 2**20
"""Most bytes of a graph file."""

_SUFFIXES = (".txt", ".edgelist", ".csv", ".graphml")


def names_file(text: str) -> bool:
    """Tells whether a text is the name of a graph file, by its ending."""
    return Path(text).suffix.lower() in _SUFFIXES


def read(path: str, field: str = "graph") -> nx.Graph:
    """Returns the graph of a file, not yet validated.

    Raises:
        ValueError: If it cannot be read.
    """
    content = read_input(path, field, FILE_MAX, "graph file")
    graph = (_graphml if path.lower().endswith(".graphml") else _edges)(content, path, field)
    labels = list(graph.nodes)
    if all(re.fullmatch(r"-?[0-9]{1,18}", str(label)) for label in labels):
        numbered = {label: int(label) for label in labels}
        if len(set(numbered.values())) == len(labels):
            graph = nx.relabel_nodes(graph, numbered)
    return graph


def _edges(content: bytes, path: str, field: str) -> nx.Graph:
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        refuse(field, path, "an edge list in UTF-8 text", "save the file as UTF-8 text")
    commas = path.lower().endswith(".csv")
    graph = nx.Graph()
    for number, line in enumerate(lines, start=1):
        row = line.split("#", 1)[0].strip()
        if not row:
            continue
        try:
            cells = next(csv.reader([row], skipinitialspace=True)) if commas else row.split(None, 2)
        except csv.Error:
            cells = []
        cells = [cell.strip() for cell in cells]
        if commas and not graph and [cell.lower() for cell in cells[:2]] == ["source", "target"]:
            continue
        rest = " ".join(cells[2:])
        if len(cells) < 2 or not all(cells[:2]) or not _ignorable(rest):
            allowed = "an edge list of two labels a line, an optional weight after them"
            refuse(field, path, allowed, f"repair line {number}: {row[:40]!r}")
        graph.add_edge(cells[0], cells[1])
    return graph


def _ignorable(rest: str) -> bool:
    """Whether what follows the labels is nothing, networkx data or one number.

    Anything else is refused, above all the further neighbours of an adjacency list.
    """
    if not rest or (rest.startswith("{") and rest.endswith("}")):
        return True
    try:
        float(rest)
    except ValueError:
        return False
    return True


class _Doctype(Exception):
    """Raised at a DTD, before anything that it declares can expand."""


def _graphml(content: bytes, path: str, field: str) -> nx.Graph:
    def stop(*_: Any) -> None:
        raise _Doctype

    # Entities can only be declared in a DTD and may expand without bound. The parser itself, not a
    # search for text, finds it in every encoding.
    guard = expat.ParserCreate()
    guard.StartDoctypeDeclHandler = stop
    try:
        guard.Parse(content, True)
    except _Doctype:
        refuse(field, path, "GraphML without a DTD", "delete the <!DOCTYPE ...> declaration")
    except (expat.ExpatError, ValueError, LookupError) as error:
        refuse(field, path, "well-formed GraphML", f"repair the file ({_line(error)})")
    try:
        return nx.read_graphml(io.BytesIO(content))
    except Exception as error:  # networkx reports broken GraphML by half a dozen exception types
        refuse(field, path, "a GraphML file", f"repair the file ({_line(error)})")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:80] or type(error).__name__
