"""How the cost of a trial grows: with seeds, arms, agents, horizon and rounds; one figure.

    python -m benchmarks.scaling      # about ten minutes; writes scaling.json and docs/scaling.png

Exponents are those of the last two points of each axis.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

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
    }


def measured() -> dict[str, Any]:
    """Returns CPU microseconds a trial."""
    found: dict[str, Any] = {"machine": machine(), "axes": {}}
    for name, points in axes().items():
        rows = []
        for size, contender in points:
            running = Running(contender)
            for turn in range(TURNS + 1):
                running.turn(turn)
            row = running.end()
            rows.append([size, row["cpu_us"], 1e6 / row["rate"]])
            print(f"{name:24s} {size:12,} {row['cpu_us']:12.2f} CPU us a trial", flush=True)
        found["axes"][name] = rows
    return found


def exponent(rows: list[list[float]]) -> float:
    """Returns the slope of log cost over log size at the large end."""
    (a, x, _), (b, y, _) = rows[-2:]
    return math.log(y / x) / math.log(b / a)


def drawn(found: dict[str, Any]) -> None:
    """Draws the figure."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 3, figsize=(7.2, 4.4), layout="constrained")
    for panel, (name, rows) in zip(panels.flat, found["axes"].items(), strict=True):
        sizes, cost, _ = zip(*rows, strict=True)
        panel.loglog(sizes, cost, "o-", color="#0072B2", markersize=4)
        panel.set_xlabel(name)
        panel.set_title(f"exponent {exponent(rows):.2f} at the end", fontsize=9)
        panel.set_ylim(min(cost) / 3, max(cost) * 3)
        panel.grid(alpha=0.3, which="major")
    for panel in panels[:, 0]:
        panel.set_ylabel("CPU µs per trial")
    told = found["machine"]
    figure.suptitle(
        f"M = 50, K = 100, T = 10⁶, ε = 1 where not said otherwise; medians of {TURNS};"
        f" {told['cores']} cores",
        fontsize=9,
    )
    figure.savefig(FIGURE, dpi=200)


def main() -> None:
    """Measures, writes and draws."""
    found = measured()
    JSON.write_text(json.dumps(found, indent=1) + "\n")
    drawn(found)


if __name__ == "__main__":
    main()
