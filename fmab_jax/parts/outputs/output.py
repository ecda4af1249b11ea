"""Outputs and their data: records of trials, and accumulators of loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike, DTypeLike

from fmab_jax.errors import Refusal, flag, real, refuse
from fmab_jax.parts.plugins import errors_as
from fmab_jax.sampling.scope import package_settings
from fmab_jax.sampling.segments import Ends
from fmab_jax.sampling.shapes import (
    Grid,
    Integer,
    PerAgent,
    PerRow,
    PerRowArm,
    PyTree,
    Reals,
    Scalar,
)

PROMISE = (
    "An accumulator starts as arrays, keeps their shapes and types, and ends in real numbers over "
    "its dimensions."
)
"""Contract of an accumulator, which the error message quotes."""


class Stretch(NamedTuple):
    """A stretch of slots in which no agent changes its play.

    Agents that always play the same are one row; otherwise each agent is a row, and the last rows
    may be padding.

    Attributes:
        start: The slot before the stretch.
        stop: Its last slot.
        gap: Regret per slot of an agent of a row, against the arm that is best on average.
        share: Share of the slots in which an agent of a row plays each arm.
        agents: Number of agents of a row; 0 for padding.
        own_gap: Regret per slot of each agent against its own best arm, a row for each agent where
            their means differ; otherwise it is ``gap``.
        excess: How much more regret per slot all agents have against their own best arms than
            against the arm that is best on average; exactly 0 where they share their means.
        segment: Which segment the slots lie in, if means change.
    """

    start: Integer
    stop: Integer
    gap: PerRow
    share: PerRowArm
    agents: PerRow
    own_gap: PerAgent
    excess: Scalar
    segment: Integer | int = 0


class Accumulator(NamedTuple):
    """A sum that a loop accumulates, stretch by stretch, for an output that needs it.

    All functions are traced, and only for a requested output.

    Attributes:
        name: Key in `Outcome.accumulator_values`.
        dims: Dimensions of a seed's value. "agent" comes first, if each agent has a row; otherwise
            the value is over all agents together, and values of agents that run alone are summed.
            "time" comes last, for one value per recorded slot.
        start: Maps the numbers of rows and arms, and the recorded slots, to the state at slot 0.
        add: Maps the state, a stretch and the recorded slots to the state after the stretch.
        end: Maps the state at the horizon to the value, with a row for each row of the stretches if
            it is by agent; by default the state itself.
        reads_own: Whether it is by agent and reads ``own_gap``. Then each agent has a row where
            means differ, ``start`` gets `Rows` in place of a number, and ``end`` gets the state and
            `Instance.own_gaps`.
        add_slots: Maps the state, single slots as stretches with a leading slot axis, and the
            recorded slots to the state after them, faster than ``add`` and to the same bits.
    """

    name: str
    dims: tuple[str, ...]
    start: Callable[[Any, int, Array], PyTree]
    add: Callable[[PyTree, Stretch, Array], PyTree]
    end: Callable[..., Reals] = lambda total: total
    reads_own: bool = False
    add_slots: Callable[[PyTree, Stretch, Array], PyTree] | None = None

    @property
    def by_agent(self) -> bool:
        """Whether each agent has a row."""
        return "agent" in self.dims


class Rows(NamedTuple):
    """Numbers of rows of accumulators.

    Attributes:
        playing: Rows of agents that may play differently.
        own: Rows of agents that play differently or have other means.
        segments: Segments in which means differ.
    """

    playing: int
    own: int
    segments: int = 1

    def count(self, accumulator: Accumulator) -> int:
        """Returns the rows of the value of an accumulator by agent."""
        return self.own if accumulator.reads_own else self.playing


def count_rows(playing: int, own_gaps: Reals | None) -> Rows:
    """Returns the rows of accumulators, from `Instance.own_gaps`."""
    if own_gaps is None:
        return Rows(playing, playing)
    return Rows(playing, own_gaps.shape[-2], own_gaps.shape[0] if own_gaps.ndim > 2 else 1)


def start_accumulators(
    accumulators: tuple[Accumulator, ...], rows: Rows, arms: int, grid: Grid
) -> tuple[PyTree, ...]:
    """Returns the state of each accumulator at slot 0."""
    counts = [rows if x.reads_own else rows.playing for x in accumulators]
    return tuple(
        _call(x, "start", n, arms, grid) for x, n in zip(accumulators, counts, strict=True)
    )


def _call(accumulator: Accumulator, function: str, *args: PyTree) -> PyTree:
    """Calls a function of an accumulator, and converts the result to arrays.

    Raises:
        Refusal: If the function fails: the error is not the algorithm's.
    """
    with errors_as(lambda _, why: _blame(accumulator, f"{function}: {why}")):
        return jax.tree.map(jnp.asarray, getattr(accumulator, function)(*args))


def _blame(accumulator: Accumulator, reason: str) -> Refusal:
    line = f"{accumulator.name} breaks the contract of accumulators: {PROMISE} Seen: {reason}"
    return Refusal.line(line)


def _describe_shapes(tree: PyTree) -> str:
    shapes = [f"{leaf.dtype}{leaf.shape}" for leaf in jax.tree.leaves(tree)]
    return " and ".join(shapes) or "nothing"


def accumulate(
    accumulators: tuple[Accumulator, ...],
    states: tuple[PyTree, ...],
    stretch: Callable[[], Stretch],
    grid: Grid,
) -> tuple[PyTree, ...]:
    """Returns the states after a stretch, which is computed only if there are accumulators."""
    if not accumulators:
        return states
    current = stretch()
    # Runs that are over get empty stretches while others continue.
    has_slots = current.stop > current.start

    def add_stretch(accumulator: Accumulator, old: PyTree) -> PyTree:
        new = _call(accumulator, "add", old, current, grid)
        pairs = zip(jax.tree.leaves(new), jax.tree.leaves(old), strict=False)
        structure: object = jax.tree.structure(old)
        matches = structure == jax.tree.structure(new) and all(
            x.shape == y.shape and np.result_type(x.dtype, y.dtype) == y.dtype for x, y in pairs
        )
        if not matches:
            shapes = map(_describe_shapes, (new, old))
            raise _blame(accumulator, f"add returns {' after '.join(shapes)}")
        return jax.tree.map(lambda x, y: jnp.where(has_slots, x.astype(y.dtype), y), new, old)

    return tuple(map(add_stretch, accumulators, states))


def accumulate_segments(
    accumulators: tuple[Accumulator, ...],
    states: tuple[PyTree, ...],
    stretch: Callable[[], Stretch],
    grid: Grid,
    ends: Ends | None,
) -> tuple[PyTree, ...]:
    """Returns as `accumulate`, for a stretch whose gaps have a leading segment axis."""
    if ends is None or not accumulators:
        return accumulate(accumulators, states, stretch, grid)
    whole = stretch()

    def add_part(
        states: tuple[PyTree, ...], part: tuple[Array, Array, dict[str, Array]]
    ) -> tuple[tuple[PyTree, ...], None]:
        begin, end, fields = part
        start, stop = (jnp.clip(slot, begin, end) for slot in (whole.start, whole.stop))
        now = whole._replace(start=start, stop=stop, **fields)
        return accumulate(accumulators, states, lambda: now, grid), None

    begins = jnp.concatenate([jnp.zeros_like(ends[:1]), ends[:-1]])
    fields = {name: getattr(whole, name) for name in ("gap", "own_gap", "excess")}
    fields["segment"] = jnp.arange(len(ends))
    return jax.lax.scan(add_part, states, (begins, ends, fields))[0]


def accumulate_slots(
    accumulators: tuple[Accumulator, ...],
    states: tuple[PyTree, ...],
    stretch: Callable[..., Stretch],
    slots: tuple[Array, ...],
    grid: Grid,
) -> tuple[PyTree, ...]:
    """Returns the states after several single slots.

    Args:
        accumulators: As in `accumulate`, as are ``states`` and ``grid``.
        states: The states before.
        stretch: Maps a slot of ``slots`` to its stretch.
        slots: What a stretch follows from, each with a leading slot axis.
        grid: Recorded slots.
    """

    def add_slots(accumulator: Accumulator, state: PyTree) -> PyTree:
        if accumulator.add_slots is not None:
            return accumulator.add_slots(state, jax.vmap(stretch)(*slots), grid)

        def add_slot(state: PyTree, slot: tuple[Array, ...]) -> tuple[PyTree, None]:
            (after,) = accumulate((accumulator,), (state,), lambda: stretch(*slot), grid)
            return after, None

        return jax.lax.scan(add_slot, state, slots)[0]

    return tuple(map(add_slots, accumulators, states))


def finish_accumulators(
    accumulators: tuple[Accumulator, ...],
    states: tuple[PyTree, ...],
    rows: Rows,
    arms: int,
    points: int,
    own_gaps: Reals | None = None,
) -> dict[str, Array] | None:
    """Returns the values of accumulators by name; None if there are none."""
    values = {}
    for accumulator, state in zip(accumulators, states, strict=True):
        sizes = {"agent": rows.count(accumulator), "arm": arms, "time": points}
        known = (own_gaps,) if accumulator.reads_own else ()
        end, shape = (
            _call(accumulator, "end", state, *known),
            tuple(sizes[dim] for dim in accumulator.dims),
        )
        if not isinstance(end, jax.Array) or end.shape != shape or end.dtype.kind != "f":
            text = f"{_describe_shapes(end)} in place of float64{shape}, over {accumulator.dims}"
            raise _blame(accumulator, f"end returns {text}")
        values[accumulator.name] = end
    return values or None


DIMENSIONS = ("time", "meter", "agent", "arm")
"""Allowed dimensions of a seed's value, in this order."""
_ACCUMULATOR_DIMS = ("agent", "arm", "time")
OF_RESULTS = {*DIMENSIONS, "seed", "time_2", "quantile", "bin", "made"}
"""Names of all dimensions of results, besides swept parameters."""


