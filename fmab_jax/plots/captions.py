"""What a figure says besides the facts of `analysis.words`: seeds, meters, and what went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from fmab_jax.analysis.words import grouped, is_number, name_of, quantity, told, whole, written

# Leaks that a caption lists one by one.
_LEAKS = 8
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
    seeds = run.seed.values if "seed" in run.coords else np.arange(run.sizes["seed"])
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
    if "links" not in data or not {"side", "priced", "counts"} <= set(data.coords):
        return ""
    over = [dim for dim in data.links.dims if dim != "meter"]
    chosen = ((data.side == "peer") & data.priced & (data.links.max(over) > 0)).values
    pairs = zip(data.meter.values[chosen], data.counts.values[chosen], strict=True)
    return " + ".join(f"meter {name}: {told}" for name, told in pairs)


def leaks(data: xr.Dataset) -> dict[Any, float]:
    """Returns what a message leaks, Nε, where it follows from parameters and differs with them.

    It is by the values of these parameters, a tuple of what captions call them, where it is not
    epsilon itself; nothing where all configurations leak the same, or the leak is a parameter.
    """
    leak = data.coords["epsilon_message"] if "epsilon_message" in data.coords else None
    if leak is None or not leak.ndim or "epsilon_message" in leak.dims:
        return {}
    values = np.asarray(leak.values, float)
    if len(np.unique(values)) == 1:
        return {}
    coordinates = [data[name] for name in leak.dims]
    epsilon = data.coords.get("epsilon", xr.DataArray(data.attrs.get("epsilon")))
    numbers = [each if is_number(each) else np.nan for each in epsilon.values.reshape(-1).tolist()]
    own = (leak == epsilon.copy(data=np.reshape(numbers, epsilon.shape))).transpose(*leak.dims, ...)
    own = own.all([dim for dim in own.dims if dim not in leak.dims])
    if own.values[np.isfinite(values)].all():
        return {}
    return {
        tuple(told(c, c.values.tolist()[i]) for c, i in zip(coordinates, place, strict=True)): each
        for place, each in np.ndenumerate(values)
        if not own.values[place]
    }


def leak_sentence(data: xr.Dataset) -> str:
    """Says what a message leaks in configurations that differ in it; "" where none do."""
    found = leaks(data)
    if not found:
        return ""
    if len(found) > _LEAKS:
        low, *_, high = sorted(found.values())
        return f"Nε, what a message leaks: {leak_text(low)} to {leak_text(high)}"
    by_leak = grouped({", ".join(names): leak_text(leak) for names, leak in found.items()})
    listed = "; ".join(f"{leak} ({names})" for leak, names in by_leak.items())
    listed += "; ε elsewhere" * (len(found) < data.epsilon_message.size)
    return f"Nε, what a message leaks: {listed}"


def leak_text(leak: float) -> str:
    """Writes a leak; infinity is no bound."""
    if np.isnan(leak):
        return "not known"
    return "no bound" if np.isinf(leak) else written(leak)


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
