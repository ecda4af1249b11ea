"""Writes captions: seeds, meters, leaks and failures, besides the facts of `analysis.words`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import SupportsFloat, SupportsInt

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from fmab_jax.analysis.costs import find_shared_observation, read_exposure, write_leak_cell
from fmab_jax.analysis.words import (
    format_value,
    group_labels,
    write_count,
    write_name,
    write_quantity,
)

Sentence = str | tuple[str, ...]
"""A sentence without its full stop; in a tuple, shorter forms follow the full one."""

# Leaks that a caption lists one by one.
_MOST_LISTED = 8
# Configurations with failures that a short form names.
_MOST_NAMED = 3
# Events of single seeds that a mean hides, and the caption's words for them.
EVENTS = {
    "best_arm_lost": "lost the best arm",
    "worse_arm_played": "play a worse arm at T",
}


def list_swept(finals: xr.Dataset) -> list[str]:
    """Returns the swept parameters of a table of final values."""
    return [str(name) for name in finals.sizes if name != "meter"]


def read_arrays(finals: xr.Dataset, names: Iterable[str], dims: Sequence[str]) -> list[np.ndarray]:
    """Returns variables of a table over some parameters; others have their first value."""
    first_values = {name: 0 for name in list_swept(finals) if name not in dims}
    everywhere = xr.DataArray(np.zeros([finals.sizes[name] for name in dims]), dims=list(dims))
    selected = (finals[name].isel(first_values, missing_dims="ignore") for name in names)
    return [xr.broadcast(variable, everywhere)[0].transpose(*dims).values for variable in selected]


def write_axis_label(coordinate: xr.DataArray) -> str:
    """Writes a swept parameter's name on an axis."""
    return str(coordinate.attrs.get("long_name") or write_name(coordinate))


def describe_seeds(run: xr.Dataset) -> str:
    """Writes the number of seeds of a run, and their range if it does not start at 0."""
    size = run.sizes["seed"] if "seed" in run.sizes else int(run.seeds)
    seeds = run.seed.values if "seed" in run.coords else np.arange(size)
    number = write_quantity("", len(seeds), "seed")
    low, high = (int(end) for end in (seeds.min(), seeds.max()))
    return number if (low, high) == (0, len(seeds) - 1) else f"{number} from {low} to {high}"


def describe_seeds_per_cell(finals: xr.Dataset) -> str:
    """Writes how many seeds the configurations of a table have: "200 to 3000 seeds"."""
    has_several = any(finals.sizes[name] > 1 for name in list_swept(finals))
    return write_seed_range(finals.seeds.values) + " per configuration" * has_several


def write_seed_range(seeds: ArrayLike) -> str:
    """Writes numbers of seeds: "200 to 3000 seeds"."""
    few, most = int(np.min(seeds)), int(np.max(seeds))
    return f"{write_count(few)} to " * (few < most) + write_quantity("", most, "seed")


def describe_setting(facts: Sequence[str], seeds: str) -> Sentence:
    """Returns facts as a sentence, whose shortest form says how many seeds and slots there are."""
    size = [seeds, *(fact for fact in facts if re.search("^T = .* slots?$", fact))]
    return tuple(", ".join(dict.fromkeys(words)) for words in (facts, [*facts[:1], *size], size))


def read_band_kind(data: xr.Dataset) -> str:
    """Returns the kind of band of a table, or of a band, without its method in brackets."""
    return str(data.attrs["description"]).partition(" (")[0]


def describe_points(finals: xr.Dataset) -> Sentence:
    """Describes the points and bars of final values."""
    whole = f"Points: means over the seeds; bars: {finals.attrs['description']}"
    return whole, f"Points: means; bars: {read_band_kind(finals)}"


