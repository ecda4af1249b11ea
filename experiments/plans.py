"""Plans of the paper's instance (not in the paper): the answers of fmab.plan at six budgets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fmab_jax as fmab
from experiments import common
from fmab_jax.planning.plan import FRESH_SEEDS, Plan

AGENTS, ARMS, HORIZON = 50, 100, 10**5
LEAKS, LINKS = (0.1, 1.0, 10.0), (300, 5000)
WITHIN, CONFIDENCE = 0.1, 0.95
QUICK = {"seeds": 400}


def horizons(options: Sequence[int]) -> list[int]:
    """Returns the one horizon of the table."""
    return [HORIZON if HORIZON in options else min(options)]


def sweep(
    horizon: int, seeds: int, store: Path | None = None, quick: Mapping[str, int] | None = None
) -> list[Plan]:
    """Plans for each leak and number of links; budgets of one leak share their trials."""
    problem = fmab.Problem.uniform(agents=AGENTS, arms=ARMS)
    return [
        fmab.plan(
            problem,
            horizon,
            leak=leak,
            links=links,
            within=WITHIN,
            confidence=CONFIDENCE,
            max_seeds=(quick or {}).get("seeds", 10**6),
            store=store and store.with_name(f"{store.name}-{leak:g}"),
            progress=True,
        )
        for leak, links in itertools.product(LEAKS, LINKS)
    ]


def draw(results: Mapping[int, list[Plan]], folder: Path) -> list[Path]:
    """Writes the answers as a table."""
    rows: list[dict[str, Any]] = []
    for horizon, answers in results.items():
        for (leak, links), answer in zip(itertools.product(LEAKS, LINKS), answers, strict=True):
            rows.append(
                {
                    "T": horizon,
                    "leak": leak,
                    "links allowed": links,
                    "answer": answer.label,
                    "seeds": FRESH_SEEDS,
                    "regret at T": (answer.regret.mean, answer.regret.low, answer.regret.high),
                    "links, mean": answer.links.mean,
                    "links, most": answer.links.max,
                    "holds": answer.holds,
                    "within": answer.within,
                    "confidence": answer.confidence,
                    "candidates": answer.candidates,
                    "trials": answer.seeds,
                    "second": answer.second[0],
                    "second regret": answer.second[1],
                    "remark": answer.remark,
                }
            )
    return [common.save_rows(rows, folder / "plans.csv")]
