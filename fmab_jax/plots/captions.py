"""Writes captions: settings, seeds, leaks, trust and failures of configurations."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fmab_jax.analysis.costs import Cost, find_shared_observation, write_leak
from fmab_jax.analysis.words import group_labels, write_count, write_quantity

Sentence = str | tuple[str, str]
"""A sentence without its full stop; in a tuple, a short form follows the full one."""

# Leaks, or trusts, that a caption lists one by one.
_MOST_LISTED = 8
# Events of single seeds that a mean hides, and the caption's words for them.
EVENTS = {
    "best_arm_lost": "lost the best arm",
    "worse_arm_played": "play a worse arm at T",
}


def write_seed_range(seeds: ArrayLike) -> str:
    """Writes numbers of seeds: "200 to 3000 seeds"."""
    few, most = int(np.min(seeds)), int(np.max(seeds))
    return f"{write_count(few)} to " * (few < most) + write_quantity("", most, "seed")


def describe_setting(facts: Sequence[str], seeds: str) -> Sentence:
    """Returns facts as a sentence, whose short form says how many slots and seeds there are."""
    text = ", ".join(dict.fromkeys(facts))
    return text, ", ".join([*re.findall(r"T = \S+ slots?", text), seeds])


def shorten_interval(description: str) -> str:
    """Returns which interval or band is described, without its method in brackets."""
    return description.partition(" (")[0]


def describe_meters(meters: Sequence[str]) -> str:
    """Says on which meters links between agents are counted; "" where there are none."""
    return f"Peer links are counted on the meter {' or '.join(meters)}" * bool(meters)


def describe_exposures(costs: Mapping[str, Cost]) -> list[Sentence]:
    """Describes leaks and trust of configurations, by their labels, where they differ."""
    shared, sentences = find_shared_observation(costs.values()), list[Sentence]()
    texts = {k: write_leak(cost, shared) or "not known" for k, cost in costs.items()}
    if len(leaks := group_labels(texts)) > 1:
        all_leaks = "; ".join(f"{text} ({labels})" for text, labels in leaks.items())
        # What is not known comes last.
        low, *_, high = sorted(costs, key=lambda k: (math.isnan(costs[k].leak), costs[k][:2]))
        ends = f"{texts[low]} to {texts[high]}"
        symbol = "(ε, δ)" if any(cost.delta > 0.0 for cost in costs.values()) else "ε"
        start = f"Leak {symbol} of one reward in {shared or 'what is sent'}: "
        full = ends if len(leaks) > _MOST_LISTED else all_leaks
        sentences.append((start + full, start + ends))
    trusts = group_labels({label: cost.trust for label, cost in costs.items()})
    if len(trusts) > 1 and "" not in trusts:
        few = len(costs) <= _MOST_LISTED
        quotes = [f"“{trust}”" + f" ({labels})" * few for trust, labels in trusts.items()]
        sentences.append(f"Trusted: {'; '.join(quotes)}")
    return sentences


def describe_events(frame: pd.DataFrame, labels: Sequence[str], level: float) -> list[str]:
    """Says how many seeds went wrong in all, and in which configuration most did.

    Args:
        frame: Columns of `table`: ``seeds``, and the share of each event with its ends.
        labels: Of the rows.
        level: Of the intervals.
    """
    interval = f"{100 * level:.6g} % Clopper–Pearson interval "
    sentences: list[str] = []
    for event in (name for name in EVENTS if name in frame):
        low, high = f"{event}_lower", f"{event}_upper"
        # Configurations of an unfinished sweep may have no seeds yet, and so no interval.
        rows = frame.assign(label=labels)[(frame.seeds > 1) & frame[event].notna()]
        if rows.empty:
            continue
        # If several have the same share, the one with the highest upper limit is stated.
        worst = rows.sort_values([event, high], ascending=False, kind="stable").iloc[0]
        number, total = round((rows[event] * rows.seeds).sum()), rows.seeds.sum()
        ends = f"{interval}{100 * worst[low]:.3g}–{100 * worst[high]:.3g} %"
        text = f"{_write_share(number, total)}{'' if sentences else ' seeds'} {EVENTS[event]}"
        if len(frame) == 1:
            text += f" ({ends})"
        elif not number:
            text += f", 0 in every configuration ({ends} in each)"
        else:
            most = _write_share(round(worst[event] * worst.seeds), worst.seeds)
            text += f", most in one configuration {most} ({ends}) at {worst.label}"
        interval = ""  # the next sentence's numbers are of the same kind
        sentences.append(text)
    return sentences


def describe_failures(frame: pd.DataFrame, labels: Sequence[str], level: float) -> list[Sentence]:
    """Returns `describe_events` as a sentence with a short form, and the share of undecided seeds.

    Arguments as in `describe_events`; ``undecided`` is a share of the seeds.
    """
    sentences = list[Sentence]()
    if events := describe_events(frame, labels, level):
        totals = [re.split(", | \\(", text)[0] for text in events if not text.startswith("0 of")]
        sentences.append((". ".join(events), ". ".join(totals)))
    if "undecided" in frame and frame.undecided.max() >= 0.01:
        ends = dict.fromkeys(f"{100 * share:.0f}" for share in frame.undecided.agg(["min", "max"]))
        sentences.append(f"{' to '.join(ends)} % of the seeds still explore at T")
    return sentences


def _write_share(number: int, seeds: int) -> str:
    return f"{write_count(number)} of {write_count(seeds)}"
