"""Shows a table of final values to people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd
import xarray as xr

from fmab_jax.analysis import costs
from fmab_jax.analysis.conditions import check_columns
from fmab_jax.analysis.tables import table
from fmab_jax.analysis.words import is_number, shorten, write_label, write_short
from fmab_jax.errors import flag, refuse

_SHARE = "share of seeds"


class TextTable(pd.DataFrame):  # type: ignore[misc]
    """A table of texts, which prints its title, legend and remarks with it."""

    def __str__(self) -> str:
        attrs = self.attrs
        lines = [attrs.get("title", ""), "", self.to_string(index=False), ""]
        return "\n".join([*lines, *attrs.get("legend", ()), *attrs.get("remarks", ())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        attrs = self.attrs
        lines = map(escape, [*attrs.get("legend", ()), *attrs.get("remarks", ())])
        title = f"<p>{escape(attrs.get('title', ''))}</p>"
        return f"<div>{title}{self.to_html(index=False)}<p>{'<br>'.join(lines)}</p></div>"


def show(
    frame: pd.DataFrame, columns: Sequence[str] | None = None, *, words: bool = False
) -> TextTable:
    """Returns a table of `table` as texts for people.

    ``to_string``, ``to_html``, ``to_markdown`` and ``to_latex`` are those of pandas; ``print`` and
    notebooks add title, legend and remarks, which are in ``attrs``.

    Args:
        frame: From `table`, or some of its rows and columns. Configurations without seeds are left
            out.
        columns: Names of its columns to show, in this order. A mean is shown with its interval. By
            default the swept parameters, leaks, means, ``links_max``, events and seeds; where
            agents differ fewer, and a remark names the others.
        words: Whether parameters and their values have words for a paper, such as "privacy
            parameter ε" and "no noise".

    Raises:
        ValueError: If ``frame`` is no DataFrame or lacks a column.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.sweep(fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20)
        >>> shown = fmab.show(fmab.table(data), ["epsilon", "leak_messages", "seeds"])
        >>> print(shown.to_string(index=False))
        epsilon leak ε of single messages seeds
            0.1                       0.5    20
              1                         5    20
    """
    if not isinstance(frame, pd.DataFrame):
        refuse("frame", type(frame).__name__, "what table returned", "write show(table(data))")
    unshown = frame.attrs.get("unshown", []) if columns is None else []
    if columns is None:
        usual = [name for name in frame if not str(name).endswith(("_lower", "_upper"))]
        columns = [name for name in frame.attrs.get("shown", usual) if name in frame]
    check_columns(frame, "columns", columns)
    rows = frame[frame.seeds > 0] if "seeds" in frame else frame
    flag("words", words)
    texts = dict(_write_column(rows, name, words) for name in columns)
    shown = TextTable(texts, index=rows.index)
    shown.attrs = frame.attrs | {"legend": _write_legend(frame, columns)}
    if names := ", ".join(name for name in unshown if name in frame):
        # No part of a caption, which has no columns to choose.
        line = f"Not shown unless named as columns: {names}."
        shown.attrs["remarks"] = [line, *frame.attrs.get("remarks", ())]
    return shown


def overview(
    data: xr.Dataset,
    *,
    level: float | None = None,
    server_price: float = 1.0,
    peer_price: float = 1.0,
) -> TextTable:
    """Returns `show` of the `table` of a result, for one more version.

    Args:
        data: As in `table`.
        level: As in `table`.
        server_price: As in `table`.
        peer_price: As in `table`.

    Raises:
        ValueError: As `table`.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.sweep(fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20)
        >>> fmab.overview(data).epsilon.tolist()
        ['0.1', '1']
    """
    return show(table(data, level=level, server_price=server_price, peer_price=peer_price))


def _write_column(rows: pd.DataFrame, name: str, words: bool) -> tuple[str, list[str]]:
    """Returns heading and texts of a column."""
    values, heading = rows[name], name.replace("_", " ")
    facts = rows.attrs.get("words", {}).get(name, {})
    if name.startswith("leak_") and f"{name}_delta" in rows:
        return _write_leaks(rows, name)
    if name in rows.attrs.get("dims", ()):
        heading = str(facts.get("long_name", heading)) if words else name
        return heading, [_write_label(x, facts if words else {}) for x in values]
    if words and "long_name" in facts:
        heading = facts["long_name"] + f" ({facts.get('units')})" * bool(facts.get("units"))
    share = f"{100 * rows.attrs.get('level', 0.95):.6g} %"
    unit = 100 if rows.attrs.get("units", {}).get(name) == _SHARE else 1
    if not {f"{name}_lower", f"{name}_upper"} <= {*rows}:
        return heading + ", %" * (unit > 1), [_write_value(unit * x) for x in values]
    ends = zip(*(unit * rows[f"{name}{end}"] for end in ("", "_lower", "_upper")), strict=True)
    if unit > 1:
        texts = [f"{x:.3g} [{_write_end(low)}, {_write_end(high)}]" for x, low, high in ends]
    else:
        halves = ((x, float(f"{(high - low) / 2:.2g}")) for x, low, high in ends)
        texts = [_write_mean(x, half) for x, half in halves]
    texts = ["-" if x != x else text for x, text in zip(values, texts, strict=True)]
    return f"{heading}, % [{share}]" if unit > 1 else f"{heading} ± {share}", texts


def _write_mean(mean: float, half: float) -> str:
    """Writes a mean with half its interval, unless that is lost in the mean's last digit."""
    text = write_short(mean)
    is_lost = half > 0 and write_short(mean - half) == text == write_short(mean + half)
    return text if is_lost else f"{text} ± {write_short(half)}"


