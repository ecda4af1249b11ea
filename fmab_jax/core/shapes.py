"""Shapes of arrays that many functions take, by name; and dataclasses that are trees of arrays."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

import jax
from jaxtyping import Array, Bool, Float, Int

Scalar = Float[Array, ""]
Integer = Int[Array, ""]
Truth = Bool[Array, ""]
Grid = Int[Array, " time"]
PerArm = Float[Array, " arm"]
PerRow = Float[Array, " row"]
Table = Float[Array, "row arm"]

Owner = TypeVar("Owner", bound=type)


def registered(owner: Owner) -> Owner:
    """Registers a dataclass as a pytree.

    Fields of the type Any, or dict[str, Any], hold arrays; all others are static, a part of the
    tree's structure.
    """
    data = [x.name for x in dataclasses.fields(owner) if x.type in ("Any", "dict[str, Any]")]
    static = [x.name for x in dataclasses.fields(owner) if x.name not in data]
    jax.tree_util.register_dataclass(owner, data_fields=data, meta_fields=static)
    return owner
