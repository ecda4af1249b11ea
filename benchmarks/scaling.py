"""How the cost of a trial grows: with seeds, arms, agents, horizon, rounds, devices; one figure.

    python -m benchmarks.scaling      # about five minutes; writes scaling.json and docs/scaling.png
    python -m benchmarks.scaling --draw     # draws the figure again from scaling.json

Exponents are fitted to the last three points of each axis. The floor is what drawing the numbers
takes, and nothing else: how many there are is counted in the expert's program, and what one takes
is measured in a loop that does nothing but draw.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import rivals
from benchmarks.__main__ import Running, machine
from benchmarks.cases import Contender, package

HERE = Path(__file__).parent
JSON, FIGURE = HERE / "scaling.json", HERE.parent / "docs" / "scaling.png"
TURNS = 3


def axes() -> dict[str, list[tuple[float, Contender]]]:
    """Returns contenders by what grows, and how large it is."""
    ring = {"epsilon": 1.0, "graph": "ring"}
    budget = [{"epsilon": 1.0, "rounds": r, "schedule_gap": 0.01} for r in (1, 2, 4, 8, 16)]
    return {
        "seeds of a run": [(n, package(seeds=n)) for n in (64, 512, 4096, 32_768, 131_072)],
        "arms K": [(k, package(seeds=2**19 // k, arms=k)) for k in (8, 32, 128, 512, 2048)],
        "agents M, summed out": [
            (m, package(seeds=8192, agents=m)) for m in (10, 100, 1000, 10**4, 10**5, 10**6)
        ],
        "agents M on a ring": [
            (m, package("ddp_mab", max(32, 2**15 // m), agents=m, options=ring))
            for m in (8, 32, 128, 512)
        ],
        "horizon T": [
            (t, package(seeds=8192, horizon=t)) for t in (10**4, 10**6, 10**8, 10**10, 10**12)
        ],
        "round budget R": [(b["rounds"], package(seeds=8192, options=b)) for b in budget],
        "devices, on the same cores": [
            (n, Contender(f"{n}", package(seeds=32_768).given | {"devices": n}))
            for n in (1, 2, 4, 8)
        ],
    }


def draw_ns() -> tuple[float, float]:
    """Returns the nanoseconds that drawing one sum of rewards takes, and one sum of noise."""
    import jax
    import jax.numpy as jnp

    from fmab_jax.sampling import binomials, keys, laplace, normal

    def reward(k0: Any, k1: Any, lane: Any) -> Any:
        z = normal.quantile(keys.uniform(k0, k1, lane))
        return jnp.ceil(binomials.expand_quantile(z, 1e5 + 0.0 * z, 0.3 + 0.0 * z)[0] - 0.5)

    def noise(k0: Any, k1: Any, lane: Any) -> Any:
        z = normal.quantile(keys.uniform(k0, k1, lane))
        return laplace.laplace_sum(z, jnp.asarray(laplace.laplace_sum_shape(50)))

    found, size, times = [], 4096, 2000
    with jax.enable_x64(True):
        lane = jnp.arange(size, dtype=jnp.uint32)
        for one in (reward, noise):

            def many(lane: Any, one: Any = one) -> Any:
                def again(i: Any, total: Any) -> Any:
                    return total + one(jnp.uint32(1), i.astype(jnp.uint32), lane)

                return jax.lax.fori_loop(0, times, again, jnp.zeros(size))

            options = {"xla_cpu_prefer_vector_width": "512"}
            program = jax.jit(many).lower(lane).compile(compiler_options=options)
            program(lane).block_until_ready()
            taken = []
            for _ in range(TURNS):
                started = time.process_time()
                program(lane).block_until_ready()
                taken.append(time.process_time() - started)
            found.append(1e9 * statistics.median(taken) / (size * times))
    return found[0], found[1]


def drawn_per_trial(contender: Contender) -> tuple[float, float] | None:
    """Returns how many sums of rewards and of noise a trial draws; None where nobody counts."""
    given = contender.given
    if "rounds" in given["options"]:
        return None
    _, sizes = given["problem"]
    tally: list[int] = []
    seeds = max(8, min(2000, 2 * 10**5 // sizes["arms"]))
    rng = np.random.default_rng(0)
    waits = given["options"].get("graph") == "ring"
    # A ring's farthest agent is half of it away, and the first hop costs no slot.
    wait = sizes["agents"] // 2 - 1 if waits else 0
    horizon = given["horizon"]
    rivals.ragged(rng, seeds, **sizes, epsilon=1.0, horizon=horizon, wait=wait, tally=tally)
    pairs = sum(tally) / seeds
    return pairs * (sizes["agents"] if waits else 1), pairs


def measured() -> dict[str, Any]:
    """Returns CPU microseconds a trial."""
    reward, noise = draw_ns()
    found: dict[str, Any] = {"machine": machine(), "axes": {}}
    found["ns"] = {"sum of rewards": reward, "sum of noise": noise}
    for name, points in axes().items():
        rows = []
        for size, contender in points:
            running = Running(contender)
            for turn in range(TURNS + 1):
                running.turn(turn)
            row = running.end()
            counted = drawn_per_trial(contender)
            floor = 1e-3 * (counted[0] * reward + counted[1] * noise) if counted else None
            rows.append([size, row["cpu_us"], 1e6 / row["rate"], floor])
            print(f"{name:26s} {size:12,} {row['cpu_us']:12.2f} CPU us, floor {floor}", flush=True)
        found["axes"][name] = rows
    return found


def exponent(rows: list[list[float]]) -> float:
    """Returns the slope of log cost over log size at the large end."""
    sizes, cost = (np.log([row[column] for row in rows[-3:]]) for column in (0, 1))
    return float(np.polyfit(sizes, cost, 1)[0])


def drawn(found: dict[str, Any]) -> None:
    """Draws the figure."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    figure, panels = plt.subplots(2, 4, figsize=(7.2, 4.0), layout="constrained")
    for panel, (name, rows) in zip(panels.flat, found["axes"].items(), strict=False):
        sizes, cost, _, floor = zip(*rows, strict=True)
        panel.loglog(sizes, cost, "o-", color="#0072B2", markersize=4, label="measured")
        least = min(cost)
        if floor[0] is not None:
            panel.loglog(sizes, floor, "s--", color="#D55E00", markersize=3, label="floor")
            least = min(floor)
        panel.set_xlabel(name, fontsize=8)
        panel.set_title(f"exponent {exponent(rows):.2f}", fontsize=8)
        panel.set_ylim(least / 2, max(cost) * 2)
        panel.tick_params(labelsize=7)
        if max(cost) < 30 * least:
            panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        if max(sizes) < 100:
            panel.set_xticks(sizes)
        for axis in (panel.xaxis, panel.yaxis):
            if max(sizes if axis is panel.xaxis else cost) < 10**4:
                axis.set_major_formatter("{x:g}")
        panel.minorticks_off()
        panel.grid(alpha=0.3, which="major")
    for panel in panels[:, 0]:
        panel.set_ylabel("CPU µs per trial", fontsize=8)
    told, ns = found["machine"], found["ns"]
    last = panels.flat[-1]
    last.axis("off")
    last.legend(*panels.flat[0].get_legend_handles_labels(), loc="upper left", fontsize=8)
    words = (
        "CDP-MAB, M = 50, K = 100,\nT = 10⁶, ε = 1 where an axis\nsays nothing else.\n"
        f"Medians of {TURNS}, {told['cores']} cores.\n"
        "Floor: the numbers drawn,\n"
        f"{ns['sum of rewards']:.0f} ns a sum of rewards,\n"
        f"{ns['sum of noise']:.0f} ns one of noise.\n"
        "Exponent: last three points."
    )
    last.text(0.0, 0.62, words, fontsize=7, va="top", transform=last.transAxes)
    figure.savefig(FIGURE, dpi=200)


def main() -> None:
    """Measures and writes, unless asked to draw alone; draws."""
    if sys.argv[1:] != ["--draw"]:
        JSON.write_text(json.dumps(measured(), indent=1) + "\n")
    drawn(json.loads(JSON.read_text()))


if __name__ == "__main__":
    main()
