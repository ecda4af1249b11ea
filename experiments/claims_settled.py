"""Sentences of the paper that arithmetic settles, and sentences that are not judged, with reasons.

What holds or fails by construction is no measurement: it is computed here, exactly, and counted by
itself.
"""

from __future__ import annotations

import functools
import math

import networkx as nx
import numpy as np

import fmab_jax as fmab
from experiments import table2_fig11_hybrid as table2
from experiments.verdicts import Settled, Unmeasured
from fmab_jax.analysis import theory
from fmab_jax.core import exchanges as exchange
from fmab_jax.core import graphs

AGENTS, ARMS = 50, 100
NOT_PROVED = "not proved"

# What was computed, in words, and whether the sentence holds, or under which condition.
Computed = tuple[str, bool | str]


@functools.cache
def _flooding(name: str) -> exchange.Exchange:
    return exchange.flooding(graphs.make(name, AGENTS))


def _words(found: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:,.6g}" for name, value in found.items())


# --- privacy and the schedule -------------------------------------------------------------------


def _leaks() -> Computed:
    found = {f"p = {p:g}:": float(exchange.server(AGENTS, p).reporting) for p in (1, 0.4)}
    return f"a message leaks Nε, {_words(found)} ε", max(found.values()) <= AGENTS


def _doubling() -> Computed:
    """Growth of S(r) with all arms active, where rewards decide and where noise does."""
    found = {}
    for epsilon, words in ((None, "no noise: S(r) grows"), (1e-6, "ε = 10⁻⁶: S(r) grows")):
        table = theory.epochs(np.linspace(0, 1, ARMS), AGENTS, 10**12, epsilon)
        pulls = table.most_pulls[:6]
        found[words] = float((pulls[1:] / pulls[:-1]).min())
    told = ", ".join(f"{words} {value:.3g} times or more" for words, value in found.items())
    return told, min(found.values()) >= 2


def _scale_factors() -> Computed:
    """S^p(r) over S(r), term by term, against the printed factor."""
    p, r, rounds, gap = 0.4, 2, 5, 0.05
    target = gap ** (r / rounds)
    rewards = (1 / (p * target**2)) / (1 / (2.0**-r) ** 2)
    noise = (1 / (p**1.5 * target)) / (1 / 2.0**-r)
    printed = 2.0**-r / (p * target), 2.0**-r / (p**1.5 * target)
    told = (
        f"at p = {p:g}, r = {r}, R = {rounds}, Δ = {gap:g}: rewards {rewards:.3g}, printed "
        f"{printed[0]:.3g}; noise {noise:.3g}, printed {printed[1]:.3g}"
    )
    return told, math.isclose(rewards, printed[0]) and math.isclose(noise, printed[1])


def _enough_rounds() -> Computed:
    """At the printed R, is T^(2/R) / p^(3/2) at most M?"""
    found = {}
    for p in (1.0, 0.4):
        rounds = 4 * math.log(10**6) / (3 * math.log(p * AGENTS))
        found[f"p = {p:g}, T = 10⁶:"] = 10 ** (12 / rounds) / p**1.5
    return f"T^(2/R) / p^(3/2) is {_words(found)}; M = {AGENTS}", max(found.values()) <= AGENTS


def _few_rounds() -> Computed:
    """The provable limit on rounds, log2(N T / (16 log 16 T)) / 2, over log2 T."""
    found = {
        f"T = 10^{power}:": math.log2(AGENTS * 10**power / (16 * math.log(16 * 10**power)))
        / (2 * math.log2(10**power))
        for power in (4, 6, 9)
    }
    return f"rounds over log2 T are at most {_words(found)}", max(found.values()) <= 1


def _a_term_for_each_arm() -> Computed:
    """Of the noise, each suboptimal arm adds gap x (1 / gap)."""
    return f"{ARMS - 1} terms of this size are summed, the print has one", NOT_PROVED


def _less_than_one() -> Computed:
    gap, horizon = 1e-6, 10**5
    found = {"of one agent": gap * horizon, "summed over agents": AGENTS * gap * horizon}
    holds = found["summed over agents"] < 1
    told = f"gap {gap:g}, T = 10⁵, M = {AGENTS}: regret at most {_words(found)}"
    return told, holds or "holds for one agent, not summed over all"


