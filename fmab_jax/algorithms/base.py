"""Algorithms, and how they are found: frozen dataclasses that bind to trials.

An algorithm states its parameters as fields (`fmab_jax.parameters`) and binds them, with a problem
and a horizon, to a *trial*: a pytree whose static part is its structure and whose values are its
leaves. Almost always it fills in a family (`families.elimination`, `families.index`), which owns
the loop. A class that lies in this folder, or in a plug-in that was loaded, is known by its name.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import pkgutil
import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.laws import KNOWN, check_class
from fmab_jax.core.ledgers import ACTIONS as ACTIONS  # so that plug-ins import from here
from fmab_jax.core.ledgers import ANYBODY, SERVER, UNSTATED, checked_rows, receivers, together
from fmab_jax.core.ledgers import Seen as Seen
from fmab_jax.core.outputs import OF_RESULTS, Output
from fmab_jax.core.plugins import defined_in, file_of, foreign_refused, source_digest
from fmab_jax.core.plugins import imported as import_file
from fmab_jax.core.plugins import imported_module as import_name
from fmab_jax.core.problems import Problem
from fmab_jax.core.rewards import Law
from fmab_jax.core.trials import Trial
from fmab_jax.errors import PlainText, check_frozen_class, did_you_mean, real, refuse
from fmab_jax.parameters import Configurable, parameters_of

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
# What results, studies and problems call something else.
_TAKEN = OF_RESULTS | {
    *("algorithm", "problem", "outputs", "asked", "horizon", "seeds", "root_seed", "times"),
    *("spacing", "sum_agents", "keep", "until", "axes", "listed", "name", "title"),
    *("agents", "arms", "spread", "instance_gap", "rewards", "fixed_instance"),
}
_loaded: dict[str, type[Algorithm]] = {}


# Attributes that decide how rewards become messages and actions; all others are functions of these.
# `values` is among them: the noise is scaled by it.
_MADE_PUBLIC = (
    *("noise_scale", "noisy", "remembers", "sums_securely", "values", "settled"),
    *("init", "release", "update", "learn", "choose", "due", "communicate", "bind", "make_trial"),
)


@dataclass(frozen=True)
class Algorithm(Configurable):
    """A validated configuration of an algorithm; subclasses are frozen dataclasses.

    Attributes:
        name: What the command line, study files and results call it.
        title: What figures call it.
        source: Where it is from.
        heard: Who is heard, in a few words.
        trusted: Who is trusted with what, in a few words.
        usual_agents: Agents that the command line takes where none are given.
        examples: Options after ``fmab run NAME`` or ``fmab sweep NAME``, for their help.

    Example:
        An algorithm is a value. It tells what it is, who hears it and what its messages leak.

        >>> from dataclasses import dataclass
        >>> import fmab_jax as fmab
        >>> from fmab_jax.errors import refuse
        >>> algorithm = fmab.cdp_mab(0.5, participation=0.4)
        >>> algorithm.heard, algorithm.privacy(algorithm.exchange(5))
        ('a server hears ceil(pM) agents a round', {'epsilon': 0.5, 'epsilon_message': 1.0})

        Another one derives from it, here with parameters that must go together.

        >>> @dataclass(frozen=True)
        ... class Careful(fmab.cdp_mab):
        ...     name = "careful"
        ...
        ...     def check(self):
        ...         super().check()
        ...         if self.rounds is not None and self.participation < 0.5:
        ...             allowed, remedy = "None where p < 0.5", "let more agents report"
        ...             refuse("rounds", self.rounds, allowed, remedy)
        ...
        ...     def number_bits(self, arms):
        ...         return 32
        >>> Careful(1.0, participation=0.4, rounds=3)
        Traceback (most recent call last):
        fmab_jax.errors.Refusal: rounds=3: must be None where p < 0.5; let more agents report
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    source: ClassVar[str] = ""
    heard: ClassVar[str] = ""
    trusted: ClassVar[str] = ""
    usual_agents: ClassVar[int] = 50
    examples: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Resets what a plug-in that changes another algorithm has to state anew.

        Title and source are its own, and a privacy ledger holds only for what it was stated for.
        """
        super().__init_subclass__(**options)
        if _is_ours(cls):
            return
        body = dict(vars(cls))
        changes = any(name in body for name in _MADE_PUBLIC)
        if body.get("name") and any(vars(base).get("name") for base in cls.__mro__[1:]):
            cls.title, cls.source = body.get("title", ""), body.get("source", "")
        if changes and "ledger" not in body:
            cls.ledger = Algorithm.ledger  # type: ignore[method-assign]
        if (changes or "ledger" in body) and "coalition" not in body:
            cls.coalition = Algorithm.coalition  # type: ignore[method-assign]

    @abstractmethod
    def exchange(self, agents: int) -> Exchange:
        """Returns who is heard, and what it costs, among so many agents; computed on the host.

        Raises:
            ValueError: If a parameter does not fit the number of agents.
        """
        raise NotImplementedError

    def bind(
        self,
        problem: Problem,
        horizon: int,
        *,
        exchange: Exchange,
        sum_agents: bool = True,
        room: int | None = None,
    ) -> Any:
        """Returns the trial of this algorithm on a problem.

        Args:
            problem: On what.
            horizon: T, in slots.
            exchange: What `exchange` returned for the problem's agents.
            sum_agents: Draw totals over agents where that is exact.
            room: Rows that agents are padded to where they shape an array; at least M.

        Raises:
            ValueError: If the problem is not one that the algorithm can run on.
        """
        if self.homogeneous_only:
            problem.check_homogeneous(self.name)
        return self.make_trial(problem, horizon, exchange, room or problem.agents, sum_agents)

    def make_trial(
        self, problem: Problem, horizon: int, exchange: Exchange, room: int, sum_agents: bool
    ) -> Trial:
        """Returns the trial that `bind` asks for; a family states it."""
        raise NotImplementedError

    @property
    def homogeneous_only(self) -> bool:
        """Whether agents whose means differ are refused."""
        return False

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Returns what the equations find in ``params``: every parameter that is a number.

        Fields of a class outside this package are there in any case: see `collect_numbers`.
        """
        fields = {name: getattr(self, name) for name in parameters_of(type(self))}
        return {name: float(x) for name, x in fields.items() if isinstance(x, (int, float))}

    def privacy(self, exchange: Exchange) -> dict[str, float]:
        """Returns ``epsilon`` and ``epsilon_message``, infinite where there is no noise."""
        return {"epsilon": float("inf"), "epsilon_message": float("inf")}

    def number_bits(self, arms: int) -> int:
        """Returns the bits of one number that is sent, among so many arms; a real number has 64."""
        return 64

    def ledger(self, exchange: Exchange) -> tuple[Seen, ...]:
        """Returns who sees what of an agent's rewards, and what epsilon covers it.

        Privacy is never guessed: by default nothing bounds what is seen, and the row says so. A
        class that changes what is sent or done, and states no ledger, is back at that.
        """
        # An elimination says whether it draws noise.
        if not getattr(self, "noisy", True):
            return noiseless_ledger(self, exchange)
        return _list_rows(exchange, f"{UNSTATED}; state a ledger")

    def coalition(self, exchange: Exchange, size: int) -> tuple[Seen, ...]:
        """Returns what so many agents together see of another one's reward.

        They put together all that they are told and do, and take their own messages out. Privacy is
        never guessed: by default nothing bounds it, but where the ledger is about anybody.

        Args:
            exchange: Whose table it is.
            size: Of the coalition, in [1, M - 1].
        """
        rows = [row for row in ledger_of(self, exchange) if row.who != SERVER]
        if rows and all(row.who in (ACTIONS, *ANYBODY) for row in rows):
            worst = max(rows, key=lambda row: row.epsilon)
            return (worst._replace(who=together(size), over=min(worst.over, 1)),)
        return (Seen(together(size), "all that they are told", float("inf"), "not stated"),)

    def describe(self) -> dict[str, Any]:
        """Returns a JSON-able identity: name, parameters, and the source of foreign code."""
        digest = source_digest(type(self))
        return {"algorithm": self.name, **self.plain(), **({"code": digest} if digest else {})}


