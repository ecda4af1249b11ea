"""Facts of a configuration in results: names, sizes, privacy, settings."""

from __future__ import annotations

import math

from fmab_jax.algorithms.base import Disclosure, ledger_of, privacy_of
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.core.plugins import source_digest
from fmab_jax.core.shapes import Record
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
        "ledger": ledger_rows(config),
    }


def ledger_rows(config: Config) -> list[Record]:
    """Returns the privacy ledger of a configuration, for JSON.

    A row has the fields of a `Disclosure`; ``leaks`` is a list of pairs [epsilon, over], here
    of one pair, and ``law`` the law of noises that add up. An infinite epsilon is None. Shares of a
    noise that give a bound only up to delta follow in the pair. ``fixed`` tells whether an epoch
    fixes the pulls of an arm, ``waits`` whether rounds have a wait.
    """
    fixed, waits = isinstance(config.algorithm, Elimination), config.exchange.wait > 0
    return [
        {
            "viewer": row.viewer,
            "observation": row.observation,
            "leaks": [_list_leak(row)],
            "why": row.why,
            "source": row.source,
            "law": row.law,
            "fixed": fixed,
            "waits": waits,
        }
        for row in ledger_of(config.algorithm, config.exchange, config.problem.presence)
    ]


def _list_leak(row: Disclosure) -> list[float | None]:
    if row.scale is not None:
        pure = float(row.epsilon) if math.isfinite(row.epsilon) else None
        return [pure, row.over, row.scale]
    if math.isfinite(row.epsilon):
        return [float(row.epsilon), row.over]
    return [None, row.over, *(row.shares or ())]
