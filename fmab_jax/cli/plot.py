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
from fmab_jax.cli.tables import MOST_CURVES, Reading, default_figure, opened, selected
from fmab_jax.errors import Refusal, did_you_mean
from fmab_jax.plots.kinds import KINDS, flags

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class _Axes(Reading):
    """What is drawn against what."""

    x: str | None = option(None, metavar="PARAMETER", shown="off")
    """Parameter on the horizontal axis."""
    y: str | None = option(None, metavar="PARAMETER", shown="off")
    """Second parameter: a heat map over --x and --y."""
    hue: str | None = option(None, metavar="PARAMETER", shown="off")
    """Parameter told apart by colour."""
    metric: str = option("regret", metavar="{regret,cost,rounds}")
    """What is drawn against --x."""


_Kinds: Any = dataclasses.make_dataclass(
    "_Kinds",
    [(name, bool, option(False, help=kind.about)) for name, kind in flags().items()],
    bases=(_Axes,),
    frozen=True,
    kw_only=True,
)


@dataclass(frozen=True, kw_only=True)
class Options(_Kinds):  # type: ignore[misc]
    """A metric against parameters, curves, or regret against cost."""

    out: str | None = option(None, metavar="FILE", shown="FOLDER-KIND.png")
    """Where to write, .png or .pdf; its whole caption stands beside it, in a .txt."""
    overwrite: bool = option(False)
    """Replace older files."""


# Options that are said by the kind of figure, or change none.
_UNNAMED = ("folder", "plugin", "out", "overwrite", "x", "y", "hue", *flags())
_ONE_OF = f"fmab plot: must be given one of {', '.join(f'--{name}' for name in ('x', *flags()))}"


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
        try:
            figure = _figure(options, data)
        except Refusal as error:
            owner, _, part = error.field.partition(".")
            if owner != "finals":
                raise
            told = error.renamed(part or owner).typed(part)
            raise Refusal.line(f"{visible(options.folder)}: {told}") from None
        plots.save_figure(figure, Path(path), overwrite=options.overwrite)
    call.written.extend(plots.files_of(figure, Path(path)))
    for each in call.written:
        print("wrote", each)


def _kind(options: Any) -> str:
    """Returns the kind of figure that options ask for; "" where they ask for none."""
    given = [name for name in flags() if getattr(options, name)]
    if len(given) + (options.x is not None) > 1:
        raise Refusal.line(f"{_ONE_OF}; drop one")
    axis = "" if options.x is None else "parameter" if options.y is None else "heat"
    return given[0] if given else axis


def _checked_kind(options: Any) -> list[str]:
    """Returns the words for the kind of figure that options ask for.

    Raises:
        Refusal: If they ask for several, or what they add fits none.
    """
    kind = _kind(options)
    if options.y is not None and options.x is None:
        raise Refusal.line(f"--y {visible(options.y)}: must be given with --x; add it")
    if options.hue is not None and kind and "hue" not in KINDS[kind].takes:
        other = "y" if kind == "heat" else kind
        told = f"must be left out with --{other}; drop one"
        raise Refusal.line(f"--hue {visible(options.hue)}: {told}")
    if options.metric != "regret" and options.x is None:
        raise Refusal.line(f"--metric {visible(options.metric)}: must be given with --x; drop one")
    named = [name for name in (options.x, options.y, options.hue) if name is not None]
    return [kind] * (kind not in ("", "parameter")) + named


def _check_dims(options: Any, data: xr.Dataset) -> None:
    from fmab_jax.analysis.words import label_text

    dims = [str(name) for name in data.seeds.dims]
    kind = _kind(options)
    if not kind:
        swept = f"--x may be {' or '.join(dims)}" if dims else "nothing is swept for --x"
        raise Refusal.line(f"{_ONE_OF}; {swept}")
    chosen = {"x": options.x, "y": options.y, "hue": options.hue}
    for flag, name in chosen.items():
        if name is not None and name not in dims:
            allowed = "one of " + ", ".join(dims) if dims else "left out, as nothing is swept"
            remedy = did_you_mean(name, dims, "see --help", str)
            raise Refusal.line(f"--{flag} {visible(name)}: must be {allowed}; {remedy}")
    left = [name for name in dims if data.sizes[name] > 1 and name not in chosen.values()]
    if options.x is not None and left:
        many = ", ".join(f"{name} ({data.sizes[name]} values)" for name in left)
        example = " ".join(f"{name}={label_text(data[name].values.tolist()[0])}" for name in left)
        told = f"must leave no parameter open, but {many}; add --select {example}"
        raise Refusal.line(f"--x {options.x}: {told}")
    if KINDS[kind].curves and data.seeds.size > MOST_CURVES:
        told = f"must show at most {MOST_CURVES} of {data.seeds.size} configurations"
        raise Refusal.line(f"--{kind}: {told}; add --select")


def _figure(options: Any, data: xr.Dataset) -> Any:
    from fmab_jax.analysis.tables import final_table

    name, asked = _kind(options), vars(options)
    kind = KINDS[name]
    if kind.curves:
        return kind.draw(data, asked | {"level": 0.95 if options.level is None else options.level})
    prices = {"server_price": options.server_price, "peer_price": options.peer_price}
    table = final_table(data, level=options.level, **prices)
    table = table.squeeze([name for name in table.seeds.dims if table.sizes[name] == 1])
    return kind.draw(table, asked)
