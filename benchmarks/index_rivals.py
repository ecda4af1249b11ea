"""Agent-slots per second of index policies, beside NumPy vectorised over agents and seeds.

    python benchmarks/index_rivals.py

The paper's instance: M=50, K=100, homogeneous Bernoulli means drawn per seed. NumPy steps all seeds
of a process together; the figures are of two processes, or of two threads, without compilation.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time

import numpy as np

AGENTS, ARMS = 50, 100


def numpy_ucb1(rng, seeds: int, horizon: int, pooled: bool) -> np.ndarray:
    """Returns the final regret of each seed."""
    means = rng.random((seeds, ARMS))
    rows = 1 if pooled else AGENTS
    sharing = AGENTS // rows
    pulls, sums = np.zeros((seeds * rows, ARMS)), np.zeros((seeds * rows, ARMS))
    mean = np.repeat(means, rows, axis=0)
    row, regret = np.arange(seeds * rows), np.zeros(seeds * rows)
    for t in range(1, horizon + 1):
        if t <= ARMS:
            arm = np.full(len(row), t - 1)
        else:
            width = 2 * np.log(sharing * t)
            arm = (sums / pulls + np.sqrt(width / pulls)).argmax(axis=1)
        played = mean[row, arm]
        pulls[row, arm] += sharing
        sums[row, arm] += (rng.random((sharing, len(row))) < played).sum(axis=0)
        regret += sharing * (mean.max(axis=1) - played)
    return regret.reshape(seeds, rows).sum(axis=1)


def numpy_worker(pooled: bool, seeds: int, horizon: int, seed: int) -> tuple[float, float, float]:
    rng = np.random.default_rng(seed)
    wall, cpu = time.perf_counter(), time.process_time()
    regret = numpy_ucb1(rng, seeds, horizon, pooled).mean()
    return time.perf_counter() - wall, time.process_time() - cpu, float(regret)


def show(name: str, agent_slots: float, wall: float, cpu: float, regret: float) -> None:
    print(
        f"{name:24} {agent_slots / wall / 1e6:7.2f} M/s  {agent_slots / cpu / 1e6:7.2f} M per CPU s"
        f"  mean regret {regret:,.0f}",
        flush=True,
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--horizon", type=int, default=2000)
    arguments.add_argument("--seeds", type=int, default=256)
    arguments.add_argument("--numpy-seeds", type=int, default=8, help="of each process")
    arguments.add_argument("--processes", type=int, default=2)
    args = arguments.parse_args()
    with multiprocessing.get_context("spawn").Pool(args.processes) as pool:
        for pooled in (False, True):
            jobs = [(pooled, args.numpy_seeds, args.horizon, i) for i in range(args.processes)]
            walls, cpus, regrets = zip(*pool.starmap(numpy_worker, jobs), strict=True)
            done = args.processes * args.numpy_seeds * AGENTS * args.horizon
            name = f"NumPy, ucb1{', pooled' * pooled}"
            show(name, done, max(walls), sum(cpus), float(np.mean(regrets)))

    import fmab_jax as fmab

    problem = fmab.Problem.uniform(AGENTS, ARMS)
    for name, algorithm in {
        "ucb1": fmab.ucb1(),
        "ucb1, pooled": fmab.ucb1(pooled=True),
        "gosine": fmab.gosine(),
    }.items():
        fmab.simulate(algorithm, problem, args.horizon, args.seeds)
        wall, cpu = time.perf_counter(), time.process_time()
        data = fmab.simulate(algorithm, problem, args.horizon, args.seeds)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        done = args.seeds * AGENTS * args.horizon
        show(f"fmab_jax, {name}", done, wall, cpu, float(data.regret[:, -1].mean()))


if __name__ == "__main__":
    main()
