"""Sentences of the paper that arithmetic settles, and sentences that are not judged, with reasons.

What holds or fails by construction is no measurement: it is computed here, exactly, and counted by
itself.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

import fmab_jax as fmab
from experiments import table2_fig11_hybrid as table2
from experiments.claims_measured import slots
from experiments.claims_theory import walk
from experiments.verdicts import (
    HOLDS,
    Finding,
    Measured,
    Row,
    alike,
    at_least,
    at_most,
    exact,
    exactly,
    ordered,
    provable,
    settled,
)
from fmab_jax.analysis import theory
from fmab_jax.core import exchanges as exchange
from fmab_jax.core import graphs

AGENTS, ARMS = 50, 100


@functools.cache
def _flooding(name: str) -> exchange.Exchange:
    return exchange.flooding(graphs.make(name, AGENTS))


def _more(first: float, second: float) -> Measured:
    """Returns by what share the first number is above the second."""
    return exact(first / second - 1)


# --- privacy and the schedule -------------------------------------------------------------------


def _leaks() -> list[Finding]:
    found = {"Theorem 1": 1, "Theorem 2, p = 0.4": 0.4}
    return [
        at_most(
            words, AGENTS, **{"a message leaks, in ε,": exact(exchange.server(AGENTS, p).reporting)}
        )
        for words, p in found.items()
    ]


def _doubling() -> list[Finding]:
    """Growth of S(r) with all arms active, where rewards decide and where noise does."""
    found = []
    for epsilon, words in ((None, "no noise"), (1e-6, "ε = 10⁻⁶")):
        table = theory.epochs(np.linspace(0, 1, ARMS), AGENTS, 10**12, epsilon)
        pulls = table.most_pulls[:6]
        growth = float((pulls[1:] / pulls[:-1]).min())
        found.append(at_least(words, 2, **{"S(r) grows, times,": exact(growth)}))
    return found


def _few_rounds() -> list[Finding]:
    """The provable limit on rounds, log2(N T / (16 log 16 T)) / 2, over log2 T."""
    found = []
    for horizon in (10**4, 10**6, 10**9):
        most = math.log2(AGENTS * horizon / (16 * math.log(16 * horizon))) / 2
        rounds = {"rounds over log2 T": exact(most / math.log2(horizon))}
        found.append(at_most(slots(horizon), 1, **rounds))
    return found


def _good_event() -> list[Finding]:
    """The provable probability of losing the best arm, times T."""
    found = []
    for agents, horizon in ((AGENTS, 10**4), (AGENTS, 10**6), (1, 10**9)):
        lost = (ARMS - 1) * theory.pair_failure(ARMS, agents, 1.0, horizon, 64) * horizon
        condition = f"N = {agents}, {slots(horizon)}"
        found.append(provable(at_most(condition, 1, **{"proved, times 1/T,": exact(lost)})))
    return found


def _at_most_one() -> list[Finding]:
    gap, rounds = 0.01, 4
    found = (1 - gap) / (1 - gap ** (1 / rounds)) + rounds / 10**4
    return [at_most(f"Δ = {gap:g}, R = {rounds}, T = 10⁴", 1, _=exact(found))]


def _constants() -> list[Finding]:
    """T^(2/R) and T^(1/R) at R = log T, at T and a hundred times of it."""
    found = []
    for power in (2, 1):
        ends = [horizon ** (power / math.log(horizon)) for horizon in (10**4, 10**6)]
        name = f"T^({power}/R)"
        finding = alike(f"R = log T, {name}", **{"T = 10⁶ over 10⁴": _more(ends[1], ends[0])})
        found.append(finding.adding(f"; {name} is {ends[1]:.3g} at both"))
    return found


# --- links --------------------------------------------------------------------------------------


def _budget() -> list[Finding]:
    """Server links of a round; a budget allows R rounds."""
    return [
        at_most(
            f"p = {p:g}",
            math.ceil(p * AGENTS),
            **{"links a round": exact(exchange.server(AGENTS, p).on("server"))},
        )
        for p in (0.02, 0.2, 0.41, 1)
    ]


def _table_one() -> list[Finding]:
    printed = {
        "star": 2 * (AGENTS - 1),
        "ring": AGENTS**2 // 2,
        "complete": AGENTS * (AGENTS - 1) // 2,
    }
    found = []
    for graph, links in printed.items():
        table = _flooding(graph)
        finding = at_most(graph, links, **{"diameter x edges": exact(table.on("bound"))})
        found.append(finding.adding(f"; edges that carry data {table.on('used'):,}"))
    return found


def _regular() -> list[Finding]:
    """The footnote's eigenvalue has to be below 1 for its logarithm to be of use: the walk's."""
    graph = graphs.make("regular-4", AGENTS)
    _, modulus = walk()
    most = 4 * AGENTS * math.log(AGENTS) / (2 * math.log(1 / modulus))
    links = exchange.flooding(graph).on("bound")
    return [at_most("4-regular", most, **{"links a round": exact(links)})]


def _star_is_cheapest() -> list[Finding]:
    star = _flooding("star").on("bound")
    found = []
    for graph in ("random", "complete", "ring"):
        links = _flooding(graph).on("bound")
        finding = ordered(graph, **{"links a round over the star's": _more(links, star)})
        found.append(finding.adding(f" ({links:,} over {star})"))
    return found


def _huge() -> list[Finding]:
    times = _flooding("complete").on("bound") / _flooding("star").on("bound")
    return [at_least("", 2, **{"links a round, complete over star, times": exact(times)})]


def _no_repeats() -> list[Finding]:
    found = []
    for name in ("ring", "random", "complete"):
        gis = fmab.ddp_mab(1, name).exchange(AGENTS).vectors
        plain = fmab.ddp_mab(1, name, protocol="flooding").exchange(AGENTS).vectors
        finding = ordered(name, **{"vectors a round, flooding over GIS": _more(plain, gis)})
        finding = finding.adding(f" ({plain:,} over {gis:,})")
        if name == "complete":
            finding = finding.uncounted("all is said in one slot: there is nothing to repeat")
        found.append(finding)
    return found


def _dense_or_sparse() -> list[Finding]:
    ring, complete = _flooding("ring"), _flooding("complete")
    edges = [graphs.make(name, AGENTS).number_of_edges() for name in ("ring", "complete")]
    waits = {"slots of a round, ring over complete": _more(ring.wait + 1, complete.wait + 1)}
    links = {"edges, complete over ring": _more(edges[1], edges[0])}
    return [ordered("convergence", **waits), ordered("connections", **links)]


def _sparse_builds_fewer() -> list[Finding]:
    """By edges, and by the paper's cost of a round."""
    counts = {
        "edges counted": lambda name: graphs.make(name, AGENTS).number_of_edges(),
        "diameter x edges counted": lambda name: _flooding(name).on("bound"),
    }
    found = []
    for words, count in counts.items():
        for name in ("star", "ring"):
            links, complete = count(name), count("complete")
            finding = ordered(f"{words}, {name}", **{"complete over it": _more(complete, links)})
            found.append(finding.adding(f" ({complete:,} over {links:,})"))
    return found


