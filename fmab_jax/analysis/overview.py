"""Builds the table of final values, for the command line, notebooks and papers."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd
import xarray as xr

from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.analysis import budgets, costs, privacy
from fmab_jax.analysis.rows import (
    EVENT_COLUMNS,
    LEAKS_BY_NAME,
    LOST,
    add_named_leaks,
    check_list,
    find_key,
    iterate_rows,
    select_rows,
)
from fmab_jax.analysis.tables import final_table, list_scalar_outputs
from fmab_jax.analysis.words import (
    add_titles,
    is_number,
    list_facts,
    write_label,
    write_name,
    write_short,
    write_tick,
)
from fmab_jax.errors import choice, flag, parse_number
from fmab_jax.parameters import VIEWS, parameters_of
from fmab_jax.run.attributes import json_attr
from fmab_jax.sampling.shapes import Record

FORMATS = ("text", "latex", "html", "markdown", "csv")
"""How a table can be written; "text" is for terminals."""

# Letters that pdflatex lacks or reads as commands.
_COMMANDS = "textbackslash{} textasciicircum{} textasciitilde{} textless{} textgreater{}".split()
_SYMBOLS = "pm varepsilon delta infty times".split()
_LATEX: dict[str, str | int | None] = {"–": "--"}
_LATEX |= {letter: f"\\{letter}" for letter in "&%_#${}"}
_LATEX |= {letter: f"\\{name}" for letter, name in zip("\\^~<>", _COMMANDS, strict=True)}
_LATEX |= {letter: f"$\\{name}$" for letter, name in zip("±εδ∞×", _SYMBOLS, strict=True)}
# Letters of a line in the heading of a column of short numbers.
_NARROW = 9
# Columns that a table has only where they are named; `records` have them.
_OPTIONAL = {*budgets.COLUMNS} - {"links", "links_max"}
_POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_RAISED = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")


@dataclass(frozen=True, repr=False)
class Overview:
    """Final values of every configuration of a result; notebooks show it as a table.

    Attributes:
        title: Settings that all rows share.
        headings: Of the columns; some have two lines.
        rows: Texts, a row for each configuration that has seeds.
        records: The same with all digits, the ends of the intervals, and names for programs.
        legend: Meaning of the columns.
        remarks: Warnings about the numbers.
        ledger: Lines of the privacy ledger.
        paper: Headings and rows for a paper: words in place of names for programs.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    records: tuple[Record, ...]
    legend: str
    remarks: tuple[str, ...]
    ledger: tuple[str, ...]
    paper: tuple[tuple[str, ...], ...]

    def write(self, form: str = "text") -> str:
        """Writes the table.

        Args:
            form: "text"; "html" or "markdown", with title and legend as caption; "latex" (for the
                package booktabs), with both as a comment and words as headings; or "csv", a column
                for each name in ``records``.

        Raises:
            ValueError: For another format.
        """
        choice("format", form, FORMATS, "choose one of these", f"one of {', '.join(FORMATS)}")
        if form == "csv":
            return pd.DataFrame(self.records).to_csv(index=False, na_rep="nan").rstrip("\n")
        heads = [heading.replace("\n", " ") for heading in self.headings]
        rows = [heads, *self.rows]
        caption = f"{self.title}. {self.legend}".replace("\n", " ")
        if form == "latex":
            lines = [" & ".join(map(_write_latex, row)) + r" \\" for row in self.paper]
            head = [rf"\begin{{tabular}}{{{'r' * len(heads)}}}", r"\toprule", lines[0], r"\midrule"]
            lines = [*head, *lines[1:], r"\bottomrule", r"\end{tabular}"]
            return "\n".join([f"% {_write_latex(caption)}", *lines])
        if form == "html":
            body = "\n".join(_write_html_row(row, "td") for row in self.rows)
            body = f"<thead>{_write_html_row(heads, 'th')}</thead>\n<tbody>\n{body}\n</tbody>"
            return f"<table>\n<caption>{escape(caption)}</caption>\n{body}\n</table>"
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rule = ["-" * width for width in widths]
        cells = [map(str.rjust, row, widths) for row in (heads, rule, *self.rows)]
        if form == "markdown":
            return "\n".join([caption, "", *(f"| {' | '.join(row)} |" for row in cells)])
        lines = ["  ".join(row) for row in cells]
        return "\n".join([self.title, "", *lines, "", self.legend, *self.remarks])

    def __str__(self) -> str:
        return self.write()

    # A prompt shows the table, too.
    __repr__ = __str__

    def _repr_html_(self) -> str:
        remarks = "".join(f"<p><strong>{escape(remark)}</strong></p>" for remark in self.remarks)
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
    where: Sequence[str] | str = (),
    columns: Sequence[str] | None = None,
) -> Overview:
    """Returns what every configuration of a result ends with: a table that shows itself.

    What others are told of a reward, regret at T with its interval, rounds, links, cost, and how
    many seeds lost the best arm or play a worse one; the numbers are those of `final_table`.

    Args:
        data: From `simulate`, `sweep`, `open_sweep` or `load`.
        level: As in `final_table`.
        server_price: c1, of an agent-server link.
        peer_price: c2, of an agent-agent link on the meter that is priced.
        sort: A swept parameter, or regret, rounds, cost, seeds, lost, worse, leak, leak_sum,
            leak_actions, links, links_p95, links_max, the same of numbers and bits, links_ and a
            meter, or another column of csv; by default rows have the order of the grid.
        descending: Largest first.
        where: Conditions that rows fulfil, such as "links_max<=500, regret<1e5", or a list of them:
            a column of numbers as in ``sort``; one of <=, >=, <, >, ==, !=; a number.
        columns: Names of the columns wanted, in this order: swept parameters, leak, leak_sum and
            leak_actions (what sums alone, or actions alone, tell; see `add_leaks`), regret,
            interval, percent, rounds, links (of each meter), links_p95, links_max, the same of
            numbers and bits, cost, seeds, lost, worse, and outputs that were asked for and are a
            number of each seed; by default all except leak_sum, leak_actions, links_p95, numbers
            and bits.

    Raises:
        ValueError: If ``data`` is no such result, or another argument is out of range.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(epsilon=1), problem, 10**4, seeds=20)
        >>> found = fmab.overview(data)
        >>> found.title
        'CDP-MAB, ε = 1 (5 per message), M = 5 agents, K = 10 arms, T = 10⁴ slots'
        >>> found.records[0]["regret"] == float(fmab.final_table(data).regret)
        True
        >>> "tabular" in found.write("latex")
        True
    """
    flag("descending", descending)
    table = final_table(data, level=level, server_price=server_price, peer_price=peer_price)
    table = add_named_leaks(table, [sort, where, columns])
    dims = [str(name) for name in table.seeds.dims]
    rows = [row for row in iterate_rows(table, data) if row["seeds"]]
    rows = select_rows(rows, table, data, sort=sort, descending=descending, where=where)
    table_columns = _build_columns(rows, table, list_scalar_outputs(data))
    if columns is None:
        hidden = _OPTIONAL.difference(dims) | ({"links_max"} if not table.sizes["meter"] else set())
        table_columns = [column for column in table_columns if column[0] not in hidden]
    else:
        names = {name: name for name, *_ in table_columns} | {"leak_messages": "leak"}
        listed = dict.fromkeys([*names, *LEAKS_BY_NAME])
        keys_shown = [
            find_key("columns", name, name, names, [*listed])
            for name in check_list("columns", columns)
        ]
        table_columns = [
            column
            for name in dict.fromkeys(keys_shown)
            for column in table_columns
            if column[0] == name
        ]
    level, titled = table.attrs["level"], add_titles(table)
    paper = [_write_for_paper(column, rows, titled, data) for column in table_columns]
    return Overview(
        title=", ".join(list_facts(table, dims, leaks=True)),
        headings=tuple(heading for _, heading, _ in table_columns),
        rows=tuple(zip(*(cells for *_, cells in table_columns), strict=True)),
        records=tuple(
            {n: v for n, v in row.items() if n != "exposure"} | {"level": level} for row in rows
        ),
        legend=_write_legend(table, f"{100 * level:.6g} %"),
        remarks=tuple(write_remarks(table, data)),
        ledger=tuple(privacy.write_lines(table)) if "ledger" in table.coords else (),
        paper=tuple(zip(*paper, strict=True)),
    )


