"""Names of types of arrays and records, static fields of a pytree, and a check of shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, UInt32

Scalar = Float[Array, ""]
Integer = Int[Array, ""]
Truth = Bool[Array, ""]
Grid = Int[Array, " time"]
Curve = Float[Array, " time"]
TruthPerAgent = Bool[Array, " agent"]
TruthPerRow = Bool[Array, " row"]
Reals = Float[Array, "..."]
Lanes = Float[Array, "*lane"]
Bits = UInt32[Array, "..."]
Truths = Bool[Array, "..."]
PerArm = Float[Array, " arm"]
PerAgent = Float[Array, " agent"]
PerRow = Float[Array, " row"]
PerRowArm = Float[Array, "row arm"]
TruthPerRowArm = Bool[Array, "row arm"]
ArmPerRow = Int[Array, " row"]

Function = Callable[..., Any]

PyTree: TypeAlias = Any
"""Arrays in a structure that the plug-in chooses: a state, a memory, precomputed values."""
Record = dict[str, Any]
"""Named values that can be written as JSON."""

STATIC = {"static": True}
"""Metadata of a static field, which a compilation depends on; other fields hold arrays."""


def checked(function: str, value: ArrayLike, shape: tuple[int, ...], kinds: str) -> Array:
    """Returns the result of an algorithm's function as an array; checks it while it is traced.

    Args:
        function: Name of the function.
        value: Its result.
        shape: Required shape.
        kinds: NumPy's letters of the allowed types.

    Raises:
        TypeError: If it has another shape or type.
    """
    array = jnp.asarray(value)
    if array.shape != shape or array.dtype.kind not in kinds:
        kind = {"f": "a real number", "b": "true or false", "iu": "a whole number"}[kinds]
        result = f"{function} returns {array.dtype} of shape {array.shape}"
        raise TypeError(f"{result}, not {kind} of shape {shape}")
    return array
