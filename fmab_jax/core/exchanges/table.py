"""The table that an exchange is: who is heard, how long agents wait, which links a round builds."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from fmab_jax.errors import array_of, count, flag, refuse

AGENTS_MAX = 10_000_000
"""Most agents of an exchange without a graph."""

_MOST = 2**53


class Meter(NamedTuple):
    """One way to count the links of a round.

    Attributes:
        name: Its label in results.
        side: "server" for links between agents and a server, "peer" for links between agents.
        priced: Whether the communication cost counts it unless another meter is asked for; of
            several meters of the same links, one.
        words: What it counts.
    """

    name: str
    side: Literal["server", "peer"]
    priced: bool
    words: str


SERVER = Meter("server", "server", True, "agent-server links")
PEER = Meter("peer", "peer", True, "agent-agent links")


class View(NamedTuple):
    """A view of a round: whose it is, and what it shows.

    Attributes:
        who: Such as "the server".
        over: Agents that the smallest sum of messages that they see is over; 1 where they see
            single messages.
        inside: Whether they are agents of the sum themselves, who can take out their own message.
        what: What they see where ``over`` is 1.
    """

    who: str
    over: int
    inside: bool = False
    what: str = "single messages"


class Ledger(NamedTuple):
    """The messages of one round of GIS (Alg. 2), which goes on until the last agent is complete.

    Attributes:
        adv: In each slot, whoever obtained something in the slot before names it to each neighbour.
        req: Whoever lacks something asks the lowest-numbered neighbours naming it, once each.
        data: The answers, one for each request.
    """

    adv: int
    req: int
    data: int


@dataclass(frozen=True, eq=False)
class Exchange:
    """One exchange as a table; all link counts are per completed round.

    Attributes:
        name: Which exchange, for people.
        agents: M.
        reporting: N, the agents that enter a round's aggregate; S, C and the noise use it.
        weights: [agent] aggregation weights w_i in [0, 1], a read-only array, sum 1, as if
            everybody reported; None for 1/M each. A server that hears N < M agents puts 1/N on the
            drawn ones instead. Alone, nothing crosses agents: each puts 1 on itself.
        alone: Whether nobody hears anybody.
        wait: t_delay, slots between an epoch's end and its elimination.
        links: Pairs of a meter and its links of a round.
        diameter: Largest diameter d_G of the graph or the components, hops.
        sizes: Component sizes M_q of sinks, in agent order.
        sinks: Sink agent of each component, as an agent in 0..M-1.
        vectors: Vectors that all links of a round carry together, of one number for each arm that
            is heard of; a vector that is passed on counts again.
        numbers: Single numbers that all links of a round carry besides.
        views: Who sees what of a round, a `View` each.
        exact: Whether every agent acts on the mean with these weights, and not on one that is near
            it: then the noise of all agents is in whatever is decided.
        ledger: The messages of a round of GIS or SAC, a `Ledger`; None for any other exchange.

    Example:
        Agents 0 to 3 send to a server; agent 4 sends to agent 3, which passes it on:

        >>> import fmab_jax as fmab
        >>> from fmab_jax.core.exchanges import SERVER, Meter
        >>> relay = Meter("relay", "peer", priced=True, words="agents to their relays")
        >>> exchange = fmab.Exchange(
        ...     "relayed", agents=5, reporting=5, wait=1,
        ...     links=((SERVER, 4), (relay, 1)),
        ... )
        >>> exchange.on("server"), exchange.on("relay"), exchange.uniform
        (4, 1, True)
    """

    name: str
    agents: int
    reporting: int
    weights: Any = None
    alone: bool = False
    wait: int = 0
    links: Any = ()
    diameter: int = 0
    sizes: tuple[int, ...] = ()
    sinks: tuple[int, ...] = ()
    vectors: int = 0
    numbers: int = 0
    views: Any = ()
    exact: bool = True
    ledger: Ledger | None = None

    def __post_init__(self) -> None:
        """Checks the table, and makes the weights read-only, so that it cannot change.

        Raises:
            ValueError: If an entry is out of range.
        """
        if not isinstance(self.name, str) or not self.name:
            refuse("exchange.name", self.name, "a text", "name the exchange, for people")
        self._set("agents", _whole("agents", self.agents, 1, AGENTS_MAX))
        self._set("reporting", _whole("reporting", self.reporting, 1, self.agents))
        for name in ("wait", "diameter", "vectors", "numbers"):
            self._set(name, _whole(name, getattr(self, name), 0, _MOST))
        for name in ("alone", "exact"):
            flag(f"exchange.{name}", getattr(self, name), "write True or False")
        self._set("weights", self._checked_weights())
        links, views = _list_of("links", self.links), _list_of("views", self.views)
        allowed = "pairs of a Meter, each named once, and its links of a round, whole numbers"
        remedy = "make a Meter of two texts, a side and a truth value"
        names = [pair[0].name for pair in links if _is_link(pair)]
        if len(set(names)) < len(links):
            refuse("exchange.links", self.links, allowed, remedy)
        self._set("links", tuple((meter, int(number)) for meter, number in links))
        for view in views:
            if not _is_view(view, self.agents):
                allowed = "Views of texts, a truth value and a whole number of agents"
                refuse("exchange.views", view, allowed, "make a View")
        self._set("views", tuple(view._replace(over=int(view.over)) for view in views))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _checked_weights(self) -> Float[np.ndarray, " agent"]:
        values = uniform_weights(self.agents) if self.weights is None else self.weights
        allowed = f"an array of {self.agents} numbers in [0, 1], 1 in sum"
        remedy = "give 1/M for every agent"
        weights = array_of("exchange.weights", values, AGENTS_MAX, allowed, remedy)
        weights = weights.astype(np.float64, copy=False)
        # Written so that NaN fails every comparison.
        if weights.shape != (self.agents,) or not (
            weights.min() >= 0.0 and weights.max() <= 1.0 and abs(weights.sum() - 1.0) <= 1e-9
        ):
            refuse("exchange.weights", weights, allowed, remedy)
        weights.setflags(write=False)
        return weights

    @property
    def uniform(self) -> bool:
        """Whether every weight is 1/M."""
        return bool(np.all(self.weights == 1 / self.agents))

    def on(self, meter: str) -> int:
        """Returns the links of a round on a meter; 0 on one that it does not have."""
        return {each.name: number for each, number in self.links}.get(meter, 0)


def _is_whole(value: Any, low: int, high: int) -> bool:
    """Tells whether it is a whole number of a table; 3.0 is none, as it is no index."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.timedelta64))
    return whole and low <= value <= high


