"""The promises of every algorithm: one sentence each, which the refusal of a breach quotes.

`check_batch` reads every batch of every run, because it takes little time; `check_algorithm`, in
`analysis.conformance`, varies everything that results must not depend on.
"""

from __future__ import annotations

import functools
import json
import math
import operator
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from inspect import unwrap
from typing import Any, NoReturn

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fmab_jax.algorithms.base import Algorithm, ledger_of, privacy_of
from fmab_jax.errors import Refusal, count, refuse
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.outputs import FIELDS, OF_FIXED_ARMS, Accumulator
from fmab_jax.parts.plugins import errors_as
from fmab_jax.parts.trials import Outcome

PROMISES = {
    "value": "Equal parameters make an equal algorithm, and its description is JSON.",
    "outcome": "A trial ends in an Outcome: per field a number, or one for each recorded slot.",
    "finite": "Regret is a finite number at every recorded slot, and so is the final gap.",
    "grows": "Regret is at least 0, at most agents x slots x largest gap, and never decreases.",
    "rounds": "Completed rounds never decrease, and the last number of them is `rounds`.",
    "exact": "A curve has the same value at a slot, whichever other slots are recorded.",
    "batch": "A seed's bits depend on its configuration and the seed, not on batch or neighbours.",
    "again": "Running the same trials again, compiled anew, gives the same bits.",
    "padding": "Rows that agents are padded to change no bit.",
    "devices": "The number of devices changes no bit.",
    "rewards": "The reward law keeps to its range, with the cumulants that it states, everywhere.",
    "law": "Final regret has the law of the slow reference.",
}
"""Promises of an algorithm, by a short name."""

# Relative rounding error of a regret that is summed over many slots.
_ROUNDING = 1e-9


def make_breach(algorithm: Algorithm | str, promise: str, observation: str) -> Refusal:
    """Returns the refusal of an algorithm that breaks a promise.

    Args:
        algorithm: The algorithm, or its name.
        promise: A key of `PROMISES`.
        observation: Text of the observation.
    """
    name = algorithm if isinstance(algorithm, str) else algorithm.name or type(algorithm).__name__
    line = f"{name} breaks the contract of algorithms: {PROMISES[promise]} Seen: {observation}"
    return Refusal.line(line)


def raise_breach(algorithm: Algorithm | str, promise: str, observation: str) -> NoReturn:
    """Raises the refusal of `make_breach`."""
    raise make_breach(algorithm, promise, observation)


def refuse_errors(owner: object, *, tracing: bool = False) -> AbstractContextManager[None]:
    """Turns errors of a class's functions into refusals that name both; see `errors_as`.

    Args:
        owner: The class of the algorithm or of its trial, or an output.
        tracing: Whether a trial is being traced: then an error breaks a promise.
    """
    name = getattr(owner, "name", "") or getattr(owner, "__name__", "")

    def refusal(error: BaseException, reason: str) -> Refusal:
        function = _find_function(owner, error)
        if tracing:
            return make_breach(name, "outcome", f"{function}: {reason}" if function else reason)
        place = f"{name}.{function}" if function else name
        return Refusal.line(f"{place}: must return, not end in {reason}; mend it")

    return errors_as(refusal)


def _find_function(owner: object, error: BaseException) -> str:
    """Returns the innermost function of the owner in an error's traceback; "" if there is none."""
    codes = {}
    for base in getattr(owner, "__mro__", (owner,)):
        for name, value in vars(base).items():
            function = getattr(value, "fget", getattr(value, "__func__", value))
            if callable(function) and (code := getattr(unwrap(function), "__code__", None)):
                codes[code] = name
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((codes[code] for code in reversed(frames) if code in codes), "")


