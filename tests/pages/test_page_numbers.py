"""Numbers of README.md and of docs/ that come from results, against the files that hold them.

Of each section below every number is held against a file, or is listed as a constant with a reason.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pages import reader
from sizes import LARGE

import fmab_jax as fmab
from fmab_jax.analysis.privacy import laplace_sum_epsilon

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "figures"
ANY = r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
POWER = {10_000: "10⁴", 100_000: "10⁵", 1_000_000: "10⁶"}


class Source(NamedTuple):
    """A place of a page, and where its numbers are from.

    Attributes:
        section: The page, and the head of the section.
        pattern: What stands there, once; each named group is a number. What follows 10 goes too.
        values: Returns the value of each group, from files.
        instead: Where one of several sentences may stand there: the name that they share.
    """

    section: str
    pattern: str
    values: Callable[[], Mapping[str, float]]
    instead: str = ""


@cache
def rows_of(name: str) -> list[dict[str, str]]:
    """Returns the rows of a table in figures/."""
    return reader.rows_of(FIGURES / f"{name}.csv")


def column(name: str, head: str, **where: str) -> list[float]:
    """Returns a column of a table in figures/, of the rows that have these values or starts."""
    found = [
        float(row[head])
        for row in rows_of(name)
        if all(_fits(row[key.replace("_", " ")], text) for key, text in where.items())
    ]
    assert found, (name, head, where)
    return found


def _fits(cell: str, text: str) -> bool:
    return cell.startswith(text[:-1]) if text.endswith("*") else cell == text


def claim(quote: str, quantity: str, head: str = "estimate", **where: str) -> list[float]:
    """Returns what is measured of the first row of the claims with this quotation."""
    rows = rows_of("claims")
    first = next((row["row"] for row in rows if _fits(row["quote"], quote)), "")
    return column("claims", head, row=first, quantity=quantity, **where)


def three(name: str, head: str, **where: str) -> list[float]:
    """Returns a number with the ends of its interval."""
    found = [column(name, f"{head}{end}", **where) for end in ("", ", lower", ", upper")]
    return [number for (number,) in found]


def numbered(texts: Iterable[float], start: str = "n") -> dict[str, float]:
    return {f"{start}{place}": value for place, value in enumerate(texts)}


def group(*names: str) -> list[str]:
    return [f"(?P<{name}>{ANY})" for name in names]


def triple(start: str) -> str:
    return "{} \\[{}, {}\\]".format(*group(*(f"{start}{i}" for i in range(3))))


# --- benchmarks ---

SPEED = "docs/performance.md: Speed"
README = "README.md: Speed"


@cache
def results() -> dict[str, Any]:
    return json.loads((ROOT / "benchmarks" / "results.json").read_text("utf-8"))


def rate(case: str, who: str = "fmab_jax") -> float:
    rows = results()["cases"][case]["contenders"]
    return next(row["rate"] for name, row in rows.items() if name.startswith(who))


def seconds(program: str) -> float:
    return statistics.median(results()["programs"][program]["seconds"])


def speeds() -> Iterable[Source]:
    """Says where the tables of speeds are from."""
    told, cases = results()["machine"], results()["cases"]
    head = (
        f"Measured on {told['date']}: {told['cores']} cores ({told['processor']}), Python "
        f"{told['python']}, jax {told['jax']}, NumPy {told['numpy']}; medians of "
        f"{results()['turns']} turns"
    )
    yield Source(SPEED, re.escape(head), dict)
    for case, found in cases.items():
        lines, values = [], {}
        ours = next(iter(found["contenders"].values()))["rate"]
        for i, (who, row) in enumerate(found["contenders"].items()):
            name = re.escape(who)
            speed, times, peak, compiling = group(f"rate{i}", f"times{i}", f"peak{i}", "compiling")
            unit = re.escape(found["unit"])
            if i == 0:
                start = rf"\| {re.escape(case)} \| \*\*{name}\*\*"
                lines.append(rf"{start} \| {speed} {unit} \|  \| {peak} \| {compiling} \|")
                values["compiling"] = row["compile_s"]
            else:
                lines.append(rf"\|  \| {name} \| {speed} {unit} \| {times} \| {peak} \|  \|")
                values[f"times{i}"] = ours / row["rate"]
            values |= {f"rate{i}": row["rate"], f"peak{i}": row["peak_bytes"] / 2**20}
        yield Source(SPEED, "\n".join(lines), lambda values=values: values)
    for program in results()["programs"]:
        pattern = rf"\| {re.escape(program)} \| {group('n')[0]} \|"
        yield Source(SPEED, pattern, lambda program=program: {"n": seconds(program)})
    paper = "paper's instance, T = 10^6"
    for who in cases[paper]["contenders"]:
        if "2 processes" in who:
            yield short(re.escape(who), rate(paper, who))
    for label, case in (
        (r"agents summed out \(`cdp_mab`\)", paper),
        ("agents differ", "agents differ, p = 1"),
        ("ratings of five levels", "ratings of five levels"),
        ("20 of 50 agents report", "p = 0.4"),
        ("5 of 50 agents report", "p = 0.1"),
        ("waiting on a ring", "ring of 50"),
        ("agents alone", "agents alone"),
    ):
        yield short(rf"\*\*fmab_jax\*\*, {label}", rate(case))
    new = [seconds(f"first result {of}, nothing cached") for of in ("of CDP-MAB", "on a ring")]
    old = [seconds(f"first result {of}, compiled before") for of in ("of CDP-MAB", "on a ring")]
    a, b, c, d = group("n0", "n1", "n2", "n3")
    yield Source(
        README,
        rf"takes {a} to {b} s where nothing is cached \(50 agents, 100 arms, 100 seeds\), and {c} "
        rf"to {d} s where the program was compiled before",
        lambda: numbered([min(new), max(new), min(old), max(old)]),
    )


def short(label: str, each: float) -> Source:
    pattern = rf"\| {label} \| {group('rate')[0]} \| {group('ms')[0]} \|"
    return Source(README, pattern, lambda: {"rate": each, "ms": 1e3 / each})


def goals() -> Iterable[Source]:
    """Says where the goals are from: what was measured, and by how much it falls short."""
    paper = rate("paper's instance, T = 10^6")
    first = "first result {}, {}".format
    of_trial = "CPU time of a trial over that of agents summed out"
    pooled = "UCB1 pooled, K = 100, T = 2,000"
    expert = paper / rate("paper's instance, T = 10^6", "expert")

    def over_script(case: str) -> float:
        return rate(case) / rate(case, "NumPy script per agent")

    def cpu(case: str) -> float:
        one, other = (
            results()["cases"][each]["contenders"]["fmab_jax"]["cpu_us"]
            for each in (case, "paper's instance, T = 10^6")
        )
        return one / other

    summary = "10^6 seeds of one configuration, summarised, T = 10^6"
    peak = results()["programs"][summary]["peak_bytes"] / 2**20
    for label, least, unit, found in (
        ("10^6 seeds, summarised, memory", False, "MB", peak),
        ("p = 0.2, over p = 0.4", True, "x", rate("p = 0.2") / rate("p = 0.4")),
        ("p = 0.1, over p = 0.4", True, "x", rate("p = 0.1") / rate("p = 0.4")),
        ("agents summed out, over the expert", True, "x", expert),
        ("agents summed out, over the expert, final goal", True, "x", expert),
        (
            "agents summed out, over the script per agent",
            True,
            "x",
            over_script("paper's instance, T = 10^6"),
        ),
        ("p = 0.4, over the script, where all report", True, "x", over_script("p = 0.4")),
        ("ring of 50, over the script, no waits", True, "x", over_script("ring of 50")),
        (
            "agents alone, over the script, which reports to a server",
            True,
            "x",
            over_script("agents alone"),
        ),
        ("K = 10, over the expert", True, "x", rate("K = 10") / rate("K = 10", "expert")),
        (f"p = 0.4, {of_trial}", False, "x", cpu("p = 0.4")),
        (f"p = 0.1, {of_trial}", False, "x", cpu("p = 0.1")),
        (f"ring of 50, {of_trial}", False, "x", cpu("ring of 50")),
        (
            "ring of 50, over the expert per agent",
            True,
            "x",
            rate("ring of 50") / rate("ring of 50", "expert NumPy per agent"),
        ),
        (f"agents differ, {of_trial}", False, "x", cpu("agents differ, p = 1")),
        (f"agents alone, {of_trial}", False, "x", cpu("agents alone")),
        (
            "T = 10^9, time over that of T = 10^5",
            False,
            "x",
            rate("paper's instance, T = 10^5") / rate("paper's instance, T = 10^9"),
        ),
        ("M = 100,000, time over M = 50", False, "x", paper / rate("M = 100,000")),
        (
            "100 recorded slots, time over that of 2",
            False,
            "x",
            rate("paper's instance, 2 recorded slots") / paper,
        ),
        ("UCB1 pooled, over NumPy", True, "x", rate(pooled) / rate(pooled, "NumPy")),
        ("UCB1, K = 100", True, "agent-slots/s", rate("UCB1, K = 100, T = 2,000")),
        ("GosInE, K = 100", True, "agent-slots/s", rate("GosInE, K = 100, T = 2,000")),
        (
            "first result of CDP-MAB, cold",
            False,
            "s",
            seconds(first("of CDP-MAB", "nothing cached")),
        ),
        ("first result on a ring, cold", False, "s", seconds(first("on a ring", "nothing cached"))),
        (
            "first result of CDP-MAB, warm",
            False,
            "s",
            seconds(first("of CDP-MAB", "compiled before")),
        ),
        (
            "first result on a ring, warm",
            False,
            "s",
            seconds(first("on a ring", "compiled before")),
        ),
        (
            "sweep of 100 configurations, 1,000 seeds each",
            False,
            "s",
            seconds("sweep of 100 configurations, 1,000 seeds each, T = 10^6"),
        ),
        (
            "10^6 seeds, summarised",
            False,
            "s",
            seconds("10^6 seeds of one configuration, summarised, T = 10^6"),
        ),
    ):
        yield goal(label, "least" if least else "most", unit, found)


def goal(label: str, end: str, unit: str, found: float) -> Source:
    """Returns a goal's row; whether it is met follows from the numbers that it prints itself."""
    text = (ROOT / "docs" / "performance.md").read_text("utf-8")
    (wanted,) = re.findall(rf"^\| {re.escape(label)} \| at \w+ ({ANY}) ", text, re.M)
    over = found / reader.number(wanted)
    start = rf"\| {re.escape(label)} \| at {end} {wanted} {unit} \| {group('n')[0]} {unit} \| "
    if over >= 1 if end == "least" else over <= 1:
        return Source(SPEED, rf"{start}met \|", lambda: {"n": found})
    word, times = ("little", 1 / over) if end == "least" else ("much", over)
    ending = rf"not met: {group('short')[0]} times too {word} \|"
    return Source(SPEED, start + ending, lambda: {"n": found, "short": times})