def describe_failures(sentences: Sequence[str], cells: Mapping[str, xr.Dataset]) -> Sentence:
    """Joins sentences on failures; the short forms say whose seeds failed, or whose most.

    Args:
        sentences: The whole sentences.
        cells: Counts and seeds of each configuration, by its label.
    """
    texts, totals = list[str](), list[str]()
    for event, words in EVENTS.items():
        counts = {k: (int(x[event]), int(x.seeds)) for k, x in cells.items() if event in x}
        bad = {label: pair for label, pair in counts.items() if pair[0]}
        if not bad:
            continue
        # Of a single configuration there is nothing to tell apart.
        owners = {label: f" of {label}" * (len(cells) > 1) for label in bad}
        shares = {
            label: f"{_write_share(*pair)} seeds{owners[label]}" for label, pair in bad.items()
        }
        total = _write_share(*(sum(column) for column in zip(*counts.values(), strict=True)))
        worst = max(bad, key=lambda label: bad[label][0] / bad[label][1])
        few = len(bad) <= _MOST_NAMED
        texts.append(
            f"{', '.join(shares.values())} {words}"
            if few
            else f"{total} seeds {words}, most often {shares[worst]}"
        )
        where = f", in {len(bad)} of {len(counts)} configurations" * (len(cells) > 1)
        totals.append(f"{total} seeds {words}{where}")
    return (". ".join(sentences), *[". ".join(form) for form in (texts, totals) if form])


def label_cells(finals: xr.Dataset) -> dict[str, xr.Dataset]:
    """Returns the configurations of a table by the values of what varies."""
    varied = [name for name in list_swept(finals) if finals.sizes[name] > 1]
    return {
        ", ".join(format_value(finals[n], cell[n].item()) for n in varied): cell
        for cell in list_cells(finals, varied)
    }


def name_meters(data: xr.Dataset) -> str:
    """Names the meters on which peer links cost something, if there are any."""
    links = data.get("links", data.get("links_mean"))
    if links is None or not {"side", "priced", "counts"} <= set(data.coords):
        return ""
    over = [dim for dim in links.dims if dim != "meter"]
    is_counted = ((data.side == "peer") & data.priced & (links.max(over) > 0)).values
    pairs = zip(data.meter.values[is_counted], data.counts.values[is_counted], strict=True)
    return " + ".join(f"meter {name}: {noun}" for name, noun in pairs)


def list_cells(data: xr.Dataset, dims: Sequence[str]) -> list[xr.Dataset]:
    """Returns the configurations of a result or of a table, the last parameter varying first."""
    # A parameter of one value may still be a dimension.
    single = {*data.dims} - {*dims, "seed", "time", "meter"}
    data = data.squeeze([name for name in single if data.sizes[name] == 1])
    places = np.ndindex(*(data.sizes[name] for name in dims))
    return [data.isel(dict(zip(dims, place, strict=True))) for place in places]


def describe_exposures(runs: Mapping[str, xr.Dataset]) -> list[Sentence]:
    """Describes leaks and trust of runs where they differ."""
    costs = {label: read_exposure(data) for label, data in runs.items()}
    shared, sentences = find_shared_observation(costs.values()), list[Sentence]()
    texts = {k: write_leak_cell(cost, shared) or "not known" for k, cost in costs.items()}
    if len(leaks := group_labels(texts)) > 1:
        leak_texts = "; ".join(f"{text} ({labels})" for text, labels in leaks.items())
        # What is not known comes last.
        low, *_, high = sorted(costs, key=lambda k: (math.isnan(costs[k].leak), costs[k][:2]))
        ends = f"{texts[low]} to {texts[high]}"
        symbol = "(ε, δ)" if any(cost.delta > 0.0 for cost in costs.values()) else "ε"
        start = f"Leak {symbol} of one reward in {shared or 'what is sent'}: "
        # The tuple makes the text a short form, too: short forms are drawn first.
        sentences.append(
            (start + (ends if len(leaks) > _MOST_LISTED else leak_texts), start + ends)
        )
    trusts = group_labels({label: cost.trust for label, cost in costs.items()})
    if len(trusts) > 1 and "" not in trusts:
        few = len(costs) <= _MOST_LISTED
        quotes = [f"“{trust}”" + f" ({labels})" * few for trust, labels in trusts.items()]
        sentences.append(f"Trusted: {'; '.join(quotes)}")
    return sentences


