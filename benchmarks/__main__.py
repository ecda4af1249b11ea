"""Speed, side by side with what one would write instead.

    python -m benchmarks            # all cases; writes results.json and the tables of the documents
    python -m benchmarks --quick    # a few of them, in about two minutes; writes nothing
    python -m benchmarks kernels    # of the programs for processors: docs/performance.md
    python -m benchmarks standings  # is about regret: the standings of `experiments card`
    python -m benchmarks gpu        # on a GPU: docs/gpu.md
    python -m benchmarks tpu --compile-only  # for a TPU, on a machine without one

The contenders of a case take turns, each in processes of its own that stay alive; figures are
medians over the turns. Give it a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.cases import CORES, WHOLE, Case, Contender, cases

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "performance.md"
# Vector instructions by their word in /proc/cpuinfo, the widest first.
VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2"}
# Commands of modules of their own, which take the words that follow.
OTHERS = ("kernels", "standings", "gpu", "tpu")


class Running:
    """A contender at work."""

    def __init__(self, contender: Contender) -> None:
        self.contender = contender
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.worker", json.dumps(given)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env=environment,
            )
            for given in (
                contender.given | {"process": number} for number in range(contender.processes)
            )
        ]
        self.answers: list[list[dict[str, Any]]] = []

    def turn(self, number: int) -> None:
        """Lets it do its work once."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(f"go {number}\n")
            process.stdin.flush()
        lines = [process.stdout.readline() for process in self.processes if process.stdout]
        if not all(lines):
            sys.exit(f"{self.contender.name}: a process ended early")
        self.answers.append([json.loads(line) for line in lines])

    def end(self) -> dict[str, Any]:
        """Ends it, and returns its figures."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
        first, *turns = self.answers
        work = self.contender.given["seeds"] * self.contender.unit * self.contender.processes
        walls = [max(each["wall"] for each in turn) for turn in turns]
        rate = work / statistics.median(walls)
        return {
            "rate": rate,
            "slowest": work / max(walls),
            "fastest": work / min(walls),
            "cpu_us": 1e6 * statistics.median(sum(e["cpu"] for e in t) for t in turns) / work,
            "mean_regret": statistics.mean(each["mean"] for turn in turns for each in turn),
            "turn_means": [statistics.mean(each["mean"] for each in turn) for turn in turns],
            "first_result_s": max(each["first"] for each in first),
            "compile_s": max(each["compile"] for each in first),
            "peak_bytes": sum(each["peak"] for each in self.answers[-1]),
            "device": first[0]["device"],
        }


def measured(case: Case, turns: int) -> dict[str, dict[str, Any]]:
    """Returns the figures of a case's contenders, which take turns."""
    running = [Running(contender) for contender in case.contenders]
    for number in range(turns + 1):
        for each in running:
            each.turn(number)
    return {each.contender.name: each.end() for each in running}


def differing(found: dict[str, dict[str, Any]]) -> str:
    """Returns who has another mean regret than the first, by more than turns differ; or ""."""
    first, *others = found.items()
    for name, row in others:
        apart = abs(row["mean_regret"] - first[1]["mean_regret"])
        spread = sum(
            statistics.variance(each["turn_means"]) / len(each["turn_means"])
            for each in (row, first[1])
        )
        # A few turns tell little of their own spread.
        if apart > 10.0 * spread**0.5:
            return f"{first[0]} and {name}"
    return ""


def whole(code: str, kind: str, repeats: int) -> dict[str, Any]:
    """Returns the seconds a program takes, from its start to its end, each time anew.

    And the most memory that it had, in bytes, where the system tells of a process that has ended.
    """
    found, peak = [], 0
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        for number in range(repeats + (kind == "warm")):
            # A command keeps its programs by itself.
            kept = "warm" if kind == "warm" else f"cold{number}"
            environment["XDG_CACHE_HOME"] = f"{folder}/{kept}"
            program = f"STORE = {folder + f'/{number}'!r}\nimport fmab_jax as fmab\n{code}"
            started = time.perf_counter()
            process = subprocess.Popen([sys.executable, "-c", program], env=environment, cwd=ROOT)
            _, status, used = os.wait4(process.pid, 0)
            if status:
                sys.exit(f"a program ended with status {status}")
            found.append(time.perf_counter() - started)
            peak = max(peak, used.ru_maxrss * 1024)
    return {"seconds": found[kind == "warm" :], "peak_bytes": peak}


