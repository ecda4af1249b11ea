"""Compares regret at the horizon: difference, interval, per cent and p-value.

Two files, or two configurations of one sweep. Runs that share their seeds are
compared seed by seed; others by Welch's test. With no configuration named, up
to five are compared each with each; of more, one parameter at a time.

Examples:
  fmab compare ours.nc theirs.nc
  fmab compare runs/eps --where epsilon=0.1 --against epsilon=1
  fmab compare runs/eps runs/ring --where epsilon=0.1 --against graph=ring
  fmab compare eps.nc
  fmab compare runs/eps --where "links_max <= 400"
"""

from __future__ import annotations

import os
import re
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fmab_jax.cli.options import Call, option, visible
from fmab_jax.cli.tables import (
    LEVEL,
    fold_heading,
    line_width,
    open_results,
    plain_table,
    select_cells,
    show_table,
    warn_in_lines,
)
from fmab_jax.errors import Refusal

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table

    from fmab_jax.analysis.statements import Comparison

_NOTE = """\
Regret at T: means over the seeds. Difference: first minus second; per cent: of
the second. Each {share} interval holds by itself. Links, numbers, bits by T:
means, what 95 % of the runs do not exceed, and the most of a run.
{leak}."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The regret of one run beside another's."""

    results: tuple[str, ...] = option((), metavar="PATH", word=True)
    """One or two: sweeps' folders, or .nc files of fmab run, fmab export or fmab_jax.save."""
    where: tuple[str, ...] = option((), metavar="NAME=VALUE|CONDITION", default_text="all")
    """With --against, values of the first configuration; of one result without --against,
    conditions of the configurations to compare, as in fmab show."""
    against: tuple[str, ...] = option((), metavar="NAME=VALUE", default_text="all")
    """Values of the second one; what is not named here is as in --where."""
    level: float = option(0.95, kind=LEVEL)
    """Confidence level of the intervals."""


def execute(call: Call[Options]) -> None:
    """Compares, and prints a table and a sentence for each comparison."""
    import numpy as np

    from fmab_jax.analysis import comparisons
    from fmab_jax.analysis.overview import find_places
    from fmab_jax.analysis.words import list_facts

    options = call.options
    paths = [visible(path) for path in options.results]
    if len(paths) > 2:
        raise Refusal.line(f"fmab compare {' '.join(paths)}: must be given one or two; see --help")
    if len(paths) == 2 and len(set(map(os.path.realpath, options.results))) == 1:
        raise Refusal.line(f"{paths[1]}: must be another result than {paths[0]}; name each once")
    data = [open_results(path, "results") for path in options.results]
    if len(data) == 1 and not options.against:
        where_text = " ".join(map(visible, options.where))
        if options.where and not any(map(_is_condition, options.where)):
            raise Refusal.line(f"--where {where_text}: must be given with --against; add it")
        if data[0].seeds.size < 2:
            raise Refusal.line(f"{paths[0]}: must hold two configurations; name a second file")
        places = [*np.ndindex(data[0].seeds.shape)]
        if options.where:
            with warn_in_lines():
                places = find_places(data[0], options.where)
        if options.where and len(places) < 2:
            allowed = "true of two configurations with seeds"
            raise Refusal.line(f"--where {where_text}: must be {allowed}; loosen it")
        with warnings.catch_warnings(action="ignore"):
            pairs = comparisons.compare_all(data[0], level=options.level, where=options.where)
        title = ", ".join(list_facts(data[0], data[0].seeds.dims))
        _print(pairs, title, paths[0], (data[0], places))
        return
    if conditions := list(filter(_is_condition, options.where)):
        allowed = "NAME=VALUE with two files or --against"
        raise Refusal.line(f"--where {visible(conditions[0])}: must be {allowed}; drop it")
    pair = _select_pair(data, options)
    try:
        pairs = [comparisons.compare(*pair, level=options.level)]
    except Refusal as error:
        side = error.field.partition(".")[0]
        names = paths if len(paths) == 2 else ("--where", "--against")
        if side not in ("first", "second"):
            raise
        raise Refusal.line(f"{names[side == 'second']}: {error}") from None
    shared = [fact for fact in list_facts(pair[0]) if fact in list_facts(pair[1])]
    _print(pairs, ", ".join(shared), paths[0])


def _is_condition(text: str) -> bool:
    """Returns whether a text is no NAME=VALUE."""
    return not re.match(r"[\w-]+=(?!=)", text)


