"""Prints what the theorems guarantee for one instance.

Expected regret at T, its parts, rounds, links, and the probability that the
best arm is lost, once epoch by epoch and once in the paper's closed form
(docs/theory.md). Means that are drawn are those of --fixed-instance, seed 0 by
default.

All numbers are upper bounds. Regret is expected, summed over agents; it is the
sum of its four parts; where that is more than agents x slots x largest gap, it
is that: then it is marked as capped.
  exploration      pulls of worse arms in epochs, on the good event
  waiting          slots in which messages travel, on the good event
  commitment       a worse arm played once a round budget is spent
  failure          probability of the bad event x agents x slots x largest gap
  rounds           completed on the good event; surely: that budget and T allow
  links            rounds x links of a round, by meter
  bad event        probability that a confidence interval fails, for any agent
  best arm lost    probability that any agent has no best arm left at T
  epsilon message  N epsilon, what one message leaks (Theorem 1)
For ces the table has what its source states, round by round and as printed.
Waiting is there the time in which all agents hear that an arm is to leave.

Examples:
  fmab bounds cdp --epsilon 0.5 --horizon 1e6
  fmab bounds ddp --graph ring --agents 20 --instance-gap 0.1
  fmab bounds ces --graph complete --agents 20 --spread 0.5
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmab_jax.cli import study_options
from fmab_jax.cli.options import Call, Command, NoOptions
from fmab_jax.parameters import parameters_of

if TYPE_CHECKING:
    from fmab_jax.algorithms.base import Algorithm
    from fmab_jax.analysis.consensus import ConsensusBounds
    from fmab_jax.analysis.theory import Bounds
    from fmab_jax.records.problem import Problem
    from fmab_jax.run.configs import Config
    from fmab_jax.sampling.shapes import PerArm, Record

_EXAMPLES = ("--agents 5 --arms 10", "--horizon 1e6 --arms 10")
# {} is the number of Lai and Robbins.
_YARDSTICK = """\
Every algorithm that is good on all instances loses about {} or more, for
large T (Lai and Robbins): a yardstick, not a bound at this T."""


def command(words: list[str]) -> Command:
    """Builds the command of some words."""
    from fmab_jax.sweeps.subjects import RandomProblem

    fields = ("horizon", "means", "root_seed", *parameters_of(RandomProblem))
    owners = _list_algorithms()
    return study_options.build_command(
        "fmab bounds",
        words,
        NoOptions,
        str(__doc__),
        allow_lists=False,
        owners=owners,
        fields=fields,
        examples=_EXAMPLES,
    )


def _list_algorithms() -> dict[str, type[Algorithm]]:
    """Returns the algorithms whose equations are those of the theorems, and CES."""
    from fmab_jax.algorithms.base import ALGORITHMS
    from fmab_jax.algorithms.ces import CES
    from fmab_jax.algorithms.families.paper import PaperElimination as Paper

    return {
        name: owner
        for name, owner in ALGORITHMS.by_name().items()
        if owner is CES or issubclass(owner, Paper) and owner.has_theorems()
    }


def execute(call: Call[NoOptions]) -> None:
    """Prints the theorems' bounds for one instance."""
    import numpy as np
    import xarray as xr

    from fmab_jax.algorithms.ces import CES
    from fmab_jax.analysis import theory, words
    from fmab_jax.cli.printing import print_rows
    from fmab_jax.parts.instances import TIE
    from fmab_jax.parts.rewards import Bernoulli
    from fmab_jax.sweeps import grid, study_file

    document = study_options.build_document(call.values, [call.algorithm])
    study = study_file.build_study(document | {"seeds": 1, "times": 1})
    config = study.points[0].config
    problem = config.problem
    _refuse_uncovered(config.algorithm, problem)
    instance = problem if problem.means is not None else problem.fixed(0, study.root_seed)
    means = np.asarray(instance.means).mean(axis=0)
    gaps = means.max() - means
    gaps[gaps < TIE] = 0.0
    smallest = float(gaps[gaps > 0].min(initial=1.0))
    names, columns = _compute(config, gaps, not instance.homogeneous)
    # The line ends with the gap, also where it is prescribed.
    data = xr.Dataset(attrs=grid.build_attributes(study))
    facts = words.list_facts(data, ["instance_gap"], leaks=True)
    print(", ".join([*facts, f"smallest gap {smallest:.4g}"]))
    print_rows(("", *names), _build_rows(columns))
    if instance.homogeneous and isinstance(problem.rewards, Bernoulli):
        alone = config.exchange.alone
        least = theory.lai_robbins(means, config.horizon, instance.agents, alone=alone)
        print(_YARDSTICK.format(_format_bound(least)))
    stated = "All numbers of the table are upper bounds: see fmab bounds --help."
    if isinstance(config.algorithm, CES):
        stated = "So the source of CES states; docs/theory.md says what is not proved."
    print(stated)


