"""What a result says of itself in words: one list of facts, for captions and tables alike.

Nothing here knows a parameter by name: a dimension's coordinate carries its words (``long_name``,
``symbol``, ``none``), a result its ``settings``.
"""

from __future__ import annotations

import hashlib
import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import xarray as xr

from fmab_jax.core.ledgers import UNSTATED
from fmab_jax.run.attributes import said

_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Letters of one fact, or of one label.
_LONGEST = 500
# Coordinates of a configuration that are no parameters of its own.
_DERIVED = {"algorithm", "title", "reporting", "wait", "time", "slot", "seed", "meter"}
_SIZES = (("agents", "M = ", "agent"), ("arms", "K = ", "arm"), ("horizon", "T = ", "slot"))


def written(number: float) -> str:
    """Writes a number in at most six digits, large and small ones with a power of ten."""
    text = f"{number:.6g}"
    mantissa, _, exponent = f"{number:.5e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    # "20000" is shorter as a power of ten, "12345" is not.
    if "e" not in text and (abs(number) < 1e4 or len(mantissa) > 3):
        return text
    power = "10" + str(int(exponent)).translate(_POWERS)
    return power if mantissa == "1" else f"{mantissa}×{power}"


def shortened(text: str) -> str:
    """Cuts a text that is too long for a line; different ones never look the same."""
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{text[: _LONGEST - 20]}… ({digest[:8]})"


def label_text(label: Any) -> str:
    """Writes a label; different values never look the same."""
    if isinstance(label, str):
        return shortened(label)
    number = float(label)
    if math.isinf(number):
        return "none"
    return str(int(number)) if number.is_integer() else repr(number)


def whole(number: Any) -> str:
    """Writes a whole number: powers of ten from 10^4 on as such, others in groups of three."""
    text = str(int(number))
    if len(text) > 4 and text == "1" + "0" * (len(text) - 1):
        return "10" + str(len(text) - 1).translate(_POWERS)
    return text if len(text) < 5 else f"{int(number):,}"


def short(number: float) -> str:
    """Writes a number in few characters: four digits, or the whole part where that is longer."""
    if number and not 1e-4 <= abs(number) < 1e12:
        return f"{number:.3e}"
    return f"{number:,.0f}" if abs(number) >= 1000 or number == int(number) else f"{number:.4g}"


def quantity(symbol: str, number: Any, noun: str) -> str:
    """Writes a fact such as "M = 50 agents"."""
    return f"{symbol}{whole(number)} {noun}{'s' * (int(number) != 1)}"


def is_number(value: Any) -> bool:
    """Tells whether a value is a number to be placed on an axis."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return real and not math.isnan(value)


def value_label(coordinate: xr.DataArray, value: Any) -> str:
    """Writes a value of a swept parameter as a tick label; "none" in the parameter's words."""
    if value == "none" or (is_number(value) and math.isinf(value)):
        return str(coordinate.attrs.get("none") or ("none" if value == "none" else "∞"))
    return written(value) if is_number(value) else shortened(str(value))


def format_value(coordinate: xr.DataArray, value: Any) -> str:
    """Writes a swept parameter with its value, such as "ε = 0.5", "ring" or "no round budget"."""
    label = value_label(coordinate, value)
    symbol = coordinate.attrs.get("symbol", name_of(coordinate))
    spoken = label == coordinate.attrs.get("none") or not symbol
    return label if spoken else f"{symbol} = {label}"


def name_of(coordinate: xr.DataArray) -> str:
    """Writes a coordinate's name."""
    return str(coordinate.name).replace("_", " ")


def grouped(words: Mapping[str, Any]) -> dict[Any, str]:
    """Returns, by what is said of some labels, these labels."""
    groups: dict[Any, list[str]] = {}
    for label, text in words.items():
        groups.setdefault(text, []).append(label)
    return {text: " / ".join(labels) for text, labels in groups.items()}


