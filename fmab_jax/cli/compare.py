"""Compares regret at the horizon: difference, interval, per cent and p-value.

Two files, or two configurations of one sweep. Runs that share their seeds are
compared seed by seed; others by Welch's test. With no configuration named, up
to five are compared each with each; of more, one parameter at a time.

Examples:
  fmab compare ours.nc theirs.nc
  fmab compare runs/eps --where epsilon=0.1 --against epsilon=1
  fmab compare runs/eps runs/ring --where epsilon=0.1 --against graph=ring
  fmab compare eps.nc
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fmab_jax.cli.options import Call, option, visible
from fmab_jax.cli.tables import line_width, opened_at, plain_table, selected, show_table
from fmab_jax.errors import Refusal
from fmab_jax.files import same_file
from fmab_jax.parameters import Real

if TYPE_CHECKING:
    import xarray as xr

    from fmab_jax.analysis.statements import Comparison

_NOTE = """\
Regret at T: means over the seeds. Difference: first minus second; per cent: of
the second. Each {share} interval holds by itself. Links: mean at T.
{leak}."""

# Cells of the first run, and below those of the second.
_CELLS = (
    ("regret, first", "difference", "per cent", "p-value"),
    ("regret, second", "interval", "interval of it", "p-value, Holm"),
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The regret of one run beside another's."""

    words: ClassVar[dict[str, str]] = {"results": "PATH..."}
    results: tuple[str, ...] = option((), metavar="PATH...", shown="must be given")
    """One or two: sweeps' folders, or .nc files of fmab run, fmab export or fmab_jax.save."""
    where: tuple[str, ...] = option((), metavar="NAME=VALUE", shown="all")
    """Values of the first configuration."""
    against: tuple[str, ...] = option((), metavar="NAME=VALUE", shown="all")
    """Values of the second one; what is not named here is as in --where."""
    level: Any = option(0.95, kind=Real())
    """Confidence level of the intervals."""
    plugin: str | None = option(None, metavar="FILE|MODULE", shown="none")
    """Load outputs of one's own, which a folder's results have; a .nc file holds them itself."""


def execute(call: Call) -> None:
    """Compares, and prints a table and a sentence for each comparison."""
    from fmab_jax.analysis import comparisons
    from fmab_jax.analysis.words import facts

    options = call.options
    if len(options.results) > 2:
        told = " ".join(map(visible, options.results))
        raise Refusal.line(f"fmab compare {told}: must be given one or two; see --help")
    one, *others = options.results
    if others and same_file(one, others[0]):
        told = f"it is {visible(one)}: " * (others[0] != one)
        other = visible(others[0])
        raise Refusal.line(f"{other}: must be another result; {told}name each once")
    data = [opened_at(options, path, "results") for path in options.results]
    for each, path in zip(data, options.results, strict=True):
        if "seeds" not in each:
            raise Refusal.line(f"{visible(path)}: must be a result with seeds; see --help")
    if len(data) == 1 and options.where and not options.against:
        given = " ".join(map(visible, options.where))
        raise Refusal.line(f"--where {given}: must be given with --against; add it")
    if len(data) == 1 and not options.against:
        _refuse_alone(data[0], options)
        found = comparisons.compare_all(data[0], level=options.level)
        _print(found, ", ".join(facts(data[0], data[0].seeds.dims)), options, data[0])
        return
    pair = _pair(data, options)
    try:
        found = [comparisons.compare(*pair, level=options.level)]
    except Refusal as error:
        side, _, part = error.field.partition(".")
        if side not in ("first", "second") or not part:
            raise error.renamed({"first": "where", "second": "against"}.get(side, side)) from None
        names = map(visible, options.results) if others else ("--where", "--against")
        whose = dict(zip(("first", "second"), names, strict=True))[side]
        raise Refusal.line(f"{whose}: {error.renamed(part).typed(part)}") from None
    shared = [fact for fact in facts(pair[0]) if fact in facts(pair[1])]
    _print(found, ", ".join(shared), options)


