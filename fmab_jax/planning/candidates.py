"""The candidates of a plan: configured algorithms that leak what is allowed, and can keep budgets.

By default every known algorithm, plug-ins too, over a grid of its own parameters: a parameter
states the values to try (`fmab_jax.parameters.Parameter.grid`), a flag is tried both ways, and
round budgets are those that the budgets of links, numbers and bits allow.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from fmab_jax.algorithms.base import ALGORITHMS, Algorithm, ledger_of
from fmab_jax.algorithms.families.index import IndexPolicy
from fmab_jax.analysis.costs import write_epsilon
from fmab_jax.analysis.leaks import NOISE, at_leak, measure_leak
from fmab_jax.errors import PlainText, Refusal, format_quantity, refuse
from fmab_jax.parameters import UNSET, Flag, ViewKind, parameters_of
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.planning.question import Question, Spending
from fmab_jax.records.problem import Problem
from fmab_jax.run.configs import bind, build_exchange

# Round budgets to try, as parts of the largest that other budgets allow.
_PARTS = (1.0, 0.5, 0.25)
# Round budgets to try where no other budget limits them.
_ROUNDS = (None, 3, 10)
_ROUNDS_NAME = "rounds"
# Policies that choose in every slot take part up to so many slots x agents x arms.
_MOST_CHOICES = 2 * 10**7
_SUM = "a secure sum"


class Candidate(NamedTuple):
    """A configuration in the race.

    Attributes:
        algorithm: Configured.
        label: Its call, such as "kl_se(growth=1.5, split=True)"; with noise and network only if
            another candidate has the same call without them.
        is_sure: Whether its structure keeps all budgets, whatever happens.
        remark: What no theorem covers; "" for nothing.
    """

    algorithm: Algorithm
    label: str
    is_sure: bool
    remark: str


def select_candidates(algorithms: object, question: Question) -> tuple[list[Candidate], list[str]]:
    """Returns the candidates of a user, or the default ones if there are none, with notes."""
    if algorithms is None:
        return list_candidates(question)
    return check_candidates(algorithms, question), []


class _Omissions:
    """What a list of candidates leaves out.

    Attributes:
        notes: On what was left out, and on round budgets.
        costs: Unit of a budget, with the least that a round takes of it where that is too much, and
            the name of the algorithm.
        slow: Titles of policies that choose in every slot.
        sums: Titles of algorithms with a secure sum, where there is none.
        grids: Values that were tried, by parameter.
    """

    def __init__(self) -> None:
        self.notes: dict[str, None] = {}
        self.costs: dict[str, tuple[float, str]] = {}
        self.slow: dict[str, None] = {}
        self.sums: dict[str, None] = {}
        self.grids: dict[str, tuple[Any, ...]] = {}

    def note_cost(self, unit: str, part: float, name: str) -> None:
        """Notes a round that exceeds a budget."""
        self.notes[
            f"left out: {name}, whose round takes {format_quantity(round(part), unit[:-1])}"
        ] = None
        self.costs[unit] = min(self.costs.get(unit, (math.inf, "")), (part, name))

    def write_notes(self) -> list[str]:
        """Returns what was left out, and what was not tried, a line each."""
        lines = [*self.notes]
        if self.slow:
            lines.append(f"not tried, because they choose in every slot: {', '.join(self.slow)}")
        if self.sums:
            lines.append(f"not tried without --secure: secure sums of {', '.join(self.sums)}")
        grids = "; ".join(
            f"{name} {', '.join(f'{value:g}' for value in sorted(values))}"
            for name, values in self.grids.items()
            if all(isinstance(value, (int, float)) for value in values)
        )
        if grids:
            lines.append(f"not tried: values between {grids}")
        return lines

    def refuse(self, question: Question) -> NoReturn:
        """Refuses a question to which nothing can run; says what would do."""
        if self.costs:
            unit, (part, name) = next(iter(self.costs.items()))
            allowed = f"at least {math.ceil(part):,}, a round of {name}"
            value = getattr(question.budgets, unit)
            refuse(unit, value, allowed, "allow more, or another structure")
        reason = "; ".join(self.write_notes())
        if self.notes:
            allowed = f"at least one that fits the problem: {reason}"
            refuse("candidates", PlainText("none"), allowed, "change the problem, or give some")
        allowed = f"more: {reason or 'no algorithm bounds this leak'}"
        refuse("leak", question.leak, allowed, "allow more, or another structure")


def list_candidates(question: Question) -> tuple[list[Candidate], list[str]]:
    """Returns the candidates by default, and notes on what was left out and not tried.

    Raises:
        ValueError: If there is none; the message says what the nearest would need.
    """
    candidates: dict[Algorithm, Candidate] = {}
    omissions, problem = _Omissions(), question.problem
    choices = question.horizon * problem.agents * problem.arms
    for owner in ALGORITHMS.by_name().values():
        title = owner.title or owner.name
        if choices > _MOST_CHOICES and issubclass(owner, IndexPolicy):
            omissions.slow[title] = None
            continue
        for algorithm in _configure_variants(owner, question, omissions):
            if algorithm in candidates:
                continue
            if reason := find_misfit(algorithm, problem, question.horizon):
                omissions.notes[f"left out: {title}, {reason}"] = None
                continue
            candidate = describe(algorithm, question)
            if excess := describe_excess_leak(algorithm, question):
                omissions.notes[f"left out: {candidate.label}, which leaks {excess}"] = None
                continue
            candidates[algorithm] = candidate
    if not candidates:
        omissions.refuse(question)
    return list(candidates.values()), omissions.write_notes()


def find_misfit(algorithm: Algorithm, problem: Problem, horizon: int) -> str:
    """Returns why an algorithm cannot run on the problem; "" if it can."""
    try:
        bind(algorithm, problem, horizon)
    except Refusal as error:
        return error.remedy
    return ""


def check_candidates(algorithms: object, question: Question) -> list[Candidate]:
    """Returns candidates of one's own; refuses those that leak more than is allowed."""
    candidates: list[Candidate] = []
    if not isinstance(algorithms, (list, tuple)):
        refuse("candidates", algorithms, "a list of algorithms", "such as [fmab.kl_se(1)]")
    for algorithm in algorithms:
        if not isinstance(algorithm, Algorithm):
            refuse("candidates", algorithm, "configured algorithms", "such as [fmab.kl_se(1)]")
        candidate = describe(algorithm, question)
        if algorithm in [other.algorithm for other in candidates]:
            continue
        _check(candidate, question)
        if excess := describe_excess_leak(algorithm, question):
            allowed = "configurations that leak at most "
            allowed += f"{question.leak:g} in the view of {question.view}"
            text = write_call(algorithm, is_whole=True)
            value = PlainText(f"{text}, which leaks {excess}")
            refuse("candidates", value, allowed, "see fmab_jax.at_leak")
        candidates.append(candidate)
    if not candidates:
        refuse("candidates", candidates, "not empty", "leave it out for all known algorithms")
    return _tell_apart(candidates)


