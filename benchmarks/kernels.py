"""Kernels of the programs for processors: how many there are, how they compile, how fast they run.

    python -m benchmarks kernels               # in about five minutes; writes docs/performance.md
    python -m benchmarks kernels --only alike  # cases whose names hold a word; writes nothing

Each case is compiled and run by a process of its own, in turns with the others; the best of the
turns counts. Other processes count: they have XLA write down each kernel, which takes time. A
kernel is not vectorised if it does arithmetic in float64 in a loop, and none of it with vectors.

Beside agents that are alike stand an expert's NumPy and, where there is a C compiler, a program in
C for this case alone.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np

import fmab_jax as fmab
from benchmarks import gpu, report, rivals
from benchmarks.__main__ import PAGE, ROOT, differing, machine
from benchmarks.cases import CORES
from experiments import runs
from fmab_jax.run import compilation, configs
from fmab_jax.sampling.laplace import laplace_sum_shape
from fmab_jax.sampling.scope import package_settings

RESULTS = Path(__file__).with_name("kernels.json")
FLOOR = Path(__file__).with_name("floor.c")
BEGIN = "<!-- written by python -m benchmarks kernels -->"
# Name: algorithm, problem, horizon.
CASES: dict[str, tuple[Any, Any, float]] = {
    name: case[:3] for name, case in gpu.CASES.items() if name != "agents alike, a large batch"
}
CASES["agents differ"] = (fmab.cdp_mab(1.0), fmab.Problem.heterogeneous(50, 100), 1e6)
# CPU microseconds of a trial, and CPU seconds of compiling, at most.
GOALS = {
    "agents alike": 20,
    "agents differ": 180,
    "20 of 50 agents report": 450,
    "5 of 50 agents report": 120,
    "waiting on a ring": 600,
    "agents alone": 2000,
}
COMPILE_GOALS = {"agents alike": 2.5}
COUNTS = ("kernels", "scalar")
SEEDS = 10**6
# Each turn runs for so many CPU seconds, and at least so many times.
SECONDS, REPEATS = 1.5, 3


def time_calls(run: Callable[[int], np.ndarray], seeds: int) -> dict[str, Any]:
    """Times a function of the first seed that returns final regrets; its first call warms up."""
    times: list[float] = []
    means: list[float] = []
    while len(times) <= REPEATS or sum(times) < SECONDS:
        start = time.process_time()
        regret = run(len(times) * seeds)
        times.append(time.process_time() - start)
        means.append(float(regret.mean()))
    cost = round(1e6 * min(times[1:]) / seeds, 3)
    return {"cpu_us": cost, "mean_regret": float(np.mean(means)), "turn_means": means}


def compile_case(name: str) -> tuple[configs.Config, int, jax.stages.Compiled]:
    """Compiles a case's program; returns its configuration, its batch and the program."""
    algorithm, problem, horizon = CASES[name]
    config = configs.bind(algorithm, problem, int(horizon), times=100, spacing="linear")
    devices = tuple(jax.local_devices()[:1])
    batch, _ = config.choose_batch(SEEDS, devices)
    with jax.enable_x64(True):
        return config, batch, compilation.compile_program(config.program, batch, devices)


def measure(name: str) -> dict[str, Any]:
    """Compiles a case's program, and runs it."""
    jax.local_devices()  # starting XLA is no part of compiling
    start = time.process_time()
    config, batch, compiled = compile_case(name)
    compile_s = round(time.process_time() - start, 2)
    (device,) = jax.local_devices()[:1]
    mesh = jax.sharding.Mesh(np.array([device]), ("trials",))
    with jax.enable_x64(True), package_settings(mesh):
        table, row, root_seed, _ = gpu.arguments(config, batch, device)

        def run_batch(first: int) -> np.ndarray:
            seeds = np.arange(first, first + batch, dtype=np.uint32)
            outcome = jax.block_until_ready(compiled(table, row, root_seed, seeds))
            return np.asarray(outcome.regret)[:, config.points - 1]

        return {"batch": batch, "compile_cpu_s": compile_s} | time_calls(run_batch, batch)


def count(name: str) -> dict[str, int]:
    """Compiles a case's program; returns how many kernels it has, and how many are scalar loops."""
    with tempfile.TemporaryDirectory() as folder:
        # XLA reads its flags when it starts.
        os.environ["XLA_FLAGS"] = f"--xla_dump_to={folder} --xla_dump_hlo_as_text"
        compile_case(name)
        modules = [path.read_text() for path in Path(folder).glob("*run_table_rows*with-opt.ll")]
    if not modules:
        sys.exit(f"{name}: XLA wrote down no kernels")
    return {"kernels": len(modules), "scalar": sum(map(is_scalar_loop, modules))}


def is_scalar_loop(module: str) -> bool:
    """Whether a kernel's code in LLVM loops over float64 arithmetic, and has no vectors in it."""
    operation = r"= (?:fadd|fsub|fmul|fdiv) (?:\w+ )*"
    function = r"@llvm\.(?:sqrt|fma|fmuladd)\."
    scalar = re.search(rf"{operation}double|call .*double {function}f64", module)
    vector = re.search(rf"{operation}<\d+ x double>|{function}v\d+f64", module)
    return bool(scalar and not vector and " phi i" in module)


def time_numpy() -> dict[str, Any]:
    """Times the script that a user would write with care."""
    rng, seeds = np.random.default_rng(0), 8192
    return time_calls(lambda _: rivals.ragged(rng, seeds, 50, 100, 1.0, 10**6), seeds)