def privacy(epsilon: Any, ledger: Iterable[Mapping[str, Any]] = ()) -> str:
    """Writes a privacy parameter; infinity, or "none", is no noise where the ledger states it."""
    if epsilon != "none" and math.isfinite(epsilon):
        return f"ε = {_exact(epsilon)}"
    rows = list(ledger)
    if any(map(_is_unstated, rows)):
        return UNSTATED
    # A class of one's own may state a ledger, and leave its `privacy` that of no noise.
    stated = any(leak[0] for row in rows for leak in row["leaks"])
    return "privacy as in the ledger" if stated else "no noise"


def _is_unstated(row: Mapping[str, Any]) -> bool:
    return str(row["why"]).startswith(UNSTATED)


def _covered(data: xr.Dataset) -> bool:
    """Tells whether an epsilon covers something that is sent, if a ledger says so."""
    return "ledger" not in data.attrs or any(
        row["what"] != "actions" and any(leak[0] is not None for leak in row["leaks"])
        for row in said(data, "ledger")
    )


def facts(data: xr.Dataset, varied: Iterable[str] = (), *, leaks: bool = False) -> list[str]:
    """Returns what a run, or all configurations of a table, were made with.

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
    message: Any = single.pop("epsilon_message", None) if follows else None
    varied = set(varied)
    settings, titles, others = _settings(data)
    known = {name: value for name, value in (data.attrs | single).items() if name not in varied}
    title = titles or next((str(known[n]) for n in ("title", "algorithm") if n in known), "")
    lines = [title] if title else []
    epsilon: Any = known.get("epsilon")
    ledger = said(data, "ledger")
    if epsilon == math.inf and len(set(map(_is_unstated, ledger))) > 1:
        # Only some algorithms state their privacy: brackets tell which, unless one is left.
        lines += [settings["epsilon"]] if "epsilon" in settings else []
    elif epsilon == "none" or is_number(epsilon):
        lines.append(privacy(epsilon, ledger))
        message = data.attrs.get("epsilon_message", message)
        known_leak = is_number(message) and math.isfinite(message) and message != epsilon
        if leaks and known_leak and _covered(data):
            lines[-1] += f" ({_exact(message)} per message)"
    elif "epsilon" in settings and "epsilon" not in varied:
        lines.append(settings["epsilon"])
    sizes = [size for size in _SIZES if is_number(known.get(size[0]))]
    lines += [quantity(symbol, known[name], noun) for name, symbol, noun in sizes]
    done = {"epsilon", *(name for name, _, _ in sizes), *_DERIVED}
    for name in (name for name in single if name in known and name not in done):
        settings[name] = format_value(data[name], single[name])
    lines += [words for name, words in settings.items() if name not in {*varied, *done}]
    lines += others
    if data.attrs.get("root_seed", 0):
        lines.append(f"root seed {data.attrs['root_seed']}")
    return [shortened(line) for line in lines]


def _settings(data: xr.Dataset) -> tuple[dict[str, str], str, list[str]]:
    """Returns words for settings by name, the titles of the algorithms, and what has other owners.

    Words that differ between the algorithms, or the problems, that are left stand in brackets after
    their owner: "CDP-MAB, DDP-MAB (ring)". Of a title that all have there is none, "".
    """
    settings = said(data, "settings")
    titles, others = "", []
    for dim, by_label in said(data, "settings_by").items():
        labels = map(str, data[dim].values.reshape(-1)) if dim in data.coords else ()
        left = {label: dict(by_label[label]) for label in labels if label in by_label} or by_label
        for name in dict.fromkeys(name for own in left.values() for name in own):
            words = {own.get(name) for own in left.values()}
            if len(words) == 1 and name != "title":
                settings[name] = words.pop() or ""
                for own in left.values():
                    del own[name]
        names = [own.pop("title", "") for own in left.values()]
        titled = any(names)
        if len(set(names)) < len(names):
            names = list(left)
        owned = list(zip(names, left.values(), strict=True))
        listed = [f"{name} ({', '.join(own.values())})" if own else name for name, own in owned]
        if titled:
            titles = ", ".join(listed)
        else:
            others += [text for text, (_, own) in zip(listed, owned, strict=True) if own]
    return settings, titles, others


def _exact(number: float) -> str:
    """Writes six digits, or as many as tell the number from others that are not rounding errors."""
    rounded = math.isclose(float(f"{number:.6g}"), number, rel_tol=1e-12)
    return written(number) if rounded else f"{number:.12g}"
