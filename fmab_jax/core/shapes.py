"""Shapes of arrays that many functions take, by name; and which fields of a pytree hold none."""

from __future__ import annotations

from jaxtyping import Array, Bool, Float, Int

Scalar = Float[Array, ""]
Integer = Int[Array, ""]
Truth = Bool[Array, ""]
Grid = Int[Array, " time"]
PerArm = Float[Array, " arm"]
PerRow = Float[Array, " row"]
PerRowArm = Float[Array, "row arm"]

STATIC = {"static": True}
"""Metadata of a field that a program is compiled for; all other fields hold arrays."""
