"""Facts of a configuration in results: names, sizes, privacy, settings."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

from fmab_jax.algorithms.base import Disclosure, Noise, ledger_of, privacy_of
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.core.ledgers import NoiseLaw, checked_rows
from fmab_jax.core.plugins import source_digest
from fmab_jax.core.shapes import Record
from fmab_jax.errors import describe_error, refuse
from fmab_jax.mechanisms import MECHANISMS
from fmab_jax.mechanisms.bits import BITS
from fmab_jax.parameters import parameters_of
from fmab_jax.run.configs import Config


def facts(config: Config, *, sum_agents: bool = True) -> Record:
    """Returns the facts of a configuration, for tables, figures and files.

    The settings contain the parameters, remarks on ignored values, the digest of foreign source,
    and whether agents are drawn one by one.
    """
    algorithm, problem = config.algorithm, config.problem
    settings = algorithm.settings() | problem.settings()
    for name in ("epsilon", "epsilon_message"):
        text = settings.pop(name, "")
        # The facts have the largest of any agent.
        if isinstance(getattr(algorithm, name, None), tuple):
            settings["epsilon by agent"] = text
    # No clash: parameters have no spaces in their names.
    for name, parameter in parameters_of(type(algorithm)).items():
        if remark := parameter.kind.remark(getattr(algorithm, name)):
            settings[f"{name} remark"] = remark
    if code := source_digest(type(algorithm)):
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
    """The privacy ledger of one configuration.

    Attributes:
        title: Title of the algorithm.
        rows: What each viewer learns.
        fixes_pulls: Whether an epoch fixes the pulls of an arm.
        waits: Whether rounds have a wait.
    """

    title: str
    rows: tuple[Disclosure, ...]
    fixes_pulls: bool = True
    waits: bool = False


def build_ledger(config: Config) -> Ledger:
    """Returns the privacy ledger of a configuration."""
    algorithm = config.algorithm
    return Ledger(
        algorithm.title or algorithm.name,
        ledger_of(algorithm, config.exchange, config.problem.presence),
        isinstance(algorithm, Elimination),
        config.exchange.wait > 0,
    )


def write_ledger(ledger: Ledger) -> str:
    """Writes a ledger as JSON; an infinite epsilon is null, and defaults are left out."""
    fields = ledger._asdict() | {"rows": [_plain_row(row) for row in ledger.rows]}
    return json.dumps(fields)


def _plain_row(row: Disclosure) -> Record:
    fields = _drop_defaults(row)
    if row.noises:
        noises = ((_drop_defaults(noise), noise.mechanism.text()) for noise in row.noises)
        fields["noises"] = [noise | {"mechanism": name} for noise, name in noises]
    return fields | {"epsilon": row.epsilon if math.isfinite(row.epsilon) else None}


def _drop_defaults(record: Disclosure | Noise) -> Record:
    defaults = record._field_defaults
    return {n: x for n, x in record._asdict().items() if n not in defaults or x != defaults[n]}


def read_ledger(text: str) -> Ledger:
    """Reads the JSON of `write_ledger`.

    Raises:
        ValueError: If it is something else.
    """
    field = "ledger"
    try:
        fields = json.loads(text)
        rows = tuple(_read_row(row) for row in fields["rows"])
        flags = fields["fixes_pulls"], fields["waits"]
        ledger = Ledger(str(fields["title"]), rows, *map(bool, flags))
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        allowed = "the ledger of a configuration, as results have it"
        refuse(field, text[:60], allowed, f"use what a run gives ({describe_error(error)})")
    return ledger._replace(rows=checked_rows(field, rows))


def _read_row(fields: Record) -> Disclosure:
    epsilon = math.inf if fields["epsilon"] is None else fields["epsilon"]
    noises = [_read_noise(**noise) for noise in fields.get("noises", ())]
    # Nothing is known of the noise of a plug-in that is not loaded.
    known = tuple(noise for noise in noises if noise) if all(noises) else ()
    return Disclosure(**fields | {"epsilon": epsilon, "noises": known})


def _read_noise(mechanism: str, shares: Any = None, **fields: Any) -> Noise | None:
    name = mechanism.partition(":")[0]
    if mechanism == BITS.text():
        law: NoiseLaw = BITS
    elif name in MECHANISMS.find():
        law = MECHANISMS.parse(mechanism, "mechanism")
    else:
        return None
    return Noise(law, shares=shares and tuple(shares), **fields)
