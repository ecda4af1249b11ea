"""Layouts of the arms in play: dense arrays, or one ragged list.

A layout has few operations. A *body* is a function of one trial's arms
(a dict of arrays [arm, ...]) and of that trial's values; a layout applies it to all arms in play.

* ``map_trials(function)``: applies a function of one trial to every trial.
* ``start(fixed, draws, **marks)``: returns the arms of all trials, with constants, sums of 0, and
  further fields that start at a value. All arms are ``alive``.
* ``sweep(body, arms, values, **reductions)``: changes marks of the arms, and reduces over the arms
  of each trial by "sum", "max", "first_max" (the lowest arm of the largest value), or "by_arm".
* ``draw(body, arms, values, **reductions)``: the same for the body that draws an epoch, which also
  changes the sums. Other bodies see them as they are after it.
* ``keep(arms, trials)``: keeps the arms that are ``alive``, of some trials.
* ``loop(epoch, ...)``: repeats an epoch until every run is over, and draws the curves.
"""

from __future__ import annotations

from fmab_jax.layouts.dense import Dense
from fmab_jax.layouts.ragged import Ragged
from fmab_jax.sampling.backend import is_accelerated


def choose(trials: int, arms: int, elementwise: bool) -> Dense | Ragged:
    """Returns the layout that is fastest on the platform.

    Args:
        trials: Number of trials in a batch.
        arms: K.
        elementwise: Whether an equation judges each arm alone; the ragged layout requires it.
    """
    fits = trials * arms <= Ragged.MOST
    if elementwise and fits and not is_accelerated():
        return Ragged(trials, arms)
    # An equation that compares arms must always see all of them.
    return Dense(trials, arms, cuts=elementwise)
