"""Suites, contestants, and matched trust.

`suites.toml` holds the questions: a problem, a horizon and a root seed each. The digest covers
everything in it that changes a number. `contestants.toml` holds the algorithms that are ranked.

Contestants are compared at equal leaks: the privacy ledger says what a view leaks at an epsilon,
and `match_trust` solves that for epsilon. A view that the ledger does not bound has no epsilon.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from experiments.common import DEMAB
from fmab_jax.algorithms.base import ALGORITHMS, Algorithm
from fmab_jax.algorithms.families.episodes import Episodes
from fmab_jax.algorithms.families.index import IndexPolicy
from fmab_jax.analysis.privacy import LedgerRow, privacy_ledger
from fmab_jax.errors import Refusal, refuse
from fmab_jax.parameters import ViewKind, parameters_of
from fmab_jax.parts.exchanges import Viewer
from fmab_jax.records.problem import Problem
from fmab_jax.sweeps.subjects import RandomProblem

FOLDER = Path(__file__).parent
# What a seed costs: rounds of an elimination, episodes, slots of one policy, or of many.
COSTS = ("rounds", "episodes", "shared", "slots")
PARAMETERS = ("epsilon", "epsilon_message")  # the card sets the first of them that there is
# Whom a leak is about, and how it is counted.
VIEWS = {
    "messages": "whoever reads single messages, pure",
    "sums": "whoever sees secure sums and no message, up to δ = 10⁻⁶",
    "actions": "whoever sees actions alone, up to δ = 10⁻⁶",
}
NO_BOUND = "no bound"  # the view of algorithms that no epsilon covers

# Epsilons between which one is searched, the relative error of its leak, and its digits.
_ENDS = 1e-7, 1e7
_TOLERANCE = 1e-9
_DIGITS = 12


@dataclass(frozen=True)
class Suite:
    """One question that all contestants are asked; ``stand_ins`` agents may stand for all."""

    name: str
    about: str
    problem: Problem
    horizon: int
    root_seed: int
    seeds: Mapping[str, int]  # by cost (`COSTS`); without seeds an algorithm takes no part
    leaks: tuple[float, ...]  # epsilons at which private algorithms are compared
    stand_ins: int

    def problem_for(self, algorithm: Algorithm) -> Problem:
        """Returns the problem that an algorithm is run on: with fewer agents if they are alone.

        Given the means, agents that hear of nobody are independent and alike: M / 5 times the
        regret of five has the expectation of that of M.
        """
        full = self.problem
        if not (full.drawn and full.homogeneous) or self.stand_ins >= full.agents:
            return full
        if not algorithm.exchange(full.agents).alone:
            return full
        return Problem(agents=self.stand_ins, arms=full.arms, instance_gap=full.instance_gap)


@dataclass(frozen=True)
class Suites:
    """All suites of a version, by name; the digest has 64 hexadecimal digits."""

    version: str
    digest: str
    suites: Mapping[str, Suite]

    def find(self, name: str) -> Suite:
        """Returns the suite of a name.

        Raises:
            ValueError: If there is none.
        """
        if name not in self.suites:
            refuse("suite", name, f"one of {', '.join(self.suites)}", "leave it out for all")
        return self.suites[name]


class Group(NamedTuple):
    """Who is ranked together within a suite: a key of `VIEWS` or `NO_BOUND`, and the leak."""

    view: str
    leak: float  # infinity for no bound


UNBOUNDED = Group(NO_BOUND, math.inf)


@dataclass(frozen=True)
class Contestant:
    """An algorithm with its parameters, but for the epsilon that the card sets."""

    label: str
    owner: type[Algorithm]
    options: Mapping[str, Any]

    @property
    def parameter(self) -> str | None:
        """The parameter that the card sets; None if there is none to set."""
        if not set(PARAMETERS).isdisjoint(self.options):
            return None
        known = parameters_of(self.owner)
        return next((name for name in PARAMETERS if name in known), None)

    def options_at(self, value: float = 1.0) -> dict[str, Any]:
        """Returns all parameters that are given, with the card's at a value."""
        return {**({self.parameter: value} if self.parameter else {}), **self.options}

    def build(self, value: float = 1.0) -> Algorithm:
        """Returns the algorithm at a value; a ValueError if a parameter is out of range."""
        return self.owner(**self.options_at(value))

    def write_call(self, value: float) -> str:
        """Writes the algorithm as Python calls it, such as "kl_se(epsilon=0.2, split=True)"."""
        options = self.options_at(value).items()
        listed = (f"{k}={v:.6g}" if isinstance(v, float) else f"{k}={v!r}" for k, v in options)
        return f"{self.owner.name}({', '.join(listed)})"


class Match(NamedTuple):
    """The epsilons at which a contestant leaks what is asked, and why it is absent from a view."""

    values: dict[Group, float]
    absent: dict[str, str]


@functools.cache
def shipped() -> Suites:
    """Returns the suites of this folder."""
    return read((FOLDER / "suites.toml").read_text("utf-8"))