def _tell_apart(candidates: list[Candidate]) -> list[Candidate]:
    """Returns candidates whose labels differ: equal ones get all parameters, or a number."""
    numbers = Counter(candidate.label for candidate in candidates)
    wholes = [
        x._replace(label=write_call(x.algorithm, is_whole=True)) if numbers[x.label] > 1 else x
        for x in candidates
    ]
    numbers = Counter(candidate.label for candidate in wholes)
    return [
        x._replace(label=f"{x.label} #{place}") if numbers[x.label] > 1 else x
        for place, x in enumerate(wholes, 1)
    ]


def describe_excess_leak(algorithm: Algorithm, question: Question) -> str:
    """Returns the leak of an algorithm that leaks more than is allowed, in words; "" for others."""
    if question.leak is None:
        return ""
    problem = question.problem
    # Where nobody sees sums alone, messages may be seen.
    views = (question.view, ViewKind.MESSAGES)
    leaks = (measure_leak(algorithm, problem.agents, x, presence=problem.presence) for x in views)
    leak = next(leak for leak in leaks if leak is not None)
    if leak.epsilon <= question.leak * (1.0 + 1e-9):
        return ""
    is_bounded = math.isfinite(leak.epsilon)
    return write_epsilon(leak.epsilon, leak.delta) if is_bounded else "without a bound"


def _check(candidate: Candidate, question: Question) -> None:
    """Refuses a candidate that needs what is not there, or that no theorem covers."""
    algorithm, remedy = candidate.algorithm, "leave the candidate out"
    if algorithm.homogeneous_only:
        question.problem.check_homogeneous(algorithm.name)
    exchange = build_exchange(algorithm, question.problem.agents)
    if missing := find_missing_part(algorithm, exchange, question):
        refuse("candidates", candidate.label, f"one that runs without {missing}", remedy)
    if question.proven and candidate.remark:
        refuse("candidates", candidate.label, f"proven ({candidate.remark})", remedy)


def describe(algorithm: Algorithm, question: Question) -> Candidate:
    """Returns the candidate of a configured algorithm."""
    exchange = build_exchange(algorithm, question.problem.agents)
    cost = cost_of_round(algorithm, exchange, question.problem.arms)
    rounds = getattr(algorithm, _ROUNDS_NAME, None)
    most = math.inf if rounds is None else float(rounds)
    # Without messages a budget is kept; without a round budget it is a matter of chance.
    is_sure = all(
        math.isinf(budget) or part == 0.0 or part * most <= budget
        for part, budget in zip(cost, question.budgets, strict=True)
    )
    unproven = [
        f"{name} = {getattr(algorithm, name):g}"
        for name, parameter in parameters_of(type(algorithm)).items()
        if not parameter.is_proven(getattr(algorithm, name))
    ]
    remark = f"no theorem covers {', '.join(unproven)}" if unproven else ""
    return Candidate(algorithm, write_call(algorithm), is_sure, remark)


