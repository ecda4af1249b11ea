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

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fmab_jax.cli.options import Call, option, visible
from fmab_jax.cli.tables import opened_at, plain_table, selected, show_table
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

_COLUMNS = (
    *("first", "second", "leaks ε", "regret, first", "regret, second", "difference", "interval"),
    *("per cent", "interval of it", "p-value", "p-value, Holm"),
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
    from fmab_jax.analysis.overview import folded
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
    wanted = {"at": "at"} if any(each.at for each in found) else {}
    wanted |= {name: re.sub(",? ", "\n", name) for name in _COLUMNS}
    wanted["interval"] = wanted["interval of it"] = f"interval\n{share}"
    view = costs.shared_view(each for pair in found for each in pair.participants)
    wanted["leaks ε"] = folded(costs.leak_heading(view, "leaks ε"))
    if not several:
        del wanted["p-value, Holm"]
    table = plain_table(title)
    for heading in wanted.values():
        table.add_column(heading, justify="right", overflow="fold")
    for each in found:
        cells = each.cells(view)
        table.add_row(*(cells[name].text for name in wanted))
    show_table(table)
    print(_NOTE.format(share=share, leak=costs.LEAK_NOTE))
    if several:
        print(f"p-values of all {len(found)} together are adjusted by Holm's method.")
    if alone is not None and alone.seeds.size > comparisons.ALL_PAIRS:
        base = comparisons.label_of(alone, comparisons.contrasts(alone)[0][1])
        print(f"One parameter varies at a time; the others stay at the reference, {base}.")
    print("\n".join(dict.fromkeys(f"{each.how}." for each in found)))
    print(f"\n{tally(found)}." if several else "")
    for each in found:
        print(f"{each.sentence}.")
