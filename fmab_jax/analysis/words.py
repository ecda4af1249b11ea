"""Writes the facts of a result in words, for captions and tables.

Nothing here knows a parameter by name: a dimension's coordinate carries its words (``long_name``,
``symbol``, ``none``), a result its ``settings``.
"""

from __future__ import annotations

import hashlib
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import SupportsInt, TypeGuard

import xarray as xr

from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.parameters import ViewKind
from fmab_jax.records.ledger import Disclosure
from fmab_jax.run.attributes import json_attr
from fmab_jax.run.facts import Ledger, read_ledger

_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Letters of one fact, or of one label.
_LONGEST = 500
# Coordinates of a configuration that are no parameters of its own.
_DERIVED = {"algorithm", "title", "reporting", "wait", "time", "slot", "seed", "meter", "ledger"}
_UNSTATED = "privacy not stated"
_SIZES = (("agents", "M = ", "agent"), ("arms", "K = ", "arm"), ("horizon", "T = ", "slot"))


def write_number(number: float) -> str:
    """Writes a number in at most six digits, large and small ones with a power of ten."""
    text = f"{number:.6g}"
    mantissa, _, exponent = f"{number:.5e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    # "20000" is shorter as a power of ten, "12345" is not.
    if "e" not in text and (abs(number) < 1e4 or len(mantissa) > 3):
        return text
    power = "10" + str(int(exponent)).translate(_POWERS)
    return power if mantissa == "1" else f"{mantissa}×{power}"


def shorten(text: str) -> str:
    """Cuts a text that is too long for a line; different ones never look the same."""
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{text[: _LONGEST - 20]}… ({digest[:8]})"


def write_label(label: str | float) -> str:
    """Writes a label; different values never look the same."""
    if isinstance(label, str):
        return shorten(label)
    number = float(label)
    if math.isinf(number):
        return "none"
    return str(int(number)) if number.is_integer() else repr(number)


def write_count(number: SupportsInt) -> str:
    """Writes a whole number: powers of ten from 10^4 on as such, others in groups of three."""
    text = str(int(number))
    if len(text) > 4 and text == "1" + "0" * (len(text) - 1):
        return "10" + str(len(text) - 1).translate(_POWERS)
    return text if len(text) < 5 else f"{int(number):,}"


def write_short(number: float) -> str:
    """Writes a number in few characters: four digits, or the whole part where that is longer."""
    if number and not 1e-4 <= abs(number) < 1e12:
        return f"{number:.3e}"
    return f"{number:,.0f}" if abs(number) >= 1000 or number == int(number) else f"{number:.4g}"


def write_quantity(symbol: str, number: SupportsInt, noun: str) -> str:
    """Writes a fact such as "M = 50 agents"."""
    return f"{symbol}{write_count(number)} {noun}{'s' * (int(number) != 1)}"


def is_number(value: object) -> TypeGuard[float]:
    """Tells whether a value is a number to be placed on an axis."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and not math.isnan(value)


def write_tick(coordinate: xr.DataArray, value: object) -> str:
    """Writes a value of a swept parameter as a tick label; "none" in the parameter's words."""
    if value == "none" or (is_number(value) and math.isinf(value)):
        return str(coordinate.attrs.get("none") or ("none" if value == "none" else "∞"))
    if is_number(value):
        return write_number(value)
    return shorten(str(coordinate.attrs.get("titles", {}).get(value, value)))


def add_titles(data: xr.Dataset) -> xr.Dataset:
    """Returns results with titles for the short names of algorithms, which `write_tick` writes.

    Labels of a user's own stay, and so do names whose titles would not tell them apart.
    """
    owners = ALGORITHMS.by_name()
    for dim, by_label in json_attr(data, "settings_by").items():
        all_titles = {label: settings.get("title") for label, settings in by_label.items()}
        titles = {x: t for x, t in all_titles.items() if x in owners and owners[x].title == t}
        is_distinct = len({titles.get(label, label) for label in by_label}) == len(by_label)
        if titles and is_distinct and dim in data.coords:
            data = data.assign_coords({dim: data[dim].assign_attrs(titles=titles)})
    return data


def format_value(coordinate: xr.DataArray, value: object) -> str:
    """Writes a swept parameter with its value, such as "ε = 0.5", "ring" or "no round budget"."""
    label = write_tick(coordinate, value)
    symbol = coordinate.attrs.get("symbol", write_name(coordinate))
    spoken = label == coordinate.attrs.get("none") or not symbol
    return label if spoken else f"{symbol} = {label}"


def write_name(coordinate: xr.DataArray) -> str:
    """Writes a coordinate's name."""
    return str(coordinate.name).replace("_", " ")


def group_labels(words: Mapping[str, str]) -> dict[str, str]:
    """Groups labels by their text."""
    groups: dict[str, list[str]] = {}
    for label, text in words.items():
        groups.setdefault(text, []).append(label)
    return {text: " / ".join(labels) for text, labels in groups.items()}


def read_ledgers(data: xr.Dataset) -> list[Ledger]:
    """Returns the different ledgers of all configurations; [] where a result has none."""
    texts = data.ledger.values.reshape(-1).tolist() if "ledger" in data.coords else []
    # Where results were joined, some configurations are missing: NaN.
    return [read_ledger(text) for text in dict.fromkeys(texts) if isinstance(text, str)]


