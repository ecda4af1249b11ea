"""Makes a problem of a table of observed ratings, and says what was kept of it.

Agents are the values of a column, or groups of them; arms are the values of
another column, such as items or genres. Without --out nothing is written.
What is written is for fmab run and fmab sweep: --means problem.npz.

Examples:
  fmab problem ratings.csv --agent userId --arm movieId --groups 5 --fill arm
  fmab problem ratings.csv --agent userId --arm genres --items movies.csv
  fmab problem mine.parquet --agent clinic --arm drug --value score --out p.npz
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

from fmab_jax.cli.options import Call, as_word, called, option
from fmab_jax.parameters import Real, Whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """A problem of observed ratings."""

    words: ClassVar[dict[str, str]] = {"file": "FILE"}
    file: str = option(metavar="FILE")
    """One rating a row: .csv, .tsv (also .gz), .parquet."""
    agent: str | None = option(None, metavar="COLUMN", shown="must be given")
    """Column of the agents, of the ratings or of --users."""
    arm: str | None = option(None, metavar="COLUMN", shown="must be given")
    """Column of the arms, of the ratings or of --items."""
    value: str = option("rating", metavar="COLUMN")
    """Column of the ratings."""
    items: str | None = option(None, metavar="FILE", shown="none")
    """Table about what is rated; it shares one column with the ratings."""
    users: str | None = option(None, metavar="FILE", shown="none")
    """Table about who rates; it shares one column with the ratings."""
    split: str = option("|", metavar="TEXT")
    """What separates several arms of one rating; none for nothing."""
    groups: Any = option(None, kind=Whole(), shown="an agent for each value")
    """Cluster the values of --agent into so many groups."""
    groups_seed: Any = option(0, kind=Whole())
    """Of the clustering."""
    levels: tuple[Any, ...] = option((), kind=Real(), metavar="X", shown="all that occur")
    """The possible ratings, increasing."""
    most_arms: Any = option(None, kind=Whole(), shown="all")
    """Keep so many arms, the most rated."""
    least_per_agent: Any = option(1, kind=Whole())
    """Leave out values of --agent with fewer ratings."""
    least_per_arm: Any = option(1, kind=Whole())
    """Leave out arms with fewer ratings."""
    least_per_cell: Any = option(1, kind=Whole())
    """With fewer ratings, an agent and an arm are without data."""
    smoothing: Any = option(0, kind=Real())
    """Ratings to add to every agent and arm."""
    toward: str = option("arm", metavar="{arm,uniform}")
    """What added ratings are like: the arm's by all agents, or uniform over the levels."""
    fill: str | None = option(None, metavar="{arm,none}", shown="none, which refuses")
    """What agents and arms without data become: arm for the arm's ratings by all agents."""
    out: str | None = option(None, metavar="FILE.npz", shown="nothing")
    """Write the problem, with the names of agents and arms."""
    overwrite: bool = option(False)
    """Replace an older file."""


def execute(call: Call) -> None:
    """Prints the summary; writes the problem where that is asked for."""
    from fmab_jax.files import checked_path, refuse_taken
    from fmab_jax.ratings import from_table

    options = call.options
    with called(path="out"):
        if options.out is not None:
            # Before a large file is read.
            refuse_taken(checked_path("path", options.out), options.overwrite)
    own = ("words", "file", "levels", "out", "overwrite")
    given: dict[str, Any] = {
        each.name: _none(getattr(options, each.name))
        for each in dataclasses.fields(options)
        if each.name not in own
    }
    with called(path="file"):
        found = from_table(options.file, levels=list(options.levels) or None, **given)
    if options.out is not None:
        with called(path="out"):
            call.written.append(found.save(options.out, options.overwrite))
    print(found)
    if options.out is not None:
        # Of one row the command asks how many agents share it.
        shared = " --agents 50" * (len(found.agent_labels) == 1)
        command = f"fmab run cdp --means {as_word(options.out)}{shared}"
        print(f"wrote {options.out}; run it with {command}")


def _none(value: Any) -> Any:
    return None if isinstance(value, str) and value.lower() == "none" else value