def _compute(
    config: Config, gaps: PerArm, heterogeneous: bool
) -> tuple[tuple[str, str], list[Bounds] | list[ConsensusBounds]]:
    """Returns the names of two forms of the bounds, and the bounds."""
    from fmab_jax.algorithms.ces import CES
    from fmab_jax.algorithms.families.paper import PaperElimination
    from fmab_jax.analysis import consensus, theory

    algorithm, exchange, horizon = config.algorithm, config.exchange, config.horizon
    if isinstance(algorithm, CES):
        arguments = gaps, algorithm, exchange.agents, horizon
        names = "round by round", "as printed"
        return names, [consensus.bounds(*arguments), consensus.closed_form(*arguments)]
    assert isinstance(algorithm, PaperElimination)
    settings: Record = {"heterogeneous": heterogeneous}
    if algorithm.rounds is not None:
        settings |= {"rounds": algorithm.rounds, "schedule_gap": algorithm.schedule_gap}
    epsilon = algorithm.privacy(exchange)["epsilon"]
    both = (theory.bounds, theory.closed_form)
    bounds = [bound(gaps, exchange, horizon, epsilon, **settings) for bound in both]
    return ("epoch by epoch", "closed form"), bounds


def _refuse_uncovered(algorithm: Algorithm, problem: Problem) -> None:
    """Refuses what no theorem is about."""
    from fmab_jax.algorithms.families.paper import PaperElimination
    from fmab_jax.errors import refuse
    from fmab_jax.parts.per_agent import write_numbers

    law = problem.rewards
    if isinstance(algorithm, PaperElimination):
        if algorithm.scale != 1.0:
            refuse("scale", algorithm.scale, "1 for the theorems", "leave it out")
        if algorithm.trimmed_share:
            refuse("trim", algorithm.trimmed_share, "0 for the theorems", "leave it out")
        if isinstance(by_agent := algorithm.epsilon_message, tuple):
            allowed = "one number for the theorems"
            refuse("epsilon_message", write_numbers(by_agent), allowed, "drop it")
    if problem.presence is not None:
        allowed = "left out: theorems are about agents that are all present"
        refuse("presence", problem.presence.text(), allowed, "use fmab run")
    if problem.world is not None:
        allowed = "left out: no theorem covers means that change"
        refuse("world", problem.world.text(), allowed, "use fmab run")
    if not 0.0 <= law.low <= law.high <= 1.0:
        text = ":".join(map(str, law.describe().values()))
        allowed = "a law of rewards in [0, 1] for the theorems"
        refuse("rewards", text, allowed, "leave it out for bernoulli")


def _format_bound(value: float) -> str:
    from fmab_jax.analysis.words import write_short

    return write_short(value) if value < 1e15 else "unbounded"


def _is_capped(bounds: Bounds | ConsensusBounds) -> bool:
    """Returns whether the trivial bound on regret is below the sum of its parts."""
    parts = (value for name, value in bounds._asdict().items() if name.startswith("regret_"))
    return bounds.regret < (1 - 1e-9) * sum(parts)


def _build_rows(columns: list[Bounds] | list[ConsensusBounds]) -> list[list[str]]:
    """Returns a row for each bound, and for each meter of a bound by meter."""
    rows = []
    for field in columns[0]._fields:
        name, values = field.replace("_", " "), [getattr(bound, field) for bound in columns]
        if field == "regret":
            cells = [_format_bound(x.regret) + " (capped)" * _is_capped(x) for x in columns]
            rows.append([name, *cells])
        elif field == "links":
            for meter in values[0]:
                rows.append([f"links, {meter}", *(_format_bound(v[meter]) for v in values)])
        else:
            rows.append([name, *map(_format_bound, values)])
    return rows
