"""The protocol of a trial, which runs one seed, and its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from fmab_jax.sampling.shapes import Curve, Grid, Integer, Reals, Scalar

if TYPE_CHECKING:
    from fmab_jax.parts.instances import Instance


class Outcome(NamedTuple):
    """The result of one trial; every family returns it.

    Attributes:
        regret: [time] cumulative pseudo-regret, summed over agents.
        waiting_regret: [time] the part of it in waiting slots; None if agents never wait.
        rounds_by: [time] completed communication rounds.
        rounds: Completed rounds at the horizon.
        messages_by: [time] messages that agents have sent, where agents may be absent; None where
            each round has the same number.
        arms_reported: Reported arms, summed over these rounds; over messages, if they are counted.
        active_arms: Arms still in play at the horizon; None with contexts, which give an arm
            another mean in each slot. So are the next four.
        chosen_arm: The arm played at the horizon, -1 while still exploring.
        agents_lost: Agents whose active set holds no best arm at the horizon; None if means change.
        agents_worse: Agents that play one arm at the horizon, and not a best one.
        final_gap: Gap of what agents play at the horizon, mean over agents (and, while they
            explore, over the active arms).
        accumulator_values: Result of each `Accumulator`, by name; None if no output needs one.
    """

    regret: Curve
    waiting_regret: Curve | None
    rounds_by: Grid
    rounds: Integer
    arms_reported: Integer
    active_arms: Integer | None
    chosen_arm: Integer | None
    agents_lost: Integer | None
    agents_worse: Integer | None
    final_gap: Scalar | None
    accumulator_values: dict[str, Reals] | None = None
    messages_by: Grid | None = None


@runtime_checkable
class Trial(Protocol):
    """A pytree of arrays that runs one seed; equal structures and shapes share a compilation.

    It may offer more, for speed; no bit of a result may depend on it:

    * ``run_batch(instance, grid, key)``: runs one seed of each of many trials; everything, the
      trial's own arrays included, is [trial, ...].
    * ``brief``: true if few trials run for less time than their program takes to compile. It is
      then compiled faster and runs slower.
    * ``follows_worlds``: true if the loop reads ``instance.segments``. Other trials never get a
      problem whose means change.
    * ``follows_presences``: true if the loop asks a problem's presence who is heard. Other trials
      never get a problem with one.
    * ``reads_contexts``: true if the loop reads ``instance.contexts``. Other trials never get a
      problem with contexts.
    * ``with_accumulators(accumulators)``: the same trial with accumulators for outputs. Only a
      trial with this method has such outputs.
    """

    def run(self, instance: Instance, grid: Grid, key: Array) -> Outcome:
        """Runs one seed; pure, for use under ``jit`` and ``vmap``.

        Args:
            instance: `fmab_jax.parts.instances.Instance`.
            grid: Recorded slots of the curves, not decreasing, the last the horizon.
            key: The seed's key.
        """

    def elements(self) -> int:
        """Returns how many (agent, arm) elements the loop holds for one seed."""


def checked(function: str, value: ArrayLike, shape: tuple[int, ...], kinds: str) -> Array:
    """Returns the result of an algorithm's function as an array; checks it while it is traced.

    Args:
        function: Name of the function.
        value: Its result.
        shape: Required shape.
        kinds: NumPy's letters of the allowed types.

    Raises:
        TypeError: If it has another shape or type.
    """
    array = jnp.asarray(value)
    if array.shape != shape or array.dtype.kind not in kinds:
        kind = {"f": "a real number", "b": "true or false", "iu": "a whole number"}[kinds]
        result = f"{function} returns {array.dtype} of shape {array.shape}"
        raise TypeError(f"{result}, not {kind} of shape {shape}")
    return array
