"""Lists what comes out of a run: always, or with --outputs.

Examples:
  fmab outputs
  fmab outputs --plugin my_output.py
"""

from __future__ import annotations

from dataclasses import dataclass

from fmab_jax.cli.options import Call
from fmab_jax.cli.tables import print_rows


@dataclass(frozen=True, kw_only=True)
class Options:
    """Names, what they are, over what, and in which unit."""


def execute(call: Call) -> None:
    """Prints the table."""
    from fmab_jax.parts.outputs import Reduce
    from fmab_jax.run.outputs import optional_outputs
    from fmab_jax.run.outputs.standard import STANDARD

    rows = []
    optional_rows = [(output, f"--outputs {output.name}") for output in optional_outputs().values()]
    for output, when in [*((output, "always") for output in STANDARD), *optional_rows]:
        over = ", ".join(("seed", *output.dims))
        if isinstance(output, Reduce):
            over = ", ".join(name for name, _ in output.over)
            when += " --keep summary"
        rows.append((output.name, output.label, over, output.units, when))
    print_rows(("name", "what it is", "over", "unit", "comes out"), rows)
