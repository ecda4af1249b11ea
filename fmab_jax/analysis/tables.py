"""Builds the table of final values of a result, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from fmab_jax.analysis import budgets, summary
from fmab_jax.analysis.accountant import leak
from fmab_jax.analysis.agents import CURVES, find_absent_agents
from fmab_jax.analysis.bands import (
    EVENTS,
    compute_moments_band,
    divide_level,
    lost_interval,
    student_critical,
)
from fmab_jax.analysis.checks import check_result
from fmab_jax.analysis.costs import (
    LEAKS,
    communication_cost,
    list_prices,
    read_cell_ledger,
    read_exposure,
    read_parameters,
)
from fmab_jax.analysis.remarks import list_remarks
from fmab_jax.analysis.words import add_titles, is_number, list_facts
from fmab_jax.errors import choice, price, real, refuse
from fmab_jax.parameters import VIEWS, ViewKind
from fmab_jax.parts.outputs import AGENTS_DIFFER
from fmab_jax.parts.outputs.standard import REGRET
from fmab_jax.run.attributes import json_attr
from fmab_jax.sampling.shapes import Record

_ENDS = ("_lower", "_upper")
# Of the outputs that come where agents differ, those that people read first, and what they are.
_SHOWN_BY_AGENT = {
    "own_regret": "against each agent's own best arm, not the arm that is best on average",
    "largest_own_regret": "that of the agent with most",
    "fairness": "of regret, 1 if all agents have the same, 1/M if one has it all",
}
_OF_ONE_AGENT = {name.replace("_", " ") for name in CURVES}
_BY_AGENT = {output.name for output in AGENTS_DIFFER if "agent" not in output.dims}
# Facts of a configuration, which a result states as attributes or coordinates.
_FACTS = ("algorithm", "agents", "arms", "horizon", "epsilon", "epsilon_message")
# Settings of how a run was made and kept, which change no expected value.
_HOW = {"axes", "labels", "seeds", "times", "spacing", "sum_agents", "keep", "until", "outputs"}
_SCALARS = (str, int, float)
_UNITS = {"regret": "reward", "cost": "price", "rounds_made": "rounds"}
_UNITS |= {name: name for name in budgets.BUDGETS} | {"leak_messages": "ε of one reward"}
_UNITS |= dict.fromkeys((*EVENTS, "undecided"), "share of seeds")


def compute_look_band(
    seeds: int, mean: np.ndarray, covariance: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean and half-width of the band of one look of a sweep with a precision."""
    # A look's level lies far out: the quantile needs draws beyond it.
    resamples = min(1_000_000, max(2000, math.ceil(200 / (1 - level))))
    return compute_moments_band(seeds, mean, covariance, level, resamples=resamples)


