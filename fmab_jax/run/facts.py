"""What results say of each configuration: names, sizes, privacy, settings."""

from __future__ import annotations

import math
from typing import Any

from fmab_jax.algorithms.base import Seen, ledger_of, privacy_of
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.core.plugins import source_digest
from fmab_jax.parameters import parameters_of
from fmab_jax.run.configs import Config


def facts(config: Config, *, sum_agents: bool = True) -> dict[str, Any]:
    """Returns what a result says of a configuration, for tables, figures and files.

    Besides the parameters, the settings tell of what is ignored of them, of foreign source, and of
    agents drawn one by one.
    """
    algorithm, problem = config.algorithm, config.problem
    settings = algorithm.settings() | problem.settings()
    for name in ("epsilon", "epsilon_message"):
        settings.pop(name, None)
    # No parameter has a name with a space.
    for name, each in parameters_of(type(algorithm)).items():
        if remark := each.kind.remark(getattr(algorithm, name)):
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
        "ledger": ledger_rows(config),
    }


def ledger_rows(config: Config) -> list[dict[str, Any]]:
    """Returns the privacy ledger of a configuration, as JSON can hold it.

    A row has the fields of a `Seen`, with pairs [epsilon, over], of which there is one here, under
    ``leaks`` (and the law of the noises that add up); an epsilon that bounds nothing is None. Where
    shares of a noise bound something up to delta only, they follow in the pair.
    ``fixed`` tells that an epoch fixes how often an arm is pulled, ``waits`` that rounds have a
    wait.
    """
    fixed, waits = isinstance(config.algorithm, Elimination), config.exchange.wait > 0
    return [
        {
            "viewer": row.viewer,
            "observation": row.observation,
            "leaks": [_leak(row)],
            "why": row.why,
            "source": row.source,
            "law": row.law,
            "fixed": fixed,
            "waits": waits,
        }
        for row in ledger_of(config.algorithm, config.exchange)
    ]


def _leak(row: Seen) -> list[Any]:
    if math.isfinite(row.epsilon):
        return [float(row.epsilon), row.over]
    return [None, row.over, *(row.shares or ())]
