"""The question of a plan: one record of declared fields.

The arguments of `fmab_jax.plan`, the options of ``fmab plan`` and the keys of an answer are these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from fmab_jax.errors import refuse
from fmab_jax.parameters import Configurable, Flag, Parameter, Real, Whole, parameter, parameters_of
from fmab_jax.parts.networks import ComponentsOf, GraphOf, network, parts
from fmab_jax.records.problem import Problem
from fmab_jax.run.resources import MAX_SEEDS
from fmab_jax.sweeps.fields import FIELDS
from fmab_jax.sweeps.subjects import SHARED, ProblemOf

FIRST_SEEDS = 200
"""Seeds of the first look."""

OVER = 0.01
"""Share of runs that may exceed a budget that no structure bounds."""


class Spending(NamedTuple):
    """Links, numbers and bits of all arms, or the most that a run may have of them."""

    links: float
    numbers: float
    bits: float


def _budget(text: str) -> Any:
    """Declares a budget."""
    kind, remedy = Real(none_label="no budget", low=0.0), "give the most of a run, or leave it out"
    return parameter(kind, text, default=None, remedy=remedy)


def _flag(text: str, default: bool = False) -> Any:
    """Declares a truth value."""
    return parameter(Flag(), text, default=default, remedy="leave it out")


def _restate(known: Parameter, **changes: Any) -> Any:
    """Declares a field that studies have as well."""
    changes.setdefault("suggested", known.suggested)
    changes["remedy"] = known.remedy
    return parameter(known.kind, known.help, **changes)


@dataclass(frozen=True)
class Question(Configurable):
    """What a plan is asked."""

    problem: Problem = parameter(ProblemOf(), "Agents, arms and means.", keyword=False)
    horizon: int = _restate(SHARED["horizon"], keyword=False)
    leak: float | None = _restate(SHARED["leak"], keyword=False, suggested=1.0)
    view: str = _restate(SHARED["view"], default="messages")
    links: float | None = _budget("Most links of a run.")
    numbers: float | None = _budget("Most numbers on all links of a run.")
    bits: float | None = _budget("Most bits on all links of a run.")
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
    server: bool = _flag("Whether there is a server.", default=True)
    secure: bool = _flag("There is a secure sum over agents, which hides single messages.")
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
    proven: bool = _flag("Leave out values that the sources' theorems do not cover.")
    max_seeds: int = parameter(
        Whole(low=FIRST_SEEDS, high=MAX_SEEDS),
        f"Most seeds of a candidate, at least {FIRST_SEEDS}.",
        default=10**6,
        remedy="give the most seeds of a candidate",
    )
    root_seed: int = _restate(FIELDS["root_seed"], default=0)

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