def read(text: str) -> Suites:
    """Returns the suites that a text states, with their digest."""
    stated = tomllib.loads(text)
    common = {"leaks": tuple(map(float, stated["leaks"])), "stand_ins": stated["stand_ins"]}
    suites = {}
    for row in stated["suite"]:
        fields = {name: row[name] for name in ("name", "about", "horizon", "root_seed", "seeds")}
        suites[row["name"]] = Suite(problem=_problem(row), **fields, **common)
    # The digest leaves out the sentence `about`, but not the number of seeds: ranks depend on it.
    plain = [{k: v for k, v in row.items() if k != "about"} for row in stated["suite"]]
    content = json.dumps([stated["version"], common, plain], sort_keys=True)
    return Suites(stated["version"], hashlib.sha256(content.encode()).hexdigest(), suites)


def _problem(stated: Mapping[str, Any]) -> Problem:
    if "ratings" not in stated:
        return RandomProblem(**stated["problem"]).problem(stated["root_seed"])
    counts = np.array(stated["ratings"]["counts"], float)
    shares = counts / counts.sum(axis=-1, keepdims=True)
    return Problem.ratings(stated["ratings"]["levels"], shares)


@functools.cache
def contestants() -> tuple[Contestant, ...]:
    """Returns every shipped algorithm in its shipped variants, and DEMAB."""
    stated = tomllib.loads((FOLDER / "contestants.toml").read_text("utf-8"))
    return tuple(
        Contestant(
            row["label"],
            DEMAB if row["algorithm"] == "demab" else ALGORITHMS.find(row["algorithm"]),
            {n: None if v == "none" else v for n, v in row.get("options", {}).items()},
        )
        for row in stated["contestant"]
    )


def cost_of(algorithm: Algorithm) -> str:
    """Returns what a seed costs, one of `COSTS`."""
    if isinstance(algorithm, IndexPolicy):
        return "shared" if algorithm.shared else "slots"
    return "episodes" if isinstance(algorithm, Episodes) else "rounds"


def leak_of(algorithm: Algorithm, agents: int, view: str) -> float:
    """Returns what a view leaks of one reward over a run, to the reader of it that sees most.

    That is a pure epsilon for messages, else one up to delta; infinity for no bound, NaN where
    nobody has the view.
    """
    rows = _rows(privacy_ledger(algorithm, agents), algorithm.exchange(agents).alone, view)
    pure = view == "messages"
    leaks = [row.epsilon if pure else row.epsilon_at_delta for row in rows]
    return max(leaks, default=math.nan)


def match_trust(contestant: Contestant, agents: int, leaks: Sequence[float]) -> Match:
    """Returns the parameter's value for each view and leak, and why a view has none.

    Without a parameter to set, both are empty. A ValueError if it does not fit so many agents.
    """
    match = Match({}, {})
    if contestant.parameter is None:
        return match
    for view in VIEWS:

        def leak(value: float, view: str = view) -> float:
            return leak_of(contestant.build(value), agents, view)

        if reason := _why_absent(contestant.build(), agents, view):
            match.absent[view] = reason
            continue
        for target in leaks:
            try:
                value = _solve(leak, target)
            except Refusal:  # the algorithm refuses a value on the way
                continue
            if value is not None:
                # Rounded: last digits differ between machines, and would change the bits of runs.
                match.values[Group(view, target)] = float(f"{value:.{_DIGITS}g}")
        if not any(group.view == view for group in match.values):
            listed = " or ".join(f"{target:g}" for target in leaks)
            match.absent[view] = f"because no {contestant.parameter} in its range leaks {listed}"
    return match


def _solve(leak: Callable[[float], float], target: float) -> float | None:
    """Returns the parameter at which an increasing leak reaches its target, or None."""
    # In most ledgers the leak is a multiple of the parameter: then this is exact.
    guess = target / leak(1.0) if leak(1.0) else target
    if abs(leak(guess) / target - 1.0) <= _TOLERANCE:
        return guess

    def excess(log_value: float) -> float:
        return leak(math.exp(log_value)) - target

    low = high = math.log(target)
    while excess(low) > 0.0 and low > math.log(_ENDS[0]):
        low -= 1.0
    while excess(high) < 0.0 and high < math.log(_ENDS[1]):
        high += 1.0
    if not excess(low) <= 0.0 <= excess(high):
        return None
    return math.exp(brentq(excess, low, high, xtol=1e-12))


def _rows(ledger: Sequence[LedgerRow], alone: bool, view: str) -> list[LedgerRow]:
    """Returns the rows of a ledger that are about a view."""
    if view == "actions":
        return [row for row in ledger if row.viewer in (Viewer.WATCHERS, Viewer.OUTSIDER)]
    # Agents that are alone send nothing, whatever noise their rewards have.
    if alone:
        return []
    if view == "messages":
        return [row for row in ledger if row.view is ViewKind.MESSAGES]
    # An agent's knowledge of a sum counts, whether of its message or of its share of the noise.
    shares = [row for row in ledger if row.viewer is Viewer.SHARER]
    sums = [row for row in ledger if row.view is ViewKind.SUM and not row.is_one_round]
    return sums and sums + shares


def _why_absent(algorithm: Algorithm, agents: int, view: str) -> str:
    """Returns why no epsilon of a view can be matched; "" if one can."""
    leak = leak_of(algorithm, agents, view)
    if math.isfinite(leak):
        return ""
    if math.isinf(leak):
        return "because its ledger has no bound"
    if algorithm.exchange(agents).alone:
        return "because it tells nobody anything"
    if view == "messages":
        return "because no ε covers a message: the noise of a secure sum is split"
    if view == "sums":
        return "because its ledger knows no sum over agents"
    return "because its ledger says nothing of actions"