def _whole(field: str, value: Any, low: int, high: int) -> int:
    if not _is_whole(value, low, high):
        refuse(f"exchange.{field}", value, f"an int in [{low:,}, {high:,}]", f"give {field}")
    return int(value)


def _list_of(field: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (tuple, list)):
        refuse(f"exchange.{field}", value, "a tuple", "give a tuple")
    return tuple(value)


def _is_link(pair: Any) -> bool:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], Meter):
        return False
    name, side, priced, words = pair[0]
    texts = isinstance(name, str) and name != "" and isinstance(words, str)
    fits = side in ("server", "peer") and isinstance(priced, bool)
    return texts and fits and _is_whole(pair[1], 0, _MOST)


def _is_view(view: Any, agents: int) -> bool:
    if not isinstance(view, View):
        return False
    texts = isinstance(view.who, str) and isinstance(view.what, str)
    return texts and isinstance(view.inside, bool) and _is_whole(view.over, 1, agents)


def uniform_weights(agents: int) -> Float[np.ndarray, " agent"]:
    """Returns 1/M for every agent."""
    return np.full(agents, 1 / agents)


def checked_agents(agents: Any) -> int:
    """Returns M, refused outside [1, 1e7]."""
    return count("agents", agents, 1, AGENTS_MAX, "choose the number of agents")
