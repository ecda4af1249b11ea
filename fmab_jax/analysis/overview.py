"""What a result ends with, as a table: on the command line, in notebooks, in papers."""

from __future__ import annotations

import csv
import io
import operator
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import xarray as xr

from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.analysis import costs, privacy
from fmab_jax.analysis.tables import asked_numbers, final_table
from fmab_jax.analysis.words import facts, is_number, label_text, short
from fmab_jax.errors import did_you_mean, flag, number_of, refuse
from fmab_jax.parameters import parameters_of
from fmab_jax.run.attributes import said

FORMATS = ("text", "latex", "html", "markdown", "csv")
"""How a table can be written; "text" is for terminals."""

_KINDS = {"text": "simple", "latex": "latex_booktabs", "html": "html", "markdown": "github"}
# What pdflatex lacks.
_LATEX = {
    "±": r"$\pm$",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "∞": r"$\infty$",
    "–": "--",
    "×": r"$\times$",
}
# Letters of a line in the heading of a column of short numbers.
_NARROW = 9
_POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_RAISED = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
# Columns that rows can be sorted by, besides the swept parameters.
_COLUMNS = {
    "regret": "regret",
    "rounds": "rounds_made",
    "cost": "cost",
    "seeds": "seeds",
    "lost": "best_arm_lost",
    "worse": "worse_arm_played",
}


