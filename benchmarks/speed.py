"""Trials per second, side by side with NumPy, and how the cost grows with T and M.

    python benchmarks/speed.py            # prints a table, writes benchmarks/speed.json

The paper's instance: M=50, K=100, epsilon=1, homogeneous Bernoulli means drawn per seed. Every
figure is the median of several repetitions on otherwise idle cores; compilation is reported apart.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

AGENTS, ARMS, EPSILON, HORIZON = 50, 100, 1.0, 10**6


def numpy_worker(kind: str, seeds: int, seed: int) -> tuple[float, float]:
    import numpy_rivals

    rng = np.random.default_rng(seed)
    started = time.perf_counter()
    if kind == "ragged":
        regret = numpy_rivals.many_trials(rng, seeds, AGENTS, ARMS, EPSILON, HORIZON)
    else:
        per_agent = kind == "per agent"
        setting = (AGENTS, ARMS, EPSILON, HORIZON)
        regret = [numpy_rivals.one_trial(rng, *setting, per_agent=per_agent) for _ in range(seeds)]
    return time.perf_counter() - started, float(np.mean(regret))


def numpy_speed(kind: str, seeds: int, processes: int, repeats: int) -> dict[str, float]:
    rates, means = [], []
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.starmap(numpy_worker, [(kind, 4, 0)] * processes)
        for repeat in range(repeats):
            jobs = [(kind, seeds, 10 * repeat + i) for i in range(processes)]
            done = pool.starmap(numpy_worker, jobs)
            rates.append(processes * seeds / max(seconds for seconds, _ in done))
            means.extend(mean for _, mean in done)
    return {"trials_per_s": statistics.median(rates), "mean_regret": statistics.mean(means)}


JAX = """
import sys, json, statistics, time
import numpy as np
import fmab_jax as fmab
name, horizon, agents, seeds, repeats = sys.argv[1], *map(int, sys.argv[2:])
make = {
    "p = 0.4": lambda: fmab.cdp_mab(1.0, participation=0.4),
    "ring": lambda: fmab.ddp_mab(1.0, "ring"),
}.get(name, lambda: fmab.cdp_mab(1.0))
table = np.random.default_rng(0).dirichlet(np.ones(5), 100)
ratings = fmab.Problem.ratings([1, 2, 3, 4, 5], table, agents)
problem = {
    "unequal": fmab.Problem.heterogeneous(agents, 100),
    "ratings": ratings,
    "their means": fmab.Problem(ratings.means[0], agents=agents),
}.get(name, fmab.Problem.uniform(agents, 100))
more = {"sum_agents": name != "per agent"}
start = time.perf_counter()
fmab.simulate(make(), problem, horizon, seeds, **more)
first = time.perf_counter() - start
rates, means = [], []
for i in range(1, repeats + 1):
    data = fmab.simulate(make(), problem, horizon, range(i * seeds, (i + 1) * seeds), **more)
    rates.append(data.attrs["trials_per_s"]); means.append(float(data.regret[:, -1].mean()))
print(json.dumps({"trials_per_s": statistics.median(rates), "mean_regret": statistics.mean(means),
                  "first_result_s": first, "device": data.attrs["device"]}))
"""


def package_speed(
    name: str, horizon: int, agents: int, seeds: int, repeats: int, devices: int | None = None
) -> dict[str, float]:
    env = dict(os.environ)
    if devices:
        env["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    command = [sys.executable, "-c", JAX, name, str(horizon), str(agents), str(seeds), str(repeats)]
    root = Path(__file__).parent.parent
    done = subprocess.run(
        command, env=env | {"PYTHONPATH": str(root)}, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("speed.json"))
    repeats = parser.parse_args().repeats
    out = parser.parse_args().out
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    rows: dict[str, dict[str, float]] = {}

    def measured(label: str, row: dict[str, float]) -> None:
        rows[label] = row
        first = f"   first result {row['first_result_s']:.1f} s" if "first_result_s" in row else ""
        per_trial = 1e3 / row["trials_per_s"]
        print(
            f"{label:58s} {row['trials_per_s']:10,.0f} trials/s  {per_trial:8.4f} ms"
            f"  mean regret {row['mean_regret']:,.0f}{first}",
            flush=True,
        )

    for kind, seeds in (("per agent", 500), ("summed out", 2000), ("ragged", 4000)):
        for processes in (1, cores):
            label = f"NumPy, {kind}, T=1e6, {processes} process(es)"
            measured(label, numpy_speed(kind, seeds, processes, repeats))
    many = 16_384
    measured("fmab_jax, summed out, T=1e6", package_speed("pooled", 10**6, 50, many, repeats))
    label = f"fmab_jax, summed out, T=1e6, {cores} virtual devices"
    measured(label, package_speed("pooled", 10**6, 50, many, repeats, cores))
    measured("fmab_jax, unequal, T=1e6", package_speed("unequal", 10**6, 50, 8192, repeats))
    for name in ("ratings", "their means"):
        measured(f"fmab_jax, {name}, T=1e6", package_speed(name, 10**6, 50, many, repeats))
    for name, seeds in (("per agent", 1024), ("ring", 1024), ("p = 0.4", 1024)):
        label = f"fmab_jax, {name}, T=1e6"
        measured(label, package_speed(name, 10**6, 50, seeds, repeats))
    for horizon in (10**4, 10**5, 10**7, 10**9, 10**12):
        label = f"fmab_jax, summed out, T={horizon:.0e}"
        measured(label, package_speed("pooled", horizon, 50, many, repeats))
    for agents in (1, 1000, 10**5):
        label = f"fmab_jax, summed out, T=1e6, M={agents:,}"
        measured(label, package_speed("pooled", 10**6, agents, many, repeats))
    machine = {"cores": cores, "machine": platform.machine(), "python": platform.python_version()}
    out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