def _printed_sum() -> Computed:
    gap = 0.25
    total = sum(2.0 ** -(r - 1) for r in range(1, math.ceil(math.log2(1 / gap)) + 2))
    told = f"Δ = {gap:g}: 1 + ... + Δ is {total:g}, which is 2 - Δ; printed {2 * (1 - gap):g}"
    return told, math.isclose(total, 2 * (1 - gap))


def _good_event() -> Computed:
    """The provable probability of losing the best arm, times T, for one agent and a long horizon."""
    horizon, most = 10**9, 64
    lost = (ARMS - 1) * theory.pair_failure(ARMS, 1, 1.0, horizon, most) * horizon
    told = (
        f"N = 1, K = {ARMS}, T = 10⁹: what can be proved is {lost:.2g} / T for losing the best arm"
    )
    return told, lost <= 1 or NOT_PROVED


def _at_most_one() -> Computed:
    gap, rounds = 0.01, 4
    found = (1 - gap) / (1 - gap ** (1 / rounds)) + rounds / 10**4
    return f"Δ = {gap:g}, R = {rounds}, T = 10⁴: {found:.3g}", found <= 1


# --- links --------------------------------------------------------------------------------------


def _budget() -> Computed:
    shares = (0.02, 0.2, 0.41, 1)
    links = {f"p = {p:g}:": float(exchange.server(AGENTS, p).on("server")) for p in shares}
    told = f"server links of a round, {_words(links)}; a budget allows R rounds"
    return told, all(links[f"p = {p:g}:"] <= math.ceil(p * AGENTS) for p in shares)


def _table_one() -> Computed:
    printed = {
        "star": 2 * (AGENTS - 1),
        "ring": AGENTS**2 // 2,
        "complete": AGENTS * (AGENTS - 1) // 2,
    }
    told, same = [], True
    for graph, links in printed.items():
        table = _flooding(graph)
        same &= table.on("bound") == links
        told.append(
            f"{graph} {links}, diameter x edges {table.on('bound')}, edges that carry data "
            f"{table.on('used')}"
        )
    return "printed " + "; printed ".join(told), same


def _regular() -> Computed:
    """The footnote's eigenvalue has to be below 1 for its logarithm to be of use: the walk's."""
    graph = graphs.make("regular-4", AGENTS)
    walk = np.sort(np.abs(np.linalg.eigvalsh(nx.to_numpy_array(graph) / 4)))[-2]
    most = 4 * AGENTS * math.log(AGENTS) / (2 * math.log(1 / walk))
    links = exchange.flooding(graph).on("bound")
    return f"4-regular: printed {most:,.0f} as an upper bound, {links} counted", links <= most


def _star_is_cheapest() -> Computed:
    found = {g: _flooding(g).on("bound") for g in ("star", "random", "complete", "ring")}
    others = [links for graph, links in found.items() if graph != "star"]
    return f"links a round: {_words(found)}", found["star"] < min(others)


def _huge() -> Computed:
    times = _flooding("complete").on("bound") / _flooding("star").on("bound")
    return f"complete over star: {times:.3g} times the links a round", times >= 2


def _no_repeats() -> Computed:
    told, fewer = [], True
    for name in ("ring", "random", "complete"):
        gis = fmab.ddp_mab(1, name).exchange(AGENTS).vectors
        plain = fmab.ddp_mab(1, name, protocol="flooding").exchange(AGENTS).vectors
        # On a complete graph all is said in one slot: there is nothing to repeat.
        fewer &= gis < plain or name == "complete"
        told.append(f"{name} {gis:,} against {plain:,}")
    return f"vectors sent a round, GIS against flooding: {'; '.join(told)}", fewer


def _gossip_is_slow() -> Computed:
    told, slower = [], True
    for name in ("ring", "star", "complete"):
        gis = fmab.ddp_mab(1, name).exchange(AGENTS).wait
        other = fmab.ddp_mab(1, name, protocol="gossip", tolerance=0.01).exchange(AGENTS).wait
        slower &= other >= 2 * gis
        told.append(f"{name} {gis} against {other}")
    return f"slots of waiting, GIS against gossip to 10⁻²: {'; '.join(told)}", slower


