"""Checks, axis labels and captions for figures of final values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr

from fmab_jax.analysis.words import add_titles, list_facts, write_number
from fmab_jax.errors import choice, did_you_mean, refuse
from fmab_jax.plots import captions, style
from fmab_jax.plots.style import measure_text, wrap_text

# The metric "rounds" is not called so in the table: there the name belongs to the round budget.
_VARIABLES = {"regret": "regret", "cost": "cost", "rounds": "rounds_made"}


def check_finals(
    finals: xr.Dataset, metrics: Sequence[str], parameters: dict[str, str | None]
) -> xr.Dataset:
    """Returns a table of final values with titles; refuses an incomplete one, and unknown names."""
    for metric in metrics:
        choice("metric", metric, _VARIABLES, "choose one of these")
    remedy = "pass the final values of a sweep unchanged"
    if not isinstance(finals, xr.Dataset):
        refuse("finals", type(finals).__name__, "a table of final values", remedy)
    # Where means change, no arm is lost.
    events = [event for event in captions.EVENTS if f"{event}_lower" in finals]
    means = [*(_VARIABLES[metric] for metric in metrics), *events]
    needed = [*(name + end for name in means for end in ("", "_lower", "_upper")), "seeds"]
    attrs = {"level", "description"}
    attrs |= {"server_price", "peer_price"} if "cost" in metrics else set()
    missing = [name for name in needed if name not in finals] + sorted(attrs - set(finals.attrs))
    dims = captions.list_swept(finals)
    missing += [f"coordinate {name}" for name in dims if name not in finals.coords]
    if missing:
        refuse("finals", f"without {', '.join(missing)}", "a table of final values", remedy)
    # Where nobody sends there is no meter.
    if 0 in [size for dim, size in finals.sizes.items() if dim != "meter"]:
        refuse("finals", "empty", "at least one configuration", "select less narrowly")
    for name in needed:
        if bad := int((~np.isfinite(finals[name].values.astype(float))).sum()):
            remedy = "complete the sweep, with 2 seeds or more"
            refuse(f"finals.{name}", f"{bad} not finite", "finite in every configuration", remedy)
    names = [name for name in parameters.values() if name is not None]
    for field, parameter in parameters.items():
        is_swept = isinstance(parameter, str) and parameter in dims
        if not is_swept and (parameter is not None or field != "hue"):
            allowed = f"one of {', '.join(dims)}" if dims else "left out: nothing is swept"
            refuse(field, parameter, allowed, did_you_mean(parameter, dims, "sweep it first"))
    if len(set(names)) < len(names):
        refuse(" and ".join(parameters), names[0], "two parameters", "choose another one")
    hue = parameters.get("hue")
    if hue and finals.sizes[hue] > style.MOST:
        allowed = f"a parameter of at most {style.MOST} values"
        refuse("hue", f"{hue} ({finals.sizes[hue]} values)", allowed, "select fewer of them")
    return add_titles(finals)


def read_values(coordinate: xr.DataArray) -> list[str | float]:
    """Returns the values of a parameter as plain Python objects; no limit is infinite."""
    unlimited = bool(coordinate.attrs.get("none"))
    return [math.inf if unlimited and v == "none" else v for v in coordinate.values.tolist()]


def read_interval(finals: xr.Dataset, metric: str, dims: Sequence[str]) -> list[np.ndarray]:
    """Returns a metric's mean and the ends of its band over these dimensions, and no others."""
    names = [_VARIABLES[metric] + end for end in ("", "_lower", "_upper")]
    return [values.astype(float) for values in captions.read_arrays(finals, names, dims)]


def write_metric_label(finals: xr.Dataset, metric: str, limit: float) -> str:
    """Writes name and unit of a metric in lines no longer than the limit in inches."""
    if metric == "rounds":
        return "rounds completed by T"
    name, unit = "cumulative regret at T", "(reward, summed over M agents)"
    if metric == "cost":
        server, peer = (write_number(finals.attrs[f"{side}_price"]) for side in ("server", "peer"))
        unit = f"(price: {server} per server link, {peer} per peer link)"
        name = "communication cost at T"
    if measure_text(unit)[0] > limit:
        unit = unit.replace(", ", ",\n")
    return "\n".join([name, *(wrap_text(line, limit) for line in unit.split("\n"))])


def write_caption(
    finals: xr.Dataset, sentences: Sequence[captions.Sentence], *, paid: bool
) -> list[captions.Sentence]:
    """Returns the caption: shared settings, ``sentences``, meters of a cost, and failures."""
    varied = [name for name in captions.list_swept(finals) if finals.sizes[name] > 1]
    seeds, meters = (
        captions.describe_seeds_per_cell(finals),
        captions.name_meters(finals) if paid else "",
    )
    caption = [
        captions.describe_setting([*list_facts(finals, varied, leaks=True), seeds], seeds),
        *sentences,
        *captions.describe_cell_exposures(finals),
        f"Peer links are counted on the {meters}" * bool(meters),
        captions.describe_failures(
            captions.describe_cell_events(finals), captions.label_cells(finals)
        ),
    ]
    if "undecided" in finals:
        caption += captions.describe_exploring(finals.undecided, finals.seeds)
    return caption


def refuse_other_parameters(finals: xr.Dataset, dims: Sequence[str]) -> None:
    """Refuses several values of a parameter that the figure does not show."""
    varied = [n for n in captions.list_swept(finals) if n not in dims and finals.sizes[n] > 1]
    if varied:
        value = ", ".join(f"{finals.sizes[name]} values of {name}" for name in varied)
        name = varied[0]
        example = finals[name].values.tolist()[0]
        allowed = f"one value of every parameter except {', '.join(dims)}"
        remedy = f"select it with .sel({name}={example!r}) or --select {name}={example}"
        refuse("finals", value, allowed, remedy)