def _is_ours(owner: type) -> bool:
    """Tells whether this package defines a class."""
    return owner.__module__.startswith("fmab_jax.")


def noiseless_ledger(algorithm: Algorithm, exchange: Exchange) -> tuple[Seen, ...]:
    """Returns the ledger of an algorithm without noise; a class takes it as its ``ledger``."""
    return _list_rows(exchange, "a function of the rewards; no noise is stated")


def _list_rows(exchange: Exchange, why: str) -> tuple[Seen, ...]:
    """Returns a row without a bound for everybody who sees something."""
    rows = [Seen(who, "messages", float("inf"), why) for who in receivers(exchange)]
    return (*rows, Seen(ACTIONS, "actions", float("inf"), why))


def collect_numbers(
    algorithm: Algorithm, exchange: Exchange, horizon: int
) -> dict[str, np.float64]:
    """Returns what the equations find in ``params``: what `values` returns.

    Of a class outside this package every field that is a number is there besides.
    """
    fields = {} if _is_ours(type(algorithm)) else Algorithm.values(algorithm, exchange, horizon)
    numbers = fields | algorithm.values(exchange, horizon)
    return {name: np.float64(value) for name, value in numbers.items()}


def ledger_of(algorithm: Algorithm, exchange: Exchange) -> tuple[Seen, ...]:
    """Returns what an algorithm states in its privacy ledger.

    Whoever sees something by the exchange, and is not in the ledger, sees messages without a bound.

    Raises:
        Refusal: If that is no ledger, or an empty one.
    """
    rows = checked_rows(f"{type(algorithm).__name__}.ledger", algorithm.ledger(exchange))
    listed = {row.who for row in rows}
    if not listed.isdisjoint(ANYBODY):
        return rows
    left = [who for who in receivers(exchange) if who not in listed]
    return (*rows, *(Seen(who, "messages", float("inf"), "not stated") for who in left))