def _write_view(row: Record, view: str) -> str:
    """Writes what a view leaks; "-" where nobody has it, or the result does not say."""
    epsilon = row[f"leak_{view}"]
    return costs.write_epsilon(epsilon, row[f"leak_{view}_delta"]) if epsilon == epsilon else "-"


def compute_half_width(row: Record, name: str = "regret") -> float:
    """Returns half the width of an interval in a row."""
    return (row[f"{name}_upper"] - row[f"{name}_lower"]) / 2


def write_percent(row: Record) -> str:
    """Writes the half-width of the interval of regret in per cent of regret."""
    return f"{100 * compute_half_width(row) / row['regret']:.2g}" if row["regret"] else "0"


def _build_columns(
    rows: Sequence[Record], table: xr.Dataset, outputs: Sequence[str]
) -> list[tuple[str, str, list[str]]]:
    """Returns all columns: name, heading and cells."""
    dims, meters = [str(name) for name in table.seeds.dims], table.meter.values.tolist()
    exposures = [row["exposure"] for row in rows]
    shared = costs.find_shared_observation(exposures)
    share = f"{100 * table.attrs['level']:.6g} %"

    def cells(write: Callable[[Record], str]) -> list[str]:
        return [write(row) if row["seeds"] > 1 else "-" for row in rows]

    def number(name: str) -> list[str]:
        return cells(lambda row: write_short(row[name]))

    def event(name: str) -> list[str]:
        low, high = f"{name}_lower", f"{name}_upper"
        return cells(lambda row: f"{row[name]} [{row[low]:.2g}, {row[high]:.2g}]")

    def asked_for(name: str) -> list[str]:
        return cells(
            lambda row: f"{write_short(row[name])} ± {write_short(compute_half_width(row, name))}"
        )

    leaks = [costs.write_leak_cell(row["exposure"], shared) for row in rows]
    rounds = "rounds\nmade" if "rounds" in dims else "rounds"
    return [
        *((name, name, [write_label(row[name]) for row in rows]) for name in dims),
        ("leak", fold_heading(costs.write_leak_heading(exposures)), leaks),
        *(
            (f"leak_{view}", f"leak ε\n{view}", [_write_view(row, view) for row in rows])
            for view in VIEWS[1:]
            if f"leak_{view}" in table
        ),
        ("regret", "regret\nat T", number("regret")),
        ("interval", f"±\n{share}", cells(lambda row: write_short(compute_half_width(row)))),
        ("percent", "±, %\nof it", cells(write_percent)),
        ("rounds", rounds, number("rounds_made")),
        *(("links", f"links\n{meter}", number(f"links_{meter}")) for meter in meters),
        *(
            (name, budgets.write_heading(name, "\n"), number(name))
            for name in budgets.COLUMNS
            if name != "links" and name in table.data_vars
        ),
        ("cost", "cost", number("cost")),
        ("seeds", "seeds", [f"{row['seeds']:,}" for row in rows]),
        *(
            (name, f"{heading}\n{share}", event(key))
            for name, heading, key in EVENT_COLUMNS
            if key in table
        ),
        *((name, name.replace("_", "\n", 1), asked_for(name)) for name in outputs),
    ]


