"""Compares regret at the horizon: difference, interval, per cent and p-value.

Two files, or two configurations of one sweep. Runs that share their seeds are
compared seed by seed; others by Welch's test. Without --against, up to five
configurations are compared each with each; of more, one parameter at a time.

Examples:
  fmab compare ours.nc theirs.nc
  fmab compare runs/eps --where "epsilon == 0.1" --against "epsilon == 1"
  fmab compare runs/eps runs/ring --where "epsilon == 0.1" --against "graph == 'ring'"
  fmab compare eps.nc
  fmab compare runs/eps --where "links_max <= 400"
  fmab compare runs/apart --metric largest_own_regret
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fmab_jax.cli.options import Call, option, rename_fields, visible
from fmab_jax.cli.printing import AGENT_METRICS, LEVEL, line_width, print_texts, read_results
from fmab_jax.errors import Refusal
from fmab_jax.parameters import Choice

if TYPE_CHECKING:
    import xarray as xr

    from fmab_jax.analysis.statements import Comparison


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """The regret of one run beside another's."""

    results: tuple[str, ...] = option((), metavar="PATH", word=True)
    """One or two: sweeps' folders, or .nc files of fmab run, fmab export or fmab_jax.save."""
    where: tuple[str, ...] = option((), metavar="CONDITION", default_text="all")
    """Conditions of the configurations to compare, as in fmab show; with --against, of the first
    one."""
    against: tuple[str, ...] = option((), metavar="CONDITION", default_text="all")
    """Conditions of the second one, which may be in a second result."""
    metric: str = option("regret", kind=Choice(options=("regret", *AGENT_METRICS)))
    """What is compared; regret against own best arms, and the largest of an agent, where agents
    differ."""
    level: float = option(0.95, kind=LEVEL)
    """Confidence level of the intervals."""


def execute(call: Call[CompareOptions]) -> None:
    """Compares, and prints a table and a sentence for each comparison."""
    from fmab_jax.analysis import agents, comparisons
    from fmab_jax.analysis.words import list_facts

    options = call.options
    if len(options.results) > 2:
        paths = " ".join(map(visible, options.results))
        raise Refusal.line(f"fmab compare {paths}: must be given one or two; see --help")
    results = [read_results(path, "results") for path in options.results]
    if options.metric != "regret":
        with rename_fields(kind="metric"):
            results = [agents.select_regret(data, options.metric) for data in results]
    if len(results) == 1 and not options.against:
        pairs = comparisons.compare_all(results[0], level=options.level, where=options.where)
        facts = list_facts(results[0], results[0].seeds.dims)
    else:
        first = _select_one(results[0], options.results[0], options.where, "where")
        second = _select_one(results[-1], options.results[-1], options.against, "against")
        pairs = [comparisons.compare(first, second, level=options.level)]
        facts = [fact for fact in list_facts(first) if fact in list_facts(second)]
    if not pairs:
        raise Refusal.line(
            f"{visible(options.results[0])}: must hold two runs of one horizon and problem with "
            "seeds; loosen --where, resume the sweep, or name a second result"
        )
    _print(pairs, ", ".join(facts), options.metric)


def _select_one(data: xr.Dataset, path: str, conditions: Sequence[str], field: str) -> xr.Dataset:
    """Returns the single configuration of the result at a path that fulfils conditions."""
    from fmab_jax.analysis.conditions import find_places

    with rename_fields(where=field):
        places = find_places(data, conditions)
    if len(places) != 1:
        text = " ".join(map(visible, conditions))
        wanted = f"must choose one configuration with seeds of {visible(path)}, not {len(places)}"
        if not text:
            wanted = f"must be given, since {visible(path)} has {len(places)} configurations"
        remedy = f"tell them apart by {_list_values(data)}" if data.seeds.dims else "loosen it"
        raise Refusal.line(f"--{field}{' ' * bool(text)}{text}: {wanted}; {remedy}")
    return data.isel(dict(zip(data.seeds.dims, places[0], strict=True)))


def _list_values(data: xr.Dataset) -> str:
    """Writes the parameters by which configurations are told apart, with their values."""
    from fmab_jax.analysis.words import write_label

    texts = [
        f"{name} ({', '.join(map(write_label, data[name].values.tolist()))})"
        for name in data.seeds.dims
    ]
    return " and ".join(texts)[:200]


def _print(pairs: Sequence[Comparison], title: str, metric: str) -> None:
    import pandas as pd

    from fmab_jax.analysis import costs

    runs = [run for pair in pairs for run in pair.participants]
    shared = costs.find_shared_observation(runs)
    frame = pd.DataFrame([pair.cells(shared) for pair in pairs])
    frame = frame.rename(columns={"leaks ε": costs.write_leak_heading(runs)})
    print_texts(frame.loc[:, (frame != "").any()], title)
    lines = [
        f"{metric.replace('_', ' ').capitalize()} at T: means over the seeds. Difference: first "
        f"minus second; per cent: of the second. Each {100 * pairs[0].level:.6g} % interval holds "
        f"by itself. {costs.LEAK_NOTE}."
    ]
    lines += dict.fromkeys(f"{pair.method_note}." for pair in pairs)
    if len(pairs) > 1:
        lines += [f"p-values of all {len(pairs)} together are adjusted by Holm's method."]
    for line in [*lines, "", *(f"{pair.sentence}." for pair in pairs)]:
        print(textwrap.fill(line, line_width(), subsequent_indent="  ", break_on_hyphens=False))
