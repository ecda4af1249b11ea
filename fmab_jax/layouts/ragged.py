"""The ragged layout: one list of all arms in play of a batch, for CPUs.

Eliminated arms cost nothing. The loops go through the list in chunks that fit into a core's cache.
The arms of a trial lie together, in order. XLA copies an array that a loop both reads and writes,
so each loop reads one list and writes another.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int

from fmab_jax.draws.base import Arms, Draws
from fmab_jax.sampling.curves import Curves, Line, draw_line, no_line
from fmab_jax.sampling.lookup import Table
from fmab_jax.sampling.shapes import Function, PyTree

# The sums of a chunk, and all that is computed from them, fit into a cache.
_CHUNK = 4096
# The curves are drawn after so many epochs.
_EPOCHS = 8
# Larger than every arm.
_NO_ARM = 2**31 - 1


class Ragged:
    """All arms in play of a batch in one list.

    An epoch reads the sums in "before" and writes those in "after"; then `keep` copies the arms
    that stay from "after" to "before".

    Attributes:
        trials: Number of trials in the batch.
        arms: K.
    """

    MOST = 2**31 - 1 - _CHUNK
    map_trials = staticmethod(jax.vmap)

    def __init__(self, trials: int, arms: int) -> None:
        self.trials, self.arms, self.all = trials, arms, trials * arms

    def start(self, fixed: Arms, draws: Draws, **marks: Array) -> Arms:
        """Returns the list of all arms; arguments as in `Dense.start`."""
        self.chunk = min(self.all, max(1, _CHUNK // draws.lanes))
        places = -(-self.all // self.chunk) * self.chunk
        lane = jnp.minimum(jnp.arange(places, dtype=jnp.int32), self.all - 1)
        columns = {
            "lane": lane,
            **{name: jnp.zeros((places, *tail)) for name, tail in draws.sums.items()},
        }
        ranked = self.trials if draws.shares_arms else 0
        return {
            "size": jnp.int32(self.all),
            "complete": jnp.bool_(True),
            "fixed": jax.tree.map(lambda x: x.reshape(self.all, *x.shape[2:]), fixed),
            "first": jnp.arange(ranked, dtype=jnp.int32) * self.arms,
            "before": columns,
            "after": columns,
            "marks": {
                "alive": jnp.ones(places, bool),
                **{name: jnp.broadcast_to(x, (places,)) for name, x in marks.items()},
            },
        }

    def sweep(self, body: Function, arms: Arms, values: PyTree, **kinds: str) -> tuple[Arms, Arms]:
        """Applies a body to all arms, and reduces its outputs over the arms of each trial."""
        return self._sweep("after", body, arms, values, kinds)

    def draw(self, body: Function, arms: Arms, values: PyTree, **kinds: str) -> tuple[Arms, Arms]:
        """Applies the body that draws an epoch: it reads sums before, and writes those after."""
        return self._sweep("before", body, arms, values, kinds)

    def _sweep(
        self, source: str, body: Function, arms: Arms, values: PyTree, kinds: dict[str, str]
    ) -> tuple[Arms, Arms]:
        start = jnp.int32(0)
        body = jax.jit(functools.partial(body), inline=True)  # traced once
        tables, new, outputs = jax.eval_shape(
            lambda: self._apply(body, arms, values, source, start)[3]
        )
        columns = {name: x for name, x in (arms["after"] | arms["marks"]).items() if name in new}
        if source == "before":
            columns["lane"] = arms["after"]["lane"]
        tables = {name: arms["fixed"][name] for name in tables}
        reduced = {
            name: jax.tree.map(functools.partial(self._make_initial_reduction, kind), outputs[name])
            for name, kind in kinds.items()
        }

        def sweep_chunk(state: tuple[PyTree, ...]) -> tuple[PyTree, ...]:
            done, tables, columns, reduced = state
            current = {**arms, "fixed": {**arms["fixed"], **tables}}
            real, lane, owner, outputs = self._apply(body, current, values, source, done)
            tables, new, outputs = outputs
            new = {"lane": lane, **{name: x[:, 0] for name, x in new.items()}}
            columns = {name: _put(x, new[name], done) for name, x in columns.items()}
            arm = lane - owner * self.arms
            for name, kind in kinds.items():
                values_of_chunk = jax.tree.map(lambda x: x[:, 0], outputs[name])
                reduce = functools.partial(_REDUCTIONS[kind], real, owner, arm)
                reduced[name] = jax.tree.map(reduce, values_of_chunk, reduced[name])
            return done + self.chunk, tables, columns, reduced

        state = (start, tables, columns, reduced)
        _, tables, columns, reduced = lax.while_loop(
            lambda x: x[0] < arms["size"], sweep_chunk, state
        )
        changed = {
            group: {name: columns.get(name, x) for name, x in arms[group].items()}
            for group in ("after", "marks")
        }
        return {**arms, "fixed": {**arms["fixed"], **tables}, **changed}, {
            name: x.arm if kinds[name] == "first_max" else x for name, x in reduced.items()
        }

    def _apply(
        self, body: Function, arms: Arms, values: PyTree, source: str, done: Array
    ) -> tuple[PyTree, ...]:
        """Returns which places of a chunk are arms, their lanes and trials, and the outputs."""
        place = done + jnp.arange(self.chunk, dtype=jnp.int32)
        real = place < arms["size"]
        fields = {name: _cut(x, done, self.chunk) for name, x in arms[source].items()}
        lane = fields.pop("lane")
        # Padding repeats the first arm of the chunk.
        lane = jnp.where(real, lane, lane[0])
        owner = lane // self.arms
        fields |= {name: _cut(x, done, self.chunk) for name, x in arms["marks"].items()}
        fields["arm"] = (lane - owner * self.arms).astype(jnp.uint32)
        fields["alive"] = jnp.ones(self.chunk, bool)
        if arms["first"].size:
            fields["rank"] = place - _at(arms["first"], owner)
        fields |= jax.tree.map(lambda x: _take(x, lane), arms["fixed"], is_leaf=_is_table)
        # A body sees one arm at a time.
        fields = jax.tree.map(lambda x: _add_axis(x), fields, is_leaf=_is_table)
        trial_values = jax.tree.map(lambda x: _take(x, owner), values, is_leaf=_is_table)
        axes = jax.tree.map(
            lambda x: _TABLE_AXES if _is_table(x) else 0, (fields, trial_values), is_leaf=_is_table
        )

        def apply_to_arm(fields: Arms, trial_values: PyTree) -> tuple[PyTree, ...]:
            new, outputs = body(fields, trial_values)
            tables = {name: x.values for name, x in new.items() if _is_table(x)}
            return tables, {name: x for name, x in new.items() if name not in tables}, outputs

        tables, new, outputs = jax.vmap(apply_to_arm, axes, out_axes=(None, 0, 0))(
            fields, trial_values
        )
        tables = {name: Table(x, arms["fixed"][name].row) for name, x in tables.items()}
        return real, lane, owner, (tables, new, outputs)

    def _make_initial_reduction(self, kind: str, outputs: jax.ShapeDtypeStruct) -> Array | _Leaders:
        """Returns the reduction of each trial before any arm.

        Args:
            kind: "sum" over arms, their "max", "first_max" for the lowest arm with the largest
                value, or "by_arm" for a truth value of each arm.
            outputs: Shape [lane, 1, ...] and type of the values.
        """
        if kind == "by_arm":
            return jnp.zeros((self.trials, self.arms), bool)
        shape = (self.trials, *outputs.shape[2:])
        if kind == "sum":
            return jnp.zeros(shape, outputs.dtype)
        lowest = jnp.full(shape, -jnp.inf)
        if kind == "first_max":
            # K stands for no arm.
            return _Leaders(lowest, jnp.full(shape, self.arms, jnp.int32))
        return lowest

    def keep(self, arms: Arms, trials: Bool[Array, " trial"]) -> Arms:
        """Lists the arms of the next epoch: those still alive, of some trials."""
        after, size = arms["after"], arms["size"]
        # Before the first epoch the list is complete already.
        complete = arms["complete"] & jnp.all(trials)

        def keep_chunk(state: tuple[PyTree, ...]) -> tuple[PyTree, ...]:
            done, count, before, first = state
            lane = _cut(after["lane"], done, self.chunk)
            owner = lane // self.arms
            real = done + jnp.arange(self.chunk, dtype=jnp.int32) < size
            stays = real & _cut(arms["marks"]["alive"], done, self.chunk) & _at(trials, owner)
            ranks = jnp.cumsum(stays, dtype=jnp.int32)
            source = jnp.zeros(self.chunk, jnp.int32)
            indices = jnp.arange(self.chunk, dtype=jnp.int32)
            source = source.at[jnp.where(stays, ranks - 1, self.chunk)].set(indices, mode="drop")
            before = {
                name: _put(before[name], _at(_cut(x, done, self.chunk), source), count)
                for name, x in after.items()
            }
            if first.size:
                place = jnp.where(stays, count + ranks - 1, self.all)
                first = first.at[owner].min(place, mode="promise_in_bounds")
            return done + self.chunk, count + ranks[-1], before, first

        zero = jnp.int32(0)
        start = (zero, zero, arms["before"], jnp.full_like(arms["first"], self.all))
        last = jnp.where(complete, 0, size)
        _, count, before, first = lax.while_loop(lambda x: x[0] < last, keep_chunk, start)
        return {
            **arms,
            "size": jnp.where(complete, size, count),
            "complete": arms["complete"] & False,
            "first": jnp.where(complete, arms["first"], first),
            "before": before,
        }

    def loop(
        self,
        epoch: Function,
        active: Function,
        state: PyTree,
        arms: Arms,
        curves: Curves,
        grid: Array,
    ) -> tuple[PyTree, Curves]:
        """Repeats an epoch until every run is over; arguments as in `Dense.loop`."""

        def is_unfinished(state: PyTree) -> Array:
            return jnp.any(active(state) > 0)

        def run_epoch(carry: tuple[PyTree, ...]) -> tuple[PyTree, ...]:
            turn, state, arms, history = carry
            state, arms, lines = epoch(state, arms)
            return (
                turn + 1,
                state,
                arms,
                jax.tree.map(lambda x, new: x.at[turn].set(new), history, lines),
            )

        def run_epochs(carry: tuple[PyTree, ...]) -> tuple[PyTree, ...]:
            state, arms, curves = carry
            # A wait is a second line of an epoch.
            count = 1 if curves.waiting is None else 2
            segments = () if curves.ends is None else curves.ends.shape[1:]
            blank = no_line(
                _EPOCHS, self.trials, segments=segments, counts=curves.messages is not None
            )
            history = (blank,) * count
            start = (jnp.int32(0), state, arms, history)
            _, state, arms, history = lax.while_loop(
                lambda x: (x[0] < _EPOCHS) & is_unfinished(x[1]), run_epoch, start
            )
            return state, arms, jax.vmap(_draw_history, (0, 0, 1))(curves, grid, history)

        state, _, curves = lax.while_loop(
            lambda x: is_unfinished(x[0]), run_epochs, (state, arms, curves)
        )
        return state, curves


def _draw_history(curves: Curves, grid: Array, history: tuple[Line, ...]) -> Curves:
    """Draws the lines of some epochs of one run, in order."""
    for turn in range(_EPOCHS):
        for line in history:
            curves = draw_line(curves, grid, jax.tree.map(lambda x: x[turn], line))  # noqa: B023
    return curves


def _is_table(value: object) -> bool:
    return isinstance(value, Table)


def _take(values: Array | Table, place: Int[Array, " lane"]) -> Array | Table:
    """Returns the values at each place; a table only gets new row numbers."""
    if not isinstance(values, Table):
        return _at(values, place)
    rows = values.values
    if rows.ndim == 2:
        return Table(rows, place)
    trials, count, width = rows.shape
    return Table(rows.reshape(trials * count, width), place * count + values.row[place])


def _add_axis(values: Array | Table) -> Array | Table:
    if isinstance(values, Table):
        return Table(values.values, values.row[:, None])
    return values[:, None]


def _at(values: Array, place: Int[Array, " lane"]) -> Array:
    return values.at[place].get(mode="promise_in_bounds")


def _cut(values: Array, first: Array, count: int) -> Array:
    return lax.dynamic_slice_in_dim(values, first, count)


def _put(values: Array, new: Array, first: Array) -> Array:
    return lax.dynamic_update_slice_in_dim(values, new, first, 0)


class _Leaders(NamedTuple):
    """The largest value so far of each trial, and the lowest arm with that value."""

    value: Array
    arm: Array


def _align(values: Array, x: Array) -> Array:
    """Returns values of lanes with as many axes as an array [lane, ...]."""
    return values.reshape(-1, *[1] * (x.ndim - 1))


def _add(real: Array, owner: Array, arm: Array, x: Array, total: Array) -> Array:
    return total.at[owner].add(
        jnp.where(_align(real, x), x, jnp.zeros_like(x)), mode="promise_in_bounds"
    )


def _mark(real: Array, owner: Array, arm: Array, x: Array, marks: Array) -> Array:
    return marks.at[owner, arm].max(real & x, mode="promise_in_bounds")


def _raise(real: Array, owner: Array, arm: Array, x: Array, top: Array) -> Array:
    return top.at[owner].max(jnp.where(_align(real, x), x, -jnp.inf), mode="promise_in_bounds")


def _lead(real: Array, owner: Array, arm: Array, x: Array, leaders: _Leaders) -> _Leaders:
    value = _raise(real, owner, arm, x, leaders.value)
    first = jnp.where(value > leaders.value, _NO_ARM, leaders.arm)
    leads = _align(real, x) & (x == _at(value, owner))
    first = first.at[owner].min(jnp.where(leads, _align(arm, x), _NO_ARM), mode="promise_in_bounds")
    return _Leaders(value, first)


_AXES: tuple[PyTree, ...] = None, 0  # rows differ, values do not
_TABLE_AXES = Table(*_AXES)
_REDUCTIONS: dict[str, Function] = {"sum": _add, "max": _raise, "first_max": _lead, "by_arm": _mark}
