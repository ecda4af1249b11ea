"""Prints who sees what of an agent's rewards, and what it leaks.

Epsilon of pure privacy, epsilon up to delta, rho of zero-concentrated and mu of
Gaussian differential privacy, for one changed reward of one agent or for
several (docs/privacy.md).

Examples:
  fmab ledger cdp --epsilon-message 1 --agents 50
  fmab ledger kl_se --epsilon 0.5 --mechanism gaussian --delta 1e-9
  fmab ledger cdp --epsilon-message 1 --mechanism gaussian --rewards 9 --distinct-messages
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from fmab_jax.cli import study_options
from fmab_jax.cli.options import Call, Command, option
from fmab_jax.cli.printing import print_rows
from fmab_jax.parameters import Real, Whole
from fmab_jax.parts.presences import PRESENCES, Presence
from fmab_jax.parts.registry import VariantOf

_EXAMPLES = ("--agents 5", "--agents 5 --rewards 10")
# The field of a row behind each column.
_COLUMNS = {"epsilon": "epsilon", "up to delta": "epsilon_at_delta", "rho": "rho", "mu": "mu"}


@dataclass(frozen=True, kw_only=True)
class LedgerOptions:
    """Who sees what of an agent's rewards, and what it leaks."""

    shared: ClassVar[tuple[str, ...]] = ("delta",)

    agents: int | None = option(None, kind=Whole(), default_text="as for fmab run")
    """M, agents."""
    delta: float = option(1e-6, kind=Real(), default_text="1e-6")
    """Of (epsilon, delta), in [1e-12, 1)."""
    colluding: int = option(0, kind=Whole())
    """Agents that put together what they know."""
    rewards: int = option(1, kind=Whole())
    """How many rewards of one agent change."""
    distinct_messages: bool = option(False)
    """These rewards are in as many different messages."""
    presence: Presence | None = option(
        None,
        kind=VariantOf(registry=PRESENCES, none_label="everybody"),
        default_text="everybody",
    )
    """Who takes part in a round, such as absent:0.1."""


def command(words: list[str]) -> Command:
    """Builds the command of some words."""
    return study_options.build_command(
        "fmab ledger",
        words,
        LedgerOptions,
        str(__doc__),
        allow_lists=False,
        fields=(),
        examples=_EXAMPLES,
    )


def execute(call: Call[LedgerOptions]) -> None:
    """Prints the ledger."""
    from fmab_jax.analysis.privacy import privacy_ledger
    from fmab_jax.analysis.words import write_number, write_quantity
    from fmab_jax.parts.mechanisms import MECHANISMS

    options, owner = call.options, call.algorithm
    params = dict(call.values)
    # A message has a delta only if its noise needs one.
    if "mechanism" in params and not MECHANISMS.parse(params["mechanism"], "mechanism").pure:
        params["delta"] = options.delta
    algorithm = owner(**study_options.add_suggestions(owner, params))
    agents = owner.usual_agents if options.agents is None else options.agents
    rows = privacy_ledger(
        algorithm,
        agents,
        options.delta,
        colluding=options.colluding,
        rewards=options.rewards,
        distinct_messages=options.distinct_messages,
        presence=options.presence,
    )
    facts = [owner.title or owner.name, *algorithm.settings().values()]
    print(", ".join([*facts, write_quantity("M = ", agents, "agent")]))
    # A column without any bound is left out.
    names = [
        name
        for name, field in _COLUMNS.items()
        if name == "epsilon" or any(getattr(row, field) < math.inf for row in rows)
    ]
    cells = [[_format(getattr(row, _COLUMNS[name])) for name in names] for row in rows]
    print_rows(
        ("viewer", "what is seen", *names),
        [(row.label, row.observation, *cell) for row, cell in zip(rows, cells, strict=True)],
    )
    for why in dict.fromkeys(f"{row.label}: {row.why}" for row in rows):
        print(why)
    changed = "one changed reward of one agent"
    if options.rewards > 1:
        where = "in different messages" if options.distinct_messages else "wherever they are"
        changed = f"{options.rewards:,} changed rewards of one agent, {where}"
    print(f"\nFor {changed}, and up to delta = {write_number(options.delta)}.")


def _format(value: float) -> str:
    return "no bound" if math.isinf(value) else f"{value:.4g}"
