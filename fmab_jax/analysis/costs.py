"""Reads what a run spends for its regret: leak, view, links, price and trust."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.algorithms.base import Algorithm, collect_algorithms
from fmab_jax.analysis.accountant import DELTA, epsilon_at
from fmab_jax.analysis.budgets import is_priced
from fmab_jax.core.ledgers import read_rows
from fmab_jax.core.shapes import Record
from fmab_jax.errors import choice, price, refuse
from fmab_jax.run.attributes import json_attr, parse_study

if TYPE_CHECKING:
    from fmab_jax.analysis.statements import Participant

NO_MESSAGES = "nothing is told"
"""The view of a run without messages."""

LEAK_NOTE = (
    "Leak: ε of one reward in all that a run sends, not in actions, against whoever sees most"
)
"""What a column of leaks says."""

# Start of an observation in which a server sees no single message.
_SUMMED = "sums over "
_MESSAGE = "nobody, up to the epsilon of a message"
_SECURE = "secure aggregation: nobody sees one agent's message"
_OPEN_ACTIONS = "; without a bound, whoever sees actions"


class Cost(NamedTuple):
    """What a run spends for its regret; NaN or "" where the result does not say."""

    # Epsilon of pure differential privacy of one reward in what is sent, over the whole run,
    # against the viewer who learns most; infinite for no bound. The ledger also covers actions and
    # viewers who know a share of a noise.
    leak: float = math.nan
    # Observation of that viewer, such as "single messages"; `NO_MESSAGES` without messages.
    view: str = ""
    links: float = math.nan  # mean number at T, on the meters that are priced
    trust: str = ""  # who is trusted with what, in a few words

    @property
    def is_bounded(self) -> bool:
        """Whether there are messages and an epsilon covers them."""
        return math.isfinite(self.leak) and self.view != NO_MESSAGES

    @property
    def has_open_actions(self) -> bool:
        """Whether actions have no bound while messages, if any, have one."""
        return self.trust.endswith(_OPEN_ACTIONS)


def read_cost(data: xr.Dataset) -> Cost:
    """Returns the cost of one configuration, from curves or a summary."""
    return read_exposure(data)._replace(links=_average_links(data))


def read_exposure(data: xr.Dataset) -> Cost:
    """Returns leak, view and trust of `read_cost`, without the links.

    ``data`` is a result of one configuration, or a row of its table of final values.
    """
    rows = _select_rows(data)
    if not rows:
        return Cost()
    messages = [(row, _read_leak(data, row)) for row in rows if row["observation"] != "actions"]
    unbounded = (
        math.isinf(_read_leak(data, row)) for row in rows if row["observation"] == "actions"
    )
    actions = _OPEN_ACTIONS * any(unbounded)
    if not messages:
        return Cost(0.0, NO_MESSAGES, trust=f"nobody: nothing is told{actions}")
    worst, leak = max(messages, key=lambda pair: max(_list_epsilons(pair[0])))
    view = str(worst["observation"])
    if math.isinf(leak):
        # Without noise somebody has to be trusted, whatever the algorithm is made for.
        viewers = dict.fromkeys(
            row.get("viewer", "") for row, epsilon in messages if math.isinf(epsilon)
        )
        trust = f"{' and '.join(viewers)}, with {view}" if all(viewers) else f"whoever sees {view}"
        return Cost(leak, view, trust=trust)
    secure = all(row["observation"].startswith(_SUMMED) for row, _ in messages)
    return Cost(leak, view, trust=(_SECURE if secure else _MESSAGE) + actions)


def _list_epsilons(row: Record) -> set[float]:
    """Returns pure epsilons; up to the usual delta if the noise has none."""
    epsilons = set()
    for epsilon, over, *scale in row["leaks"]:
        pure = math.inf if epsilon is None else float(epsilon)
        if epsilon is None and len(scale) == 1:
            pure = epsilon_at(pure, min(over, 1), DELTA, row["law"], tuple(scale))
        epsilons.add(pure)
    return epsilons


def _read_leak(data: xr.Dataset, row: Record) -> float:
    """Returns the epsilon of a row of the ledger for one configuration."""
    least, most = min(_list_epsilons(row)), max(_list_epsilons(row))
    if least < most:  # several configurations: the coordinate has the epsilon of this one
        label = _read_labels(data).get("epsilon_message", data.attrs.get("epsilon_message"))
        most = max(math.inf if label == "none" else _parse_number(label), least)
    return most


def _parse_number(value: str | float | None) -> float:
    """Returns a label as a number; NaN for a text that is none."""
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        return math.nan


def _select_rows(data: xr.Dataset) -> list[Record]:
    """Returns the rows of a ledger that are about one configuration; [] where that is unknown.

    A sweep has one ledger: its rows name their algorithm, and the swept values that they are about.
    """
    rows, labels = read_rows(data.attrs.get("ledger")), _read_labels(data)
    if len({row.get("title", "") for row in rows}) > 1:
        owner = collect_algorithms().get(_read_algorithm(data))
        rows = [row for row in rows if owner and row["title"] == (owner.title or owner.name)]
    matches = [_is_about(row.get("where", ""), labels) for row in rows]
    return (
        []
        if None in matches
        else [row for row, is_match in zip(rows, matches, strict=True) if is_match]
    )


def _read_labels(data: xr.Dataset) -> dict[str, str | float]:
    """Returns the swept values of one configuration."""
    return {str(name): x.values.item() for name, x in data.coords.items() if not x.ndim}


def _read_algorithm(data: xr.Dataset) -> str:
    """Returns the name of a swept algorithm; "" where none is swept."""
    label = _read_labels(data).get("algorithm", "")
    entry = parse_study(data).get("algorithm", label) if label else ""
    return str(entry.get("algorithm", "")) if isinstance(entry, dict) else str(entry)


def _is_about(condition: str, labels: Mapping[str, str | float]) -> bool | None:
    """Tells whether words such as "epsilon 0.5 or 1" are about these labels; None for unknown."""
    if not condition:
        return True
    # Labels may have commas, but not before the name of another parameter.
    names = "|".join(map(re.escape, labels)) or "$^"
    pieces = re.split(rf"(?:^|, )({names}) ", condition)
    if pieces[0] or len(pieces) < 3:
        return None
    values = [part.split(" or ") for part in pieces[2::2]]
    # Files may store a whole number as a real one.
    return all(
        any(
            str(labels[name]) == text or _parse_number(labels[name]) == _parse_number(text)
            for text in texts
        )
        for name, texts in zip(pieces[1::2], values, strict=True)
    )


def find_algorithm(data: xr.Dataset) -> type[Algorithm] | None:
    """Returns the algorithm of one configuration; None where it is not known here."""
    return collect_algorithms().get(_read_algorithm(data) or str(data.attrs.get("algorithm", "")))


def read_setting(data: xr.Dataset, name: str, default: object) -> object:
    """Returns the value of a parameter of one configuration: a number, a text, or the default.

    Results write down no default. A number that is none, such as no round budget, is None.
    """
    labels, settings = _read_labels(data), json_attr(data, "settings")
    for dim, by_label in json_attr(data, "settings_by").items():
        settings |= by_label.get(str(labels.get(dim)), {})
    if name not in {*labels, *settings}:
        return default
    # The words of a setting end with its value.
    value = labels.get(name, settings.get(name, "").rpartition(" = ")[2].replace(",", ""))
    number = _parse_number(value)
    return None if value == "none" else value if math.isnan(number) else number


def _average_links(data: xr.Dataset) -> float:
    """Returns the mean number of links at T that have a price; NaN if it is not known."""
    name = next((name for name in ("links", "links_mean") if name in data), "")
    if not name or not {"priced", "side"} <= {*data.coords}:
        return math.nan
    last = data[name].isel(time=-1, missing_dims="ignore")
    if "seed" in last.dims:
        seeds = int(data["seeds"]) if "seeds" in data else last.sizes["seed"]
        last = last.isel(seed=slice(seeds)).mean("seed")
    return float(np.asarray(last.values)[is_priced(data)].sum())


def write_leak(cost: Cost) -> str:
    """Writes a leak for a cell of a table: "50", "no bound", "nothing"; "" for unknown."""
    if cost.view == NO_MESSAGES:
        return "nothing"
    if math.isnan(cost.leak):
        return ""
    return "no bound" if math.isinf(cost.leak) else f"{cost.leak:.4g}"


def find_shared_view(costs: Iterable[Cost | Participant]) -> str:
    """Returns what is seen wherever the leak of a `Cost` or `Participant` is a number, or ""."""
    views = {cost.view for cost in costs if cost.is_bounded}
    return views.pop() if len(views) == 1 else ""


def write_leak_heading(view: str, start: str = "leak ε") -> str:
    """Returns the heading of a column of leaks, which names the view that all of them share."""
    return start + f" of {view}" * bool(view)


def write_leak_cell(cost: Cost, view: str) -> str:
    """Writes a leak for a column whose heading names a view."""
    return add_view(write_leak(cost), cost, view)


def add_view(leak: str, cost: Cost | Participant, view: str) -> str:
    """Writes a leak with what is seen, where that is another view than the one that is named."""
    return f"{leak} ({cost.view})" if cost.is_bounded and cost.view != view else leak


def communication_cost(
    data: xr.Dataset, server_price: float, peer_price: float, meter: str | None = None
) -> xr.DataArray:
    """Returns C(T) = c1 x server links + c2 x peer links, cumulative over time (the paper's eq. 2).

    Args:
        data: From `simulate` or `sweep`.
        server_price: c1, of an agent-server link.
        peer_price: c2, of an agent-agent link.
        meter: Which peer meter counts: "bound" or "used" for `ddp_mab` (default "bound", the
            paper's; with gossip "pairs", which "used" equals), "edges" or "sac" for `hdp_mab`
            (default "edges", which alone fits the paper's figure 11).

    Raises:
        ValueError: If a price is negative or the meter is not one of the run's.

    Example:
        Every completed round costs five links to the server, at 2 each:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> cost = fmab.communication_cost(data, server_price=2, peer_price=1)
        >>> bool((cost[:, -1] == 10 * data.rounds_made).all())
        True
    """
    server_price = price("server_price", server_price)
    peer_price = price("peer_price", peer_price)
    if not isinstance(data, xr.Dataset) or "links" not in data:
        refuse("data", type(data).__name__, "a result with links", "pass what simulate returned")
    weights = list_prices(data, server_price, peer_price, meter)
    cost = (data.links * weights).sum("meter").rename("communication_cost")
    peers = data.meter.values[(data.side == "peer").values & (weights != 0).values]
    return cost.assign_attrs(
        long_name="communication cost", units="price", meter=" / ".join(map(str, peers))
    )


def list_prices(
    data: xr.Dataset, server_price: float, peer_price: float, meter: str | None = None
) -> xr.DataArray:
    """Returns the price of a link on each meter; arguments as in `communication_cost`."""
    peer = (data.side == "peer").values
    is_counted = data.priced.values & peer
    if meter is not None:
        peer_meters = data.meter.values[peer].tolist()
        allowed = " or ".join(map(repr, peer_meters)) or "left out: agents build no links"
        choice("meter", meter, peer_meters, "choose one of this run's meters", allowed)
        is_counted = data.meter.values == meter
    link_prices = np.where(peer, peer_price * is_counted, server_price * 1.0)
    return xr.DataArray(link_prices, {"meter": data.meter}, ("meter",)).drop_vars("meter")
