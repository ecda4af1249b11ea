"""Outputs, and the records of trials that they are computed from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from fmab_jax.errors import flag, real, refuse
from fmab_jax.parts.outputs.accumulators import Accumulator
from fmab_jax.sampling.scope import package_settings
from fmab_jax.sampling.shapes import PyTree

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
