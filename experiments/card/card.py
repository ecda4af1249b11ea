"""One card: where an algorithm stands, what it took, and whether it keeps its contract.

python -m experiments card mine.py
python -m experiments card mine.py --suite paper hard --quick --out first
python -m experiments card kl_se --set growth=3

A file holds one algorithm, or --algorithm says which. Epsilon is set so that leaks are equal;
--set epsilon=none is no noise. docs/benchmark.md explains the card.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from experiments.card import page, standings, suites
from experiments.card.ranking import (
    LEVEL,
    SLACK,
    TAIL,
    Ranking,
    rank_run,
    write_lost,
    write_mean,
    write_tail,
)
from experiments.card.standings import Plan, Standings, plan, play
from experiments.card.suites import (
    NO_BOUND,
    PARAMETERS,
    UNBOUNDED,
    VIEWS,
    Contestant,
    Group,
    Suite,
    Suites,
    contestants,
)
from fmab_jax import __version__
from fmab_jax.algorithms.base import ALGORITHMS, Algorithm, load_plugin
from fmab_jax.analysis.conformance import check_algorithm
from fmab_jax.analysis.words import write_count, write_quantity, write_short
from fmab_jax.cli.options import value_of
from fmab_jax.errors import Refusal, count, refuse
from fmab_jax.files import check_path, refuse_taken, whole_file
from fmab_jax.parameters import UNSET, parameters_of
from fmab_jax.run.resources import MAX_SEEDS

QUICK = 10  # most seeds of a quick card, if none are given
_DIGITS = 12


def main(words: Sequence[str]) -> None:
    """Runs the command: writes BASE.md, and prints the ranks."""
    parser = argparse.ArgumentParser(
        "python -m experiments card",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("which", metavar="FILE|NAME", help="a .py file, or a shipped algorithm")
    parser.add_argument("--algorithm", help="which of a file that holds several")
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="parameters of the algorithm",
    )
    parser.add_argument("--suite", nargs="+", default=[], metavar="NAME", help="all by default")
    parser.add_argument("--seeds", type=int, help="of each suite; the suite's by default")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} seeds of a suite at most")
    parser.add_argument("--out", default="card", metavar="BASE", help="of BASE.md")
    parser.add_argument("--overwrite", action="store_true", help="replace older files")
    options = parser.parse_args(words)
    owner = load(options.which, options.algorithm)
    contestant = contestant_of(owner, _parse_options(owner, options.set))
    every = suites.shipped()
    for name in options.suite:
        every.find(name)
    # What is mistyped above is told before a name that is taken.
    path = check_path("out", f"{options.out}.md")
    refuse_taken(path, options.overwrite, "out")
    card = make_card(
        contestant,
        every,
        standings.shipped(every.digest),
        only=options.suite,
        seeds=options.seeds,
        quick=options.quick,
        progress=lambda line: print(line, flush=True),
    )
    with whole_file(path) as temporary:
        temporary.write_text(card, "utf-8", "replace")
    print(card.split("\n## ")[2].partition("\n\n")[2].rstrip())
    print("wrote", path)


def load(which: str, name: str | None) -> type[Algorithm]:
    """Returns the algorithm of a name, or of a file; a file of several needs the name of one."""
    if not which.endswith(".py"):
        return ALGORITHMS.find(which)
    owners = {owner.name: owner for owner in load_plugin(which)}
    if not owners:
        refuse("plugin", which, "a file that defines an algorithm", "it holds a reward law only")
    if name is None and len(owners) == 1:
        return next(iter(owners.values()))
    if name not in owners:
        refuse("algorithm", name, f"one of {', '.join(owners)}", f"these are in {which}")
    return owners[name]


def _parse_options(owner: type[Algorithm], words: Sequence[str]) -> dict[str, Any]:
    """Returns the parameters that words such as "growth=3" set."""
    options, parameters = {}, parameters_of(owner)
    for word in words:
        name, _, text = word.partition("=")
        if name not in parameters:
            refuse("set", word, f"one of {', '.join(parameters)}", "write NAME=VALUE")
        options[name] = value_of(parameters[name].kind, text)
        if name in PARAMETERS and options[name] is not None:
            refuse(name, options[name], "left to the card", "leave it out, or set it to none")
    return options


def contestant_of(owner: type[Algorithm], options: Mapping[str, Any]) -> Contestant:
    """Returns an algorithm with its options, under the name of the shipped one that it is.

    Of the options an epsilon may only be None. A ValueError if a parameter is out of range.
    """
    noiseless = any(name in options for name in PARAMETERS)
    if noiseless:
        # "No noise" is the same, whichever parameter states it.
        first = next(name for name in PARAMETERS if name in parameters_of(owner))
        others = {name: value for name, value in options.items() if name not in PARAMETERS}
        options = {first: None, **others}
    contestant = Contestant("", owner, options)
    settings = contestant.build().settings()
    words = [text for name, text in settings.items() if name not in PARAMETERS]
    label = ", ".join([owner.title or owner.name, *words, *["no noise"] * noiseless])
    label = next(
        (shipped.label for shipped in contestants() if _is_same(shipped, contestant)), label
    )
    return Contestant(label, owner, options)


def parent_of(owner: type[Algorithm]) -> type[Algorithm] | None:
    """Returns the nearest algorithm that a class derives from; None for a class of a family."""
    algorithms = set(ALGORITHMS.by_name().values())
    return next((base for base in owner.__mro__[1:] if base in algorithms), None)


def _is_same(one: Contestant, other: Contestant) -> bool:
    """Tells whether two are one algorithm with the same parameters."""
    if one.owner is not other.owner or one.parameter != other.parameter:
        return False
    return one.build() == other.build()


class Result(NamedTuple):
    """What an algorithm did on one suite."""

    suite: Suite
    plan: Plan
    rankings: tuple[Ranking, ...]


def make_card(
    contestant: Contestant,
    suites: Suites,
    standings: Standings,
    *,
    only: Sequence[str] = (),
    seeds: int | None = None,
    quick: bool = False,
    progress: Callable[[str], object] = lambda line: None,
) -> str:
    """Runs an algorithm on suites (by default all), and returns its card as Markdown.

    A suite has ``seeds``, by default its own number; at most `QUICK` of these if the card is
    ``quick``, which then says so. ``progress`` gets a line before each step.

    Raises:
        ValueError: If the algorithm breaks its contract, or takes part in no suite, or an argument
            is out of range.
    """
    used = [suites.find(name) for name in dict.fromkeys(only)] or [*suites.suites.values()]
    if seeds is not None:
        seeds = count("seeds", seeds, 2, MAX_SEEDS, "an interval needs at least 2 seeds")
    most = QUICK if quick else None
    plans = {suite.name: plan(contestant, suite, seeds, most) for suite in used}
    if not any(planned.algorithms for planned in plans.values()):
        reason = next(iter(plans.values())).absent[""].removeprefix("because ")
        remedy = f"{reason}: give --seeds to run it all the same, or other parameters"
        refuse("contestant", contestant.label, "an algorithm that fits a suite", remedy)
    # Before the suites, which take longest: an algorithm that fails is refused first.
    progress("contract ...")
    described, contract = _describe(contestant), _check_contract(contestant)
    twin = next((shipped for shipped in contestants() if shipped.label == contestant.label), None)
    same = contestant.label if twin and _is_same(twin, contestant) else ""
    label = f"{contestant.label} (this card)" if twin and not same else contestant.label
    results = []
    for suite in used:
        planned = plans[suite.name]
        if number := len(set(planned.algorithms.values())):
            progress(
                f"{suite.name}: {write_quantity('', number, 'run')} of {planned.seeds} seeds ..."
            )
        rankings = {
            group: rank_run(suite.name, group, label, run, standings, same)
            for groups, run in play(planned, suite)
            for group in groups
        }
        order = tuple(rankings[group] for group in planned.algorithms)
        results.append(Result(suite, planned, order))
    parts = [
        f"# {page.escape(f'Benchmark card: {contestant.label}')}",
        page.escape(_lead(contestant.label, suites, seeds, quick)),
        page.write_section("The algorithm", [page.write_items(described)]),
        page.write_section("Ranks", _ranks(results)),
        *(_suite(result, standings, contestant, label) for result in results),
        page.write_section("The contract", [page.write_items(contract)]),
        page.write_section("The suites", _about(suites, results)),
        *[page.write_section("How to cite", _cite(contestant, suites, standings))] * (not quick),
    ]
    return "\n\n".join(parts) + "\n"


def _lead(label: str, suites: Suites, seeds: int | None, quick: bool) -> str:
    text = (
        f"{label} among the algorithms of fmab_jax, at matched trust. Suites version "
        f"{suites.version} (digest {suites.digest[:_DIGITS]}), fmab_jax {__version__}."
    )
    if seeds is not None:
        text += f" This card has {seeds:,} seeds where the suites have their own number."
    elif quick:
        text += f" This card has at most {QUICK} seeds of a suite."
    return text + " It is a quick look, not a card to cite." * quick


def _describe(contestant: Contestant) -> list[str]:
    """Returns the algorithm's name, its parent and all its parameters."""
    owner, algorithm = contestant.owner, contestant.build()
    lines = [f"{contestant.label}: {owner.name}, class {owner.__name__}"]
    parent = parent_of(owner)
    if parent is not None:
        lines.append(f"A subclass of {parent.title or parent.name} ({parent.name})")
    else:
        lines.append(f"A class of the family {owner.__mro__[1].__name__}")
    for name, parameter in parameters_of(owner).items():
        value = getattr(algorithm, name)
        if name == contestant.parameter:
            lines.append(f"{name}: set by the card, as the tables say")
        elif value is not UNSET:
            default = " (default)" * (name not in contestant.options)
            lines.append(f"{name}: {parameter.kind.text(value)}{default}")
    return lines


