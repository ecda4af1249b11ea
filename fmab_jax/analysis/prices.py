"""The price of communication, at prices of one's own."""

from __future__ import annotations

import numpy as np
import xarray as xr

from fmab_jax.errors import choice, price, refuse


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
    weights = prices(data, server_price, peer_price, meter)
    cost = (data.links * weights).sum("meter").rename("communication_cost")
    peers = data.meter.values[(data.side == "peer").values & (weights != 0).values]
    return cost.assign_attrs(
        long_name="communication cost", units="price", meter=" / ".join(map(str, peers))
    )


def prices(
    data: xr.Dataset, server_price: float, peer_price: float, meter: str | None = None
) -> xr.DataArray:
    """Returns the price of a link on each meter; arguments as in `communication_cost`."""
    peer = (data.side == "peer").values
    counted = data.priced.values & peer
    if meter is not None:
        known = data.meter.values[peer].tolist()
        allowed = " or ".join(map(repr, known)) or "left out: agents build no links"
        choice("meter", meter, known, "choose one of this run's meters", allowed)
        counted = data.meter.values == meter
    each = np.where(peer, peer_price * counted, server_price * 1.0)
    return xr.DataArray(each, {"meter": data.meter}, ("meter",)).drop_vars("meter")
