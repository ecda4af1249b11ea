"""The kinds of figures of results: a new one is a file of its own, and a line here.

`fmab plot` has its options from this table. Nothing here needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """A kind of figure."""

    # Module of this room, and function: its first argument is the table of final values, the others
    # are the options that it takes, by name.
    home: str
    about: str = ""  # what is drawn, for help; "" where `needs` choose it rather than a flag
    needs: tuple[str, ...] = ()  # options that must be given, of "x", "y" and "hue"
    takes: tuple[str, ...] = ()  # options that may be given besides, of "hue" and "metric"
    curves: bool = False  # whether it is drawn from curves over time, not from final values

    def draw(self, results: Any, options: Mapping[str, Any]) -> Any:
        """Returns the figure; options besides those that it has are passed over."""
        module, _, name = self.home.partition(".")
        function = getattr(import_module(f"{__package__}.{module}"), name)
        own = [*self.needs, *self.takes, *["level", "server_price", "peer_price"] * self.curves]
        return function(results, **{name: options[name] for name in own})


KINDS = {
    "curves": Kind(
        "runs.plot_runs", "Regret and links over time, a curve for each configuration.", curves=True
    ),
    "pareto": Kind(
        "pareto.plot_pareto",
        "Regret against communication cost, with the front: no other configuration has both less "
        "regret and less cost.",
        takes=("hue",),
    ),
    "heat": Kind("parameters.plot_heat", needs=("x", "y"), takes=("metric",)),
    "parameter": Kind("parameters.plot_parameter", needs=("x",), takes=("hue", "metric")),
}


def flags() -> dict[str, Kind]:
    """Returns the kinds that a flag of their name asks for."""
    return {name: kind for name, kind in KINDS.items() if kind.about}
