"""The candidates of a plan: configured algorithms that leak what is allowed, and can keep budgets.

By default every known algorithm, plug-ins too, over a grid of its own parameters: a parameter
states the values to try (`fmab_jax.parameters.Parameter.grid`), a flag is tried both ways, and
round budgets are those that the budgets of links, numbers and bits allow.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

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
_Omissions = dict[str, dict[str, None]]
"""Names of algorithms that a list of candidates leaves out, by the reason."""


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


def list_candidates(question: Question) -> tuple[list[Candidate], list[str]]:
    """Returns the candidates by default, and notes on what was left out and not tried.

    Raises:
        ValueError: If there is none; the message says why.
    """
    candidates: dict[Algorithm, Candidate] = {}
    omissions: _Omissions = defaultdict(dict)
    problem = question.problem
    choices = question.horizon * problem.agents * problem.arms
    for owner in ALGORITHMS.by_name().values():
        title = owner.title or owner.name
        if choices > _MOST_CHOICES and issubclass(owner, IndexPolicy):
            omissions["not tried, because they choose in every slot"][title] = None
            continue
        for algorithm in _configure_variants(owner, question, omissions):
            candidate = describe(algorithm, question)
            if reason := find_misfit(algorithm, problem, question.horizon):
                omissions[f"left out, {reason}"][title] = None
            elif excess := describe_excess_leak(algorithm, question):
                omissions[f"left out, which leaks {excess}"][candidate.label] = None
            else:
                candidates.setdefault(algorithm, candidate)
    notes = [f"{reason}: {', '.join(names)}" for reason, names in omissions.items()]
    if not candidates:
        reason = "; ".join(notes) or "no algorithm bounds this leak"
        allowed = f"at least one that fits the problem: {reason}"
        refuse("candidates", PlainText("none"), allowed, "allow more, or give some")
    return list(candidates.values()), notes


def find_misfit(algorithm: Algorithm, problem: Problem, horizon: int) -> str:
    """Returns why an algorithm cannot run on the problem; "" if it can."""
    try:
        bind(algorithm, problem, horizon)
    except Refusal as error:
        return error.remedy
    return ""


def check_candidates(algorithms: object, question: Question) -> list[Candidate]:
    """Returns candidates of one's own; refuses those that the question does not allow."""
    example, remedy = "such as [fmab.kl_se(1)]", "leave the candidate out"
    if not isinstance(algorithms, (list, tuple)) or not algorithms:
        refuse("candidates", algorithms, "a list of algorithms", example)
    candidates: dict[Algorithm, Candidate] = {}
    for algorithm in algorithms:
        if not isinstance(algorithm, Algorithm):
            refuse("candidates", algorithm, "configured algorithms", example)
        candidate = describe(algorithm, question)
        exchange = build_exchange(algorithm, question.problem.agents)
        if missing := find_missing_part(algorithm, exchange, question):
            refuse("candidates", candidate.label, f"one that runs without {missing}", remedy)
        if question.proven and candidate.remark:
            refuse("candidates", candidate.label, f"proven ({candidate.remark})", remedy)
        if excess := describe_excess_leak(algorithm, question):
            value = PlainText(f"{write_call(algorithm, is_whole=True)}, which leaks {excess}")
            allowed = f"at most a leak of {question.leak:g} in the view of {question.view}"
            refuse("candidates", value, allowed, "see fmab_jax.at_leak")
        candidates[algorithm] = candidate
    return _tell_apart([*candidates.values()])


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
    fixed, grids = {}, {}
    for name, parameter in parameters_of(owner).items():
        if name in NOISE or name == _ROUNDS_NAME:
            continue
        if name in ("graph", "components"):
            fixed[name] = getattr(question, name)
            continue
        values = (True, False) if isinstance(parameter.kind, Flag) else parameter.grid
        if question.proven:
            values = tuple(value for value in values if parameter.is_proven(value))
        if parameter.default is not UNSET:
            values = (parameter.default, *(v for v in values if v != parameter.default))
        if values != (parameter.default,):
            grids[name] = values
    if None in fixed.values():
        return
    for values in itertools.product(*grids.values()):
        parameters = fixed | dict(zip(grids, values, strict=True))
        yield from _configure(owner, parameters, question, omissions)


def _configure(
    owner: type[Algorithm],
    parameters: Mapping[str, Any],
    question: Question,
    omissions: _Omissions,
) -> Iterator[Algorithm]:
    """Configures an algorithm, once for each round budget, if it fits the question."""
    agents, title = question.problem.agents, owner.title or owner.name
    try:
        algorithm = _build(owner, parameters, question)
        exchange = build_exchange(algorithm, agents)
    except Refusal:
        return
    if missing := find_missing_part(algorithm, exchange, question):
        if missing == _SUM:
            omissions["not tried without --secure, as secure sums"][title] = None
        return
    cost = cost_of_round(algorithm, exchange, question.problem.arms)
    most, part, unit = min(
        (budget / part if part else math.inf, part, unit)
        for part, budget, unit in zip(cost, question.budgets, Spending._fields, strict=True)
    )
    if most < 1.0:
        reason = f"left out, as a round takes {format_quantity(round(part), unit[:-1])}"
        omissions[reason][f"{title} ({exchange.name})"] = None
        return
    if _ROUNDS_NAME not in parameters_of(owner):
        yield algorithm
        return
    budgets: tuple[int | None, ...] = _ROUNDS
    if math.isfinite(most):
        budgets = (None, *sorted({max(1, math.floor(most * part)) for part in _PARTS}))
    for rounds in budgets:
        with suppress(Refusal):
            yield _build(owner, {**parameters, _ROUNDS_NAME: rounds}, question)


def _build(owner: type[Algorithm], parameters: Mapping[str, Any], question: Question) -> Algorithm:
    """Configures an algorithm at the leak of the question."""
    problem, known = question.problem, parameters_of(owner)
    if question.leak is None:
        # The last name of the noise is the one that may be None everywhere.
        noise = dict.fromkeys(NOISE[-1:]) if NOISE[-1] in known else {}
        return owner(**noise, **parameters)
    view, presence = question.view, problem.presence
    return at_leak(
        owner, question.leak, agents=problem.agents, view=view, presence=presence, **parameters
    )


def find_missing_part(algorithm: Algorithm, exchange: Exchange, question: Question) -> str:
    """Returns what the algorithm needs and the question has not; "" for nothing."""
    uses_server = any(meter.side == "server" for meter, _ in exchange.links)
    if uses_server and not question.server:
        return "a server"
    views = {row.view for row in ledger_of(algorithm, exchange)} - {ViewKind.ACTIONS}
    return _SUM if views == {ViewKind.SUM} and not question.secure else ""
