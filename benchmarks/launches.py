"""Compiles programs for an NVIDIA H200 on a machine without one, and counts what would be launched.

    pip install --no-deps jax-cuda13-plugin==$V jax-cuda13-pjrt==$V     # of JAX's own version $V
    JAX_PLATFORMS=cpu python -m benchmarks gpu --compile-only

Bytes are those of what a kernel reads and writes. An array from which it only gathers or slices, or
into which it only scatters or puts, counts with what it touches.

A pass of a loop whose condition depends on data is a trip to the host and back, 10 to 20
microseconds; a kernel takes at least two.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax._src import xla_bridge
from jax.experimental import topologies

import fmab_jax as fmab
from benchmarks import report
from experiments import runs
from fmab_jax.run import compilation

RESULTS = Path(__file__).with_name("launches.json")
PAGE = Path(__file__).parent.parent / "docs" / "gpu.md"
BEGIN = "<!-- written by python -m benchmarks gpu --compile-only -->"
# Cases of the page.
_NAMES = (
    *("agents alike", "KL-SE, T = 10^5", "agents differ", "20 of 50 agents report"),
    "waiting on a ring",
)
# What XLA wrote on such a device.
_CONFIG = Path(__file__).with_name("h200.txt")
# Operations that launch nothing.
_NONE = {
    *("get-tuple-element", "parameter", "tuple", "bitcast", "constant", "after-all"),
    *("while", "conditional", "call", "partition-id"),
}
# Operations that write into their first operand, and the place of what they write.
_IN_PLACE = {"scatter": 2, "dynamic-update-slice": 1}
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


class Operation(NamedTuple):
    """A line of a compiled program.

    Attributes:
        name: Its result.
        shape: Shapes of the result.
        kind: What it does.
        rest: Operands, and attributes.
    """

    name: str
    shape: str
    kind: str
    rest: str

    @property
    def operands(self) -> list[str]:
        """Names of the operands."""
        return re.findall(r"%([\w.\-]+)", self.rest.split("), ")[0])


Parts = dict[str, list[Operation]]


def counts(text: str) -> list[tuple[int, int, int]]:
    """Returns (loops around it, launches, bytes) of each loop's turn; first, of what is in none."""
    parts: Parts = {}
    entry, own = "", []
    for line in text.splitlines():
        if head := re.match(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{", line):
            own = parts[head[2]] = []
            entry = head[2] if head[1] else entry
        elif found := re.match(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*?) ([\w\-]+)\((.*)$", line):
            own.append(Operation(*found.groups()))

    def walk(name: str, depth: int) -> list[tuple[int, int, int]]:
        sizes = {row.name: _size(row.shape) for row in parts[name]}
        launched = [row for row in parts[name] if row.kind not in _NONE]
        launches, moved, inner = len(launched), 0, []
        for row in launched:
            called = re.search(r"calls=%?([\w.\-]+)", row.rest)
            if called and called[1] in parts:
                moved += _count_touched(parts[called[1]])
            else:
                moved += sizes[row.name] + sum(sizes.get(x, 0) for x in row.operands)
        for row in parts[name]:
            deeper = depth + (row.kind == "while")
            children = [walk(child, deeper) for child in _children(row.kind, row.rest)]
            if row.kind != "while" and children:
                # One branch runs: at most the one that moves most.
                (_, more, bytes_), *loops = max(children, key=lambda child: child[0][2])
                launches, moved, children = launches + more, moved + bytes_, [loops]
            inner += [part for child in children for part in child]
        return [(depth, launches, moved), *inner]

    return walk(entry, 0)


def _count_touched(rows: list[Operation]) -> int:
    """Returns the bytes that a kernel reads and writes."""
    by_name = {row.name: row for row in rows}
    touched: dict[str, int] = {}  # of results that are written in place

    def count_read(name: str) -> int:
        size, read = _size(by_name[name].shape), 0
        for row in (row for row in rows if name in row.operands):
            into = row.operands[0] == name and name not in row.operands[1:]
            if row.kind == "bitcast":
                read += count_read(row.name)
            elif into and row.kind in ("gather", "dynamic-slice"):
                read += _size(row.shape)
            elif into and row.kind in _IN_PLACE:
                touched[row.name] = _size(by_name[row.operands[_IN_PLACE[row.kind]]].shape)
            else:
                return size
        return min(read, size)

    total = sum(count_read(row.name) for row in rows if row.kind == "parameter")
    results = rows[-1].operands if rows[-1].kind == "tuple" else [rows[-1].name]
    for name in results:
        row = by_name[name]
        while row.kind == "bitcast":
            row = by_name[row.operands[0]]
        total += touched.get(row.name, _size(by_name[name].shape))
    return total


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


def count_case(name: str) -> dict[str, Any]:
    """Returns what compiling a case tells of it."""
    from benchmarks import gpu

    config, seeds = gpu.bind(name, 1)
    start = time.process_time()
    compiled = compilation.compile_program(config.program, seeds, (device(),))
    seconds = time.process_time() - start
    memory = compiled.memory_analysis()
    return {
        "seeds": seeds,
        "compile_cpu_s": seconds,
        "memory_bytes": memory.temp_size_in_bytes,
        "transfer_bytes": memory.argument_size_in_bytes + memory.output_size_in_bytes,
        "parts": counts(compiled.as_text()),
    }


def page(results: dict[str, Any]) -> str:
    """Returns the part of docs/gpu.md that comes from counts."""
    head = ["compiled, not run", "seeds of a batch", "nested loops"]
    head += ["launches, one turn of each loop", "largest turn, MB", "outside loops, MB"]
    head += ["working memory, GB", "compiling, CPU s"]
    rows = []
    for name, row in results["cases"].items():
        (_, _, outside), *loops = row["parts"]
        launches, largest = sum(part[1] for part in loops), max(part[2] for part in loops)
        sizes = f"{row['seeds']:,}", str(max(part[0] for part in loops)), str(launches)
        moved = [f"{x / 1e6:,.0f}" for x in (largest, outside)]
        memory, seconds = row["memory_bytes"] / 1e9, row["compile_cpu_s"]
        rows.append([name, *sizes, *moved, f"{memory:.2f}", f"{seconds:.0f}"])
    lines = [
        f"Compiled on {results['date']} with jax {results['jax']} for an NVIDIA H200, on a machine"
        " without one. T = 10^6, 50 agents, 100 arms, where nothing else is said.",
        "",
        *report.write_table(head, rows),
        "",
        runs.write_runs({"": (results["version"], results["date"])}),
    ]
    return "\n".join(lines)


def main(only: Sequence[str] = ()) -> None:
    """Prints the counts of each case whose name holds one of some words; all make the page."""
    found = {}
    for name in [n for n in _NAMES if not only or any(word in n for word in only)]:
        row = found[name] = count_case(name)
        print(
            f"{name}, {row['compile_cpu_s']:.1f} CPU s to compile; a trial of {row['seeds']:,}:"
            f" {row['transfer_bytes'] / row['seeds']:,.0f} bytes in and out,"
            f" {row['memory_bytes'] / row['seeds']:,.0f} at work",
            flush=True,
        )
        for depth, launches, moved in row["parts"]:
            print(f"  {'  ' * depth}{launches} launches, {moved / 1e6:,.0f} MB")
    if only:
        return
    results = {
        "date": time.strftime("%Y-%m-%d"),
        "jax": jax.__version__,
        "version": fmab.__version__,
        "cases": found,
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    report.replace(PAGE, page(results), BEGIN)
