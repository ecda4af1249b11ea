"""Exchanges as tables: weights of agents, waits, links of a round, and views of messages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from fmab_jax.errors import array_of, choice, count, flag, format_quantity, real, refuse

AGENTS_MAX = 10_000_000
"""Most agents of an exchange without a graph."""

_MOST = 2**53


class Meter(NamedTuple):
    """One way to count the links of a round.

    Attributes:
        name: Label in results.
        side: "server" for links between agents and a server, "peer" for links between agents.
        priced: Whether the communication cost counts it by default; of several meters of the same
            links, one.
        words: Description of the links.
    """

    name: str
    side: Literal["server", "peer"]
    priced: bool
    words: str


SERVER = Meter("server", "server", True, "agent-server links")
PEER = Meter("peer", "peer", True, "agent-agent links")


class Viewer(StrEnum):
    """Who sees messages, sums or actions; its text is for people."""

    SERVER = "the server"
    AGENTS = "the agents"
    EVERY_AGENT = "every agent"
    NEIGHBOURS = "neighbours"
    RANDOM_NEIGHBOUR = "one random neighbour"
    SINKS = "sinks, and agents that pass on"
    SHARER = "an agent"
    """An agent that knows its share of a secure sum's noise, and sees the resulting actions."""
    COALITION = "agents together"
    ANYBODY = "anybody"
    RECEIVERS = "anybody who gets messages"
    WATCHERS = "anybody who sees actions"
    OUTSIDER = "an outsider who sees actions"
    """A viewer of actions without a share in the noise that hides them."""


def check_viewer(field: str, value: object) -> Viewer:
    """Returns a viewer, or that of a text; refuses anything else."""
    return Viewer(choice(field, value, [x.value for x in Viewer], "choose who it is"))


class View(NamedTuple):
    """A view of a round: the viewer, and the messages that it sees.

    Attributes:
        viewer: A `Viewer`, or its text.
        over: Number of agents in the smallest sum of messages that the viewer sees; 1 if it sees
            single messages.
        is_member: Whether the viewer is an agent of that sum, and can subtract its own
            message.
        observation: What the viewer sees, in words, if that is no single message although ``over``
            is 1.
    """

    viewer: Viewer
    over: int
    is_member: bool = False
    observation: str = ""


class MessageCounts(NamedTuple):
    """The messages of one round of GIS (Alg. 2), which ends when the last agent is complete.

    Attributes:
        adv: An agent that received data in the slot before advertises them to each neighbour.
        req: An agent requests missing data once, from the lowest-numbered neighbour that has them.
        data: The answers, one for each request.
    """

    adv: int
    req: int
    data: int


