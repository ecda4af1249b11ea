"""Reads the frame of `table` for figures: checks, labels of its rows, axis labels, the caption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from fmab_jax.analysis.agents import describe_agents, has_equal
from fmab_jax.analysis.costs import Cost
from fmab_jax.analysis.words import format_value, write_label, write_name, write_number
from fmab_jax.errors import choice, did_you_mean, refuse
from fmab_jax.plots import captions, style
from fmab_jax.plots.style import wrap_text

METRICS = {"regret": "regret", "cost": "cost", "rounds": "rounds_made"}
"""Columns of metrics; the column "rounds" is the round budget, where it is swept."""

ENDS = ("", "_lower", "_upper")
"""Endings of the columns of a mean and of the ends of its interval."""


def check_frame(
    frame: pd.DataFrame, metrics: Sequence[str], parameters: Mapping[str, str | None]
) -> None:
    """Refuses what is no complete table of `table`, and parameters that are not swept in it."""
    for metric in metrics:
        choice("metric", metric, METRICS, "choose one of these")
    if not isinstance(frame, pd.DataFrame) or "dims" not in frame.attrs:
        refuse("frame", type(frame).__name__, "a table of results", "pass what fmab.table returned")
    if frame.empty:
        refuse("frame", "empty", "at least one configuration", "select less narrowly")
    dims = frame.attrs["dims"]
    needed = ["seeds", *(METRICS[metric] + end for metric in metrics for end in ENDS)]
    if missing := [name for name in [*dims, *needed] if name not in frame]:
        remedy = "pass what fmab.table returned"
        refuse("frame", f"without {', '.join(missing)}", "a table of results", remedy)
    for name in needed:
        if bad := int((~np.isfinite(frame[name].astype(float))).sum()):
            remedy = "complete the sweep, with 2 seeds or more"
            refuse(f"frame.{name}", f"{bad} not finite", "finite in every configuration", remedy)
    for field, parameter in parameters.items():
        is_swept = isinstance(parameter, str) and parameter in dims
        if not is_swept and (parameter is not None or field != "hue"):
            allowed = f"one of {', '.join(dims)}" if dims else "left out: nothing is swept"
            refuse(field, parameter, allowed, did_you_mean(parameter, dims, "sweep it first"))
    names = [name for name in parameters.values() if name is not None]
    if len(set(names)) < len(names):
        refuse(" and ".join(parameters), names[0], "two parameters", "choose another one")
    if (hue := parameters.get("hue")) and frame[hue].nunique() > style.MOST:
        allowed = f"a parameter of at most {style.MOST} values"
        value = f"{hue} ({frame[hue].nunique()} values)"
        refuse("hue", value, allowed, "select fewer of them")


def refuse_other_parameters(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuses several values of a parameter that the figure does not show."""
    if varied := [name for name in list_varied(frame) if name not in names]:
        value = ", ".join(f"{frame[name].nunique()} values of {name}" for name in varied)
        allowed = f"one value of every parameter except {', '.join(names)}"
        selection = f"{varied[0]}={write_label(frame[varied[0]].iloc[0])}"
        remedy = f"select one, as with .query(...) or --select {selection}"
        refuse("frame", value, allowed, remedy)
    if frame.duplicated([*names]).any():
        refuse("frame", "repeated rows", "a row for each configuration", "drop the others")


def list_varied(frame: pd.DataFrame) -> list[str]:
    """Returns the swept parameters that have several values."""
    return [name for name in frame.attrs["dims"] if frame[name].nunique() > 1]


def read_axis(frame: pd.DataFrame, name: str) -> xr.DataArray:
    """Returns a scalar with the words of a swept parameter, which writes its values."""
    return xr.DataArray(0, name=name, attrs=frame.attrs["words"].get(name, {}))


def write_axis_label(axis: xr.DataArray) -> str:
    """Writes a swept parameter's name on an axis, or above a legend."""
    return str(axis.attrs.get("long_name") or write_name(axis))


def label_rows(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Returns the values of some parameters in each row: "ε = 0.1, ring"."""
    texts = [[format_value(read_axis(frame, n), value) for value in frame[n]] for n in names]
    return [", ".join(column[i] for column in texts) for i in range(len(frame))]


def write_metric_label(frame: pd.DataFrame, metric: str, limit: float) -> str:
    """Writes name and unit of a metric in lines no longer than the limit in inches."""
    if metric == "rounds":
        return "rounds completed by T"
    name, unit = "cumulative regret at T", "(reward, summed over M agents)"
    if metric == "regret" and "regret" in frame.attrs["words"]:
        name, unit = frame.attrs["words"]["regret"]["long_name"], "(reward)"
        name = wrap_text(name, limit)
    if metric == "cost":
        server, peer = (write_number(frame.attrs[f"{side}_price"]) for side in ("server", "peer"))
        unit = f"(price: {server} per server link, {peer} per peer link)"
        name = "communication cost at T"
    return f"{name}\n{wrap_text(unit, limit)}"


def describe_points(frame: pd.DataFrame) -> captions.Sentence:
    """Describes the points and bars of final values."""
    interval = frame.attrs["interval"]
    short = f"Points: means; bars: {captions.shorten_interval(interval)}"
    return f"Points: means over the seeds; bars: {interval}", short


def write_caption(
    frame: pd.DataFrame, sentences: Sequence[captions.Sentence], *, paid: bool
) -> list[captions.Sentence]:
    """Returns the caption: shared settings, ``sentences``, leaks, meters of a cost, failures."""
    attrs, varied = frame.attrs, list_varied(frame)
    chosen = [name for name in attrs["dims"] if name not in varied]
    seeds = captions.write_seed_range(frame.seeds) + " per configuration" * (len(frame) > 1)
    facts = filter(None, [attrs["title"], *label_rows(frame[:1], chosen), seeds])
    peers = [name for name, x in attrs["meters"].items() if x["side"] == "peer" and x["counted"]]
    peers = [name for name in peers if paid and frame[f"links_{name}"].max() > 0]
    return [
        captions.describe_setting([*facts], seeds),
        *sentences,
        *_describe_agents(frame),
        *captions.describe_exposures(_read_exposures(frame)),
        captions.describe_meters(peers),
        *captions.describe_failures(frame, label_rows(frame, varied), attrs["level"]),
    ]


def _describe_agents(frame: pd.DataFrame) -> list[captions.Sentence]:
    """Says what means by agent cannot show, if agents are rows."""
    if "agent" not in frame.attrs["dims"]:
        return []
    others = [name for name in list_varied(frame) if name != "agent"]
    groups = frame.groupby(others, dropna=False, sort=False) if others else [((), frame)]
    ends = [METRICS["regret"] + end for end in ENDS]
    is_equal = {
        label_rows(rows[:1], others)[0]: has_equal(rows[ends])
        for _, rows in groups
        if len(rows) > 1
    }
    return [*describe_agents(frame.attrs["words"]["regret"]["metric"], is_equal)]


def _read_exposures(frame: pd.DataFrame) -> dict[str, Cost]:
    """Returns leak and trust by label; parameters that change neither are not named."""
    columns = ["leak_messages", "leak_messages_delta", "leak_view", "trust"]
    names = list_varied(frame)
    for name in reversed(names):
        others = [other for other in names if other != name]
        rows = frame.groupby(others, dropna=False, sort=False) if others else frame
        if (rows[columns].nunique(dropna=False) == 1).to_numpy().all():
            names = others
    exposures = [Cost(*row) for row in frame[columns].itertuples(index=False)]
    return dict(zip(label_rows(frame, names), exposures, strict=True))
