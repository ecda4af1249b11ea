"""The tables of docs/performance.md, from the figures of one run."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any, NamedTuple

from experiments import runs

PAPER = "paper's instance, T = 10^6"
SWEEP = "sweep of 100 configurations, 1,000 seeds each, T = 10^6"
SUMMARY = "10^6 seeds of one configuration, summarised, T = 10^6"
GPU = Path(__file__).with_name("gpu.json")
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
        # Two decimals would call a near miss 1.00 times.
        excess = 1 / ratio - 1
        times = f"{1 / ratio:.2f}" if excess >= 0.005 else f"{1 + float(f'{excess:.1g}'):g}"
        short = f"{times} times too {'much' if self.most else 'little'}"
        met = "met" if ratio >= 1.0 else f"not met: {short}"
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

    def megabytes(program: str) -> float:
        return float(results["programs"][program]["peak_bytes"]) / 2**20

    def over(case: str, who: str) -> float:
        return rate(case) / rate(case, who)

    def cost(case: str, other: str = PAPER) -> float:
        return rate(other) / rate(case)

    def own(case: str) -> float:
        rows = results["cases"][case]["contenders"]
        return float(rows["fmab_jax"]["cpu_us"])

    def each(case: str) -> float:
        return own(case) / own(PAPER)

    def first(what: str, cache: str) -> float:
        return seconds(f"first result {what}, {cache}")

    alike, apiece = "paper's instance, ", ", CPU time of a trial over that of agents summed out"
    script = "NumPy script per agent"
    asked = [
        ("agents summed out, over the expert", 2, lambda: over(PAPER, "expert"), "x"),
        ("agents summed out, over the expert, final goal", 3, lambda: over(PAPER, "expert"), "x"),
        ("agents summed out, over the script per agent", 60, lambda: over(PAPER, script), "x"),
        ("K = 10, over the expert", 1, lambda: over("K = 10", "expert"), "x"),
        (f"p = 0.4{apiece}", 8, lambda: each("p = 0.4"), "most"),
        ("p = 0.4, over the script, where all report", 6, lambda: over("p = 0.4", script), "x"),
        ("p = 0.2, over p = 0.4", 2, lambda: rate("p = 0.2") / rate("p = 0.4"), "x"),
        ("p = 0.1, over p = 0.4", 4, lambda: rate("p = 0.1") / rate("p = 0.4"), "x"),
        (f"p = 0.1{apiece}", 5, lambda: each("p = 0.1"), "most"),
        (f"ring of 50{apiece}", 8, lambda: each("ring of 50"), "most"),
        ("ring of 50, over the expert per agent", 2.5, lambda: over("ring of 50", "expert"), "x"),
        ("ring of 50, over the script, no waits", 4, lambda: over("ring of 50", script), "x"),
        (f"agents differ{apiece}", 3, lambda: each("agents differ, p = 1"), "most"),
        (f"agents alone{apiece}", 25, lambda: each("agents alone"), "most"),
        (
            "agents alone, over the script, which reports to a server",
            2.5,
            lambda: over("agents alone", script),
            "x",
        ),
        (
            "T = 10^9, time over that of T = 10^5",
            1.3,
            lambda: cost(alike + "T = 10^9", alike + "T = 10^5"),
            "most",
        ),
        ("M = 100,000, time over M = 50", 1.2, lambda: cost("M = 100,000"), "most"),
        (
            "100 recorded slots, time over that of 2",
            1.05,
            lambda: cost(PAPER, alike + "2 recorded slots"),
            "most",
        ),
        ("UCB1 pooled, over NumPy", 1, lambda: over("UCB1 pooled, K = 100, T = 2,000", "Num"), "x"),
        ("UCB1, K = 100", 2e6, lambda: rate("UCB1, K = 100, T = 2,000"), "agent-slots/s"),
        ("GosInE, K = 100", 2e6, lambda: rate("GosInE, K = 100, T = 2,000"), "agent-slots/s"),
        ("first result of CDP-MAB, cold", 4, lambda: first("of CDP-MAB", "nothing cached"), "s"),
        ("first result on a ring, cold", 6, lambda: first("on a ring", "nothing cached"), "s"),
        ("first result of CDP-MAB, warm", 2, lambda: first("of CDP-MAB", "compiled before"), "s"),
        ("first result on a ring, warm", 2.5, lambda: first("on a ring", "compiled before"), "s"),
        ("sweep of 100 configurations, 1,000 seeds each", 12, lambda: seconds(SWEEP), "s"),
        ("10^6 seeds, summarised", 15, lambda: seconds(SUMMARY), "s"),
        ("10^6 seeds, summarised, memory", 1e9 / 2**20, lambda: megabytes(SUMMARY), "MB"),
    ]
    found = []
    for text, goal, measured, unit in asked:
        try:
            value = measured()
        except KeyError:  # not a case of this run
            continue
        found.append(
            Goal(text, goal, value, unit.replace("most", "x"), unit in ("s", "MB", "most"))
        )
    return found


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def text(results: dict[str, Any]) -> str:
    """Returns the part of the page that comes from figures."""
    told = results["machine"]
    lines = [
        f"Measured on {told['date']}: {told['cores']} cores ({told['processor']}), Python"
        f" {told['python']}, jax {told['jax']}, NumPy {told['numpy']}; medians of"
        f" {results['turns']} turns, longer programs once. Rivals run in as many processes as"
        " there are cores, where nothing else is said.",
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
    lines += ["", runs.write_runs({"": (told["version"], told["date"])})]
    return "\n".join(lines)


# Rows of the README's table: a case of processors, and the same case on a GPU.
SHORT = {
    "paper's instance, T = 10^6": "agents alike",
    "ratings of five levels": "ratings of five levels",
    "agents differ, p = 1": "agents differ",
    "p = 0.4": "20 of 50 agents report",
    "ring of 50": "waiting on a ring",
}


def short(results: dict[str, Any], gpu: dict[str, Any] | None = None) -> str:
    """Returns the table of the README: the paper's instance, on processors and on a GPU."""
    gpu = gpu or json.loads(GPU.read_text(encoding="utf-8"))
    rows = []
    for case, label in SHORT.items():
        if case not in results["cases"]:
            continue
        rate = results["cases"][case]["contenders"]["fmab_jax"]["rate"]
        rows.append([label, f"{rate:,.0f}", f"{gpu['cases'][label]['trials_per_s']:,.0f}"])
    contenders = results["cases"][PAPER]["contenders"].items()
    (expert,) = (x["rate"] for n, x in contenders if n.startswith("expert") and "2 proc" in n)
    table = "\n".join(_table(["fmab_jax", "two CPU cores", f"one {gpu['device']}"], rows))
    scripts = (
        f"Where agents are alike, an expert's NumPy script does {expert:,.0f} trials a second on "
        f"the two cores, and a plain JAX script {gpu['rival']['trials_per_s']:,.0f} on the GPU."
    )
    machines = {"the two cores": results["machine"], f"the {gpu['device']}": gpu}
    dates = runs.write_runs({name: (of["version"], of["date"]) for name, of in machines.items()})
    return f"{table}\n\n{scripts} {_first(results)} {dates}"


def _first(results: dict[str, Any]) -> str:
    """Says how long a fresh process takes to its first result."""
    found = []
    for end in ("nothing cached", "compiled before"):
        seconds = [
            statistics.median(each["seconds"])
            for name, each in results["programs"].items()
            if name.startswith("first result") and name.endswith(end)
        ]
        found.append(f"{min(seconds):.1f} to {max(seconds):.1f} s")
    return (
        f"On the two cores, the first result of a fresh process takes {found[0]}, depending on the "
        "algorithm, where nothing is cached (50 agents, 100 arms, 100 seeds), and "
        f"{found[1]} where the program was compiled before: `fmab` stores compiled programs; in "
        "Python, `fmab.use_compilation_cache()` does."
    )


def write(results: dict[str, Any], page: Path, readme: Path) -> None:
    """Replaces the tables of the page, and that of the README."""
    replace(page, text(results))
    replace(readme, short(results))


def replace(page: Path, tables: str, begin: str = BEGIN) -> None:
    """Replaces the tables of a page that a line begins."""
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{begin}\n\n{tables}\n\n{END}{after}", encoding="utf-8")