@dataclass(frozen=True)
class Overview:
    """What every configuration of a result ends with; notebooks show it as a table.

    Attributes:
        title: What all rows share.
        headings: Of the columns; some have two lines.
        rows: Texts, a row for each configuration that has seeds.
        named: The same with all digits, the ends of the intervals, and names for programs.
        legend: What the columns mean.
        remarks: What a reader of the numbers had better know.
        ledger: Who sees what of a reward, in lines.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    named: tuple[dict[str, Any], ...]
    legend: str
    remarks: tuple[str, ...]
    ledger: tuple[str, ...]

    def write(self, form: str = "text") -> str:
        """Writes the table.

        Args:
            form: "text"; "html" or "markdown", with title and legend as caption; "latex" (for the
                package booktabs), with both as a comment; or "csv", a column for each name in
                ``named``.

        Raises:
            ValueError: For another format.
        """
        if not isinstance(form, str) or form not in FORMATS:
            refuse("format", form, f"one of {', '.join(FORMATS)}", "choose one of these")
        if form == "csv":
            return _csv(self.named)
        from tabulate import tabulate

        heads = [heading.replace("\n", " ") for heading in self.headings]
        # Texts stay as they are: 1,000 is not read, and written, as a number.
        made = tabulate(
            [list(row) for row in self.rows],
            heads,
            tablefmt=_KINDS[form],
            disable_numparse=True,
            colalign=["right"] * len(heads) if self.rows else None,
        )
        caption = f"{self.title}. {self.legend}".replace("\n", " ")
        if form == "html":
            head, rest = made.split("\n", 1)
            return f"{head}\n<caption>{escape(caption)}</caption>\n{rest}"
        if form == "latex":
            return f"% {_latex(caption)}\n{_latex(made)}"
        if form == "markdown":
            return f"{caption}\n\n{made}"
        return "\n".join([self.title, "", made, "", self.legend, *self.remarks])

    def __str__(self) -> str:
        return self.write()

    def _repr_html_(self) -> str:
        remarks = "".join(f"<p><strong>{escape(each)}</strong></p>" for each in self.remarks)
        ledger = escape("\n".join(self.ledger))
        if ledger:
            ledger = f"<details><summary>Privacy</summary><pre>{ledger}</pre></details>"
        return f"<div>{self.write('html')}{remarks}{ledger}</div>"


def overview(
    data: xr.Dataset,
    *,
    level: float | None = None,
    server_price: float = 1.0,
    peer_price: float = 1.0,
    sort: str | None = None,
    descending: bool = False,
    where: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    arms: Any = None,
) -> Overview:
    """Returns what every configuration of a result ends with: a table that shows itself.

    What others are told of a reward, regret at T with its interval, rounds, links, cost, and how
    many seeds lost the best arm or play a worse one; the numbers are those of `final_table`.

    Args:
        data: From `simulate`, `sweep`, `open_sweep` or `load`.
        level: As in `final_table`.
        server_price: c1, of an agent-server link.
        peer_price: c2, of an agent-agent link on the meter that is priced.
        sort: A swept parameter, or regret, rounds, cost, seeds, lost or worse; by default rows have
            the order of the grid.
        descending: Largest first.
        where: Conditions that rows fulfil, such as ("links<=500", "regret<1e5"): a name as in
            ``sort``, leak, links, or links_ and a meter; one of <, <=, >, >=; a number.
        columns: Names of the columns wanted, in this order: swept parameters, leak, regret,
            interval, percent, rounds, links, cost, seeds, lost, worse, arm, and outputs that were
            asked for and are a number of each seed; by default all.
        arms: Names of the arms, such as the ``arm_labels`` of `fmab_jax.ratings.from_table`: then a
            column says which one most seeds play at T.

    Raises:
        ValueError: If ``data`` is no such result, or another argument is out of range.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(epsilon=1), problem, 10**4, seeds=20)
        >>> found = fmab.overview(data)
        >>> found.title
        'CDP-MAB, ε = 1 (5 per message), M = 5 agents, K = 10 arms, T = 10⁴ slots'
        >>> found.named[0]["regret"] == float(fmab.final_table(data).regret)
        True
        >>> "tabular" in found.write("latex")
        True
    """
    flag("descending", descending)
    table = final_table(data, level=level, server_price=server_price, peer_price=peer_price)
    dims = [str(name) for name in table.seeds.dims]
    message = None if "epsilon_message" in dims else data.coords.get("epsilon_message")
    if message is not None:
        message = message.broadcast_like(table.seeds).transpose(*dims)
    names = None if arms is None else _arm_names(data, arms)
    scalars = [str(name) for name, each in table.data_vars.items() if "meter" not in each.dims]
    rows = []
    for place in np.ndindex(table.seeds.shape):
        cell = table.isel(dict(zip(dims, place, strict=True)))
        values = {name: cell[name].item() for name in (*dims, *scalars)}
        leak = costs.exposure_of(cell)
        values["leak_view"] = leak.view
        if message is not None:
            values["epsilon_message"] = message.values[place].item()
        if names is not None:
            played = data.chosen_arm.isel(dict(zip(dims, place, strict=True)))
            values |= _most_played(played.values[: int(values["seeds"])], names)
        rows.append(values | {"leak": leak, "links": cell.links.values.tolist()})
    if sort is not None:
        rows = _sorted(rows, sort, dims, descending)
    rows = [row for row in rows if row["seeds"]]
    for condition in _listed("where", where, "conditions such as links<=500"):
        fulfils = _condition(condition, dims, table.meter.values.tolist())
        rows = [row for row in rows if fulfils(row)]
    view = costs.shared_view(row["leak"] for row in rows)
    share = f"{100 * table.attrs['level']:.6g} %"
    meters, asked = table.meter.values.tolist(), asked_numbers(data)
    # The name of each column, and its heading.
    known = [
        *((name, name) for name in dims),
        ("leak", folded(costs.leak_heading(view))),
        ("regret", "regret\nat T"),
        ("interval", f"±\n{share}"),
        ("percent", "±, %\nof it"),
        ("rounds", "rounds\nmade" if "rounds" in dims else "rounds"),
        *(("links", f"links\n{meter}") for meter in meters),
        ("cost", "cost"),
        ("seeds", "seeds"),
        ("lost", f"best arm lost\n{share}"),
        ("worse", f"worse arm played\n{share}"),
        *((name, name.replace("_", "\n", 1)) for name in asked),
        *[("arm", "arm at T\nof most seeds")] * (names is not None),
    ]
    shown = _places([name for name, _ in known], columns)
    whole = [
        (
            *(label_text(row[name]) for name in dims),
            costs.leak_cell(row["leak"], view),
            *_found(row, len(meters), asked),
        )
        for row in rows
    ]
    # Of joined runs the table has none.
    ledger = table.attrs.get("ledger")
    return Overview(
        title=", ".join(facts(table, dims, leaks=True)),
        headings=tuple(known[place][1] for place in shown),
        rows=tuple(tuple(row[place] for place in shown) for row in whole),
        named=tuple(_named(row, meters) | {"level": table.attrs["level"]} for row in rows),
        legend=_legend(table, share),
        remarks=tuple(_remarks(table, data)),
        ledger=tuple(privacy.lines(ledger)) if ledger else (),
    )


_CONDITION = re.compile(r"\s*([\w.-]+)\s*(<=|>=|<|>)\s*(\S+)\s*", re.ASCII)
_TESTS: dict[str, Any] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _condition(
    text: Any, dims: Sequence[str], meters: Sequence[str]
) -> Callable[[dict[str, Any]], bool]:
    """Returns whether a row fulfils a condition; what is unknown fulfils none."""
    found = _CONDITION.fullmatch(text) if isinstance(text, str) else None
    bound = number_of(found[3]) if found else None
    if found is None or bound is None or bound != bound:
        remedy = "write a column, one of < <= > >=, and a number"
        refuse("where", text, "a condition such as links<=500", remedy)
    name, test = found[1], _TESTS[found[2]]
    places = {f"links_{meter}": place for place, meter in enumerate(meters)}
    places |= {"links": 0} if len(meters) == 1 else {}
    columns = _COLUMNS | {"leak": "leak_epsilon"} | {each: each for each in dims}
    if name not in {*places, *columns}:
        known = dict.fromkeys([*dims, *columns, *places])
        remedy = did_you_mean(name, known, "choose a column")
        refuse("where", text, f"about one of {', '.join(known)}", remedy)

    def fulfils(row: dict[str, Any]) -> bool:
        value = row["links"][places[name]] if name in places else row[columns[name]]
        return isinstance(value, (int, float)) and test(float(value), float(bound))

    return fulfils


def _places(names: Sequence[str], columns: Sequence[str] | None) -> list[int]:
    """Returns where the columns are that are wanted; there may be several of links."""
    if columns is None:
        return list(range(len(names)))
    columns = _listed("columns", columns, "names of columns")
    for name in columns:
        if not isinstance(name, str) or name not in names:
            listed = ", ".join(dict.fromkeys(names))
            remedy = did_you_mean(name, names, "choose from these")
            refuse("columns", name, f"among {listed}", remedy)
    return [place for name in dict.fromkeys(columns) for place, n in enumerate(names) if n == name]


def _listed(field: str, given: Any, what: str) -> Sequence[Any]:
    if not isinstance(given, (list, tuple)):
        refuse(field, given, f"a list of {what}", "write it in brackets, each in quotes")
    return given


def _arm_names(data: xr.Dataset, arms: Any) -> np.ndarray:
    """Returns the names of the arms, and behind them that of -1, still exploring."""
    number = data.attrs.get("arms")
    remedy = "give the arm_labels of the problem that was run"
    listed = list(arms) if isinstance(arms, (list, tuple)) else []
    if len(listed) != number or not all(isinstance(each, str) for each in listed):
        differ = "left out where numbers of arms differ"
        refuse("arms", arms, f"the names of {number} arms" if number else differ, remedy)
    if "chosen_arm" not in data or "seed" not in data.chosen_arm.dims:
        remedy = "leave arms out, or run with keep='curves'"
        refuse("arms", arms, "left out with results that do not keep each seed", remedy)
    return np.array([*listed, "undecided"], object)


def _most_played(chosen: np.ndarray, names: np.ndarray) -> dict[str, Any]:
    """Returns the name of the arm that most seeds play, and how many do; the first of a tie."""
    counts = np.bincount(chosen % len(names), minlength=len(names))
    most = int(counts.argmax())
    return {"arm_at_T": names[most], "arm_at_T_seeds": int(counts[most])}


def _named(row: dict[str, Any], meters: Sequence[str]) -> dict[str, Any]:
    """Returns what is found of a configuration by names that a program can rely on."""
    own = {name: value for name, value in row.items() if name not in ("links", "leak")}
    links = zip(meters, row["links"], strict=True)
    return own | {f"links_{meter}": value for meter, value in links}


def _remarks(table: xr.Dataset, data: xr.Dataset) -> list[str]:
    """Says what a reader of the numbers had better know."""
    said = []
    if empty := int((table.seeds == 0).sum()):
        many = "configuration" + "s" * (empty > 1)
        said.append(f"{empty:,} {many} not begun yet: run the sweep's command again.")
    idle = (table.rounds_made == 0) & (table.undecided == table.seeds) & (table.seeds > 0)
    if number := int(idle.sum()):
        where = "" if table.seeds.size == 1 else f" in {number:,} of {table.seeds.size:,} rows"
        said.append(
            f"No round was completed by T{where}: T is shorter than the first epoch, every seed "
            "still explores.\nTake a longer horizon."
        )
    shares = (100 * table.undecided / table.seeds).where((table.seeds > 0) & ~idle)
    if float(shares.max()) >= 1:
        share = _from_to([round(float(end)) for end in (shares.min(), shares.max())])
        said.append(
            f"{share} % of the seeds still explore at T: no arm is chosen yet.\nTo see "
            "a choice, take a longer horizon or fewer arms."
        )
    said += _remarks_of_cells(table)
    if int((table.best_arm_lost * _differ(table, data)).sum()):
        said.append(
            "Best arms were lost where agents differ. If only some of them report (p < 1), or each "
            'is alone,\nno bound holds: docs/theory.md, "Corollary 3 (agents differ)".'
        )
    return said


def _remarks_of_cells(table: xr.Dataset) -> list[str]:
    """Says where a budget does not fit, where no theorem holds, and where actions have no bound."""
    dims, shape = list(table.seeds.dims), table.seeds.shape
    every = (table.isel(dict(zip(dims, place, strict=True))) for place in np.ndindex(shape))
    cells = [cell for cell in every if int(cell.seeds)]
    budgets: list[tuple[float, float, float]] = []
    unproven: dict[str, list[tuple[str, str]]] = {}
    for cell in cells:
        owner = costs.owner_of(cell)
        parameters = parameters_of(owner) if owner else {}
        for name, each in parameters.items():
            value = costs.setting_of(cell, name, each.default) if each.proven else None
            if not each.is_proven(value):
                unproven.setdefault(name, []).append((each.told(value), each.remedy))
        # A seed that has spent its budget explores no more.
        if owner and issubclass(owner, Elimination) and "rounds" in parameters:
            budget = costs.setting_of(cell, "rounds", parameters["rounds"].default)
            made, share = float(cell.rounds_made), float(cell.undecided / cell.seeds)
            if is_number(budget) and 0 < made < budget and share >= 0.01:
                budgets.append((budget, made, round(100 * share)))

    def where(rows: Sequence[Any]) -> str:
        return f" in {len(rows):,} of {table.seeds.size:,} rows" * (table.seeds.size > 1)

    remarks = []
    if budgets:
        rounds, mean, percent = (_from_to(each) for each in zip(*budgets, strict=True))
        remarks.append(
            f"A budget of {rounds} rounds does not fit T{where(budgets)}: {mean} are made on "
            f"average, and {percent} % of the seeds still explore.\n"
            "Take a longer horizon, or let more agents report."
        )
    for rows in unproven.values():
        words = " and ".join(dict.fromkeys(text for text, _ in rows))
        remarks.append(f"No theorem covers {words}{where(rows)}: {rows[0][1]}.")
    if bare := [cell for cell in cells if costs.exposure_of(cell).has_open_actions]:
        remarks.append(
            f"Actions have no bound{where(bare)}: the leaks are those of what is sent alone."
        )
    return remarks


def _from_to(numbers: Sequence[float]) -> str:
    ends = [f"{end:.3g}" for end in (min(numbers), max(numbers))]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _differ(table: xr.Dataset, data: xr.Dataset) -> Any:
    """Tells where the means of agents differ."""
    if "spread" in table.coords:
        # A label of one's own does not tell the number: then agents may differ.
        numbers = [number_of(str(label)) for label in table.spread.values.reshape(-1).tolist()]
        return table.spread.copy(data=np.reshape([n != 0 for n in numbers], table.spread.shape))
    fixed = "means" in data and data["means"].sizes.get("row", 1) > 1
    return fixed or "spread" in said(table, "settings")


def _sorted(
    rows: list[dict[str, Any]], sort: str, dims: Sequence[str], descending: bool
) -> list[dict[str, Any]]:
    # A swept round budget is called rounds as well; then the rounds that were made are not.
    columns = _COLUMNS | {name: name for name in dims}
    if not isinstance(sort, str) or sort not in columns:
        listed = ", ".join([*dims, *(name for name in _COLUMNS if name not in dims)])
        refuse("sort", sort, f"one of {listed}", did_you_mean(sort, columns, "choose a column"))
    key = columns[sort]
    # NaN, where there are less than two seeds, has no place in an order: it comes last.
    known = [row for row in rows if row[key] == row[key]]
    unknown = [row for row in rows if row[key] != row[key]]
    known.sort(key=lambda row: (isinstance(row[key], str), row[key]), reverse=descending)
    return known + unknown


def _found(row: dict[str, Any], meters: int, asked: Sequence[str]) -> list[str]:
    seeds = int(row["seeds"])
    if seeds < 2:  # no interval
        blank = ["-"] * (2 + len(asked))
        return [*["-"] * (5 + meters), str(seeds), *blank, *_played(row)]
    halves = ((row[f"{name}_upper"] - row[f"{name}_lower"]) / 2 for name in asked)
    half = (row["regret_upper"] - row["regret_lower"]) / 2
    events = [
        f"{int(row[name])} [{row[f'{name}_lower']:.2g}, {row[f'{name}_upper']:.2g}]"
        for name in ("best_arm_lost", "worse_arm_played")
    ]
    return [
        short(row["regret"]),
        short(half),
        f"{100 * half / row['regret']:.2g}" if row["regret"] else "0",
        short(row["rounds_made"]),
        *map(short, row["links"]),
        short(row["cost"]),
        f"{seeds:,}",
        *events,
        *(f"{short(row[n])} ± {short(each)}" for n, each in zip(asked, halves, strict=True)),
        *_played(row),
    ]


def _played(row: dict[str, Any]) -> list[str]:
    if "arm_at_T" not in row:
        return []
    name = "".join(letter if letter.isprintable() else "?" for letter in row["arm_at_T"][:40])
    return [f"{name} ({100 * row['arm_at_T_seeds'] / row['seeds']:.0f} %)"]


def _legend(table: xr.Dataset, share: str) -> str:
    attrs = table.attrs
    prices = f"{attrs['server_price']:g} per server link, {attrs['peer_price']:g} per peer link"
    peers = table.meter.values[((table.side == "peer") & table.priced).values]
    prices += f" ({', '.join(map(str, peers))})" * bool(len(peers))
    return (
        f"Regret, rounds, links and cost are means over the seeds; ± half the\n"
        f"{attrs['description']}.\n"
        f"Links are those of completed rounds.\n"
        f"{costs.LEAK_NOTE}.\n"
        f"Best arm lost, worse arm played at T: seeds, with the {share} Clopper-Pearson interval.\n"
        f"Cost: {prices}.{_rating_points(table)}"
    )


def _rating_points(table: xr.Dataset) -> str:
    """Says what a regret of 1 is where rewards are ratings, which are scaled to [0, 1]."""
    law = said(table, "settings").get("rewards", "")
    levels = law.removeprefix("ratings ").split(", ")
    low, high = number_of(levels[0]), number_of(levels[-1])
    if not law.startswith("ratings ") or low is None or high is None:
        return ""
    return f"\nA regret of 1 is {high - low:g} rating points, from {levels[0]} to {levels[-1]}."


def folded(heading: str) -> str:
    """Folds the heading of a narrow column."""
    return "\n".join(textwrap.wrap(heading, _NARROW, break_long_words=False))


def _latex(text: str) -> str:
    """Writes letters that pdflatex lacks as commands."""
    for letter, command in _LATEX.items():
        text = text.replace(letter, command)
    return _RAISED.sub(lambda found: f"$^{{{found[0].translate(_POWERS)}}}$", text)


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Writes rows of values as CSV; floats read back to the same bits."""
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue().rstrip("\n")