def _same_cost() -> list[Finding]:
    """Rounds are those of the server where nobody waits; a price makes their cost the same."""
    links = _flooding("complete").on("bound")
    price = links / AGENTS
    cost = {"server": exact(AGENTS * price)}
    return [exactly(f"complete graph, c1 = {price:g} and c2 = 1", links, **cost)]


def _messages() -> list[Finding]:
    """What the definition covers is told; the ledger of a ring."""
    rows = fmab.privacy_ledger(fmab.ddp_mab(1, "ring"), AGENTS)
    told = max(row.epsilon for row in rows if row.observation != "actions")
    return [at_most("ring, ε = 1", AGENTS, **{"messages": exact(told)})]


def _hops() -> list[Finding]:
    """Hops to the sinks of a round against M x the largest diameter."""
    found = []
    for case in (1, 4, 5):
        diameters = [
            graphs.diameter(g)
            for g in graphs.components(table2.CASES[f"case {case}"], table2.AGENTS)
        ]
        most, hops = table2.AGENTS * max(diameters), _case(case).on("sac")
        found.append(at_most(f"case {case}", most, hops=exact(hops)))
    return found


# --- hybrid -------------------------------------------------------------------------------------


@functools.cache
def _case(number: int) -> exchange.Exchange:
    return exchange.sinks(graphs.components(table2.CASES[f"case {number}"], table2.AGENTS))


def _costs(meter: str) -> dict[int, int]:
    return {case: table2.round_cost(_case(case), meter) for case in range(1, 7)}


BY = {"edges": "edges counted", "sac": "hops to the sinks counted"}
_OTHER_METER = "Theorem 4's meter, which figure 11 does not follow"


