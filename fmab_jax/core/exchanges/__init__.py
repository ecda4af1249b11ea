"""Exchanges, one file each: a table from hop distances.

The paper's structures are one elimination loop with four exchanges. Each is worked out once on the
host; the loops never look inside a graph. Another exchange is another function that returns an
`Exchange`.
"""

from fmab_jax.core.exchanges.alone import alone
from fmab_jax.core.exchanges.flooding import flooding
from fmab_jax.core.exchanges.gossip import gossip
from fmab_jax.core.exchanges.neighbours import neighbours
from fmab_jax.core.exchanges.plain_flooding import plain_flooding
from fmab_jax.core.exchanges.server import pooled, reporting_agents, server
from fmab_jax.core.exchanges.sinks import sinks
from fmab_jax.core.exchanges.table import PEER, SERVER, Exchange, Meter, View

__all__ = [
    "PEER",
    "SERVER",
    "Exchange",
    "Meter",
    "View",
    "alone",
    "flooding",
    "gossip",
    "neighbours",
    "plain_flooding",
    "pooled",
    "reporting_agents",
    "server",
    "sinks",
]
