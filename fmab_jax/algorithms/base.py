"""Algorithms and their registry: frozen dataclasses that bind to trials.

An algorithm states its parameters as fields (`fmab_jax.parameters`) and binds them, with a problem
and a horizon, to a *trial*: a pytree whose static part is its structure and whose values are its
leaves. Almost every algorithm derives from a family (`families.elimination`, `families.index`),
which owns the loop. Users name an algorithm of this folder, or of a loaded plug-in, by its name.
"""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fmab_jax.errors import PlainText, real, refuse
from fmab_jax.parameters import Configurable, parameters_of
from fmab_jax.parameters import ViewKind as ViewKind
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.exchanges import Viewer as Viewer  # so that plug-ins import from here
from fmab_jax.parts.outputs import OF_RESULTS
from fmab_jax.parts.per_agent import PerAgent
from fmab_jax.parts.plugins import Named, code_of
from fmab_jax.parts.presences import Presence
from fmab_jax.parts.registry import Registry
from fmab_jax.parts.registry import load_plugin as load_plugin
from fmab_jax.parts.trials import Trial
from fmab_jax.records.ledger import Disclosure as Disclosure
from fmab_jax.records.ledger import Noise as Noise
from fmab_jax.records.ledger import adapt_to_absence, checked_rows, hide_by_one, list_viewers
from fmab_jax.records.problem import Problem
from fmab_jax.sampling.shapes import Record

# Results, studies and problems use these names for something else.
_RESERVED_NAMES = OF_RESULTS | {
    *("algorithm", "problem", "outputs", "asked", "horizon", "seeds", "root_seed", "times"),
    *("spacing", "sum_agents", "keep", "until", "axes", "listed", "name", "title"),
    *("agents", "arms", "spread", "instance_gap", "rewards", "fixed_instance", "world"),
    "presence",
}
# Viewers that stand for every viewer of messages.
_EVERYBODY = (Viewer.ANYBODY, Viewer.RECEIVERS)


# Attributes that decide how rewards become messages and actions. `values` scales the noise.
_MADE_PUBLIC = (
    *("noise_scale", "noisy", "remembers", "sums_securely", "values", "resolve_params"),
    *("init", "release", "update", "learn", "choose", "due", "communicate", "bind", "make_trial"),
)


