"""Reductions: the states of seeds, their merging, and the promises that both keep.

A state is added up where the seeds were computed, and merged on the host, chunk by chunk. So the
result must not depend on the cut into chunks: `check_merging` compares both ways on a few seeds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Array

from fmab_jax.errors import PlainText, refuse
from fmab_jax.parts.outputs import Record, Reduce
from fmab_jax.run import promises
from fmab_jax.sampling.scope import package_settings
from fmab_jax.sampling.shapes import PyTree

Facts = Mapping[str, int | str | np.ndarray]
# Narrower numbers wrap or lose digits unseen: 256 seeds overflow a uint8.
_STATE_TYPES = ("bool", "int64", "uint64", "float64", "complex128")
# Rounding of a sum, relative to the largest number of its array, or to 1.
_ROUNDING = 1e-9
LEAST_SEEDS = 6
"""Seeds that `check_merging` needs to see something."""
# Of the seeds that there are, a check takes so many.
_MOST_SEEDS = 300
# Merging two parts cannot show what a third one would.
_PARTS = 3


def check_initial_state(output: Reduce) -> None:
    """Refuses a reduction whose initial state is no pytree of arrays of wide numbers.

    Raises:
        ValueError: If ``init`` fails, or returns something else.
    """
    with promises.refuse_errors(output), package_settings():
        state = output.init()
    field = f"{output.name}.init"
    arrays = [_read_array(field, x) for x in jax.tree.leaves(state)]
    for array in arrays:
        if array.dtype.name not in _STATE_TYPES:
            text = PlainText(f"an array of {array.dtype}")
            allowed = f"arrays of {', '.join(_STATE_TYPES)}"
            refuse(field, text, allowed, "narrower numbers wrap, or lose digits")
    if not arrays:
        refuse(field, state, "at least one array", "return the state before any seed")


def reduce_seeds(
    output: Reduce, fields: Mapping[str, Array | np.ndarray], facts: Facts
) -> list[np.ndarray]:
    """Folds seeds of one configuration into a reduction's initial state; returns its arrays.

    Args:
        output: The reduction.
        fields: Records of the seeds, by name, on the host or on a device.
        facts: Attributes of their `Record`.

    Raises:
        ValueError: If a function fails, or the state changes shape or type.
    """
    # The cached fold needs hashable facts, and links are an array.
    links = tuple(np.asarray(facts["links"]).tolist())
    scalar_facts = tuple(sorted((name, x) for name, x in facts.items() if name != "links"))
    with promises.refuse_errors(output), package_settings():
        initial_state = output.state(output.initial_arrays)
        final_state = _compile_fold(output, scalar_facts, links)(initial_state, dict(fields))
        return _read_state(output, "add", final_state)


@functools.lru_cache(maxsize=64)
def _compile_fold(
    output: Reduce, scalar_facts: tuple[tuple[str, object], ...], links: tuple[int, ...]
) -> Callable[..., object]:
    facts = {**dict(scalar_facts), "links": np.array(links, np.int64)}

    def fold(state: object, fields: Mapping[str, Array]) -> object:
        return output.add(state, output.of(Record(fields.__getitem__, facts)))

    return jax.jit(fold)


def merge_states(output: Reduce, states: Iterable[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Merges the arrays of some states in their order, at least one; changes none of them.

    Raises:
        ValueError: If ``merge`` fails, or the state changes shape or type.
    """

    def merge(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> list[np.ndarray]:
        with promises.refuse_errors(output), package_settings():
            merged = output.merge(_copy_state(output, first), _copy_state(output, second))
        return _read_state(output, "merge", merged)

    return [*functools.reduce(merge, states)]


def finish_reduction(output: Reduce, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the result of a reduction's final state, [*over] in float64.

    Raises:
        ValueError: If ``finish`` fails, or returns anything but real numbers of that shape.
    """
    shape = tuple(len(values) for _, values in output.over)
    with promises.refuse_errors(output), package_settings():
        value = output.finish(_copy_state(output, arrays))
    return read_numbers(f"{output.name}.finish", value, shape, f"an array {shape}")


def check_merging(output: Reduce, fields: Mapping[str, Array | np.ndarray], facts: Facts) -> None:
    """Refuses a reduction that merges seeds to another result than it adds them up to.

    Half of the seeds are those of the largest regret, since what is rare shows there. They are cut
    into three parts, which are merged in their order, and backwards: a maximum that ``merge`` drops
    is not always in the same part.

    Args:
        output: The reduction.
        fields: Records of `LEAST_SEEDS` seeds or more, by name.
        facts: Attributes of their `Record`.

    Raises:
        ValueError: If a function fails or breaks its promise.
    """

    def add(rows: np.ndarray) -> list[np.ndarray]:
        with package_settings():
            part = {name: x[rows] for name, x in fields.items()}
        return reduce_seeds(output, part, facts)

    final = np.asarray(fields["regret"][:, -1])
    size = min(len(final), _MOST_SEEDS) // _PARTS
    largest = np.argsort(-final, kind="stable")[: _PARTS * size // 2]
    others = np.setdiff1d(np.arange(len(final)), largest)
    chosen = np.concatenate([largest, others])[: _PARTS * size]
    # Every part has some of the largest.
    order = np.concatenate([chosen[part::_PARTS] for part in range(_PARTS)])
    for step in (1, -1):
        rows = order[::step]
        whole = add(rows)
        parts = [add(part) for part in np.split(rows, _PARTS)]
        _compare(output, merge_states(output, parts), whole, len(rows))


def _compare(
    output: Reduce, merged: Sequence[np.ndarray], whole: Sequence[np.ndarray], seeds: int
) -> None:
    # States of one meaning may differ, such as samples in another order: then results decide.
    results = finish_reduction(output, merged), finish_reduction(output, whole)
    pairs = zip(merged, whole, strict=True)
    if all(find_close(*pair).all() for pair in pairs) or find_close(*results).all():
        return
    place = np.unravel_index(np.argmax(~find_close(*results)), results[0].shape)
    value, expected = (float(result[place]) for result in results)
    allowed = f"{expected:.6g}, as add gives for the same {seeds} seeds at once"
    remedy = "merge must return the state of the seeds of both, however they are cut"
    refuse(f"{output.name}.merge", PlainText(f"{value:.6g}"), allowed, remedy)


def find_close(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Tells which entries are equal up to the rounding of sums."""
    if reference.dtype.kind in "biu":
        return np.asarray(values == reference)
    finite = np.abs(reference, where=np.isfinite(reference), out=np.zeros(reference.shape))
    spare = _ROUNDING * max(1.0, float(finite.max(initial=0.0)))
    return np.asarray(np.isclose(values, reference, rtol=_ROUNDING, atol=spare, equal_nan=True))


def _copy_state(output: Reduce, arrays: Sequence[np.ndarray]) -> PyTree:
    """Returns a state that a function may change in place: its arrays may be those of a store."""
    return output.state([np.array(x) for x in arrays])


def _read_state(output: Reduce, function: str, state: object) -> list[np.ndarray]:
    """Returns the arrays of a state; refuses those that are not like the initial ones."""
    field = f"{output.name}.{function}"
    with package_settings():
        initial = output.init()
    texts, arrays = [], []
    for tree in (initial, state):
        arrays = [_read_array(field, x) for x in jax.tree.leaves(tree)]
        types = ", ".join(f"{x.dtype.name} {x.shape}" for x in arrays)
        texts.append(f"{types} in {jax.tree.structure(tree)}")
    if texts[0] != texts[1]:
        refuse(field, PlainText(texts[1]), f"as init: {texts[0]}", "mend it")
    return arrays


def read_numbers(field: str, value: object, shape: tuple[int, ...], allowed: str) -> np.ndarray:
    """Returns real numbers of a shape as float64, and refuses everything else.

    Args:
        field: What returned the value.
        value: The value.
        shape: Its shape.
        allowed: Describes the shape.
    """
    array = _read_array(field, value)
    if array.dtype.kind not in "biuf":
        # An array of another type tells more by its type than by its entries.
        shown = PlainText(f"an array of {array.dtype}") if array.ndim else value
        refuse(field, shown, "real numbers; NaN where there is none", "return floats")
    if array.shape != shape:
        refuse(field, PlainText(f"an array {array.shape}"), allowed, "mend it")
    return array.astype(np.float64, copy=False)


def _read_array(field: str, value: object) -> np.ndarray:
    """Returns an array; refuses masked entries, which NumPy would unmask."""
    if np.ma.is_masked(value):
        refuse(field, PlainText("masked values"), "without a mask", "fill them, such as with NaN")
    try:
        return np.asarray(value)
    except Exception:  # rows of different lengths, or a user's array type
        refuse(field, value, "an array", "mend it")
