"""The three algorithms in plain NumPy, agent by agent and pull by pull: slow and readable.

Nothing here is shared with the package: schedule and bookkeeping are written again, exchanges are
played (`protocols`), so that an error in one of the two shows as a difference. Algorithms 1-5 of
arXiv 2111.01570.

Symbols inside functions: M agents, K arms, T horizon, N reporting agents, a active arms, S pulls
per arm so far, n pulls per arm in this epoch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
import protocols

TIE = 1e-12  # gaps below this are rounding of the average over agents, not differences between arms


@dataclass(frozen=True)
class Exchange:
    """What one communication round means: who is heard, how long agents wait, what it costs."""

    agents: int
    reporting: int  # N of the schedule, of the confidence radius and of the noise
    weights: tuple[float, ...] | None  # None: 1/N on N agents drawn anew each round
    wait: int  # slots in which agents pull their local best arm
    server_links: int  # links per completed round, as are the two below
    peer_links_bound: int
    peer_links_used: int


@dataclass(frozen=True)
class Round:
    """One completed round: the active set and schedule it began with, and its aggregate."""

    active: tuple[int, ...]
    pulls_so_far: int  # S_r
    pulls: int  # n_r
    radius: float  # C(r)
    aggregate: tuple[float, ...]  # y_k, in the order of `active`


@dataclass(frozen=True)
class Result:
    """One run. Series are cumulative, summed over agents, exact at `knots` and linear between."""

    knots: np.ndarray
    regret: np.ndarray
    waiting_regret: np.ndarray
    rounds: int
    link_slots: tuple[int, ...]
    server_links: int
    peer_links_bound: int
    peer_links_used: int
    active: tuple[int, ...]
    chosen: int
    best_arm_lost: bool
    pulls: np.ndarray  # [agent, arm]
    history: tuple[Round, ...]
    alone: tuple[Result, ...] = ()  # `single` only: the run of each agent


def server(agents: int, participation: float = 1.0) -> Exchange:
    """N = ceil(p M) agents, drawn anew each round, upload to a server; a round takes no slots."""
    # The product of two floats can lie an ulp above the integer that is meant (0.07 * 100).
    reporting = max(1, math.ceil(participation * agents - 1e-9))
    return Exchange(agents, reporting, None, 0, reporting, 0, 0)


def flooding(graph: nx.Graph) -> Exchange:
    """Flooding (GIS) on a connected graph with nodes 0..M-1; the first hop costs no slot."""
    M = graph.number_of_nodes()
    log = protocols.flood({node: sorted(graph.neighbors(node)) for node in graph})
    bound = log.slots * graph.number_of_edges()
    return Exchange(M, M, (1.0 / M,) * M, max(log.slots - 1, 0), 0, bound, log.edge_slots())


def sinks(graphs: Sequence[nx.Graph], weights: str = "agents") -> Exchange:
    """Each component collects at its sink (SAC), the sinks upload; agents numbered by component.

    The peer meter `bound` holds sum |E_q|, the meter `used` sum dist(i, sink_q).
    """
    M, Q = sum(graph.number_of_nodes() for graph in graphs), len(graphs)
    logs = [
        protocols.collect({node: sorted(graph.neighbors(node)) for node in graph})
        for graph in graphs
    ]
    w: list[float] = []
    for graph in graphs:
        size = graph.number_of_nodes()
        w += [1.0 / M if weights == "agents" else 1.0 / (Q * size)] * size
    wait = max(max(log.slots - 1, 0) for log in logs)
    edges = sum(graph.number_of_edges() for graph in graphs)
    return Exchange(M, M, tuple(w), wait, Q, edges, sum(len(log.forwards) for log in logs))


def run(
    rng: np.random.Generator,
    means: np.ndarray,
    horizon: int,
    epsilon: float | None,
    *,
    exchange: Exchange,
    rounds: int | None = None,
    schedule_gap: float | None = None,
    private_waiting: bool = False,
) -> Result:
    """One run of CDP-, DDP- or HDP-MAB; `means` is [agent, arm] in [0, 1], regret on global means.

    `epsilon` None or infinity is no noise. With a round budget, `schedule_gap` defaults to the
    smallest non-zero gap of the instance (an oracle), or 1 where all arms tie. With
    `private_waiting` agents that wait go by their noisy means.
    """
    means = np.asarray(means, dtype=float)
    gaps = _global_gaps(means)
    delta = _target(gaps, schedule_gap)
    return _run(rng, means, gaps, horizon, epsilon, exchange, rounds, delta, private_waiting)


def single(
    rng: np.random.Generator,
    means: np.ndarray,
    horizon: int,
    epsilon: float | None,
    *,
    rounds: int | None = None,
    schedule_gap: float | None = None,
) -> Result:
    """Every agent alone: CDP-MAB with M = 1 on its own means, regret on global means added up.

    `alone` has each agent's run. Of the summaries `rounds` is the most of any agent, `active` the
    union, `chosen` the arm all agree on or -1, `best_arm_lost` whether any agent lost it.
    """
    means = np.asarray(means, dtype=float)
    gaps = _global_gaps(means)
    delta = _target(gaps, schedule_gap)
    alone = tuple(
        _run(rng, row[None, :], gaps, horizon, epsilon, server(1), rounds, delta) for row in means
    )
    knots = np.unique(np.concatenate([one.knots for one in alone]))
    regret = np.sum([np.interp(knots, one.knots, one.regret) for one in alone], axis=0)
    choices = {one.chosen for one in alone}
    return Result(
        knots=knots,
        regret=regret,
        waiting_regret=np.zeros(len(knots)),
        rounds=max(one.rounds for one in alone),
        link_slots=(),
        server_links=0,
        peer_links_bound=0,
        peer_links_used=0,
        active=tuple(sorted(set().union(*(one.active for one in alone)))),
        chosen=choices.pop() if len(choices) == 1 else -1,
        best_arm_lost=any(one.best_arm_lost for one in alone),
        pulls=np.concatenate([one.pulls for one in alone]),
        history=(),
        alone=alone,
    )


def _global_gaps(means: np.ndarray) -> np.ndarray:
    """Gap of every arm on the average over agents; rounding of that average is no gap."""
    average = means.mean(axis=0)
    gaps = average.max() - average
    return np.where(gaps < TIE, 0.0, gaps)


def _target(gaps: np.ndarray, gap: float | None) -> float:
    """The Delta of a round budget."""
    if gap is not None:
        return gap
    return float(gaps[gaps > 0].min()) if np.any(gaps > 0) else 1.0


def _run(
    rng: np.random.Generator,
    means: np.ndarray,
    gaps: np.ndarray,
    T: int,
    epsilon: float | None,
    exchange: Exchange,
    R: int | None,
    delta: float,
    private: bool = False,
) -> Result:
    M, K = means.shape
    if exchange.agents != M:
        raise ValueError(f"exchange is for {exchange.agents} agents, means have {M}")
    N = exchange.reporting
    noisy = epsilon is not None and math.isfinite(epsilon)
    eps = epsilon if epsilon is not None else math.inf
    ratio = 0.5 if R is None else delta ** (1.0 / R)

    active = list(range(K))
    S = 0
    slot = 0
    r = 0  # completed rounds
    successes = np.zeros((M, K), dtype=int)  # un-noised, cumulative
    ybar = np.zeros((M, K))  # noisy historical means
    last: dict[int, float] = {}  # last aggregate
    pulls = np.zeros((M, K), dtype=int)
    total = waiting = 0.0
    knots, regret, exploitation = [0], [0.0], [0.0]
    link_slots: list[int] = []
    history: list[Round] = []
    chosen = -1

    def advance(slots: int, cost: float, in_wait: bool = False) -> None:
        """A stretch of linear regret ends in a knot."""
        nonlocal slot, total, waiting
        if slots == 0:
            return
        slot += slots
        total += cost
        if in_wait:
            waiting += cost
        knots.append(slot)
        regret.append(total)
        exploitation.append(waiting)

    while True:
        if len(active) == 1:
            chosen = active[0]
            break
        if R is not None and r == R:
            chosen = max(active, key=lambda k: (last[k], -k))
            break

        # The schedule of round q = r + 1.
        q, a = r + 1, len(active)
        dt = ratio**q
        log_a = math.log(8 * a * q**2 * T)
        log_k = math.log(8 * K * q**2 * T)
        pulls_wanted = 8 * log_a / (N * dt**2)
        if noisy:
            pulls_wanted = max(pulls_wanted, 8 * q * math.sqrt(2 * log_k) / (N**1.5 * eps * dt))
        S_new = max(math.ceil(pulls_wanted), S + 1)
        n = S_new - S
        radius = math.sqrt(log_a / (2 * N * S_new))
        if noisy:
            radius += q * math.sqrt(8 * log_k) / (N**1.5 * eps * S_new)

        # An epoch that does not fit: round robin to T, nothing uploaded.
        if slot + a * n > T:
            left = T - slot
            for j, k in enumerate(active):
                pulls[:, k] += left // a + (1 if j < left % a else 0)
            advance(left, M * left * sum(gaps[k] for k in active) / a)
            break

        # Exploration, every agent whether it reports or not.
        for i in range(M):
            for k in active:
                x = int(np.count_nonzero(rng.random(n) < means[i, k]))
                successes[i, k] += x
                pulls[i, k] += n
                yhat = x / n
                if noisy:
                    yhat += rng.laplace(scale=1.0 / (N * eps * n))
                ybar[i, k] = (S * ybar[i, k] + n * yhat) / S_new
        S = S_new
        advance(a * n, M * n * sum(gaps[k] for k in active))

        # Waiting for the messages: each agent its own best arm, rewards discarded.
        wait = min(exchange.wait, T - slot)
        cost = 0.0
        seen = ybar if private else successes
        for i in range(M):
            own_best = max(active, key=lambda k, i=i: (seen[i, k], -k))  # type: ignore[misc]
            pulls[i, own_best] += wait
            cost += wait * gaps[own_best]
        advance(wait, cost, in_wait=True)
        if wait < exchange.wait:  # cut at T: the round is not completed
            break

        # Aggregation and elimination.
        w = np.zeros(M)
        if exchange.weights is None:
            w[rng.choice(M, size=N, replace=False)] = 1.0 / N
        else:
            w[:] = exchange.weights
        last = {k: float(sum(w[i] * ybar[i, k] for i in range(M))) for k in active}
        history.append(Round(tuple(active), S, n, radius, tuple(last[k] for k in active)))
        best = max(last.values())
        active = [k for k in active if best - last[k] < 2 * radius]
        link_slots.append(slot)
        r = q

    if chosen >= 0:
        pulls[:, chosen] += T - slot
        advance(T - slot, M * (T - slot) * gaps[chosen])

    return Result(
        knots=np.array(knots),
        regret=np.array(regret),
        waiting_regret=np.array(exploitation),
        rounds=r,
        link_slots=tuple(link_slots),
        server_links=r * exchange.server_links,
        peer_links_bound=r * exchange.peer_links_bound,
        peer_links_used=r * exchange.peer_links_used,
        active=tuple(active),
        chosen=chosen,
        best_arm_lost=not any(gaps[k] == 0 for k in active),
        pulls=pulls,
        history=tuple(history),
    )