def _dense_or_sparse() -> Computed:
    ring, complete = _flooding("ring"), _flooding("complete")
    edges = {name: graphs.make(name, AGENTS).number_of_edges() for name in ("ring", "complete")}
    told = (
        f"ring: {edges['ring']} edges, {ring.wait} slots of waiting; complete: "
        f"{edges['complete']} edges, {complete.wait} slots"
    )
    return told, ring.wait > complete.wait and edges["ring"] < edges["complete"]


def _sparse_builds_fewer() -> Computed:
    found = {name: _flooding(name).on("bound") for name in ("star", "ring", "complete")}
    told = f"links of a round: {_words(found)}"
    if found["star"] < found["complete"] <= found["ring"]:
        return told, "holds for the star, not for the ring"
    return told, max(found["star"], found["ring"]) < found["complete"]


def _same_cost() -> Computed:
    """Rounds are those of the server where nobody waits; a price makes their cost the same."""
    links = _flooding("complete").on("bound")
    price = links / AGENTS
    told = f"complete graph: {links} links a round at price 1, {AGENTS} at price {price:g}"
    return told, math.isclose(AGENTS * price, links)


def _messages_only() -> Computed:
    """What the ledger says of a ring: what is told is covered, what is done while waiting is not."""
    rows = fmab.privacy_ledger(fmab.ddp_mab(1, "ring"), AGENTS)
    told = max(row.epsilon for row in rows if row.what != "actions")
    done = max(row.epsilon for row in rows if row.what == "actions")
    words = f"ring, ε = 1: messages {told:g}, actions while waiting {done:g}"
    covered = told <= AGENTS, done <= AGENTS
    return words, covered[1] or ("holds for messages, not for actions" if covered[0] else False)


def _hops() -> Computed:
    """Hops to the sinks of a round against M x the largest diameter."""
    found, holds = [], True
    for case in (1, 4, 5):
        diameters = [
            graphs.diameter(g)
            for g in graphs.components(table2.CASES[f"case {case}"], table2.AGENTS)
        ]
        most, hops = table2.AGENTS * max(diameters), _case(case).on("sac")
        holds &= hops <= most
        found.append(f"case {case} {hops} of at most {most}")
    return f"hops to the sinks: {', '.join(found)}", holds


def _no_hops() -> Computed:
    """The same with the diameter minus 1."""
    hops = _case(1).on("sac")
    return f"case 1, complete components of diameter 1: {hops} hops, printed at most 0", hops <= 0


# --- hybrid -------------------------------------------------------------------------------------


@functools.cache
def _case(number: int) -> exchange.Exchange:
    return exchange.sinks(graphs.components(table2.CASES[f"case {number}"], table2.AGENTS))


def _costs(meter: str) -> dict[int, int]:
    return {case: table2.round_cost(_case(case), meter) for case in range(1, 7)}


def _in_order(more: tuple[int, ...], less: tuple[int, ...], times: float = 1.0) -> Computed:
    told, holds = [], {}
    for meter, words in (("edges", "by edges"), ("sac", "by hops to the sinks")):
        costs = _costs(meter)
        shown = {f"case {case}": costs[case] for case in sorted({*more, *less})}
        told.append(f"{words}: {_words(shown)}")
        holds[words] = all(costs[m] > times * costs[k] for m, k in zip(more, less, strict=True))
    where = [words for words, held in holds.items() if held]
    verdict = f"holds {where[0]} only" if len(where) == 1 else bool(where)
    return f"cost of a round, {'; '.join(told)}", verdict


def _gradually() -> Computed:
    return _in_order((2, 3), (1, 2))


def _stars() -> Computed:
    return _in_order((1, 4), (5, 5))


def _against_server() -> Computed:
    return _in_order((6, 6, 6), (1, 4, 5), 2)


def _against_graph() -> Computed:
    return _in_order((3, 3, 3), (1, 4, 5), 2)


