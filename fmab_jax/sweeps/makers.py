"""What makes the algorithms and the problems of a study, in one spelling.

A study may be given a class, its name, a function, what one of these has made, or several of them.
`algorithms` and `problems` turn each into a `Maker`; nothing else asks which it was.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from dataclasses import field as data_field
from typing import Any

from fmab_jax.algorithms.base import Algorithm, check_names, installed, named
from fmab_jax.core.laws import KNOWN, law_of
from fmab_jax.core.problems import Problem
from fmab_jax.errors import refuse
from fmab_jax.parameters import (
    UNSET,
    Described,
    Kind,
    Parameter,
    Real,
    Whole,
    parameter,
    parameters_of,
)
from fmab_jax.run.contract import asking

# The default of an option that must be given.
NEEDED = inspect.Parameter.empty


@dataclass(frozen=True)
class LawOf(Kind):
    """A reward law, or its text: bernoulli, gaussian:SD, or one of a plug-in."""

    metavar = "LAW"

    def checked(self, name: str, value: Any, remedy: str) -> Any:
        """Returns the law."""
        if isinstance(value, str) and value.partition(":")[0] not in KNOWN:
            installed()  # an installed plug-in may bring it; all algorithms are imported for that
        return law_of(value, name)

    def plain(self, value: Any) -> Any:
        """Returns its description."""
        return value.describe()

    def label(self, value: Any) -> Any:
        """Returns its words."""
        return value.label()

    text = label

    def word(self, value: Any) -> Any:
        """Returns its name and its numbers, such as gaussian-0.1."""
        fields = {n: v for n, v in value.describe().items() if n != "law"}
        return "-".join([value.name, *(str(each) for each in fields.values())])


@dataclass(frozen=True)
class Drawn(Described):
    """The problem of a study that names no other: means from U[0, 1], drawn by each seed."""

    agents: int = parameter(
        Whole(low=1, high=10**7),
        "M, agents.",
        default=50,
        symbol="M",
        label="agents M",
        remedy="give the number of agents M",
    )
    arms: int = parameter(
        Whole(low=1, high=10**6),
        "K, arms.",
        default=100,
        symbol="K",
        label="arms K",
        remedy="give the number of arms K",
    )
    spread: float = parameter(
        Real(low=0.0, high=1.0),
        "How far the means differ between agents, up to 1.",
        default=0.0,
        shown="0, agents are alike",
        remedy="0 makes the agents alike, 1 is the most",
    )
    instance_gap: float | None = parameter(
        Real(none="gaps left to chance", low=1e-9, high=1.0, open_high=True),
        "Smallest gap of the means that each seed draws.",
        default=None,
        shown="left to chance",
        symbol="instance gap",
        label="smallest gap of an instance",
        remedy="give the smallest non-zero gap, or None to leave it to chance",
    )
    rewards: Any = parameter(
        LawOf(),
        "Reward law: bernoulli, gaussian:SD, or a plug-in's; fmab algorithms lists them.",
        default="bernoulli",
        symbol="",
        label="rewards",
        shown="bernoulli",
    )
    fixed_instance: int | None = parameter(
        Whole(none="a new instance for each seed", low=0, high=2**32 - 1),
        "Give all seeds the means that this seed would draw.",
        default=None,
        shown="off",
        symbol="instance of seed",
        label="instance of seed",
        remedy="give the seed whose means all seeds shall have",
    )

    def problem(self, root_seed: int) -> Problem:
        """Returns the problem under a root seed."""
        made = Problem.heterogeneous(
            self.agents, self.arms, self.spread, self.instance_gap, rewards=self.rewards
        )
        return made if self.fixed_instance is None else made.fixed(self.fixed_instance, root_seed)


@dataclass(frozen=True, eq=False)
class Maker:
    """Makes algorithms, or problems, of options given by name."""

    name: str  # how a study states it
    wanted: type  # Algorithm or Problem
    make: Callable[..., Any]
    # Their defaults; UNSET where the class itself says what is missing, or `NEEDED`.
    options: Mapping[str, Any]
    # What is known of them; of a function's options only that there are such.
    parameters: Mapping[str, Parameter]
    fixed: Any = None  # what it makes, where that is made already
    _checked: dict[tuple[str, int], Any] = data_field(default_factory=dict)

    @property
    def described(self) -> bool:
        """Whether it says what each of its options may be."""
        return isinstance(self.make, type) and issubclass(self.make, Described)

    def value(self, name: str, value: Any, place: int = 0) -> Any:
        """Returns the value of an option, checked; once for each place on its axis.

        A graph is so read and checked once, not for each epsilon.
        """
        # What an algorithm was made with has been checked.
        if not self.described or value is UNSET or self.fixed is not None:
            return value
        if (name, place) not in self._checked:
            self._checked[name, place] = self.parameters[name].check(value)
        return self._checked[name, place]

    def made(self, chosen: Mapping[str, Any], place: Mapping[str, int]) -> Any:
        """Makes one of what is chosen for it among values by name, each at a place on its axis."""
        if self.fixed is not None:
            return self.fixed
        given = {
            name: self.value(name, chosen[name], place.get(name, 0))
            for name in self.options
            if name in chosen and chosen[name] is not UNSET
        }
        kind = self.wanted.__name__.lower()
        for name, default in self.options.items():
            if default is NEEDED and name not in given:
                refuse(name, UNSET, "given", f"the {kind} {self.name} needs it")
        with asking(self.make) if self.described else nullcontext():
            made = self.make(**given)
        if isinstance(made, Drawn):
            made = made.problem(chosen["root_seed"])
        if not isinstance(made, self.wanted):
            allowed = f"a maker that returns an {self.wanted.__name__}"
            refuse(kind, made, allowed, "return what it makes")
        return made


def algorithms(given: Any, parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Returns what a study is given as ``algorithm``, as makers, and all parameters.

    Of a configured algorithm, its class, and its parameters as if each was given.
    """
    if isinstance(given, Algorithm):
        maker = _maker(type(given), Algorithm)
        own = {name: getattr(given, name) for name in maker.parameters}
        for name in own:
            if name in parameters:
                remedy = "the algorithm has its own; or pass the algorithm itself, not a call of it"
                refuse(name, parameters[name], "left out with a configured algorithm", remedy)
        parameters = {n: v for n, v in own.items() if v is not UNSET} | parameters
        return replace(maker, fixed=given), parameters

    def one(item: Any) -> Maker:
        make = named(item) if isinstance(item, str) else item
        if isinstance(make, Algorithm) or not callable(make):
            remedy = "in a list pass the algorithm itself, such as fmab_jax.cdp_mab"
            refuse("algorithm", item, "an algorithm such as fmab_jax.cdp_mab, or its name", remedy)
        return _maker(make, Algorithm)

    return _each(one, given, "algorithm"), parameters