def table(
    data: xr.Dataset,
    *,
    level: float | None = None,
    server_price: float = 1.0,
    peer_price: float = 1.0,
) -> pd.DataFrame:
    """Returns what every configuration ends with at T: a tidy table, one row per configuration.

    ``query``, ``sort_values``, ``to_csv`` and all else of pandas work on it.

    Args:
        data: From `sweep`, `open_sweep`, `load` or `simulate`, which has a single configuration.
        level: Confidence level of the intervals, in (0, 1); 0.95 by default. For a sweep that ran
            until it was precise, the level over all looks together, by default the one it ran with:
            the interval of regret is then that of the simultaneous band, at the level of one look.
        server_price: c1, of an agent-server link.
        peer_price: c2, of an agent-agent link on the meter that is priced.

    Returns:
        A DataFrame in the order of the grid. Its columns:

        * the swept parameters, then the settings that the result states (none where runs were
          joined); "none" among numbers is infinite;
        * ``leak_messages``, epsilon of one reward in what is sent, over the whole run, against
          whoever sees most of it (0 where nothing is sent, infinite for no bound, NaN where the
          result does not say), ``leak_messages_delta``, the delta at which it holds (0 for pure
          privacy), the same of other views if `add_leaks` has added them, ``leak_view``, what that
          viewer sees, ``trust``, who is trusted with what, and ``open_actions``, whether actions
          have no bound while messages have one;
        * ``regret``, ``rounds_made`` and ``cost``: means over the seeds, each with ``_lower`` and
          ``_upper`` (Student t), and so are outputs that are a number of each seed, or a curve;
          of single agents ``regret`` alone, because all agents share what their run spends;
        * ``links``, ``numbers`` and ``bits``: the mean of a run, ``_p95``, which 95 % of the runs
          do not exceed, and ``_max``, the most of a run; ``links`` are those that ``cost`` counts,
          ``links_`` and a meter, the mean of each;
        * ``best_arm_lost`` and ``worse_arm_played``: shares of the seeds, each with the
          Clopper-Pearson ``_lower`` and ``_upper``; ``undecided``, the share of the seeds that
          still explore at T; ``seeds``, how many there are.

        Configurations of an unfinished sweep that have fewer than 2 seeds have NaN. What a result
        of an older version does not say is absent. A swept parameter keeps its name: a column of
        the same name is left out. ``attrs`` has the ``title``, which states what all rows share,
        the swept parameters ``dims``, the ``level``, ``interval``, how it is made, the ``units``
        and ``words`` of columns, those that are ``shown`` by `show` and those that it leaves
        ``unshown`` where agents differ and there are too many, ``remarks`` on the numbers,
        what ``meters`` count, and both prices.

    Raises:
        ValueError: If ``data`` is no such result, or another argument is out of range.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.sweep(fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20)
        >>> frame = fmab.table(data)
        >>> frame.query("leak_messages <= 2 and links_max <= 400").epsilon.tolist()
        [0.1]
    """
    data = _check_final(data)
    prices = price("server_price", server_price), price("peer_price", peer_price)
    looks = data.attrs.get("looks", 0)
    level = data.attrs.get("until_level", 0.95) if level is None else level
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    look_level = divide_level(level, looks) if looks else level
    interval = f"{100 * level:.6g} % confidence interval of the mean (Student t)"
    if looks:
        share = f"({100 * look_level:.6g} % a look, {looks} possible looks)"
        interval = f"{100 * level:.6g} % simultaneous band at T {share}"
    dims, study = [str(name) for name in data.seeds.dims], json_attr(data, "study")
    # Runs may be joined along a dimension without labels, which are then 0, 1, and so on.
    labels = {name: data[name].values.tolist() for name in dims}
    # Agents that `select_regret` has taken apart are configurations of one run.
    is_joined = bool(study) and not {*dims} <= {*study.get("axes", ()), "agent"}
    records, settings = list[Record](), list[Record]()
    is_absent = find_absent_agents(data.seeds).values
    for place in np.ndindex(data.seeds.shape):
        cell = data.isel(dict(zip(dims, place, strict=True)))
        settings.append(_read_settings(cell, is_joined))
        row = _compute_row(cell, prices, level, look_level) if cell.seeds > 1 else {}
        facts = settings[-1] | _read_leaks(cell)
        facts |= {name: row.get(name, math.nan) for name in _list_columns(data)}
        facts |= {"seeds": int(cell.seeds)}
        record = {name: labels[name][i] for name, i in zip(dims, place, strict=True)}
        records.append(record | {n: value for n, value in facts.items() if n not in record})
    # The index is that of the grid, also where agents are left out.
    frame = pd.DataFrame(records)[~is_absent.ravel()]
    for name in frame.columns:
        axis = study.get(name, ()) if name in study.get("axes", ()) else ()
        frame[name] = _as_numbers(frame[name], axis)
    frame.attrs = {
        "title": ", ".join(list_facts(data, dims, leaks=True)),
        "dims": dims,
        "shown": _list_shown(frame, data, dims, is_short=True),
        "level": level,
        "interval": interval,
        **_describe_columns(data, dims),
        "server_price": prices[0],
        "peer_price": prices[1],
    }
    rest = _list_shown(frame, data, dims, is_short=False)
    frame.attrs["unshown"] = [name for name in rest if name not in frame.attrs["shown"]]
    frame.attrs["remarks"] = list_remarks(frame, data, settings)
    return frame


