"""A server hears some agents (section IV-B of arXiv 2111.01570)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from fmab_jax.core.exchanges.table import SERVER, Exchange, View, checked_agents
from fmab_jax.errors import real


def server(agents: int, participation: float | np.floating[Any] = 1.0) -> Exchange:
    """Returns the centralised exchange (section IV-B): N = ceil(p M) uploads, no wait.

    Args:
        agents: M in [1, 1e7].
        participation: p in (0, 1].

    Raises:
        ValueError: If an argument is outside its range.
    """
    reporting = reporting_agents(agents, participation)
    return Exchange(
        "server",
        checked_agents(agents),
        reporting,
        links=((SERVER, reporting),),
        vectors=reporting,
        views=(View("the server", 1), View("the agents", reporting, inside=True)),
    )


def pooled(agents: int) -> Exchange:
    """Returns the exchange of a server that hears one reward of every agent in every slot.

    The server knows the arm, since it told it: a link carries a single number.

    Args:
        agents: M in [1, 1e7].

    Raises:
        ValueError: If ``agents`` is outside its range.
    """
    return replace(server(agents), vectors=0, numbers=agents)


def reporting_agents(agents: int, participation: float | np.floating[Any]) -> int:
    """Returns N = ceil(p M), the agents that upload in each round.

    p is a rounded number: 0.07 * 100 is 7.000000000000001 and 0.1 + 0.2 is 0.30000000000000004,
    so a p that exceeds a whole number of agents by less than one part in 1e12 means that number.

    Args:
        agents: M in [1, 1e7].
        participation: p in (0, 1].

    Raises:
        ValueError: If an argument is outside its range.
    """
    agents = checked_agents(agents)
    remedy = "choose the fraction of agents that upload in each round"
    share = real("participation", participation, 0, 1, remedy, open_low=True)
    return max(math.ceil(share * agents * (1 - 1e-12)), 1)
