"""Figure 9: the four kinds of graph, drawn for five agents."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import networkx as nx

from experiments import common, pictures
from fmab_jax.parts import graphs
from fmab_jax.plots import style

AGENTS = 5
GRAPHS = {"complete": "complete", "star": "star", "ring": "ring", "random": "random-0.5"}


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws the graphs; there is nothing to simulate."""
    shapes = {title: graphs.make(name, AGENTS) for title, name in GRAPHS.items()}
    caption = (
        f"The kinds of graph of figure 10, drawn for M = {AGENTS} agents. The random graph is "
        "Erdős–Rényi, edge probability 0.5, redrawn until connected, always the same. "
        "No simulation: no seeds, no band."
    )
    alt = "The complete graph, the star, the ring and a random graph of five agents."
    rows = [
        {
            "graph": title,
            "edges": graph.number_of_edges(),
            "diameter": graphs.diameter(graph),
            "from agent": first + 1,
            "to agent": second + 1,
        }
        for title, graph in shapes.items()
        for first, second in graph.edges
    ]
    picture = pictures.Picture("fig09_graphs", page(rows), caption, alt, rows)
    return pictures.publish(picture, folder)


def page(rows: Sequence[Mapping[str, Any]]) -> Callable[[pictures.Page], None]:
    """Returns what draws the graphs from the rows of the CSV, an edge each."""
    edges: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for row in rows:
        ends = row["from agent"] - 1, row["to agent"] - 1
        edges.setdefault((row["graph"], row["edges"], row["diameter"]), []).append(ends)

    def draw(page: pictures.Page) -> None:
        page.figure.set_size_inches(pictures.PAGE, 1.9)
        panels = page.figure.subplots(1, len(edges))
        for panel, ((title, number, diameter), pairs) in zip(panels, edges.items(), strict=True):
            graph = nx.Graph()
            graph.add_nodes_from(range(AGENTS))
            graph.add_edges_from(pairs)
            hub = [0] if title == "star" else []
            places = nx.circular_layout([agent for agent in graph if agent not in hub])
            places |= {agent: (0, 0) for agent in hub}
            color = style.COLOURS[0]
            nx.draw_networkx_edges(graph, places, ax=panel, edge_color="0.4", width=0.8)
            nx.draw_networkx_nodes(graph, places, ax=panel, node_color=color, node_size=28)
            words = f"{title}\n{number} edges\ndiameter {diameter}"
            panel.set_title(words, fontsize=style.FONT, pad=2)
            panel.set(aspect="equal", xlim=(-1.25, 1.25), ylim=(-1.25, 1.25))
            panel.set_axis_off()

    return draw