def _list_shown(
    frame: pd.DataFrame, data: xr.Dataset, dims: Sequence[str], *, is_short: bool
) -> list[str]:
    """Returns the columns of a table that people read first, in their order.

    Where agents differ there are too many for a line: a short list has of what a run spends only
    its cost, and of all columns none that is 0 in each row.
    """
    links = [f"links_{meter}" for meter in data.meter.values.tolist()]
    links += ["links_max"] * bool(links)
    outputs, costs = list_scalar_outputs(data), ["cost", *EVENTS]
    names = [*dims, *(name for name in _list_leaks(data) if not name.endswith("_delta"))]
    if is_short and {*outputs} >= _BY_AGENT:
        costs = [name for name in costs if name in frame and frame[name].max() > 0]
        outputs = [name for name in outputs if name not in _BY_AGENT]
        names += ["regret", *_SHOWN_BY_AGENT]
    else:
        names += ["regret", "rounds_made", *links]
    names += [*costs, *outputs, "seeds"]
    return [name for name in dict.fromkeys(names) if name in frame]


def _describe_columns(data: xr.Dataset, dims: Sequence[str]) -> Record:
    """Returns the units of columns, their words, and what their meters count."""
    outputs = list_scalar_outputs(data)
    arrays = {n: data[n if n in data else f"{n}_mean"] for n in outputs}
    notes = {name: {"note": note} for name, note in _SHOWN_BY_AGENT.items() if name in outputs}
    arrays |= {name: add_titles(data)[name] for name in dims}
    regret = data["regret" if "regret" in data else "regret_mean"]
    if regret.attrs.get("long_name", REGRET.label) != REGRET.label:
        arrays |= {"regret": regret}  # which `select_regret` has taken for it
    units = _UNITS | {n: str(a.attrs["units"]) for n, a in arrays.items() if a.attrs.get("units")}
    peers = zip(data.side.values.tolist(), budgets.is_priced(data).tolist(), strict=True)
    meters = zip(data.meter.values.tolist(), peers, strict=True)
    return {
        "units": units,
        "words": {name: {**array.attrs, **notes.get(name, {})} for name, array in arrays.items()},
        "meters": {name: {"side": side, "counted": counted} for name, (side, counted) in meters},
    }


def _as_numbers(column: pd.Series, axis: Sequence[object]) -> pd.Series:
    """Returns a column of numbers as such, where "none" is infinite; others as they are.

    A swept parameter of which only "none" is selected is one of numbers if its ``axis`` is.
    """
    if not any(map(is_number, [*column, *axis])) or "none" not in column.values:
        return column
    values = column.astype(object).replace("none", math.inf)
    return pd.to_numeric(values) if all(isinstance(x, (int, float)) for x in values) else column


def _read_settings(cell: xr.Dataset, is_joined: bool) -> Record:
    """Returns the facts and the settings of one configuration that are numbers or texts.

    Where runs were joined, study and attributes may be those of the first: they say nothing.
    """
    study, facts = Record(), Record()
    if not is_joined:
        study = {name: value for name, value in read_parameters(cell).items() if name not in _HOW}
        facts = {name: cell.attrs[name] for name in _FACTS if name in cell.attrs}
    facts |= {n: cell[n].item() for n in _FACTS if n in cell.coords and cell[n].ndim == 0}
    facts |= {name: value for name, value in study.items() if isinstance(value, _SCALARS)}
    # A file gives NumPy's numbers.
    facts = {n: x.item() if isinstance(x, np.generic) else x for n, x in facts.items()}
    return {name: value for name, value in facts.items() if isinstance(value, _SCALARS)}