def _same_regret() -> Computed:
    """Cases 1, 2 and 3 have no wait and equal weights: one law of draws, one regret."""
    problem, options = fmab.Problem.uniform(20, 20), dict(horizon=10**4, seeds=50, times=8)
    alike = ("5x4:complete", "9,6,5:complete", "20:complete")
    runs = [
        fmab.simulate(fmab.hdp_mab(1, spec), problem, sum_agents=False, **options).regret.values
        for spec in alike
    ]
    same = all((run == runs[0]).all() for run in runs)
    waits = {f"case {c}:": float(_case(c).wait) for c in (1, 2, 3)}
    told = f"slots of waiting, {_words(waits)}; regret of 20 agents so split the same, seed by seed"
    return told, same and not any(waits.values())


def _every_agent_a_sink() -> Computed:
    problem = fmab.Problem.uniform(20, 20)
    options = dict(horizon=10**4, seeds=50, times=8, sum_agents=False)
    split = fmab.simulate(fmab.hdp_mab(1, "1x20"), problem, **options).regret.values
    server = fmab.simulate(fmab.cdp_mab(1), problem, **options).regret.values
    most = float(np.abs(split - server).max())
    return f"20 agents, 50 seeds: largest difference {most:g}", most == 0


def _one_component() -> Computed:
    """One component, collected at its best sink, against GIS on the same graph."""
    found = {}
    for name in ("ring", "complete", "path"):
        graph = graphs.make(name, 20)
        found[name] = exchange.sinks([graph]).wait, exchange.flooding(graph).wait
    told = ", ".join(f"{name} {sink} against {all_}" for name, (sink, all_) in found.items())
    told = f"slots of waiting, Q = 1 against GIS, 20 agents: {told}"
    if all(sink == all_ for sink, all_ in found.values()):
        return told, True
    less = all(sink <= all_ for sink, all_ in found.values())
    return told, "holds as a bound: some graphs wait less" if less else False


def _uplink() -> Computed:
    found = {f"case {c}:": float(_case(c).on("server")) for c in (1, 6)}
    return f"server links a round, {_words(found)}", found["case 1:"] * 2 <= found["case 6:"]


def _one_way() -> Computed:
    """Vectors among the agents of complete components: SAC's, and what GIS would send inside."""
    graph = graphs.make("complete", 20)
    sac, gis = exchange.sinks([graph]).on("sac"), exchange.flooding(graph).on("bound")
    return f"complete component of 20: {sac} links a round, with GIS {gis}", sac < gis


def _near_the_centre() -> Computed:
    """Links inside a component of 20: star, ring, complete."""
    told, holds = [], {}
    for words in ("edges", "sac"):
        found = {
            name: exchange.sinks([graphs.make(name, 20)]).on(words)
            for name in ("star", "ring", "complete")
        }
        how = "by edges" if words == "edges" else "by hops to the sink"
        told.append(f"{how}: {_words(found)}")
        holds[how] = found["star"] < min(found["ring"], found["complete"])
    where = [how for how, held in holds.items() if held]
    verdict = f"holds {where[0]} only" if len(where) == 1 else bool(where)
    return f"links of a round, {'; '.join(told)}", verdict


def _slowest() -> Computed:
    found = {
        words: float(exchange.sinks(graphs.components(spec, 100)).wait)
        for words, spec in (("balanced", "20x5:ring"), ("unbalanced", "53,24,10,6,7:ring"))
    }
    return f"slots of waiting on rings: {_words(found)}", found["unbalanced"] > found["balanced"]


def _sizes() -> Computed:
    total = 63 + 24 + 10 + 6 + 7
    return f"63 + 24 + 10 + 6 + 7 = {total}", total == 100


