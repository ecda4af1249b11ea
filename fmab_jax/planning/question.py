"""The question of a plan: one record of declared fields.

The arguments of `fmab_jax.plan`, the options of ``fmab plan`` and the keys of an answer are these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from fmab_jax.errors import refuse
from fmab_jax.parameters import (
    LEAK,
    VIEW,
    Configurable,
    Flag,
    Real,
    Whole,
    parameter,
    parameters_of,
)
from fmab_jax.parts.networks import ComponentsOf, GraphOf, network, parts
from fmab_jax.records.problem import Problem
from fmab_jax.run.resources import MAX_SEEDS
from fmab_jax.sweeps.subjects import SHARED, ProblemOf

FIRST_SEEDS = 200
"""Seeds of the first look."""

OVER = 0.01
"""Share of runs that may exceed a budget that no structure bounds."""

_BUDGET = Real(none_label="no budget", low=0.0)
_LEAVE_OUT = "give the most of a run, or leave it out"


class Spending(NamedTuple):
    """Links, numbers and bits of all arms, or the most that a run may have of them."""

    links: float
    numbers: float
    bits: float


@dataclass(frozen=True)
class Question(Configurable):
    """What a plan is asked."""

    problem: Problem = parameter(ProblemOf(), "Agents, arms and means.", keyword=False)
    horizon: int = parameter(
        Whole(low=1, high=10**12),
        "T, slots that every agent plays; such as 2e5.",
        keyword=False,
        suggested=SHARED["horizon"].suggested,
        remedy=SHARED["horizon"].remedy,
    )
    leak: float | None = parameter(
        LEAK.kind,
        "What one reward leaks in the view; none for no noise.",
        keyword=False,
        suggested=1.0,
        remedy=LEAK.remedy,
    )
    view: str = parameter(VIEW.kind, VIEW.help, default="messages", remedy="choose who looks")
    links: float | None = parameter(
        _BUDGET, "Most links of a run.", default=None, remedy=_LEAVE_OUT
    )
    numbers: float | None = parameter(
        _BUDGET, "Most numbers on all links of a run.", default=None, remedy=_LEAVE_OUT
    )
    bits: float | None = parameter(
        _BUDGET, "Most bits on all links of a run.", default=None, remedy=_LEAVE_OUT
    )
    over: float = parameter(
        Real(low=0.0, high=1.0, open_high=True),
        "Share of runs that may exceed a budget: 0.5 limits the median, 0 all runs surely.",
        default=OVER,
        remedy="use 0.01 for one run in a hundred",
    )
    graph: object = parameter(
        GraphOf(none_label="none"),
        "Graph of the agents, a name or a file, for algorithms over a graph.",
        default=None,
    )
    components: object = parameter(
        ComponentsOf(none_label="none"),
        "Components of the agents, such as 20x5:star, for algorithms over components.",
        default=None,
    )
    server: bool = parameter(
        Flag(), "Whether there is a server.", default=True, remedy="leave it out"
    )
    secure: bool = parameter(
        Flag(),
        "There is a secure sum over agents, which hides single messages.",
        default=False,
        remedy="leave it out",
    )
    within: float = parameter(
        Real(low=0.0, high=10.0, open_low=True),
        "x: the answer's mean regret is at most 1 + x times that of the best candidate.",
        default=0.05,
        remedy="use 0.05 for 5 %",
    )
    confidence: float = parameter(
        Real(low=0.0, high=1.0, open_low=True, open_high=True),
        "Chance that this holds, at least.",
        default=0.95,
        remedy="use 0.95",
    )
    proven: bool = parameter(
        Flag(),
        "Leave out values that the sources' theorems do not cover.",
        default=False,
        remedy="leave it out",
    )
    max_seeds: int = parameter(
        Whole(low=FIRST_SEEDS, high=MAX_SEEDS),
        f"Most seeds of a candidate, at least {FIRST_SEEDS}.",
        default=10**6,
        remedy="give the most seeds of a candidate",
    )
    root_seed: int = parameter(
        Whole(high=2**32 - 1), "Selects all randomness.", default=0, remedy="give a seed"
    )

    def check(self) -> None:
        """Refuses a problem without a choice, and a network that does not fit it."""
        problem = self.problem
        if problem.arms < 2:
            refuse("arms", problem.arms, "at least 2: one arm leaves no choice", "add arms")
        # Candidates that do not fit are left out, so a wrong graph must be refused here.
        if self.graph is not None:
            network(self.graph, problem.agents)
        if self.components is not None:
            parts(self.components, problem.agents)

    @property
    def budgets(self) -> Spending:
        """The most of a run; infinity for no budget."""
        most = self.links, self.numbers, self.bits
        return Spending(*(math.inf if x is None else x for x in most))

    def describe(self) -> dict[str, str]:
        """Returns the question as texts, by the names of its fields."""
        problem, fields = self.problem, parameters_of(type(self))
        texts = {n: p.kind.text(getattr(self, n)) for n, p in fields.items() if n != "problem"}
        sizes = {"agents": f"{problem.agents:,}", "arms": f"{problem.arms:,}"}
        return sizes | problem.settings() | texts
