"""Measures what a device computes: trials a second, with arguments and results on the device.

    python -m benchmarks.gpu --check --out gpu.json     # on an H200: about three minutes
    python -m benchmarks.gpu --only alike --shrink 64   # on a processor, to see that it works

Each program is compiled, fed from the device's memory, and run some times; the best time counts.
Regret is held against a processor's where ``--check`` is given. The rival is a script of plain JAX:
a similar elimination, in float32 with `jax.random.binomial`. It stands for speed alone.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fmab_jax as fmab
from fmab_jax.core.scope import own_settings
from fmab_jax.run import batches

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


def bind(name: str, shrink: int) -> tuple[batches.Config, int]:
    """Returns a case's configuration, and how many seeds a batch has."""
    algorithm, problem, horizon, seeds = CASES[name]
    config = batches.bound(algorithm, problem, int(horizon), times=100, spacing="linear")
    return config, max(1, seeds // shrink)


def arguments(config: batches.Config, seeds: int, device: jax.Device) -> Any:
    """Returns the arguments of a batch, on a device."""
    many = jax.tree.map(lambda x: np.broadcast_to(x, (seeds, *np.shape(x))), config.arrays)
    given = (*many, np.zeros(seeds, np.uint32), np.arange(seeds, dtype=np.uint32))
    return jax.device_put(given, device)


def measure(name: str, turns: int, shrink: int, check: bool) -> dict[str, Any]:
    """Runs a case; returns what it took."""
    config, seeds = bind(name, shrink)
    device = jax.devices()[0]
    with jax.enable_x64(True):
        compiled = batches.executable(config.program, seeds, (device,))
        with own_settings(jax.sharding.Mesh(np.array([device]), ("trials",))):
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
    if check:
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


def main() -> None:
    """Measures the cases that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], help="cases whose names hold a word")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--shrink", type=int, default=1, help="seeds are divided by it")
    parser.add_argument("--check", action="store_true", help="hold regret against a processor's")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    names = [n for n in CASES if not asked.only or any(word in n for word in asked.only)]
    device = jax.devices()[0]
    told: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "device": device.device_kind,
        "jax": jax.__version__,
        "turns": asked.turns,
        "cases": {},
    }

    def compile_case(name: str) -> float:
        start = time.perf_counter()
        config, seeds = bind(name, asked.shrink)
        with jax.enable_x64(True):
            batches.executable(config.program, seeds, (device,))
        return round(time.perf_counter() - start, 2)

    told["compile_s"] = {names[0]: compile_case(names[0])}
    start = time.perf_counter()
    with ThreadPoolExecutor() as threads:
        told["compile_s"] |= dict(zip(names[1:], threads.map(compile_case, names[1:]), strict=True))
    told["others_together_s"] = round(time.perf_counter() - start, 2)
    print(told["compile_s"], told["others_together_s"], flush=True)
    for name in names:
        try:
            told["cases"][name] = measure(name, asked.turns, asked.shrink, asked.check)
        except Exception as error:  # what does not fit is told, and the others are measured
            told["cases"][name] = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(name, json.dumps(told["cases"][name]), flush=True)
    told["rival"] = rival(max(1, 65_536 // asked.shrink), asked.turns)
    print("plain JAX script", json.dumps(told["rival"]), flush=True)
    if asked.out:
        asked.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