def _list_columns(data: xr.Dataset) -> list[str]:
    """Returns the columns of a table that are computed from the seeds."""
    regret = data["regret" if "regret" in data else "regret_mean"]
    if regret.attrs.get("metric") in _OF_ONE_AGENT:
        # The agents of a run share what it spends: nothing of that is a row's.
        return [f"regret{end}" for end in ("", *_ENDS)]
    names = [f"{n}{end}" for n in ("regret", "rounds_made", "cost") for end in ("", *_ENDS)]
    names += [f"links_{meter}" for meter in data.meter.values.tolist()]
    names += budgets.list_columns(data)
    names += [f"{n}{end}" for n in EVENTS if n in data for end in ("", *_ENDS)]
    names += [f"{n}{end}" for n in list_scalar_outputs(data) for end in ("", *_ENDS)]
    return [*names, "undecided"]


def _list_leaks(data: xr.Dataset) -> list[str]:
    """Returns the variables of leaks of a table: those of messages, and those that were added."""
    return [name for name in LEAKS if name in data or name in LEAKS[:2]]


def _check_final(data: xr.Dataset) -> xr.Dataset:
    """Returns results as `check_result` does; refuses others, and those that end before T."""
    if not isinstance(data, xr.Dataset) or (
        "seeds" not in data
        or ("rounds_made" not in data and "rounds_made_mean" not in data)
        or ("regret" in data and "seed" not in data.sizes)
    ):
        allowed = "the Dataset of simulate or of a sweep"
        refuse("data", type(data).__name__, allowed, "pass it unchanged")
    data = check_result(data)
    last, horizon = int(data.time.values.reshape(-1)[-1]), data.attrs.get("horizon")
    if "slot" not in data.coords and horizon not in (None, last):
        remedy = "leave out no slots: what is kept of a seed is that at the horizon"
        refuse("data.time", last, f"up to {horizon}, the horizon", remedy)
    return data


def _read_leaks(cell: xr.Dataset) -> Record:
    """Returns the leaks of one configuration, who sees them, and who is trusted."""
    exposure = read_exposure(cell)
    leaks = {n: float(cell[n]) if n in cell else math.nan for n in _list_leaks(cell)}
    facts = {"leak_view": exposure.observation, "trust": exposure.trust}
    return leaks | facts | {"open_actions": exposure.has_open_actions}


def _compute_row(
    cell: xr.Dataset, prices: tuple[float, float], level: float, look_level: float
) -> Record:
    """Returns the final values of one configuration with seeds, by the columns of `table`."""
    moments: dict[str, tuple[float, float]]
    row: Record
    seeds, band, outputs = int(cell.seeds), {}, list_scalar_outputs(cell)
    events = [name for name in EVENTS if name in cell]
    if "regret" in cell:
        # Read once, where it is not in memory; by the rows of the last slot alone.
        decisions = [name for name in ("chosen_arm",) if name in cell]
        names = ["links", "regret", "rounds_made", *decisions, *events, *outputs]
        names += [name for name in ("numbers_sent", "number_bits") if name in cell]
        last = cell[names].isel(seed=slice(seeds), time=-1).load()
        links = np.asarray(last.links.transpose("seed", "meter"), np.float64).mean(axis=0)
        series = {name: last[name] for name in ("regret", "rounds_made", *outputs)}
        summary.refuse_huge("data.regret", np.asarray(last.regret, np.float64))
        series["cost"] = communication_cost(last, *prices)
        moments = {name: _compute_moments(np.asarray(values)) for name, values in series.items()}
        counts = {name: int(last[name].values.sum()) for name in events}
        counts["undecided"] = sum(int((last[name].values < 0).sum()) for name in decisions)
        row = {**budgets.summarise_runs(last)}
    else:
        names = ["rounds_made", *outputs]
        final = cell.isel(time=-1)
        moments = {n: (float(final[f"{n}_mean"]), float(final[f"{n}_variance"])) for n in names}
        mean, covariance = cell.regret_mean.values, cell.regret_covariance.values
        moments["regret"] = float(mean[-1]), float(covariance[-1, -1])
        links = np.asarray(cell.links_mean.isel(time=-1), np.float64)
        cost = float(links @ list_prices(cell, *prices).values)
        # Every link is built by a completed round.
        rounds, variance = moments["rounds_made"]
        scale = cost / rounds if rounds else 0.0
        moments["cost"] = cost, variance * scale**2
        if cell.attrs.get("looks"):
            _, half = compute_look_band(seeds, mean, covariance, look_level)
            band = {"regret_lower": mean[-1] - half[-1], "regret_upper": mean[-1] + half[-1]}
        counts = {name: int(cell[name]) for name in (*events, "undecided") if name in cell}
        row = {**budgets.summarise_runs(cell)}
    row |= zip((f"links_{m}" for m in cell.meter.values.tolist()), links.tolist(), strict=True)
    for name, (middle, variance) in moments.items():
        width = student_critical(seeds - 1, 1 - look_level) * math.sqrt(max(variance, 0.0) / seeds)
        row |= {name: middle, f"{name}_lower": middle - width, f"{name}_upper": middle + width}
    for name, number in counts.items():
        row[name] = number / seeds
        if name in events:
            row[f"{name}_lower"], row[f"{name}_upper"] = lost_interval(number, seeds, level)
    return row | band


