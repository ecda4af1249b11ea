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
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fmab_jax.cli.options import Call, list_changed, option, rename_fields, visible
from fmab_jax.cli.study_options import choose_file_name
from fmab_jax.cli.tables import Reading, open_results, select_cells
from fmab_jax.errors import Refusal
from fmab_jax.parameters import Choice
from fmab_jax.plots.kinds import KINDS, draw, list_flags


@dataclass(frozen=True, kw_only=True)
class _Axes(Reading):
    """What is drawn against what."""

    x: str | None = option(None, metavar="PARAMETER", default_text="off")
    """Parameter on the horizontal axis."""
    y: str | None = option(None, metavar="PARAMETER", default_text="off")
    """Second parameter: a heat map over --x and --y."""
    hue: str | None = option(None, metavar="PARAMETER", default_text="off")
    """Parameter told apart by colour."""
    metric: str = option("regret", kind=Choice(options=("regret", "cost", "rounds")))
    """What is drawn against --x."""


if TYPE_CHECKING:
    _Kinds = _Axes
else:
    _Kinds = dataclasses.make_dataclass(
        "_Kinds",
        [(name, bool, option(False, help=kind.help)) for name, kind in list_flags().items()],
        bases=(_Axes,),
        frozen=True,
        kw_only=True,
    )


@dataclass(frozen=True, kw_only=True)
class Options(_Kinds):
    """A metric against parameters, curves, or regret against cost."""

    out: str | None = option(None, metavar="FILE", default_text="FOLDER-KIND.png")
    """Where to write, .png or .pdf; its whole caption stands beside it, in a .txt."""
    overwrite: bool = option(False)
    """Replace older files."""
    width: str = option("column", metavar="column|page|INCHES", default_text="column, 3.4 inches")
    """Width of the figure; a page is 7 inches."""
    caption: bool = option(True)
    """Draw the beginning of the caption below the figure; the .txt has it in any case."""


# Options that the start of a file name has already, or that do not change the figure.
_UNNAMED = ("folder", "out", "overwrite", "x", "y", "hue", *list_flags())
_ONE_OF = (
    f"fmab plot: must be given one of {', '.join(f'--{name}' for name in ('x', *list_flags()))}"
)


def execute(call: Call[Options]) -> None:
    """Draws and writes a figure."""
    from fmab_jax.plots import runs as plots

    options = call.options
    kind = _choose_kind(options)
    axes = [name for name in (options.x, options.y, options.hue) if name is not None]
    path = options.out
    if path is None:
        start = os.path.normpath(options.folder).removesuffix(".nc")
        start = "-".join([start, *[kind] * (kind != "parameter"), *axes])
        path = choose_file_name(start, options.folder, list_changed(options, _UNNAMED)) + ".png"
    data = select_cells(open_results(options.folder), options.select)
    with rename_fields(path="out"):
        try:
            figure = draw(kind, data, vars(options))
        except Refusal as error:
            if error.field.partition(".")[0] != "finals":
                raise
            raise Refusal.line(f"{visible(options.folder)}: {error}") from None
        plots.save_figure(figure, Path(path), overwrite=options.overwrite)
    call.files.extend(plots.list_figure_files(figure, Path(path)))
    for file in call.files:
        print("wrote", file)


def _choose_kind(options: Options) -> str:
    """Chooses the kind of figure from the options.

    Raises:
        Refusal: If they ask for none or several, or an option does not belong to the kind.
    """
    kinds = [name for name in list_flags() if getattr(options, name)]
    if options.x is not None:
        kinds.append("parameter" if options.y is None else "heat")
    if len(kinds) != 1:
        raise Refusal.line(f"{_ONE_OF}; see fmab plot --help")
    (kind,) = kinds
    for name, default in (("y", None), ("hue", None), ("metric", "regret")):
        value, axes = getattr(options, name), (*KINDS[kind].needs, *KINDS[kind].takes)
        if value != default and name not in axes:
            context = (
                f"with --{kind}" if kind in list_flags() else "for a heat map over --x and --y"
            )
            raise Refusal.line(f"--{name} {visible(value)}: must be left out {context}; drop one")
    return kind