def check_statements(algorithm: Algorithm, exchange: Exchange, arms: int) -> None:
    """Checks all statements of an algorithm that results contain, before a run starts.

    Args:
        algorithm: The algorithm.
        exchange: The exchange of its agents.
        arms: K.

    Raises:
        Refusal: For the first statement that results cannot hold.
    """
    owner = type(algorithm)
    with refuse_errors(owner):
        description = algorithm.describe()
        algorithm.settings()
        privacy_of(algorithm, exchange)
        ledger_of(algorithm, exchange)
        bits: object = algorithm.number_bits(arms)
    count(f"{owner.__name__}.number_bits", bits, 0, 10**6, "a real number has 64")
    try:
        json.dumps({**description}, allow_nan=False)
    except (TypeError, ValueError):
        remedy = "JSON knows no NaN, no infinity and no objects"
        refuse(f"{owner.__name__}.describe", description, "a dict that JSON can hold", remedy)


def check_outcome(
    outcome: object,
    points: int,
    name: str,
    accumulators: Sequence[Accumulator] = (),
    *,
    has_contexts: bool = False,
) -> Outcome:
    """Checks the shapes and types of a traced trial's outcome.

    Args:
        outcome: The value that the trial returns.
        points: Number of recorded slots.
        name: The algorithm's name.
        accumulators: Requested accumulators.
        has_contexts: Whether means follow from contexts.

    Raises:
        Refusal: If the outcome differs.
    """
    if not isinstance(outcome, Outcome):
        raise_breach(name, "outcome", f"a {type(outcome).__name__}")
    optional = OF_FIXED_ARMS if has_contexts else ("agents_lost",)
    for field, (dtype, over_time) in FIELDS.items():
        value = getattr(outcome, field)
        if value is None and field in ("waiting_regret", "messages_by", *optional):
            continue
        shape, actual = (points,) if over_time else (), np.shape(value)
        if actual != shape:
            raise_breach(name, "outcome", f"{field} of shape {actual} in place of {shape}")
        kind = jnp.result_type(value)
        if kind.kind not in ("f" if dtype.kind == "f" else "iu"):
            raise_breach(name, "outcome", f"{field} of type {kind}")
    if set(outcome.accumulator_values or {}) != {accumulator.name for accumulator in accumulators}:
        raise_breach(name, "outcome", "accumulators other than those that were asked for")
    return outcome


def is_valid(outcome: Outcome) -> Array | np.bool_:
    """Tells whether a batch keeps the promises of every trial; on arrays of NumPy or of JAX."""
    checks = (holds.all() for *_, holds in _list_rules(outcome))
    return functools.reduce(operator.and_, checks)


def check_batch(outcome: Outcome, seeds: Sequence[int] | np.ndarray, name: str) -> None:
    """Checks a batch of results.

    Args:
        outcome: Outcome with a leading axis of seeds, on the host.
        seeds: Seeds of the batch.
        name: The algorithm's name.

    Raises:
        Refusal: If a promise about every single trial is broken.
    """
    slots = outcome.regret.shape[1]
    for promise, quantity, values, holds in _list_rules(outcome):
        if not holds.all():
            seed, *slot = np.argwhere(~holds)[0].tolist()
            value = values[seed, *slot].item()
            # A rule about two slots is broken at the second one.
            place = "".join(f" at recorded slot {x + 1 + slots - values.shape[1]}" for x in slot)
            raise_breach(name, promise, f"{quantity} {value} of seed {seeds[seed]}{place}")


def _list_rules(outcome: Outcome) -> Iterator[tuple[str, str, Any, Any]]:
    """Yields promise, quantity, its values [seed] or [seed, slot], and where the promise holds.

    A series that is summed over many slots may fall by its rounding.
    """
    regret, rounds, gap = outcome.regret, outcome.rounds_by, outcome.final_gap
    yield "finite", "regret", regret, abs(regret) < math.inf
    if gap is not None:
        yield "finite", "final gap", gap, abs(gap) < math.inf
    spare = _ROUNDING * (1.0 + abs(regret[:, -1:]))
    yield "grows", "regret", regret, regret >= -spare
    yield "grows", "regret", regret[:, 1:], regret[:, 1:] >= regret[:, :-1] - spare
    yield "rounds", "rounds", rounds[:, 1:], rounds[:, 1:] >= rounds[:, :-1]
    yield "rounds", "rounds", outcome.rounds, rounds[:, -1] == outcome.rounds
