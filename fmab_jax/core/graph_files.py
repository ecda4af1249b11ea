"""Graphs from files: edge lists and GraphML, which may be damaged or hostile."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from xml.parsers import expat

from fmab_jax.core import tables
from fmab_jax.errors import refuse
from fmab_jax.files import read_input
from fmab_jax.later import nx

FILE_MAX = 64 * 2**20
"""Most bytes of a graph file."""

_SUFFIXES = (".txt", ".edgelist", ".csv", ".graphml")
_ALLOWED = "an edge list of two labels a line, an optional weight after them"
_MATRIX = "it is an adjacency matrix: write a line for each edge, as networkx.write_edgelist does"


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
    if all(map(_is_whole, labels)):
        numbered = {label: int(label) for label in labels}
        if len(set(numbered.values())) == len(labels):
            graph = nx.relabel_nodes(graph, numbered)
    graph.name = path
    return graph


def _edges(content: bytes, path: str, field: str) -> nx.Graph:
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        refuse(field, path, "an edge list in UTF-8 text", "save the file as UTF-8 text")
    if lines and lines[0].startswith("%%MatrixMarket"):
        refuse(
            field, path, _ALLOWED, "it is of Matrix Market: delete all lines above the first edge"
        )
    commas = path.lower().endswith(".csv")
    graph, first = nx.Graph(), (0, "", [""])
    for number, row, cells in _rows(lines, commas):
        if not first[0]:
            first = number, row, cells
            if _is_header(cells):
                continue
        weight = _weight(" ".join(cells[2:]))
        if len(cells) < 2 or not all(cells[:2]) or weight is None:
            remedy = _find_mistake(lines, commas) or f"repair line {number}: {row[:40]!r}"
            refuse(field, path, _ALLOWED, remedy)
        # The usual weight is left out: there may be millions.
        graph.add_edge(*cells[:2], **({} if weight == 1.0 else {"weight": weight}))
    # A matrix of three columns reads as edges with weights.
    if graph.number_of_edges() <= 4 and _is_matrix(lines, commas):
        refuse(field, path, _ALLOWED, _MATRIX)
    head, others = set(first[2][:2]), set(graph)
    if head < others and not any(map(_is_whole, head)) and all(map(_is_whole, others - head)):
        remedy = (
            f"line {first[0]}, {first[1][:40]!r}, looks like a header: call it source and target"
        )
        refuse(field, path, _ALLOWED, remedy)
    return graph


def _rows(lines: Sequence[str], commas: bool) -> Iterator[tuple[int, str, list[str]]]:
    """Gives lines that are no comments: number, text, and cells, none where quotes are broken."""
    for number, line in enumerate(lines, start=1):
        row = line.split("#", 1)[0].strip()
        if not row or row.startswith("%"):
            continue
        try:
            cells = next(csv.reader([row], skipinitialspace=True)) if commas else row.split()
        except csv.Error:
            cells = []
        yield number, row, [cell.strip() for cell in cells]


def _is_header(cells: Sequence[str]) -> bool:
    names = [cell.lower() for cell in cells]
    return names[:2] in (["source", "target"], ["from", "to"]) and names[2:] in ([], ["weight"])


def _is_whole(label: object) -> bool:
    return re.fullmatch(r"-?[0-9]{1,18}", str(label)) is not None


def _weight(rest: str) -> float | None:
    """Returns the weight in what follows two labels: nothing, networkx data or one number.

    Anything else has none, above all the further neighbours of an adjacency list.
    """
    if rest.startswith("{") and rest.endswith("}"):
        found = re.search(r"""['"]weight['"]: *([-+]?[0-9.]+(?:e[-+]?[0-9]+)?)""", rest)
        rest = found[1] if found else ""
    try:
        return float(rest or 1)
    except ValueError:
        return None


def _find_mistake(lines: Sequence[str], commas: bool) -> str:
    """Returns what to do about a file that is another known table; "" for none known."""
    first = next((cells for _, _, cells in _rows(lines, commas)), [])
    if commas and (remedy := tables.separator_remedy(first)):
        return remedy
    if {"source", "target"} <= {cell.lower() for cell in first} and not _is_header(first):
        return "it is a table of edges, as of Gephi: keep its columns Source, Target and Weight"
    return _MATRIX if _is_matrix(lines, commas) else ""


def _is_matrix(lines: Sequence[str], commas: bool) -> bool:
    """Tells whether a file holds an adjacency matrix, perhaps with names of columns and rows."""
    widths = [len(cells) for _, _, cells in _rows(lines, commas)]
    top = [cells for _, _, cells in islice(_rows(lines, commas), 4)]
    wide, size = widths[-1:], len(widths)
    if size > 3 and (widths[:1] != wide or not top[0][0] or wide == [size - 1]):
        widths, top, size = widths[1:], top[1:], size - 1
    if set(widths) == {size + 1}:
        widths, top = [size] * size, [cells[1:] for cells in top]
    numbers = [[tables.plain_number(cell) for cell in cells] for cells in top[:3]]
    if size < 3 or set(widths) != {size} or any(None in row for row in numbers):
        return False
    # Edges with weights have three cells, too.
    mirrored = numbers == [list(column) for column in zip(*numbers, strict=True)]
    return size > 3 or mirrored and not any(numbers[i][i] for i in range(3))


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