def describe_cell_exposures(data: xr.Dataset) -> list[Sentence]:
    """Describes leaks and trust of the configurations of a table where they differ."""
    dims = list_swept(data)
    cells, shape = list_cells(data, dims), [data.sizes[name] for name in dims]
    places = np.arange(len(cells)).reshape(shape)
    texts = np.reshape([str(read_exposure(cell)) for cell in cells], shape)
    # A parameter that changes neither leak nor trust is not named.
    for axis, name in reversed([*enumerate(dims)]):
        if (texts == texts.take([0], axis)).all():
            texts, places = np.asarray(texts.take(0, axis)), np.asarray(places.take(0, axis))
            dims.remove(name)
    words = [
        [format_value(data[name], value) for value in data[name].values.tolist()] for name in dims
    ]
    labelled_cells = [cells[place] for place in places.ravel().tolist()]
    return describe_exposures(
        dict(zip(map(", ".join, product(*words)), labelled_cells, strict=True))
    )


def describe_run_events(bands: Mapping[str, xr.Dataset]) -> list[str]:
    """Says for each run how many seeds lost the best arm, and how many play a worse arm at T."""
    note = f"{_write_level(next(iter(bands.values())))} Clopper–Pearson interval"
    sentences = []
    for event, words in EVENTS.items():
        if not any(event in band for band in bands.values()):
            continue
        shares = group_labels(
            {label: _write_event_share(band, event) for label, band in bands.items()}
        )
        whose = [f"{labels}: " * (len(shares) > 1) for labels in shares.values()]
        texts = "; ".join(map("".join, zip(whose, shares, strict=True)))
        sentences.append(f"Seeds that {words} ({note}): {texts}")
    return sentences


def _write_event_share(band: xr.Dataset, event: str) -> str:
    """Writes how many seeds of a run had an event, with the interval."""
    if event not in band:
        return "not recorded"
    ends = _write_range(band[f"{event}_lower"], band[f"{event}_upper"])
    return f"{_write_share(band[event], band.seeds)} ({ends})"


def describe_cell_events(finals: xr.Dataset) -> list[str]:
    """Says how many seeds went wrong in all, and in which configuration most did."""
    interval = f"{_write_level(finals)} Clopper–Pearson interval "
    dims = list_swept(finals)
    sentences: list[str] = []
    for event, words in EVENTS.items():
        if event not in finals:
            continue
        names = (event, f"{event}_lower", f"{event}_upper", "seeds")
        bad, low, high, seeds = read_arrays(finals, names, dims)
        # Configurations of an unfinished sweep may have no seeds yet, and so no interval.
        judged = [at for at in np.ndindex(bad.shape) if seeds[at] > 1]
        if not judged:
            continue
        # If several have the same share, the one with the highest upper limit is stated.
        worst = max(judged, key=lambda at: (bad[at] / seeds[at], high[at]))
        sums = sum(bad[at] for at in judged), sum(seeds[at] for at in judged)
        ends = interval + _write_range(low[worst], high[worst])
        start = f"{_write_share(*sums)}{'' if sentences else ' seeds'} {words}"
        if bad.size == 1:
            start += f" ({ends})"
        elif not sums[0]:
            start += f", 0 in every configuration ({ends} in each)"
        else:
            cell = finals.isel(dict(zip(dims, worst, strict=True)))
            varied = [name for name in dims if finals.sizes[name] > 1]
            values = ", ".join(format_value(finals[name], cell[name].item()) for name in varied)
            most = f"most in one configuration {_write_share(bad[worst], seeds[worst])}"
            start += f", {most} ({ends}) at {values}"
        interval = ""  # the next sentence's numbers are of the same kind
        sentences.append(start)
    return sentences


def describe_exploring(undecided: ArrayLike, seeds: ArrayLike) -> list[str]:
    """Says which share of the seeds has chosen no arm at T, or from which to which; [] below 1 %.

    ``undecided`` of the ``seeds`` of each configuration still explore.
    """
    number, total = (np.asarray(numbers, float).reshape(-1) for numbers in (undecided, seeds))
    shares = 100 * number[total > 0] / total[total > 0]
    if not len(shares) or shares.max() < 1:
        return []
    low, high = (f"{end:.0f}" for end in (shares.min(), shares.max()))
    return [f"{low if low == high else f'{low} to {high}'} % of the seeds still explore at T"]


def _write_share(number: SupportsInt, seeds: SupportsInt) -> str:
    return f"{write_count(number)} of {write_count(seeds)}"


def _write_range(low: SupportsFloat, high: SupportsFloat) -> str:
    return f"{100 * float(low):.3g}–{100 * float(high):.3g} %"


def _write_level(data: xr.Dataset) -> str:
    return f"{100 * float(data.attrs['level']):.6g} %"