_FLOAT, _INT, _LONG = np.dtype(np.float64), np.dtype(np.int32), np.dtype(np.int64)
FIELDS: dict[str, tuple[np.dtype, bool]] = {
    **dict.fromkeys(("regret", "waiting_regret"), (_FLOAT, True)),
    **{"rounds_by": (_INT, True), "arms_reported": (_LONG, False), "messages_by": (_LONG, True)},
    **{"final_gap": (_FLOAT, False), "rounds": (_INT, False)},
    **dict.fromkeys(("active_arms", "chosen_arm", "agents_lost", "agents_worse"), (_INT, False)),
}
"""Type of each field of an `Outcome` but the accumulators, and whether it is over time."""
OF_FIXED_ARMS = ("active_arms", "chosen_arm", "agents_lost", "agents_worse", "final_gap")
"""Fields without a meaning where an arm has another mean in each slot."""


class Record:
    """The recorded trials of one configuration.

    ``record[name]`` is a field of an `Outcome`, or an accumulator: [seed, ...]; one by agent is
    [seed, agent, ...]. A user's output cannot change it in place.

    Attributes:
        agents: M.
        arms: K.
        counted: What costs belong to: "rounds_by", completed rounds, or "messages_by", messages,
            where agents or links may be missing.
        links: [meter] links of a completed round, or of a message.
        vectors: Vectors that it sends.
        numbers: Single numbers that it sends besides.
        number_bits: Bits of a number.
    """

    agents: int
    arms: int
    counted: str
    links: np.ndarray
    vectors: int
    numbers: int
    number_bits: int

    def __init__(
        self,
        arrays: Callable[[str], Any],
        facts: Mapping[str, object],
        accumulators: Sequence[Accumulator] = (),
    ) -> None:
        """Takes a function from names to arrays, the attributes, and the output's accumulators."""
        vars(self).update(facts)
        self._arrays = arrays
        self._accumulators = {accumulator.name: accumulator for accumulator in accumulators}

    def count_all(self) -> Any:
        """Returns the completed rounds, or the messages, of each seed at the horizon."""
        return self["rounds"] if self.counted == "rounds_by" else self[self.counted][..., -1]

    def __getitem__(self, name: str) -> Any:
        """Returns the array of a name; for a `Reduce`, an array of JAX.

        Raises:
            ValueError: If nothing was, or the accumulator of that name is none of the output's.
        """
        if name not in FIELDS and name not in self._accumulators:
            allowed = f"among {', '.join((*FIELDS, *self._accumulators))}"
            remedy = "name its accumulator: Output(..., accumulators=...)"
            refuse("record", name, allowed, remedy)
        values = self._arrays(name)
        if name not in self._accumulators or not self._accumulators[name].by_agent:
            return values
        # One row stands for agents that always play the same.
        rows = values[:, : self.agents]
        return np.broadcast_to(rows, (len(rows), self.agents, *rows.shape[2:]))


