"""Lists all algorithms and reward laws, those of plug-ins among them.

Where they are from, who is heard, who is trusted, and their parameters.

Examples:
  fmab algorithms
  fmab algorithms --plugin my_ucb.py
"""

from __future__ import annotations

from dataclasses import dataclass

from fmab_jax.cli.options import Call
from fmab_jax.cli.tables import plain_table, show_table


@dataclass(frozen=True, kw_only=True)
class Options:
    """What can be run, and who is heard and trusted."""


def execute(call: Call) -> None:
    """Prints the table."""
    from fmab_jax.algorithms.base import list_algorithms
    from fmab_jax.core.laws import usages

    shown = plain_table()
    for heading in ("name", "source", "who is heard", "who is trusted", "parameters"):
        shown.add_column(heading, overflow="fold")
    for row in list_algorithms():
        texts = (row[name] for name in ("name", "source", "heard", "trusted"))
        shown.add_row(*texts, ", ".join(row["parameters"]))
    show_table(shown, whole=False)
    print(f"Reward laws, for --rewards: {usages()}")
