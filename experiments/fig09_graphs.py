"""Figure 9: the four kinds of graph, drawn for five agents."""

from pathlib import Path

import networkx as nx

from experiments import common
from fmab_jax.core import graphs
from fmab_jax.plots import style

AGENTS = 5
GRAPHS = {"complete": "complete", "star": "star", "ring": "ring", "random": "random-0.5"}


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws the graphs; there is nothing to simulate."""
    figure, axes = common.panels(1, rows=1, height=1.3)
    figure.clear()
    for panel, (title, name) in zip(figure.subplots(1, len(GRAPHS)), GRAPHS.items(), strict=True):
        graph = graphs.make(name, AGENTS)
        hub = [0] if name == "star" else []
        places = nx.circular_layout([agent for agent in graph if agent not in hub])
        places |= {agent: (0, 0) for agent in hub}
        nx.draw_networkx_edges(graph, places, ax=panel, edge_color="0.4", width=0.8)
        nx.draw_networkx_nodes(graph, places, ax=panel, node_color=style.COLOURS[0], node_size=28)
        edges, diameter = graph.number_of_edges(), graphs.diameter(graph)
        panel.set_title(f"{title}\n{edges} edges\ndiameter {diameter}", fontsize=style.FONT, pad=2)
        panel.set(aspect="equal", xlim=(-1.25, 1.25), ylim=(-1.25, 1.25))
        panel.set_axis_off()
    caption = (
        f"The kinds of graph of figure 10, drawn for M = {AGENTS} agents. The random graph is "
        "Erdős–Rényi, edge probability 0.5, redrawn until connected, always the same. "
        "No simulation: no seeds, no band."
    )
    return common.save(style.finish(figure, [], caption), folder, "fig09_graphs")