def _write_end(percent: float) -> str:
    # Two digits of 99.6 would be 1e+02.
    return f"{percent:.{2 + (percent >= 99)}g}"


def _write_label(value: object, facts: Mapping[str, Any]) -> str:
    """Writes a value of a swept parameter, whose ``facts`` have words for a paper."""
    if not is_number(value):
        return shorten(str(facts.get("titles", {}).get(value, value)))
    if math.isinf(value):
        return str(facts.get("none", "none"))
    # np.linspace gives 0.30000000000000004, which people write as 0.3.
    return write_label(float(f"{value:.12g}"))


def _write_value(value: object) -> str:
    if isinstance(value, str) or not is_number(value):
        return "-" if value != value else shorten(str(value))
    return write_short(value) if math.isfinite(value) else "none"


def _write_leaks(rows: pd.DataFrame, name: str) -> tuple[str, list[str]]:
    """Returns heading and texts of the leaks of a view."""
    pairs = zip(rows[name], rows[f"{name}_delta"], strict=True)
    if name != "leak_messages" or "leak_view" not in rows:
        texts = ["-" if x != x else costs.write_epsilon(x, delta) for x, delta in pairs]
        return f"leak ε, {name.removeprefix('leak_')}", texts
    exposures = [
        costs.Cost(*pair, observation)
        for pair, observation in zip(pairs, rows.leak_view, strict=True)
    ]
    shared = costs.find_shared_observation(exposures)
    texts = [costs.write_leak(exposure, shared) for exposure in exposures]
    return costs.write_leak_heading(exposures), texts


def _write_legend(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Returns the meaning of the columns that are shown, in lines."""
    attrs, lines = frame.attrs, list[str]()
    if not {"interval", "meters", "units"} <= {*attrs}:
        return lines
    estimates = [name for name in columns if f"{name}_lower" in frame]
    events = [name for name in estimates if attrs["units"].get(name) == _SHARE]
    if {*estimates} - {*events}:
        lines.append(f"Means over the seeds; ± half the {attrs['interval']}.")
    if events:
        share = f"{100 * attrs['level']:.6g} %"
        names = ", ".join(events).replace("_", " ").capitalize()
        lines.append(f"{names}: % of the seeds at T, with the {share} Clopper-Pearson interval.")
    facts = [(name, attrs.get("words", {}).get(name, {})) for name in columns]
    notes = {name: x.get("note") or x.get("long_name") for name, x in facts if name in estimates}
    if texts := [f"{name.replace('_', ' ')}: {note}" for name, note in notes.items() if note]:
        text = "; ".join(texts)
        lines.append(f"{text[0].upper()}{text[1:]}.")
    if any(name.startswith("leak_") for name in columns):
        lines.append(f"{costs.LEAK_NOTE}.")
    if {"leak_sum", "leak_actions"} & {*columns}:
        lines.append("Leak, sum or actions: the same, if only sums or only actions are seen.")
    counted = [name for name, meter in attrs["meters"].items() if meter["counted"]]
    if {"links", "links_p95", "links_max"} & {*columns}:
        where = f", on {' and '.join(counted)}" * (len(counted) < len(attrs["meters"]))
        lines.append(f"Links are those of completed rounds; max: the most of any run{where}.")
    if "cost" in columns:
        peers = [name for name in counted if attrs["meters"][name]["side"] == "peer"]
        prices = f"{attrs['server_price']:g} per server link, {attrs['peer_price']:g} per peer link"
        lines.append(f"Cost: {prices}{' (' + ', '.join(peers) + ')' if peers else ''}.")
    return lines
