"""The tables of docs/performance.md, from the figures of one run."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from experiments import runs

PAPER = "paper's instance, T = 10^6"
SUMMARY = "10^6 seeds of one configuration, summarised, T = 10^6"
COMMAND = "`fmab run cdp`"
GPU = Path(__file__).with_name("gpu.json")
BEGIN, END = "<!-- written by python -m benchmarks -->", "<!-- end -->"
# Seconds of whole programs, at most.
GOALS = {
    "first result of CDP-MAB, nothing cached": 2,
    "first result on a ring, nothing cached": 3,
    "first result of CDP-MAB, compiled before": 1.2,
    "first result on a ring, compiled before": 1.2,
}


def write_number(value: float) -> str:
    """Writes a measured number with three digits or more."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write_table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Returns the lines of a table, whose first column are words."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def write_machine(told: dict[str, Any]) -> str:
    """Says when, where, and of which code something was measured."""
    processor = ", ".join(filter(None, [told["processor"], told.get("vectors")]))
    commit = f", commit {told['commit']}" if told.get("commit") else ""
    return (
        f"{told['date']} on {told['cores']} cores ({processor}){commit}, Python {told['python']},"
        f" jax {told['jax']}, NumPy {told['numpy']}"
    )


def text(results: dict[str, Any]) -> str:
    """Returns the part of the page that comes from figures."""
    told = results["machine"]
    lines = [
        f"Measured on {write_machine(told)}; medians of {results['turns']} turns, longer programs"
        " once. Rivals run in as many processes as there are cores, where nothing else is said.",
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
    lines += [*write_table(head, rows), "", "### Whole programs", ""]
    rows = [
        [name, f"{statistics.median(found['seconds']):.1f}", str(GOALS.get(name, ""))]
        for name, found in results["programs"].items()
    ]
    head = ["program, from its start to its end", "seconds", "goal, at most"]
    lines += write_table(head, rows)
    lines += ["", runs.write_runs({"": (told["version"], told["date"])})]
    return "\n".join(lines)


# Rows of the README's table: a case of processors, and its name there.
SHORT = {
    "paper's instance, T = 10^6": "agents alike",
    "ratings of five levels": "ratings of five levels",
    "agents differ, p = 1": "agents differ",
    "p = 0.4": "20 of 50 agents report",
    "ring of 50": "waiting on a ring",
}
# Seeds of each case's call of `simulate` on a GPU.
GPU_SEEDS = 200_000
GPU_SUMMARY = "10^6 seeds, summarised"


def name_call(label: str) -> str:
    """Returns what a case's call of `simulate` is called among those of a GPU."""
    return f"simulate, {GPU_SEEDS:,} seeds, {label}"


def short(results: dict[str, Any], gpu: dict[str, Any] | None = None) -> str:
    """Returns the table of the README: whole calls, on processors and on a GPU."""
    gpu = gpu or json.loads(GPU.read_text(encoding="utf-8"))
    told, calls = results["machine"], gpu["calls"]
    rows = []
    for case, label in SHORT.items():
        if case not in results["cases"]:
            continue
        rate = results["cases"][case]["contenders"]["fmab_jax"]["rate"]
        again = calls.get(name_call(label), [])[1:]
        rows.append([label, f"{rate:,.0f}", _round(GPU_SEEDS / min(again)) if again else "–"])
    contenders = results["cases"][PAPER]["contenders"].items()
    (expert,) = (x["rate"] for n, x in contenders if n.startswith("expert") and "2 proc" in n)
    table = "\n".join(write_table(["case", "two CPU cores", f"one {gpu['device']}"], rows))
    commit = f", commit {told['commit']}" if told.get("commit") else ""
    summary = statistics.median(results["programs"][SUMMARY]["seconds"])
    first, *again = calls[GPU_SUMMARY]
    texts = (
        "Each figure times a whole call of `simulate` whose program was compiled before; – means"
        f" not measured yet. The cores are of one {told['processor']} ({told['date']}{commit})."
        f" Where agents are alike, an expert's NumPy script does {expert:,.0f} trials a second"
        " on them."
        f" 10^6 seeds, summarised, take {summary:.1f} s on the cores, from the start of Python,"
        f" with compiling; on the GPU {first:.1f} s for the first call of a running process, and"
        f" {min(again):.2f} s for the next.",
        _describe_command(results),
    )
    machines = {"the two cores": told, f"the {gpu['device']}": gpu}
    dates = runs.write_runs({name: (of["version"], of["date"]) for name, of in machines.items()})
    return "\n\n".join([table, *texts, dates])


def _round(value: float) -> str:
    """Writes two digits, as many as a call of some tenths of a second has."""
    return f"{float(f'{value:.2g}'):,.0f}"


def _describe_command(results: dict[str, Any]) -> str:
    """Says how long the command that users type takes."""
    cold, warm = (
        statistics.median(results["programs"][f"{COMMAND}, {state}"]["seconds"])
        for state in ("nothing compiled", "compiled before")
    )
    return (
        f"On the two cores, {COMMAND} (50 agents, 100 arms, 100 seeds, T = 10^6) takes {cold:.1f} s"
        f" from its start to its end where nothing is compiled, and {warm:.1f} s where its program"
        " was compiled before, with its figure: `fmab` stores compiled programs; in Python,"
        " `fmab.use_compilation_cache()` does."
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
