"""Draws a figure of results.

The final regret, cost or rounds against a parameter (--x), a heat map (--x and
--y), curves over time (--curves) or regret against cost (--pareto).

Examples:
  fmab plot runs/eps --x epsilon --hue participation
  fmab plot runs/eps --x epsilon --y participation --metric cost
  fmab plot eps.nc --curves --select participation=1 --out curves.pdf
  fmab plot runs/eps --pareto --hue epsilon --server-price 25
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmab_jax.cli.options import Call, called, option, visible
from fmab_jax.cli.stated import file_name, identity
from fmab_jax.cli.tables import MOST_CURVES, Reading, curves, default_figure, opened, selected
from fmab_jax.errors import Refusal, refuse

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Options(Reading):
    """A metric against parameters, curves, or regret against cost."""

    x: str | None = option(None, metavar="PARAMETER", shown="off")
    """Parameter on the horizontal axis."""
    y: str | None = option(None, metavar="PARAMETER", shown="off")
    """Second parameter: a heat map over --x and --y."""
    hue: str | None = option(None, metavar="PARAMETER", shown="off")
    """Parameter told apart by colour."""
    metric: str = option("regret", metavar="{regret,cost,rounds}")
    """What is drawn against --x."""
    curves: bool = option(False)
    """Regret and links over time, a curve for each configuration."""
    pareto: bool = option(False)
    """Regret against communication cost, with the front of what none beats in both."""
    out: str | None = option(None, metavar="FILE", shown="FOLDER-KIND.png")
    """Where to write, .png or .pdf."""
    overwrite: bool = option(False)
    """Replace an older file."""


# Options that are said by the kind of figure, or change none.
_UNNAMED = ("folder", "plugin", "out", "overwrite", "x", "y", "hue", "curves", "pareto")


def execute(call: Call) -> None:
    """Draws and writes a figure."""
    from fmab_jax.plots import runs as plots

    options = call.options
    kind = _checked_kind(options)
    named = [default_figure(options.folder), *kind]
    path = options.out
    if path is None:
        shaping = {each.name for each in dataclasses.fields(options)}
        settings = identity("", options, shaping - {"plugin", "out", "overwrite"})
        path = file_name("-".join(named), options, _UNNAMED, settings) + ".png"
    data = selected(opened(options), options.select)
    _check_dims(options, data)
    with called(path="out"):
        figure = _drawn(options, data)
        call.written.append(plots.save_figure(figure, Path(path), overwrite=options.overwrite))
    print("wrote", path)


def _kinds(options: Any) -> tuple[bool, bool, bool]:
    """Tells which of --x, --curves and --pareto are given."""
    return options.x is not None, options.curves, options.pareto


def _checked_kind(options: Any) -> list[str]:
    """Returns the words for the kind of figure that options ask for.

    Raises:
        Refusal: If they ask for several, or what they add fits none.
    """
    if sum(_kinds(options)) > 1:
        raise Refusal.line("fmab plot: must be given one of --x, --curves, --pareto; drop one")
    if options.y is not None and options.x is None:
        raise Refusal.line(f"--y {visible(options.y)}: must be given with --x; add it")
    if options.hue is not None and (options.curves or options.y is not None):
        other = "--curves" if options.curves else "--y"
        raise Refusal.line(f"--hue {visible(options.hue)}: must be left out with {other}; drop one")
    if options.metric != "regret" and options.x is None:
        raise Refusal.line(f"--metric {visible(options.metric)}: must be given with --x; drop one")
    if options.curves:
        return ["curves"]
    named = [name for name in (options.x, options.y, options.hue) if name is not None]
    return ["pareto"] * options.pareto + ["heat"] * (options.y is not None) + named


def _check_dims(options: Any, data: xr.Dataset) -> None:
    from fmab_jax.analysis.words import label_text

    dims = [str(name) for name in data.seeds.dims]
    if not any(_kinds(options)):
        swept = f"--x may be {' or '.join(dims)}" if dims else "nothing is swept for --x"
        raise Refusal.line(f"fmab plot: must be given one of --x, --curves, --pareto; {swept}")
    chosen = {"x": options.x, "y": options.y, "hue": options.hue}
    for flag, name in chosen.items():
        if name is not None and name not in dims:
            allowed = "one of " + ", ".join(dims) if dims else "left out, as nothing is swept"
            raise Refusal.line(f"--{flag} {visible(name)}: must be {allowed}; see --help")
    left = [name for name in dims if data.sizes[name] > 1 and name not in chosen.values()]
    if options.x is not None and left:
        many = ", ".join(f"{name} ({data.sizes[name]} values)" for name in left)
        example = " ".join(f"{name}={label_text(data[name].values.tolist()[0])}" for name in left)
        told = f"must leave no parameter open, but {many}; add --select {example}"
        raise Refusal.line(f"--x {options.x}: {told}")
    if options.curves and data.seeds.size > MOST_CURVES:
        told = f"must show at most {MOST_CURVES} of {data.seeds.size} configurations"
        raise Refusal.line(f"--curves: {told}; add --select")


def _drawn(options: Any, data: xr.Dataset) -> Any:
    from fmab_jax.analysis.tables import final_table
    from fmab_jax.plots import parameters as plots

    prices = {"server_price": options.server_price, "peer_price": options.peer_price}
    if options.curves:
        if "regret" not in data:
            refuse("keep", "summary", "'curves' for --curves", "draw --x, or keep curves")
        return curves(data, level=0.95 if options.level is None else options.level, **prices)
    table = final_table(data, level=options.level, **prices)
    table = table.squeeze([name for name in table.seeds.dims if table.sizes[name] == 1])
    if options.x is None:
        from fmab_jax.plots.pareto import plot_pareto

        return plot_pareto(table, options.hue)
    if options.y is not None:
        return plots.plot_heat(table, options.x, options.y, metric=options.metric)
    return plots.plot_parameter(table, options.x, options.hue, metric=options.metric)