def _select_pair(data: Sequence[xr.Dataset], options: Options) -> list[xr.Dataset]:
    """Selects the two configurations to compare.

    Raises:
        Refusal: If a parameter is left open, or nothing differs.
    """
    against_names = {text.partition("=")[0] for text in options.against}
    first, second = data[0], data[-1]
    # The second file inherits only parameters that it has.
    free = {str(name) for name in second.seeds.dims} - against_names
    inherited = [text for text in options.where if text.partition("=")[0] in free]
    pair = [
        select_cells(first, options.where, "--where"),
        select_cells(second, [*options.against, *inherited], "--against"),
    ]
    for side, flag in zip(pair, ("--where", "--against"), strict=True):
        if open_names := [str(name) for name in side.seeds.dims if side.sizes[name] > 1]:
            open_text = ", ".join(f"{name} ({side.sizes[name]} values)" for name in open_names)
            example = " ".join(f"{name}={side[name].values.tolist()[0]}" for name in open_names)
            raise Refusal.line(
                f"{flag}: must leave no parameter open, but {open_text}; add {flag} {example}"
            )
    if len(data) == 1 and all(pair[0][name].equals(pair[1][name]) for name in first.seeds.dims):
        texts = " ".join(map(visible, options.against))
        raise Refusal.line(f"--against {texts}: must name another run than --where; change a value")
    return pair


def _print(
    pairs: Sequence[Comparison],
    title: str,
    path: str,
    alone: tuple[xr.Dataset, Sequence[tuple[int, ...]]] | None = None,
) -> None:
    from fmab_jax.analysis import costs, questions
    from fmab_jax.analysis.statements import count_verdicts

    if not pairs:
        raise Refusal.line(
            f"{path}: must hold two runs of one horizon and problem with seeds; resume the sweep, "
            "or sweep a parameter of the algorithm as well"
        )
    share = f"{100 * pairs[0].level:.6g} %"
    adjusted = len(pairs) > 1
    show_table(_build_table(pairs, title, share), whole=False)
    if any(side.spent for pair in pairs for side in pair.participants):
        show_table(_build_spending(pairs), whole=False)
    print(_NOTE.format(share=share, leak=costs.LEAK_NOTE))
    if adjusted:
        print(f"p-values of all {len(pairs)} together are adjusted by Holm's method.")
    if alone is not None and len(alone[1]) > questions.ALL_PAIRS:
        base = questions.write_label(alone[0], questions.list_contrasts(*alone)[0][1])
        _print_line(f"One parameter varies at a time; the others stay at the reference, {base}.")
    for method in dict.fromkeys(f"{pair.method_note}." for pair in pairs):
        _print_line(method)
    print(f"\n{count_verdicts(pairs)}." if adjusted else "")
    for pair in pairs:
        _print_line(f"{pair.sentence}.")


def _build_table(pairs: Sequence[Comparison], title: str, share: str) -> Table:
    """Builds a table with two lines for each comparison; only names are folded."""
    from fmab_jax.analysis import costs

    holm = "\nHolm" * (len(pairs) > 1)
    sides = [side for pair in pairs for side in pair.participants]
    shared = costs.find_shared_observation(sides)
    # A heading, and the cells of the first run and of the second.
    columns = [
        ("first\nsecond", "first", "second"),
        (fold_heading(costs.write_leak_heading(sides)), "", ""),
    ]
    columns += [("regret", "regret, first", "regret, second")]
    columns += [(f"difference\ninterval {share}", "difference", "interval")]
    columns += [(f"per cent\ninterval {share}", "per cent", "interval of it")]
    columns += [(f"p-value{holm}", "p-value", "p-value, Holm" if holm else "")]
    if any(pair.at for pair in pairs):
        columns.insert(0, ("at", "at", ""))
    table = plain_table(title)
    for heading, first, _ in columns:
        names = first in ("at", "first", "")
        table.add_column(heading, justify="right", overflow="fold", no_wrap=not names)
    for pair in pairs:
        cells = pair.cells(shared) | {"": ""}
        leaks = [costs.write_leak_cell(side, shared) for side in pair.participants]
        for line in (0, 1):
            row = [leaks[line] if not any(names) else cells[names[line]] for _, *names in columns]
            table.add_row(*row, end_section=line == 1)
    return table


def _build_spending(pairs: Sequence[Comparison]) -> Table:
    """Builds the table of what the runs of each compared configuration spend."""
    from fmab_jax.analysis import budgets

    names, spent = list[str](), dict[frozenset[str], Mapping[str, float]]()
    for pair in pairs:
        for side in pair.participants:
            name = ", ".join(filter(None, [side.label, pair.at]))
            # Pairs share other values, and state them in another order.
            if (key := frozenset(name.split(", "))) not in spent:
                names.append(name)
                spent[key] = side.spent
    heads, rows = budgets.write_cells([*spent.values()])
    table = plain_table()
    table.add_column("run", justify="right", overflow="fold")
    for heading in heads:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, cells in zip(names, rows, strict=True):
        table.add_row(name, *cells)
    return table


def _print_line(text: str) -> None:
    lines = textwrap.wrap(text, line_width(), subsequent_indent="  ", break_on_hyphens=False)
    print("\n".join(lines))
