"""What a figure says besides the facts of `analysis.words`: seeds, meters, and what went wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from fmab_jax.analysis.costs import exposure_of, leak_text, shared_view, with_view
from fmab_jax.analysis.words import format_value, grouped, name_of, quantity, whole

Sentence = str | tuple[str, ...]
"""Of a caption, without its full stop: a tuple has shorter forms behind the whole one."""

# Leaks that a caption lists one by one.
_MOST_LISTED = 8
# Events of single seeds that a mean hides, and the caption's words for them.
EVENTS = {
    "best_arm_lost": "lost the best arm",
    "worse_arm_played": "play a worse arm at T",
}


def swept(finals: xr.Dataset) -> list[str]:
    """Returns the swept parameters of a table of final values."""
    return [str(name) for name in finals.sizes if name != "meter"]


def arrays(finals: xr.Dataset, names: Iterable[str], dims: Sequence[str]) -> list[np.ndarray]:
    """Returns variables of a table over these parameters; of others the first value's."""
    rest = {name: 0 for name in swept(finals) if name not in dims}
    everywhere = xr.DataArray(np.zeros([finals.sizes[name] for name in dims]), dims=list(dims))
    chosen = (finals[name].isel(rest, missing_dims="ignore") for name in names)
    return [xr.broadcast(each, everywhere)[0].transpose(*dims).values for each in chosen]


def axis_label(coordinate: xr.DataArray) -> str:
    """Writes a swept parameter's name on an axis."""
    return str(coordinate.attrs.get("long_name") or name_of(coordinate))


def seeds_of(run: xr.Dataset) -> str:
    """Writes how many seeds a run has, and which if they are not the first ones."""
    size = run.sizes["seed"] if "seed" in run.sizes else int(run.seeds)
    seeds = run.seed.values if "seed" in run.coords else np.arange(size)
    number = quantity("", len(seeds), "seed")
    low, high = (int(end) for end in (seeds.min(), seeds.max()))
    return number if (low, high) == (0, len(seeds) - 1) else f"{number} from {low} to {high}"


def seeds_per_cell(finals: xr.Dataset) -> str:
    """Writes how many seeds the configurations of a table have: "200 to 3000 seeds"."""
    several = any(finals.sizes[name] > 1 for name in swept(finals))
    return spread(finals.seeds.values) + " per configuration" * several


def spread(seeds: Any) -> str:
    """Writes numbers of seeds: "200 to 3000 seeds"."""
    few, most = int(np.min(seeds)), int(np.max(seeds))
    return f"{whole(few)} to " * (few < most) + quantity("", most, "seed")


def describe_setting(facts: Sequence[str], seeds: str) -> Sentence:
    """Returns facts as a sentence, whose shortest form says how many seeds and slots there are."""
    size = [seeds, *(fact for fact in facts if re.search("^T = .* slots?$", fact))]
    return tuple(", ".join(dict.fromkeys(words)) for words in (facts, [*facts[:1], *size], size))


def band_of(data: xr.Dataset) -> str:
    """Returns the kind of band of a table, or of a band, without its method in brackets."""
    return str(data.attrs["description"]).partition(" (")[0]


def describe_points(finals: xr.Dataset) -> Sentence:
    """Says what the points and bars of a table's final values are."""
    whole = f"Points: means over the seeds; bars: {finals.attrs['description']}"
    return whole, f"Points: means; bars: {band_of(finals)}"


def describe_failures(sentences: Sequence[str], tables: Iterable[xr.Dataset]) -> Sentence:
    """Returns sentences on what went wrong as one; the short one says how often in all."""
    tables, found = list(tables), list[str]()
    for event, words in EVENTS.items():
        recorded = [table for table in tables if event in table]
        bad = sum(int(table[event].sum()) for table in recorded)
        seeds = sum(int(table.seeds.broadcast_like(table[event]).sum()) for table in recorded)
        found += [f"{_share(bad, seeds)}{'' if found else ' seeds'} {words}"] if bad else []
    return (". ".join(sentences), *[", ".join(found)] * bool(found))


def meters(data: xr.Dataset) -> str:
    """Names the meters on which peer links cost something, if there are any."""
    links = data.get("links", data.get("links_mean"))
    if links is None or not {"side", "priced", "counts"} <= set(data.coords):
        return ""
    over = [dim for dim in links.dims if dim != "meter"]
    chosen = ((data.side == "peer") & data.priced & (links.max(over) > 0)).values
    pairs = zip(data.meter.values[chosen], data.counts.values[chosen], strict=True)
    return " + ".join(f"meter {name}: {told}" for name, told in pairs)


def cells_of(data: xr.Dataset, dims: Sequence[str]) -> list[xr.Dataset]:
    """Returns the configurations of a result or of a table, the last parameter varying first."""
    # A parameter of one value may still be a dimension.
    others = {*data.dims} - {*dims, "seed", "time", "meter"}
    data = data.squeeze([name for name in others if data.sizes[name] == 1])
    places = np.ndindex(*(data.sizes[name] for name in dims))
    return [data.isel(dict(zip(dims, place, strict=True))) for place in places]


