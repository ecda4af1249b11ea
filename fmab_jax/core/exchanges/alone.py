"""Nobody hears anybody."""

from __future__ import annotations

from fmab_jax.core.exchanges.table import Exchange, checked_agents


def alone(agents: int) -> Exchange:
    """Returns the exchange of agents that never communicate: N = 1, no links, no wait.

    Args:
        agents: M in [1, 1e7].

    Raises:
        ValueError: If ``agents`` is outside its range.
    """
    return Exchange("alone", checked_agents(agents), 1, alone=True)
