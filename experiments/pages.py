"""Writes the numbers of the pages for people from the tables in figures/.

A block of a page stands between two comments; whatever is in it is written here, from the CSV files
beside the figures, and a test compares it with them. Sentences are fixed; numbers, and the words
that depend on them, are not.
"""

from __future__ import annotations

import ast
import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import fmab_jax as fmab
from experiments import claims, common, conditions, noises, race_tables, runs, seen
from experiments.audit.findings import LEVEL
from experiments.verdicts import HOLDS, LOOSENESS, Measured
from fmab_jax.analysis.words import write_count
from fmab_jax.cli import main
from fmab_jax.files import whole_file
from fmab_jax.parts.outputs import AGENTS_DIFFER, OUTPUTS, STANDARD

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- written by python -m experiments pages: {} -->", "<!-- end -->"


class Numbers:
    """What the blocks are made of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.used: set[str] = set()  # names of the tables that were read
        self._tables: dict[str, list[dict[str, str]]] = {}

    def table(self, name: str, **fixed: str) -> list[dict[str, str]]:
        """Returns the rows of a CSV file of the folder, those with some values."""
        self.used.add(name)
        if name not in self._tables:
            with (self.folder / f"{name}.csv").open(encoding="utf-8") as file:
                self._tables[name] = list(csv.DictReader(file))
        rows = self._tables[name]
        selected = [row for row in rows if all(row[head] == text for head, text in fixed.items())]
        if fixed and not selected:
            raise LookupError(f"no row with {fixed}")
        return selected

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Returns the rows of a CSV file of the folder, with numbers and intervals as such."""
        self.used.add(name)
        return common.read_rows(self.folder / f"{name}.csv")

    def claim(self, quote: str, quantity: str = "", place: int = 0) -> dict[str, Measured]:
        """Returns a quantity of a row of CLAIMS.md, by condition; ``place`` if quotes repeat."""
        rows = self.table("claims", quote=quote)
        number = list(dict.fromkeys(row["row"] for row in rows))[place]
        return {
            row["condition"]: measured(row)
            for row in rows
            if row["row"] == number and row["quantity"] == quantity and row["estimate"]
        }

    def shares(self, start: str, gap: str) -> list[Measured]:
        """Returns the shares of runs of a row, by R and T, for one gap of the budget."""
        rows = [row for row in self.table("claims") if row["quote"].startswith(start)]
        return [
            measured(row)
            for row in rows
            if row["row"] == rows[0]["row"]  # others have the same words
            and gap in row["condition"]
            and row["quantity"].startswith("R = ")
        ]

    def holds(self, quote: str) -> bool:
        """Tells whether a row of CLAIMS.md holds under every condition."""
        rows = self.table("claims", quote=quote)
        return all(row["condition verdict"] == HOLDS for row in rows)

    def reading(self, name: str) -> dict[int, Measured]:
        """Returns a difference of readings.md, by horizon."""
        rows = self.table("readings", **{"other reading": name})
        ends = ("difference", "difference, lower", "difference, upper")
        return {int(row["T"]): Measured(*(float(row[end]) for end in ends)) for row in rows}


class Block(NamedTuple):
    """A part of a page."""

    page: str  # its path from the root
    name: str  # in the comment that begins it
    write: Callable[[Numbers], str]  # returns its text


def measured(row: Mapping[str, str]) -> Measured:
    """Returns the number of a row, with its interval."""
    return Measured(*(float(row[name]) for name in ("estimate", "lower", "upper")))


# --- words --------------------------------------------------------------------------------------


