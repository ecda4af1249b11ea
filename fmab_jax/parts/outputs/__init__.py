"""Outputs: one file for each variable of results that is computed on request, by its name.

``standard`` has those of every result.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from fmab_jax.errors import refuse
from fmab_jax.parts.outputs.accumulators import Accumulator as Accumulator
from fmab_jax.parts.outputs.accumulators import Stretch as Stretch
from fmab_jax.parts.outputs.output import FIELDS as FIELDS
from fmab_jax.parts.outputs.output import OF_FIXED_ARMS as OF_FIXED_ARMS
from fmab_jax.parts.outputs.output import OF_RESULTS as OF_RESULTS
from fmab_jax.parts.outputs.output import Output as Output
from fmab_jax.parts.outputs.output import Record as Record
from fmab_jax.parts.outputs.output import Reduce as Reduce
from fmab_jax.parts.outputs.regret_by_agent import AGENTS_DIFFER as AGENTS_DIFFER
from fmab_jax.parts.outputs.regret_by_agent import TALLIED as TALLIED
from fmab_jax.parts.outputs.standard import STANDARD as STANDARD
from fmab_jax.parts.registry import Registry


class _Outputs(Registry[Any]):
    """The outputs that users can request. They are values, and no classes."""

    def by_name(self) -> dict[str, Any]:
        """Returns all outputs by name, those of plug-ins included."""
        return super().by_name()

    def list_parts(self, module: ModuleType) -> list[Any]:
        """Returns the outputs of a module, without the standard ones and those that it imports."""
        outputs = dict.fromkeys(x for x in vars(module).values() if isinstance(x, Output))
        is_ours = module.__name__.startswith(__name__)
        others = STANDARD if is_ours else (*STANDARD, *self.shipped.values())
        return [output for output in outputs if output not in others]

    def check_part(self, owner: Any, origin: str) -> None:
        """Refuses an output of a plug-in with the name of one of this package."""
        taken = {output.name: output for output in STANDARD} | self.shipped
        if taken.get(owner.name, owner) is not owner:
            refuse("plugin", owner.name, "the name of no other output", "rename it")


OUTPUTS = _Outputs(__name__, Output, "output")