def coalition_of(algorithm: Algorithm, exchange: Exchange, size: int) -> tuple[Seen, ...]:
    """Returns what an algorithm states of a coalition.

    Raises:
        Refusal: If that is no ledger, or an empty one.
    """
    field = f"{type(algorithm).__name__}.coalition"
    return checked_rows(field, algorithm.coalition(exchange, size))


def privacy_of(algorithm: Algorithm, exchange: Exchange) -> dict[str, float]:
    """Returns what an algorithm states of its privacy, by name.

    Raises:
        Refusal: If that is not an epsilon, and one of a message.
    """
    field, names = f"{type(algorithm).__name__}.privacy", ("epsilon", "epsilon_message")
    stated: Any = algorithm.privacy(exchange)
    if not isinstance(stated, dict) or set(stated) != set(names):
        refuse(field, stated, "a dict of epsilon and epsilon_message", "return both of them")
    remedy = "math.inf is no noise"
    return {n: real(f"{field}[{n!r}]", stated[n], 0.0, math.inf, remedy) for n in names}


def modules() -> list[str]:
    """Returns the modules of this folder, each of which may hold algorithms; imports nothing."""
    here = str(Path(__file__).parent)
    return [m.name for m in pkgutil.iter_modules([here]) if m.name != "base" and not m.ispkg]


def known() -> dict[str, type[Algorithm]]:
    """Returns all algorithms by name: this folder's, and loaded ones."""
    return installed() | _loaded


@functools.cache
def installed() -> dict[str, type[Algorithm]]:
    """Returns this folder's algorithms by name."""
    rooms = (importlib.import_module(f"fmab_jax.algorithms.{name}") for name in modules())
    return {owner.name: owner for room in rooms for owner in algorithms_in(room)}


def algorithms_in(module: ModuleType) -> Iterator[type[Algorithm]]:
    """Yields the algorithms that a module defines."""
    return defined_in(module, Algorithm)


def named(name: Any) -> type[Algorithm]:
    """Returns the algorithm of a name.

    Raises:
        ValueError: If there is none; the nearest name is the remedy.
    """
    every = known()
    if not isinstance(name, str) or name not in every:
        remedy = did_you_mean(name, every, "see fmab algorithms, or load a plug-in")
        refuse("algorithm", name, "one of " + ", ".join(sorted(every)), remedy)
    return every[name]


