"""What a card says of one algorithm: ranks, what they took, contract, ledger, audit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fmab_jax import __version__
from fmab_jax.algorithms.base import Algorithm, settings_of
from fmab_jax.analysis.audit import audit
from fmab_jax.analysis.conformance import check_algorithm
from fmab_jax.analysis.privacy import DELTA, privacy_ledger
from fmab_jax.analysis.several import mean_with_ends
from fmab_jax.analysis.statements import interval_text, whoever
from fmab_jax.analysis.words import quantity, short, whole, written
from fmab_jax.benchmark.contest import EVERYBODY, Group, Plan, plan, play
from fmab_jax.benchmark.matching import (
    NO_BOUND,
    PARAMETERS,
    VIEWS,
    at_value,
    matched,
    parameter_of,
)
from fmab_jax.benchmark.page import Block, Card, Code, Items, Paragraph, Scatter, Section
from fmab_jax.benchmark.ranking import LEVEL, TAIL, Ranking, lost, ranked, tail
from fmab_jax.benchmark.standings import Standings
from fmab_jax.benchmark.suites import Contestant, Suite, Suites, contestants
from fmab_jax.errors import Refusal, count, refuse
from fmab_jax.parameters import parameters_of
from fmab_jax.reports.frame import Table
from fmab_jax.run.resources import MAX_SEEDS

QUICK = 10
"""Most seeds of a quick card, where none are asked for."""

# The audit is of a federation of so many agents, at the leak of one, in so many runs.
_AGENTS, _LEAK, _RUNS = 10, 1.0, 100_000
_QUICK_RUNS = 10_000
_DIGITS = 12


class Result(NamedTuple):
    """What an algorithm did on one suite: how it took part, and its rankings."""

    suite: Suite
    plan: Plan
    rankings: tuple[Ranking, ...]


def made(
    contestant: Contestant,
    suites: Suites,
    standings: Standings,
    *,
    only: Sequence[str] = (),
    seeds: int | None = None,
    quick: bool = False,
    tell: Callable[[str], object] = lambda line: None,
) -> Card:
    """Runs an algorithm on suites (by default all), and returns its card.

    Of a suite there are ``seeds``, by default its own number; at most `QUICK` of these if the card
    is ``quick``, which then says so. ``tell`` gets a line before each step.

    Raises:
        ValueError: If the algorithm breaks its contract, or takes part in no suite, or an argument
            is out of range.
    """
    for name in only:
        if name not in suites.suites:
            refuse("suite", name, f"one of {', '.join(suites.suites)}", "leave it out for all")
    if seeds is not None:
        seeds = count("seeds", seeds, 2, MAX_SEEDS, "an interval needs at least 2 seeds")
    chosen = [suites.suites[name] for name in dict.fromkeys(only)] or [*suites.suites.values()]
    most = QUICK if quick else None
    plans = {suite.name: plan(contestant, suite, seeds, most) for suite in chosen}
    if not any(each.algorithms for each in plans.values()):
        reason = next(iter(plans.values())).absent[""].removeprefix("because ")
        allowed = "somebody who takes part in a suite"
        remedy = f"{reason}: give --seeds to run it all the same, or other parameters"
        refuse("contestant", contestant.label, allowed, remedy)
    # Before the suites, which take longest: whatever of it fails is told first.
    tell("contract, ledger and audit ...")
    contract = _contract(contestant)
    ledger = _ledger([(suite, plans[suite.name]) for suite in chosen])
    audited = _audit(contestant, _QUICK_RUNS if quick else _RUNS)
    others = {each.label: each for each in contestants()}
    twin = others.get(contestant.label)
    same = contestant.label if twin and _equal(twin, contestant) else ""
    label = f"{contestant.label} (this card)" if twin and not same else contestant.label
    results = []
    for suite in chosen:
        planned = plans[suite.name]
        runs = len(set(planned.algorithms.values()))
        if runs:
            tell(f"{suite.name}: {quantity('', runs, 'run')} of {planned.seeds} seeds ...")
        rankings = {
            group: ranked(suite, group, label, played, standings, same)
            for groups, played in play(planned, suite)
            for group in groups
        }
        order = tuple(rankings[group] for group in planned.algorithms)
        results.append(Result(suite, planned, order))
    sections = [
        Section("Ranks", _ranks(results)),
        *(_suite(each, standings, label, parameter_of(contestant)) for each in results),
        Section("The contract", (Items(tuple(contract)),)),
        Section("The privacy ledger", ledger),
        Section("The audit", audited),
        Section("The suites", _about(suites, results)),
        Section("How to cite", _cite(contestant, suites, standings)),
    ]
    lead = _lead(contestant.label, suites, seeds, quick)
    return Card(f"Benchmark card: {contestant.label}", lead, tuple(sections))


def _lead(label: str, suites: Suites, seeds: int | None, quick: bool) -> str:
    told = (
        f"{label} among the algorithms of fmab_jax, at matched trust. Suites version "
        f"{suites.version} (digest {suites.digest[:_DIGITS]}), fmab_jax {__version__}."
    )
    if seeds is not None:
        told += f" This card has {seeds:,} seeds where the suites have their own number."
    elif quick:
        told += f" This card has at most {QUICK} seeds of a suite."
    return told + " It is a quick look, not a card to cite." * quick


def contestant_of(owner: type[Algorithm], options: Mapping[str, Any]) -> Contestant:
    """Returns an algorithm with its options, under the name of the shipped one that it is.

    Of the options an epsilon may only be None. A ValueError if a parameter is out of range.
    """
    bare = any(name in options for name in PARAMETERS)
    if bare:
        # "No noise" is the same, whichever parameter states it.
        known = next(name for name in PARAMETERS if name in parameters_of(owner))
        others = {name: value for name, value in options.items() if name not in PARAMETERS}
        options = {known: None, **others}
    made = Contestant("", owner, options)
    told = settings_of(at_value(made))
    words = [text for name, text in told.items() if name not in PARAMETERS]
    label = ", ".join([owner.title or owner.name, *words, *["no noise"] * bare])
    label = next((each.label for each in contestants() if _equal(each, made)), label)
    return Contestant(label, owner, options)


def _equal(one: Contestant, other: Contestant) -> bool:
    """Tells whether two are one algorithm with the same parameters."""
    if one.owner is not other.owner or parameter_of(one) != parameter_of(other):
        return False
    return at_value(one) == at_value(other)


# Sections ------------------------------------------------------------------------------------


def _view(group: Group) -> tuple[str, str]:
    """Writes a view and its leak for two cells."""
    return group.view, "–" if group == EVERYBODY else f"{group.leak:g}"


def _at(leak: float) -> str:
    return "no bound" if math.isinf(leak) else f"leak ε = {leak:g}"


def _ranks(results: Sequence[Result]) -> tuple[Block, ...]:
    groups = list(dict.fromkeys(each.group for result in results for each in result.rankings))
    views = list(dict.fromkeys(group.view for group in groups))
    leaks = list(dict.fromkeys(group.leak for group in groups))
    rows = []
    for view in views:
        for result in results:
            found = {each.group: each.rank for each in result.rankings}
            cells = [found.get(Group(view, leak), "–") for leak in leaks]
            if set(cells) != {"–"}:
                rows.append((view, result.suite.name, *cells))
    heads = ("view", "suite", *map(_at, leaks))
    table = Table("Ranks by regret at T", heads, tuple(rows), first=2)
    told = [
        f"“{view}”: ε of one reward over the whole run, against {whoever(each.sees)}, "
        + ("pure." if each.accountant == "pure" else f"up to δ = {written(DELTA)}.")
        for view, each in VIEWS.items()
        if view in views
    ]
    if NO_BOUND in views:
        told.append("“no bound”: nothing that is told or done is covered by a finite ε.")
    note = (
        "All that are ranked together leak the same in the same view, against whoever of it sees "
        "most. A rank is what paired differences leave open: two are compared on the seeds that "
        "both have, and all intervals of a ranking hold together at "
        f"{100 * LEVEL:g} % (Bonferroni)."
    )
    return table, Items(tuple(told)), Paragraph(note, small=True)


def _suite(found: Result, standings: Standings, label: str, parameter: str | None) -> Section:
    suite = found.suite
    if not found.rankings:
        text = f"{suite.about} Not run, {found.plan.absent['']}."
        return Section(f"Suite {suite.name}", (Paragraph(text),))
    about = (
        f"{suite.about} {quantity('M = ', suite.problem.agents, 'agent')}, "
        f"{quantity('K = ', suite.problem.arms, 'arm')}, T = {whole(suite.horizon)}, "
        f"{found.plan.seeds:,} seeds."
    )
    ranks, took = [], []
    for each in found.rankings:
        value = found.plan.values[each.group]
        own, best = each.own, each.best
        head = _view(each.group)
        bound = _bound(standings, found, each)
        ranks.append(
            (*head, "–" if math.isnan(value) else f"{value:.4g}", each.rank, each.regret)
            + (each.least.best, interval_text(each.least.mean), each.more, bound)
        )
        took.append(
            (*head, _mean(own.links), _mean(best.links), _mean(own.bits), _mean(best.bits))
            + (*tail(own), lost(own), short(float(f"{own.trials_per_s:.3g}")))
        )
    heads: tuple[str, ...] = (
        *("view", "leak ε", parameter or "ε", "rank", "regret at T", "least regret of"),
        *("its regret at T", "more than the least", "lower bound, in the end"),
    )
    blocks: list[Block] = [Paragraph(about), Table("Regret", heads, tuple(ranks), first=2)]
    heads = (
        *("view", "leak ε", "links at T", "links of the least", "bits at T", "bits of the least"),
        *("largest regret", f"seeds above {TAIL} × median"),
        *("best arm lost, or a worse one played", "trials per second"),
    )
    blocks.append(Table("What it took", heads, tuple(took), first=2))
    blocks.append(_scatter(found, label))
    notes = [f"No part in “{view}”, {why}." for view, why in found.plan.absent.items()]
    for view in dict.fromkeys(each.group.view for each in found.rankings):
        for why, labels in standings.absent(suite.name, view).items():
            notes.append(f"Not ranked in “{view}”, {why}: {' / '.join(labels)}.")
    known = standings.found
    if lacking := [e.label for e in contestants() if (suite.name, e.label) not in known]:
        notes.append(f"Not ranked, because the standings do not have them: {' / '.join(lacking)}.")
    if agents := found.rankings[0].own.stand_ins:
        notes.append(
            f"{agents} agents stand for all: nobody hears anybody, and agents are alike. The "
            f"largest regret, the seeds above {TAIL} × median, and “best arm lost, or a worse one "
            "played” are about them."
        )
    blocks += [Paragraph(note, small=True) for note in notes]
    return Section(f"Suite {suite.name}", tuple(blocks))


def _mean(values: np.ndarray) -> str:
    return interval_text(mean_with_ends(values, LEVEL))


def _bound(standings: Standings, found: Result, each: Ranking) -> str:
    both = standings.lower.get((found.suite.name, each.group.leak))
    if both is None:
        return "not stated"
    agents = found.suite.problem.agents
    alone = found.plan.algorithms[each.group].exchange(agents).alone
    return f"{both[bool(alone)]:,.0f}"


def _scatter(found: Result, label: str) -> Scatter:
    view = found.rankings[0].group.view
    shown = [each for each in found.rankings if each.group.view == view]
    panels = tuple((_at(each.group.leak), each.points) for each in shown)
    caption = (
        f"Regret against links at T, both logarithmic, means, view “{view}”. Those without links "
        f"stand at the left edge. Filled: {label}. The least is named."
    )
    return Scatter(caption, panels, label)


def _contract(contestant: Contestant) -> list[str]:
    try:
        with_epsilon = at_value(contestant)
        with_epsilon.exchange(5)
    except Refusal as error:
        return [f"not checked: it does not fit 5 agents ({error})."]
    return check_algorithm(with_epsilon, horizon=300, seeds=8)


def _ledger(planned: Sequence[tuple[Suite, Plan]]) -> tuple[Block, ...]:
    suite, found = next(each for each in planned if each[1].algorithms)
    groups = found.algorithms
    group = next((each for each in groups if each.leak == _LEAK), next(iter(groups)))
    algorithm, agents = groups[group], suite.problem.agents
    rows = tuple(
        (row.who, row.what, _epsilon(row.epsilon), _epsilon(row.epsilon_at_delta), row.why)
        + (row.source or "–",)
        for row in privacy_ledger(algorithm, agents)
    )
    settings = ", ".join(algorithm.settings().values()) or "default settings"
    at = "" if group == EVERYBODY else f", which leaks {group.leak:g} in the view “{group.view}”"
    caption = f"Who sees what of one reward, with {agents} agents at {settings}{at}"
    heads = ("who", "what they see", "ε, pure", "ε up to δ = 10⁻⁶", "why", "source")
    return (Table(caption, heads, rows, words=True),)


def _epsilon(value: float) -> str:
    return "no bound" if math.isinf(value) else f"{value:.4g}"


def _audit(contestant: Contestant, runs: int) -> tuple[Block, ...]:
    name = parameter_of(contestant)
    try:
        values = matched(contestant, _AGENTS, [_LEAK]).values
        if not values:
            return (Paragraph("It does not apply: no ε is claimed that could be contradicted."),)
        (view, _), value = next(iter(values.items()))
        found = audit(at_value(contestant, value), _AGENTS, runs=runs)
    except Refusal as error:
        return (Paragraph(f"It does not apply: {error}."),)
    rows = tuple(
        (each.who, each.stream, _epsilon(each.claim))
        + ("infinite" if each.infinite else f"{each.lower:.4f}", each.verdict)
        for each in found.findings
    )
    caption = f"Empirical lower bounds on pure ε beside the claims, with {_AGENTS} agents"
    heads = ("who", "what is seen", "claim", "lower bound", "verdict")
    note = (
        f"{found.runs:,} runs of each of two data sets that differ in one reward, at {name} = "
        f"{value:.4g}, which leaks {_LEAK:g} in the view “{view}”. All bounds together are wrong "
        f"with a chance of {written(found.level)} at most."
    )
    told = Table(caption, heads, rows, words=True), Paragraph(note, small=True)
    unseen = tuple(f"Not shown: {each.who}, {each.what}: {each.why}." for each in found.unseen)
    return (*told, Items(unseen)) if unseen else told


def _about(suites: Suites, results: Sequence[Result]) -> tuple[Block, ...]:
    rows = tuple(
        (each.name, each.about, str(each.problem.agents), str(each.problem.arms))
        + (whole(each.horizon), str(each.root_seed), f"{planned.seeds or 'none'}")
        for each, planned, _ in results
    )
    heads = ("suite", "what", "M", "K", "T", "root seed", "seeds here")
    note = (
        f"Version {suites.version}, digest {suites.digest}. Lower bound, in the end: what any "
        "algorithm that is good everywhere must lose as T grows, if its actions are ε-private "
        "without δ (Azize et al., NeurIPS 2025), or without privacy (Lai and Robbins, 1985); at "
        "this T it is a yardstick. A number that is sent has 64 bits, a random bit one, an arm's "
        "name as many as it needs. Regret, links and bits: mean over seeds with its 95 % interval "
        "(Student t). Best arm lost, or a worse one played: Clopper-Pearson. Trials per second are "
        "those of this machine."
    )
    return Table("Suites", heads, rows, words=True), Paragraph(note, small=True)


def _cite(contestant: Contestant, suites: Suites, standings: Standings) -> tuple[Block, ...]:
    line = (
        f"{contestant.label}, benchmark card, suites version {suites.version} "
        f"(sha256 {suites.digest[:_DIGITS]}), fmab_jax {__version__}."
    )
    packages = ", ".join(sorted({each.package for each in standings.found.values()}))
    text = f"The standings that it is ranked against were computed by fmab_jax {packages}."
    return Code(line), Paragraph(text, small=True)