def _write_for_paper(
    column: tuple[str, str, list[str]], rows: Sequence[Record], table: xr.Dataset, data: xr.Dataset
) -> list[str]:
    """Returns heading and cells of a column of `_build_columns` in words."""
    name, heading, cells = column
    if name in table.seeds.dims:
        words = str(table[name].attrs.get("long_name") or write_name(table[name]))
        # A tick has six digits, which need not tell two numbers apart.
        texts = [write_tick(table[name], row[name]) for row in rows]
        is_text = [isinstance(row[name], str) for row in rows]
        return [words, *np.where(is_text, texts, cells).tolist()]
    if name in list_scalar_outputs(data):
        variable = data[name] if name in data else data[f"{name}_mean"]
        units = variable.attrs.get("units")
        heading = str(variable.attrs.get("long_name") or name) + f" ({units})" * bool(units)
    return [heading.replace("\n", " ").replace("_", " "), *cells]


def _write_legend(table: xr.Dataset, share: str) -> str:
    attrs = table.attrs
    prices = f"{attrs['server_price']:g} per server link, {attrs['peer_price']:g} per peer link"
    peers = table.meter.values[((table.side == "peer") & table.priced).values]
    prices += f" ({', '.join(map(str, peers))})" * bool(len(peers))
    events = ", ".join(heading for _, heading, key in EVENT_COLUMNS if key in table).capitalize()
    others = (
        "Leak, sum and actions: the same, if only sums over agents, or only actions, are seen.\n"
    )
    counted = f"{events} at T: seeds, with the {share} Clopper-Pearson interval.\n"
    return (
        f"Regret, rounds, links and cost are means over the seeds; ± half the\n"
        f"{attrs['description']}.\n"
        f"Links are those of completed rounds; max: the most of a run, on the meters that have a "
        f"price.\n"
        f"{costs.LEAK_NOTE}.\n"
        f"{others if any(f'leak_{view}' in table for view in VIEWS[1:]) else ''}"
        f"{counted if events else ''}"
        f"Cost: {prices}."
    )


def fold_heading(heading: str) -> str:
    """Folds the heading of a narrow column."""
    return "\n".join(textwrap.wrap(heading, _NARROW, break_long_words=False))


def _write_latex(text: str) -> str:
    """Writes letters that pdflatex lacks as commands."""
    text = text.translate(str.maketrans(_LATEX))
    return _RAISED.sub(lambda match: f"$^{{{match[0].translate(_POWERS)}}}$", text)


