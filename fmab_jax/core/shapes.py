"""Names of array types, and the metadata of static fields of a pytree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxtyping import Array, Bool, Float, Int, UInt32

Scalar = Float[Array, ""]
Integer = Int[Array, ""]
Truth = Bool[Array, ""]
Grid = Int[Array, " time"]
Curve = Float[Array, " time"]
TruthPerAgent = Bool[Array, " agent"]
Reals = Float[Array, "..."]
Lanes = Float[Array, "*lane"]
Bits = UInt32[Array, "..."]
Truths = Bool[Array, "..."]
PerArm = Float[Array, " arm"]
PerRow = Float[Array, " row"]
PerRowArm = Float[Array, "row arm"]
TruthPerRowArm = Bool[Array, "row arm"]
ArmPerRow = Int[Array, " row"]

Function = Callable[..., Any]

STATIC = {"static": True}
"""Metadata of a static field, which a compilation depends on; other fields hold arrays."""
