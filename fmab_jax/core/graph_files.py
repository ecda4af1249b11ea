"""Graphs from files: edge lists and GraphML."""

from __future__ import annotations

import ast
import csv
import io
import re
from pathlib import Path

from fmab_jax.errors import reason_of, refuse
from fmab_jax.files import read_input
from fmab_jax.later import nx

FILE_MAX = 64 * 2**20
"""Most bytes of a graph file."""

_SUFFIXES = (".txt", ".edgelist", ".csv", ".graphml")
_HEADERS = (["source", "target"], ["from", "to"])


def names_file(text: str) -> bool:
    """Tells whether a text is the name of a graph file, by its ending."""
    return Path(text).suffix.lower() in _SUFFIXES


def read(path: str, field: str = "graph") -> nx.Graph:
    """Returns the graph of a file, not yet validated.

    Raises:
        ValueError: If it cannot be read.
    """
    content = read_input(path, field, FILE_MAX, "graph file")
    kind = Path(path).suffix.lower()
    if kind == ".graphml":
        try:
            graph = nx.read_graphml(io.BytesIO(content))
        except Exception as error:  # networkx reports broken GraphML by many exception types
            refuse(field, path, "a GraphML file", f"repair it ({reason_of(error)})")
    else:
        graph = _read_edges(content, path, field, has_commas=kind == ".csv")
    labels = list(graph.nodes)
    if all(re.fullmatch(r"-?[0-9]{1,18}", str(label)) for label in labels):
        numbered = {label: int(label) for label in labels}
        if len(set(numbered.values())) == len(labels):
            graph = nx.relabel_nodes(graph, numbered)
    graph.name = path
    return graph


def _read_edges(content: bytes, path: str, field: str, has_commas: bool) -> nx.Graph:
    graph, line = nx.Graph(), "UTF-8 text"
    try:
        for row in content.decode("utf-8-sig").splitlines():
            line = row.split("#", 1)[0].strip()
            if not line or line.startswith("%"):
                continue
            cells = next(csv.reader([line], skipinitialspace=True)) if has_commas else line.split()
            cells = [cell.strip() for cell in cells]
            if not graph and [cell.lower() for cell in cells[:2]] in _HEADERS:
                continue
            source, target, *rest = cells
            if not source or not target:
                raise ValueError("a label is missing")
            weight = _parse_weight(" ".join(rest))
            if weight == 0:
                raise ValueError("an adjacency matrix? write a line for each edge")
            # The usual weight is left out: there may be millions.
            graph.add_edge(source, target, **({} if weight == 1.0 else {"weight": weight}))
    except (ValueError, SyntaxError, AttributeError, TypeError, csv.Error) as error:
        allowed = "an edge list of two labels a line, an optional weight after them"
        refuse(field, path, allowed, f"repair {line[:40]!r} ({reason_of(error)})")
    return graph


def _parse_weight(rest: str) -> float:
    """Returns the weight in what follows two labels: nothing, networkx data or one number."""
    return float(ast.literal_eval(rest).get("weight", 1) if rest.startswith("{") else rest or 1)
