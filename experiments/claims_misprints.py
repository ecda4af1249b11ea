"""Typing errors and slips of the paper's print: what stands there, and what is meant.

They are no failures of the paper: what is meant is judged in the other lists, or follows all the
same. Each is computed where it can be, so that nobody has to believe it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from experiments import table2_fig11_hybrid as table2
from experiments.claims_measured import slots
from experiments.claims_runs import AGENTS, ARMS, gaps_of, pulls_of_arms, uniform
from experiments.claims_theory import walk
from experiments.verdicts import (
    MISPRINT,
    Data,
    Finding,
    Row,
    at_most,
    exact,
    mean,
    misprint,
    probable,
    share,
)
from fmab_jax.core import exchanges as exchange
from fmab_jax.core import graphs

Judge = Callable[[Any], list[Finding]]


def _read(words: str) -> Judge:
    """Returns what only reading shows."""
    return lambda data: [Finding("", words, (MISPRINT,) * 3, rule="by reading")]


def _numbers(condition: str, printed: float, **found: float) -> Judge:
    """Returns numbers beside that of the print."""
    numbers = {name: exact(value) for name, value in found.items()}
    return lambda data: [misprint(condition, printed, **numbers)]


# --- the schedule -------------------------------------------------------------------------------


def _scale_factors(data: Data) -> list[Finding]:
    """S^p(r) over S(r), term by term, against the printed factor."""
    p, r, rounds, gap = 0.4, 2, 5, 0.05
    target = gap ** (r / rounds)
    rewards = (1 / (p * target**2)) / (1 / (2.0**-r) ** 2)
    condition = f"p = {p:g}, r = {r}, R = {rounds}, Δ = {gap:g}"
    return [misprint(condition, 2.0**-r / (p * target), factor_of_rewards=exact(rewards))]


def _printed(gaps: np.ndarray, horizon: int, epsilon: float, constant: float) -> np.ndarray:
    """Step 3 of the proof of Theorem 1, with another constant for 16."""
    r = np.ceil(np.log2(1 / gaps) + 1)
    width = np.log(8 * ARMS * r**2 * horizon)
    return np.maximum(
        constant * width / (AGENTS * gaps**2),
        32 * r * np.sqrt(2 * width) / (AGENTS**1.5 * epsilon * gaps),
    )


def _sixteen(data: Data) -> list[Finding]:
    """The constant; shares of arms within the print's bound, and of sums over arms."""
    # S(r_k) is 8 log(.) / (M target^2), and the target gap of epoch r_k is at least Delta_k / 4.
    found = [misprint("constant", 16, follows=exact(8 * 4**2))]
    for horizon in data.horizons:
        gaps = gaps_of(uniform(), min(300, data.seeds))
        gone, _ = pulls_of_arms(horizon, len(gaps))
        left = (gone > 0) & (gaps > 0)
        printed = _printed(np.where(left, gaps, 1.0), horizon, 1.0, 16)
        right = _printed(np.where(left, gaps, 1.0), horizon, 1.0, 128)
        within = mean(((gone <= printed) & left).sum(1) / left.sum(1))
        most = float((gone / printed)[left].max())
        first = probable(f"{slots(horizon)}, arm by arm", _=within)
        words = f" of the arms within 16; most pulls / bound {most:.3g}"
        found.append(first.adding(words, most=exact(most)).uncounted("tells what hangs on it"))
        sums = (gaps * gone).sum(1), np.where(left, gaps * printed, 0).sum(1)
        summed = probable(f"{slots(horizon)}, summed over arms", _=share(sums[0] <= sums[1]))
        words = " of the instances within 16"
        found.append(summed.adding(words).uncounted("tells what hangs on it"))
        bound = float((gone / right)[left].max())
        other = at_most(f"{slots(horizon)}, with 128", 1, **{"most pulls / bound": exact(bound)})
        found.append(other.uncounted("what follows"))
    return found


def _printed_sum(data: Data) -> list[Finding]:
    gap = 0.25
    total = sum(2.0 ** -(r - 1) for r in range(1, math.ceil(math.log2(1 / gap)) + 2))
    return [
        misprint(f"Δ = {gap:g}", 2 * (1 - gap), **{"1 + ... + Δ, which is 2 - Δ,": exact(total)})
    ]


def _no_hops(data: Data) -> list[Finding]:
    components = graphs.components(table2.CASES["case 1"], table2.AGENTS)
    hops = exchange.sinks(components).on("sac")
    condition = "case 1, complete components of diameter 1"
    return [misprint(condition, 0, **{"hops to the sinks": exact(hops)})]


def _laplace(data: Data) -> list[Finding]:
    graph = graphs.make("regular-4", AGENTS)
    laplace = float(np.sort(nx.laplacian_spectrum(graph))[-2])
    _, modulus = walk()
    numbers = {"log(1/λ2), λ2 the second largest modulus of the walk": exact(-math.log(modulus))}
    return [misprint("4-regular, log(1/λ2) of the Laplace matrix", -math.log(laplace), **numbers)]


