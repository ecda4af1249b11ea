"""The tables of docs/performance.md, from the figures of one run."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any, NamedTuple

PAPER = "paper's instance, T = 10^6"
BEGIN, END = "<!-- written by python -m benchmarks -->", "<!-- end -->"


class Goal(NamedTuple):
    """A goal, what was measured, and whether more is better."""

    text: str
    goal: float
    measured: float
    unit: str
    most: bool = False

    def row(self) -> list[str]:
        """Returns the goal's row."""
        ratio = self.goal / self.measured if self.most else self.measured / self.goal
        met = "met" if ratio >= 1.0 else f"not met: {ratio:.2f} of it"
        sign = "at most" if self.most else "at least"
        goal = f"{sign} {_number(self.goal)} {self.unit}"
        return [self.text, goal, f"{_number(self.measured)} {self.unit}", met]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def goals(results: dict[str, Any]) -> list[Goal]:
    """Returns the project's goals beside what was measured."""

    def rate(case: str, who: str = "fmab_jax") -> float:
        rows = results["cases"][case]["contenders"]
        return next(row["rate"] for name, row in rows.items() if name.startswith(who))

    def seconds(program: str) -> float:
        return statistics.median(results["programs"][program]["seconds"])

    ours = rate(PAPER)
    script = rate("ring of 50", "NumPy script per agent")
    return [
        Goal("agents summed out, over the expert's NumPy", 2, ours / rate(PAPER, "expert"), "x"),
        Goal("the same, final goal", 3, ours / rate(PAPER, "expert"), "x"),
        Goal("over the script per agent", 60, ours / rate(PAPER, "NumPy script per agent"), "x"),
        Goal(
            "agents that differ, over agents alike", 0.5, rate("agents differ, p = 1") / ours, "x"
        ),
        Goal("p = 0.4, over the script per agent at p = 1", 6, rate("p = 0.4") / script, "x"),
        Goal("ring of 50, over the script per agent", 4, rate("ring of 50") / script, "x"),
        Goal("agents alone, over the script per agent", 4, rate("agents alone") / script, "x"),
        Goal(
            "T = 10^9, time of T = 10^5",
            1.3,
            rate("paper's instance, T = 10^5") / rate("paper's instance, T = 10^9"),
            "x",
            most=True,
        ),
        Goal("M = 100,000, time of M = 50", 1.2, ours / rate("M = 100,000"), "x", most=True),
        Goal(
            "100 recorded slots, time of 2",
            1.05,
            rate("paper's instance, 2 recorded slots") / ours,
            "x",
            most=True,
        ),
        Goal("CDP-MAB, cold", 5, seconds("first result of CDP-MAB, nothing cached"), "s", True),
        Goal("ring, cold", 8, seconds("first result on a ring, nothing cached"), "s", True),
        Goal("CDP-MAB, warm", 2, seconds("first result of CDP-MAB, compiled before"), "s", True),
        Goal("ring, warm", 2, seconds("first result on a ring, compiled before"), "s", True),
        Goal("UCB1, K = 100", 2e6, rate("UCB1, K = 100, T = 2,000"), "agent-slots/s"),
        Goal("GosInE, K = 100", 2e6, rate("GosInE, K = 100, T = 2,000"), "agent-slots/s"),
    ]


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def text(results: dict[str, Any]) -> str:
    """Returns the part of the page that comes from figures."""
    told = results["machine"]
    lines = [
        f"Measured on {told['date']}: {told['cores']} cores ({told['processor']}), Python"
        f" {told['python']}, jax {told['jax']}, NumPy {told['numpy']}; medians of"
        f" {results['turns']} turns.",
        "",
        "### Goals",
        "",
        *_table(["goal", "wanted", "measured", ""], [goal.row() for goal in goals(results)]),
        "",
        "### Cases",
        "",
    ]
    rows = []
    for case, found in results["cases"].items():
        ours = next(iter(found["contenders"].values()))["rate"]
        for number, (name, row) in enumerate(found["contenders"].items()):
            rows.append(
                [
                    case if number == 0 else "",
                    f"**{name}**" if number == 0 else name,
                    f"{row['rate']:,.0f} {found['unit']}",
                    "" if number == 0 else f"{ours / row['rate']:.2f}",
                    f"{row['peak_bytes'] / 2**20:,.0f}",
                    f"{row['compile_s']:.1f}" if number == 0 else "",
                ]
            )
    head = ["case", "who", "speed", "fmab_jax over it", "peak MB", "compiling s"]
    lines += [*_table(head, rows), "", "### Whole programs", ""]
    rows = [
        [name, f"{statistics.median(found['seconds']):.1f}"]
        for name, found in results["programs"].items()
    ]
    lines += _table(["program, from its start to its end", "seconds"], rows)
    return "\n".join(lines)


SHORT = {
    "paper's instance, T = 10^6": "agents summed out (`cdp_mab`)",
    "agents differ, p = 1": "agents differ",
    "ratings of five levels": "ratings of five levels",
    "p = 0.4": "20 of 50 agents report",
    "ring of 50": "waiting on a ring",
    "agents alone": "agents alone",
}


def short(results: dict[str, Any]) -> str:
    """Returns the table of the README: the paper's instance at T = 10^6."""
    rows = []
    for name, row in results["cases"][PAPER]["contenders"].items():
        if name.startswith(("NumPy", "expert")) and "2 processes" in name:
            rows.append([name, f"{row['rate']:,.0f}", f"{1e3 / row['rate']:.3g}"])
    for case, label in SHORT.items():
        rate = results["cases"][case]["contenders"]["fmab_jax"]["rate"]
        rows.append([f"**fmab_jax**, {label}", f"{rate:,.0f}", f"{1e3 / rate:.3g}"])
    return "\n".join(_table(["", "trials/s", "ms per trial"], rows))


def write(results: dict[str, Any], page: Path, readme: Path) -> None:
    """Replaces the tables of the page, and that of the README."""
    _replace(page, text(results))
    _replace(readme, short(results))


def _replace(page: Path, tables: str) -> None:
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}", encoding="utf-8")