def _in_order(more: tuple[int, ...], less: tuple[int, ...], halved: bool = False) -> list[Finding]:
    """Costs of cases, some above others or at least double: by edges; by hops they are told."""
    found = []
    for meter, words in BY.items():
        costs = _costs(meter)
        for m, k in zip(more, less, strict=True):
            condition = f"{words}, case {m} over {k}"
            finding = (
                at_least(condition, 2, times=exact(costs[m] / costs[k]))
                if halved
                else ordered(condition, _=_more(costs[m], costs[k]))
            )
            finding = finding.adding(f" ({costs[m]:,} over {costs[k]:,})")
            found.append(finding if meter == "edges" else finding.uncounted(_OTHER_METER))
    return found


_GRADUALLY = functools.partial(_in_order, (2, 3), (1, 2))


def _two_meters() -> list[Finding]:
    """Whether both of the paper's meters put cases 1, 2 and 3 into the same order."""
    return [
        each._replace(counted=True, told=each.told.partition(" (not")[0]) for each in _GRADUALLY()
    ]


def _half_of(more: int) -> Callable[[], list[Finding]]:
    """Whether a case costs at least double of those with small components."""
    return functools.partial(_in_order, (more,) * 3, (1, 4, 5), halved=True)


def _same_regret() -> list[Finding]:
    """Cases 1, 2 and 3 have no wait and equal weights: one law of draws, one regret."""
    problem, options = fmab.Problem.uniform(20, 20), dict(horizon=10**4, seeds=50, times=8)
    specs = {"case 1": "5x4:complete", "case 2": "9,6,5:complete", "case 3": "20:complete"}
    runs = {
        case: fmab.simulate(
            fmab.hdp_mab(1, spec), problem, sum_agents=False, **options
        ).regret.values
        for case, spec in specs.items()
    }
    found = []
    for place, case in enumerate(runs, 1):
        apart = float(np.abs(runs[case] - runs["case 1"]).max())
        numbers = {
            "slots of waiting": exact(_case(place).wait),
            "regret of 20 agents so split less that of case 1, at most": exact(apart),
        }
        found.append(exactly(case, 0, **numbers))
    return found


def _every_agent_a_sink() -> list[Finding]:
    problem = fmab.Problem.uniform(20, 20)
    options = dict(horizon=10**4, seeds=50, times=8, sum_agents=False)
    split = fmab.simulate(fmab.hdp_mab(1, "1x20"), problem, **options).regret.values
    server = fmab.simulate(fmab.cdp_mab(1), problem, **options).regret.values
    most = float(np.abs(split - server).max())
    return [exactly("20 agents, 50 seeds", 0, **{"largest difference of regret": exact(most)})]


def _one_component() -> list[Finding]:
    """One component, collected at its best sink, waits no longer than GIS on the same graph."""
    found = []
    for name in ("ring", "complete", "path"):
        graph = graphs.make(name, 20)
        sink, all_ = exchange.sinks([graph]).wait, exchange.flooding(graph).wait
        waits = {"slots of waiting": exact(sink)}
        found.append(at_most(f"{name} of 20, GIS waits {all_}", all_, **waits))
    return found


def _uplink() -> list[Finding]:
    links = {case: _case(case).on("server") for case in (1, 6)}
    finding = at_least("", 2, **{"case 6 over 1, times": exact(links[6] / links[1])})
    return [finding.adding(f" ({links[6]} server links over {links[1]})")]


def _one_way() -> list[Finding]:
    """Vectors among the agents of complete components: SAC's, and what GIS would send inside."""
    graph = graphs.make("complete", 20)
    sac, gis = exchange.sinks([graph]).on("sac"), exchange.flooding(graph).on("bound")
    finding = ordered("complete component of 20", **{"GIS over SAC": _more(gis, sac)})
    return [finding.adding(f" ({gis} links a round over {sac})")]


def _near_the_centre() -> list[Finding]:
    """Links inside a component of 20: star, ring, complete."""
    found = []
    for meter, words in (("edges", "edges counted"), ("sac", "hops to the sink counted")):
        links = {
            name: exchange.sinks([graphs.make(name, 20)]).on(meter)
            for name in ("star", "ring", "complete")
        }
        for name in ("ring", "complete"):
            more = _more(links[name], links["star"])
            finding = ordered(f"{words}, {name} over star", _=more)
            found.append(finding.adding(f" ({links[name]} over {links['star']})"))
    return found