@dataclass(frozen=True)
class Algorithm(Named, Configurable):
    """A validated configuration of an algorithm; subclasses are frozen dataclasses.

    Attributes:
        name: What the command line, study files and results call it.
        title: What figures call it.
        source: Where it is from.
        communication: Who hears whom, in a few words.
        trusted: Who is trusted with what, in a few words.
        usual_agents: Default number of agents on the command line.
        examples: Options after ``fmab run NAME`` or ``fmab sweep NAME``, for their help.

    Example:
        An algorithm is a value. It states who hears whom and what its messages leak.

        >>> from dataclasses import dataclass
        >>> import fmab_jax as fmab
        >>> from fmab_jax.errors import refuse
        >>> algorithm = fmab.cdp_mab(0.5, participation=0.4)
        >>> algorithm.communication, algorithm.privacy(algorithm.exchange(5))
        ('a server hears ceil(pM) agents a round', {'epsilon': 0.5, 'epsilon_message': 1.0})

        A subclass can check parameters that depend on each other.

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
    communication: ClassVar[str] = ""
    trusted: ClassVar[str] = ""
    usual_agents: ClassVar[int] = 50
    examples: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: object) -> None:
        """Resets what a subclass outside this package must state anew.

        Such a class has its own title and source. A privacy ledger holds only for the methods that
        it was stated for.
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
        """Returns who hears whom, and what a round costs, on the host.

        Raises:
            ValueError: If a parameter does not fit the number of agents.
        """
        raise NotImplementedError

    def check_exchange(self, exchange: Exchange) -> None:
        """Refuses parameters that do not fit the agents of the exchange; by default none.

        Raises:
            Refusal: If one does not.
        """

    def bind(
        self,
        problem: Problem,
        horizon: int,
        *,
        exchange: Exchange,
        sum_agents: bool = True,
        padded_agents: int | None = None,
    ) -> Any:
        """Returns the trial of this algorithm on a problem.

        Args:
            problem: The problem.
            horizon: T, in slots.
            exchange: The exchange that `exchange` returned for the problem's agents.
            sum_agents: Draw totals over agents where that is exact.
            padded_agents: Rows of arrays that have one row for each agent; at least M.

        Raises:
            ValueError: If the algorithm cannot run on the problem.
        """
        if self.homogeneous_only:
            problem.check_homogeneous(self.name)
        return self.make_trial(
            problem, horizon, exchange, padded_agents or problem.agents, sum_agents
        )

    def make_trial(
        self,
        problem: Problem,
        horizon: int,
        exchange: Exchange,
        padded_agents: int,
        sum_agents: bool,
    ) -> Trial:
        """Returns the trial for `bind`; each family implements it."""
        raise NotImplementedError

    @property
    def homogeneous_only(self) -> bool:
        """Whether agents whose means differ are refused."""
        return False

    def count_messages(self, exchange: Exchange) -> int:
        """Returns the messages of a round, each of which an absent agent may miss."""
        return exchange.reporting

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Returns the content of ``params`` in the equations: every parameter that is a number.

        `collect_numbers` adds the fields of a class outside this package in any case.
        """
        fields = {name: getattr(self, name) for name in parameters_of(type(self))}
        return {name: float(x) for name, x in fields.items() if isinstance(x, (int, float))}

    def privacy(self, exchange: Exchange) -> dict[str, float]:
        """Returns ``epsilon`` and ``epsilon_message``, infinite where there is no noise."""
        return {"epsilon": float("inf"), "epsilon_message": float("inf")}

    def number_bits(self, arms: int) -> int:
        """Returns the bits of one number in a message about K arms; a real number has 64."""
        return 64

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Returns who sees what of an agent's rewards, and which epsilon covers it.

        Privacy is never guessed: by default nothing bounds what a viewer sees, and the row says so.
        The same holds for a class that changes messages or actions and states no ledger.
        """
        # Only eliminations have the attribute `noisy`.
        if not getattr(self, "noisy", True):
            return noiseless_ledger(self, exchange)
        rows = list_unbounded(exchange, "privacy not stated; state a ledger")
        return tuple(row._replace(is_stated=False) for row in rows)

    def coalition(self, exchange: Exchange, size: int) -> tuple[Disclosure, ...]:
        """Returns what a coalition of agents sees of another agent's reward.

        Its members combine all messages and actions that they know, and subtract their own
        messages. Privacy is never guessed: by default nothing bounds it, unless the ledger covers
        anybody.

        Args:
            exchange: The exchange of all agents.
            size: Agents of the coalition, in [1, M - 1].
        """
        rows = [row for row in ledger_of(self, exchange) if row.viewer is not Viewer.SERVER]
        if rows and all(row.viewer in (Viewer.WATCHERS, *_EVERYBODY) for row in rows):
            worst = max(rows, key=lambda row: row.epsilon)
            return (hide_by_one(worst)._replace(viewer=Viewer.COALITION, members=size),)
        row = Disclosure(Viewer.COALITION, ViewKind.MESSAGES, math.inf, "not stated")
        return (row._replace(members=size, observation="all that they are told"),)

    def describe(self) -> Record:
        """Returns an identity for JSON: name, parameters, and a digest of foreign source.

        The source is that of the class, and of classes of parameters, such as a mechanism.
        """
        digest = code_of(self)
        return {"algorithm": self.name, **self.plain(), **({"code": digest} if digest else {})}


def _is_ours(owner: type) -> bool:
    """Tells whether this package defines the class."""
    return owner.__module__.startswith("fmab_jax.")


def noiseless_ledger(algorithm: Algorithm, exchange: Exchange) -> tuple[Disclosure, ...]:
    """Returns the ledger of an algorithm without noise; classes use it as their ``ledger``."""
    return list_unbounded(exchange, "a function of the rewards; no noise is stated")


def list_unbounded(exchange: Exchange, reason: str) -> tuple[Disclosure, ...]:
    """Returns an unbounded row for each viewer."""
    summing = {view.viewer for view in exchange.views if view.over > 1}
    rows = [_make_unbounded(viewer, reason) for viewer in list_viewers(exchange)]
    rows = [row._replace(view=ViewKind.SUM) if row.viewer in summing else row for row in rows]
    return (*rows, Disclosure(Viewer.WATCHERS, ViewKind.ACTIONS, math.inf, reason))


def _make_unbounded(viewer: Viewer, reason: str) -> Disclosure:
    """Returns the row of messages that nothing hides."""
    return Disclosure(viewer, ViewKind.MESSAGES, math.inf, reason, observation="messages")


def collect_numbers(algorithm: Algorithm, exchange: Exchange, horizon: int) -> dict[str, Any]:
    """Returns ``params`` of the equations: the result of `values`.

    A class outside this package also gets every field that is a number.
    """
    fields = {} if _is_ours(type(algorithm)) else Algorithm.values(algorithm, exchange, horizon)
    numbers = fields | algorithm.values(exchange, horizon)
    return {name: np.float64(value) for name, value in numbers.items()}


