"""What a figure says in words: values, settings, meters, and how many seeds went wrong.

Nothing here knows a parameter by name: a dimension's coordinate carries its words (``long_name``,
``symbol``, ``none``), a result its ``settings``.
"""

from __future__ import annotations

import json
import math
import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from fmab_jax.plots.style import counted, whole, written

# What may befall a seed and its mean hides, and how a caption says it.
EVENTS = {
    "best_arm_lost": "lost the best arm",
    "worse_arm_played": "decided for a worse arm at T",
}
# Coordinates of a cell that are no parameters of its own.
_DERIVED = {"algorithm", "title", "reporting", "wait", "time", "slot", "seed", "meter"}
_SIZES = (("agents", "M = ", "agent"), ("arms", "K = ", "arm"), ("horizon", "T = ", "slot"))


def swept(finals: xr.Dataset) -> list[str]:
    """Returns the swept parameters of a table of final values."""
    return [str(name) for name in finals.sizes if name != "meter"]


def arrays(finals: xr.Dataset, names: Iterable[str], dims: Sequence[str]) -> list[np.ndarray]:
    """Returns variables of a table over these parameters; of others the first value's."""
    rest = {name: 0 for name in swept(finals) if name not in dims}
    everywhere = xr.DataArray(np.zeros([finals.sizes[name] for name in dims]), dims=list(dims))
    chosen = (finals[name].isel(rest, missing_dims="ignore") for name in names)
    return [xr.broadcast(each, everywhere)[0].transpose(*dims).values for each in chosen]


def grouped(words: Mapping[str, Any]) -> dict[Any, str]:
    """Returns, by what is said of some labels, these labels."""
    found: dict[Any, list[str]] = {}
    for label, said in words.items():
        found.setdefault(said, []).append(label)
    return {said: " / ".join(labels) for said, labels in found.items()}


def is_number(value: Any) -> bool:
    """Tells whether a value is a number to be placed on an axis."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return real and not math.isnan(value)


def value_label(coordinate: xr.DataArray, value: Any) -> str:
    """Writes a value of a swept parameter as a tick label; "none" in the parameter's words."""
    if value == "none" or (is_number(value) and math.isinf(value)):
        return str(coordinate.attrs.get("none") or ("none" if value == "none" else "∞"))
    return written(value) if is_number(value) else str(value)


def told(coordinate: xr.DataArray, value: Any) -> str:
    """Writes a swept parameter with its value, such as "ε = 0.5", "ring" or "no round budget"."""
    label = value_label(coordinate, value)
    symbol = coordinate.attrs.get("symbol", _plain(coordinate))
    spoken = label == coordinate.attrs.get("none") or not symbol
    return label if spoken else f"{symbol} = {label}"


def axis_label(coordinate: xr.DataArray) -> str:
    """Writes a swept parameter's name on an axis."""
    return str(coordinate.attrs.get("long_name") or _plain(coordinate))


def _plain(coordinate: xr.DataArray) -> str:
    return str(coordinate.name).replace("_", " ")


def facts(data: xr.Dataset, varied: Iterable[str] = ()) -> list[str]:
    """Returns what a run, or all cells of a table, were made with.

    Title, privacy, M, K, T, and then every setting that is not its default. A parameter of which
    one value was selected is told even if that is the default.

    Args:
        data: A result of ``simulate``, a cell of a sweep, or a table of final values.
        varied: Parameters that the figure itself shows.
    """
    single = {
        str(name): coordinate.values.reshape(-1).tolist()[0]
        for name, coordinate in data.coords.items()
        if coordinate.size == 1 and not set(coordinate.dims) & {"meter", "seed", "time"}
    }
    if "symbol" not in data.coords.get("epsilon_message", xr.DataArray()).attrs:
        single.pop("epsilon_message", None)  # follows from epsilon
    varied = set(varied)
    known = {name: value for name, value in (data.attrs | single).items() if name not in varied}
    found = [str(known[name]) for name in ("title", "algorithm") if name in known][:1]
    epsilon: Any = known.get("epsilon")
    if epsilon == "none" or is_number(epsilon):
        noisy = epsilon != "none" and math.isfinite(epsilon)
        found.append(f"ε = {_exact(epsilon)}" if noisy else "no noise")
    sizes = [each for each in _SIZES if is_number(known.get(each[0]))]
    found += [counted(symbol, known[name], noun) for name, symbol, noun in sizes]
    settings = json.loads(data.attrs.get("settings", "{}"))
    done = {"epsilon", *(name for name, _, _ in sizes), *_DERIVED}
    for name in (name for name in single if name in known and name not in done):
        settings[name] = told(data[name], single[name])
    found += [words for name, words in settings.items() if name not in varied]
    if data.attrs.get("root_seed", 0):
        found.append(f"root seed {data.attrs['root_seed']}")
    if json.loads(data.attrs.get("config", "{}")).get("sum_agents") is False:
        found.append("agents drawn one by one")
    return found


