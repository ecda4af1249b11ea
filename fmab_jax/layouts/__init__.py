"""How a platform holds the arms in play: in arrays, or in one list.

A layout has few operations. A *body* is a function of one trial's arms
(a dict of arrays [arm, ...]) and of that trial's values; a layout applies it to all arms in play.

* ``each(function)``: applies a function of one trial to every trial.
* ``start(fixed, draws)``: the arms of all trials, with constants, and sums that are 0.
* ``sweep(body, arms, values, **reductions)``: changes fields of the arms, and reduces over the arms
  of each trial by "sum", "max", "first_max" (the lowest arm of the largest value), or "by_arm".
* ``keep(arms, trials)``: leaves arms to be played that are ``alive``, of some trials.
* ``loop(epoch, ...)``: repeats an epoch until every run is over, and draws the curves.
"""

from __future__ import annotations

from fmab_jax.core.backend import is_accelerated
from fmab_jax.layouts.dense import Dense
from fmab_jax.layouts.ragged import Ragged


def choose(trials: int, arms: int, elementwise: bool) -> Dense | Ragged:
    """Returns the layout that is fastest where the program runs.

    Args:
        trials: Of a batch.
        arms: K.
        elementwise: Whether arms are judged one by one; a list shows an equation one arm at a time.
    """
    few = trials * arms <= Ragged.MOST
    if elementwise and few and not is_accelerated():
        return Ragged(trials, arms)
    # An equation that compares arms is always shown all of them, whatever other runs are like.
    return Dense(trials, arms, cuts=elementwise)
