"""What an output is, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from fmab_jax.algorithms.base import Tally

DIMENSIONS = ("time", "meter", "agent", "arm")
"""What a value of a seed may be over, in this order."""


class Record(Protocol):
    """What trials of one configuration have recorded.

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

    def __getitem__(self, name: str) -> np.ndarray:
        """Returns a field of an `Outcome`, or a tally, [seed, ...]; by agent, [seed, agent, ...]."""


class Output(NamedTuple):
    """One variable of a result.

    Attributes:
        name: In results.
        label: For people.
        units: Of its values.
        of: Makes it of what is recorded: [seed, *dims].
        dims: What a seed's value is over, of `DIMENSIONS` and in their order.
        dtype: Of its values; float64 for whatever is not one of the usual outputs.
        tallies: What the loops have to add up for it.
        coordinate: Whether it belongs to the seeds rather than to the results.
        source: Theorem, equation or paper that defines it; "" for what needs none.

    Example:
        How many of its arms an agent has pulled at all, as an output of one's own:

        >>> import fmab_jax as fmab
        >>> from fmab_jax.run.outputs.pulls import PULLS
        >>> tried = fmab.Output(
        ...     "arms_tried", "arms that were pulled", "arms",
        ...     lambda record: (record["pulls"] > 0).sum(-1), tallies=PULLS.tallies,
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
    tallies: tuple[Tally, ...] = ()
    coordinate: bool = False
    source: str = ""

    @property
    def attrs(self) -> dict[str, str]:
        """What a result says of it."""
        return {"long_name": self.label, "units": self.units}


class Recorded:
    """A `Record` of arrays.

    Args:
        arrays: Fields and tallies, [seed, ...], by name.
        facts: Values of the other attributes of a `Record`.
        tallies: That were added up.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        facts: dict[str, Any],
        tallies: Sequence[Tally] = (),
    ) -> None:
        vars(self).update(facts)
        self._arrays = arrays
        self._by_agent = {each.name for each in tallies if each.by_agent}

    def __getitem__(self, name: str) -> np.ndarray:
        values = self._arrays[name]
        if name not in self._by_agent:
            return values
        agents: int = vars(self)["agents"]
        if values.shape[1] == 1:
            # All of them do the same all along.
            return np.repeat(values, agents, axis=1)
        return values[:, :agents]
