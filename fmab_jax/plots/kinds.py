"""Lists the kinds of figures; a new kind is a file and a line here.

`fmab plot` has its options from this table. Nothing here needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from fmab_jax.sampling.shapes import Record

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


class Kind(NamedTuple):
    """A kind of figure."""

    # Module and function: its first argument is the table of final values, the others are options.
    home: str
    help: str = ""  # what is drawn, for help; "" where `needs` choose it rather than a flag
    needs: tuple[str, ...] = ()  # options that must be given, of "x", "y" and "hue"
    takes: tuple[str, ...] = ()  # options that may be given besides: "hue", "metric" or "kind"
    curves: bool = False  # whether it is drawn from curves over time, not from final values

    def draw(self, results: xr.Dataset, options: Mapping[str, object]) -> Figure:
        """Returns the figure; options that it does not take are passed over."""
        module, _, name = self.home.partition(".")
        function = getattr(import_module(f"{__package__}.{module}"), name)
        names = [*self.needs, *self.takes, "width", "caption"]
        names += [*["level", "server_price", "peer_price"] * self.curves]
        return function(results, **{name: options[name] for name in names if name in options})


KINDS = {
    "curves": Kind(
        "runs.plot_runs",
        "Regret and links over time, a curve for each configuration.",
        takes=("kind",),
        curves=True,
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


def draw(name: str, data: xr.Dataset, options: Record) -> Figure:
    """Draws a figure of results; the options include level and prices."""
    from fmab_jax.analysis.tables import final_table

    kind, level = KINDS[name], options["level"]
    if kind.curves:
        return kind.draw(data, {**options, "level": 0.95 if level is None else level})
    prices = {side: options[side] for side in ("server_price", "peer_price")}
    return kind.draw(final_table(data, level=level, **prices), options)


def list_flags() -> dict[str, Kind]:
    """Returns the kinds that have a flag."""
    return {name: kind for name, kind in KINDS.items() if kind.help}
