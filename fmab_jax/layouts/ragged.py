"""All arms in play of a batch in one list, which processors want: what has left costs nothing.

The list is worked through in chunks that a core's cache holds. Arms of a trial lie together, in
their order. An array that a loop both reads and writes would be copied as a whole, so that each
loop reads one list and writes another.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int

from fmab_jax.core.curves import Curves, Line, draw_line, no_line
from fmab_jax.core.rare import Table
from fmab_jax.core.shapes import Function
from fmab_jax.draws import Draws

Arms = dict[str, Any]

# Numbers of a chunk's sums, which fit into a cache with all that is made of them.
_CHUNK = 4096
# Epochs after which curves are brought up to date.
_EPOCHS = 8


class Ragged:
    """One list of arms, as they are "played" in an epoch and "heard" after it.

    Attributes:
        trials: Of the batch.
        arms: K.
    """

    MOST = 2**31 - 1 - _CHUNK
    each = staticmethod(jax.vmap)

    def __init__(self, trials: int, arms: int) -> None:
        self.trials, self.arms, self.all = trials, arms, trials * arms

    def start(self, fixed: Arms, draws: Draws) -> Arms:
        """Returns the list of all arms; arguments as in `Dense.start`."""
        self.chunk = min(self.all, max(1, _CHUNK // draws.lanes))
        room = -(-self.all // self.chunk) * self.chunk
        lane = jnp.minimum(jnp.arange(room, dtype=jnp.int32), self.all - 1)
        listed = {
            "lane": lane,
            **{name: jnp.zeros((room, *more)) for name, more in draws.sums.items()},
        }
        return {
            "size": jnp.int32(self.all),
            "whole": jnp.bool_(True),
            "fixed": jax.tree.map(lambda x: x.reshape(self.all, *x.shape[2:]), fixed),
            "first": jnp.arange(self.trials if draws.ranked else 0, dtype=jnp.int32) * self.arms,
            "played": listed,
            "heard": listed,
            "mean": jnp.zeros(room),
            "alive": jnp.ones(room, bool),
        }

    def sweep(self, body: Function, arms: Arms, values: Any, **kinds: str) -> tuple[Arms, Arms]:
        """Applies a body to all arms, and reduces what it finds over the arms of each trial."""
        start = jnp.int32(0)
        body = jax.jit(functools.partial(body), inline=True)  # traced once
        # A body that finds means is given sums before them; one that judges, those after.
        tables, new, seen = jax.eval_shape(
            lambda: self._applied(body, arms, values, "played", start)[3]
        )
        hears = "mean" in new
        source = "played" if hears else "heard"
        written = {name: arms["heard"].get(name, arms.get(name)) for name in new}
        if hears:
            written["lane"] = arms["heard"]["lane"]
        tables = {name: arms["fixed"][name] for name in tables}
        found = {
            name: jax.tree.map(functools.partial(self._blank, kind), seen[name])
            for name, kind in kinds.items()
        }

        def some(state: tuple[Any, ...]) -> tuple[Any, ...]:
            done, tables, written, found = state
            now = {**arms, "fixed": {**arms["fixed"], **tables}}
            real, lane, owner, seen = self._applied(body, now, values, source, done)
            tables, new, seen = seen
            new = {"lane": lane, **{name: x[:, 0] for name, x in new.items()}}
            written = {name: _put(x, new[name], done) for name, x in written.items()}
            arm = lane - owner * self.arms
            for name, kind in kinds.items():
                more = jax.tree.map(lambda x: x[:, 0], seen[name])
                reduce = functools.partial(_REDUCTIONS[kind], real, owner, arm)
                found[name] = jax.tree.map(reduce, more, found[name])
            return done + self.chunk, tables, written, found

        state = (start, tables, written, found)
        _, tables, written, found = lax.while_loop(lambda x: x[0] < arms["size"], some, state)
        sums = {name: x for name, x in written.items() if name in arms["heard"]}
        marks = {name: x for name, x in written.items() if name not in arms["heard"]}
        heard = {**arms["heard"], **sums}
        fixed = {**arms["fixed"], **tables}
        return {**arms, "fixed": fixed, "heard": heard, **marks}, {
            name: x.arm if kinds[name] == "first_max" else x for name, x in found.items()
        }

    def _applied(
        self, body: Function, arms: Arms, values: Any, source: str, done: Array
    ) -> tuple[Any, ...]:
        """Returns which places of a chunk are arms, their lanes and trials, and what is found."""
        place = done + jnp.arange(self.chunk, dtype=jnp.int32)
        real = place < arms["size"]
        fields = {name: _cut(x, done, self.chunk) for name, x in arms[source].items()}
        lane = fields.pop("lane")
        # Past the last arm the chunk repeats its first.
        lane = jnp.where(real, lane, lane[0])
        owner = lane // self.arms
        fields["mean"] = _cut(arms["mean"], done, self.chunk)
        fields["arm"] = (lane - owner * self.arms).astype(jnp.uint32)
        fields["alive"] = jnp.ones(self.chunk, bool)
        if arms["first"].size:
            fields["rank"] = place - _at(arms["first"], owner)
        fields |= jax.tree.map(lambda x: _of(x, lane), arms["fixed"], is_leaf=_is_table)
        # A body is given one arm at a time.
        fields = jax.tree.map(lambda x: _one(x), fields, is_leaf=_is_table)
        here = jax.tree.map(lambda x: _of(x, owner), values, is_leaf=_is_table)
        axes = jax.tree.map(
            lambda x: _TABLE_AXES if _is_table(x) else 0, (fields, here), is_leaf=_is_table
        )

        def apart(fields: Arms, here: Any) -> tuple[Any, ...]:
            new, seen = body(fields, here)
            tables = {name: x.values for name, x in new.items() if _is_table(x)}
            return tables, {name: x for name, x in new.items() if name not in tables}, seen

        tables, new, seen = jax.vmap(apart, axes, out_axes=(None, 0, 0))(fields, here)
        tables = {name: Table(x, arms["fixed"][name].row) for name, x in tables.items()}
        return real, lane, owner, (tables, new, seen)

    def _blank(self, kind: str, seen: Any) -> Any:
        shape = (self.trials, *seen.shape[2:])
        if kind == "by_arm":
            return jnp.zeros((self.trials, self.arms), bool)
        if kind == "sum":
            return jnp.zeros(shape, seen.dtype)
        lowest = jnp.full(shape, -jnp.inf)
        return lowest if kind == "max" else _Foremost(lowest, jnp.full(shape, self.arms, jnp.int32))

    def keep(self, arms: Arms, trials: Bool[Array, " trial"]) -> Arms:
        """Lists the arms that are played next: those still alive, of some trials."""
        heard, size = arms["heard"], arms["size"]
        # At first, if every trial plays, the list is as it has to be.
        whole = arms["whole"] & jnp.all(trials)

        def some(state: tuple[Any, ...]) -> tuple[Any, ...]:
            done, kept, played, first = state
            lane = _cut(heard["lane"], done, self.chunk)
            owner = lane // self.arms
            real = done + jnp.arange(self.chunk, dtype=jnp.int32) < size
            stays = real & _cut(arms["alive"], done, self.chunk) & _at(trials, owner)
            ranks = jnp.cumsum(stays, dtype=jnp.int32)
            source = jnp.zeros(self.chunk, jnp.int32)
            every = jnp.arange(self.chunk, dtype=jnp.int32)
            source = source.at[jnp.where(stays, ranks - 1, self.chunk)].set(every, mode="drop")
            played = {
                name: _put(played[name], _at(_cut(x, done, self.chunk), source), kept)
                for name, x in heard.items()
            }
            if first.size:
                place = jnp.where(stays, kept + ranks - 1, self.all)
                first = first.at[owner].min(place, mode="promise_in_bounds")
            return done + self.chunk, kept + ranks[-1], played, first

        zero = jnp.int32(0)
        start = (zero, zero, arms["played"], jnp.full_like(arms["first"], self.all))
        last = jnp.where(whole, 0, size)
        _, kept, played, first = lax.while_loop(lambda x: x[0] < last, some, start)
        return {
            **arms,
            "size": jnp.where(whole, size, kept),
            "whole": arms["whole"] & False,
            "first": jnp.where(whole, arms["first"], first),
            "played": played,
        }

    def loop(
        self, epoch: Function, active: Function, state: Any, arms: Arms, curves: Curves, grid: Array
    ) -> tuple[Any, Curves]:
        """Repeats an epoch until every run is over; arguments as in `Dense.loop`."""

        def unfinished(state: Any) -> Array:
            return jnp.any(active(state) > 0)

        def one(given: tuple[Any, ...]) -> tuple[Any, ...]:
            turn, state, arms, noted = given
            state, arms, lines = epoch(state, arms)
            return (
                turn + 1,
                state,
                arms,
                jax.tree.map(lambda x, new: x.at[turn].set(new), noted, lines),
            )

        def several(given: tuple[Any, ...]) -> tuple[Any, ...]:
            state, arms, curves = given
            # A wait is a second line of an epoch.
            count = 1 if curves.waiting is None else 2
            noted = (no_line(_EPOCHS, self.trials),) * count
            start = (jnp.int32(0), state, arms, noted)
            _, state, arms, noted = lax.while_loop(
                lambda x: (x[0] < _EPOCHS) & unfinished(x[1]), one, start
            )
            return state, arms, jax.vmap(_drawn, (0, 0, 1))(curves, grid, noted)

        state, _, curves = lax.while_loop(
            lambda x: unfinished(x[0]), several, (state, arms, curves)
        )
        return state, curves


def _drawn(curves: Curves, grid: Array, noted: tuple[Line, ...]) -> Curves:
    """Continues the curves of one run along the lines of some epochs, in their order."""
    for turn in range(_EPOCHS):
        for line in noted:
            curves = draw_line(curves, grid, jax.tree.map(lambda x: x[turn], line))  # noqa: B023
    return curves


def _is_table(value: Any) -> bool:
    return isinstance(value, Table)


def _of(values: Any, place: Int[Array, " lane"]) -> Any:
    """Returns what belongs to each place of [place, ...]; a table is left where it lies."""
    if not _is_table(values):
        return _at(values, place)
    rows = values.values
    if rows.ndim == 2:
        return Table(rows, place)
    trials, count, width = rows.shape
    return Table(rows.reshape(trials * count, width), place * count + values.row[place])


def _one(values: Any) -> Any:
    return Table(values.values, values.row[:, None]) if _is_table(values) else values[:, None]


def _at(values: Array, place: Int[Array, " lane"]) -> Array:
    return values.at[place].get(mode="promise_in_bounds")


def _cut(values: Array, first: Array, count: int) -> Array:
    return lax.dynamic_slice_in_dim(values, first, count)


def _put(values: Array, new: Array, first: Array) -> Array:
    return lax.dynamic_update_slice_in_dim(values, new, first, 0)


class _Foremost(NamedTuple):
    """The largest value so far, of each trial, and the lowest arm that has it."""

    value: Array
    arm: Array


def _add(real: Array, owner: Array, arm: Array, x: Array, total: Array) -> Array:
    return total.at[owner].add(jnp.where(real, x, jnp.zeros_like(x)), mode="promise_in_bounds")


def _mark(real: Array, owner: Array, arm: Array, x: Array, found: Array) -> Array:
    return found.at[owner, arm].max(real & x, mode="promise_in_bounds")


def _raise(real: Array, owner: Array, arm: Array, x: Array, top: Array) -> Array:
    return top.at[owner].max(jnp.where(real, x, -jnp.inf), mode="promise_in_bounds")


def _lead(real: Array, owner: Array, arm: Array, x: Array, found: _Foremost) -> _Foremost:
    if x.ndim > 1:
        return _lead_of_rows(real, owner, arm, x, found)
    none = jnp.iinfo(jnp.int32).max
    value = _raise(real, owner, arm, x, found.value)
    first = jnp.where(value > found.value, none, found.arm)
    leads = real & (x == _at(value, owner))
    first = first.at[owner].min(jnp.where(leads, arm, none), mode="promise_in_bounds")
    return _Foremost(value, first)


def _lead_of_rows(real: Array, owner: Array, arm: Array, x: Array, found: _Foremost) -> _Foremost:
    # A few short loops take less time than scattering long rows three times.
    def one(place: Array, found: _Foremost) -> _Foremost:
        trial = owner[place]
        value, first = found.value[trial], found.arm[trial]
        leads = real[place] & (x[place] > value)
        value, first = jnp.where(leads, x[place], value), jnp.where(leads, arm[place], first)
        return _Foremost(found.value.at[trial].set(value), found.arm.at[trial].set(first))

    return lax.fori_loop(0, len(owner), one, found)


_TABLE_AXES: Any = Table(cast(Any, None), cast(Any, 0))  # rows differ, values do not
_REDUCTIONS: dict[str, Function] = {"sum": _add, "max": _raise, "first_max": _lead, "by_arm": _mark}