SETTLED = [
    Settled("IV-A", "so $S(r) - S(r-1)$ is also doubling-increasing", "S(r) at least doubles; where rewards decide it grows by four.", _doubling),
    Settled("IV-A, Theorem 1", r"is $M\epsilon$-differentially private", "Laplace noise of scale 1/(Nεn) on the mean of n rewards.", _leaks),
    Settled("IV-A, Theorem 1", r"incurs communication cost $C_{C}(T)= O(c_1M\log T)$", "Two arms have S(r) pulls each, so the horizon has room for few rounds: docs/theory.md.", _few_rounds),
    Settled("Appendix B, step 1", r"Combing Eq.~\eqref{eq:condition1} and Eq.~\eqref{eq:condition2}", "The steps to 1 - 1/T take the active set for fixed, and the tail of Laplace sums needs N > log(8 a r² T). What can be proved is less for one agent and a long horizon: docs/theory.md.", _good_event),
    Settled("IV-B", r"has a scale factor of $\frac{2^{-r}}{p\Delta^{r/R}}$", "The term of rewards has both the 2 and the Δ squared.", _scale_factors),
    Settled("IV-B, Theorem 2", r"C^{p,R}_{C}(T) =   c_1\left\lceil pM \right\rceil R", "As an upper bound; so are the costs of Corollaries 1 and 2, whose R is that of a budget.", _budget),
    Settled("IV-B, Theorem 2", r",\frac{ R\sqrt{\log (R^2KT)}}{\sqrt{M}\epsilon} \}", "The gap cancels in the sum over arms, which leaves a term for each: Theorem 1 has the K.", _a_term_for_each_arm),
    Settled("IV-B, Remark 2", r"$T^{2/R} /p^{3/2}\leq  M\rightarrow R", "Read as: so many rounds suffice. It would be R >= 2 log T / log(M p^(3/2)); Appendix C prints log T / log pM, and IV-C2 3 log T / (4 log M).", _enough_rounds),
    Settled("Appendix C", "we can only incur a regret less than $1$", "Why Δ may be replaced by 1/T.", _less_than_one),
    Settled("V", "it has implosion or the overlap problems", "Messages of one round, counted.", _no_repeats),
    Settled("V", "gossiping distributes information slowly and incurs large end-to-end delay", "Slots of one round, counted; large: at least double.", _gossip_is_slow),
    Settled("V-A, Theorem 3", r"is $(M\epsilon)-$ differentially private", "The privacy ledger of DDP-MAB on a ring; Theorem 4 says the same of HDP-MAB.", _messages_only),
    Settled("V-A, Theorem 3", r"incurs communication cost $C_{D}(T) = O( c_2d_G\log T \sum_{i=1}^M d_i/2)$", "Links of a round are at most diameter x edges, and rounds are as few as with a server.", _few_rounds),
    Settled("V-B1", "the communication costs incurred by these two settings are the same", "Prices of links.", _same_cost),
    Settled("V-B3", "Dense graphs have a fast convergence rate but demand more connections", "Edges and waits, M = 50.", _dense_or_sparse),
    Settled("V-B3", "Sparse graphs build fewer agent-to-agent links in each communication round", "Diameter x edges, M = 50.", _sparse_builds_fewer),
    Settled("V-B3, Table I", r"$O(2(M-1)\log T$ & $O((M^2/2)\log T)$", "Links of a round, M = 50.", _table_one),
    Settled("V-B3, Table I", r"$O(\frac{dM\log M}{2\log (1/\lambda_2)}\log T$", "λ2 read as the walk's, which is below 1; a Laplace matrix has larger ones.", _regular),
    Settled("Appendix D", r"=2M(d_{G}-1) (1- \Delta)", "A sum of powers of 1/2.", _printed_sum),
    Settled("Appendix E", r"$\frac{1-\Delta}{1-\Delta^{1/R}}+ \frac{R}{T}\leq 1$ since $R\geq 1$", "The quotient is a sum of R powers, the first of them 1.", _at_most_one),
    Settled("VI-A, Theorem 4", r"O( (c_2M\max_{q\in Q}\{d_G^q\} +c_1Q) \log T)", "Hops of a round, table II.", _hops),
    Settled("VI-A, Corollary 2", r"C^R_H(T) = O(c_2M\max_{q\in Q}\{d_G^q-1\} +c_1Q) R", "A complete component would cost nothing.", _no_hops),
    Settled("VI-B1", "significantly reduces the burden of the uplink", "Server links of a round, table II; significantly: to half at most.", _uplink),
    Settled("VI-B1", "reduces the number of agent-to-agent links inside a component", "Links of a round.", _one_way),
    Settled("VI-B2", "the delay of each communication round is 0 and we recover $R_{C}(T)$", "Q = M: the same draws, the same regret.", _every_agent_a_sink),
    Settled("VI-B2", "we can recover $R_{D}(T)$ with $Q=1$", "A sink collects within its own eccentricity, GIS needs the diameter.", _one_component),
    Settled("VI-B3", "the unbalanced agent distribution may cause a large delay", "Waits of rings of table II's sizes.", _slowest),
    Settled("VI-B3", "rather than fully connected or ring structure", "Costs of components of 20 agents. Regret is judged above.", _near_the_centre),
    Settled("VII-A3", "the inconsistency will bring a linear regret with $T$", "An agent that has settled on an arm pays its gap in every slot.", lambda: ("by construction", True)),
    Settled("VII-B1", "has the smallest communication cost", "Links of a round, M = 50.", _star_is_cheapest),
    Settled("VII-B1", "which introduces a huge communication cost", "Against the star; huge: at least double.", _huge),
    Settled("VII-C1", r"\{63,24,10,6,7\}", "The sizes of 100 agents.", _sizes),
    Settled("VII-C1", "can finally achieve similar per-agent regrets", "Complete components have no wait.", _same_regret),
    Settled("VII-C1", "the communication cost gradually increases", "Cases 1, 2, 3. The reason that the paper gives is the number of edges; Theorem 4 counts hops to the sinks.", _gradually),
    Settled("VII-C1", "(like star graph) achieve smaller communication cost", "Cases 1 and 4 against 5.", _stars),
    Settled("VII-C1", "significantly reduces the communication cost compared with the centralized setting", "Case 6 against 1, 4 and 5; significantly: to half at most.", _against_server),
    Settled("VII-C1", "or the fully-decentralized setting(case 3)", "Case 3 against 1, 4 and 5.", _against_graph),
]  # fmt: skip

