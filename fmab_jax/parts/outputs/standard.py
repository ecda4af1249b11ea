"""The outputs of every result."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from fmab_jax.errors import refuse
from fmab_jax.parts.outputs.output import OF_FIXED_ARMS, Output

LINKS = Output(
    "links",
    "links so far",
    "links",
    lambda record: record[record.counted][..., None] * record.links,
    ("time", "meter"),
    np.int64,
)
"""Completed rounds times the links of a round on each meter; or messages times their links.

A round that the horizon cuts in its wait does not count, although agents have sent its data.
"""

NUMBERS = Output(
    "numbers_sent",
    "numbers sent",
    "numbers",
    # A vector has one number for each reported arm.
    lambda record: record["arms_reported"] * record.vectors + record.count_all() * record.numbers,
    dtype=np.int64,
)


def _make_field_output(
    name: str,
    label: str,
    units: str,
    field: str = "",
    *,
    dims: tuple[str, ...] = (),
    dtype: DTypeLike = np.float64,
) -> Output:
    """Returns the output that is a field of an `Outcome`."""
    return Output(name, label, units, lambda record: record[field or name], dims, dtype)


REGRET = _make_field_output("regret", "cumulative regret", "reward", dims=("time",))

STANDARD = (
    REGRET,
    _make_field_output(
        "waiting_regret", "cumulative regret while waiting", "reward", dims=("time",)
    ),
    LINKS,
    _make_field_output("rounds_made", "completed rounds", "rounds", "rounds", dtype=np.int32),
    NUMBERS,
    _make_field_output("active_arms", "active arms at T", "arms", dtype=np.int32),
    _make_field_output("chosen_arm", "arm played at T", "index", dtype=np.int32),
    _make_field_output("agents_lost", "agents without a best arm at T", "agents", dtype=np.int32),
    _make_field_output("agents_worse", "agents that play a worse arm", "agents", dtype=np.int32),
    _make_field_output("final_gap", "gap of what is played at T", "reward"),
    Output(
        "best_arm_lost",
        "best arm lost",
        "seeds",
        lambda record: record["agents_lost"] > 0,
        dtype=np.bool_,
        coordinate=True,
    ),
    Output(
        "worse_arm_played",
        "plays a worse arm at T",
        "seeds",
        lambda record: record["agents_worse"] > 0,
        dtype=np.bool_,
        coordinate=True,
    ),
)

_OF_ONE_BEST = ("agents_lost", "best_arm_lost")
_OF_ARMS = (*OF_FIXED_ARMS, "best_arm_lost", "worse_arm_played")


def list_standard(has_world: bool, has_contexts: bool = False) -> tuple[Output, ...]:
    """Returns the outputs of a result.

    Where means change, no arm is the best one. Contexts give an arm another mean in each slot.
    """
    absent = _OF_ARMS if has_contexts else _OF_ONE_BEST if has_world else ()
    return tuple(x for x in STANDARD if x.name not in absent)


def refuse_absent(field: str) -> None:
    """Refuses a field of an `Outcome` that runs do not have where means change."""
    if field in OF_FIXED_ARMS:
        refuse("record", field, "another field where means change", "no arm is the best one")