def _slowest() -> list[Finding]:
    waits = [
        exchange.sinks(graphs.components(spec, 100)).wait
        for spec in ("20x5:ring", "53,24,10,6,7:ring")
    ]
    finding = ordered("rings", **{"unbalanced over balanced": _more(waits[1], waits[0])})
    return [finding.adding(f" ({waits[1]} slots of waiting over {waits[0]})")]


def _linear() -> list[Finding]:
    return [Finding("", "by construction", (HOLDS,) * 3, rule="by reading")]


SETTLED = [
    settled("IV-A", "so $S(r) - S(r-1)$ is also doubling-increasing", "S(r) at least doubles; where rewards decide it grows by four.", _doubling),
    settled("IV-A, Theorem 1", r"is $M\epsilon$-differentially private", "Laplace noise of scale 1/(Nεn) on the mean of n rewards. Theorem 2 prints the same for N ≤ M.", _leaks),
    settled("IV-A, Theorem 1", r"incurs communication cost $C_{C}(T)= O(c_1M\log T)$", "Two arms have S(r) pulls each, so the horizon has room for few rounds: docs/theory.md.", _few_rounds),
    settled("Appendix B, step 1", r"Combing Eq.~\eqref{eq:condition1} and Eq.~\eqref{eq:condition2}", "The steps to 1 - 1/T take the active set for fixed, and the tail of Laplace sums needs N > log(8 a r² T). What can be proved is less for one agent and a long horizon: docs/theory.md.", _good_event),
    settled("IV-B, Theorem 2", r"C^{p,R}_{C}(T) =   c_1\left\lceil pM \right\rceil R", "As an upper bound; so are the costs of Corollaries 1 and 2, whose R is that of a budget.", _budget),
    settled("V", "it has implosion or the overlap problems", "Messages of one round, counted.", _no_repeats),
    settled("V-A, Theorem 3", r"is $(M\epsilon)-$ differentially private", "The privacy ledger of DDP-MAB on a ring, for what the paper's definition covers: messages. Theorem 4 says the same of HDP-MAB. What it leaves out is said below.", _messages),
    settled("V-A, Theorem 3", r"incurs communication cost $C_{D}(T) = O( c_2d_G\log T \sum_{i=1}^M d_i/2)$", "Links of a round are at most diameter x edges, and rounds are as few as with a server.", _few_rounds),
    settled("V-B1", "the communication costs incurred by these two settings are the same", "Prices of links.", _same_cost),
    settled("V-B3", "Dense graphs have a fast convergence rate but demand more connections", "Edges, and slots of a round, M = 50.", _dense_or_sparse),
    settled("V-B3", "Sparse graphs build fewer agent-to-agent links in each communication round", "Edges, and diameter x edges, M = 50.", _sparse_builds_fewer),
    settled("V-B3, Table I", r"$O(2(M-1)\log T$ & $O((M^2/2)\log T)$", "Links of a round, M = 50: at most the printed number.", _table_one),
    settled("V-B3, Table I", r"$O(\frac{dM\log M}{2\log (1/\lambda_2)}\log T$", "λ2 read as the second largest modulus of the walk's eigenvalues, which is below 1; a Laplace matrix has larger ones.", _regular),
    settled("IV-C2", "the terms $T^{2/R}$ and $T^{1/R}$ turn to be a constant", "At R = log T they are e² and e. Regret is judged above.", _constants),
    settled("Appendix E", r"$\frac{1-\Delta}{1-\Delta^{1/R}}+ \frac{R}{T}\leq 1$ since $R\geq 1$", "The quotient is a sum of R powers, the first of them 1.", _at_most_one),
    settled("VI-A, Theorem 4", r"O( (c_2M\max_{q\in Q}\{d_G^q\} +c_1Q) \log T)", "Hops of a round, table II.", _hops),
    settled("VI-B1", "significantly reduces the burden of the uplink", "Server links of a round, table II; significantly: to half at most.", _uplink),
    settled("VI-B1", "reduces the number of agent-to-agent links inside a component", "Links of a round.", _one_way),
    settled("VI-B2", "the delay of each communication round is 0 and we recover $R_{C}(T)$", "Q = M: the same draws, the same regret.", _every_agent_a_sink),
    settled("VI-B2", "we can recover $R_{D}(T)$ with $Q=1$", "A sink collects within its own eccentricity, GIS needs the diameter.", _one_component),
    settled("VI-B3", "the unbalanced agent distribution may cause a large delay", "Waits of rings of table II's sizes.", _slowest),
    settled("VI-B3", "rather than fully connected or ring structure", "Costs of components of 20 agents. Regret is judged above.", _near_the_centre),
    settled("VII-A3", "the inconsistency will bring a linear regret with $T$", "An agent that has settled on a worse arm pays its gap in every slot.", _linear),
    settled("VII-B1", "has the smallest communication cost", "Links of a round, M = 50.", _star_is_cheapest),
    settled("VII-B1", "which introduces a huge communication cost", "Against the star; huge: at least double.", _huge),
    settled("VII-C1", "can finally achieve similar per-agent regrets", "Complete components have no wait.", _same_regret),
    settled("VII-C1", "the communication cost gradually increases", "Cases 1, 2, 3.", _GRADUALLY),
    settled("VII-C1", "requires us to establish more agent-to-agent links", "The reason counts edges, and so does figure 11. Theorem 4 counts hops to the sinks, by which the costs of cases 1, 2 and 3 do not "
        "increase: the paper has two meters.", _two_meters),
    settled("VII-C1", "(like star graph) achieve smaller communication cost", "Cases 1 and 4 against 5.", functools.partial(_in_order, (1, 4), (5, 5))),
    settled("VII-C1", "significantly reduces the communication cost compared with the centralized setting", "Case 6 against 1, 4 and 5; significantly: to half at most.", _half_of(6)),
    settled("VII-C1", "or the fully-decentralized setting(case 3)", "Case 3 against 1, 4 and 5.", _half_of(3)),
]  # fmt: skip

