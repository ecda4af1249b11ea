"""Lists all algorithms, reward laws, worlds, presences and noises, those of plug-ins among them.

Where they are from, who is heard, who is trusted, and their parameters.

Examples:
  fmab algorithms
  fmab algorithms --plugin my_ucb.py
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from fmab_jax.cli.options import Call
from fmab_jax.cli.tables import print_rows


@dataclass(frozen=True, kw_only=True)
class Options:
    """What can be run, and who is heard and trusted."""


def execute(call: Call) -> None:
    """Prints the table."""
    from fmab_jax.algorithms.base import list_algorithms
    from fmab_jax.parts.laws import usages
    from fmab_jax.parts.mechanisms import MECHANISMS
    from fmab_jax.parts.presences import PRESENCES
    from fmab_jax.parts.worlds import WORLDS

    keys = ("name", "source", "communication", "trusted")
    rows = [[*(x[key] for key in keys), ", ".join(x["parameters"])] for x in list_algorithms()]
    print_rows(("name", "source", "who is heard", "who is trusted", "parameters"), rows)
    print(f"Reward laws, for --rewards: {usages()}")
    print(f"Worlds, for --world: {usages(WORLDS.find())}")
    print(f"Presences, for --presence: {usages(PRESENCES.find())}")
    print("Noises, for --mechanism:")
    for name, owner in sorted(MECHANISMS.find().items()):
        print(f"  {name:<18} {(inspect.getdoc(owner) or '').partition(chr(10))[0]}")
