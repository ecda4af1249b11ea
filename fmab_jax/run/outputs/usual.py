"""The outputs of every result."""

from __future__ import annotations

import numpy as np

from fmab_jax.core.outputs import Output

LINKS = Output(
    "links",
    "links so far",
    "links",
    lambda record: record["rounds_by"][..., None] * record.links,
    ("time", "meter"),
    np.int64,
)
"""Completed rounds times the links of a round on each meter.

A round that the horizon cuts in its wait is not counted, though it has sent its data.
"""

NUMBERS = Output(
    "numbers_sent",
    "numbers sent",
    "numbers",
    # A vector has one number for each arm that is told of.
    lambda record: record["arms_reported"] * record.vectors + record["rounds"] * record.numbers,
    dtype=np.int64,
)

USUAL = (
    Output(
        "regret",
        "cumulative regret",
        "reward",
        lambda record: record["regret"],
        ("time",),
    ),
    Output(
        "waiting_regret",
        "cumulative regret while waiting",
        "reward",
        lambda record: record["waiting_regret"],
        ("time",),
    ),
    LINKS,
    Output(
        "rounds_made",
        "completed rounds",
        "rounds",
        lambda record: record["rounds"],
        dtype=np.int32,
    ),
    NUMBERS,
    Output(
        "active_arms",
        "active arms at T",
        "arms",
        lambda record: record["active_arms"],
        dtype=np.int32,
    ),
    Output(
        "chosen_arm",
        "arm played at T",
        "index",
        lambda record: record["chosen_arm"],
        dtype=np.int32,
    ),
    Output(
        "agents_lost",
        "agents without a best arm at T",
        "agents",
        lambda record: record["agents_lost"],
        dtype=np.int32,
    ),
    Output(
        "agents_worse",
        "agents that play a worse arm",
        "agents",
        lambda record: record["agents_worse"],
        dtype=np.int32,
    ),
    Output(
        "final_gap",
        "gap of what is played at T",
        "reward",
        lambda record: record["final_gap"],
    ),
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
