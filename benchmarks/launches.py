"""Compiles programs for an NVIDIA H200 on a machine without one, and counts what would be launched.

    pip install --no-deps jax-cuda13-plugin==$V jax-cuda13-pjrt==$V     # of JAX's own version $V
    JAX_PLATFORMS=cpu python -m benchmarks gpu --compile-only

A pass of a loop whose condition depends on data is a trip to the host and back, 10 to 20
microseconds; a kernel takes at least two.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import jax
from jax._src import xla_bridge
from jax.experimental import topologies

import fmab_jax as fmab
from fmab_jax.run import compilation, configs

PROBLEM = fmab.Problem.uniform(agents=50, arms=100)
CASES = {
    "agents alike": (fmab.cdp_mab(1.0), 65_536),
    "waiting on a ring": (fmab.ddp_mab(1.0, "ring"), 8192),
}
# What XLA wrote on such a device.
_CONFIG = Path(__file__).with_name("h200.txt")
# Operations that launch nothing.
_NONE = {
    *("get-tuple-element", "parameter", "tuple", "bitcast", "constant", "after-all"),
    *("while", "conditional", "call", "partition-id"),
}
_BYTES = {"pred": 1, "8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


def device() -> jax.Device:
    """Returns a device that programs are compiled for, but that runs none.

    Exits where JAX's plug-in for CUDA is not installed.
    """
    with suppress(Exception):  # registered already
        xla_bridge.discover_pjrt_plugins()
    config = _CONFIG.read_text("utf-8")
    try:
        found = topologies.get_topology_desc(
            "1x1x1", "cuda", topology="1x1x1", target_config=config
        )
    except Exception as error:
        sys.exit(f"no compiler for CUDA ({error}): install jax-cuda13-plugin and jax-cuda13-pjrt")
    return found.devices[0]


def counts(text: str) -> Iterator[tuple[int, str, int, int]]:
    """Yields (depth, role, launches a pass, bytes a pass) of each part of a compiled program."""
    parts: dict[str, list[tuple[str, str, str, str]]] = {}
    entry, own = "", []
    for line in text.splitlines():
        if head := re.match(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{", line):
            own = parts[head[2]] = []
            entry = head[2] if head[1] else entry
        elif found := re.match(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*?) ([\w\-]+)\((.*)$", line):
            own.append(found.groups())

    def walk(name: str, depth: int, role: str) -> Iterator[tuple[int, str, int, int]]:
        shapes = {name: shape for name, shape, _, _ in parts[name]}
        launched = [row for row in parts[name] if row[2] not in _NONE]
        moved = 0
        for _, shape, _, rest in launched:
            inputs = re.findall(r"%([\w.\-]+)", rest.split("), ")[0])
            moved += _size(shape) + sum(_size(shapes.get(each, "")) for each in inputs)
        yield depth, role, len(launched), moved
        for _, _, kind, rest in parts[name]:
            for child in _children(kind, rest):
                yield from walk(child, depth + 1, "loop" if kind == "while" else kind)

    return walk(entry, 0, "program")


def _children(kind: str, rest: str) -> list[str]:
    """Returns the names of what a loop repeats, or of the branches of a condition."""
    if kind == "while":
        return re.findall(r"body=%?([\w.\-]+)", rest)
    if kind == "call":
        return re.findall(r"to_apply=%?([\w.\-]+)", rest)
    if kind != "conditional":
        return []
    listed = re.search(r"branch_computations=\{([^}]*)\}", rest)
    if listed:
        return [each.strip().lstrip("%") for each in listed[1].split(",")]
    return re.findall(r"(?:true|false)_computation=%?([\w.\-]+)", rest)


def _size(shape: str) -> int:
    """Returns the bytes of an array, or of several."""
    arrays = re.findall(r"\b(pred|[a-z]+(\d+))\[([\d,]*)\]", shape)
    return sum(
        _BYTES.get(bits or kind, 4) * math.prod(int(x) for x in sizes.split(",") if x)
        for kind, bits, sizes in arrays
    )


def main() -> None:
    """Prints the counts of each case."""
    for name, (algorithm, seeds) in CASES.items():
        config = configs.bind(algorithm, PROBLEM, 10**6, times=100)
        start = time.perf_counter()
        compiled = compilation.compile_program(config.program, seeds, (device(),))
        seconds = time.perf_counter() - start
        memory = compiled.memory_analysis()
        print(
            f"{name}, {seconds:.1f} s to compile; a trial of {seeds:,}:"
            f" {memory.argument_size_in_bytes / seeds:.1f} bytes in,"
            f" {memory.output_size_in_bytes / seeds:,.0f} out,"
            f" {memory.temp_size_in_bytes / seeds:,.0f} at work"
        )
        for depth, role, launches, moved in counts(compiled.as_text()):
            each = moved / seeds / PROBLEM.arms
            print(f"  {'  ' * depth}{role}: {launches} launches, {each:,.0f} bytes an arm")
