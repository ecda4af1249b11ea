"""Names of types of arrays and records, and the metadata of static fields of a pytree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

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
