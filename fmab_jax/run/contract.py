"""What every algorithm promises: one sentence each, which is told when it is broken.

`seen` looks at every batch of every run, since it costs next to nothing; `check_algorithm`, in
`analysis.conformance`, runs an algorithm in the ways that results must not depend on.
"""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager
from inspect import unwrap
from typing import Any, NoReturn

import jax.numpy as jnp
import numpy as np

from fmab_jax.algorithms.base import Algorithm, ledger_of, privacy_of
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.outputs import Accumulator
from fmab_jax.core.plugins import errors_as
from fmab_jax.core.trials import Outcome
from fmab_jax.errors import Refusal, count, refuse

PROMISES = {
    "value": "Equal parameters make an equal algorithm, and its description is JSON.",
    "outcome": "A trial ends in an Outcome: per field a number, or one for each recorded slot.",
    "finite": "Regret is a finite number at every recorded slot, and so is the final gap.",
    "grows": "Regret is at least 0, at most agents x slots x largest gap, and never decreases.",
    "rounds": "Completed rounds never decrease, and the last number of them is `rounds`.",
    "exact": "A curve has the same value at a slot, whichever other slots are recorded.",
    "batch": "A seed's bits depend on its configuration and the seed, not on batch or neighbours.",
    "again": "Running the same trials again, compiled anew, gives the same bits.",
    "room": "Rows that agents are padded to change no bit.",
    "devices": "The number of devices changes no bit.",
    "rewards": "The reward law keeps to its range, with the cumulants that it states, everywhere.",
    "law": "Final regret has the law of the slow reference.",
}
"""By a short name, what an algorithm promises."""

# Rounding of a regret that is summed over many slots.
_ROUNDING = 1e-9


def breach(algorithm: Algorithm | str, promise: str, what: str) -> Refusal:
    """Returns the refusal of an algorithm that does not keep a promise.

    Args:
        algorithm: Whose.
        promise: A key of `PROMISES`.
        what: What was seen.
    """
    name = algorithm if isinstance(algorithm, str) else algorithm.name or type(algorithm).__name__
    line = f"{name} breaks the contract of algorithms: {PROMISES[promise]} Seen: {what}"
    return Refusal.line(line)


def broken(algorithm: Algorithm | str, promise: str, what: str) -> NoReturn:
    """Raises `breach`."""
    raise breach(algorithm, promise, what)


def asking(owner: Any, *, tracing: bool = False) -> AbstractContextManager[None]:
    """Names the owner of a function that fails, the function and the error; see `errors_as`.

    Args:
        owner: The algorithm's class, or that of its trial; or an output.
        tracing: Whether a trial is traced: then a promise is broken.
    """
    name = getattr(owner, "name", "") or owner.__name__

    def refusal(error: BaseException, why: str) -> Refusal:
        function = _function(owner, error)
        if tracing:
            return breach(name, "outcome", f"{function}: {why}" if function else why)
        where = f"{name}.{function}" if function else name
        return Refusal.line(f"{where}: must return, not end in {why}; mend it")

    return errors_as(refusal)


def _function(owner: Any, error: BaseException) -> str:
    """Returns the innermost function of its owner that an error came through; "" if none did."""
    codes = {}
    for each in getattr(owner, "__mro__", (owner,)):
        for name, value in vars(each).items():
            function = getattr(value, "fget", getattr(value, "__func__", value))
            if callable(function) and (code := getattr(unwrap(function), "__code__", None)):
                codes[code] = name
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((codes[code] for code in reversed(frames) if code in codes), "")