def span(values: Sequence[float], digits: int = 2) -> str:
    """Writes the smallest and the largest of some numbers."""
    low, high = (short(value, digits) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def short(value: float, digits: int = 2) -> str:
    """Writes a number with so many digits that count; large ones in full."""
    if value == 0 or abs(value) >= 10**digits:
        return f"{value:,.0f}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}"


def bracketed(number: Measured, digits: int = 3) -> str:
    """Writes a number with its interval."""
    return (
        f"{short(number.estimate, digits)} [{short(number.lower, digits)}, "
        f"{short(number.upper, digits)}]"
    )


def percents(shares: Mapping[str, Measured], digits: int = 2) -> str:
    """Writes the range of some shares."""
    return f"{span([100 * share.estimate for share in shares.values()], digits)} %"


# --- docs/reproduction.md -----------------------------------------------------------------------


def _readings(numbers: Numbers) -> str:
    wait = "wait d_G slots, not d_G - 1: {}"
    graphs = [numbers.reading(wait.format(graph)) for graph in ("complete", "star", "ring")]
    rows = numbers.table("readings")
    usual = [
        float(r["regret, usual reading"]) for r in rows if r["other reading"].startswith("wait d_G")
    ]
    alike, apart = (
        numbers.reading(f"components weigh the same, not agents: case 2, agents {words}")
        for words in ("alike", "apart")
    )
    first, last = min(alike), max(alike)
    ties = [write_count(T) for T, shift in alike.items() if shift.lower <= 0 <= shift.upper]
    holds_zero = f"; at T = {' and '.join(ties)} the interval holds 0" if ties else ""
    columns = {"own": "regret, usual reading", "1/16": "regret, other reading"}
    budgets = {
        (gap, rounds): float(row[column])
        for rounds in (4, 5)
        for gap, column in columns.items()
        for row in rows
        if row["T"] == str(first)
        and row["other reading"].endswith(f"gap 1/16, not the instance's own: R = {rounds}")
    }
    over = {gap: 100 * (budgets[gap, 4] / budgets[gap, 5] - 1) for gap in ("own", "1/16")}
    waits = {
        epsilon: numbers.reading(f"waits go by the noisy means: ring, ε = {epsilon}")[first]
        for epsilon in ("1", "0.1", "0.02")
    }
    increase = "; ".join(f"{bracketed(m)} at ε = {e}" for e, m in waits.items())
    lines = [
        "* **Delay.** Waiting d_G slots a round instead of d_G - 1 adds "
        f"{span([g[T].estimate for g in graphs for T in g])} to a regret of {span(usual, 3)}, on "
        "the complete graph, the star and the ring alike: nothing that a figure shows.",
        "* **Weights of components.** Where every component weighs the same (the print of "
        "algorithm 5, line 15) rather than every agent, case 2 loses little with agents alike: "
        f"{bracketed(alike[first])} at T = {write_count(first)}{holds_zero}. With agents apart it "
        f"is biased: {bracketed(apart[first])} at T = {write_count(first)}, "
        f"{bracketed(apart[last])} at {write_count(last)}.",
        "* **Δ of a budget.** This decides figure 6. With the instance's own smallest gap, R = 4 "
        f"has a regret of {budgets['own', 4]:,.0f} at T = {write_count(first)}, with 1/16 it has "
        f"{budgets['1/16', 4]:,.0f}: most instances have a gap near 10⁻² or below, whose schedule "
        "explores so long in its first epochs that little is left to save. R = 4 has "
        f"{over['own']:.0f} % more regret than R = 5 with the one, {over['1/16']:.0f} % with the "
        "other.",
        f"* **Private waiting.** Going by noisy means while waiting on the ring adds {increase}, "
        f"at T = {write_count(first)}.",
    ]
    return "\n".join(lines)


def _found(numbers: Numbers) -> str:
    ring = numbers.claim("the Ring graph incurs larger regret", "ring over complete")
    noise = numbers.claim(r"$\epsilon=1$ indicates the non-private case")
    elimination = (
        r"we need about $ \log(T) \approx 4$ communication rounds before eliminating all "
        "suboptimal arms"
    )
    rounds, decided = (numbers.claim(elimination, name) for name in ("rounds", "ever"))
    part = numbers.claim("reached $1/M$ of the single-agent performance", "of M = 5:")
    looseness = [
        measured(row).estimate
        for row in numbers.table("claims")
        if row["quantity"].endswith(LOOSENESS) and row["estimate"]
    ]
    right = numbers.shares("identify the best arm after the $R$-th communication round", "1/16")
    quote = "not worse than the non-communication case"
    alone = numbers.claim(quote, "over agents alone")
    counted = {row["condition"] for row in numbers.table("claims", quote=quote, counted="True")}
    promised = [alone[condition] for condition in counted]
    condition = max(alone, key=lambda condition: alone[condition].lower)
    orders = {
        "ε": r"the regret increases with the decreasing of  $\epsilon$",
        "p": "the regrets at $T$ decrease as $p$ increases",
        "R": "the regrets decrease with $R$ increase",
    }
    orders_held = [name for name, quote in orders.items() if numbers.holds(quote)]
    axes = seen.listed(orders_held) if orders_held else "nothing"
    lines = [
        f"* At every horizon regret orders as the paper says in {axes}. The graphs differ "
        f"little: a ring has {percents(ring)} more regret than the complete graph.",
        f"* At ε = 1 noise costs {percents(noise)} of the regret. A message leaks Nε, which is 50.",
        "* One arm is left after about four rounds, says the paper. Seeds with one arm left have "
        "made "
        + ", ".join(
            f"{m.estimate:.2f} rounds at {c} ({short(100 * decided[c].estimate, 3)} % of the seeds)"
            for c, m in rounds.items()
        )
        + ".",
        "* Agents alone have M times the regret of CDP-MAB, says the paper. For M = 5 they have "
        + ", ".join(f"{m.estimate:.2f} times its regret at {c}" for c, m in part.items())
        + ".",
        "* A budget that is built for a gap of 1/16 leaves "
        f"{span([100 * (1 - m.estimate) for m in right])} % of the runs that spend it on a worse "
        "arm, by R and T.",
        f"* A tight budget can be worse than no communication: at {condition} regret is "
        f"{100 * alone[condition].estimate:,.0f} % larger than that of agents alone. Where Remark "
        f"2 promises no more regret, {sum(m.lower > 0 for m in promised)} of {len(promised)} "
        "cells (p, R, T) have more.",
        f"* Bounds with explicit constants are {span(looseness)} times the mean regret.",
    ]
    return "\n".join(lines)


def _audit(numbers: Numbers) -> str:
    rows = numbers.table("audit_mechanisms")
    heads = (
        "mechanism",
        "who",
        "seen",
        "claim",
        "δ",
        "lower bound",
        "share of the claim",
        "verdict",
    )
    return "\n".join(common.table_lines([{head: row[head] for head in heads} for row in rows]))


def _audit_runs(numbers: Numbers) -> str:
    """How many runs the rows of the audit have, and how sure all of them are."""
    rows = numbers.table("audit_mechanisms")
    runs = Counter((row["view"] == "messages", int(row["runs"])) for row in rows)

    def write_runs(messages: bool) -> str:
        counts = sorted(((n, k) for (of, n), k in runs.items() if of == messages), reverse=True)
        return seen.listed(
            f"{number} {'have' if number > 1 else 'has'} {n:,} runs" for n, number in counts
        )

    audits = len({row["mechanism"] for row in rows})
    messages = sum(row["view"] == "messages" for row in rows)
    return (
        f"Of the {messages} rows about messages {write_runs(True)} for each data set; of the "
        f"{len(rows) - messages} others {write_runs(False)}. The rows are of {audits} audits: all "
        f"bounds of one are wrong with a chance of {LEVEL:g} at most, those of all together with "
        f"{audits * LEVEL:.2g}."
    )


def _unseen(numbers: Numbers) -> str:
    return "\n".join(common.table_lines(numbers.table("audit_unseen")))


def _regret(row: Mapping[str, str]) -> str:
    """Writes the regret of a row with its interval."""
    ends = ("regret at T", "regret at T, lower", "regret at T, upper")
    mean, lower, upper = (float(row[end]) for end in ends)
    return f"{mean:,.0f} [{lower:,.0f}, {upper:,.0f}]"


def _by_leak(numbers: Numbers) -> Iterator[tuple[str, list[dict[str, str]], list[dict[str, str]]]]:
    """Yields each leak with CDP-MAB's radii, the smallest first, and who is beside them."""
    rows = numbers.table("arena_radius")
    for leak in dict.fromkeys(row["ε"] for row in rows):
        at_leak = [row for row in rows if row["ε"] == leak]
        radii = [row for row in at_leak if row["factor of the radius"]]
        yield leak, radii, [row for row in at_leak if row not in radii]


LOST = "seeds that lost the best arm"


def _note_cost(numbers: Numbers) -> str:
    """What CDP-MAB costs: as it is proven, with the smallest radius that lost nothing, and ours."""
    rows, sentences = [], []
    for leak, radii, rivals in _by_leak(numbers):
        (proven,) = [row for row in radii if float(row["factor of the radius"]) == 1]
        safe = next(row for row in radii if row[LOST] == "0")
        below = [row for row in radii if row is not safe and radii.index(row) < radii.index(safe)]
        rows.append(
            {
                "leak": leak,
                "CDP-MAB": _regret(proven),
                "smallest factor that lost no best arm": safe["factor of the radius"],
                "CDP-MAB with it": _regret(safe),
                **{row["algorithm"]: _regret(row) for row in rivals},
                "lower bound": proven["lower bound"],
            }
        )
        means = [float(row["regret at T"]) for row in (proven, safe, rivals[-1])]
        bound = float(proven["lower bound"].replace(",", ""))
        text = (
            f"* At a leak of {leak}, CDP-MAB's mean is {means[0] / bound:.0f} times the lower "
            f"bound. A smaller radius takes a factor of {means[0] / means[1]:.1f} away, and leaves "
            f"{means[1] / bound:.0f} times the bound. {rivals[-1]['algorithm']}, leaves "
            f"{means[2] / bound:.1f} times the bound."
        )
        if below:
            worst = max(below, key=lambda row: int(row[LOST]))
            text += (
                f" With a factor of {worst['factor of the radius']}, {int(worst[LOST]):,} of "
                f"{int(worst['seeds']):,} seeds lost the best arm."
            )
        sentences.append(text)
    return "\n".join([*common.table_lines(rows), "", *sentences])


def _note_caps(numbers: Numbers) -> str:
    columns = {
        "who sees": "view",
        "leak": "ε",
        "above 3 × the median": "seeds above 3 × the median",
    }
    heads = ("who sees", "leak", "links, at most", "least regret", "regret", "largest")
    heads += ("above 3 × the median", "CDP-MAB", "lower bound")
    rows = [
        {head: _regret(row) if head == "regret" else row[columns.get(head, head)] for head in heads}
        for row in numbers.table("arena_caps")
    ]
    times: dict[str, list[float]] = {}
    for row in numbers.table("arena_caps"):
        if match := re.search(r"with ([\d,]+) links", row["CDP-MAB"]):
            links = float(match[1].replace(",", ""))
            cap = float(row["links, at most"].replace(",", ""))
            if links:
                times.setdefault(row["view"], []).append(cap / links)
    multiples = "; ".join(
        f"{view}, {seen.listed(f'{ratio:.1f}' for ratio in match)}" for view, match in times.items()
    )
    end = f"Caps, as multiples of what CDP-MAB sends, in the order of the rows: {multiples}."
    return "\n".join([*common.table_lines(rows), "", end])


def _theory_lost(numbers: Numbers) -> str:
    """How often runs of a hard instance lost the best arm."""
    rows = numbers.table("theory_lost")
    epsilons = list(dict.fromkeys(row["ε"] for row in rows))
    table = []
    for way in dict.fromkeys(row["way"] for row in rows):
        by_epsilon = {row["ε"]: row for row in rows if row["way"] == way}
        runs = {int(row["runs"]) for row in by_epsilon.values()}
        allowed = {float(row["allowed"]) for row in by_epsilon.values()}
        if len(runs) > 1 or len(allowed) > 1:
            raise ValueError(f"{way}: several numbers of runs or bounds in one line of the page")
        table.append(
            {"": way, "runs of each": f"{runs.pop():,}"}
            | {f"$\\varepsilon = {epsilon}$": by_epsilon[epsilon]["lost"] for epsilon in epsilons}
            | {"(b) allows, of a million": f"{1e6 * allowed.pop():,.0f}"}
        )
    margin = min(float(r["allowed"]) * int(r["runs"]) / max(int(r["lost"]), 1) for r in rows)
    end = (
        f"So (b) allows at least {math.floor(margin)} times as many as there were. Chernoff's "
        "bounds and the union are what is given away."
    )
    return "\n".join([*common.table_lines(table), "", end])


def _theory_shown(numbers: Numbers) -> str:
    """What D_16 is beside D_infinity, and what two arms cost beside one."""
    rows = numbers.table("theory_shown")
    (pairs,) = {row["pairs"] for row in rows}
    places = [row["ε"] for row in rows if row["ε"] != "none"]

    def least(head: str) -> str:
        # Rounded down: it is said of all.
        return f"{math.floor(1000 * min(float(row[head]) for row in rows)) / 1000:.3f}"

    price = ", ".join(
        f"{float(row['d_ε / D_∞ at 0.1 and 0.9']):.2f} "
        + (f"at $\\varepsilon = {row['ε']}$" if row["ε"] != "none" else "without noise")
        for row in rows
    )
    return (
        f"$D_{{16}} / D_\\infty$ is at least {least('smallest D_16 / D_∞')} for {pairs} random "
        f"pairs of means between 0.02 and 0.98, at $\\varepsilon$ of {seen.listed(places)} and "
        f"without noise. Its median is at least {least('median D_16 / D_∞')}. A grid of $\\beta$ "
        f"was tried. For means of 0.9 and 0.1, $d_\\varepsilon / D_\\infty$ is {price}."
    )


# The view and the leak of the README's table, and the calls of its rows.
_CHOICES = {
    "whoever reads single messages": {
        "CDP-MAB": "cdp_mab(epsilon_message=1)",
        "CDP-MAB, radius × 0.3": "cdp_mab(epsilon_message=1, scale=0.3)",
        "CDP-MAB, radius × 0.2": "cdp_mab(epsilon_message=1, scale=0.2)",
        "KL-SE": "kl_se(1)",
        "KL-SE, arms split": "kl_se(1, split=True)",
    },
    "whoever sees secure sums and no message": {
        "KL-SE, secure sum": "kl_se(1, secure=True)",
        "DP-IMED, secure sum": "dp_imed(1, secure=True)",
    },
    "whoever sees actions alone": {"DP-IMED": "dp_imed(1)"},
}
_CHOICE_TABLE, _CHOICE_LEAK, _CHOICE_AGENTS = "arena_leak_T1e5", "1.0", 50
_SMALL_RADIUS = "CDP-MAB, radius × 0.2"


def _consensus(numbers: Numbers) -> str:
    """Whether the term of CES for estimates that differ is large enough, by graph."""
    heads = ("graph", "M", "$Q / (1 - \\lambda)$", "needed in the end", "too small in rounds")
    rows = [
        (
            row["graph"],
            row["agents"],
            f"{float(row['Q / (1 - l)']):,.4g}",
            f"{float(row['largest disagreement']):,.4g}",
            row["too small in rounds"],
        )
        for row in numbers.table("consensus_drift")
    ]
    return _write_table(heads, rows)


def _choices(numbers: Numbers) -> str:
    """The README's choice of algorithms, at an equal leak, and what their price is."""
    heads = ("algorithm", "call", "who sees", "seeds", "regret")
    lines = []
    for view, calls in _CHOICES.items():
        for name, call in calls.items():
            row = _find_choice(numbers, view, name)
            lines.append((name, f"`{call}`", _VIEW_NAMES[view], row["seeds"], _regret(row)))
        if _VIEW_NAMES[view] == "messages":
            lines.append(_plan_choice(numbers))
    (free,) = numbers.table("arena_T1e5", algorithm="KL-UCB, pooled")
    call, who = "`kl_ucb(pooled=True)`", "everything: no privacy"
    lines.append((free["algorithm"], call, who, free["seeds"], _regret(free)))
    table = _write_table(heads, lines, ("---",) * 3 + ("---:",) * 2)
    return f"{table}\n\n{_radius_choice(numbers)} {_sum_choice()}"


def _find_choice(numbers: Numbers, view: str, name: str) -> dict[str, str]:
    """Returns the row of an algorithm at the leak of the table."""
    if name == _SMALL_RADIUS:
        fixed = {"ε": "1", "algorithm": "CDP-MAB", "factor of the radius": "0.2"}
        return numbers.table("arena_radius", **fixed)[0]
    (row,) = numbers.table(_CHOICE_TABLE, view=view, ε=_CHOICE_LEAK, algorithm=name)
    return row


def _radius_choice(numbers: Numbers) -> str:
    """Says what a smaller radius risks, and what it has where agents differ."""
    alike = _find_choice(numbers, "", _SMALL_RADIUS)
    differ, rival = (
        numbers.table("choices", algorithm=name)[0] for name in (_SMALL_RADIUS, "KL-SE")
    )
    return (
        "No theorem covers CDP-MAB with a smaller radius (`scale=`). With × 0.2, "
        f"{alike[LOST]} of {int(alike['seeds']):,} seeds lost the best arm. Where agents differ, "
        f"the regret of × 0.2 is {_regret(differ)}, and {differ[LOST]} of "
        f"{int(differ['seeds']):,} seeds lost the best arm; KL-SE, which has a theorem, has "
        f"{_regret(rival)}, and {'none' if rival[LOST] == '0' else rival[LOST]} lost it."
    )


def _sum_choice() -> str:
    """Says what an agent of a secure sum is told, who knows its own rewards and actions."""
    leaks = {
        row.epsilon_at_delta
        for algorithm in (fmab.kl_se(1, secure=True), fmab.dp_imed(1, secure=True))
        for row in fmab.privacy_ledger(algorithm, _CHOICE_AGENTS)
        if row.label == "an agent"
    }
    (leak,) = leaks
    return (
        "An agent of a secure sum knows its own share of the noise, so another agent's reward "
        f"leaks {leak:.4f} to it."
    )


def _plan_choice(numbers: Numbers) -> tuple[str, ...]:
    """The row of a plan's answer; its call states the noise of KL-SE alone."""
    (row,) = numbers.table("plans", leak=_CHOICE_LEAK, **{"links allowed": "300"})
    if not row["answer"].startswith("kl_se("):
        raise LookupError(f"a call without its noise: {row['answer']}")
    call = row["answer"].replace("kl_se(", "kl_se(1, ")
    name = "`fmab plan`, at most 300 links"
    return name, f"`{call}`", "messages", row["seeds"], _regret(row)


def _write_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], rule: Sequence[str] = ()
) -> str:
    """Returns a table in Markdown, with blanks around the rule below its heads."""
    lines = [heads, rule or ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_VIEW_NAMES = {
    "whoever reads single messages": "messages",
    "whoever sees secure sums and no message": "a secure sum, up to δ = 10⁻⁶",
    "whoever sees actions alone": "actions, up to δ = 10⁻⁶",
}


def _algorithms(_: Numbers) -> str:
    """The table of shipped algorithms."""
    calls = {getattr(fmab, name).name: name for name in _algorithm_names()}
    heads = ("name", "in Python", "what it is", "source", "who is heard", "who is trusted")
    lines = []
    for row in fmab.list_algorithms():
        if row["name"] in calls:
            source = row["source"] or "this project"
            cells = (row["summary"], source, row["communication"], row["trusted"])
            cells = tuple(cell.replace("|", "\\|") for cell in cells)
            lines.append((f"`{row['name']}`", f"`{calls[row['name']]}`", *cells))
    return _write_table(heads, lines)


def _algorithm_names() -> list[str]:
    """Returns the names of `fmab_jax` that are algorithms' classes to run."""
    public = {name: getattr(fmab, name) for name in fmab.__all__}
    runs = {row["name"] for row in fmab.list_algorithms()}
    return [name for name, x in public.items() if getattr(x, "name", None) in runs]


def _outputs(_: Numbers) -> str:
    """The table of variables of a result."""
    lines = []
    for output in (*STANDARD, *OUTPUTS.by_name().values()):
        when = "always" if output in STANDARD else f"`--outputs {output.name}`"
        when = "where agents differ; " * (output in AGENTS_DIFFER) + when
        over = ", ".join(("seed", *output.dims))
        lines.append((f"`{output.name}`", over, output.label, output.units, when))
    return _write_table(("variable", "over", "what it is", "unit", "comes out"), lines)


def _commands(_: Numbers) -> str:
    """The table of commands."""
    lines = []
    for name, path in main.commands().items():
        first = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        lines.append((f"`fmab {name}`", (first or "").partition("\n")[0]))
    return _write_table(("command", "what it does"), lines)


def _conditions(numbers: Numbers) -> str:
    """What drift, absence and corruption do to each algorithm."""
    return conditions.describe(numbers.rows("conditions"))


def _noises(numbers: Numbers) -> str:
    """Which law of noise has the least regret, by how much, and where it is no noise at all."""
    rows = numbers.rows("noises")
    least, most = min(noises.LEAKS), max(noises.LEAKS)

    def compare(law: str, other: str, view: str, algorithm: str, leak: float) -> str:
        regret = {
            row["noise"]: row["regret"]
            for row in rows
            if (row["view"], row["algorithm"], row["leak"]) == (view, algorithm, leak)
        }
        return f"{regret[law] / regret[other]:.2f}"

    gaussian = {
        view: seen.listed(
            f"{compare('Gaussian', 'Laplace', view, title, least)} with {title}"
            for title in noises.ALGORITHMS
        )
        for view in noises.VIEWS
    }
    zeros = seen.listed(
        f"{100 * noises.find_zeros(name, most):.2f} % ({label})"
        for label, name in noises.NOISES.items()
        if name in noises.INTEGERS
    )
    paragraphs = (
        noises.describe(rows),
        f"At a leak of {least:g}, the regret with Gaussian noise over that with Laplace noise is "
        f"{gaussian['messages']} where single messages are read, and {gaussian['sum']} where only "
        "the sum is seen. CDP-MAB uses a bound of the noise. For Gaussian noise it is √2 times "
        "smaller than the bound of the paper for Laplace noise of the same variance. KL-SE uses "
        "the whole law of the sum.",
        f"At a message's leak of {most:g}, noise in whole numbers is mostly no noise: it is 0 in "
        f"{zeros} of the sums that messages hold. Continuous noise is never 0.",
    )
    return "\n\n".join(paragraphs)


def _race(numbers: Numbers) -> str:
    """Whether the guarantee of a plan holds."""
    return race_tables.write_coverage(numbers.table("race_coverage"))


def _plans(numbers: Numbers) -> str:
    """The answers of plans at six budgets, and on a small network."""
    heads = ("leak", "links", "answer at this leak", "regret at T", "links of a run")
    budgets, (small,) = numbers.table("plans", edges="0"), numbers.table("plans", edges="40")
    if any(row["holds"] != "True" for row in (*budgets, small)):
        raise LookupError("a plan is not decided")
    lines = []
    for row in budgets:
        call = f"`{row['answer']}`" + (" *" if row["remark"] else "")
        counts = row["candidates"], f"{int(row['trials']):,}"
        allowed = f"{int(row['links allowed']):,}"
        lines.append((row["leak"], allowed, call, _regret(row), _write_links(row), *counts))
    table = _write_table(
        (*heads, "candidates", "trials"), lines, ("---:", "---:", "---") + ("---:",) * 4
    )
    slots, leak = write_count(int(small["T"])), f"{float(small['leak']):g}"
    return (
        f"{table}\n\nA small network: {small['agents']} agents on a Watts-Strogatz graph of "
        f"{small['edges']} edges, as in the tutorial, but each seed draws its {small['arms']} "
        f"means from U[0, 1]; T = {slots}, a leak of {leak} and at most {small['links allowed']} "
        f"links. `{small['answer']}` is within {100 * float(small['within']):g} % of the best of "
        f"{small['candidates']} candidates. Its regret is {_regret(small)}, and the links of a run "
        f"are {_write_links(small)}. The race took {int(small['trials']):,} trials, "
        f"{int(small['seeds of the answer']):,} of them of the answer, and "
        f"{float(small['seconds']):,.0f} s on two cores, with programs that an earlier run kept."
    )


def _plan_coverage(numbers: Numbers) -> str:
    """How often the statements of whole plans are true."""
    return race_tables.write_plans(numbers.table("plan_coverage"))


def _write_links(row: Mapping[str, str]) -> str:
    """Writes the mean and the most links of a run."""
    return f"{float(row['links, mean']):,.0f}, at most {float(row['links, most']):,.0f}"


BLOCKS = (
    Block("README.md", "which", _choices),
    Block("docs/algorithms.md", "algorithms", _algorithms),
    Block("docs/results.md", "outputs", _outputs),
    Block("docs/commands.md", "commands", _commands),
    Block("docs/conditions.md", "conditions", _conditions),
    Block("docs/own_mechanism.md", "noises", _noises),
    Block("docs/plan.md", "plans", _plans),
    Block("docs/plan.md", "race_coverage", _race),
    Block("docs/plan.md", "plan_coverage", _plan_coverage),
    Block("docs/theory.md", "theory_shown", _theory_shown),
    Block("docs/theory.md", "theory_lost", _theory_lost),
    Block("docs/theory.md", "consensus", _consensus),
    Block("docs/note.md", "note_cost", _note_cost),
    Block("docs/note.md", "note_caps", _note_caps),
    Block("docs/reproduction.md", "readings", _readings),
    Block("docs/reproduction.md", "found", _found),
    Block("docs/privacy_audit.md", "audit_runs", _audit_runs),
    Block("docs/privacy_audit.md", "audit", _audit),
    Block("docs/privacy_audit.md", "audit_unseen", _unseen),
)


def replaced(text: str, name: str, content: str) -> str:
    """Returns a page with one block written anew."""
    begin = BEGIN.format(name)
    before, start, tail = text.partition(begin)
    _, closed, after = tail.partition(END)
    if not (start and closed):
        raise LookupError(f"no block {begin} ... {END}")
    return f"{before}{begin}\n\n{content}\n\n{END}{after}"


def write_block(block: Block, numbers: Numbers) -> str:
    """Returns the text of a block; below it, which version computed its tables, and when."""
    numbers.used.clear()
    text = block.write(numbers)
    if not numbers.used:
        return text
    return f"{text}\n\n{runs.describe(numbers.folder, numbers.used)}"


def judge(figures: Path, root: Path = ROOT) -> list[Path]:
    """Writes all blocks from the tables in a folder, and the line of runs of its own pages."""
    numbers, pages = Numbers(figures), {}
    claims.write_page(figures)
    for page in sorted(figures.glob("*.md")):
        runs.write_line(page)
    for block in BLOCKS:
        path = root / block.page
        text = pages.get(path) or path.read_text(encoding="utf-8")
        pages[path] = replaced(text, block.name, write_block(block, numbers))
    for path, text in pages.items():
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return list(pages)
