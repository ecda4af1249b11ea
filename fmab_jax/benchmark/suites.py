"""The suites and who is shipped, as data: `suites.toml` and `contestants.toml` beside this file.

A suite is a problem, a horizon and a root seed: whoever is run on it answers the same question. The
digest is that of everything in the suites' file that changes a number.
"""

from __future__ import annotations

import functools
import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from fmab_jax.algorithms.base import Algorithm, named
from fmab_jax.algorithms.families.episodes import Episodes
from fmab_jax.algorithms.families.index import IndexPolicy
from fmab_jax.analysis.statements import Question
from fmab_jax.core.problems import Problem
from fmab_jax.sweeps.makers import Drawn

COSTS = ("rounds", "episodes", "shared", "slots")
"""What a seed costs: rounds of an elimination, episodes, slots of one policy, or of many."""


@dataclass(frozen=True)
class Suite:
    """One question that all contestants are asked."""

    name: str  # what the command line calls it
    about: str  # what it is, in a sentence
    problem: Problem  # on what
    horizon: int  # T, in slots
    root_seed: int  # of all randomness
    # How many, by what a seed costs (`COSTS`); a sort that is not there takes no part.
    seeds: Mapping[str, int]
    leaks: tuple[float, ...]  # epsilons at which private algorithms are compared
    stand_ins: int  # agents that stand for all where nobody hears anybody and agents are alike

    @property
    def question(self) -> Question:
        """What was asked, for statements."""
        return Question(self.horizon, self.root_seed, f"suite {self.name}")

    def played(self, algorithm: Algorithm) -> Problem:
        """Returns the problem that an algorithm is run on: with fewer agents where they are alone.

        Given the means, agents that hear of nobody are independent and alike: M / 5 times the
        regret of five has the expectation of that of M.
        """
        own = self.problem
        if not (own.drawn and own.homogeneous) or self.stand_ins >= own.agents:
            return own
        if not algorithm.exchange(own.agents).alone:
            return own
        return Problem.heterogeneous(self.stand_ins, own.arms, 0.0, own.instance_gap)


def cost_of(algorithm: Algorithm) -> str:
    """Returns what a seed costs, one of `COSTS`."""
    if isinstance(algorithm, IndexPolicy):
        return "shared" if algorithm.shared else "slots"
    return "episodes" if isinstance(algorithm, Episodes) else "rounds"


@dataclass(frozen=True)
class Contestant:
    """An algorithm without its epsilon."""

    label: str  # in tables
    owner: type[Algorithm]  # its class
    options: Mapping[str, Any]  # its parameters, but for those that the benchmark sets


@dataclass(frozen=True)
class Suites:
    """All suites of a version."""

    version: str  # of the file
    digest: str  # of all that changes a number, 64 hexadecimal digits
    suites: Mapping[str, Suite]  # by name


@functools.cache
def shipped() -> Suites:
    """Returns the suites of this package."""
    return read(_text("suites.toml"))


def read(text: str) -> Suites:
    """Returns the suites that a text states, with their digest."""
    stated = tomllib.loads(text)
    common = {"leaks": tuple(map(float, stated["leaks"])), "stand_ins": stated["stand_ins"]}
    made = {}
    for each in stated["suite"]:
        own = {name: each[name] for name in ("name", "about", "horizon", "root_seed", "seeds")}
        made[each["name"]] = Suite(problem=_problem(each), **own, **common)
    # The digest leaves out the sentence `about`, but not the number of seeds: ranks depend on it.
    plain = [{k: v for k, v in each.items() if k != "about"} for each in stated["suite"]]
    whole = json.dumps([stated["version"], common, plain], sort_keys=True)
    return Suites(stated["version"], hashlib.sha256(whole.encode()).hexdigest(), made)


def _problem(stated: Mapping[str, Any]) -> Problem:
    if "ratings" not in stated:
        return Drawn(**stated["problem"]).problem(stated["root_seed"])
    counts = np.array(stated["ratings"]["counts"], float)
    shares = counts / counts.sum(axis=-1, keepdims=True)
    return Problem.ratings(stated["ratings"]["levels"], shares)


@functools.cache
def contestants() -> tuple[Contestant, ...]:
    """Returns every shipped algorithm in its shipped variants."""
    found = []
    for each in tomllib.loads(_text("contestants.toml"))["contestant"]:
        options = {n: None if v == "none" else v for n, v in each.get("options", {}).items()}
        found.append(Contestant(each["label"], named(each["algorithm"]), options))
    return tuple(found)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