def cost_of_round(algorithm: Algorithm, exchange: Exchange, arms: int) -> Spending:
    """Returns the most that a completed round costs."""
    links = sum(n for meter, n in exchange.links if meter.priced or meter.side == "server")
    numbers = exchange.vectors * arms + exchange.numbers
    return Spending(float(links), float(numbers), float(numbers) * algorithm.number_bits(arms))


def write_call(algorithm: Algorithm, *, is_whole: bool = False) -> str:
    """Writes a configuration as a call; unless it is whole, without noise and network."""
    optional = (*NOISE, "graph", "components")
    texts = {}
    for name, parameter in parameters_of(type(algorithm)).items():
        value = getattr(algorithm, name)
        if value == parameter.default or (name in optional and not is_whole):
            continue
        # A graph of one's own may have no name; a figure can draw no other letters.
        text = str(parameter.kind.label(value) or "...") if name in optional else repr(value)
        texts[name] = text if text.isprintable() else ascii(text)[1:-1]
    return f"{algorithm.name}({', '.join(f'{name}={text}' for name, text in texts.items())})"


def _configure_variants(
    owner: type[Algorithm], question: Question, omissions: _Omissions
) -> Iterator[Algorithm]:
    """Configures an algorithm in all ways that the question allows."""
    known, agents = parameters_of(owner), question.problem.agents
    fixed: dict[str, Any] = {}
    for name in ("graph", "components"):
        if name in known:
            value = getattr(question, name)
            if value is None:
                return
            fixed[name] = value
    if question.leak is None and any(name in known for name in NOISE):
        fixed |= {name: None for name in NOISE[-1:] if name in known}
    grids: dict[str, tuple[Any, ...]] = {}
    for name, parameter in known.items():
        if name in fixed or name in NOISE or name == _ROUNDS_NAME:
            continue
        values = (True, False) if isinstance(parameter.kind, Flag) else parameter.grid
        if question.proven:
            values = tuple(value for value in values if parameter.is_proven(value))
        if parameter.default is UNSET:
            if not values:
                return
        else:
            values = (parameter.default, *(v for v in values if v != parameter.default))
        if len(values) > 1:
            grids[name] = values
    for values in itertools.product(*grids.values()):
        parameters = {**fixed, **dict(zip(grids, values, strict=True))}
        for algorithm in _configure(owner, parameters, question, agents, omissions):
            for name, grid in grids.items():
                if not isinstance(known[name].kind, Flag):
                    tried = {*omissions.grids.get(name, ()), *grid}
                    omissions.grids[name] = tuple(tried)
            yield algorithm


def _configure(
    owner: type[Algorithm],
    parameters: Mapping[str, Any],
    question: Question,
    agents: int,
    omissions: _Omissions,
) -> Iterator[Algorithm]:
    """Configures an algorithm, once for each round budget, if it fits the question."""
    try:
        algorithm = _build(owner, parameters, question, agents)
        if algorithm.homogeneous_only:
            question.problem.check_homogeneous(owner.name)
        exchange = build_exchange(algorithm, agents)
    except Refusal:
        return
    if missing := find_missing_part(algorithm, exchange, question):
        if missing == _SUM:
            omissions.sums[owner.title or owner.name] = None
        return
    cost = cost_of_round(algorithm, exchange, question.problem.arms)
    most, part, unit = min(
        (budget / part if part else math.inf, part, unit)
        for part, budget, unit in zip(cost, question.budgets, Spending._fields, strict=True)
    )
    share = parameters.get("participation", 1.0)
    words = exchange.name + f", p = {share:g}" * (share < 1.0)
    name = f"{owner.title or owner.name} ({words})"
    if most < 1.0:
        omissions.note_cost(unit, part, name)
        return
    if _ROUNDS_NAME not in parameters_of(owner):
        yield algorithm
        return
    rounds: tuple[int | None, ...] = _ROUNDS
    if math.isfinite(most):
        number = format_quantity(math.floor(most), "round")
        omissions.notes[f"{name}: at most {number} within the budgets"] = None
        rounds = (None, *sorted({max(1, math.floor(most * part)) for part in _PARTS}))
    for value in rounds:
        try:
            yield _build(owner, {**parameters, _ROUNDS_NAME: value}, question, agents)
        except Refusal:
            continue


def _build(
    owner: type[Algorithm], parameters: Mapping[str, Any], question: Question, agents: int
) -> Algorithm:
    if question.leak is None:
        return owner(**parameters)
    view, presence = question.view, question.problem.presence
    return at_leak(owner, question.leak, agents=agents, view=view, presence=presence, **parameters)


def find_missing_part(algorithm: Algorithm, exchange: Exchange, question: Question) -> str:
    """Returns what the algorithm needs and the question has not; "" for nothing."""
    uses_server = any(meter.side == "server" for meter, _ in exchange.links)
    if uses_server and not question.server:
        return "a server"
    views = {row.view for row in ledger_of(algorithm, exchange)} - {ViewKind.ACTIONS}
    return _SUM if views == {ViewKind.SUM} and not question.secure else ""