def _write_leak(leak: float) -> str:
    return "no bound" if math.isinf(leak) else f"leak ε = {leak:g}"


def _ranks(results: Sequence[Result]) -> list[str]:
    note = (
        "All that are ranked together leak the same in the same view, to the reader of it that "
        "sees most. A rank is what paired differences leave open: two are compared on the seeds "
        "that both have, and all intervals of a ranking hold together at "
        f"{100 * LEVEL:g} % (Bonferroni). At equal links, those are ranked whose mean links at T "
        f"are at most {SLACK:g} times those of this algorithm."
    )
    views = {ranking.group.view for result in results for ranking in result.rankings}
    about = [
        f"“{view}”: ε of one reward over the whole run, against {reader}."
        for view, reader in VIEWS.items()
        if view in views
    ]
    if NO_BOUND in views:
        about.append("“no bound”: no finite ε covers what is told or done.")
    return [
        _table("Ranks by regret at T", results, lambda ranking: ranking.rank),
        _table("Ranks at equal links", results, lambda ranking: ranking.rank_at_equal_links),
        _table("Who has the least regret", results, lambda ranking: ranking.leader),
        page.write_items(about),
        page.escape(note),
    ]


def _table(caption: str, results: Sequence[Result], cell: Callable[[Ranking], str]) -> str:
    """Returns a table with a row for each view and suite, and a column for each leak."""
    groups = dict.fromkeys(ranking.group for result in results for ranking in result.rankings)
    leaks = list(dict.fromkeys(group.leak for group in groups))
    rows = []
    for view in dict.fromkeys(group.view for group in groups):
        for result in results:
            cells = {ranking.group: cell(ranking) for ranking in result.rankings}
            row = [cells.get(Group(view, leak), "–") for leak in leaks]
            if set(row) != {"–"}:
                rows.append((view, result.suite.name, *row))
    return page.write_table(caption, ("view", "suite", *map(_write_leak, leaks)), rows)


