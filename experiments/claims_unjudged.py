"""The paper's sentences that CLAIMS.md does not judge, by the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

TABLE1, TABLE2 = "[table I](table1_graphs.md)", "[table II](table2_hybrid.md)"
# Section and a few words of each, as the LaTeX has them.
UNJUDGED: Mapping[str, Sequence[tuple[str, str]]] = {
    "It follows from definitions or by arithmetic; no seed changes it.": [
        ("IV-A", r"so $S(r) - S(r-1)$ is also doubling-increasing"),
        ("Appendix B, step 1", r"Combing Eq.~\eqref{eq:condition1} and Eq.~\eqref{eq:condition2}"),
        ("IV-C2", r"the terms $T^{2/R}$ and $T^{1/R}$ turn to be a constant"),
        ("Appendix E", r"$\frac{1-\Delta}{1-\Delta^{1/R}}+ \frac{R}{T}\leq 1$ since $R\geq 1$"),
        ("VI-B2", r"the delay of each communication round is 0 and we recover $R_{C}(T)$"),
        ("VI-B2", r"we can recover $R_{D}(T)$ with $Q=1$"),
        ("VII-A3", r"the inconsistency will bring a linear regret with $T$"),
    ],
    "The privacy ledger says what covers whom: docs/privacy.md.": [
        ("IV-A, Theorem 1", r"is $M\epsilon$-differentially private"),
        ("V-A, Theorem 3", r"is $(M\epsilon)-$ differentially private"),
    ],
    f"Links of a round follow from the graph: {TABLE1}, docs/semantics.md.": [
        ("IV-A, Theorem 1", r"incurs communication cost $C_{C}(T)= O(c_1M\log T)$"),
        ("V", r"it has implosion or the overlap problems"),
        ("V-A, Theorem 3", r"incurs communication cost $C_{D}(T) = O( c_2d_G\log T \sum_{i=1}^M d_i/2)$"),
        ("V-B1", r"the communication costs incurred by these two settings are the same"),
        ("V-B3", r"Dense graphs have a fast convergence rate but demand more connections"),
        ("V-B3", r"Sparse graphs build fewer agent-to-agent links in each communication round"),
        ("VI-A, Theorem 4", r"O( (c_2M\max_{q\in Q}\{d_G^q\} +c_1Q) \log T)"),
    ],
    f"Links are counted, not simulated: {TABLE1}.": [
        ("V-B3, Table I", r"$O(2(M-1)\log T$ & $O((M^2/2)\log T)$"),
        ("V-B3, Table I", r"$O(\frac{dM\log M}{2\log (1/\lambda_2)}\log T$"),
        ("VII-B1", r"has the smallest communication cost"),
        ("VII-B1", r"which introduces a huge communication cost"),
    ],
    f"Links and waits follow from the components: {TABLE2}.": [
        ("VI-B1", r"significantly reduces the burden of the uplink"),
        ("VI-B1", r"reduces the number of agent-to-agent links inside a component"),
        ("VI-B3", r"the unbalanced agent distribution may cause a large delay"),
        ("VI-B3", r"rather than fully connected or ring structure"),
    ],
    (
        f"Figure 11's section. Links are counted, not simulated: {TABLE2}, "
        "[costs](fig11_hybrid_cost.md); case by case, [regret](fig11_hybrid.md)."
    ): [
        ("VII-C1", r"can finally achieve similar per-agent regrets"),
        ("VII-C1", r"the communication cost gradually increases"),
        ("VII-C1", r"requires us to establish more agent-to-agent links"),
        ("VII-C1", r"(like star graph) achieve smaller communication cost"),
        ("VII-C1", r"significantly reduces the communication cost compared with the centralized setting"),
        ("VII-C1", r"or the fully-decentralized setting(case 3)"),
    ],
    (
        "How a term grows shows beyond the horizons and instances of the figures: `fmab "
        "bounds` has its constants."
    ): [
        ("I", r"inversely proportional to $\epsilon$"),
        ("IV-A, Theorem 1", r"\sum_{k=1}^{K} \frac{\log(KT\log T)}{\Delta_k}"),
        ("IV-A, Theorem 1", r"$\frac{K\log T \sqrt{\log(KT\log T)}}{\sqrt{M}\epsilon}$"),
        ("IV-A, Remark 1", r"until reaching $O(\frac{K\log(KT\log T)}{\Delta})$"),
        ("Appendix B, step 1", r"$\Pr\{E_R\} \geq 1- \frac{1}{T}$"),
        ("IV-B, Theorem 2", r"$\min\{M,\frac{T^{2/R}}{p^{3/2}}\}$"),
        ("IV-C1", r"If $\Delta<\frac{\epsilon \sqrt{M}}{\sqrt{\log (T)}}$, the first term dominate"),
        ("IV-C1", r"a $O(\frac{\log ^{1.5} T}{\epsilon \sqrt{M}})$ regret"),
    ],
    "No figure of section VII shows it; [table I](table1_graphs.md) has a 4-regular graph, docs/semantics.md gossip.": [
        ("V", r"gossiping distributes information slowly and incurs large end-to-end delay"),
        ("V-B3, Table I", r"$ R_C(T)+O(\frac{M\log M}{\log (1/\lambda_2)})$"),
    ],
    "An opinion, an assumption, an explanation, or a result of others.": [
        ("Abstract", r"which are consistent with our theoretical analysis"),
        ("II", r"an $O(K\log^{2.5}(T))$ order privacy-related regret"),
        ("II", r"which incurs $O(T)$ communication cost"),
        ("III-C", r"protect the private historical data when revealing messages"),
        ("III-B", r"we reasonably assume $c_1>>c_2$"),
        ("IV-A, Remark 1", r"is the minimum cost needed to achieve $O(\log T)$ order regret"),
        ("IV-B", r"choosing the right time slots for communication is crucial"),
        ("IV-B", r"may bring a linear growth of regret without further exploration"),
        ("IV-B", r"the regret will scale with the number of agents"),
        ("V", r"the irregular connections lead to different local aggregation results"),
        ("V-B2", r"indicates the convergence rate of local estimation to global estimation"),
        ("V-B3", r"can achieve the best performance"),
        ("V-B4", r"more frequent communications require more noise to be added"),
        ("VI", r"the delay for reaching consensus in each communication round is unacceptable"),
        ("VI-A, Remark 4", r"each node cannot access the structure of the entire graph"),
        ("VI-C1", r"The centralized setting does not introduce delay"),
        ("VI-C1", r"The items are only related to the graph structure and do not scale with $T$"),
        ("VI-C1", r"can achieve the same $O(\log T)$ order regret without considering privacy"),
        ("VI-C2", r"No individual agents can make a correct inference by simply collecting individual rewards"),
    ],
}  # fmt: skip
