"""A trial, which runs one seed, and its outcome."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple

import jax
from jaxtyping import Array

from fmab_jax.parts.instances import Instance
from fmab_jax.parts.outputs import Accumulator
from fmab_jax.sampling.shapes import Curve, Grid, Integer, Reals, Scalar


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


class Trial:
    """A pytree of arrays that runs one seed; equal structures and shapes share a compilation.

    Subclasses state `run` and `elements`. They may state more, for speed, and for what their loop
    can do; no bit of a result may depend on it.

    Attributes:
        algorithm: The class that error messages name; None for the trial's own.
        brief: Whether few trials run for less time than their program takes to compile. It is
            then compiled faster and runs slower.
        runs_batches: Whether `run_batch` is of its own.
        waits: Whether outcomes have a ``waiting_regret``.
        alone: Whether each of ``padded_agents`` runs by itself, with curves of its own.
        padded_agents: Rows that agents are padded to.
        follows_worlds: Whether the loop reads ``instance.segments``. Other trials never get a
            problem whose means change.
        follows_presences: Whether the loop asks a problem's presence who is heard. Other trials
            never get a problem with one.
        reads_contexts: Whether the loop reads ``instance.contexts``. Other trials never get a
            problem with contexts.
        accumulates: Whether the loop computes ``accumulators``, which outputs need.
        accumulators: What it computes for outputs.
        accumulator_rows: Rows of an accumulator by agent.
    """

    algorithm: Any = None
    brief: bool = False
    runs_batches: bool = False
    waits: bool = True
    alone: bool = False
    padded_agents: int = 0
    follows_worlds: bool = False
    follows_presences: bool = False
    reads_contexts: bool = False
    accumulates: bool = False
    accumulators: tuple[Accumulator, ...] = ()

    @property
    def accumulator_rows(self) -> int:
        """As above; by default one row stands for all agents."""
        return 1

    def with_accumulators(self, accumulators: tuple[Accumulator, ...]) -> Trial:
        """Returns the trial with accumulators for outputs; for one that `accumulates`."""
        return replace(self, accumulators=accumulators)  # type: ignore[type-var]

    @abstractmethod
    def run(self, instance: Instance, grid: Grid, key: Array) -> Outcome:
        """Runs one seed; pure, for use under ``jit`` and ``vmap``.

        Args:
            instance: `fmab_jax.parts.instances.Instance`.
            grid: Recorded slots of the curves, not decreasing, the last the horizon.
            key: The seed's key.
        """
        raise NotImplementedError

    def run_batch(self, instance: Instance, grid: Array, key: Array) -> Outcome:
        """Runs one seed of each of many trials; all arrays, the trial's too, are [trial, ...]."""
        return jax.vmap(type(self).run)(self, instance, grid, key)

    @abstractmethod
    def elements(self) -> int:
        """Returns how many (agent, arm) elements the loop holds for one seed."""
        raise NotImplementedError