def _suite(result: Result, standings: Standings, contestant: Contestant, label: str) -> str:
    suite, title = result.suite, f"Suite {result.suite.name}"
    if not result.rankings:
        reason = f"{suite.about} Not run, {result.plan.absent['']}."
        return page.write_section(title, [page.escape(reason)])
    about = (
        f"{suite.about} {write_quantity('M = ', suite.problem.agents, 'agent')}, "
        f"{write_quantity('K = ', suite.problem.arms, 'arm')}, T = {write_count(suite.horizon)}, "
        f"{result.plan.seeds:,} seeds."
    )
    calls = {shipped.label: shipped for shipped in contestants()}
    regrets, costs = [], []
    for ranking in result.rankings:
        group, run, best = ranking.group, ranking.run, ranking.best
        head = group.view, "–" if group == UNBOUNDED else f"{group.leak:g}"
        call, leader = contestant.write_call(result.plan.values[group]), ranking.leader
        best_call = call
        if leader != label:
            values = standings.table[suite.name, leader].values
            best_call = calls[leader].write_call(values[group]) if leader in calls else "–"
        links = write_mean(run.links), write_mean(best.links)
        bits = write_mean(run.bits), write_mean(best.bits)
        regrets.append(
            (*head, call, ranking.rank, write_mean(run.regret))
            + (leader, best_call, write_mean(best.regret), ranking.more)
            + (_write_bound(standings, result, ranking),)
        )
        costs.append(
            (*head, ranking.rank_at_equal_links, *links, *bits)
            + (*write_tail(run), write_lost(run), write_short(float(f"{run.trials_per_s:.3g}")))
        )
    heads = (
        *("view", "leak ε", "this", "rank", "regret at T", "least regret of", "that is"),
        *("its regret at T", "more than the least", "lower bound, in the end"),
    )
    cost_heads = (
        *("view", "leak ε", "rank at equal links", "links at T", "links of the least"),
        *("bits at T", "bits of the least", "largest regret", f"seeds above {TAIL} × median"),
        *("best arm lost, or a worse one played", "trials per second"),
    )
    notes = [f"No part in “{view}”, {why}." for view, why in result.plan.absent.items()]
    for view in dict.fromkeys(ranking.group.view for ranking in result.rankings):
        for why, labels in standings.absent(suite.name, view).items():
            notes.append(f"Not ranked in “{view}”, {why}: {' / '.join(labels)}.")
    if missing := [name for name in calls if (suite.name, name) not in standings.table]:
        notes.append(f"Not ranked, because the standings do not have them: {' / '.join(missing)}.")
    if agents := result.rankings[0].run.stand_ins:
        notes.append(
            f"{agents} agents stand for all: nobody hears anybody, and agents are alike. The "
            f"largest regret, the seeds above {TAIL} × median, and “best arm lost, or a worse one "
            "played” are about them."
        )
    tables = [("Regret", heads, regrets), ("What it took", cost_heads, costs)]
    blocks = [page.escape(about), *(page.write_table(*table) for table in tables)]
    return page.write_section(title, [*blocks, *map(page.escape, notes)])