UNMEASURED = [
    Unmeasured("Abstract", "which are consistent with our theoretical analysis", "The rows of section VII say it sentence by sentence."),
    Unmeasured("II", r"an $O(K\log^{2.5}(T))$ order privacy-related regret", "A bound of other papers. The arena runs their algorithms on this instance (ARENA.md)."),
    Unmeasured("II", "which incurs $O(T)$ communication cost", "So by definition, where agents gossip in every slot. The arena counts their links."),
    Unmeasured("III-B", "we reasonably assume $c_1>>c_2$", "An assumption about networks."),
    Unmeasured("IV-A, Remark 1", r"is the minimum cost needed to achieve $O(\log T)$ order regret", "A lower bound over all algorithms; no run can show one."),
    Unmeasured("IV-B", "choosing the right time slots for communication is crucial", "An opinion; figures 6 and 7 and the maps show what R does."),
    Unmeasured("IV-B", "may bring a linear growth of regret without further exploration", "Whoever plays one arm for ever has regret that is linear or zero: by construction."),
    Unmeasured("IV-B", "the regret will scale with the number of agents", "Of rounds that come too late, without saying when that is. The map of pairs (p, R) shows where regret passes M times that of the server."),
    Unmeasured("V", "the irregular connections lead to different local aggregation results", "About a protocol that is not run: without consensus."),
    Unmeasured("V-B2", "indicates the convergence rate of local estimation to global estimation", "An explanation."),
    Unmeasured("V-B3", "can achieve the best performance", "Best in what is not said: regret and cost have rows of their own."),
    Unmeasured("V-B4", "more frequent communications require more noise to be added", "A comparison of mechanisms of different papers. ARENA.md has them at an equal leak."),
    Unmeasured("VI", "the delay for reaching consensus in each communication round is unacceptable", "An opinion about applications."),
    Unmeasured("VI-A, Remark 4", "each node cannot access the structure of the entire graph", "An assumption."),
    Unmeasured("VI-D1", "The centralized setting does not introduce delay", "A definition."),
    Unmeasured("VI-D1", "The items are only related to the graph structure and do not scale with $T$", "The sentence of V-B2, which is judged."),
    Unmeasured("VI-D1", "can achieve the same $O(\\log T)$ order regret without considering privacy", "The rows of Theorem 1 (growth in T) and of V-B2 (what graphs add) say it in two parts."),
    Unmeasured("VI-D2", "No individual agents can make a correct inference by simply collecting individual rewards", "A guarantee, or its absence: an agent whose own best arm is the global one infers it. Figure 13's axis says how many are misled."),
    Unmeasured("VII-B1", "The SPIN protocol runnning in the Ring graph has the largest delay", "A definition: the diameter. SPIN is the name of GIS here."),
]  # fmt: skip
