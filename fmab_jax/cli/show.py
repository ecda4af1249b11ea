"""Prints a row per configuration, with intervals.

Regret at T, rounds, links, cost, seeds, and how many of them lost the best arm
or play a worse one; of an unfinished sweep, what is there.

Examples:
  fmab show runs/eps
  fmab show eps.nc
  fmab show runs/eps --sort regret --select participation=1
  fmab show runs/eps --where "links_max <= 500 and leak_messages <= 2"
  fmab show runs/eps --format latex --columns epsilon regret links_max
"""

from __future__ import annotations

from dataclasses import dataclass

from fmab_jax.cli.options import Call, option
from fmab_jax.cli.printing import (
    FORMATS,
    Filtered,
    Reading,
    note_stored,
    print_results,
    read_results,
    select_cells,
)
from fmab_jax.parameters import Choice


@dataclass(frozen=True, kw_only=True)
class ShowOptions(Reading, Filtered):
    """A table of what was found, with intervals."""

    sort: str | None = option(None, metavar="COLUMN", default_text="order of the grid")
    """A swept parameter, or a column as in --where."""
    descending: bool = option(False)
    """Largest first."""
    format: str = option("text", kind=Choice(options=FORMATS))
    """How to write the table. latex needs the package booktabs, and has its legend in a comment;
    csv has all digits and columns, unless some are named."""


def execute(call: Call[ShowOptions]) -> None:
    """Prints the table."""
    options = call.options
    data = read_results(options.folder)
    print_results(
        select_cells(data, options.select),
        options,
        options,
        form=options.format,
        sort=options.sort,
        descending=options.descending,
    )
    if options.format == "text":
        note_stored(data, options.folder)
