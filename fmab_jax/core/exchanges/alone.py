"""Nobody hears anybody."""

from __future__ import annotations

from fmab_jax.core.exchanges.table import Exchange, checked_agents, uniform_weights


def alone(agents: int) -> Exchange:
    """Returns the exchange of agents that never communicate: N = 1, no links, no wait.

    Args:
        agents: M in [1, 1e7].

    Raises:
        ValueError: If ``agents`` is outside its range.
    """
    agents = checked_agents(agents)
    return Exchange("alone", agents, 1, uniform_weights(agents), alone=True)
