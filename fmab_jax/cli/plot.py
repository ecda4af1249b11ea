"""Draws a figure of results.

The final regret, cost or rounds against a parameter (--x), a heat map (--x and
--y), curves over time (--curves) or regret against cost (--pareto).

Examples:
  fmab plot runs/eps --x epsilon --hue participation
  fmab plot runs/eps --x epsilon --y participation --metric cost
  fmab plot eps.nc --curves --select participation=1 --out curves.pdf
  fmab plot runs/eps --pareto --hue epsilon --server-price 25
  fmab plot apart.nc --curves --hue agent --metric own_regret
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmab_jax.cli.options import Call, list_changed, option, rename_fields, visible
from fmab_jax.cli.printing import AGENT_METRICS, Reading, read_results, select_cells
from fmab_jax.cli.study_options import choose_file_name
from fmab_jax.errors import Refusal, refuse
from fmab_jax.parameters import Choice

if TYPE_CHECKING:
    import xarray as xr

    from fmab_jax.plots.saving import Figure


# What is drawn of each agent in place of a metric.
_OF_AGENTS = {"regret": "agent_regret", "own_regret": "agent_own_regret"}


@dataclass(frozen=True, kw_only=True)
class PlotOptions(Reading):
    """A metric against parameters, curves, or regret against cost."""

    x: str | None = option(None, metavar="PARAMETER", default_text="off")
    """Parameter on the horizontal axis."""
    y: str | None = option(None, metavar="PARAMETER", default_text="off")
    """Second parameter: a heat map over --x and --y."""
    hue: str | None = option(None, metavar="PARAMETER", default_text="off")
    """Parameter told apart by colour; or agent, where agents differ."""
    metric: str = option(
        "regret", kind=Choice(options=("regret", "cost", "rounds", *AGENT_METRICS))
    )
    """What is drawn against --x; with --curves regret or own_regret."""
    curves: bool = option(False)
    """Regret and links over time, a curve for each configuration."""
    pareto: bool = option(False)
    """Regret against communication cost, with the front: no other configuration has both less
    regret and less cost."""
    out: str | None = option(None, metavar="FILE", default_text="FOLDER-KIND.png")
    """Where to write, .png or .pdf; its whole caption stands beside it, in a .txt."""
    overwrite: bool = option(False)
    """Replace older files."""
    width: str = option("column", metavar="column|page|INCHES", default_text="column, 3.4 inches")
    """Width of the figure; a page is 7 inches."""
    caption: bool = option(True)
    """Draw the beginning of the caption below the figure; the .txt has it in any case."""


# Options that the start of a file name has already, or that do not change the figure.
_UNNAMED = ("folder", "out", "overwrite", "x", "y", "hue", "curves", "pareto")
# Options that a kind of figure does not take.
_FOREIGN = {
    "curves": ("y", "hue", "metric", "server_price", "peer_price"),
    "pareto": ("y", "metric"),
    "heat": ("hue",),
    "parameter": (),
}


def execute(call: Call[PlotOptions]) -> None:
    """Draws and writes a figure."""
    from fmab_jax.plots.saving import list_figure_files, save_figure

    options = call.options
    kind = _choose_kind(options)
    axes = [name for name in (options.x, options.y, options.hue) if name is not None]
    path = options.out
    if path is None:
        start = os.path.normpath(options.folder).removesuffix(".nc")
        start = "-".join([start, *[kind] * (kind != "parameter"), *axes])
        path = choose_file_name(start, options.folder, list_changed(options, _UNNAMED)) + ".png"
    data = _select_regret(read_results(options.folder), options)
    data = select_cells(data, options.select)
    with rename_fields(path="out"):
        try:
            figure = _draw(kind, data, options)
        except Refusal as error:
            if error.field.partition(".")[0] != "frame":
                raise
            raise Refusal.line(f"{visible(options.folder)}: {error}") from None
        save_figure(figure, Path(path), overwrite=options.overwrite)
    call.files.extend(list_figure_files(figure, Path(path)))
    for file in call.files:
        print("wrote", file)


def _select_regret(data: xr.Dataset, options: PlotOptions) -> xr.Dataset:
    """Returns the results with the regret to draw for their regret, of each agent if asked for."""
    from fmab_jax.analysis.agents import CURVES, select_regret

    metric = options.metric
    by_agent = [f"--{name}" for name in ("x", "y", "hue") if getattr(options, name) == "agent"]
    if options.pareto and options.hue == "agent":
        raise Refusal.line("--hue agent: must be left out with --pareto; agents share the cost")
    if by_agent:
        if metric not in _OF_AGENTS:
            refuse("metric", metric, f"{' or '.join(_OF_AGENTS)} of agents", "choose one of these")
        metric = _OF_AGENTS[metric]
        if metric not in data and f"{metric}_mean" not in data:
            needed = f"{by_agent[0]} agent: must be left out without {metric} in the result"
            remedy = f"run it with --outputs {metric}; up to 100 agents that differ have it anyway"
            raise Refusal.line(f"{needed}; {remedy}")
    elif metric not in AGENT_METRICS:
        return data
    curve = CURVES.get(metric, metric)
    if options.curves and (curve not in data or "time" not in data[curve].dims):
        needed = f"--curves: must be left out without {curve} over time in the result"
        raise Refusal.line(f"{needed}; run it again with --outputs {curve}, and keep its trials")
    with rename_fields(kind="metric"):
        return select_regret(data, metric)


def _draw(kind: str, data: xr.Dataset, options: PlotOptions) -> Figure:
    from fmab_jax.analysis.tables import table
    from fmab_jax.plots import heat, lines, over_time, pareto

    look: dict[str, Any] = {"width": options.width, "caption": options.caption}
    if kind == "curves":
        level = 0.95 if options.level is None else options.level
        return over_time.plot_runs(data, level=level, **look)
    frame = table(data, level=options.level, **options.prices)
    if kind == "pareto":
        return pareto.plot_pareto(frame, options.hue, **look)
    metric = "regret" if options.metric in AGENT_METRICS else options.metric
    look |= {"x": options.x, "metric": metric}
    if kind == "heat":
        return heat.plot_heat(frame, **look | {"y": options.y})
    return lines.plot_parameter(frame, hue=options.hue, **look)


def _choose_kind(options: PlotOptions) -> str:
    """Chooses the kind of figure from the options.

    Raises:
        Refusal: If they ask for none or several, or an option does not belong to the kind.
    """
    kinds = [kind for kind in ("curves", "pareto") if getattr(options, kind)]
    if options.x is not None:
        kinds.append("parameter" if options.y is None else "heat")
    if len(kinds) != 1:
        one_of = "must be given one of --x, --curves, --pareto"
        raise Refusal.line(f"fmab plot: {one_of}; see fmab plot --help")
    (kind,) = kinds
    for name in _FOREIGN[kind]:
        value = getattr(options, name)
        if kind == "curves" and (name, value) in (("hue", "agent"), ("metric", "own_regret")):
            continue
        if value != type(options).__dataclass_fields__[name].default:
            context = f"with --{kind}" if kind != "heat" else "for a heat map over --x and --y"
            text = visible(str(value))
            flag = name.replace("_", "-")
            raise Refusal.line(f"--{flag} {text}: must be left out {context}; drop one")
    return kind
