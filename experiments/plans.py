"""Plans (not in the paper): the answers of fmab.plan at six budgets, and on a small network."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx

import fmab_jax as fmab
from experiments import common
from fmab_jax.planning.answers import Answer
from fmab_jax.planning.runs import FRESH_SEEDS

HORIZON, CONFIDENCE = 10**5, 0.95
QUICK = {"seeds": 400}
horizons = common.one_horizon(HORIZON)


class Question(NamedTuple):
    """What a plan is asked.

    Attributes:
        leak: Epsilon of one reward in single messages.
        links: Most links of a run.
        agents: M.
        arms: K, with means from U[0, 1].
        stretch: T, as a multiple of the horizon of the experiment.
        within: x.
        graph: Graph of the agents.
    """

    leak: float
    links: int
    agents: int = 50
    arms: int = 100
    stretch: int = 1
    within: float = 0.1
    graph: nx.Graph | None = None


NETWORK = nx.connected_watts_strogatz_graph(20, 4, 0.2, seed=1)
QUESTIONS = (
    *itertools.starmap(Question, itertools.product((0.1, 1.0, 10.0), (300, 5000))),
    Question(2.0, 400, 20, 30, 2, 0.05, NETWORK),
)


def sweep(
    horizon: int, seeds: int, store: Path | None = None, quick: Mapping[str, int] | None = None
) -> list[Answer]:
    """Plans for each question; those with one leak and one problem share their trials."""
    most_seeds = (quick or {}).get("seeds", 10**6)
    return [
        fmab.plan(
            fmab.Problem(agents=question.agents, arms=question.arms),
            question.stretch * horizon,
            leak=question.leak,
            links=question.links,
            graph=question.graph,
            within=question.within,
            confidence=CONFIDENCE,
            max_seeds=most_seeds,
            store=store and store.with_name(f"{store.name}-{question.agents}-{question.leak:g}"),
            progress=True,
        )
        for question in QUESTIONS
    ]


def draw(results: Mapping[int, Sequence[Answer]], folder: Path) -> list[Path]:
    """Writes the answers as a table."""
    rows: list[dict[str, Any]] = []
    for horizon, answers in results.items():
        for question, answer in zip(QUESTIONS, answers, strict=True):
            rows.append(
                {
                    "agents": question.agents,
                    "arms": question.arms,
                    "T": question.stretch * horizon,
                    "edges": 0 if question.graph is None else question.graph.number_of_edges(),
                    "leak": question.leak,
                    "links allowed": question.links,
                    "answer": answer.label,
                    "seeds": FRESH_SEEDS,
                    "regret at T": (answer.regret.mean, answer.regret.low, answer.regret.high),
                    "links, mean": answer.links.mean,
                    "links, most": answer.links.max,
                    "holds": answer.holds,
                    "within": answer.within,
                    "confidence": answer.question.confidence,
                    "candidates": answer.candidates,
                    "trials": answer.seeds,
                    **_describe_next(answer),
                    "seeds of the answer": int(answer.frame.seeds[0]),
                    "limit": answer.tail.limit,
                    "theorem": answer.tail.source,
                    "seconds": answer.elapsed_s,
                    "compile seconds": answer.compile_s,
                    "remark": answer.remark,
                }
            )
    return [common.save_rows(rows, folder / "plans.csv")]


def _describe_next(answer: Answer) -> dict[str, Any]:
    """Returns the next best candidate within the budgets, and how much more it loses."""
    rows = answer.rivals[answer.rivals.over == ""]
    if not len(rows):
        return {"next": "", "next loses more": (math.nan,) * 3}
    rival = rows.iloc[0]
    more = rival.more, rival.more_low, rival.more_high
    return {"next": rival.candidate, "next loses more": more}