def check_statements(algorithm: Algorithm, exchange: Exchange, arms: int) -> None:
    """Asks for all that results say of an algorithm, so that nothing is refused after a run.

    Args:
        algorithm: Whose.
        exchange: Of its agents.
        arms: K.

    Raises:
        Refusal: For the first statement that results cannot hold.
    """
    owner = type(algorithm)
    with asking(owner):
        described: Any = algorithm.describe()
        algorithm.settings()
        privacy_of(algorithm, exchange)
        ledger_of(algorithm, exchange)
        bits: Any = algorithm.number_bits(arms)
    count(f"{owner.__name__}.number_bits", bits, 0, 10**6, "a real number has 64")
    try:
        json.dumps({**described}, allow_nan=False)
    except (TypeError, ValueError):
        remedy = "JSON knows no NaN, no infinity and no objects"
        refuse(f"{owner.__name__}.describe", described, "a dict that JSON can hold", remedy)


def shaped(
    outcome: Any, points: int, name: str, accumulators: Sequence[Accumulator] = ()
) -> Outcome:
    """Checks, while a trial is traced, that it returns what is promised.

    Args:
        outcome: What it returns.
        points: Recorded slots.
        name: The algorithm's.
        accumulators: That it was asked to add up.

    Raises:
        Refusal: If it returns anything else.
    """
    if not isinstance(outcome, Outcome):
        broken(name, "outcome", f"a {type(outcome).__name__}")
    over_time = ("regret", "waiting_regret", "rounds_by")
    for field, value in outcome._asdict().items():
        if field == "accumulator_values" or (value is None and field == "waiting_regret"):
            continue
        wanted = (points,) if field in over_time else ()
        found = np.shape(value)
        if found != wanted:
            broken(name, "outcome", f"{field} of shape {found} in place of {wanted}")
        whole = field not in ("regret", "waiting_regret", "final_gap")
        kind = jnp.result_type(value)
        if kind.kind not in ("iu" if whole else "f"):
            broken(name, "outcome", f"{field} of type {kind}")
    if set(outcome.accumulator_values or {}) != {accumulator.name for accumulator in accumulators}:
        broken(name, "outcome", "accumulators other than those that were asked for")
    return outcome


def looks_right(outcome: Outcome) -> Any:
    """Tells whether a batch keeps all promises exactly; what grows to a finite end is finite.

    Works on arrays of NumPy and of JAX.
    """
    regret, rounds = outcome.regret, outcome.rounds_by
    return (
        (regret[:, 0] >= 0.0).all()
        & (regret[:, 1:] >= regret[:, :-1]).all()
        & (regret[:, -1] < math.inf).all()
        & (abs(outcome.final_gap) < math.inf).all()
        & (rounds[:, 1:] >= rounds[:, :-1]).all()
        & (rounds[:, -1] == outcome.rounds).all()
    )


def judge(outcome: Outcome, seeds: Sequence[int] | np.ndarray, name: str) -> None:
    """Checks a batch of results.

    Args:
        outcome: With a leading axis of seeds, on the host.
        seeds: Of the batch.
        name: The algorithm's.

    Raises:
        Refusal: If a promise about every single trial is broken.
    """
    if looks_right(outcome):
        return
    regret, rounds = outcome.regret, outcome.rounds_by
    rules = (
        ("finite", "regret", regret, np.isfinite(regret)),
        ("finite", "final gap", outcome.final_gap, np.isfinite(outcome.final_gap)),
        ("grows", "regret", regret, regret >= -_ROUNDING * np.maximum(regret[:, -1:], 1.0)),
        ("grows", "regret", regret, _grows(regret)),
        ("rounds", "rounds", rounds, _grows(rounds)),
        ("rounds", "rounds", outcome.rounds, rounds[:, -1] == outcome.rounds),
    )
    for promise, what, values, holds in rules:
        if not holds.all():
            seed, *slot = np.argwhere(~holds)[0].tolist()
            place = "".join(f" at recorded slot {place + 1}" for place in slot)
            value = values[seed, *slot].item()
            broken(name, promise, f"{what} {value} of seed {seeds[seed]}{place}")


def _grows(values: Any) -> np.ndarray:
    """Tells where a value is not below the one before, up to rounding."""
    spare = _ROUNDING * np.maximum(np.abs(values[:, -1:]), 1.0)
    return np.diff(values, axis=1, prepend=values[:, :1]) >= -spare
