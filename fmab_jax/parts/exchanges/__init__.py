"""Exchanges, one file each: a table from hop distances.

The paper's structures are one elimination loop with four exchanges. Each is computed once on the
host; the loops never read a graph. A new exchange is a function that returns an `Exchange`.
"""

from fmab_jax.parts.exchanges.flooding import flooding as flooding
from fmab_jax.parts.exchanges.flooding import plain_flooding as plain_flooding
from fmab_jax.parts.exchanges.gossip import gossip as gossip
from fmab_jax.parts.exchanges.sinks import sinks as sinks
from fmab_jax.parts.exchanges.table import PEER as PEER
from fmab_jax.parts.exchanges.table import SERVER as SERVER
from fmab_jax.parts.exchanges.table import Exchange as Exchange
from fmab_jax.parts.exchanges.table import MessageCounts as MessageCounts
from fmab_jax.parts.exchanges.table import Meter as Meter
from fmab_jax.parts.exchanges.table import View as View
from fmab_jax.parts.exchanges.table import Viewer as Viewer
from fmab_jax.parts.exchanges.table import alone as alone
from fmab_jax.parts.exchanges.table import neighbours as neighbours
from fmab_jax.parts.exchanges.table import pooled as pooled
from fmab_jax.parts.exchanges.table import reporting_agents as reporting_agents
from fmab_jax.parts.exchanges.table import server as server