# --- docs/reproduction.md ---

AUDIT = "docs/privacy_audit.md: What it finds"
OPEN = "docs/reproduction.md: What changes under another reading"
FOUND = "docs/reproduction.md: What was found"
ALIKE, APART = (
    f"components weigh the same, not agents: case 2, agents {w}" for w in ("alike", "apart")
)
SIXTEENTH = "schedule built for gap 1/16, not the instance's own: R = "
RING = "the Ring graph incurs larger regret"
NOISE = r"$\epsilon=1$ indicates the non-private case"
ABOUT = r"we need about $ \log(T) \approx 4$ communication rounds*"
BEFORE = "before eliminating all suboptimal arms"
PART = "reached $1/M$ of the single-agent performance"
LOST = r"$\Pr\{E_R\} \geq 1- \frac{1}{T}$"
RIGHT = "identify the best arm after the $R$-th communication round*"


def delays() -> dict[str, float]:
    own = {"other_reading": "wait d_G*"}
    adds = column("readings", "difference", **own)
    regret = column("readings", "regret, usual reading", **own)
    return numbered([min(adds), max(adds), min(regret), max(regret)])


def weights() -> dict[str, float]:
    return {
        **numbered(three("readings", "difference", other_reading=ALIKE, T="10000"), "a"),
        **numbered(three("readings", "difference", other_reading=APART, T="10000"), "b"),
        **numbered(three("readings", "difference", other_reading=APART, T="1000000"), "c"),
    }