def exposure_sentences(runs: Mapping[str, xr.Dataset]) -> list[Sentence]:
    """Says what runs leak, and who is trusted by whom, where they differ in it."""
    costs = {label: exposure_of(data) for label, data in runs.items()}
    view, sentences = shared_view(costs.values()), list[Sentence]()
    texts = {k: with_view(leak_text(cost) or "not known", cost, view) for k, cost in costs.items()}
    if len(leaks := grouped(texts)) > 1:
        listed = "; ".join(f"{text} ({labels})" for text, labels in leaks.items())
        # What is not known comes last.
        low, *_, high = sorted(costs, key=lambda k: (math.isnan(costs[k].leak), costs[k].leak))
        ends = f"{texts[low]} to {texts[high]}"
        start = f"Leak ε of one reward in {view or 'what is sent'}: "
        # Even the only form is a short one: short forms are drawn first.
        sentences.append((start + (ends if len(leaks) > _MOST_LISTED else listed), start + ends))
    trusts = grouped({label: cost.trust for label, cost in costs.items()})
    if len(trusts) > 1 and "" not in trusts:
        few = len(costs) <= _MOST_LISTED
        quotes = [f"“{trust}”" + f" ({labels})" * few for trust, labels in trusts.items()]
        sentences.append(f"Trusted: {'; '.join(quotes)}")
    return sentences


def exposure_of_cells(data: xr.Dataset) -> list[Sentence]:
    """Says what the configurations of a table leak, and who is trusted, where they differ in it."""
    dims = swept(data)
    cells, shape = cells_of(data, dims), [data.sizes[name] for name in dims]
    places = np.arange(len(cells)).reshape(shape)
    texts = np.reshape([str(exposure_of(cell)) for cell in cells], shape)
    # A parameter with which nothing changes is no part of a name.
    for axis, name in reversed([*enumerate(dims)]):
        if (texts == texts.take([0], axis)).all():
            texts, places = np.asarray(texts.take(0, axis)), np.asarray(places.take(0, axis))
            dims.remove(name)
    words = [
        [format_value(data[name], value) for value in data[name].values.tolist()] for name in dims
    ]
    chosen = [cells[place] for place in places.ravel().tolist()]
    return exposure_sentences(dict(zip(map(", ".join, product(*words)), chosen, strict=True)))


def events_of_runs(bands: Mapping[str, xr.Dataset]) -> list[str]:
    """Says for each run how many seeds lost the best arm, and how many play a worse arm at T."""
    note = f"{_percent(next(iter(bands.values())))} Clopper–Pearson interval"
    sentences = []
    for event, words in EVENTS.items():
        shares = grouped({label: _befell(band, event) for label, band in bands.items()})
        whose = [f"{labels}: " * (len(shares) > 1) for labels in shares.values()]
        listed = "; ".join(map("".join, zip(whose, shares, strict=True)))
        sentences.append(f"Seeds that {words} ({note}): {listed}")
    return sentences


def _befell(band: xr.Dataset, event: str) -> str:
    """Writes how many of a run's seeds an event befell, and the interval."""
    if event not in band:
        return "not recorded"
    ends = _range(band[f"{event}_lower"], band[f"{event}_upper"])
    return f"{_share(band[event], band.seeds)} ({ends})"


def events_of_cells(finals: xr.Dataset) -> list[str]:
    """Says how many seeds went wrong in all, and in which configuration most did."""
    interval = f"{_percent(finals)} Clopper–Pearson interval "
    dims = swept(finals)
    sentences: list[str] = []
    for event, words in EVENTS.items():
        names = (event, f"{event}_lower", f"{event}_upper", "seeds")
        bad, low, high, seeds = arrays(finals, names, dims)
        # Configurations of an unfinished sweep may have no seeds yet, and so no interval.
        judged = [at for at in np.ndindex(bad.shape) if seeds[at] > 1]
        if not judged:
            continue
        # If several have the same share, the one with the highest upper limit is stated.
        worst = max(judged, key=lambda at: (bad[at] / seeds[at], high[at]))
        sums = sum(bad[at] for at in judged), sum(seeds[at] for at in judged)
        ends = interval + _range(low[worst], high[worst])
        start = f"{_share(*sums)}{'' if sentences else ' seeds'} {words}"
        if bad.size == 1:
            start += f" ({ends})"
        elif not sums[0]:
            start += f", 0 in every configuration ({ends} in each)"
        else:
            cell = finals.isel(dict(zip(dims, worst, strict=True)))
            varied = [name for name in dims if finals.sizes[name] > 1]
            where = ", ".join(format_value(finals[name], cell[name].item()) for name in varied)
            most = f"most in one configuration {_share(bad[worst], seeds[worst])}"
            start += f", {most} ({ends}) at {where}"
        interval = ""  # the next sentence's numbers are of the same kind
        sentences.append(start)
    return sentences


def exploring(undecided: Any, seeds: Any) -> list[str]:
    """Says which share of the seeds has chosen no arm at T, or from which to which; [] below 1 %.

    ``undecided`` of the ``seeds`` of each configuration still explore.
    """
    number, of = (np.asarray(each, float).reshape(-1) for each in (undecided, seeds))
    shares = 100 * number[of > 0] / of[of > 0]
    if not len(shares) or shares.max() < 1:
        return []
    low, high = (f"{end:.0f}" for end in (shares.min(), shares.max()))
    return [f"{low if low == high else f'{low} to {high}'} % of the seeds still explore at T"]


def _share(number: Any, seeds: Any) -> str:
    return f"{whole(number)} of {whole(seeds)}"


def _range(low: Any, high: Any) -> str:
    return f"{100 * float(low):.3g}–{100 * float(high):.3g} %"


def _percent(data: xr.Dataset) -> str:
    return f"{100 * float(data.attrs['level']):.6g} %"