@dataclass(frozen=True)
class Output:
    """One variable of a result.

    Attributes:
        name: In results.
        label: For people.
        units: Of its values.
        of: Makes it of what is recorded: real numbers [seed, *dims], each seed by itself.
        dims: What a seed's value is over, of `DIMENSIONS` and in their order.
        dtype: Of its values; float64, but for some of the usual outputs.
        accumulators: What the loops have to add up for it.
        coordinate: Whether it belongs to the seeds rather than to the results.
        source: Theorem, equation or paper that defines it; "" for what needs none.

    Raises:
        ValueError: If one of these is something else.

    Example:
        How many of its arms an agent has pulled at all, as an output of one's own:

        >>> import fmab_jax as fmab
        >>> from fmab_jax.parts.outputs.pulls import PULLS
        >>> tried = fmab.Output(
        ...     "arms_tried", "arms that were pulled", "arms",
        ...     lambda record: (record["pulls"] > 0).sum(-1), accumulators=PULLS.accumulators,
        ... )
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, 10**4, 20, outputs=[tried])
        >>> float(data.arms_tried.min())
        10.0
    """

    name: str
    label: str
    units: str
    of: Callable[[Record], np.ndarray]
    dims: tuple[str, ...] = ()
    dtype: DTypeLike = np.float64
    accumulators: tuple[Accumulator, ...] = ()
    coordinate: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        """Checks the fields."""
        if not isinstance(self.name, str) or not self.name.isidentifier():
            refuse("name", self.name, "a short plain name", "such as 'arms_tried'")
        for name in ("label", "units", "source"):
            if not isinstance(value := getattr(self, name), str):
                refuse(name, value, "a text", "write it in quotes")
        if "since" in self.units:
            # Readers would decode such numbers as dates.
            refuse("units", self.units, "a unit, without 'since'", "such as 'seconds'")
        if not callable(self.of):
            refuse("of", self.of, "a function of a Record", "such as lambda record: ...")
        _check_dims("dims", self.dims, DIMENSIONS)
        accumulators = self.accumulators if isinstance(self.accumulators, tuple) else [None]
        if not all(isinstance(accumulator, Accumulator) for accumulator in accumulators):
            remedy = "such as PULLS.accumulators"
            refuse("accumulators", self.accumulators, "a tuple of accumulators", remedy)
        for accumulator in self.accumulators:
            if not isinstance(accumulator.name, str) or not accumulator.name.isidentifier():
                refuse("accumulator.name", accumulator.name, "a short plain name", "rename it")
            _check_dims("accumulator.dims", accumulator.dims, _ACCUMULATOR_DIMS)
        flag("coordinate", self.coordinate)

    @property
    def attrs(self) -> dict[str, str]:
        """The attributes of the variable in a result."""
        return {"long_name": self.label, "units": self.units}


