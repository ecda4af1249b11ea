"""``fmab show``: a table of results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from fmab_jax.cli.options import Command, Off, shown
from fmab_jax.cli.tables import Reading, opened, print_results, selected

if TYPE_CHECKING:
    from fmab_jax.cli.main import Call

HELP = """\
Prints a row per configuration: regret at T with its interval, rounds, links,
cost, seeds, and how many of them lost the best arm or play a worse one; of an
unfinished sweep, what is there.

Examples:
  fmab show runs/eps
  fmab show eps.nc
  fmab show runs/eps --sort regret --select participation=1"""


@dataclass(frozen=True, kw_only=True)
class Options(Reading):
    """A table of what was found, with intervals."""

    sort: Annotated[str | None, arg(metavar="COLUMN"), shown("order of the grid")] = None
    """A swept parameter, or regret, rounds, cost, seeds, lost, worse."""
    descending: Annotated[bool, Off] = False
    """Largest first."""


def command(words: list[str]) -> Command:
    """Returns the command that words state."""
    return Command("fmab show", Options, HELP, words)


def execute(call: Call) -> None:
    """Prints the table."""
    options = call.options
    print_results(
        selected(opened(options), options.select),
        options,
        level=options.level,
        sort=options.sort,
        descending=options.descending,
    )
