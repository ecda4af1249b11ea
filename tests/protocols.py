"""GIS, plain flooding, gossip and SAC played message by message, to hold the tables against.

Nothing here is shared with the package: graphs are dicts of neighbour lists, every ADV, REQ, DATA
and every forwarded observation is a tuple in a list, and all counts are taken from those lists.
"""

from __future__ import annotations

import random
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
            expected = defaultdict(set)
            settled = set()
            for _, sender, _, named in sorted(messages, key=lambda message: message[1]):
                for origin in named:
                    if origin not in held[agent] and origin not in settled:
                        settled.add(origin)
                        expected[sender].add(origin)
            for sender, origins in expected.items():
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


def plain_flood(neighbours: Neighbours) -> Flood:
    """Sends on what is new, to all but those it came from, until everybody holds everything."""
    log = Flood()
    held = {agent: {agent} for agent in neighbours}
    fresh = {agent: {agent: set()} for agent in neighbours}  # origin -> who it came from
    while any(len(observations) < len(neighbours) for observations in held.values()):
        log.slots += 1
        inbox = defaultdict(list)
        for sender, news in fresh.items():
            for receiver in neighbours[sender]:
                carried = tuple(o for o, givers in news.items() if receiver not in givers)
                if carried:
                    log.data.append((log.slots, sender, receiver, carried))
                    inbox[receiver].append((sender, carried))
        fresh = {agent: {} for agent in neighbours}
        for agent, messages in inbox.items():
            for sender, carried in messages:
                for origin in set(carried) - held[agent]:
                    fresh[agent].setdefault(origin, set()).add(sender)
                    log.arrival[origin, agent] = log.slots
        for agent, news in fresh.items():
            held[agent] |= news.keys()
    return log


@dataclass
class Gossip:
    """Pairs that average: messages are (slot, sender, receiver), values what each agent holds."""

    slots: int = 0
    data: list[tuple[int, int, int]] = field(default_factory=list)
    weights: dict[int, dict[int, float]] = field(default_factory=dict)
    before: dict[int, dict[int, float]] = field(default_factory=dict)  # a slot earlier


def gossip(neighbours: Neighbours, tolerance: float, seed: int = 0) -> Gossip:
    """Plays slots until no agent's weights are further than the tolerance from the mean's."""
    chance = random.Random(seed)
    agents = sorted(neighbours)
    log = Gossip(weights={a: {b: float(a == b) for b in agents} for a in agents})
    while max(total_variation(held) for held in log.weights.values()) > tolerance:
        log.slots += 1
        log.before = dict(log.weights)
        wakes = {agent: chance.random() for agent in agents}
        talked: set[int] = set()
        for agent in sorted(agents, key=lambda agent: wakes[agent]):
            free = [other for other in sorted(neighbours[agent]) if other not in talked]
            if agent in talked or not free:
                continue
            other = free[int(chance.random() * len(free))]
            talked |= {agent, other}
            log.data += [(log.slots, agent, other), (log.slots, other, agent)]
            mine, theirs = log.before[agent], log.before[other]
            middle = {origin: (mine[origin] + theirs[origin]) / 2 for origin in agents}
            log.weights[agent] = log.weights[other] = middle
        idle = set(agents) - talked
        assert not any(idle & set(neighbours[agent]) for agent in idle), "not maximal"
    return log


def total_variation(weights: dict[int, float]) -> float:
    """Returns how far weights are from equal ones."""
    return sum(abs(weight - 1 / len(weights)) for weight in weights.values()) / 2


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
                receiver = min(j for j in neighbours[holder] if left[j] < left[holder])
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