def _write_bound(standings: Standings, result: Result, ranking: Ranking) -> str:
    bounds = standings.lower.get((result.suite.name, ranking.group.leak))
    if bounds is None:
        return "not stated"
    algorithm = result.plan.algorithms[ranking.group]
    alone = algorithm.exchange(result.suite.problem.agents).alone
    return f"{bounds[bool(alone)]:,.0f}"


def _check_contract(contestant: Contestant) -> list[str]:
    try:
        algorithm = contestant.build()
        algorithm.exchange(5)
    except Refusal as error:
        return [f"not checked: it does not fit 5 agents ({error})."]
    return check_algorithm(algorithm, horizon=300, seeds=8)


def _about(suites: Suites, results: Sequence[Result]) -> list[str]:
    rows = [
        (suite.name, suite.about, str(suite.problem.agents), str(suite.problem.arms))
        + (write_count(suite.horizon), str(suite.root_seed), f"{planned.seeds or 'none'}")
        for suite, planned, _ in results
    ]
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
    return [page.write_table("Suites", heads, rows), page.escape(note)]


def _cite(contestant: Contestant, suites: Suites, standings: Standings) -> list[str]:
    line = (
        f"{contestant.label}, benchmark card, suites version {suites.version} "
        f"(sha256 {suites.digest[:_DIGITS]}), fmab_jax {__version__}."
    )
    packages = ", ".join(sorted({standing.package for standing in standings.table.values()}))
    text = f"The standings that it is ranked against were computed by fmab_jax {packages}."
    return [f"```text\n{line}\n```", page.escape(text)]