def _exact(number: float) -> str:
    """Writes six digits, or as many as tell the number from others that are not rounding errors."""
    rounded = math.isclose(float(f"{number:.6g}"), number, rel_tol=1e-12)
    return written(number) if rounded else f"{number:.12g}"


def seeds_of(run: xr.Dataset) -> str:
    """Writes how many seeds a run has, and which if they are not the first ones."""
    seeds = run.seed.values if "seed" in run.coords else np.arange(run.sizes["seed"])
    number = counted("", len(seeds), "seed")
    low, high = (int(end) for end in (seeds.min(), seeds.max()))
    return number if (low, high) == (0, len(seeds) - 1) else f"{number} from {low} to {high}"


def seeds_per_cell(finals: xr.Dataset) -> str:
    """Writes how many seeds the cells of a table have."""
    fewest, most = int(finals.seeds.min()), int(finals.seeds.max())
    number = counted("", most, "seed")
    if fewest < most:
        number = f"{whole(fewest)} to {number}"
    return number + " per cell" * any(finals.sizes[name] > 1 for name in swept(finals))


def meters(data: xr.Dataset) -> str:
    """Names the meters on which peer links cost something, if there are any."""
    if "links" not in data or not {"side", "priced", "counts"} <= set(data.coords):
        return ""
    over = [dim for dim in data.links.dims if dim != "meter"]
    chosen = ((data.side == "peer") & data.priced & (data.links.max(over) > 0)).values
    pairs = zip(data.meter.values[chosen], data.counts.values[chosen], strict=True)
    return " + ".join(f"meter {name}: {told}" for name, told in pairs)


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
            told = "; ".join(
                f"{label}: {share}" + f" ({ends})" * bool(ends)
                for label, (share, ends) in found.items()
            )
            sentences.append(f"Seeds that {words}{f' ({note})' * bool(note)}: {told}")
        note = ""  # the next sentence's numbers are of the same kind
    return sentences


def _befell(band: xr.Dataset, event: str) -> tuple[str, str]:
    """Returns how many of a run's seeds an event befell, and the interval if that is known."""
    if event not in band:
        return "not recorded", ""
    return _share(band[event], band.seeds), _range(band[f"{event}_lower"], band[f"{event}_upper"])


def events_of_cells(finals: xr.Dataset) -> list[str]:
    """Says how many seeds of all cells went wrong, and in which cell most did."""
    interval = f"{_percent(finals)} Clopper–Pearson interval "
    dims = swept(finals)
    sentences: list[str] = []
    for event, words in EVENTS.items():
        names = (event, f"{event}_lower", f"{event}_upper", "seeds")
        bad, low, high, seeds = arrays(finals, names, dims)
        # Of cells where it happened equally often, the one that is least sure.
        worst = max(np.ndindex(bad.shape), key=lambda at: (bad[at] / seeds[at], high[at]))
        ends = interval + _range(low[worst], high[worst])
        start = f"{_share(bad.sum(), seeds.sum())}{'' if sentences else ' seeds'} {words}"
        if bad.size == 1:
            start += f" ({ends})"
        elif not bad.any():
            start += f", 0 in every cell ({ends} in a cell)"
        else:
            at = dict(zip(dims, worst, strict=True))
            where = ", ".join(
                told(finals[name], finals[name].values.tolist()[at[name]])
                for name in dims
                if finals.sizes[name] > 1
            )
            start += f", most in a cell {_share(bad[worst], seeds[worst])} ({ends}) at {where}"
        interval = ""  # the next sentence's numbers are of the same kind
        sentences.append(start)
    return sentences


def _share(number: Any, seeds: Any) -> str:
    return f"{whole(number)} of {whole(seeds)}"


def _range(low: Any, high: Any) -> str:
    return f"{100 * float(low):.3g}–{100 * float(high):.3g} %"


def _percent(data: xr.Dataset) -> str:
    return f"{100 * float(data.attrs['level']):.6g} %"