def machine() -> dict[str, Any]:
    """Returns what the figures depend on besides the code."""
    import jax
    import numpy

    import fmab_jax as fmab

    model, vectors = platform.processor() or platform.machine(), ""
    if Path("/proc/cpuinfo").exists():
        text = Path("/proc/cpuinfo").read_text()
        names = re.findall(r"^model name\s*: (.*)$", text, re.M)
        model = names[0].strip() if names else model
        vectors = next((n for word, n in VECTORS.items() if f" {word}" in text), "")
    return {
        "processor": model,
        "vectors": vectors,
        "cores": CORES,
        "device": jax.devices()[0].device_kind,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": numpy.__version__,
        "version": fmab.__version__,
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
    }


def commit() -> str:
    """Returns the commit of the clone, marked if the package has changed since; or ""."""

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)

    if not shutil.which("git"):
        return ""
    changed = git("diff", "--quiet", "HEAD", "--", "fmab_jax").returncode == 1
    return git("rev-parse", "--short=8", "HEAD").stdout.strip() + " with changes" * changed


def main() -> None:
    """Measures, prints, and writes."""
    if sys.argv[1:2] and sys.argv[1] in OTHERS:
        importlib.import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="a few cases, three turns; no file")
    parser.add_argument("--only", nargs="+", default=[], help="cases whose names hold a word")
    parser.add_argument("--write", action="store_true", help="the tables, of these cases alone")
    parser.add_argument("--turns", type=int, help="of each contender, after the warm-up (5)")
    parser.add_argument("--out", type=Path, help="of the figures (benchmarks/results.json)")
    asked = parser.parse_args()
    turns = asked.turns or (3 if asked.quick else 5)
    results: dict[str, Any] = {"machine": machine(), "turns": turns, "cases": {}, "programs": {}}

    partial = (asked.quick or bool(asked.only)) and not asked.write
    figures = asked.out or (None if partial else RESULTS)

    def keep() -> None:
        """Writes what there is so far: a run that is stopped keeps its whole cases."""
        if figures:
            figures.write_text(json.dumps(results, indent=1) + "\n")

    def wanted(name: str) -> bool:
        return not asked.only or any(word in name for word in asked.only)

    for case in cases():
        if not wanted(case.name) or (asked.quick and not case.quick):
            continue
        print(f"\n{case.name}", flush=True)
        found = measured(case, turns)
        results["cases"][case.name] = {"unit": case.unit, "contenders": found}
        if case.alike and (odd := differing(found)):
            sys.exit(f"{case.name}: the mean regrets of {odd} differ: not one law")
        keep()
        ours = found[case.contenders[0].name]["rate"]
        for name, row in found.items():
            print(
                f"  {name:38s} {row['rate']:14,.0f} {case.unit:14s} x {ours / row['rate']:6.2f}"
                f"   CPU {row['cpu_us']:9.3f} us   peak {row['peak_bytes'] / 2**20:6.0f} MB"
                f"   compile {row['compile_s']:4.1f} s   mean regret {row['mean_regret']:,.0f}",
                flush=True,
            )
    for name, code, kind in WHOLE:
        if not wanted(name) or (asked.quick and kind != "cold"):
            continue
        found = whole(code, kind, 1 if kind == "long" else turns)
        results["programs"][name] = found
        keep()
        seconds = statistics.median(found["seconds"])
        print(f"\n{name}: {seconds:.2f} s, {found['peak_bytes'] / 10**6:,.0f} MB", flush=True)
    if not partial and not asked.out:
        from benchmarks.report import write

        write(results, PAGE, ROOT / "README.md")


if __name__ == "__main__":
    main()