def problems(given: Any, parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Returns what a study is given as ``problem``, as makers, and all parameters.

    However means that seeds draw are stated, by a `Problem`, a maker or options, it is then the
    same study: that of `Drawn`.
    """
    if given is None:
        given = Drawn
    elif isinstance(given, Problem) and given.drawn:
        names = ("agents", "arms", "spread", "instance_gap", "rewards")
        own = {name: getattr(given, name) for name in names}
        for name in own:
            if name in parameters:
                remedy = "the problem has its own; or pass a maker such as Problem.uniform"
                refuse(name, parameters[name], "left out with a Problem", remedy)
        given, parameters = Drawn, {**own, **parameters}
    # Not of an array, whose equality is one as well.
    elif callable(given) and {"agents", "arms"} <= set(parameters):
        if given == Problem.heterogeneous:
            given, parameters = Drawn, {"spread": 1.0, **parameters}
        elif given == Problem.uniform and not {"spread", "instance_gap"} & set(parameters):
            given = Drawn

    def one(item: Any) -> Maker:
        if isinstance(item, Problem):
            return Maker("", Problem, lambda: item, {}, {}, item)
        if not callable(item):
            remedy = "such as fmab_jax.Problem.uniform(50, 100), or the maker itself"
            refuse("problem", item, "a Problem or a function that makes one", remedy)
        return _maker(item, Problem)

    return _each(one, given, "problem"), parameters


def _each(one: Callable[[Any], Maker], given: Any, name: str) -> Any:
    """Returns one maker, or several: a list of them, or a dictionary with their labels."""
    if isinstance(given, (Mapping, list, tuple)) and not given:
        refuse(name, given, "not empty", "give at least one value")
    if isinstance(given, Mapping):
        return {label: one(item) for label, item in given.items()}
    if isinstance(given, (list, tuple)):
        return [one(item) for item in given]
    return one(given)


def _maker(make: Any, wanted: type) -> Maker:
    """Returns the maker of a described class, or of a function."""
    if isinstance(make, type) and issubclass(make, Algorithm):
        check_names(make)
        own = "name" in vars(make) and not make.__module__.startswith("fmab_jax.")
        if own and installed().get(make.name, make) is not make:
            allowed = "the name of no other algorithm"
            refuse(f"{make.__name__}.name", make.name, allowed, "rename it")
    if isinstance(make, type) and issubclass(make, Described):
        known = parameters_of(make)
        defaults = {name: each.default for name, each in known.items()}
        return Maker(name_of(make), wanted, make, defaults, known)
    try:
        given = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        refuse("algorithm", make, "a maker with named parameters", "wrap it in a function")
    unnamed = inspect.Parameter.POSITIONAL_ONLY
    if any(each.kind is unnamed and each.default is each.empty for each in given):
        refuse("algorithm", make, "a maker with named parameters", "wrap it in a function")
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    defaults = {each.name: each.default for each in given if each.kind in by_name}
    known = {}
    for name, default in defaults.items():
        # The root seed of a problem's maker is the study's.
        if name != "root_seed" or wanted is Algorithm:
            words = name.replace("_", " ")
            known[name] = Parameter(name, Kind(none="none"), default, symbol=words, label=words)
    return Maker(name_of(make), wanted, make, defaults, known)


def name_of(make: Any) -> str:
    """Returns the name of a maker, or of another function."""
    if isinstance(make, functools.partial):
        return name_of(make.func)
    # Not its repr, which holds an address and so changes from run to run.
    return str(getattr(make, "name", "") or getattr(make, "__name__", type(make).__name__))