def _write_html_row(cells: Sequence[str], tag: str) -> str:
    """Writes a row of a table."""
    texts = (f'<{tag} style="text-align: right">{escape(cell)}</{tag}>' for cell in cells)
    return f"<tr>{''.join(texts)}</tr>"


def write_remarks(table: xr.Dataset, data: xr.Dataset) -> list[str]:
    """Returns remarks, in lines, on results and their `final_table`."""
    total, lines = table.seeds.size, []

    def rows(number: int) -> str:
        return f" in {number:,} of {total:,} rows" * (total > 1)

    if empty := int((table.seeds == 0).sum()):
        noun = "configuration" + "s" * (empty > 1)
        lines.append(f"{empty:,} {noun} not begun yet: run the sweep's command again.")
    idle = (table.rounds_made == 0) & (table.undecided == table.seeds) & (table.seeds > 0)
    if number := int(idle.sum()):
        lines.append(
            f"No round was completed by T{rows(number)}: T is shorter than the first epoch, every "
            "seed still explores.\nTake a longer horizon."
        )
    shares = (100 * table.undecided / table.seeds).where((table.seeds > 0) & ~idle)
    if float(shares.max()) >= 1:
        share = privacy.write_range([round(float(end)) for end in (shares.min(), shares.max())])
        lines.append(
            f"{share} % of the seeds still explore at T: no arm is chosen yet.\nTo see "
            "a choice, take a longer horizon or fewer arms."
        )
    places = np.argwhere(table.seeds.values)
    cells = [table.isel(dict(zip(table.seeds.dims, place, strict=True))) for place in places]
    budgets, unproven = _find_remarks(cells)
    if budgets:
        rounds, mean, percent = map(privacy.write_range, zip(*budgets, strict=True))
        lines.append(
            f"A budget of {rounds} rounds does not fit T{rows(len(budgets))}: {mean} are made on "
            f"average, and {percent} % of the seeds still explore.\n"
            "Take a longer horizon, or let more agents report."
        )
    for values in unproven.values():
        words = " and ".join(dict.fromkeys(text for text, _ in values))
        lines.append(f"No theorem covers {words}{rows(len(values))}: {values[0][1]}.")
    if number := sum(costs.read_exposure(cell).has_open_actions for cell in cells):
        lines.append(
            f"Actions have no bound{rows(number)}: the leaks are those of what is sent alone."
        )
    unsaid = table.leak_messages.isnull() & (table.seeds > 0)
    if number := int(unsaid.sum()):
        lines.append(
            f"What leaks is not known{rows(number)}: the result does not say, and its study cannot "
            "be built\nagain. Load its plug-in (--plugin), if it has one."
        )
    if LOST in table and int((table[LOST] * _has_heterogeneous_agents(table, data)).sum()):
        lines.append(
            "Best arms were lost where agents differ. If only some of them report (p < 1), or each "
            'is alone,\nno bound holds: docs/theory.md, "Corollary 3 (agents differ)".'
        )
    return lines


def _find_remarks(
    cells: Iterable[xr.Dataset],
) -> tuple[list[tuple[float, float, float]], dict[str, list[tuple[str, str]]]]:
    """Returns round budgets that do not fit, and values without a theorem, by parameter.

    A budget has the rounds made and the per cent of seeds that still explore; a value, the remedy.
    """
    budgets: list[tuple[float, float, float]] = []
    unproven: dict[str, list[tuple[str, str]]] = {}
    for cell in cells:
        owner = costs.find_algorithm(cell)
        parameters = parameters_of(owner) if owner else {}
        values = costs.read_parameters(cell)
        for name, parameter in parameters.items():
            if parameter.proven:
                value = values.get(name, parameter.default)
                if not parameter.is_proven(value):
                    unproven.setdefault(name, []).append(
                        (parameter.format_value(value), parameter.remedy)
                    )
        # A seed that has spent its budget explores no more.
        if owner and issubclass(owner, Elimination) and "rounds" in parameters:
            budget = values.get("rounds", parameters["rounds"].default)
            rounds, share = float(cell.rounds_made), float(cell.undecided / cell.seeds)
            if is_number(budget) and 0 < rounds < budget and share >= 0.01:
                budgets.append((budget, rounds, round(100 * share)))
    return budgets, unproven


def _has_heterogeneous_agents(table: xr.Dataset, data: xr.Dataset) -> xr.DataArray | bool:
    """Tells where the means of agents differ."""
    if "spread" in table.coords:
        # A label without a number may stand for any spread.
        spread = table.spread
        return spread.copy(data=np.vectorize(lambda x: parse_number(str(x)) != 0)(spread.values))
    fixed = "means" in data and data["means"].sizes.get("row", 1) > 1
    return fixed or "spread" in json_attr(table, "settings")
