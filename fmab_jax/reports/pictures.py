"""Static pictures of a report: shown on paper and where scripts do not run."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.reports.content import Axis, Cell, Content, Result

# Curves that a picture of a column's width can tell apart; maps of a grid's third parameter.
_MOST_CURVES, _MOST_PANELS = 8, 4


class Picture(NamedTuple):
    """An image, and its words."""

    uri: str  # the image, as text that a page can hold
    short: str  # what is drawn, with seeds, horizon and band: stands under it
    caption: str  # all that is to be seen, settings and what went wrong too: stands beside it
    title: str  # what differs it from its neighbours; "" for the only one


def curves(content: Content) -> list[Picture]:
    """Draws regret and links over time of the configurations that are shown at first."""
    from fmab_jax.plots import runs

    labelled = {cell.label: cell.data for cell in shown_first(content) if "regret" in cell.data}
    if not labelled:
        return []
    server, peer = content.costs
    how: dict[str, Any] = {"server_price": server, "peer_price": peer}
    return [_picture(runs.plot_runs(labelled, level=content.level, **how))]


def finals(content: Content) -> list[Picture]:
    """Draws regret at the horizon against the parameters, a picture for each value of a third."""
    found = []
    for source in content.sources:
        table = source.table
        table = table.squeeze([name for name in table.seeds.dims if table.sizes[name] == 1])
        if table.seeds.ndim and int(table.seeds.min()) > 1:
            found += _panels(content, source, table, [str(name) for name in table.seeds.dims])
    return found


def _panels(
    content: Content, source: Result, table: xr.Dataset, dims: Sequence[str]
) -> list[Picture]:
    from fmab_jax.plots import parameters

    axes = {axis.name: axis for axis in content.axes}
    x, *others = order_of([axes[name] for name in dims])
    hue, rest = (others[0].name, others[1:]) if others else (None, [])
    places = list(np.ndindex(*(table.sizes[axis.name] for axis in rest)))
    if len(places) > _MOST_PANELS:
        places = [tuple(axis.reference for axis in rest)]
    panels = []
    for place in places:
        at = dict(zip([axis.name for axis in rest], place, strict=True))
        figure = parameters.plot_parameter(table.isel(at), x.name, hue)
        title = [source.label, *(axis.labels[at[axis.name]] for axis in rest)]
        panels.append(_picture(figure, ", ".join(filter(None, title))))
    return panels


def order_of(axes: Sequence[Axis]) -> list[Axis]:
    """Returns axes in the order in which a figure takes them: horizontal, colours, the rest.

    Several results go to the horizontal axis, else numbers, the longer the rather; the first of
    equal ones stays first.
    """

    def weight(axis: Axis) -> tuple[bool, bool, int]:
        few_numbers = sum(number is not None for number in axis.numbers) < 2
        return axis.name != "result", few_numbers, -len(axis.labels)

    return sorted(axes, key=weight)


def shown_first(content: Content) -> list[Cell]:
    """Returns the configurations that curves show before anything is chosen.

    All where they are few; else those that differ in the first parameter, others at the reference.
    """
    complete = [cell for cell in content.cells if cell.complete]
    if len(complete) <= _MOST_CURVES or not content.axes:
        return complete[:_MOST_CURVES]
    first, *rest = content.axes
    at_reference = [
        cell
        for cell in complete
        if all(cell.at[i] in (None, axis.reference) for i, axis in enumerate(rest, start=1))
    ]
    return (at_reference or complete)[:_MOST_CURVES]


def _picture(figure: Any, title: str = "") -> Picture:
    from fmab_jax.plots import style

    image = base64.b64encode(style.svg(figure)).decode()
    short, long = style.caption_of(figure)
    return Picture(f"data:image/svg+xml;base64,{image}", " ".join(short), long, title)
