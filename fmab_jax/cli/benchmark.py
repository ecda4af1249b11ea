"""Runs an algorithm on the suites, and writes one card: where it stands.

The suites have a version and a digest. An algorithm is ranked among all that are
shipped, at the same trust: ε is set so that each view leaks the same. The card
says rank, regret, links and bits with intervals, time, contract, ledger and
audit (docs/benchmark.md). A file holds one algorithm, or --algorithm says which.

Examples:
  fmab benchmark mine.py
  fmab benchmark mine.py --suite paper hard --quick --out first
  fmab benchmark kl_se --growth 3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fmab_jax.cli import stated
from fmab_jax.cli.options import Call, Command, chosen, flag_of, option, visible
from fmab_jax.cli.tables import plain_table, show_table
from fmab_jax.errors import Refusal
from fmab_jax.files import error_stream
from fmab_jax.parameters import UNSET, Whole, parameters_of


@dataclass(frozen=True, kw_only=True)
class Options(stated.Plugged):
    """A card that says where an algorithm stands."""

    algorithm: str | None = option(None, metavar="NAME", shown="the only one")
    """Which algorithm of a file that holds several."""
    suite: tuple[str, ...] = option((), metavar="NAME", shown="all")
    """Only these suites."""
    seeds: Any = option(None, kind=Whole(), shown="the suite's")
    """How many trials of each suite."""
    quick: bool = option(False)
    """Take 10 seeds of a suite at most, for a first look; the card says so."""
    out: str = option("card", metavar="BASE")
    """Write BASE.html and BASE.md."""
    overwrite: bool = option(False)
    """Replace older files."""


_EXAMPLES = ("", "--suite paper hard", "--quick --out first")


def command(words: list[str]) -> Command:
    """Returns the command that words state; a file's algorithms become known by name."""
    file = words[0] if words and words[0].endswith(".py") else ""
    name = _of_file(file, words[1:]) if file else ""
    return stated.command_of(
        "fmab benchmark",
        [name, *words[1:]] if file else words,
        Options,
        several=False,
        drawn=False,
        examples=_EXAMPLES,
        called=file,
    )


def _of_file(file: str, words: Sequence[str]) -> str:
    """Returns the name of the algorithm of a file that is meant."""
    from fmab_jax.algorithms.base import load_plugin

    try:
        names = [owner.name for owner in load_plugin(file)]
    except Refusal as error:
        own = error.field not in ("plugin", "")
        line = f"{visible(file)}: {error}" if own else error.typed("")
        raise Refusal.line(line) from None
    if not names:
        raise Refusal.line(f"{visible(file)}: must hold an algorithm; it holds a reward law only")
    asked = _asked(words)
    if asked is not None:
        return chosen(asked, names, f"fmab benchmark {file}")
    if len(names) > 1:
        listed = " or ".join(names)
        raise Refusal.line(f"{visible(file)}: must hold one algorithm; add --algorithm {listed}")
    return names[0]


def _asked(words: Sequence[str]) -> str | None:
    """Returns the value of --algorithm, which decides about the other options."""
    for i, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option == "--algorithm":
            return value if equals else words[i + 1] if i + 1 < len(words) else ""
    return None


def execute(call: Call) -> None:
    """Runs the suites and writes the card; every bad value is refused before the first trial."""
    from fmab_jax.benchmark import card, matching, page, standings, suites

    options, owner = call.options, call.command.subject
    given = {name: getattr(options, name) for name in parameters_of(owner)}
    given = {name: value for name, value in given.items() if value is not UNSET}
    for name in matching.PARAMETERS:
        if given.get(name) is not None:
            remedy = "leave it out, or write none for no noise"
            line = f"{flag_of(name)} {given[name]}: must be left to the benchmark"
            raise Refusal.line(f"{line}, which sets it so that leaks match; {remedy}")
    if options.algorithm not in (None, owner.name):
        line = f"--algorithm {visible(options.algorithm)}: must be {owner.name}; leave it out"
        raise Refusal.line(line)

    def tell(line: str) -> None:
        error_stream().write(f"{line}\n")

    paths = page.checked_paths(options.out, options.overwrite)
    every = suites.shipped()
    contestant = card.contestant_of(owner, given)
    found = card.made(
        contestant,
        every,
        standings.shipped(every.digest),
        only=options.suite,
        seeds=options.seeds,
        quick=options.quick,
        tell=tell,
    )
    _print(found.ranks)
    page.write(found, *paths)
    call.written.extend(paths)
    for path in paths:
        print("wrote", path)


def _print(ranks: Any) -> None:
    """Prints the table of ranks."""
    table = plain_table()
    for heading in ranks.heads:
        table.add_column(heading, overflow="fold")
    for row in ranks.rows:
        table.add_row(*row)
    show_table(table, whole=False)
    print()
