"""Outputs, and what they are made of: records of trials, and gauges that loops add up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fmab_jax.core.shapes import Grid, Integer, PerRow, Table
from fmab_jax.errors import flag, refuse


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
    share: Table
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
            is at the horizon.
    """

    name: str
    dims: tuple[str, ...]
    start: Callable[[int, int, Array], Any]
    add: Callable[[Any, Stretch, Array], Any]
    end: Callable[[Any], Float[Array, ...]]

    @property
    def by_agent(self) -> bool:
        """Whether agents have a row each."""
        return "agent" in self.dims


def gauges_start(asked: tuple[Gauge, ...], rows: int, arms: int, grid: Grid) -> tuple[Any, ...]:
    """Returns what every gauge has at slot 0."""
    return tuple(each.start(rows, arms, grid) for each in asked)


def gauged(
    asked: tuple[Gauge, ...], found: tuple[Any, ...], stretch: Callable[[], Stretch], grid: Grid
) -> tuple[Any, ...]:
    """Returns what every gauge has after a stretch, which is looked at only if there is one."""
    if not asked:
        return found
    now = stretch()
    # A loop that goes on for others hands on stretches of no slot.
    real = now.stop > now.start

    def kept(new: Array, old: Array) -> Array:
        return jnp.where(real, new, old)

    return tuple(
        jax.tree.map(kept, each.add(had, now, grid), had)
        for each, had in zip(asked, found, strict=True)
    )


def gauges_end(asked: tuple[Gauge, ...], found: tuple[Any, ...]) -> dict[str, Array] | None:
    """Returns the gauges by name; None where nothing is asked for."""
    if not asked:
        return None
    return {each.name: each.end(had) for each, had in zip(asked, found, strict=True)}


DIMENSIONS = ("time", "meter", "agent", "arm")
"""Dimensions that a value of a seed may have, in this order."""
OF_RESULTS = {*DIMENSIONS, "seed", "time_2", "quantile", "bin", "made"}
"""Names of all dimensions of results, besides what is swept."""


FIELDS: dict[str, tuple[np.dtype[Any], bool]] = {
    **dict.fromkeys(("regret", "waiting_regret"), (np.dtype(np.float64), True)),
    "rounds_by": (np.dtype(np.int32), True),
    "arms_reported": (np.dtype(np.int64), False),
    "final_gap": (np.dtype(np.float64), False),
    **{
        name: (np.dtype(np.int32), False)
        for name in ("rounds", "active_arms", "chosen_arm", "agents_lost", "agents_worse")
    },
}
"""Type of each field of an `Outcome` but the gauges, and whether it is over time."""


class Record:
    """The trials of one configuration, as they were recorded.

    ``record[name]`` is a field of an `Outcome`, or a gauge: [seed, ...]; one by agent is
    [seed, agent, ...].

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
        self,
        arrays: Callable[[str], np.ndarray],
        facts: Mapping[str, Any],
        gauges: Sequence[Gauge] = (),
    ) -> None:
        """Takes what returns an array by its name, the attributes, and the output's own gauges."""
        vars(self).update(facts)
        self._arrays = arrays
        self._gauges = {each.name: each for each in gauges}

    def __getitem__(self, name: str) -> np.ndarray:
        """Returns what was recorded under a name.

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
        of: Makes it of what is recorded: [seed, *dims].
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
        for field in ("label", "units", "source"):
            if not isinstance(value := getattr(self, field), str):
                refuse(field, value, "a text", "write it in quotes")
        if "since" in self.units:
            # Such numbers would be read back as dates.
            refuse("units", self.units, "a unit, without 'since'", "such as 'seconds'")
        if not callable(self.of):
            refuse("of", self.of, "a function of a Record", "such as lambda record: ...")
        _check_dims("dims", self.dims)
        if not isinstance(self.gauges, tuple) or not all(
            isinstance(each, Gauge) for each in self.gauges
        ):
            refuse("gauges", self.gauges, "a tuple of gauges", "such as PULLS.gauges")
        for gauge in self.gauges:
            if not isinstance(gauge.name, str) or not gauge.name.isidentifier():
                refuse("gauge.name", gauge.name, "a short plain name", "rename it")
            _check_dims("gauge.dims", gauge.dims)
        types = np.float64, np.int64, np.int32, np.bool_
        if not isinstance(self.dtype, (type, np.dtype)) or self.dtype not in types:
            refuse("dtype", self.dtype, "numpy.float64", "leave it out")
        flag("coordinate", self.coordinate)

    @property
    def attrs(self) -> dict[str, str]:
        """What a result says of it."""
        return {"long_name": self.label, "units": self.units}


def _check_dims(field: str, dims: Any) -> None:
    if not isinstance(dims, tuple) or not all(
        isinstance(each, str) and each in DIMENSIONS for each in dims
    ):
        refuse(field, dims, f"a tuple of some of {DIMENSIONS}", "such as ('time', 'agent')")