def budgets() -> dict[str, float]:
    own, other = (
        [
            column("readings", f"regret, {which} reading", other_reading=SIXTEENTH + R, T="10000")[
                0
            ]
            for R in "45"
        ]
        for which in ("usual", "other")
    )
    more = [100 * (four / five - 1) for four, five in (own, other)]
    return numbered([own[0], other[0], *more])


def waits() -> dict[str, float]:
    found = {}
    for start, epsilon in (("a", "1"), ("b", "0.1"), ("c", "0.02")):
        name = f"waits go by the noisy means: ring, ε = {epsilon}"
        own = three("readings", "difference", other_reading=name, T="10000")
        found |= numbered(own, start)
    return found


def components() -> dict[str, float]:
    head = "cost a round, links counted by edges"
    cost = {case: column("table2_hybrid", head, case=case)[0] for case in "12345"}
    over = [cost["3"] / cost[case] for case in "1245"]
    return {"low": min(over), "high": max(over)}


def printed_sizes() -> dict[str, float]:
    """Returns the costs of table II's case 2 with the sizes that the paper prints."""
    sizes, links = (63, 24, 10, 6, 7), 5 * 50
    edges = sum(n * (n - 1) // 2 for n in sizes)
    return {"agents": sum(sizes), "edges": edges + links, "hops": sum(sizes) - 5 + links}


def percents(found: Iterable[float]) -> dict[str, float]:
    many = [100 * each for each in found]
    return {"low": min(many), "high": max(many)}


def doubled() -> dict[str, float]:
    """Returns the ε at which noise doubles regret, straight in logarithms between two points."""
    found = []
    for horizon in POWER:
        own = {"structure": "CDP, p = 1", "T": str(horizon)}
        rows = rows_of("maps_leak")
        points = [
            (float(row["leak"]) / 50, float(row["over no noise"]))
            for row in rows
            if all(row[key] == text for key, text in own.items()) and row["leak"] != "none"
        ]
        pairs = zip(points, points[1:], strict=False)
        ((one, other),) = [(a, b) for a, b in pairs if a[1] >= 2 > b[1]]
        slope = math.log(other[0] / one[0]) / math.log(other[1] / one[1])
        found.append(one[0] * (2 / one[1]) ** slope)
    return numbered(found)


def summed(scale: float, delta: float) -> float:
    """Returns what hides a reward in the sum of 50 Laplace variables, up to delta."""
    return laplace_sum_epsilon(50, scale, delta)


def misled() -> dict[str, float]:
    rows = rows_of("claims")
    first = next(row["row"] for row in rows if _fits(row["quote"], RIGHT))
    found = [
        float(row["estimate"])
        for row in rows
        if row["row"] == first
        and "gap 1/16" in row["condition"]
        and re.fullmatch(r"R = \d", row["quantity"])
    ]
    return percents(1 - each for each in found)


def bounds() -> dict[str, float]:
    rows = rows_of("claims")
    over = [float(r["estimate"]) for r in rows if r["quantity"].endswith("bound / regret")]
    ends = {"estimate": claim(LOST, "lost"), "upper": claim(LOST, "lost", "upper")}
    return {
        "low": min(over),
        "high": max(over),
        "found": sum(each > 0 for each in ends["estimate"]),
        "of": len(ends["estimate"]),
        "most": max(ends["upper"]),
    }


def worse() -> dict[str, float]:
    (found,) = claim(
        "not worse than the non-communication case",
        "over agents alone",
        condition="T = 10⁶, p = 0.2 and R = 2",
    )
    return {"n": 100 * found}


def excluded() -> dict[str, float]:
    rows = [row for row in rows_of("maps_pairs") if row["R"] != "none"]
    (own,) = (r for r in rows if (r["T"], r["p"], r["R"]) == ("1000000", "0.2", "2"))
    least = float(own["R of Remark 2"])
    assert least == pytest.approx(4 * math.log(1e6) / (3 * math.log(0.2 * 50)))
    promised = [row for row in rows if float(row["R"]) >= float(row["R of Remark 2"])]
    more = sum(float(row["over agents alone, lower"]) > 1 for row in promised)
    return {**worse(), "least": least, "more": more, "of": len(promised)}


def elimination() -> dict[str, float]:
    """Returns rounds and shares of the seeds with one arm left, by horizon."""
    found = {}
    for i, power in enumerate(POWER.values()):
        own = {"condition": f"T = {power}"}
        quote = r"we need about $ \log(T) \approx 4$ communication rounds before*"
        found[f"r{i}"] = claim(quote, "rounds", **own)[0]
        found[f"s{i}"] = 100 * claim(quote, "ever", **own)[0]
    return found


def largest_bound() -> dict[str, float]:
    """Returns the bound of an event that all runs show, and none of the others.

    The chance of 10⁻⁶ is for two Clopper-Pearson limits, and for both orders of the data sets.
    """
    runs, level = 2_000_000, 1e-6 / 4
    return {"n": math.log(level ** (1 / runs) / (1 - level ** (1 / runs)))}


def at_horizons(text: str, start: str) -> str:
    """Returns a text three times, with the number and the horizon of each."""
    return ", ".join(
        text.format(n=group(f"{start}{i}")[0], T=f"T = {power}", i=i)
        for i, power in enumerate(POWER.values())
    )


E4 = "T = 10⁴"
N, LOW, HIGH = group("n", "low", "high")
G = group("n0", "n1", "n2", "n3")
PAGES: tuple[Source, ...] = (
    Source(
        OPEN,
        rf"Waiting d_G slots a round instead of d_G - 1 adds {G[0]} to {G[1]} to a regret of "
        rf"{G[2]} to {G[3]}, on the complete graph, the star and the ring",
        delays,
    ),
    Source(
        OPEN,
        rf"\(the print of algorithm 5, line 15\) rather than every agent, case 2 loses little with "
        rf"agents alike: {triple('a')} at {E4}; at T = 10⁵ and 10⁶ the interval holds 0\. With "
        rf"agents apart it is biased: {triple('b')} at {E4}, {triple('c')} at 10⁶\.",
        weights,
    ),
    Source(
        OPEN,
        rf"This decides figure 6\. With the instance's own smallest gap, R = 4 has a regret of "
        rf"{G[0]} at {E4}, with 1/16 it has {G[1]}: most instances have a gap near 10⁻² or below, "
        r"whose schedule explores so long in its first epochs that little is left to save\. R = 4 "
        rf"has {G[2]} % more regret than R = 5 with the one, {G[3]} % with the other",
        budgets,
    ),
    Source(
        OPEN,
        rf"on the ring adds {triple('a')} at ε = 1; {triple('b')} at ε = 0\.1; {triple('c')} at "
        rf"ε = 0\.02, at {E4}\.",
        waits,
    ),
    Source(OPEN, rf"By edges, case 3 costs {LOW} to {HIGH}\s+times the hybrid cases", components),
    Source(
        OPEN,
        r"for a complete graph of 100 needs (?P<hops>\d+) hops and one server link",
        lambda: {
            "hops": column(
                "table2_hybrid", "links a round, counted by hops to the sink", case="3", T="10000"
            )[0]
        },
    ),
    Source(
        OPEN,
        r"with (?P<agents>\d+) agents, would cost (?P<edges>\d+) \(edges\) or (?P<hops>\d+) "
        r"\(hops\)",
        printed_sizes,
    ),
    Source(
        FOUND,
        rf"a ring has {LOW} to {HIGH} % more regret than the complete graph",
        lambda: percents(claim(RING, "ring over complete")),
    ),
    Source(
        FOUND,
        rf"At ε = 1 noise costs {LOW} to {HIGH} % of the regret",
        lambda: percents(claim(NOISE, "")),
    ),
    Source(FOUND, "It doubles the regret " + at_horizons(r"at ε = {n} \({T}\)", "n"), doubled),
    Source(
        FOUND,
        r"log10 T rounds, the four of the paper at T = 10⁴: " + at_horizons("{n} % at {T}", "n"),
        lambda: numbered(100 * each for each in claim(BEFORE, "")),
        "rounds",
    ),
    Source(
        FOUND,
        r"Seeds with one arm left have made "
        + at_horizons(r"{n} rounds at {T} \((?P<s{i}>[\d.]+) % of the seeds\)", "r"),
        elimination,
        "rounds",
    ),
    Source(
        FOUND,
        r"For M = 5 they have " + at_horizons("{n} times its regret at {T}", "n"),
        lambda: numbered(claim(PART, "of M = 5:")),
    ),
    Source(
        FOUND,
        rf"A budget that is built for a gap of 1/16 leaves {LOW} to {HIGH} % of the runs",
        misled,
    ),
    Source(
        FOUND,
        rf"at T = 10⁶, p = 0\.2 and R = 2 regret is {N} % larger than that of agents alone\.",
        worse,
        "worse",
    ),
    Source(
        FOUND,
        rf"at T = 10⁶, p = 0\.2 and R = 2 regret is {N} % larger than that of agents alone, which "
        r"Remark 2 excludes \(it asks for R ≥ (?P<least>[\d.]+)\); where it promises no more "
        r"regret, (?P<more>none|\d+) of (?P<of>\d+) pairs",
        excluded,
        "worse",
    ),
    Source(
        FOUND,
        rf"Bounds with explicit constants are {LOW} to {HIGH} times the mean regret\. "
        r"(?P<found>\d+) of (?P<of>\d+) searches found a seed that lost the best arm; they bound "
        r"its probability by (?P<most>[\d.e-]+)\.",
        bounds,
    ),
    # --- docs/privacy.md ---
    Source(
        "docs/privacy.md: Who sees what",
        r"outsider (?P<outside>[\d.]+) in place of (?P<message>\d+) at \$\\delta = 10\^\{-6\}\$\. "
        r"An agent of the sum takes out its own noise, and (?P<agent>[\d.]+) is left",
        lambda: {
            "outside": column("arena_ledger", "ε up to δ", algorithm="CDP-MAB", sees="actions")[0],
            "message": column("arena_ledger", "ε", algorithm="CDP-MAB", sees="actions")[0],
            "agent": column("arena_ledger", "ε up to δ", algorithm="CDP-MAB", sees="sums*")[0],
        },
    ),
    Source(
        "docs/privacy.md: What epsilon promises",
        r"At \$\\varepsilon = 0\.1\$ probabilities differ by\s+at most (?P<share>\d+) %, and at "
        r"\$\\varepsilon = 1\$ by a factor of at most (?P<factor>[\d.]+)\.",
        lambda: {"share": 100 * (math.exp(0.1) - 1), "factor": math.e},
    ),
    Source(
        "docs/privacy.md: What epsilon promises",
        r"With \$N = 50\$ and a message that leaks 5, one reward leaks (?P<one>[\d.]+) up to\s+"
        r"\$\\delta = 10\^\{-6\}\$\. Two rewards leak (?P<two>[\d.]+), not twice "
        r"(?P<again>[\d.]+), which is (?P<twice>[\d.]+)\.",
        lambda: {
            "one": summed(1 / 5, 1e-6),
            "two": summed(1 / 10, 1e-6),
            "again": summed(1 / 5, 1e-6),
            "twice": 2 * summed(1 / 5, 1e-6),
        },
    ),
    *(
        Source(
            "docs/privacy.md: Who sees what",
            rf"\| {leak} \| (?P<a>[\d.]+) \| (?P<b>[\d.]+) \| (?P<c>[\d.]+) \|",
            lambda leak=leak: {
                name: summed(1 / leak, delta)
                for name, delta in zip("abc", (1e-6, 1e-9, 1e-12), strict=True)
            },
        )
        for leak in (50, 5, 1)
    ),
    # --- docs/privacy_audit.md ---
    Source(
        "docs/privacy_audit.md: What is done",
        rf"\*\*Runs\.\*\* {N} for each data set",
        lambda: {"n": max(column("audit_mechanisms", "runs"))},
    ),
    Source(
        AUDIT,
        rf"Of\s+messages there are {G[0]} runs, of most others {G[1]}, of those that take longest "
        rf"{G[2]};",
        lambda: numbered(
            [
                *set(column("audit_mechanisms", "runs", view="messages")),
                statistics.mode(
                    float(row["runs"])
                    for row in rows_of("audit_mechanisms")
                    if row["view"] != "messages"
                ),
                min(column("audit_mechanisms", "runs")),
            ]
        ),
    ),
    Source(
        "docs/privacy_audit.md: What is done",
        rf"From 2,000,000 runs no finite bound above\s+{N} can come",
        largest_bound,
    ),
)


# --- whole tables, and counts of a table ---


class Whole(NamedTuple):
    """A table of a page that is columns of a CSV file, cell by cell."""

    section: str
    head: str
    name: str


WHOLE = (
    Whole(AUDIT, "| mechanism | who | seen |", "audit_mechanisms"),
    Whole(AUDIT, "| mechanism | who | sees |", "audit_unseen"),
)
MANY = "docs/reproduction.md: A multiverse"
AXES = {"T": "T", "the gap": "gap", "the instance": "instance", "the delay": "delay"}
AXES["the meter"] = "meter"


def multiverse() -> Iterable[Source]:
    """Says where the counts of readings are from, and each sentence that holds in some."""
    by: dict[str, list[dict[str, str]]] = {}
    for row in rows_of("multiverse"):
        by.setdefault(row["number"], []).append(row)
    holds = {n: sum(row["verdict"] == "holds" for row in rows) for n, rows in by.items()}
    some = [n for n, rows in by.items() if 0 < holds[n] < len(rows)]
    counts = {
        "of": len(by),
        "all": sum(holds[n] == len(rows) for n, rows in by.items()),
        "some": len(some),
        "none": sum(not many for many in holds.values()),
        "fail": sum({r["verdict"] for r in rows} == {"does not hold"} for rows in by.values()),
    }
    for kind, passed in (("sure", {"not decided"}), ("all", set())):
        for axis in AXES.values():
            counts[f"{kind}_{axis}"] = sum(_turned(rows, axis, passed) for rows in by.values())
    # The choice that turns most comes first.
    turns = [
        rf"{words} in {group(f'{kind}_{axis}')[0]}"
        for kind in ("sure", "all")
        for words, axis in sorted(AXES.items(), key=lambda item: -counts[f"sure_{item[1]}"])
    ]
    yield Source(
        MANY,
        r"Of (?P<of>\d+) sentences (?P<all>\d+) hold in every reading tried, (?P<some>\d+) in "
        r"some, (?P<none>\d+) in none; (?P<fail>\d+) fail in every reading tried\. Sentences that "
        "one choice turns from one decided verdict into another, all others alike: "
        rf"{', '.join(turns[:5])}\. "
        r"What more seeds would decide is no turn there; with “not decided” as a verdict of its "
        rf"own: {', '.join(turns[5:])}\.",
        lambda: counts,
    )
    for n in some:
        first = by[n][0]
        # A quotation that is a formula stands between dollars.
        quote = rf"“\$?{re.escape(first['quote'])}\$?”"
        start = (
            rf"\| {re.escape(first['section'])} \| {quote} \| {re.escape(first['measured'])} \| "
        )
        choices = ", ".join(
            axis
            for axis in ("T", "gap", "instance", "delay", "meter")
            if len({row[axis] for row in by[n]}) > 1
        )
        yield Source(
            MANY,
            rf"{start}{choices} \| (?P<holds>\d+) of (?P<of>\d+) \|",
            lambda n=n: {"holds": holds[n], "of": len(by[n])},
        )


def _turned(rows: list[dict[str, str]], axis: str, passed: set[str]) -> bool:
    """Tells whether this choice alone changes the verdict of a sentence."""
    alike: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        others = tuple(row[each] for each in AXES.values() if each != axis)
        # What more seeds, or a test of more than a consequence, would decide.
        open_ = row["verdict"] in ("not contradicted", "not proved")
        alike.setdefault(others, set()).add("not decided" if open_ else row["verdict"])
    return any(len(verdicts - passed) > 1 for verdicts in alike.values())


# --- constants ---

COUNTED = r"[\d⁰¹²³⁴⁵⁶⁷⁸⁹⁻][\d,.⁰¹²³⁴⁵⁶⁷⁸⁹⁻]*"
INTRO, PAPER, ARENA = (
    f"README.md: {head}" for head in ("fmab_jax", "The paper, reproduced and judged", "The arena")
)
RELY = "README.md: What you can rely on"
SHARES = "docs/performance.md: Where the time goes"
CONSTANTS: dict[str, tuple[tuple[str, str], ...]] = {
    INTRO: (
        (r"JSAC 40\(3\),\s+2022, \[arXiv 2111\.01570\]", "where the paper is"),
        (r"total variation of 1e-6", "asked by the tests of samplers"),
        (r"50 agents, 100 arms, four levels of privacy, 1000 trials", "what the command asks for"),
        (r"simultaneous 95 %", "the level of the bands"),
        (r"ten minutes on two cores", "how long the tests take: no file keeps it"),
        (r"Python 3\.11", "of pyproject.toml"),
        (r"`\.\[cuda1[23]\]`", "names of extras"),
        (r"ε = 0\.1, 0\.3, 0\.5 and 1, of which a message leaks Nε = 5, 15, 25 and 50", "50 ε"),
    ),
    PAPER: (
        (r"1000 seeds and three", "what the command asks for"),
        (r"\(figures? \d+(; \[table I+\])?\)", "the paper's own numbers of figures"),
        (r"--horizon 1e6", "an example of a command"),
    ),
    ARENA: ((r"--horizon 1e4", "an example of a command"),),
    RELY: ((r"total variation distance to the exact law at most 1e-6", "asked by the tests"),),
    README: (
        (r"instance at \$T = 10\^6\$ on two CPU cores", "which case"),
        (r"expert NumPy, 2 processes|20 of 50 agents report", "which case"),
        (r"\$p < 1\$ after \$p = 1\$", "a condition"),
    ),
    OPEN: (
        (r"\(theorem 4\)|\(table I\)", "a number of the paper's"),
        (r"two meters\s+differ by a link on the ring, and by a sixth on the 4-regular", "a graph"),
        (r"case 2\b|case 3\b", "the paper's own numbers of cases"),
    ),
    MANY: (
        (r"smallest gap of 1/16", "a choice that is varied"),
        (r"the sizes of table II and of figure 12", "the paper's own numbers"),
    ),
    FOUND: ((r"A message leaks Nε, which is 50 at ε = 1", "50 agents"),),
    SPEED: ((r"CDP-MAB with p = 1\. Beside p = 0\.4, a ring", "which case"),),
    SHARES: (
        (r"agents alike, p = 1, ", "a condition"),
        (
            r"T = 10\^6, 2,048 seeds, one core\. It took\s+26 microseconds a trial",
            "one profile, kept nowhere",
        ),
        (r"AMD EPYC,\s+24 November", "whose figure it is"),
        (r"\| (64|21|13|2) % \|", "shares of that profile; they add up to 100"),
    ),
    "docs/privacy.md: What epsilon promises": (
        (r"\\varepsilon = (0\.1|1|50)\$", "a condition"),
        (r"e\^\{\(n-1\)", "a formula"),
    ),
    "docs/privacy.md: Who sees what": (
        (r"A sum over 50 agents holds the noise of 50 agents", "which case"),
        (r"\$1 - \\delta\$|\\delta = 0\$|delta=1e-9", "a condition"),
        (
            r"\$10\^\{-6\}\$ is not small here|\$5 \\cdot 10\^5\$ at\s+\$M = 50\$, "
            r"\$T = 10\^4\$, and \$5 \\cdot 10\^7\$ at \$T = 10\^6\$|"
            r"a sum over 50 agents the choice",
            "M T, and which case",
        ),
        (r"up to \$10\^\{-6\}\$ \| up to \$10\^\{-9\}\$ \| up to \$10\^\{-12\}\$", "a head"),
    ),
    "docs/privacy.md: Two numbers with one name": (
        (r"\(1 / \(N \\varepsilon\)\)|\$1 / \\varepsilon\$", "a formula"),
        (r"\$M = N = 50\$ and \$\\varepsilon = 1\$, a message leaks 50\.", "N ε"),
    ),
    "docs/privacy_audit.md: What is done": (
        (r"262,144 other runs", "a setting of the audit"),
        (r"\$10\^\{-6\}\$ at most|at most 4 in \$10\^5\$", "the level of the audit"),
        (r"A message of the paper's setting claims 50", "N ε"),
        (r"noise of scale 0, or waits", "a condition"),
    ),
}


def sections() -> dict[str, str]:
    """Returns the text of every section, by page and head, without comments and links' targets."""
    found = {}
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = re.sub(r"<!--.*?-->", "", path.read_text("utf-8"), flags=re.S)
        text = re.sub(r"```.*?```|\]\([^)\s]*\)", "]", text, flags=re.S)
        for part in re.split(r"^##? ", text, flags=re.M):
            head, _, body = part.partition("\n")
            found[f"{path.relative_to(ROOT).as_posix()}: {head}"] = body
    return found


def sources() -> list[Source]:
    return [*PAGES, *speeds(), *goals(), *multiverse()]


def faults(texts: Mapping[str, str]) -> list[str]:
    """Returns what is wrong with the numbers of these sections, a sentence each."""
    found, left, seen = [], {name: texts[name] for name in CONSTANTS}, set()
    everything = sources()
    left |= {each.section: texts[each.section] for each in everything}
    for source in everything:
        places = list(re.finditer(source.pattern, texts[source.section]))
        if len(places) == 1:
            seen.add((source.section, source.instead))
            left[source.section] = re.sub(source.pattern, "", left[source.section])
            values = source.values()
            for name, text in places[0].groupdict().items():
                if not reader.same("0" if text == "none" else text, values[name]):
                    found.append(f"{source.section}: {text} in {places[0][0]!r} is {values[name]}")
        elif places or not source.instead:
            found.append(f"{source.section}: {len(places)} times {source.pattern}")
    for source in everything:
        if (source.section, source.instead) not in seen:
            found.append(f"{source.section}: nothing says {source.instead or source.pattern}")
    for whole in WHOLE:
        (table,) = re.findall(
            rf"^{re.escape(whole.head)}.*?(?=^$)", left[whole.section], re.M | re.S
        )
        ((*rows,),) = reader.tables(table.split("\n"))
        kept = rows_of(whole.name)
        if rows != [{head: row[head] for head in rows[0]} for row in kept]:
            found.append(f"{whole.section}: the table is not that of {whole.name}.csv")
        left[whole.section] = left[whole.section].replace(table, "")
    for section in left:
        for pattern, _ in CONSTANTS.get(section, ()):
            if not re.search(pattern, texts[section], re.S):
                found.append(f"{section}: no {pattern}, which is listed as a constant")
            left[section] = re.sub(pattern, "", left[section], flags=re.S)
        for line in left[section].split("\n"):
            # T = 10⁴ names a horizon wherever it stands.
            if number := re.search(COUNTED, re.sub(r"at T = 10[⁴⁵⁶]", "", line)):
                found.append(f"{section}: {number[0]} has no source, in {line!r}")
    return found


def test_every_number_of_a_page_is_that_of_its_file() -> None:
    """Would catch a stale number, one changed by hand, and a new one without a source."""
    assert faults(sections()) == []


def test_a_page_is_read_to_its_end() -> None:
    """Would catch a section that is passed over, and a constant of none."""
    texts = sections()
    assert set(CONSTANTS) | {each.section for each in sources()} <= set(texts)
    for section in (SPEED, README, OPEN, MANY, FOUND, AUDIT, RELY):
        changed = {**texts, section: texts[section] + "\nIt is 12.34 % faster.\n"}
        assert faults(changed) == [f"{section}: 12.34 has no source, in 'It is 12.34 % faster.'"], (
            section
        )


def last_digit(found: re.Match[str]) -> str:
    """Returns a text with the last digit of its first group changed."""
    place = found.end(1) - found.start() - 1
    digit = str((int(found[0][place]) + 1) % 10)
    return found[0][:place] + digit + found[0][place + 1 :]


def nothing(_: re.Match[str]) -> str:
    return ""


def swapped(found: re.Match[str]) -> str:
    first, other = found.span(1), found.span(2)
    between = found.string[first[1] : other[0]]
    before = found.string[found.start() : first[0]]
    return before + found[2] + between + found[1] + found.string[other[1] : found.end()]


@pytest.mark.parametrize(
    ("section", "pattern", "change"),
    [
        pytest.param(README, r"\(`cdp_mab`\) \| ([\d,]+) \|", last_digit, id="a speed"),
        pytest.param(README, r"takes ([\d.]+) to", last_digit, id="a start"),
        pytest.param(README, r"takes ([\d.]+) to ([\d.]+) s", swapped, id="least and most"),
        pytest.param(
            README, r"\| \*\*fmab_jax\*\*, agents alone [^\n]*\n", nothing, id="row dropped"
        ),
        pytest.param(
            README, r"summed out, 2 .*? \| (\S+) \| (\S+) \|", swapped, id="columns swapped"
        ),
        pytest.param(SPEED, r"not met: ([\d.]+) times", last_digit, id="short of a goal"),
        pytest.param(
            SPEED, r"(?<=not )met: [\d.]+ times too \w+", lambda _: "so", id="no shortage"
        ),
        pytest.param(SPEED, r"not met: [\d.]+ times too \w+", lambda _: "met", id="a goal met"),
        pytest.param(SPEED, r"\| 1\.\d+ \| (\d+) \|", last_digit, id="memory"),
        pytest.param(SPEED, r"UCB1 pooled, .*?\| ([\d,]+) ", last_digit, id="agent-slots"),
        pytest.param(OPEN, r"alike: [\d,]+ \[([\d.]+), ", last_digit, id="an end of an interval"),
        pytest.param(OPEN, r"costs ([\d.]+) to 14", lambda _: "costs 4 to 14", id="of other cases"),
        pytest.param(OPEN, r"a regret of ([\d,]+) at T .*?has ([\d,]+):", swapped, id="readings"),
        pytest.param(FOUND, r"a ring has ([\d.]+) to", last_digit, id="a share"),
        pytest.param(FOUND, r"at ε = ([\d.]+) \(T", last_digit, id="where noise doubles"),
        pytest.param(FOUND, r"(\d) of \d searches", last_digit, id="a count"),
        pytest.param(FOUND, r"to (\d+) times the mean", last_digit, id="a bound"),
        pytest.param(FOUND, r"alone have M.*?they have ([\d.]+) ", last_digit, id="a ratio"),
        pytest.param(MANY, r"sentences (\d+) hold in every", last_digit, id="sentences that hold"),
        pytest.param(MANY, r"alike: the instance in (\d+), T in", last_digit, id="turns"),
        pytest.param(MANY, r"\| (\d+) of 9 \|", last_digit, id="a reading"),
        pytest.param(MANY, r"\| VI-B3 [^\n]*? of 2 \|\n", nothing, id="a sentence dropped"),
        pytest.param(AUDIT, r"0 \| 0\.(\d+) \| 0\.", last_digit, id="a bound of the audit"),
        pytest.param(
            AUDIT, r"\| contradicted \|", lambda _: "| within the claim |", id="a verdict"
        ),
        pytest.param(AUDIT, r"\| LDP-UCB, bits \| [^\n]*\n", nothing, id="a mechanism dropped"),
        pytest.param(
            "docs/privacy.md: Who sees what", r"outsider ([\d.]+) in", last_digit, id="a leak"
        ),
    ],
)
def test_a_wrong_number_is_caught(
    section: str, pattern: str, change: Callable[[re.Match[str]], str]
) -> None:
    """Would catch a reader of numbers that lets one of these pass."""
    texts = sections()
    changed, many = re.subn(pattern, change, texts[section], count=1, flags=re.S)
    assert many == 1 and changed != texts[section]
    found = faults({**texts, section: changed})
    assert found and all(fault.startswith(f"{section}: ") for fault in found)


def test_bounds_on_failures_are_what_their_formula_gives() -> None:
    """Would catch a constant of docs/theory.md that its own formula passes, or one far above it."""
    page = " ".join((ROOT / "docs" / "theory.md").read_text("utf-8").split())

    def times_t(agents: int, T: float) -> float:
        """Returns T times the q of the page, K = 100, over epochs that have room in T."""
        found, epochs = (800 * T) ** -2, math.log2(agents * T / (16 * math.log(16 * T))) / 2
        for r in range(1, max(1, math.floor(epochs)) + 2):
            t = 2 * r * math.sqrt(8 * agents * math.log(800 * r**2 * T))
            x = t / (2 * agents * r + math.hypot(2 * agents * r, t))
            found += math.exp(-x * t - 2 * agents * r * math.log1p(-(x**2)))
            found += (r > 1) * r**-4 * sum(a**-3 for a in range(2, 101)) / (64 * T)
        return T * found

    many = [times_t(agents, T) for agents in (5, 50, 500) for T in (1e4, 1e6, 1e9)]
    epochs = [
        r * 0.5**r * math.sqrt(2 * math.log(800 * r**2 * 1e4) / 50) / math.log(16 * r**2 * 1e4)
        for r in range(1, 20)
    ]
    for pattern, value in (
        (r"\$q\$ is below \$([\d.]+) \\cdot 10\^\{-4\} / T\$", 1e4 * max(many)),
        (r"is lost with a probability of at most \$([\d.]+) / T\$", 99 * max(many)),
        (r"For \$N = 1\$ and \$T = 10\^6\$ it is \$([\d.]+) / T\$", 99 * times_t(1, 1e6)),
        (r"\$\\varepsilon\^\* < ([\d.]+)\$ in every epoch", max(epochs)),
    ):
        (told,) = re.findall(pattern, page)
        assert value <= float(told) * 1.003 and float(told) <= 1.05 * value, (pattern, value)


@pytest.mark.slow
def test_the_sentence_of_a_comparison_is_that_of_its_code() -> None:
    """Would catch an example of docs/report.md whose numbers another run had."""
    page = (ROOT / "docs" / "report.md").read_text("utf-8")
    problem = fmab.Problem.uniform(**LARGE)
    assert "problem = fmab.Problem.uniform(agents=50, arms=100)" in page
    data = fmab.sweep("cdp", problem, epsilon=[0.1, 1, None], horizon=10**5, seeds=200)
    assert 'fmab.sweep("cdp", problem, epsilon=[0.1, 1, None], horizon=10**5, seeds=200)' in page
    told = fmab.compare(data.sel(epsilon=0.1), data.sel(epsilon=1)).sentence
    assert f"# {told}\n" in page.replace("\xa0", " ")
