"""Simulates an algorithm: prints a table, draws a figure, writes netCDF.

Several values after an option are compared, with the same seeds each. Bad
input is refused in one line before anything is computed or written.

Examples:
  fmab run cdp --epsilon 0.5 --agents 50 --arms 100 --horizon 1e6
  fmab run ddp --graph ring star complete --epsilon 0.5
  fmab run hdp --components 20x5:star --server-price 50
  fmab run cdp kl_se dist_dp_se --leak 2
  fmab run ucb1 --horizon 1e7 --dry-run
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fmab_jax.cli import study_options
from fmab_jax.cli.options import Call, Command, list_changed, option, rename_fields
from fmab_jax.cli.printing import Filtered, Priced, check_columns, print_results
from fmab_jax.errors import format_quantity, refuse
from fmab_jax.files import check_path, refuse_taken
from fmab_jax.parameters import Choice
from fmab_jax.sweeps.progress import say_later

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from fmab_jax.sweeps.api import Study


@dataclass(frozen=True, kw_only=True)
class RunOptions(Priced, Filtered):
    """What all runs share."""

    band: str = option(
        "simultaneous", kind=Choice(options=("simultaneous", "pointwise", "quantile"))
    )
    """Kind of band in the figure."""
    out: str | None = option(None, metavar="BASE", default_text="fmab-NAME-SETTINGS, here")
    """Write BASE.png, its caption BASE.txt, and BASE.nc."""
    overwrite: bool = option(False)
    """Replace older files."""
    dry_run: bool = option(False)
    """Say what would be done and what it takes, and stop."""
    figure: bool = option(True)
    """Draw the figure."""
    data: bool = option(True)
    """Write the results."""


# A figure of more curves would be unreadable.
MOST_CURVES = 28
# Different trusts that are listed.
_MOST_TRUSTS = 4
# RunOptions that do not change the results.
_UNNAMED = ("out", "overwrite", "dry_run", "figure", "data", "where", "columns")


def command(words: list[str]) -> Command:
    """Builds the command of some words."""
    return study_options.build_command("fmab run", words, RunOptions, str(__doc__), several=True)


def execute(call: Call[RunOptions]) -> None:
    """Runs, prints and writes; every bad value is refused before the first trial."""
    from fmab_jax.sweeps import runner

    options = call.options
    with rename_fields(**study_options.FIELD_OPTIONS):
        _, study = study_options.build_study(call.values, call.command.algorithms)
        if study.seeds < 2:
            refuse("seeds", study.seeds, "at least 2, for an interval", "fmab sweep takes one")
        if options.figure:
            _check_figure(options, study)
        figure_path, data_path = _choose_paths(call, study)
        if options.where or options.columns:
            # A wrong column is refused before the first trial.
            check_columns(runner.outline(study), options)
        if options.dry_run:
            runner.run(study, progress=True, dry=True)
            return
        with say_later(lambda: _describe_length(study)):
            data = runner.run(study)
    if options.data:
        from fmab_jax.sweeps import exports

        call.files.append(exports.export(data, data_path, overwrite=options.overwrite))
    if options.figure:
        call.files.extend(_write_figure(data, options, figure_path))
    frame = print_results(data, options, options)
    print("\n".join(["", *_describe_privacy(frame), ""]))
    programs = data.attrs["compilations"]
    print(
        f"{format_quantity(study.seeds * len(study.points), 'trial')}"
        f"{' at least' * bool(study.until)}, "
        f"{format_quantity(programs, 'compilation')}: {data.attrs['elapsed_s']:.3g} s"
    )
    for path in call.files:
        print("wrote", path)


def _describe_length(study: Study) -> str:
    """Says how trials are kept, for a run that takes long."""
    seeds, cells = format_quantity(study.seeds, "seed"), len(study.points)
    return (
        f"running {format_quantity(cells, 'configuration')} x {seeds}, or compiling; fmab run "
        "keeps nothing until it ends: fmab sweep with the same options and --out FOLDER keeps all "
        "trials\n"
    )


def _describe_privacy(frame: pd.DataFrame) -> list[str]:
    """Says whom a table's runs trust, whether actions are bounded, and where the ledger is."""
    groups = [*frame[frame.trust != ""].groupby("trust", sort=False)]
    owners = [[*dict.fromkeys(rows.algorithm)] for _, rows in groups]
    are_apart = len({*frame.algorithm}) == sum(map(len, owners))
    lines = ["Who has to be trusted:"] if groups else []
    for (trust, rows), names in zip(groups[:_MOST_TRUSTS], owners, strict=False):
        owner = ", ".join(names) if are_apart else f"{len(rows)} of {len(frame)} rows"
        lines.append(f"  {trust}" + f" ({owner})" * (len(groups) > 1))
    if more := len(groups[_MOST_TRUSTS:]):
        lines.append(f"  and {more} more: fmab show --columns trust")
    if (frame.leak_messages < math.inf).any() and not frame.open_actions.any():
        lines.append("Actions have a bound wherever messages have one.")
    algorithms = " or ".join(dict.fromkeys(frame.algorithm)) or "ALGORITHM"
    return [*lines, f"Who sees what, and why: fmab ledger {algorithms}, with the same options."]


def _check_figure(options: RunOptions, study: Study) -> None:
    """Refuses a figure of too many curves, and a band that a summary does not have."""
    if len(study.points) > MOST_CURVES:
        remedy = "add --no-figure, and draw the file with fmab plot --x"
        refuse("configurations", len(study.points), f"at most {MOST_CURVES} in a figure", remedy)
    if study.keep == "summary" and options.band == "quantile":
        remedy = "choose another, keep curves, or add --no-figure"
        refuse("band", options.band, "of means for a summary", remedy)


def _write_figure(data: xr.Dataset, options: RunOptions, path: Path) -> list[Path]:
    """Draws and writes the figure; returns the files."""
    from fmab_jax.plots import over_time, saving

    level = 0.95 if options.level is None else options.level
    figure = over_time.plot_runs(data, level=level, kind=options.band)
    saving.save_figure(figure, path, overwrite=options.overwrite)
    return saving.list_figure_files(figure, path)


def _choose_paths(call: Call[RunOptions], study: Study) -> tuple[Path, Path]:
    """Chooses and checks the paths of figure and results.

    Raises:
        Refusal: If the folder is missing or read-only, or a file exists.
    """
    options = call.options
    start = "-".join(["fmab", *(owner.name for owner in call.command.algorithms)])
    values = call.values | list_changed(options, _UNNAMED)
    default = study_options.choose_file_name(start, study.hash, values)
    base = default if options.out is None else re.sub(r"\.(png|nc|txt)$", "", options.out)
    if os.path.isdir(base):
        base = os.path.join(base, default)
    figure_path, data_path = (check_path("out", f"{base}.{ending}") for ending in ("png", "nc"))
    if not base.strip() or not os.access(figure_path.parent, os.W_OK):
        allowed = "a file name in an existing folder that can be written"
        refuse("out", base, allowed, "leave it out for the default")
    with rename_fields(path="out"):
        for path in [figure_path, figure_path.with_suffix(".txt")] * options.figure:
            refuse_taken(path, options.overwrite)
        if options.data:
            refuse_taken(data_path, options.overwrite)
    return figure_path, data_path
