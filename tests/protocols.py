"""GIS and SAC played message by message: what the tests hold the package's tables against.

Nothing here is shared with the package: graphs are dicts of neighbour lists, every ADV, REQ, DATA
and every forwarded observation is a tuple in a list, and all counts are taken from those lists.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

Neighbours = dict[int, list[int]]


@dataclass
class Flood:
    """One GIS round: messages are (slot, sender, receiver, observations)."""

    slots: int = 0
    adv: list[tuple[int, int, int, tuple[int, ...]]] = field(default_factory=list)
    req: list[tuple[int, int, int, tuple[int, ...]]] = field(default_factory=list)
    data: list[tuple[int, int, int, tuple[int, ...]]] = field(default_factory=list)
    arrival: dict[tuple[int, int], int] = field(default_factory=dict)  # (origin, agent) -> slot

    def edge_slots(self) -> int:
        """Counts the edges that carry at least one DATA message, slot by slot."""
        return len({(slot, frozenset((a, b))) for slot, a, b, _ in self.data})

    def copies(self) -> Counter[tuple[int, int]]:
        """Counts how often each (observation, agent) was delivered."""
        return Counter((origin, to) for _, _, to, carried in self.data for origin in carried)


def flood(neighbours: Neighbours) -> Flood:
    """Runs GIS (Alg. 2) until every agent holds every observation."""
    log = Flood()
    held = {agent: {agent} for agent in neighbours}
    fresh = {agent: {agent} for agent in neighbours}
    while any(len(observations) < len(neighbours) for observations in held.values()):
        log.slots += 1
        # ADV: who obtained something in the previous slot names it to every neighbour.
        inbox = defaultdict(list)
        for sender, news in fresh.items():
            for receiver in neighbours[sender] if news else []:
                message = (log.slots, sender, receiver, tuple(sorted(news)))
                log.adv.append(message)
                inbox[receiver].append(message)
        # REQ: each missing observation is asked for once, of its lowest-numbered advertiser.
        asked = []
        for agent, messages in inbox.items():
            wanted = defaultdict(set)
            settled = set()
            for _, sender, _, named in sorted(messages, key=lambda message: message[1]):
                for origin in named:
                    if origin not in held[agent] and origin not in settled:
                        settled.add(origin)
                        wanted[sender].add(origin)
            for sender, origins in wanted.items():
                asked.append((log.slots, agent, sender, tuple(sorted(origins))))
        log.req += asked
        # DATA: each request is answered with what it asks for; it is held from the next slot on.
        answers = []
        for _, agent, sender, origins in asked:
            assert set(origins) <= held[sender], "asked somebody who does not hold it"
            answers.append((log.slots, sender, agent, origins))
        log.data += answers
        fresh = {agent: set() for agent in neighbours}
        for _, _, agent, origins in answers:
            fresh[agent] |= set(origins)
            for origin in origins:
                log.arrival[origin, agent] = log.slots
        for agent, news in fresh.items():
            held[agent] |= news
        assert any(fresh.values()), "nothing moves: the graph is not connected"
    return log


@dataclass
class Collection:
    """One SAC round in one component: forwards are (slot, sender, receiver, origin)."""

    sink: int
    slots: int = 0
    forwards: list[tuple[int, int, int, int]] = field(default_factory=list)


def collect(neighbours: Neighbours) -> Collection:
    """Finds the sink (Alg. 4) and forwards every observation to it, one hop a slot."""
    reach = {agent: max(_hops(neighbours, agent).values()) for agent in neighbours}
    log = Collection(min(neighbours, key=lambda agent: (reach[agent], agent)))
    left = _hops(neighbours, log.sink)
    place = {origin: origin for origin in neighbours}
    while any(agent != log.sink for agent in place.values()):
        log.slots += 1
        sent = []
        for origin, holder in place.items():
            if holder != log.sink:
                receiver = next(j for j in neighbours[holder] if left[j] < left[holder])
                sent.append((log.slots, holder, receiver, origin))
        log.forwards += sent
        for _, _, receiver, origin in sent:
            place[origin] = receiver
    return log


def _hops(neighbours: Neighbours, source: int) -> dict[int, int]:
    hops = {source: 0}
    queue = deque([source])
    while queue:
        agent = queue.popleft()
        for neighbour in neighbours[agent]:
            if neighbour not in hops:
                hops[neighbour] = hops[agent] + 1
                queue.append(neighbour)
    return hops
