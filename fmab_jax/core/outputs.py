"""Outputs, and what they are made of: records of trials, and gauges that loops add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fmab_jax.core.plugins import errors_as
from fmab_jax.core.shapes import Grid, Integer, PerRow, PerRowArm, Reals
from fmab_jax.errors import Refusal, flag, real, refuse

PROMISE = (
    "A gauge starts as arrays, keeps their shapes and types, and ends in real numbers over its "
    "dimensions."
)
"""What a gauge promises, which is told when it is broken."""


class Stretch(NamedTuple):
    """Slots in which no agent changes what it does.

    Agents that do the same all along are one row; else each agent is a row, and the last rows may
    be padding.

    Attributes:
        start: The slot that the stretch follows.
        stop: Its last slot.
        gap: Of what an agent of a row plays: its regret per slot.
        share: Of its slots that an agent of a row spends on each arm.
        agents: How many agents a row stands for; 0 for padding.
    """

    start: Integer
    stop: Integer
    gap: PerRow
    share: PerRowArm
    agents: PerRow


class Gauge(NamedTuple):
    """A sum that a loop adds up, stretch by stretch, for an output that needs it.

    All of its functions are traced, and only where somebody asks for the output.

    Attributes:
        name: In `Outcome.gauged`.
        dims: Of a seed's gauge. "agent" comes first, if it has a row for each; else it is of all
            agents together, and adds up: where each agent is alone, theirs are summed. "time"
            comes last, if it has a value at each recorded slot.
        start: What there is at slot 0; of the numbers of rows and arms, and the recorded slots.
        add: What there is after a stretch; of what there was, the stretch and the recorded slots.
        end: The gauge, with a row for each of the stretches' rows if it is by agent; of what there
            is at the horizon. By default it is that.
    """

    name: str
    dims: tuple[str, ...]
    start: Callable[[int, int, Array], Any]
    add: Callable[[Any, Stretch, Array], Any]
    end: Callable[[Any], Reals] = lambda total: total

    @property
    def by_agent(self) -> bool:
        """Whether agents have a row each."""
        return "agent" in self.dims


def gauges_start(asked: tuple[Gauge, ...], rows: int, arms: int, grid: Grid) -> tuple[Any, ...]:
    """Returns what every gauge has at slot 0."""
    return tuple(_call(each, "start", rows, arms, grid) for each in asked)


def _call(gauge: Gauge, function: str, *given: Any) -> Any:
    """Returns what a function of a gauge returns, as arrays.

    Raises:
        Refusal: If it fails, so that the algorithm whose loop called it is not blamed.
    """
    with errors_as(lambda _, why: _blame(gauge, f"{function}: {why}")):
        return jax.tree.map(jnp.asarray, getattr(gauge, function)(*given))


def _blame(gauge: Gauge, what: str) -> Refusal:
    return Refusal.line(f"{gauge.name} breaks the contract of gauges: {PROMISE} Seen: {what}")


def _describe_shapes(tree: Any) -> str:
    leaves = [f"{leaf.dtype}{leaf.shape}" for leaf in jax.tree.leaves(tree)]
    return " and ".join(leaves) or "nothing"


def gauged(
    asked: tuple[Gauge, ...], found: tuple[Any, ...], stretch: Callable[[], Stretch], grid: Grid
) -> tuple[Any, ...]:
    """Returns what every gauge has after a stretch, which is looked at only if there is one."""
    if not asked:
        return found
    now = stretch()
    # A loop that goes on for others hands on stretches of no slot.
    real = now.stop > now.start

    def kept(gauge: Gauge, old: Any) -> Any:
        new = _call(gauge, "add", old, now, grid)
        pairs = zip(jax.tree.leaves(new), jax.tree.leaves(old), strict=False)
        before: Any = jax.tree.structure(old)
        fits = before == jax.tree.structure(new) and all(
            x.shape == y.shape and np.result_type(x.dtype, y.dtype) == y.dtype for x, y in pairs
        )
        if not fits:
            shapes = map(_describe_shapes, (new, old))
            raise _blame(gauge, f"add returns {' after '.join(shapes)}")
        return jax.tree.map(lambda x, y: jnp.where(real, x.astype(y.dtype), y), new, old)

    return tuple(map(kept, asked, found))


def gauges_end(
    asked: tuple[Gauge, ...], found: tuple[Any, ...], rows: int, arms: int, points: int
) -> dict[str, Array] | None:
    """Returns the gauges by name; None where nothing is asked for."""
    sizes = {"agent": rows, "arm": arms, "time": points}
    ends = {}
    for gauge, had in zip(asked, found, strict=True):
        end, wanted = _call(gauge, "end", had), tuple(sizes[dim] for dim in gauge.dims)
        if not isinstance(end, jax.Array) or end.shape != wanted or end.dtype.kind != "f":
            told = f"{_describe_shapes(end)} in place of float64{wanted}, over {gauge.dims}"
            raise _blame(gauge, f"end returns {told}")
        ends[gauge.name] = end
    return ends or None


DIMENSIONS = ("time", "meter", "agent", "arm")
"""Dimensions that a value of a seed may have, in this order."""
_OF_GAUGES = ("agent", "arm", "time")
OF_RESULTS = {*DIMENSIONS, "seed", "time_2", "quantile", "bin", "made"}
"""Names of all dimensions of results, besides what is swept."""


_ENDS = ("rounds", "active_arms", "chosen_arm", "agents_lost", "agents_worse")
_FLOAT, _INT = np.dtype(np.float64), np.dtype(np.int32)
FIELDS: dict[str, tuple[np.dtype[Any], bool]] = {
    **dict.fromkeys(("regret", "waiting_regret"), (_FLOAT, True)),
    **{"rounds_by": (_INT, True), "arms_reported": (np.dtype(np.int64), False)},
    **{"final_gap": (_FLOAT, False), **dict.fromkeys(_ENDS, (_INT, False))},
}
"""Type of each field of an `Outcome` but the gauges, and whether it is over time."""


class Record:
    """The trials of one configuration, as they were recorded.

    ``record[name]`` is a field of an `Outcome`, or a gauge: [seed, ...]; one by agent is
    [seed, agent, ...]. An output of one's own cannot change it in place.

    Attributes:
        agents: M.
        arms: K.
        links: [meter] links of a completed round.
        vectors: Vectors that a completed round sends.
        numbers: Numbers that it sends besides.
        number_bits: Bits of a number that is sent.
    """

    agents: int
    arms: int
    links: np.ndarray
    vectors: int
    numbers: int
    number_bits: int

    def __init__(
        self, arrays: Callable[[str], Any], facts: Mapping[str, Any], gauges: Sequence[Gauge] = ()
    ) -> None:
        """Takes what returns an array by its name, the attributes, and the output's own gauges."""
        vars(self).update(facts)
        self._arrays = arrays
        self._gauges = {each.name: each for each in gauges}

    def __getitem__(self, name: str) -> Any:
        """Returns the array that was recorded under a name; of a `Reduce`, one of JAX.

        Raises:
            ValueError: If nothing was, or the gauge of that name is none of the output's.
        """
        if name not in FIELDS and name not in self._gauges:
            allowed = ", ".join((*FIELDS, *self._gauges))
            refuse("record", name, f"among {allowed}", "name its gauge: Output(..., gauges=...)")
        values = self._arrays(name)
        if name not in self._gauges or not self._gauges[name].by_agent:
            return values
        # Agents that do the same all along are one row.
        each = values[:, : self.agents]
        return np.broadcast_to(each, (len(each), self.agents, *each.shape[2:]))


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
        gauges: What the loops have to add up for it.
        coordinate: Whether it belongs to the seeds rather than to the results.
        source: Theorem, equation or paper that defines it; "" for what needs none.

    Raises:
        ValueError: If one of these is something else.

    Example:
        How many of its arms an agent has pulled at all, as an output of one's own:

        >>> import fmab_jax as fmab
        >>> from fmab_jax.run.outputs.pulls import PULLS
        >>> tried = fmab.Output(
        ...     "arms_tried", "arms that were pulled", "arms",
        ...     lambda record: (record["pulls"] > 0).sum(-1), gauges=PULLS.gauges,
        ... )
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, 10**4, 20, outputs=[tried])
        >>> float(data.arms_tried.min())
        10.0
    """

    name: str
    label: str
    units: str
    of: Callable[[Record], np.ndarray]
    dims: tuple[str, ...] = ()
    dtype: Any = np.float64
    gauges: tuple[Gauge, ...] = ()
    coordinate: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        """Checks what is stated."""
        if not isinstance(self.name, str) or not self.name.isidentifier():
            refuse("name", self.name, "a short plain name", "such as 'arms_tried'")
        for name in ("label", "units", "source"):
            if not isinstance(value := getattr(self, name), str):
                refuse(name, value, "a text", "write it in quotes")
        if "since" in self.units:
            # Such numbers would be read back as dates.
            refuse("units", self.units, "a unit, without 'since'", "such as 'seconds'")
        if not callable(self.of):
            refuse("of", self.of, "a function of a Record", "such as lambda record: ...")
        _check_dims("dims", self.dims, DIMENSIONS)
        gauges = self.gauges if isinstance(self.gauges, tuple) else [None]
        if not all(isinstance(gauge, Gauge) for gauge in gauges):
            refuse("gauges", self.gauges, "a tuple of gauges", "such as PULLS.gauges")
        for gauge in self.gauges:
            if not isinstance(gauge.name, str) or not gauge.name.isidentifier():
                refuse("gauge.name", gauge.name, "a short plain name", "rename it")
            _check_dims("gauge.dims", gauge.dims, _OF_GAUGES)
        flag("coordinate", self.coordinate)

    @property
    def attrs(self) -> dict[str, str]:
        """What a result says of it."""
        return {"long_name": self.label, "units": self.units}


@dataclass(frozen=True)
class Reduce(Output):
    """What a summary keeps of many seeds, where a mean and a variance say too little.

    It is an output whose seeds are added up to a *state*. ``of`` and ``add`` are traced, and run on
    the device that has computed the seeds: of these, only the state leaves an accelerator. ``of``
    sees the seeds of one configuration and returns [seed, ...], of any shape.

    Attributes:
        init: The state before any seed: a pytree of arrays, the same for all configurations.
        add: The state with more seeds: of a state, and of what ``of`` returns. Traced.
        merge: The state of the seeds of both: of two states. NumPy.
        finish: The result: of a state, real numbers over the dimensions of ``over``. NumPy.
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
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.sweep(
        ...     fmab.cdp_mab, problem, horizon=10**4, seeds=20, keep="summary",
        ...     epsilon=[0.5, 1.0], outputs=[above],
        ... )
        >>> data.seeds_above.dims, float(data.seeds_above.sel(threshold=0.0, epsilon=1.0))
        (('epsilon', 'threshold'), 20.0)
    """

    init: Callable[[], Any] = field(kw_only=True)
    add: Callable[[Any, Any], Any] = field(kw_only=True)
    merge: Callable[[Any, Any], Any] = field(kw_only=True)
    finish: Callable[[Any], Any] = field(kw_only=True)
    over: tuple[tuple[str, tuple[float, ...]], ...] = ()

    def __post_init__(self) -> None:
        """Checks what is stated."""
        super().__post_init__()
        for name in ("init", "add", "merge", "finish"):
            if not callable(value := getattr(self, name)):
                refuse(name, value, "a function", "see help(fmab_jax.Reduce)")
        if self.dims or self.gauges or self.coordinate:
            remedy = "a reduction has dimensions `over`"
            refuse("dims", self.dims, "left out, as are gauges", remedy)
        for each in self.over if isinstance(self.over, tuple) else [None]:
            named = isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str)
            if not named or not each[0].isidentifier() or not isinstance(each[1], tuple):
                remedy = 'such as (("threshold", (10.0, 100.0)),)'
                refuse("over", self.over, "pairs of a name and a tuple of numbers", remedy)
            for x in each[1]:
                real(f"over[{each[0]!r}]", x, -math.inf, math.inf, "give numbers")

    @property
    def leaves(self) -> list[np.ndarray]:
        """The arrays of the state before any seed."""
        return [np.asarray(x) for x in jax.tree.leaves(self.init())]

    def state(self, leaves: Sequence[Any]) -> Any:
        """Returns the state that has these arrays."""
        return jax.tree.unflatten(jax.tree.structure(self.init()), leaves)


def _check_dims(field: str, dims: Any, order: tuple[str, ...]) -> None:
    if not isinstance(dims, tuple) or dims != tuple(dim for dim in order if dim in dims):
        refuse(field, dims, f"some of {order}, in this order", "write a tuple of them")
