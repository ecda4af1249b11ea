"""The table that an exchange is: who is heard, how long agents wait, which links a round builds."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from fmab_jax.errors import array_of, choice, count, flag, refuse

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


class Ledger(NamedTuple):
    """The messages of the agents of a graph in one round, counted one by one.

    A slot of GIS (Alg. 2) has three stages. ADV: every agent that obtained observations in the
    previous slot (before the first slot: its own) names them to each neighbour. REQ: every agent
    asks for each observation that it lacks once, from the lowest-numbered neighbour naming it, in
    one REQ per (agent, neighbour) pair. DATA: one DATA answers each REQ. No stage runs after the
    slot d_G in which the last agent is complete. Other protocols send DATA alone.
    """

    slots: int
    """Communication slots."""

    adv: int = 0
    """ADV messages."""

    req: int = 0
    """REQ messages."""

    data: int = 0
    """DATA messages: at most one for each slot, sender and receiver."""

    observations_advertised: int = 0
    """Observations named in all ADV messages together."""

    observations_sent: int = 0
    """Vectors carried by all DATA messages together; with GIS M (M - 1), each arrives once."""

    @property
    def control(self) -> int:
        """ADV and REQ messages."""
        return self.adv + self.req


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


@dataclass(frozen=True, eq=False)
class Exchange:
    """One exchange as a table; all link counts are per completed round.

    Attributes:
        name: Which exchange, for people.
        agents: M.
        reporting: N, the agents that enter a round's aggregate; S, C and the noise use it.
        weights: [agent] aggregation weights w_i in [0, 1], a read-only array, sum 1, as if
            everybody reported. A server that hears N < M agents puts 1/N on the drawn ones
            instead. Alone, nothing crosses agents: each puts 1 on itself.
        alone: Whether nobody hears anybody.
        wait: t_delay, slots between an epoch's end and its elimination.
        links: Pairs of a meter and its links of a round.
        diameter: Largest diameter d_G of the graph or the components, hops.
        sizes: Component sizes M_q of sinks, in agent order.
        sinks: Sink agent of each component, as an agent in 0..M-1.
        ledger: Message counts, a `Ledger`, where agents talk over a graph; else None.
        vectors: Vectors that all links of a round carry together, of one number for each arm that
            is heard of; a vector that is passed on counts again.
        numbers: Single numbers that all links of a round carry besides.
        views: Who sees what of a round, a `View` each.
        exact: Whether every agent acts on the mean with these weights, and not on one that is near
            it: then the noise of all agents is in whatever is decided.

    Example:
        Agents 0 to 3 send to a server; agent 4 sends to agent 3, which passes it on:

        >>> import numpy as np
        >>> import fmab_jax as fmab
        >>> from fmab_jax.core.exchanges import SERVER, Meter
        >>> relay = Meter("relay", "peer", priced=True, words="agents to their relays")
        >>> exchange = fmab.Exchange(
        ...     "relayed", agents=5, reporting=5, weights=np.full(5, 0.2), wait=1,
        ...     links=((SERVER, 4), (relay, 1)),
        ... )
        >>> exchange.on("server"), exchange.on("relay"), exchange.uniform
        (4, 1, True)
    """

    name: str
    agents: int
    reporting: int
    weights: Any
    alone: bool = False
    wait: int = 0
    links: Any = ()
    diameter: int = 0
    sizes: tuple[int, ...] = ()
    sinks: tuple[int, ...] = ()
    ledger: Any = None
    vectors: int = 0
    numbers: int = 0
    views: Any = ()
    exact: bool = True

    def __post_init__(self) -> None:
        """Checks the table, and makes the weights read-only, so that it cannot change.

        Raises:
            ValueError: If an entry is out of range.
        """
        if not isinstance(self.name, str) or not self.name:
            refuse("exchange.name", self.name, "a text", "name the exchange, for people")
        remedy = "give the number of agents"
        self._set("agents", _whole("agents", self.agents, 1, AGENTS_MAX, remedy))
        remedy = "give how many agents enter a round's aggregate"
        self._set("reporting", _whole("reporting", self.reporting, 1, self.agents, remedy))
        flag("exchange.alone", self.alone, "write True or False")
        flag("exchange.exact", self.exact, "write True or False")
        for name in ("wait", "diameter", "vectors", "numbers"):
            remedy = f"give {name} of a round"
            self._set(name, _whole(name, getattr(self, name), 0, _MOST, remedy))
        self._set("weights", self._checked_weights())
        self._set("links", self._checked_links())
        self._set("views", self._checked_views())
        for name, low, high in (("sizes", 1, self.agents), ("sinks", 0, self.agents - 1)):
            given = _several(name, getattr(self, name), "whole numbers", "give a tuple")
            remedy = "give one for each component"
            self._set(name, tuple(_whole(name, each, low, high, remedy) for each in given))
        if self.ledger is not None and not isinstance(self.ledger, Ledger):
            refuse("exchange.ledger", self.ledger, "a Ledger or None", "make a Ledger")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _checked_weights(self) -> Float[np.ndarray, " agent"]:
        allowed = f"an array of {self.agents} numbers in [0, 1], 1 in sum"
        remedy = "give 1/M for every agent"
        weights = array_of("exchange.weights", self.weights, AGENTS_MAX, allowed, remedy)
        weights = weights.astype(np.float64, copy=False)
        # Written so that NaN fails every comparison.
        if weights.shape != (self.agents,) or not (
            weights.min() >= 0.0 and weights.max() <= 1.0 and abs(weights.sum() - 1.0) <= 1e-9
        ):
            refuse("exchange.weights", weights, allowed, remedy)
        weights.setflags(write=False)
        return weights

    def _checked_links(self) -> tuple[tuple[Meter, int], ...]:
        allowed = "(Meter, links of a round) each"
        found: dict[str, tuple[Meter, int]] = {}
        for each in _several("links", self.links, allowed, "give a tuple of pairs"):
            pair = isinstance(each, (tuple, list)) and len(each) == 2
            if not pair or not isinstance(each[0], Meter):
                refuse("exchange.links", each, allowed, "make a Meter")
            meter = each[0]
            if not isinstance(meter.name, str) or not meter.name:
                refuse("exchange.links", meter, "meters with a name", "give a text")
            field = f"links[{meter.name}]"
            if meter.name in found:
                remedy = "sum its links, or name the second otherwise"
                refuse(f"exchange.{field}", meter.name, "a meter that is named once", remedy)
            choice(f"exchange.{field}.side", meter.side, ("server", "peer"), "say whose links")
            flag(f"exchange.{field}.priced", meter.priced, "write True or False")
            if not isinstance(meter.words, str):
                refuse(f"exchange.{field}.words", meter.words, "a text", "say what it counts")
            found[meter.name] = meter, _whole(field, each[1], 0, _MOST, "give links of a round")
        return tuple(found.values())

    def _checked_views(self) -> tuple[View, ...]:
        made = []
        for view in _several("views", self.views, "a tuple of Views", "make a View"):
            if not isinstance(view, View) or not isinstance(view.who, str):
                refuse("exchange.views", view, "a View whose who is a text", "make a View")
            field = f"views[{view.who}]"
            flag(f"exchange.{field}.inside", view.inside, "write True or False")
            if not isinstance(view.what, str):
                refuse(f"exchange.{field}.what", view.what, "a text", "say what they see")
            over = _whole(field, view.over, 1, self.agents, "give agents of a sum")
            made.append(view._replace(over=over))
        return tuple(made)

    @property
    def uniform(self) -> bool:
        """Whether every weight is 1/M."""
        return bool(np.all(self.weights == 1 / self.agents))

    def on(self, meter: str) -> int:
        """Returns the links of a round on a meter; 0 on one that it does not have."""
        return {each.name: number for each, number in self.links}.get(meter, 0)


def _whole(field: str, value: Any, low: int, high: int, remedy: str) -> int:
    """Returns a whole number of a table; 3.0 is none, as it is no index and no length."""
    if not isinstance(value, numbers.Integral):
        refuse(f"exchange.{field}", value, f"an int in [{low:,}, {high:,}]", remedy)
    return count(f"exchange.{field}", value, low, high, remedy)


def _several(field: str, value: Any, allowed: str, remedy: str) -> tuple[Any, ...]:
    if not isinstance(value, (tuple, list)):
        refuse(f"exchange.{field}", value, allowed, remedy)
    return tuple(value)


def uniform_weights(agents: int) -> Float[np.ndarray, " agent"]:
    """Returns 1/M for every agent."""
    return np.full(agents, 1 / agents)


def checked_agents(agents: Any) -> int:
    """Returns M, refused outside [1, 1e7]."""
    return count("agents", agents, 1, AGENTS_MAX, "choose the number of agents")