def time_c() -> dict[str, Any]:
    """Compiles floor.c, and times it."""
    shape, seeds = laplace_sum_shape(50), 20_000
    double, whole = ctypes.c_double, ctypes.c_long

    class Study(ctypes.Structure):
        _fields_ = (
            *(("arms", whole), ("agents", double), ("horizon", double), ("epsilon", double)),
            ("laplace", double * len(shape)),
        )

    study = Study(100, 50.0, 1e6, 1.0, (double * len(shape))(*shape))
    flags = "-O3 -march=native -ffast-math -fno-finite-math-only -shared -fPIC".split()
    flags.append(f"-DTERMS={len(shape)}")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/floor.so"
        subprocess.run([str(find_compiler()), *flags, str(FLOOR), "-o", path, "-lm"], check=True)
        library = ctypes.CDLL(path)

    def run(first: int) -> np.ndarray:
        regret = np.empty(seeds)
        target = ctypes.c_void_p(regret.ctypes.data)
        library.run(ctypes.byref(study), whole(first), whole(seeds), target)
        return regret

    return time_calls(run, seeds)


def find_compiler() -> str | None:
    """Returns the path of a C compiler, or None."""
    return shutil.which("cc") or shutil.which("gcc")


RIVALS = {"an expert's NumPy": time_numpy, "C, no curves": time_c}


def run_child(name: str, task: str) -> dict[str, Any]:
    """Returns what a process of its own measures or counts of a case."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, "-m", "benchmarks", "kernels", task, name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
    if done.returncode:
        sys.exit(f"{name}: ended with status {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def take_best(turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the turns' smallest costs; all else is of the first turn."""
    costs = [key for key in ("compile_cpu_s", "cpu_us") if key in turns[0]]
    return turns[0] | {key: min(turn[key] for turn in turns) for key in costs}


def page(results: dict[str, Any]) -> str:
    """Returns the part of docs/performance.md that comes from figures."""
    machine_used = results["machine"]
    head = ["50 agents, 100 arms, T = 10^6", "CPU us a trial", "goal", "compiling, CPU s", "goal"]
    head += ["kernels", "of these scalar loops"]
    rows = []
    for name, row in results["cases"].items():
        cost, goal = report.write_number(row["cpu_us"]), f"{GOALS[name]:,}" if name in GOALS else ""
        compiling = [f"{row['compile_cpu_s']:.1f}", str(COMPILE_GOALS.get(name, ""))]
        rows.append([name, cost, goal, *compiling, *(str(row[key]) for key in COUNTS)])
    for name, row in results["rivals"].items():
        rows.append([f"agents alike, {name}", report.write_number(row["cpu_us"]), *[""] * 5])
    lines = [
        f"Measured on {report.write_machine(machine_used)}: the best of {results['turns']} turns,"
        " each in a process of its own. epsilon = 1 and 100 recorded slots; goals are upper bounds."
        f" Batches are those of {SEEDS:,} seeds. Compiling includes tracing.",
        "",
        *report.write_table(head, rows),
        "",
        runs.write_runs({"": (machine_used["version"], machine_used["date"])}),
    ]
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> None:
    """Measures and counts in child processes; prints, and writes where all cases were asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks kernels", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", default=[], help="cases whose names hold a word")
    parser.add_argument("--turns", type=int, default=2, help="of each case (2)")
    child = parser.add_mutually_exclusive_group()
    child.add_argument(
        "--measure", choices=[*CASES, *RIVALS], metavar="CASE", help="in this process"
    )
    child.add_argument("--count", choices=list(CASES), metavar="CASE", help="in this process")
    options = parser.parse_args(words)
    if name := options.measure:
        print(json.dumps(RIVALS[name]() if name in RIVALS else measure(name)))
        return
    if options.count:
        print(json.dumps(count(options.count)))
        return
    names = [n for n in CASES if not options.only or any(word in n for word in options.only)]
    if not names:
        parser.error(f"--only: must be words of {', '.join(CASES)}")
    chosen_rivals = list(RIVALS)[: 2 if find_compiler() else 1] if "agents alike" in names else []
    machine_used = machine()  # of the commit that is measured
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in [*names, *chosen_rivals]}
    for _ in range(options.turns):
        for name, turns in found.items():
            turns.append(run_child(name, "--measure"))
            costs = [f"{key} {turns[-1].get(key, '')}" for key in ("cpu_us", "compile_cpu_s")]
            print(f"{name:24s} {'  '.join(costs)}", flush=True)
    figures = {name: take_best(turns) for name, turns in found.items()}
    alike = {name: figures[name] for name in ["agents alike", *chosen_rivals] if chosen_rivals}
    if chosen_rivals and (pair := differing(alike)):
        sys.exit(f"the mean regrets of {pair} differ: not one law")
    for row in figures.values():
        del row["turn_means"]
    # Counts do not depend on what else runs.
    with ThreadPoolExecutor(CORES) as threads:
        for name, counts in zip(
            names, threads.map(lambda n: run_child(n, "--count"), names), strict=True
        ):
            figures[name] |= counts
            print(f"{name:24s} {counts}", flush=True)
    results = {
        "machine": machine_used,
        "turns": options.turns,
        "cases": {name: figures[name] for name in names},
        "rivals": {name: figures[name] for name in chosen_rivals},
    }
    if not options.only:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        report.replace(PAGE, page(results), BEGIN)
