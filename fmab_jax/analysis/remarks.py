"""Writes remarks on a table of final values: what its numbers do not say by themselves."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import xarray as xr

from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.analysis import privacy
from fmab_jax.errors import parse_number
from fmab_jax.parameters import parameters_of
from fmab_jax.run.attributes import json_attr
from fmab_jax.sampling.shapes import Record

LOST = "best_arm_lost"


def list_remarks(frame: pd.DataFrame, data: xr.Dataset, settings: Sequence[Record]) -> list[str]:
    """Returns remarks, in lines, on the table of results.

    Args:
        frame: From `table`, with all its rows.
        data: Its results.
        settings: Of each row, where a label stands for its value.
    """
    lines, begun = list[str](), frame[frame.seeds > 0]

    def rows(number: int) -> str:
        return f" in {number:,} of {len(frame):,} rows" * (len(frame) > 1)

    if empty := len(frame) - len(begun):
        noun = "configuration" + "s" * (empty > 1)
        lines.append(f"{empty:,} {noun} not begun yet: run the sweep's command again.")
    # What a run decided is no fact of one of its agents.
    decided = begun if "undecided" in begun else begun[:0].assign(rounds_made=0.0, undecided=0.0)
    idle = (decided.rounds_made == 0) & (decided.undecided == 1)
    if number := int(idle.sum()):
        lines.append(
            f"No round was completed by T{rows(number)}: T is shorter than the first epoch, every "
            "seed still explores.\nTake a longer horizon."
        )
    shares = (100 * decided.undecided[~idle]).dropna()
    if len(shares) and shares.max() >= 1:
        share = privacy.write_range([round(end) for end in (shares.min(), shares.max())])
        lines.append(
            f"{share} % of the seeds still explore at T: no arm is chosen yet.\nTo see "
            "a choice, take a longer horizon or fewer arms."
        )
    unproven = [_list_unproven(settings[i]) for i in begun.index]
    if texts := dict.fromkeys(entry for entries in unproven for entry in entries):
        number = sum(map(bool, unproven))
        lines.append(f"No theorem covers {' and '.join(texts)}{rows(number)}.")
    if number := int(begun.open_actions.sum()):
        lines.append(
            f"Actions have no bound{rows(number)}: the leaks are those of what is sent alone."
        )
    if number := int(begun.leak_messages.isna().sum()):
        lines.append(
            f"What leaks is not known{rows(number)}: results were joined, or are of version 0.3 or "
            "older."
        )
    if LOST in begun and (begun[LOST] * _has_heterogeneous_agents(begun, data)).sum() > 0:
        lines.append(
            "Best arms were lost where agents differ. If only some of them report (p < 1), or each "
            'is alone,\nno bound holds: docs/theory.md, "Corollary 3 (agents differ)".'
        )
    return lines


def _list_unproven(settings: Record) -> list[str]:
    """Returns the parameters of a configuration whose values no theorem covers, with values."""
    owner = ALGORITHMS.by_name().get(str(settings.get("algorithm")))
    values = {
        parameter: settings.get(name, parameter.default)
        for name, parameter in (parameters_of(owner) if owner else {}).items()
    }
    return [
        f"{parameter.format_value(value)} ({parameter.remedy})"
        for parameter, value in values.items()
        if not parameter.is_proven(value)
    ]


def _has_heterogeneous_agents(frame: pd.DataFrame, data: xr.Dataset) -> pd.Series | bool:
    """Tells where the means of agents differ."""
    if "spread" in frame:
        # A label without a number may stand for any spread.
        return frame.spread.map(lambda spread: parse_number(str(spread)) != 0)
    fixed = "means" in data and data["means"].sizes.get("row", 1) > 1
    return fixed or "spread" in json_attr(data, "settings")
