"""Measures a GPU: what it computes, and what a user has of it.

    python -m benchmarks gpu                           # all; writes the page
    python -m benchmarks gpu --only alike --shrink 64  # on a processor, to see that it works
    python -m benchmarks gpu --compile-only            # counts for an H200, where none is needed

Each program is compiled, fed from the device's memory, and run some times; the best time counts.
Regret is held against a processor's. The rival is a script of plain JAX: a similar elimination, in
float32 with `jax.random.binomial`. It stands for speed alone.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fmab_jax as fmab
from benchmarks import cases, report, rivals, worker
from experiments import runs
from fmab_jax.run import compilation, configs
from fmab_jax.sampling.scope import package_settings

RESULTS = Path(__file__).with_name("gpu.json")
PAGE = Path(__file__).parent.parent / "docs" / "gpu.md"
LEVELS = np.linspace(1.0, 3.0, 500).reshape(100, 5)
RATED = fmab.Problem.ratings([1, 2, 3, 4, 5], LEVELS / LEVELS.sum(axis=1, keepdims=True), 50)
ALIKE = fmab.Problem.uniform(agents=50, arms=100)
APART = fmab.Problem.heterogeneous(agents=50, arms=100, spread=0.3)
# Name: algorithm, problem, horizon, seeds of a batch.
CASES: dict[str, tuple[Any, Any, float, int]] = {
    "agents alike": (fmab.cdp_mab(1.0), ALIKE, 1e6, 65_536),
    "agents alike, a large batch": (fmab.cdp_mab(1.0), ALIKE, 1e6, 262_144),
    "ratings of five levels": (fmab.cdp_mab(1.0), RATED, 1e6, 32_768),
    "KL-SE, T = 10^5": (fmab.kl_se(1.0), ALIKE, 1e5, 65_536),
    "agents differ": (fmab.cdp_mab(1.0), APART, 1e6, 32_768),
    "20 of 50 agents report": (fmab.cdp_mab(1.0, participation=0.4), ALIKE, 1e6, 32_768),
    "5 of 50 agents report": (fmab.cdp_mab(1.0, participation=0.1), ALIKE, 1e6, 32_768),
    "waiting on a ring": (fmab.ddp_mab(1.0, "ring"), ALIKE, 1e6, 32_768),
    "agents alone": (fmab.single_mab(1.0), ALIKE, 1e6, 8_192),
}


def bind(name: str, shrink: int) -> tuple[configs.Config, int]:
    """Returns a case's configuration, and how many seeds a batch has."""
    algorithm, problem, horizon, seeds = CASES[name]
    config = configs.bind(algorithm, problem, int(horizon), times=100, spacing="linear")
    return config, max(1, seeds // shrink)


def arguments(config: configs.Config, seeds: int, device: jax.Device) -> Any:
    """Returns the arguments of a batch, on a device."""
    table = jax.tree.map(lambda x: np.asarray(x)[None], config.arrays)
    given = table, np.zeros(seeds, np.int32), np.uint32(0), np.arange(seeds, dtype=np.uint32)
    return jax.device_put(given, device)


def measure(name: str, turns: int, shrink: int) -> dict[str, Any]:
    """Runs a case; returns what it took, and how many seeds have a processor's bits."""
    config, seeds = bind(name, shrink)
    device = jax.devices()[0]
    with jax.enable_x64(True):
        compiled = compilation.compile_program(config.program, seeds, (device,))
        with package_settings(jax.sharding.Mesh(np.array([device]), ("trials",))):
            given = arguments(config, seeds, device)
            times = []
            for _ in range(turns + 1):
                start = time.perf_counter()
                outcome = jax.block_until_ready(compiled(*given))
                times.append(time.perf_counter() - start)
    found = {
        "trials": seeds,
        "ms": round(1e3 * min(times[1:]), 3),
        "trials_per_s": round(seeds / min(times[1:])),
        "argument_bytes": sum(x.nbytes for x in jax.tree.leaves(given)) // seeds,
        "result_bytes": sum(x.nbytes for x in jax.tree.leaves(outcome)) // seeds,
    }
    few = min(64, seeds)
    cpu = jax.devices("cpu")[0]
    data = fmab.simulate(*CASES[name][:2], int(CASES[name][2]), few, devices=[cpu])
    ours = np.asarray(outcome.regret)[:few, config.points - 1]
    theirs = data.regret.values[:, -1]
    found["checked"] = few
    found["same_bits"] = int(np.sum(ours == theirs))
    found["worst_difference"] = float(np.max(np.abs(ours - theirs) / np.maximum(theirs, 1.0)))
    return found


def rival(seeds: int, turns: int) -> dict[str, Any]:
    """Times a script of plain JAX: an elimination like "agents alike", with another schedule."""
    agents, arms, horizon, slots = 50, 100, 10**6, 100

    def trial(key: jax.Array) -> jax.Array:
        means_key, key = jax.random.split(key)
        means = jax.random.uniform(means_key, (arms,))
        gaps = means.max() - means
        grid = jnp.linspace(horizon / slots, horizon, slots)

        def epoch(state: Any) -> Any:
            r, slot, pulls, alive, total, curve, regret = state
            now = jax.random.fold_in(key, r)
            k1, k2 = jax.random.split(now)
            gap = 2.0 ** (-r.astype(jnp.float32))
            log = jnp.log(arms * r.astype(jnp.float32) ** 2 * 16)
            until = jnp.ceil(32.0 * log / (agents * gap**2) + 1.0)
            fresh = jnp.maximum(until - pulls, 1.0)
            active = alive.sum()
            rewards = jax.random.binomial(k1, agents * fresh, means)
            noise = jax.random.laplace(k2, (agents, arms)).sum(axis=0)
            total = total + rewards + noise
            mean = total / (agents * (pulls + fresh))
            best = jnp.max(jnp.where(alive, mean, -jnp.inf))
            rate = agents * (gaps * alive).sum() / active
            end = slot + active * fresh
            line = regret + rate * (grid - slot)
            curve = jnp.where(grid > slot, line, curve)
            regret = regret + rate * (end - slot)
            alive = alive & (best - mean < gap)
            return r + 1, end, pulls + fresh, alive, total, curve, regret

        def is_running(state: Any) -> jax.Array:
            return (state[1] < horizon) & (state[3].sum() > 1)

        zero = jnp.zeros(())
        start = (jnp.int32(1), zero, zero, jnp.ones(arms, bool), jnp.zeros(arms), grid * 0, zero)
        _, slot, _, alive, _, curve, regret = jax.lax.while_loop(is_running, epoch, start)
        rate = agents * (gaps * alive).sum() / alive.sum()
        return jnp.where(grid > slot, regret + rate * (grid - slot), curve)

    keys = jax.random.split(jax.random.key(0), seeds)
    start = time.perf_counter()
    compiled = jax.jit(jax.vmap(trial)).lower(keys).compile()
    compile_s = time.perf_counter() - start
    times = []
    for _ in range(turns + 1):
        start = time.perf_counter()
        jax.block_until_ready(compiled(keys))
        times.append(time.perf_counter() - start)
    best = min(times[1:])
    return {
        "trials": seeds,
        "compile_s": round(compile_s, 2),
        "ms": round(1e3 * best, 3),
        "trials_per_s": round(seeds / best),
    }


def numpy_rate(seeds: int) -> int:
    """Returns the trials a second of a script of NumPy, which draws totals over agents."""
    start = time.perf_counter()
    rivals.script(np.random.default_rng(0), seeds, 50, 100, 1.0, 10**6, per_agent=False)
    return round(seeds / (time.perf_counter() - start))


def end_to_end(shrink: int) -> dict[str, list[float]]:
    """Returns the seconds that calls take as users make them, the first time and again."""
    algorithm, horizon = fmab.cdp_mab(1.0), 10**6

    def simulate(seeds: int) -> Any:
        return fmab.simulate(algorithm, ALIKE, horizon, max(8, seeds // shrink))

    def sweep(seeds: int, keep: str, epsilon: Any) -> Any:
        seeds = max(8, seeds // shrink)
        return fmab.sweep(
            fmab.cdp_mab, ALIKE, horizon=horizon, seeds=seeds, keep=keep, epsilon=epsilon
        )

    contenders = {case.name: case.contenders[0].given for case in cases.cases()}

    def call_of(case: str) -> Callable[[], Any]:
        run = worker.ours(contenders[case] | {"seeds": max(8, report.GPU_SEEDS // shrink)})
        return lambda: run(0)

    many = simulate(200_000)
    grid = np.geomspace(0.1, 10.0, max(2, 100 // shrink)).tolist()
    calls: dict[str, Callable[[], Any]] = {
        "simulate, 1,000 seeds": lambda: simulate(1000),
        **{report.name_call(label): call_of(case) for case, label in report.SHORT.items()},
        report.GPU_SUMMARY: lambda: sweep(10**6, "summary", 1.0),
        "sweep of 100 configurations, 1,000 seeds each": lambda: sweep(1000, "curves", grid),
        "confidence band of 200,000 seeds": lambda: fmab.confidence_band(many.regret),
    }
    found = {}
    for name, call in calls.items():
        found[name] = []
        compilation.compile_program.cache_clear()
        for _ in range(3):
            start = time.perf_counter()
            call()
            found[name].append(round(time.perf_counter() - start, 3))
        print(name, found[name], flush=True)
    return found


def page(results: dict[str, Any]) -> str:
    """Returns the part of docs/gpu.md that comes from figures."""
    told = [
        f"Measured on {results['date']} on one {results['device']} beside {results['cores']} cores,"
        f" jax {results['jax']}; programs: the best of"
        f" {results['turns']} turns, calls: the better of two. T = 10^6, 50 agents, 100 arms,"
        " epsilon = 1, 100 recorded slots, where nothing else is said.",
        "",
        "| on the device | seeds of a batch | trials/s | seeds with a processor's bits |",
        "|---|---:|---:|---:|",
    ]
    for name, row in results["cases"].items():
        same = f"{row['same_bits']} of {row['checked']}"
        told.append(f"| {name} | {row['trials']:,} | {row['trials_per_s']:,} | {same} |")
    rival = results["rival"]
    told.append(f"| a script of plain JAX | {rival['trials']:,} | {rival['trials_per_s']:,} | |")
    told.append(f"| a script of NumPy, on one core | | {results['numpy_per_s']:,} | |")
    told += ["", "| a call, from its start to its end | first, s | again, s |", "|---|---:|---:|"]
    for name, (first, *again) in results["calls"].items():
        told.append(f"| {name} | {first:.2f} | {min(again):.2f} |")
    told += ["", runs.write_runs({"": (results["version"], results["date"])})]
    return "\n".join(told)


def main(given: Sequence[str] | None = None) -> None:
    """Measures the cases that are asked for; all of them make the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks gpu", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", default=[], help="cases whose names hold a word")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--shrink", type=int, default=1, help="seeds are divided by it")
    parser.add_argument("--out", type=Path, help="of the figures (benchmarks/gpu.json)")
    parser.add_argument("--compile-only", action="store_true", help="counts for an H200")
    asked = parser.parse_args(given)
    if asked.compile_only:
        from benchmarks import launches

        launches.main(asked.only)
        return
    names = [n for n in CASES if not asked.only or any(word in n for word in asked.only)]
    if not names:
        parser.error(f"--only: must be words of {', '.join(CASES)}")
    device = jax.devices()[0]
    told: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "device": device.device_kind,
        "cores": os.cpu_count(),
        "jax": jax.__version__,
        "version": fmab.__version__,
        "turns": asked.turns,
        "calls": {} if asked.only else end_to_end(asked.shrink),
        "cases": {},
    }

    def compile_case(name: str) -> float:
        start = time.perf_counter()
        config, seeds = bind(name, asked.shrink)
        with jax.enable_x64(True):
            compilation.compile_program(config.program, seeds, (device,))
        return round(time.perf_counter() - start, 2)

    told["compile_s"] = {names[0]: compile_case(names[0])}
    start = time.perf_counter()
    with ThreadPoolExecutor() as threads:
        told["compile_s"] |= dict(zip(names[1:], threads.map(compile_case, names[1:]), strict=True))
    told["others_together_s"] = round(time.perf_counter() - start, 2)
    print(told["compile_s"], told["others_together_s"], flush=True)
    for name in names:
        told["cases"][name] = measure(name, asked.turns, asked.shrink)
        print(name, json.dumps(told["cases"][name]), flush=True)
    told["rival"] = rival(max(1, 65_536 // asked.shrink), asked.turns)
    told["numpy_per_s"] = numpy_rate(max(1, 500 // asked.shrink))
    print("plain JAX script", json.dumps(told["rival"]), flush=True)
    whole = not asked.only and asked.shrink == 1
    if out := asked.out or (RESULTS if whole else None):
        out.write_text(json.dumps(told, indent=1) + "\n")
    if whole and not asked.out:
        report.replace(PAGE, page(told))


if __name__ == "__main__":
    main()