def write_privacy(epsilon: str | float, rows: Sequence[Disclosure] = ()) -> str:
    """Writes a privacy parameter; infinity, or "none", is no noise where the ledger states it."""
    if not isinstance(epsilon, str) and math.isfinite(epsilon):
        return f"ε = {_write_exact(epsilon)}"
    if not all(row.is_stated for row in rows):
        return _UNSTATED
    # A class of one's own may state a ledger, and leave its `privacy` that of no noise.
    has_bound = any(0.0 < row.epsilon < math.inf or row.noises for row in rows)
    return "privacy as in the ledger" if has_bound else "no noise"


def _has_covered_messages(rows: Sequence[Disclosure]) -> bool:
    """Tells whether noise covers something that is sent, if a ledger says so."""
    is_bounded = (math.isfinite(row.epsilon) or row.noises for row in rows)
    sent = (row.view is not ViewKind.ACTIONS for row in rows)
    return not rows or any(a and b for a, b in zip(is_bounded, sent, strict=True))


def list_facts(data: xr.Dataset, varied: Iterable[str] = (), *, leaks: bool = False) -> list[str]:
    """Returns the settings of a run, or of all configurations of a table.

    Title, privacy, M, K, T, and then every setting that is not its default, the root seed, and how
    agents were drawn. A parameter of which one value was selected is told even if that is the
    default. What only some algorithms have is told with their titles.

    Left out are the parameters that the figure or the table itself shows, as ``varied``. What one
    message leaks is said where ``leaks`` asks for it.
    """
    single = {
        str(name): coordinate.values.reshape(-1).tolist()[0]
        for name, coordinate in data.coords.items()
        if coordinate.size == 1 and not set(coordinate.dims) & {"meter", "seed", "time"}
    }
    follows = "symbol" not in data.coords.get("epsilon_message", xr.DataArray()).attrs
    message = single.pop("epsilon_message", None) if follows else None
    varied = set(varied)
    settings, titles, owner_texts = _read_settings(data)
    values = {name: value for name, value in (data.attrs | single).items() if name not in varied}
    title = titles or next((str(values[n]) for n in ("title", "algorithm") if n in values), "")
    lines = [title] if title else []
    epsilon = values.get("epsilon")
    rows = [row for ledger in read_ledgers(data) for row in ledger.rows]
    if epsilon == math.inf and len({row.is_stated for row in rows}) > 1:
        # Only some algorithms state their privacy: brackets tell which, unless one is left.
        lines += [settings["epsilon"]] if "epsilon" in settings else []
    elif epsilon == "none" or is_number(epsilon):
        lines.append(write_privacy(epsilon, rows))
        message = data.attrs.get("epsilon_message", message)
        if leaks and is_number(message) and math.isfinite(message) and message != epsilon:
            is_pure = all(row.epsilon < math.inf for row in rows if row.noises)
            unit = "per message" + ", up to the δ of the noise" * (not is_pure)
            lines[-1] += f" ({_write_exact(message)} {unit})" * _has_covered_messages(rows)
    elif "epsilon" in settings and "epsilon" not in varied:
        lines.append(settings["epsilon"])
    sizes = [size for size in _SIZES if is_number(values.get(size[0]))]
    lines += [write_quantity(symbol, values[name], noun) for name, symbol, noun in sizes]
    done = {"epsilon", *(name for name, _, _ in sizes), *_DERIVED}
    for name in (name for name in single if name in values and name not in done):
        settings[name] = format_value(data[name], single[name])
    lines += [words for name, words in settings.items() if name not in {*varied, *done}]
    lines += owner_texts
    if data.attrs.get("root_seed", 0):
        lines.append(f"root seed {data.attrs['root_seed']}")
    return [shorten(line) for line in lines]


def _read_settings(data: xr.Dataset) -> tuple[dict[str, str], str, list[str]]:
    """Returns settings by name, the titles of the algorithms, and settings of other owners.

    Words that differ between the algorithms, or the problems, that are left stand in brackets after
    their owner: "CDP-MAB, DDP-MAB (ring)". Of a title that all have there is none, "".
    """
    settings = json_attr(data, "settings")
    titles, owner_texts = "", []
    for dim, by_label in json_attr(data, "settings_by").items():
        labels = map(str, data[dim].values.reshape(-1)) if dim in data.coords else ()
        left = {label: dict(by_label[label]) for label in labels if label in by_label} or by_label
        for name in dict.fromkeys(
            name for settings_of_label in left.values() for name in settings_of_label
        ):
            words = {settings_of_label.get(name) for settings_of_label in left.values()}
            if len(words) == 1 and name != "title":
                settings[name] = words.pop() or ""
                for settings_of_label in left.values():
                    del settings_of_label[name]
        names = [settings_of_label.pop("title", "") for settings_of_label in left.values()]
        titled = any(names)
        if len(set(names)) < len(names):
            names = list(left)
        pairs = list(zip(names, left.values(), strict=True))
        texts = [
            f"{name} ({', '.join(settings_of_label.values())})" if settings_of_label else name
            for name, settings_of_label in pairs
        ]
        if titled:
            titles = ", ".join(texts)
        else:
            owner_texts += [
                text
                for text, (_, settings_of_label) in zip(texts, pairs, strict=True)
                if settings_of_label
            ]
    return settings, titles, owner_texts


def _write_exact(number: float) -> str:
    """Writes six digits, or as many as tell the number from others that are not rounding errors."""
    rounded = math.isclose(float(f"{number:.6g}"), number, rel_tol=1e-12)
    return write_number(number) if rounded else f"{number:.12g}"