@dataclass(frozen=True)
class Reduce(Output):
    """What a summary keeps of many seeds, where a mean and a variance say too little.

    It is an output whose seeds are added up to a *state*. ``of`` and ``add`` are traced, and run on
    the device that has computed the seeds: of these, only the state leaves an accelerator. ``of``
    sees the seeds of one configuration and returns [seed, ...], of any shape.

    Attributes:
        init: The state before any seed: a pytree of arrays of bool, int64, uint64, float64 or
            complex128, the same for all configurations.
        add: The state with more seeds: of a state, and of what ``of`` returns. Traced.
        merge: The state of the seeds of both: of two states. NumPy.
        finish: The result: of a state of any number of seeds, real numbers over the dimensions of
            ``over``. NumPy.
        over: Dimensions of the result: pairs of a name and its coordinates, which are numbers.

    Raises:
        ValueError: As for an `Output`, or if one of these is something else.

    Example:
        How many seeds have a regret above each of some thresholds:

        >>> import jax.numpy as jnp, numpy as np
        >>> import fmab_jax as fmab
        >>> thresholds = (0.0, 100.0, 1000.0)
        >>> def count(state, values):
        ...     above = values[:, None] > jnp.array(thresholds)[None]
        ...     return state + above.sum(0, dtype=state.dtype)
        >>> above = fmab.Reduce(
        ...     "seeds_above", "seeds with more regret", "seeds",
        ...     lambda record: record["regret"][:, -1],
        ...     init=lambda: np.zeros(3),
        ...     add=count,
        ...     merge=lambda first, second: first + second,
        ...     finish=lambda state: state,
        ...     over=(("threshold", thresholds),),
        ... )
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.sweep(
        ...     fmab.cdp_mab, problem, horizon=10**4, seeds=20, keep="summary",
        ...     epsilon=[0.5, 1.0], outputs=[above],
        ... )
        >>> data.seeds_above.dims, float(data.seeds_above.sel(threshold=0.0, epsilon=1.0))
        (('epsilon', 'threshold'), 20.0)
    """

    init: Callable[[], PyTree] = field(kw_only=True)
    add: Callable[[PyTree, PyTree], PyTree] = field(kw_only=True)
    merge: Callable[[PyTree, PyTree], PyTree] = field(kw_only=True)
    finish: Callable[[PyTree], ArrayLike] = field(kw_only=True)
    over: tuple[tuple[str, tuple[float, ...]], ...] = ()

    def __post_init__(self) -> None:
        """Checks the fields."""
        super().__post_init__()
        for name in ("init", "add", "merge", "finish"):
            if not callable(value := getattr(self, name)):
                refuse(name, value, "a function", "see help(fmab_jax.Reduce)")
        if self.dims or self.accumulators or self.coordinate:
            remedy = "a reduction has dimensions `over`"
            refuse("dims", self.dims, "left out, as are accumulators", remedy)
        for dimension in self.over if isinstance(self.over, tuple) else [None]:
            match dimension if isinstance(dimension, (tuple, list)) else None:
                case (str(name), tuple(coordinates)) if name.isidentifier():
                    for x in coordinates:
                        real(f"over[{name!r}]", x, -math.inf, math.inf, "give numbers")
                case _:
                    remedy = 'such as (("threshold", (10.0, 100.0)),)'
                    refuse("over", self.over, "pairs of a name and a tuple of numbers", remedy)

    @property
    def initial_arrays(self) -> list[np.ndarray]:
        """The arrays of the state before any seed."""
        with package_settings():  # jnp numbers have 64 bits
            return [np.asarray(x) for x in jax.tree.leaves(self.init())]

    def state(self, arrays: Sequence[np.ndarray]) -> PyTree:
        """Returns the state that has these arrays."""
        with package_settings():
            return jax.tree.unflatten(jax.tree.structure(self.init()), arrays)


def _check_dims(field: str, dims: object, order: tuple[str, ...]) -> None:
    if not isinstance(dims, tuple) or dims != tuple(dim for dim in order if dim in dims):
        refuse(field, dims, f"some of {order}, in this order", "write a tuple of them")
