"""Agents of a policy talk to whom they are beside, or to all others, without a server."""

from __future__ import annotations

from typing import Any

from fmab_jax.core.exchanges.table import Exchange, View


def neighbours(
    name: str,
    agents: int,
    links: Any,
    *,
    vectors: int = 0,
    numbers: int = 0,
    who: str = "neighbours",
) -> Exchange:
    """Returns the exchange of agents that all speak in a round, to be heard at once.

    Args:
        name: Which exchange, for people.
        agents: M.
        links: As in `Exchange`, like the next two.
        vectors: Of one number for each arm.
        numbers: Single ones.
        who: Gets a message.
    """
    return Exchange(
        name,
        agents,
        agents,
        links=links,
        vectors=vectors,
        numbers=numbers,
        views=(View(who, 1),),
    )
