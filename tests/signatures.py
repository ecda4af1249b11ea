"""Checks what functions of the package are given and what they return, array by array."""

import beartype

# Numbers and strings are left to `fmab_jax.errors`, whose refusals tests want to see, and to mypy.
_LEFT_OUT = beartype.FrozenDict(dict.fromkeys((bool, int, float, str), object))
_checked = beartype.beartype(conf=beartype.BeartypeConf(hint_overrides=_LEFT_OUT))


def check(function):
    """Returns a function that is checked at every call.

    A pytree is not checked where it is made: JAX fills its fields with axes, shapes and the like.
    """
    return function if function.__name__ == "__init__" else _checked(function)
