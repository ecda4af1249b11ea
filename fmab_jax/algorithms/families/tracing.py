"""The dependences of a filling's equations, found by tracing them."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from fmab_jax.algorithms.families.rounds import Epoch, Heard
from fmab_jax.errors import foreign

# Operations with which `worse` judges each arm by itself, as if it were alone.
_BY_ARM = frozenset(
    "abs add and broadcast_in_dim ceil clamp convert_element_type div eq exp expm1 floor ge gt "
    "integer_pow is_finite le log log1p lt max min mul ne neg not or pow rem round rsqrt select_n "
    "sign sqrt square stop_gradient sub tanh xor".split()
)

_OVER_PLACES = frozenset({"reduce_max", "reduce_min", "reduce_sum"})

_INNER = {
    "jit": ("jaxpr",),
    "pjit": ("jaxpr",),
    "custom_jvp_call": ("call_jaxpr",),
    "scan": ("jaxpr",),
    "while": ("cond_jaxpr", "body_jaxpr"),
}


@functools.lru_cache(maxsize=256)
def by_arm(filling: Any, values: tuple[str, ...]) -> bool:
    """Tells whether `Elimination.worse` judges each arm by itself.

    It is traced for one arm, three and seven: what it does must be the same, arm by arm.

    Args:
        filling: The elimination's class.
        values: Names of what it may find in ``epoch.own``.
    """
    programs = []
    for arms in (1, 3, 7):
        each: Any = jax.ShapeDtypeStruct((arms,), jnp.float64)
        scalar = jax.ShapeDtypeStruct((), jnp.float64)
        others: Any = [scalar] * len(Epoch._fields)
        epoch = Epoch(**dict(zip(Epoch._fields, others, strict=True)))
        epoch = epoch._replace(own=dict.fromkeys(values, others[0]))
        try:
            with jax.enable_x64(True):
                ready = jax.eval_shape(filling.prepared, epoch, scalar)
                heard = Heard._make([each, *others[:5], ready])
                program = jax.make_jaxpr(filling.worse)(heard, epoch)
        except BaseException as error:  # a plug-in's error; it is refused when the run begins
            if not foreign(error):
                raise
            return False
        if not _each_by_itself(program, arms):
            return False
        programs.append(re.sub(rf"(?<=[\[(, ]){arms}(?=,?[\])])", "arm", str(program)))
    return len(set(programs)) == 1


@functools.lru_cache(maxsize=256)
def lasting(filling: Any, values: tuple[str, ...]) -> bool:
    """Tells whether `Elimination.noise_scale` is the same in all epochs of a run.

    It is traced: what differs between epochs must not lead to what it returns.

    Args:
        filling: The elimination's class.
        values: Names of what it may find in ``epoch.own``.
    """
    scalar: Any = jax.ShapeDtypeStruct((), jnp.float64)
    fixed = {"arms", "agents", "reporting", "horizon", "own"}
    changing = {name: scalar for name in Epoch._fields if name not in fixed}
    constant = {name: scalar for name in Epoch._fields if name in fixed}
    constant["own"] = dict.fromkeys(values, scalar)
    try:
        with jax.enable_x64(True):
            program = jax.make_jaxpr(lambda new, old: filling.noise_scale(Epoch(**new, **old)))(
                changing, constant
            )
    except BaseException as error:  # a plug-in's error; it is refused when the run begins
        if not foreign(error):
            raise
        return False
    # Scalars of the dictionaries come in the order of their names, the changing ones first.
    moved = set(program.jaxpr.invars[: len(changing)])
    for equation in program.jaxpr.eqns:
        if any(not isinstance(x, Literal) and x in moved for x in equation.invars):
            moved.update(equation.outvars)
    return not any(not isinstance(x, Literal) and x in moved for x in program.jaxpr.outvars)


@functools.lru_cache(maxsize=256)
def prepared_elements(filling: Any, values: tuple[str, ...]) -> int:
    """Returns the elements of the largest array that `Elimination.prepared` makes on its way.

    Args:
        filling: The elimination's class.
        values: Names of what it may find in ``epoch.own``.
    """
    scalar: Any = jax.ShapeDtypeStruct((), jnp.float64)
    epoch = Epoch._make([scalar] * len(Epoch._fields))
    epoch = epoch._replace(own=dict.fromkeys(values, scalar))
    try:
        with jax.enable_x64(True):
            return _largest(jax.make_jaxpr(filling.prepared)(epoch, scalar).jaxpr)
    except BaseException as error:  # a plug-in's error; it is refused when the run begins
        if not foreign(error):
            raise
        return 0


def _largest(program: Jaxpr) -> int:
    sizes = [0]
    for equation in program.eqns:
        sizes += [math.prod(getattr(x.aval, "shape", ())) for x in equation.outvars]
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if isinstance(inner, ClosedJaxpr):
                    sizes.append(_largest(inner.jaxpr))
                elif isinstance(inner, Jaxpr):
                    sizes.append(_largest(inner))
    return max(sizes)


def _each_by_itself(closed: Any, arms: int) -> bool:
    # A constant array may treat arms differently, by their place.
    if any(jnp.ndim(constant) for constant in closed.consts):
        return False
    for equation in closed.jaxpr.eqns:
        name = equation.primitive.name
        if name in _INNER:
            if not all(_each_by_itself(equation.params[inner], arms) for inner in _INNER[name]):
                return False
        elif name in _OVER_PLACES:
            # These may work along any axis but the last, which is that of the arms.
            if any(x.aval.shape[-1:] != (arms,) for x in (*equation.invars, *equation.outvars)):
                return False
        elif name not in _BY_ARM:
            return False
    return True