UNMEASURED = [
    Row("Abstract", "which are consistent with our theoretical analysis", "The rows of section VII say it sentence by sentence."),
    Row("II", r"an $O(K\log^{2.5}(T))$ order privacy-related regret", "A bound of other papers. The arena runs their algorithms on this instance (ARENA.md)."),
    Row("II", "which incurs $O(T)$ communication cost", "So by definition, where agents gossip in every slot. The arena counts their links."),
    Row("III-C", "protect the private historical data when revealing messages", "The definition covers messages, and Theorem 3 is judged by it. What it leaves out: while they wait, agents play by rewards without noise, and "
        "for an outsider who sees these actions the privacy ledger has no bound. Waiting by noisy means closes it: docs/privacy.md."),
    Row("III-B", "we reasonably assume $c_1>>c_2$", "An assumption about networks."),
    Row("IV-A, Remark 1", r"is the minimum cost needed to achieve $O(\log T)$ order regret", "A lower bound over all algorithms; no run can show one."),
    Row("IV-B", "choosing the right time slots for communication is crucial", "An opinion; figures 6 and 7 and the maps show what R does."),
    Row("IV-B", "may bring a linear growth of regret without further exploration", "Whoever plays one arm for ever has regret that is linear or zero: by construction."),
    Row("IV-B", "the regret will scale with the number of agents", "Of rounds that come too late, without saying when that is. The map of pairs (p, R) shows where regret passes M times that of the server."),
    Row("V", "the irregular connections lead to different local aggregation results", "About a protocol that is not run: without consensus."),
    Row("V-B2", "indicates the convergence rate of local estimation to global estimation", "An explanation."),
    Row("V-B3", "can achieve the best performance", "Best in what is not said: regret and cost have rows of their own."),
    Row("V-B4", "more frequent communications require more noise to be added", "A comparison of mechanisms of different papers. ARENA.md has them at an equal leak."),
    Row("VI", "the delay for reaching consensus in each communication round is unacceptable", "An opinion about applications."),
    Row("VI-A, Remark 4", "each node cannot access the structure of the entire graph", "An assumption."),
    Row("VI-C1", "The centralized setting does not introduce delay", "A definition."),
    Row("VI-C1", "The items are only related to the graph structure and do not scale with $T$", "The sentence of V-B2, which is judged."),
    Row("VI-C1", "can achieve the same $O(\\log T)$ order regret without considering privacy", "The rows of Theorem 1 (growth in T) and of V-B2 (what graphs add) say it in two parts."),
    Row("VI-C2", "No individual agents can make a correct inference by simply collecting individual rewards", "A guarantee, or its absence: an agent whose own best arm is the global one infers it. Figure 13's axis says how many are misled."),
]  # fmt: skip