def ledger_of(
    algorithm: Algorithm, exchange: Exchange, presence: Presence | None = None
) -> tuple[Disclosure, ...]:
    """Returns the privacy ledger of an algorithm, among agents of some presence.

    A receiver of the exchange that the ledger omits gets an unbounded row.

    Raises:
        Refusal: If the algorithm returns no ledger, or an empty one.
    """
    rows = checked_rows(f"{type(algorithm).__name__}.ledger", algorithm.ledger(exchange))
    rows = _adapt_to_presence(algorithm, rows, presence)
    viewers = {row.viewer for row in rows}
    if not viewers.isdisjoint(_EVERYBODY):
        return rows
    unlisted = [viewer for viewer in list_viewers(exchange) if viewer not in viewers]
    return (*rows, *(_make_unbounded(viewer, "not stated") for viewer in unlisted))


def _adapt_to_presence(
    algorithm: Algorithm, rows: tuple[Disclosure, ...], presence: Presence | None
) -> tuple[Disclosure, ...]:
    """Returns the ledger rows that hold where messages may be lost.

    A sum may then contain fewer noises.
    """
    if presence is None or not presence.loses_messages:
        return rows
    # With unequal noise, nobody knows whose noise is left.
    check_equal_noise(algorithm)
    sums_securely = bool(getattr(algorithm, "sums_securely", False))
    return tuple(adapt_to_absence(row, sums_securely) for row in rows)


def check_equal_noise(algorithm: Algorithm) -> None:
    """Refuses a parameter by agent where agents may be absent: whose noise is left is unknown."""
    for name, parameter in parameters_of(type(algorithm)).items():
        if isinstance(parameter.kind, PerAgent) and isinstance(getattr(algorithm, name), tuple):
            allowed = "one number where agents may be absent"
            refuse(name, algorithm.plain()[name], allowed, "give all agents the same number")


def coalition_of(
    algorithm: Algorithm, exchange: Exchange, size: int, presence: Presence | None = None
) -> tuple[Disclosure, ...]:
    """Returns the ledger rows of a coalition.

    Raises:
        Refusal: If the algorithm returns no ledger, or an empty one.
    """
    field = f"{type(algorithm).__name__}.coalition"
    rows = checked_rows(field, algorithm.coalition(exchange, size))
    return _adapt_to_presence(algorithm, rows, presence)


def privacy_of(algorithm: Algorithm, exchange: Exchange) -> dict[str, float]:
    """Returns the epsilons that an algorithm states, by name.

    Raises:
        Refusal: If they are not an epsilon and an epsilon of a message.
    """
    field, names = f"{type(algorithm).__name__}.privacy", ("epsilon", "epsilon_message")
    values: object = algorithm.privacy(exchange)
    if not isinstance(values, dict) or set(values) != set(names):
        refuse(field, values, "a dict of epsilon and epsilon_message", "return both of them")
    remedy = "math.inf is no noise"
    return {n: real(f"{field}[{n!r}]", values[n], 0.0, math.inf, remedy) for n in names}


def check_names(owner: type) -> None:
    """Refuses parameters whose names mean something else in a study or its results.

    Raises:
        ValueError: Names the first one.
    """
    for name in parameters_of(owner):
        if name in _RESERVED_NAMES or name.startswith(("no_", "_")):
            allowed = "a name that nothing else has, and that begins with no 'no_' or '_'"
            refuse(f"{owner.__name__}.{name}", PlainText("a parameter"), allowed, "rename it")


ALGORITHMS: Registry[Algorithm] = Registry(
    "fmab_jax.algorithms",
    Algorithm,  # type: ignore[type-abstract]
    "algorithm",
    check=check_names,
)


def read_statement(owner: type[Algorithm], name: str) -> str:
    """Returns the text of a class attribute, and which base class wrote it if inherited.

    Args:
        owner: The class. A plug-in may behave differently from its base class.
        name: "communication" or "trusted".
    """
    text = str(getattr(owner, name))
    author = next(base for base in owner.__mro__ if name in vars(base))
    if not text or _is_ours(owner) or not _is_ours(author):
        return text
    title = getattr(author, "title", "") or author.__name__
    return f"{text} (said of {title}, not of {owner.name})"


def list_algorithms() -> list[Record]:
    """Returns all algorithms: name, title, source, communication, trust, parameters.

    Returns:
        A dict for each algorithm, sorted by name, with those of loaded plug-ins. Keys: ``name``,
        ``title``, ``source``, ``communication``, ``trusted``, ``parameters``, ``summary``.

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
            "communication": read_statement(owner, "communication"),
            "trusted": read_statement(owner, "trusted"),
            "parameters": list(parameters_of(owner)),
            "summary": (inspect.getdoc(owner) or "").partition("\n")[0],
        }
        for _, owner in sorted(ALGORITHMS.by_name().items())
    ]
