"""Shapes of arrays that many functions take, by name."""

from jaxtyping import Array, Bool, Float, Int

Scalar = Float[Array, ""]
Integer = Int[Array, ""]
Truth = Bool[Array, ""]
Grid = Int[Array, " time"]
PerArm = Float[Array, " arm"]
PerRow = Float[Array, " row"]
Table = Float[Array, "row arm"]
