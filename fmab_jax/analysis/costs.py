"""Reads what a run spends for its regret: leaks, view, links, price and trust."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.analysis.accountant import DELTA, epsilon_at, leak
from fmab_jax.analysis.words import write_number
from fmab_jax.errors import choice, price, refuse
from fmab_jax.parameters import VIEWS, ViewKind
from fmab_jax.run.attributes import parse_study
from fmab_jax.run.facts import Ledger, read_ledger
from fmab_jax.sampling.shapes import Record

NO_MESSAGES = "nothing is told"
"""The observation of a run without messages."""

LEAK_NOTE = (
    "Leak: ε of one reward in all that a run sends, not in actions, against whoever sees most; "
    "(ε, δ) where it holds only up to δ"
)
"""What a column of leaks says."""

LEAKS = tuple(f"leak_{view}{end}" for view in VIEWS for end in ("", "_delta"))
"""Variables of leaks: the epsilon of each view, and the delta at which it holds."""

_MESSAGE = "nobody: a message leaks at most its epsilon"
_SECURE = "secure aggregation: nobody sees one agent's message"


class Cost(NamedTuple):
    """Regret of a run and what it spends for it; NaN or "" where the result does not say.

    Attributes:
        leak: Epsilon of one reward in what is sent, over the whole run, against the viewer who
            learns most; infinite for no bound. The ledger also covers actions and viewers who know
            a share of a noise.
        delta: Up to which it holds; 0 for pure differential privacy.
        observation: What that viewer sees, such as "single messages"; `NO_MESSAGES` without
            messages.
        trust: Who is trusted with what, in a few words.
        has_open_actions: Whether actions have no bound while messages, if any, have one.
        links: Mean number at T, of those that the communication cost counts.
        label: Name of the run.
        seeds: How many it has.
        mean: Mean regret at T over the seeds.
    """

    leak: float = math.nan
    delta: float = math.nan
    observation: str = ""
    trust: str = ""
    has_open_actions: bool = False
    links: float = math.nan
    label: str = ""
    seeds: int = 0
    mean: float = math.nan

    @property
    def is_bounded(self) -> bool:
        """Whether there are messages and an epsilon covers them."""
        return self.observation not in ("", NO_MESSAGES) and math.isfinite(self.leak)


def read_exposure(data: xr.Dataset) -> Cost:
    """Returns leak, observation and trust of one configuration, from its result or its table."""
    if not {*LEAKS[:2]} <= {*data.variables}:
        return Cost()
    cost = Cost(float(data.leak_messages), float(data.leak_messages_delta))
    ledger = read_cell_ledger(data)
    if ledger is None:
        return cost
    rows = ledger.rows
    actions = leak(rows, ViewKind.ACTIONS)
    is_open = cost.leak < math.inf and actions is not None and math.isinf(actions.epsilon)
    suffix = "; without a bound, whoever sees actions" * is_open
    worst = leak(rows, ViewKind.MESSAGES)
    if worst is None or worst.row is None:
        trust = f"nobody: {NO_MESSAGES}{suffix}"
        return cost._replace(observation=NO_MESSAGES, trust=trust, has_open_actions=is_open)
    seen = [row for row in rows if row.view is not ViewKind.ACTIONS and not row.is_one_round]
    cost = cost._replace(observation=worst.row.observation)
    if math.isinf(cost.leak):
        # Without noise somebody has to be trusted, whatever the algorithm is made for.
        viewers = dict.fromkeys(
            str(row.viewer) for row in seen if math.isinf(epsilon_at(row, DELTA))
        )
        return cost._replace(trust=f"{' and '.join(viewers)}, with {cost.observation}")
    is_secure = all(row.view is ViewKind.SUM for row in seen)
    trust = (_SECURE if is_secure else _MESSAGE) + suffix
    return cost._replace(trust=trust, has_open_actions=is_open)


def read_cell_ledger(data: xr.Dataset) -> Ledger | None:
    """Returns the ledger of one configuration; None if it does not have the leak in messages.

    Then it is that of another run, as where runs were joined, or a plug-in has changed since; or it
    is NaN, as where a join has no run.
    """
    if "ledger" not in data.coords or not isinstance(text := data.ledger.values[()], str):
        return None
    ledger = read_ledger(text)
    messages = leak(ledger.rows, ViewKind.MESSAGES) or (math.nan, math.nan)
    stated = float(data.leak_messages), float(data.leak_messages_delta)
    # The last digits differ between machines.
    is_same = math.isclose(messages[0], stated[0], rel_tol=1e-9) and messages[1] == stated[1]
    return ledger if is_same else None


def read_parameters(data: xr.Dataset) -> Record:
    """Returns the ``algorithm`` of one configuration, by name, and what its study says of it."""
    study = parse_study(data)
    entry = study.get("algorithm", data.attrs.get("algorithm", ""))
    return study | (entry if isinstance(entry, dict) else {"algorithm": str(entry)})


def write_epsilon(epsilon: float, delta: float) -> str:
    """Writes an epsilon, with the delta at which it holds unless that is 0."""
    if math.isinf(epsilon):
        return "no bound"
    return f"({epsilon:.4g}, {write_number(delta)})" if delta else f"{epsilon:.4g}"


def write_leak(cost: Cost, shared: str = "", *, in_words: bool = False) -> str:
    """Writes a leak: "50", "(1.71, 10⁻⁶)", "no bound", "nothing"; "" where it is not known.

    Args:
        cost: What a run spends.
        shared: The observation that all runs share; another one stands in brackets.
        in_words: For a sentence: "ε = 50", "(ε, δ) = (1.71, 10⁻⁶)".
    """
    if math.isnan(cost.leak):
        return ""
    if cost.observation == NO_MESSAGES:
        return "nothing"
    text = write_epsilon(cost.leak, cost.delta)
    if in_words and cost.is_bounded:
        text = f"{'(ε, δ)' if cost.delta else 'ε'} = {text}"
    return (
        f"{text} ({cost.observation})" if cost.is_bounded and cost.observation != shared else text
    )


def find_shared_observation(costs: Iterable[Cost]) -> str:
    """Returns what is seen wherever a leak is a number, in words; "" where it differs."""
    observations = {cost.observation for cost in costs if cost.is_bounded}
    return observations.pop() if len(observations) == 1 else ""


def write_leak_heading(costs: Sequence[Cost]) -> str:
    """Returns the heading of a column of leaks, which says what all of their viewers see."""
    symbol = "(ε, δ)" if any(cost.delta > 0.0 for cost in costs) else "ε"
    shared = find_shared_observation(costs)
    return f"leak {symbol}" + f" of {shared}" * bool(shared)


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
        >>> problem = fmab.Problem(agents=5, arms=10)
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