def _compute_moments(values: np.ndarray) -> tuple[float, float]:
    """Returns mean and variance over the seeds."""
    part = summary.compute_moments(values[:, None], full=False)
    return float(part.mean[0]), float(part.covariance[0])


def add_leaks(data: xr.Dataset, views: Sequence[str] = VIEWS) -> xr.Dataset:
    """Returns results with the leaks of some views as variables, such as ``leak_sum``.

    Args:
        data: From `simulate`, `sweep`, `open_sweep` or `load`.
        views: "messages", which all results have; "sum", who sees sums over agents alone; or
            "actions", who sees only the arms that agents pull.

    Returns:
        The Dataset with ``leak_sum`` and ``leak_actions``: the epsilon of one reward, over the
        swept parameters; and beside each, as ``leak_sum_delta``, the delta at which it holds: 0 for
        pure differential privacy, else 1e-6. NaN where nobody has this view, or the result does not
        say what leaks.

    Raises:
        ValueError: If ``views`` names another view, or ``data`` is no result.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.sweep(fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20)
        >>> data.leak_messages.values.tolist(), data.leak_messages_delta.values.tolist()
        ([0.5, 5.0], [0.0, 0.0])
        >>> fmab.add_leaks(data).leak_actions.values.round(3).tolist()
        [0.381, 4.054]
    """
    if not isinstance(data, xr.Dataset) or "seeds" not in data:
        refuse("data", type(data).__name__, "a result of simulate or sweep", "pass it unchanged")
    if isinstance(views, str) or not isinstance(views, Sequence):
        refuse("views", views, "a list of views", 'such as ["sum", "actions"]')
    names = [choice("views", view, VIEWS, "choose views") for view in views]
    data = check_result(data)
    shape, dims = data.seeds.shape, [*map(str, data.seeds.dims)]
    cells = [data.isel(dict(zip(dims, place, strict=True))) for place in np.ndindex(shape)]
    is_said = {*LEAKS[:2]} <= {*data.variables}
    ledgers = [read_cell_ledger(cell) if is_said else None for cell in cells]
    for view in map(ViewKind, names):
        if f"leak_{view}" in data:
            continue
        leaks = [leak(ledger.rows, view) if ledger else None for ledger in ledgers]
        pairs = [(math.nan, math.nan) if x is None else (x.epsilon, x.delta) for x in leaks]
        epsilons, deltas = np.array(pairs).T.reshape(2, *shape)
        attrs = {"long_name": f"leak of one reward, view of {view}", "symbol": "ε"}
        data = data.assign(
            {f"leak_{view}": (dims, epsilons, attrs), f"leak_{view}_delta": (dims, deltas)}
        )
    return data


def list_scalar_outputs(data: xr.Dataset) -> list[str]:
    """Returns the optional outputs of a result with one number for each seed at T."""
    over, end = {*data.seeds.dims, "seed", "time"}, "" if "regret" in data else "_mean"
    names = [text.partition(" ")[0] for text in json_attr(data, "study").get("outputs", ())]
    return [n for n in names if f"{n}{end}" in data and {*data[f"{n}{end}"].dims} <= over]
