"""Lists what can be named: algorithms, laws, worlds, noises, outputs; with --plugin, yours too.

Examples:
  fmab list
  fmab list mechanisms
  fmab list algorithms --plugin my_ucb.py
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from fmab_jax.cli.options import Call, Command, NoOptions, choose
from fmab_jax.cli.printing import print_rows


def command(words: list[str]) -> Command:
    """Builds the command of some words."""
    kinds = _list_kinds()
    count = int(bool(words) and not words[0].startswith("-"))
    for word in words[:count]:
        choose(word, kinds, "fmab list", noun="kind")
    name = " ".join(["fmab list", *words[:count]])
    return Command(name, NoOptions, f"{__doc__}\nKinds: {', '.join(kinds)}.", words[count:])


def execute(call: Call) -> None:
    """Prints the table of a kind, or all tables."""
    kinds = _list_kinds()
    name = call.command.name.split()[-1]
    if name in kinds:
        kinds[name]()
        return
    for name, print_kind in kinds.items():
        print(f"{name.capitalize()}:")
        print_kind()


def _list_kinds() -> dict[str, Callable[[], None]]:
    """Returns a function for each kind, which prints its table."""
    from fmab_jax.algorithms.base import ALGORITHMS
    from fmab_jax.parts.mechanisms import MECHANISMS
    from fmab_jax.parts.named_graphs import ALLOWED
    from fmab_jax.parts.registry import REGISTRIES, Registry, usage

    def print_parts(registry: Registry) -> None:
        parts = sorted(registry.by_name().items())
        rows = [(usage(part), (inspect.getdoc(part) or "").partition("\n")[0]) for _, part in parts]
        print_rows(("name", "what it is"), rows)

    printers: dict[str, Callable[[], None]] = {ALGORITHMS.kind: _print_algorithms}
    # Algorithms import mechanisms only where they need one.
    for registry in (*REGISTRIES, MECHANISMS):
        printers.setdefault(registry.kind, functools.partial(print_parts, registry))
    return printers | {"graphs": lambda: print(ALLOWED), "outputs": _print_outputs}


def _print_algorithms() -> None:
    from fmab_jax.algorithms.base import list_algorithms

    keys = ("name", "source", "communication", "trusted")
    rows = [[*(x[key] for key in keys), ", ".join(x["parameters"])] for x in list_algorithms()]
    print_rows(("name", "source", "who is heard", "who is trusted", "parameters"), rows)


def _print_outputs() -> None:
    from fmab_jax.parts.outputs import AGENTS_DIFFER, OUTPUTS, STANDARD, Reduce

    rows = []
    optional_rows = [
        (output, "where agents differ; " * (output in AGENTS_DIFFER) + f"--outputs {name}")
        for name, output in OUTPUTS.by_name().items()
    ]
    for output, when in [*((output, "always") for output in STANDARD), *optional_rows]:
        over = ", ".join(("seed", *output.dims))
        if isinstance(output, Reduce):
            over = ", ".join(name for name, _ in output.over)
            when += " --keep summary"
        rows.append((output.name, output.label, over, output.units, when))
    print_rows(("name", "what it is", "over", "unit", "comes out"), rows)
