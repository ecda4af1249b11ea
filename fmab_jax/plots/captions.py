"""What a figure says besides the facts of `analysis.words`: seeds, meters, and what went wrong."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.analysis.costs import Cost, exposure_of, leak_text, shared_view, with_view
from fmab_jax.analysis.words import grouped, is_number, name_of, quantity, told, whole

# Leaks that a caption lists one by one.
_LEAKS = 8
# Parameters that may say a leak.
_PRIVACY = ("epsilon_message", "epsilon")
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
    """Writes how many seeds the configurations of a table have."""
    number = spread("", finals.seeds.values.ravel(), "seed")
    return number + " per configuration" * any(finals.sizes[name] > 1 for name in swept(finals))


def spread(symbol: str, numbers: Iterable[int], noun: str) -> str:
    """Writes "1000 seeds", or "200 to 3000 seeds" where numbers differ."""
    every = sorted({*map(int, numbers)})
    return symbol + " to ".join([*map(whole, every[:-1][:1]), quantity("", every[-1], noun)])


def size(seeds: str, results: Iterable[xr.Dataset]) -> str:
    """Says how many seeds, and how many slots, results have: the first sentence of a caption."""
    slots = [
        slot
        for data in results
        for slot in np.ravel(data.coords.get("horizon", data.attrs.get("horizon", ())))
        if is_number(slot)
    ]
    return ", ".join([seeds, *([spread("T = ", slots, "slot")] if slots else [])])


def band_of(data: xr.Dataset) -> str:
    """Returns the kind of band of a table, or of a band, without its method in brackets."""
    return str(data.attrs["description"]).partition(" (")[0]


def wrong_in_all(tables: Collection[xr.Dataset]) -> list[str]:
    """Says how many seeds went wrong in all, for each event that befell one."""
    found = []
    for event, words in EVENTS.items():
        recorded = [table for table in tables if event in table]
        bad = sum(int(table[event].sum()) for table in recorded)
        seeds = sum(int(table.seeds.broadcast_like(table[event]).sum()) for table in recorded)
        found += [f"{_share(bad, seeds)} seeds {words}"] if bad else []
    return found


def meters(data: xr.Dataset) -> str:
    """Names the meters on which peer links cost something, if there are any."""
    links = data.get("links", data.get("links_mean"))
    if links is None or not {"side", "priced", "counts"} <= set(data.coords):
        return ""
    over = [dim for dim in links.dims if dim != "meter"]
    chosen = ((data.side == "peer") & data.priced & (links.max(over) > 0)).values
    pairs = zip(data.meter.values[chosen], data.counts.values[chosen], strict=True)
    return " + ".join(f"meter {name}: {told}" for name, told in pairs)


class Leaks(NamedTuple):
    """What configurations leak that differ in it, in the order of configurations.

    Attributes:
        costs: Leak, view and trust of each.
        texts: The leaks in words, with what is seen where that differs.
        is_epsilon: Whether a privacy parameter says the leak.
        view: What is seen, where it is the same for all.
    """

    costs: list[Cost]
    texts: list[str]
    is_epsilon: list[bool]
    view: str

    @property
    def meaning(self) -> str:
        """What the numbers are."""
        return f"leak ε of one reward in {self.view or 'what is sent'}"

    @property
    def numbers(self) -> list[str]:
        """The leaks in few letters, to stand beside points."""
        return [leak_number(each) for each in self.costs]

    @property
    def signs(self) -> str:
        """What `numbers` have where there is no number, in brackets; "" for nothing."""
        some = {leak_number(each): each for each in self.costs if not each.bounded}
        signs = [f"{sign}: {_leak_text(each)}" for sign, each in sorted(some.items())]
        return f" ({'; '.join(signs)})" * bool(signs)

    def list_by_name(self, names: Sequence[str], places: Sequence[int]) -> str:
        """Says what each of some configurations leaks, by names for them."""
        alike = [place for place in places if self.is_epsilon[place] and self.costs[place].bounded]
        pairs = zip(names, places, strict=True)
        texts = {name: self.texts[place] for name, place in pairs if place not in alike}
        if len(texts) > _LEAKS:
            low, *_, high = sorted(self.costs, key=lambda each: each.leak)
            return f"{_leak_text(low)} to {_leak_text(high)}"
        sentence = "; ".join(f"{text} ({words})" for text, words in grouped(texts).items())
        return sentence + "; ε elsewhere" * bool(alike)


def leaks_of(cells: Sequence[xr.Dataset]) -> Leaks | None:
    """Returns what some configurations leak; None where all leak alike, or parameters say it.

    Args:
        cells: Results of each, or rows of a table of final values.
    """
    costs = [exposure_of(cell) for cell in cells]
    view = shared_view(costs)
    # Where views differ, epsilon alone does not say which one it is about.
    clear = bool(view) or not any(each.bounded for each in costs)
    pairs = zip(cells, costs, strict=True)
    is_epsilon = [(clear or not own.bounded) and _is_epsilon(cell, own.leak) for cell, own in pairs]
    texts = [with_view(_leak_text(each), each, view) for each in costs]
    alike = len({(str(each.leak), each.view) for each in costs}) < 2
    return None if alike or all(is_epsilon) else Leaks(costs, texts, is_epsilon, view)


def cells_of(data: xr.Dataset, dims: Sequence[str]) -> list[xr.Dataset]:
    """Returns the configurations of a result or of a table, the last parameter varying first."""
    # A parameter of one value may still be a dimension.
    own = data.get("seeds", data).sizes
    data = data.squeeze([name for name in own if name not in dims and own[name] == 1])
    places = np.ndindex(*(data.sizes[name] for name in dims))
    return [data.isel(dict(zip(dims, place, strict=True))) for place in places]


def _is_epsilon(cell: xr.Dataset, leak: float) -> bool:
    """Tells whether the privacy parameter of a configuration is its leak."""
    # What follows from other parameters has no symbol.
    swept = [n for n in _PRIVACY if n in cell.coords and "symbol" in cell[n].attrs]
    name = swept[0] if swept else "epsilon"
    value: Any = cell[name].item() if name in cell.coords else cell.attrs.get(name)
    if is_number(value) and math.isfinite(value):
        return math.isclose(value, leak, rel_tol=1e-9)
    # "no noise" is the word of a swept parameter.
    return bool(swept) and math.isinf(leak)


def leak_sentences(data: xr.Dataset) -> list[str]:
    """Says what the configurations of a table leak, and who is trusted, where they differ in it."""
    dims = swept(data)
    cells = cells_of(data, dims)
    sentences = []
    if (leaks := leaks_of(cells)) is not None:
        keys = [f"{text} {own}" for text, own in zip(leaks.texts, leaks.is_epsilon, strict=True)]
        names = leaks.list_by_name(*_distinct(data, dims, keys))
        sentences.append(f"{capitalize(leaks.meaning)}: {names}")
    trusts = [exposure_of(cell).trust for cell in cells]
    labels, places = _distinct(data, dims, trusts)
    return sentences + trust_sentences(labels, [trusts[place] for place in places])


def trust_sentences(labels: Sequence[str], trusts: Sequence[str]) -> list[str]:
    """Says who is trusted by whom, where that differs and is known."""
    by_trust = grouped(dict(zip(labels, trusts, strict=True)))
    if len(by_trust) < 2 or "" in by_trust:
        return []
    few = len(labels) <= _LEAKS
    quotes = [f"“{trust}”" + f" ({names})" * few for trust, names in by_trust.items()]
    return [f"Trusted: {'; '.join(quotes)}"]


def _distinct(
    data: xr.Dataset, dims: Sequence[str], texts: Sequence[str]
) -> tuple[list[str], list[int]]:
    """Returns names and places of configurations, without parameters with which no text changes."""
    kept, table = list(dims), np.reshape(texts, [data.sizes[name] for name in dims])
    places = np.arange(table.size).reshape(table.shape)
    for axis, name in reversed(list(enumerate(dims))):
        if (table == table.take([0], axis)).all():
            table, places = np.asarray(table.take(0, axis)), np.asarray(places.take(0, axis))
            kept.remove(name)
    words = [[told(data[n], value) for value in data[n].values.tolist()] for n in kept]
    return [", ".join(each) for each in product(*words)], places.reshape(-1).tolist()


def capitalize(text: str) -> str:
    """Writes the first letter of a sentence large."""
    return text[:1].upper() + text[1:]


def leak_label(cost: Cost, view: str) -> str:
    """Writes a leak for a label: with what is seen, where that is another than the view named."""
    text = with_view(_leak_text(cost), cost, view)
    return f"leak ε = {text}" if cost.bounded else f"leak: {text}"


def leak_number(cost: Cost) -> str:
    """Writes a leak beside a point, in few letters."""
    if cost.bounded:
        return f"{cost.leak:.3g}"
    return {0.0: "0", math.inf: "∞"}.get(cost.leak, "?")


def _leak_text(cost: Cost) -> str:
    return leak_text(cost) or "not known"


def events_of_runs(bands: Mapping[str, xr.Dataset]) -> list[str]:
    """Says for each run how many seeds lost the best arm, and how many play a worse arm at T."""
    sentences = []
    note = f"{_percent(next(iter(bands.values())))} Clopper–Pearson interval"
    for event, words in EVENTS.items():
        found = {label: _befell(band, event) for label, band in bands.items()}
        (common, often), *_ = Counter(found.values()).most_common(1)
        share, ends = common
        if often == len(bands) and ends:
            seeds = " seeds" * bool(note or often > 1) + " of every run" * (often > 1)
            sentences.append(f"{share}{seeds} {words} ({f'{note} {ends}'.strip()})")
        else:
            if often > 1:
                found = {k: v for k, v in found.items() if v != common} | {"all others": common}
            listed = "; ".join(
                f"{label}: {share}" + f" ({ends})" * bool(ends)
                for label, (share, ends) in found.items()
            )
            sentences.append(f"Seeds that {words}{f' ({note})' * bool(note)}: {listed}")
        note = ""  # the next sentence's numbers are of the same kind
    return sentences


def _befell(band: xr.Dataset, event: str) -> tuple[str, str]:
    """Returns how many of a run's seeds an event befell, and the interval if that is known."""
    if event not in band:
        return "not recorded", ""
    return _share(band[event], band.seeds), _range(band[f"{event}_lower"], band[f"{event}_upper"])


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
            where = ", ".join(told(finals[name], cell[name].item()) for name in varied)
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
