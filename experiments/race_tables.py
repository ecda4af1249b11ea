"""Writes tables of docs/plan.md about races and plans, from race_coverage.csv and
plan_coverage.csv in figures/."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from experiments import common
from fmab_jax.analysis.bands import lost_interval

Row = Mapping[str, str]

RACE, LOOSE, EARLY = "race", "race at 80 %", "race, at most 800 seeds"
UNIFORM, HALVING, KN = "uniform", "halving", "KN"
FRESH, SAME = "mean of the answer, fresh seeds", "mean of the answer, the seeds that chose it"
MUTANT = "mutant: "


def write_coverage(rows: Sequence[Row]) -> str:
    """Returns the tables and sentences of the page."""
    by_key = {(row["problem"], row["procedure"]): row for row in rows}
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    heads = (RACE, LOOSE, UNIFORM, HALVING, KN)
    shares, costs = [], []
    for problem in problems:
        race = by_key[problem, RACE]
        start = {"problem": problem, "x": f"{100 * float(race['within']):g} %"}
        cells = {head.removeprefix("race "): by_key[problem, head] for head in heads}
        shares.append(start | {head: write_share(row) for head, row in cells.items()})
        costs.append(start | {head: f"{int(row['seeds']):,}" for head, row in cells.items()})
    mutants = [row for row in rows if row["procedure"].startswith(MUTANT)]
    parts = [
        "Share of races that end with a wrong answer, in per cent, with its 95 % interval, whose "
        "ends are rounded outwards. The race may be wrong in 5 %, and in 20 % at 80 %:",
        "\n".join(common.table_lines(shares)),
        "Mean seeds of a race, of all candidates together:",
        "\n".join(common.table_lines(costs)),
        write_sentences(rows),
        "Procedures with one mistake, on the problem that shows it:",
        "\n".join(common.table_lines([_write_mutant(row, by_key) for row in mutants])),
        write_reports(rows),
    ]
    return "\n\n".join(parts)


def write_share(row: Row, name: str = "share wrong") -> str:
    """Writes a share of a row in per cent, with its interval."""
    return write_interval(*(float(row[f"{name}{end}"]) for end in ("", ", lower", ", upper")))


def write_interval(share: float, low: float, high: float) -> str:
    """Writes a share in per cent, with its interval."""
    # An interval is never narrower than it is.
    ends = f"{math.floor(1000 * low) / 10:.1f}, {math.ceil(1000 * high) / 10:.1f}"
    return f"{100 * share:.1f} [{ends}]"


def _write_mutant(row: Row, by_key: Mapping[tuple[str, str], Row]) -> dict[str, str]:
    race = by_key[row["problem"], RACE]
    return {
        "mistake": row["procedure"].removeprefix(MUTANT),
        "problem": row["problem"],
        "wrong": write_share(row),
        "seeds": f"{int(row['seeds']):,}",
        "the race: wrong": write_share(race),
        "the race: seeds": f"{int(race['seeds']):,}",
    }


def write_sentences(rows: Sequence[Row]) -> str:
    """States how many races end, how many statements are false, and what rivals do."""
    lines = []
    for name in (RACE, LOOSE, EARLY):
        group = [row for row in rows if row["procedure"] == name]
        heads = ("races", "end with the goal", "state an x", "false statements")
        races, ends, statements, false = (sum(int(row[head]) for row in group) for head in heads)
        lines.append(
            f"* *{name[0].upper()}{name[1:]}*: {ends:,} of {races:,} end with the goal; "
            f"{races - ends:,} stop at the most seeds. {statements:,} state an x; "
            f"{false:,} of these statements are false."
        )
    rivals = {
        name: [row for row in rows if row["procedure"] == name] for name in (UNIFORM, HALVING, KN)
    }
    wrong = [
        f"{name} {sum(int(row['wrong at the goal']) for row in group):,}"
        for name, group in rivals.items()
    ]
    costs = {row["problem"]: int(row["seeds"]) for row in rows if row["procedure"] == RACE}
    ratios = [costs[row["problem"]] / int(row["seeds"]) for row in rivals[KN]]
    numbers = [int(row["races"]) for row in rivals[KN]]
    lines.append(
        f"* *Rivals*: wrong answers in {sum(numbers):,} races, {min(numbers):,} for each problem: "
        f"{', '.join(wrong)}. The race takes "
        f"{min(ratios):.1f} to {max(ratios):.1f} times the seeds of KN. It takes no difference as "
        "normal, and KN does. Uniform and halving need a number of seeds, which they get "
        "from the race."
    )
    return "\n".join(lines)


def write_reports(rows: Sequence[Row]) -> str:
    """States how the mean of the answer is stated, on fresh seeds and on those of the race."""
    fresh, same = (next(row for row in rows if row["procedure"] == name) for name in (FRESH, SAME))

    def state(row: Row) -> str:
        head = "stated mean / exact mean"
        ratio, low, high = (float(row[f"{head}{end}"]) for end in ("", ", lower", ", upper"))
        return (
            f"the stated mean over the exact one is {ratio:.4f} [{low:.4f}, {high:.4f}] on "
            f"average, and its 95 % interval holds the exact mean in "
            f"{write_share(row, 'share right')} % of the races"
        )

    return (
        f"The mean regret of an answer is stated from fresh seeds. In the problem "
        f'"{fresh["problem"]}" {state(fresh)}. If the mean were stated from the seeds that chose '
        f"the winner, it would be too small: {state(same)}."
    )


def write_plans(rows: Sequence[Row]) -> str:
    """Returns the table of whole plans, and their count."""
    lines = [
        {
            "question": row["question"],
            "candidates": row["candidates"],
            "x": f"{100 * float(row['within']):g} %",
            "within x": row["near"],
            "plans": row["plans"],
            "decided": row["decided"],
            "wrong, per cent": write_share(row),
            "trials, mean": f"{int(row['trials']):,}",
        }
        for row in rows
    ]
    plans, decided, wrong = (
        sum(int(row[head]) for row in rows) for head in ("plans", "decided", "wrong")
    )
    low, high = lost_interval(wrong, plans, common.LEVEL)
    share = write_interval(wrong / plans, low, high)
    return (
        f"{chr(10).join(common.table_lines(lines))}\n\nOf {plans:,} plans {decided:,} were "
        f"decided, and {wrong:,} statements were wrong: {share} %."
    )