# R that make T^(2/R) / p^(3/2) at most M at p = 1, T = 10^6, and the others that are printed.
_LOG = math.log(10**6) / math.log(AGENTS)
_AT = "p = 1, T = 10⁶"
_CONDITIONS = (
    "Three conditions on R are printed: Remark 2; Remarks 3 and 5; Appendix C. From T^(2/R) / p^(3/2) ≤ M follows "
    "R ≥ 2 log T / log(M p^(3/2)), which is that of Remarks 3 and 5 at p = 1. IV-C2's R lies below all of them, where the "
    "minimum is M."
)

MISPRINTS = [
    Row("IV-B", r"has a scale factor of $\frac{2^{-r}}{p\Delta^{r/R}}$", "The term of rewards has the 2 and the Δ squared, in step 1 of Appendix C as well; the factor of the noise is right. The algorithm is given by S(r) itself, which is right.", _scale_factors),
    Row("Appendix B, step 3", r"\frac{16\log(8K (\left \lceil \log (\frac{1}{\Delta_k}) +1 \right \rceil)^2 T)}{M\Delta_k^2}",
             "128 for 16: the target gap of epoch r_k is between Δ_k/4 and Δ_k/2. The order is the same.", _sixteen),
    Row("IV-B, Theorem 2", r",\frac{ R\sqrt{\log (R^2KT)}}{\sqrt{M}\epsilon} \}", "A factor K is missing, also in Corollaries 1 and 2: the gap cancels in the sum over arms, which leaves a term for each. Theorem 1 has it.",
             _numbers(f"terms of the sum over {ARMS} arms", 1, follows=ARMS - 1)),
    Row("IV-B, Remark 2", r"$T^{2/R} /p^{3/2}\leq  M\rightarrow R", f"{_CONDITIONS} What is printed is enough all the same, as measured above.", _numbers(_AT, 4 * _LOG / 3, least_R=2 * _LOG)),
    Row("Appendix C", r"$T^{2/R} /p\leq  M\rightarrow R \geq \log T /\log pM$", "As above; Remark 2 has p^(3/2), and 4/3.", _numbers(_AT, _LOG, least_R=2 * _LOG)),
    Row("Appendix C", r"$\min\{M,\frac{T^{1/R}}{p^{3/2}}\}$ operation", "T^(2/R), as in Theorem 2.", _numbers("T = 10⁶, R = 5", 10 ** (6 / 5), **{"T^(2/R)": 10 ** (12 / 5)})),
    Row("VII-A2", r"the term $T^{-2/R}$ in Thereon 2", "T^(2/R), in Theorem 2.", _numbers("T = 10⁴, R = 5", 10 ** (-8 / 5), **{"T^(2/R)": 10 ** (8 / 5)})),
    Row("Appendix C", r"due to the fact $\Delta = O(\frac{1}{T})$", "Ω for O: the step needs a gap of at least 1/T.", _read("a gap of order at most 1/T is the case that the next sentence excludes")),
    Row("Appendix C", "we can only incur a regret less than $1$", "M for 1: the regret of one agent; summed over agents it is M. The order in T is the same.",
             _numbers(f"gap 1/T, T slots, M = {AGENTS}", 1, summed_over_agents=AGENTS)),
    Row("Appendix D", r"=2M(d_{G}-1) (1- \Delta)", "2 - Δ for 2 (1 - Δ). The order is the same.", _printed_sum),
    Row("V-A, Algorithm 3", r"\bar{y}_{k}(r)=\frac{1}{M}\sum_{j\in M}\hat{y}_{j,k}(r)", "The mean of all epochs for that of the last: the text beside it and the proofs have it.", _read("ŷ is of one epoch, ȳ of all")),
    Row("V-B3, Table I", "is the second largest eigenvalue of the Laplace matrix of the graph", "The matrix of the walk, and the modulus: the logarithm of 1/λ2 is negative with the Laplace matrix.", _laplace),
    Row("VI-A, Corollary 2", r"C^R_H(T) = O(c_2M\max_{q\in Q}\{d_G^q-1\} +c_1Q) R", "d for d - 1, as in Theorem 4: a complete component would cost nothing.", _no_hops),
    Row("Appendix F", r"= O(Md_G \max_{q\in Q}\{d_G^q-1\})", "Without the d_G, as in Theorem 4.", _read("the line before it has no d_G")),
    Row("VII-A3", "please refer to Section VI-D", "Section VI-C2: there is no VI-D.", _numbers("subsections of section VI", 4, follows=3)),
    Row("VII-B1", "The SPIN protocol runnning in the Ring graph has the largest delay", "GIS for SPIN. That the ring has the largest diameter is a definition.", _read("SPIN is the family of protocols from which GIS has its three stages; no other place of the paper names it")),
    Row("VII-C1", r"\{63,24,10,6,7\}", "53 for 63: there are 100 agents.", _numbers("agents", 100, sum=63 + 24 + 10 + 6 + 7)),
]  # fmt: skip