def _pair(data: Sequence[xr.Dataset], options: Any) -> list[xr.Dataset]:
    """Returns the two configurations that are asked for.

    Raises:
        Refusal: If a parameter is left open, or nothing differs.
    """
    named = {text.partition("=")[0] for text in options.against}
    inherited = [text for text in options.where if text.partition("=")[0] not in named]
    first, second = data[0], data[-1]
    # Of another file, only what it has can be inherited.
    dims = [str(name) for name in second.seeds.dims]
    inherited = [text for text in inherited if text.partition("=")[0] in dims or len(data) == 1]
    where = list(options.where)
    if len(data) == 1:
        # What only the second names is open in the first, unless it has one value.
        asked = {text.partition("=")[0] for text in where}
        missing = [n for n in named - asked if n in dims and second.sizes[n] == 2]
        where += [f"{n}={_other(second, n, options.against)}" for n in sorted(missing)]
    pair = [
        selected(first, where, "--where"),
        selected(second, [*options.against, *inherited], "--against"),
    ]
    for each, flag in zip(pair, ("--where", "--against"), strict=True):
        left = [str(name) for name in each.seeds.dims if each.sizes[name] > 1]
        if left:
            many = ", ".join(f"{name} ({each.sizes[name]} values)" for name in left)
            example = " ".join(f"{n}={_one_of(each, pair[1], n)}" for n in left)
            added = flag if len(data) == 2 else "--where"
            typed = options.against if added == "--against" else options.where
            how = f"write {added} {' '.join(map(visible, typed))}" if typed else f"add {added}"
            raise Refusal.line(f"{flag}: must leave no parameter open, but {many}; {how} {example}")
    if len(data) == 1 and all(pair[0][name].equals(pair[1][name]) for name in dims):
        told = " ".join(map(visible, options.against))
        raise Refusal.line(f"--against {told}: must name another run than --where; change a value")
    return pair


def _one_of(open_: xr.Dataset, second: xr.Dataset, name: str) -> str:
    """Returns a value that a parameter has, and that the second does not have where it is fixed."""
    from fmab_jax.analysis.words import label_text

    values = open_[name].values.tolist()
    fixed = second[name].values.tolist() if second.sizes.get(name) == 1 else []
    return label_text(next((each for each in values if each not in fixed), values[0]))


def _other(data: xr.Dataset, name: str, against: Sequence[str]) -> str:
    """Returns the value of a parameter of two values that --against does not name."""
    from fmab_jax.analysis.words import label_text

    chosen = selected(data, [text for text in against if text.partition("=")[0] == name])
    taken = chosen[name].values.tolist()
    left = [label for label in data[name].values.tolist() if label not in taken]
    return label_text((left or taken)[0])


def _refuse_alone(data: xr.Dataset, options: Any) -> None:
    if data.seeds.size < 2:
        told = visible(options.results[0])
        raise Refusal.line(f"{told}: must hold two configurations; name a second file")


def _print(
    found: Sequence[Comparison], title: str, options: Any, alone: xr.Dataset | None = None
) -> None:
    from fmab_jax.analysis import comparisons, costs
    from fmab_jax.analysis.statements import tally

    if not found:
        told = " ".join(map(visible, options.results))
        if alone is not None and not comparisons.contrasts(alone):
            names = ", ".join(str(n) for n in alone.seeds.dims if alone.sizes[n] > 1)
            allowed = "must hold two runs of one horizon and problem"
            remedy = "sweep a parameter of the algorithm as well"
            raise Refusal.line(f"{told}: {allowed}; {names} changes the question; {remedy}")
        raise Refusal.line(f"{told}: must hold seeds that can be compared; resume the sweep")
    share = f"{100 * found[0].level:.6g} %"
    several = len(found) > 1
    show_table(_table(found, title, share), whole=False)
    print(_NOTE.format(share=share, leak=costs.LEAK_NOTE))
    if several:
        print(f"p-values of all {len(found)} together are adjusted by Holm's method.")
    if alone is not None and alone.seeds.size > comparisons.ALL_PAIRS:
        base = comparisons.label_of(alone, comparisons.contrasts(alone)[0][1])
        _print_line(f"One parameter varies at a time; the others stay at the reference, {base}.")
    for how in dict.fromkeys(f"{each.how}." for each in found):
        _print_line(how)
    print(f"\n{tally(found)}." if several else "")
    for each in found:
        _print_line(f"{each.sentence}.")


def _table(found: Sequence[Comparison], title: str, share: str) -> Any:
    """Returns a table with two lines for each comparison, of which only names are folded."""
    from fmab_jax.analysis import costs
    from fmab_jax.analysis.overview import folded

    several = len(found) > 1
    table, at = plain_table(title), any(each.at for each in found)
    view = costs.shared_view(side for each in found for side in each.participants)
    leak = folded(costs.leak_heading(view))
    for heading in ("at", "first\nsecond", leak, "regret")[not at :]:
        table.add_column(heading, justify="right", overflow="fold", no_wrap=heading == "regret")
    for name in ("difference", "per cent"):
        table.add_column(f"{name}\ninterval {share}", justify="right", no_wrap=True)
    table.add_column("p-value" + "\nHolm" * several, justify="right", no_wrap=True)
    for each in found:
        cells = each.cells()
        leaks = [costs.with_view(side.leak, side, view) for side in each.participants]
        first = each.at, each.first, leaks[0], *(cells[name] for name in _CELLS[0])
        second = "", each.second, leaks[1], *(cells[name] for name in _CELLS[1])
        table.add_row(*first[not at :])
        table.add_row(*second[not at : len(second) - (not several)], end_section=True)
    return table


def _print_line(text: str) -> None:
    lines = textwrap.wrap(text, line_width(), subsequent_indent="  ", break_on_hyphens=False)
    print("\n".join(lines))