@dataclass(frozen=True, eq=False)
class Exchange:
    """One exchange as a table; all link counts are per completed round.

    Attributes:
        name: Name of the exchange, for people.
        agents: M.
        reporting: N, the agents that enter a round's aggregate; S, C and the noise use it.
        weights: [agent] aggregation weights w_i in [0, 1], a read-only array, sum 1, as if all
            agents report; None for 1/M each. If only N < M agents report, each of them weighs 1/N.
            Without communication each agent has weight 1 on itself.
        alone: Whether agents never communicate.
        wait: t_delay, slots between an epoch's end and its elimination.
        links: Pairs of a meter and its links of a round.
        diameter: Largest diameter d_G of the graph or the components, hops.
        sizes: Component sizes M_q of sinks, in the order of `sinks`.
        sinks: Sink agent of each component, as an agent in 0..M-1.
        vectors: Vectors on all links of a round together, of one number per reported arm; each hop
            of a vector counts.
        numbers: Single numbers on all links of a round besides.
        views: Views of a round, a `View` each.
        exact: Whether every agent acts on the exact weighted mean. Then the noise of all agents is
            in every decision.
        ledger: The messages of a round of GIS or SAC; None for any other exchange.

    Example:
        Agents 0 to 3 send to a server; agent 4 sends to agent 3, which passes it on:

        >>> import fmab_jax as fmab
        >>> from fmab_jax.parts.exchanges import SERVER, Meter
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
    links: Sequence[tuple[Meter, int]] = ()
    diameter: int = 0
    sizes: tuple[int, ...] = ()
    sinks: tuple[int, ...] = ()
    vectors: int = 0
    numbers: int = 0
    views: Sequence[View] = ()
    exact: bool = True
    ledger: MessageCounts | None = None

    def __post_init__(self) -> None:
        """Checks the table, and makes the weights read-only, so that it cannot change.

        Raises:
            ValueError: If an entry is out of range.
        """
        if not isinstance(self.name, str) or not self.name:
            refuse("exchange.name", self.name, "a text", "name the exchange, for people")
        ranges = {"agents": (1, AGENTS_MAX), "reporting": (1, self.agents)}
        for name in ("agents", "reporting", "wait", "diameter", "vectors", "numbers"):
            low, high = ranges.get(name, (0, _MOST))
            value = count(f"exchange.{name}", getattr(self, name), low, high, f"give {name}")
            self._set(name, value)
        for name in ("alone", "exact"):
            flag(f"exchange.{name}", getattr(self, name), "write True or False")
        self._set("weights", self._checked_weights())
        self._set("links", self._checked_links())
        self._set("views", self._checked_views())

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _checked_weights(self) -> Float[np.ndarray, " agent"]:
        values = np.full(self.agents, 1 / self.agents) if self.weights is None else self.weights
        allowed = f"an array of {format_quantity(self.agents, 'number')} in [0, 1], 1 in sum"
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

    def _checked_links(self) -> tuple[tuple[Meter, int], ...]:
        links: dict[str, tuple[Meter, int]] = {}
        for pair in self.links if isinstance(self.links, (tuple, list)) else [self.links]:
            # From NumPy 2.5 on an array is a sequence, even one without a length.
            match pair if isinstance(pair, (tuple, list)) else None:
                case (Meter(name=str(name)) as meter, number) if name and name not in links:
                    choice(f"{name}.side", meter.side, ("server", "peer"), "say what it links")
                    flag(f"{name}.priced", meter.priced, "write True or False")
                    number = count("exchange.links", number, 0, _MOST, "give links of a round")
                    links[name] = meter, number
                case _:
                    allowed = "pairs of a Meter, each with a name of its own, and its links"
                    refuse("exchange.links", self.links, allowed, "see help(fmab_jax.Exchange)")
        return tuple(links.values())

    def _checked_views(self) -> tuple[View, ...]:
        views, remedy = [], "make a View of some of the agents"
        for view in self.views if isinstance(self.views, (tuple, list)) else [self.views]:
            if not isinstance(view, View):
                refuse("exchange.views", view, "Views", remedy)
            flag("exchange.views.is_member", view.is_member, "write True or False")
            over = count("exchange.views", view.over, 1, self.agents, remedy)
            viewer = check_viewer("exchange.views.viewer", view.viewer)
            views.append(view._replace(viewer=viewer, over=over))
        return tuple(views)

    @property
    def uniform(self) -> bool:
        """Whether every weight is 1/M."""
        return bool(np.all(self.weights == 1 / self.agents))

    def on(self, meter: str) -> int:
        """Returns the links of a round on a meter; 0 on one that it does not have."""
        return {label.name: number for label, number in self.links}.get(meter, 0)


def checked_agents(agents: object) -> int:
    """Returns M, refused outside [1, 1e7]."""
    return count("agents", agents, 1, AGENTS_MAX, "choose the number of agents")


def alone(agents: int) -> Exchange:
    """Returns the exchange of M agents that never communicate."""
    return Exchange("alone", checked_agents(agents), 1, alone=True)


def neighbours(
    name: str,
    agents: int,
    links: Sequence[tuple[Meter, int]],
    vectors: int = 0,
    numbers: int = 0,
    viewer: Viewer = Viewer.NEIGHBOURS,
) -> Exchange:
    """Returns the exchange of agents that all report in a round, without waits.

    Args:
        name: Name of the exchange, for people.
        agents: M.
        links: As in `Exchange`, like the next two.
        vectors: Vectors of one number per arm.
        numbers: Single numbers.
        viewer: The receivers of a message.
    """
    views = (View(viewer, 1),)
    return Exchange(
        name, agents, agents, links=links, vectors=vectors, numbers=numbers, views=views
    )


def server(agents: int, participation: float | np.floating = 1.0) -> Exchange:
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
        views=(View(Viewer.SERVER, 1), View(Viewer.AGENTS, reporting, is_member=True)),
    )


def pooled(agents: int) -> Exchange:
    """Returns the exchange of a server that gets one reward of every agent in every slot.

    The server chose the arm: a link carries a single number.

    Args:
        agents: M in [1, 1e7].

    Raises:
        ValueError: If ``agents`` is outside its range.
    """
    return replace(server(agents), vectors=0, numbers=agents)


def reporting_agents(agents: int, participation: float | np.floating) -> int:
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
