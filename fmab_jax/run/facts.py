"""Facts of a configuration in results: names, sizes, privacy, settings."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from fmab_jax.algorithms.base import Disclosure, Noise, ledger_of, privacy_of
from fmab_jax.errors import Refusal, describe_error, refuse
from fmab_jax.parts.mechanisms import MECHANISMS
from fmab_jax.parts.mechanisms.bits import BITS
from fmab_jax.parts.plugins import code_of
from fmab_jax.records.ledger import HidingLaw, checked_rows
from fmab_jax.run.configs import Config
from fmab_jax.sampling.shapes import Record


def facts(config: Config, *, sum_agents: bool = True) -> Record:
    """Returns the facts of a configuration, for tables, figures and files.

    The settings contain the parameters, the digest of foreign source, and whether agents are drawn
    one by one.
    """
    algorithm, problem = config.algorithm, config.problem
    settings = algorithm.settings() | problem.settings()
    for name in ("epsilon", "epsilon_message"):
        text = settings.pop(name, "")
        # The facts have the largest of any agent.
        if isinstance(getattr(algorithm, name, None), tuple):
            settings["epsilon by agent"] = text
    # No clash: parameters have no spaces in their names.
    if code := code_of(algorithm, problem.rewards, problem.world, problem.presence):
        settings["source code"] = f"code {code[:8]}"
    if not sum_agents:
        settings["sum agents"] = "agents drawn one by one"
    return {
        "algorithm": algorithm.name,
        "title": algorithm.title or algorithm.name,
        **privacy_of(algorithm, config.exchange),
        "agents": problem.agents,
        "arms": problem.arms,
        "horizon": config.horizon,
        "reporting": config.exchange.reporting,
        "wait": config.exchange.wait,
        "settings": settings,
    }


class Ledger(NamedTuple):
    """The privacy ledger of one configuration: the title of its algorithm, and the rows."""

    title: str
    rows: tuple[Disclosure, ...]


def build_ledger(config: Config) -> Ledger:
    """Returns the privacy ledger of a configuration."""
    algorithm = config.algorithm
    rows = ledger_of(algorithm, config.exchange, config.problem.presence)
    return Ledger(algorithm.title or algorithm.name, rows)


def write_ledger(ledger: Ledger) -> str:
    """Writes a ledger as JSON: the fields of its rows by name, null for an infinite epsilon."""
    rows = [
        row._asdict()
        | {"noises": [noise._asdict() for noise in row.noises]}
        | {"epsilon": row.epsilon if row.epsilon < math.inf else None}
        for row in ledger.rows
    ]
    return json.dumps({"title": ledger.title, "rows": rows}, default=lambda law: law.text())


def read_ledger(text: str) -> Ledger:
    """Reads the JSON of `write_ledger`.

    Raises:
        ValueError: If it is something else.
    """
    try:
        fields = json.loads(text)
        rows, title = tuple(_read_row(**row) for row in fields["rows"]), str(fields["title"])
        return Ledger(title, checked_rows("ledger", rows))
    except (KeyError, TypeError, AttributeError, RecursionError, ValueError) as error:
        allowed = "the ledger of a configuration, as results have it"
        refuse("ledger", str(text)[:60], allowed, f"use what a run gives ({describe_error(error)})")


def _read_row(epsilon: float | None, noises: Sequence[Record], **fields: Any) -> Disclosure:
    laws = [_find_law(noise["mechanism"]) for noise in noises]
    known = [Noise(**noise | {"mechanism": x}) for noise, x in zip(noises, laws, strict=True)]
    # Nothing is known of the noise of a plug-in that is not loaded.
    hiding = () if None in laws else tuple(known)
    return Disclosure(epsilon=math.inf if epsilon is None else epsilon, noises=hiding, **fields)


def _find_law(name: str) -> HidingLaw | None:
    if name == BITS.text():
        return BITS
    with contextlib.suppress(Refusal):
        return MECHANISMS.parse(name, "mechanism")
    return None