def load_plugin(spec: str) -> list[type[Algorithm]]:
    """Imports a file or a module and makes its algorithms, laws and outputs known by name.

    Args:
        spec: A path ending in .py, or the dotted name of a module.

    Returns:
        The algorithms found.

    Raises:
        ValueError: If it cannot be imported, holds nothing of the kind, or takes a known name.
    """
    path = Path(spec)
    if path.suffix == ".py" and not path.is_file():
        refuse("plugin", spec, "an existing .py file or a module", "check the path")
    with foreign_refused("plugin", spec, "a file or module that can be imported"):
        module = import_file(path) if path.suffix == ".py" else import_name(spec)
    owners, laws = list[Any](algorithms_in(module)), list(defined_in(module, Law))
    for first, second in (*combinations(owners, 2), *combinations(laws, 2)):
        if first.name == second.name:
            names = PlainText(
                f"{first.name!r} of {first.__qualname__} and of {second.__qualname__}"
            )
            refuse("name", names, f"the name of one class of {spec}", "rename one of them")
    outputs = any(isinstance(value, Output) for value in vars(module).values())
    if not owners and not laws and not outputs:
        for nameless in defined_in(module, (Algorithm, Law), named=False):
            _check_name(nameless)
        remedy = "derive a frozen dataclass from a family and give it a name"
        allowed = "a module that defines an algorithm, a reward law or an output"
        refuse("plugin", spec, allowed, remedy)
    for owner in owners:
        _check_name(owner)
        check_frozen_class(owner, spec)
        check_names(owner)
        other = known().get(owner.name, owner)
        # Only a changed version of the same file takes a name over.
        if other is not owner and (owner.name in installed() or file_of(other) != file_of(owner)):
            refuse("plugin", owner.name, "the name of no other algorithm", "rename it")
    for law in laws:
        check_class(law, spec)
    for each in (*owners, *laws):
        source_digest(each)  # now: the files may change later
    KNOWN.update({law.name: law for law in laws})
    _loaded.update({owner.name: owner for owner in owners})
    return owners


def _check_name(owner: Any) -> None:
    name = getattr(owner, "name", "")
    if not _NAME.fullmatch(str(name)):
        remedy = "such as 'my_ucb': small letters, digits and _"
        refuse(f"{owner.__name__}.name", name, "a short plain name", remedy)


def check_names(owner: type) -> None:
    """Refuses parameters of a class whose names mean something else in a study or its results.

    Raises:
        ValueError: Naming the first.
    """
    for name in parameters_of(owner):
        if name in _TAKEN or name.startswith(("no_", "_")):
            allowed = "a name that nothing else has, and that begins with no 'no_' or '_'"
            refuse(f"{owner.__name__}.{name}", PlainText("a parameter"), allowed, "rename it")


def stated(owner: type[Algorithm], name: str) -> str:
    """Returns what a class says, such as whom it trusts; whose words they are where it is silent.

    Args:
        owner: The class. One of a plug-in may do other than what it derives from.
        name: "heard" or "trusted".
    """
    text = str(getattr(owner, name))
    by: Any = next(base for base in owner.__mro__ if name in vars(base))
    if not text or _is_ours(owner) or not _is_ours(by):
        return text
    return f"{text} (said of {getattr(by, 'title', '') or by.__name__}, not of {owner.name})"


def list_algorithms() -> list[dict[str, Any]]:
    """Returns what there is: name, title, source, who is heard, who is trusted, parameters.

    Returns:
        A dict for each algorithm, in the order of names, plug-ins that are loaded included. Keys:
        ``name``, ``title``, ``source``, ``heard``, ``trusted``, ``parameters``, ``summary``.

    Example:
        >>> import fmab_jax as fmab
        >>> {row["name"]: row["title"] for row in fmab.list_algorithms()}["cdp"]
        'CDP-MAB'
    """
    return [
        {
            "name": owner.name,
            "title": owner.title or owner.name,
            "source": owner.source,
            "heard": stated(owner, "heard"),
            "trusted": stated(owner, "trusted"),
            "parameters": list(parameters_of(owner)),
            "summary": (inspect.getdoc(owner) or "").partition("\n")[0],
        }
        for _, owner in sorted(known().items())
    ]
