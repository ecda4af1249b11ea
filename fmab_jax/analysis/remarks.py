"""What a reader of a table of results had better know."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.analysis import costs
from fmab_jax.analysis.privacy import from_to
from fmab_jax.analysis.words import is_number
from fmab_jax.errors import number_of
from fmab_jax.parameters import parameters_of
from fmab_jax.run.attributes import said


def remarks_of(table: xr.Dataset, data: xr.Dataset) -> list[str]:
    """Returns the remarks on results, in lines.

    Args:
        table: Their `final_table`.
        data: The results.
    """
    total = table.seeds.size
    lines = []

    def rows(number: int) -> str:
        return f" in {number:,} of {total:,} rows" * (total > 1)

    if empty := int((table.seeds == 0).sum()):
        many = "configuration" + "s" * (empty > 1)
        lines.append(f"{empty:,} {many} not begun yet: run the sweep's command again.")
    idle = (table.rounds_made == 0) & (table.undecided == table.seeds) & (table.seeds > 0)
    if number := int(idle.sum()):
        lines.append(
            f"No round was completed by T{rows(number)}: T is shorter than the first epoch, every "
            "seed still explores.\nTake a longer horizon."
        )
    shares = (100 * table.undecided / table.seeds).where((table.seeds > 0) & ~idle)
    if float(shares.max()) >= 1:
        share = from_to([round(float(end)) for end in (shares.min(), shares.max())])
        lines.append(
            f"{share} % of the seeds still explore at T: no arm is chosen yet.\nTo see "
            "a choice, take a longer horizon or fewer arms."
        )
    budgets, unproven, open_actions = _look_at_cells(table)
    if budgets:
        rounds, mean, percent = map(from_to, zip(*budgets, strict=True))
        lines.append(
            f"A budget of {rounds} rounds does not fit T{rows(len(budgets))}: {mean} are made on "
            f"average, and {percent} % of the seeds still explore.\n"
            "Take a longer horizon, or let more agents report."
        )
    for values in unproven.values():
        words = " and ".join(dict.fromkeys(text for text, _ in values))
        lines.append(f"No theorem covers {words}{rows(len(values))}: {values[0][1]}.")
    if open_actions:
        where = rows(open_actions)
        lines.append(f"Actions have no bound{where}: the leaks are those of what is sent alone.")
    if int((table.best_arm_lost * _agents_differ(table, data)).sum()):
        lines.append(
            "Best arms were lost where agents differ. If only some of them report (p < 1), or each "
            'is alone,\nno bound holds: docs/theory.md, "Corollary 3 (agents differ)".'
        )
    return lines


def _look_at_cells(
    table: xr.Dataset,
) -> tuple[list[tuple[float, float, float]], dict[str, list[tuple[str, str]]], int]:
    """Returns budgets that do not fit, values that no theorem covers, and how many open actions.

    A budget comes with the rounds that are made and the per cent of seeds that still explore; a
    value, by its parameter, with the remedy.
    """
    budgets: list[tuple[float, float, float]] = []
    unproven: dict[str, list[tuple[str, str]]] = {}
    open_actions = 0
    for place in np.argwhere(table.seeds.values):
        cell = table.isel(dict(zip(table.seeds.dims, place, strict=True)))
        open_actions += costs.exposure_of(cell).has_open_actions
        owner = costs.owner_of(cell)
        parameters = parameters_of(owner) if owner else {}
        for name, parameter in parameters.items():
            if parameter.proven:
                value = costs.setting_of(cell, name, parameter.default)
                if not parameter.is_proven(value):
                    unproven.setdefault(name, []).append((parameter.told(value), parameter.remedy))
        # A seed that has spent its budget explores no more.
        if owner and issubclass(owner, Elimination) and "rounds" in parameters:
            budget = costs.setting_of(cell, "rounds", parameters["rounds"].default)
            made, share = float(cell.rounds_made), float(cell.undecided / cell.seeds)
            if is_number(budget) and 0 < made < budget and share >= 0.01:
                budgets.append((budget, made, round(100 * share)))
    return budgets, unproven, open_actions


def _agents_differ(table: xr.Dataset, data: xr.Dataset) -> Any:
    """Tells where the means of agents differ."""
    if "spread" in table.coords:
        # A label of one's own does not tell the number: then agents may differ.
        spread = table.spread
        return spread.copy(data=np.vectorize(lambda x: number_of(str(x)) != 0)(spread.values))
    fixed = "means" in data and data["means"].sizes.get("row", 1) > 1
    return fixed or "spread" in said(table, "settings")
