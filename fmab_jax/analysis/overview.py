"""Selects rows of a table of final values by conditions, and shows them to people."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
import pandas as pd
import xarray as xr

from fmab_jax.analysis import costs
from fmab_jax.analysis.tables import add_leaks, table
from fmab_jax.analysis.words import is_number, shorten, write_label, write_short, write_tick
from fmab_jax.errors import describe_error, did_you_mean, flag, refuse
from fmab_jax.parameters import VIEWS, ViewKind

OLD_NAMES = {"rounds": "rounds_made", "lost": "best_arm_lost", "worse": "worse_arm_played"}
OLD_NAMES |= {"leak": "leak_messages", "leak_epsilon": "leak_messages"}
OLD_NAMES |= {"interval": "regret", "percent": "regret"}
"""Columns by their names in version 0.3, which are read for one more version."""

_COUNTS = ("lost", "worse")
_LONGEST = 1000
# What a condition may be made of; no calls, attributes or powers.
_NODES: tuple[type[ast.AST], ...] = (
    *(ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Name, ast.Constant, ast.List),
    *(ast.Tuple, ast.boolop, ast.unaryop, ast.expr_context),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div),
)
# Texts in quotes, and the operators & and |.
_OPERATORS = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[&|]")
# A leak of 1 may be stored as 0.99999999999999, and 0.3 as 0.30000000000000004.
_TOLERANCE = 1e-9


class TextTable(pd.DataFrame):  # type: ignore[misc]
    """A table of texts, which prints its title, legend and remarks with it."""

    def __str__(self) -> str:
        attrs = self.attrs
        lines = [attrs.get("title", ""), "", self.to_string(index=False), ""]
        return "\n".join([*lines, *attrs.get("legend", ()), *attrs.get("remarks", ())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        attrs = self.attrs
        remarks = "".join(f"<p><strong>{escape(x)}</strong></p>" for x in attrs.get("remarks", ()))
        legend = "<br>".join(map(escape, attrs.get("legend", ())))
        title = f"<p>{escape(attrs.get('title', ''))}</p>"
        return f"<div>{title}{self.to_html(index=False)}<p>{legend}</p>{remarks}</div>"


def show(
    frame: pd.DataFrame, columns: Sequence[str] | None = None, *, words: bool = False
) -> TextTable:
    """Returns a table of `table` as texts for people.

    ``to_string``, ``to_html``, ``to_markdown`` and ``to_latex`` are those of pandas; ``print`` and
    notebooks add title, legend and remarks, which are in ``attrs``.

    Args:
        frame: From `table`, or some of its rows and columns. Configurations without seeds are left
            out.
        columns: Names of its columns to show, in this order. A mean is shown with its interval. By
            default the swept parameters, leaks, means, ``links_max``, events and seeds.
        words: Whether parameters and their values have words for a paper, such as "privacy
            parameter ε" and "no noise".

    Raises:
        ValueError: If ``frame`` is no DataFrame or lacks a column.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.sweep(fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20)
        >>> shown = fmab.show(fmab.table(data), ["epsilon", "leak_messages", "seeds"])
        >>> print(shown.to_string(index=False))
        epsilon leak ε of single messages seeds
            0.1                       0.5    20
              1                         5    20
    """
    if not isinstance(frame, pd.DataFrame):
        refuse("frame", type(frame).__name__, "what table returned", "write show(table(data))")
    if columns is None:
        usual = [name for name in frame if not str(name).endswith(("_lower", "_upper"))]
        columns = [name for name in frame.attrs.get("shown", usual) if name in frame]
    else:
        columns = find_columns(frame, "columns", columns)
    rows = frame[frame.seeds > 0] if "seeds" in frame else frame
    flag("words", words)
    texts = dict(_write_column(rows, name, words) for name in columns)
    shown = TextTable(texts, index=rows.index)
    shown.attrs = frame.attrs | {"legend": _write_legend(frame, columns)}
    return shown


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
) -> TextTable:
    """Returns `show` of the `table` of a result, for one more version.

    Args:
        data: As in `table`.
        level: As in `table`.
        server_price: As in `table`.
        peer_price: As in `table`.
        sort: Name of a column, by which rows are sorted.
        descending: Largest first.
        where: Condition of rows, such as "links_max <= 400 and leak_messages <= 2", as pandas'
            ``query`` reads it; or several, which all hold. Numbers are alike up to 1e-9 of them.
        columns: As in `show`; ``leak_sum`` and ``leak_actions`` are computed where they are named.

    Raises:
        ValueError: If ``data`` is no such result, or another argument is out of range.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.sweep(fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20)
        >>> fmab.overview(data, where="leak_messages <= 2").epsilon.tolist()
        ['0.1']
    """
    flag("descending", descending)
    data = add_named_leaks(data, [sort, where, columns])
    frame = table(data, level=level, server_price=server_price, peer_price=peer_price)
    return show(sort_rows(select_rows(frame, where), sort, descending), columns)


def add_named_leaks(data: xr.Dataset, texts: Iterable[object]) -> xr.Dataset:
    """Returns results with the leaks of the views that conditions or columns name."""
    values = [x for text in texts for x in (text if isinstance(text, (list, tuple)) else [text])]
    named = " ".join(value for value in values if isinstance(value, str))
    views = [view for view in VIEWS[1:] if f"leak_{view}" in named]
    return add_leaks(data, views) if views else data


def select_rows(frame: pd.DataFrame, where: Sequence[str] | str) -> pd.DataFrame:
    """Returns the rows of a table that fulfil conditions; ``where`` as in `overview`."""
    for text in [where] if isinstance(where, str) else _check_list("where", where):
        condition = _read_condition(frame, text)
        constants = [x.value for x in ast.walk(condition) if isinstance(x, ast.Constant)]
        texts = {
            part.id
            for node in ast.walk(condition)
            if isinstance(node, ast.Compare) and _has_text(node)
            for part in ast.walk(node)
            if isinstance(part, ast.Name)
        }
        values = frame.assign(**{n: _drop_texts(frame[n]) for n in frame if n not in texts})
        numbers = values.select_dtypes("number")
        try:
            for number in {sign * x for x in constants if is_number(x) for sign in (1, -1)}:
                numbers = numbers.mask(np.isclose(numbers, number, rtol=_TOLERANCE, atol=0), number)
            mask = values.assign(**numbers).eval(
                ast.unparse(condition),
                engine="python",
                local_dict={},
                global_dict={},
                resolvers=({"inf": math.inf},),
            )
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            remedy = f"compare numbers with numbers, texts with == or != ({describe_error(error)})"
            refuse("where", text, "a condition of its columns", remedy)
        if not isinstance(mask, pd.Series) or mask.dtype != bool:
            refuse("where", text, "true or false of a row", "compare a column with a number")
        frame = frame[mask]
    return frame


def _has_text(node: ast.AST) -> bool:
    constants = (x.value for x in ast.walk(node) if isinstance(x, ast.Constant))
    return any(isinstance(value, str) for value in constants)


def _drop_texts(column: pd.Series) -> pd.Series:
    """Returns the numbers of a column that has texts as well; texts are NaN."""
    has_numbers = column.dtype == object and any(map(is_number, column))
    return pd.to_numeric(column, errors="coerce") if has_numbers else column


def sort_rows(frame: pd.DataFrame, sort: str | None, descending: bool = False) -> pd.DataFrame:
    """Returns the rows of a table sorted by a column; NaN comes last."""
    if sort is None:
        return frame
    (name,) = find_columns(frame, "sort", [sort])

    def key(column: pd.Series) -> pd.Series:
        return column.map(str) if column.dtype == object else column

    return frame.sort_values(name, ascending=not descending, kind="stable", key=key)


def find_places(data: xr.Dataset, where: Sequence[str] | str) -> list[tuple[int, ...]]:
    """Returns the indices of the configurations with seeds that fulfil conditions.

    Args:
        data: Results with ``seeds`` over the swept parameters.
        where: As in `overview`.
    """
    frame = select_rows(table(add_named_leaks(data, [where])), where)
    places = [*np.ndindex(data.seeds.shape)]
    return [places[i] for i in frame.index[frame.seeds > 0]]


def find_columns(frame: pd.DataFrame, field: str, names: object) -> list[str]:
    """Returns names of columns, old ones by their new names; refuses those a table lacks."""
    found = [_find_column(frame, field, name, name) for name in _check_list(field, names)]
    return [*dict.fromkeys(found)]


def _find_column(frame: pd.DataFrame, field: str, value: object, name: object) -> str:
    if isinstance(name, str) and name not in frame and OLD_NAMES.get(name) in frame:
        new, unit = OLD_NAMES[name], ", a share of the seeds" * (name in _COUNTS)
        if name in _COUNTS and field == "where":
            refuse(field, value, f"about {new}{unit}", f"divide by the seeds: {new} <= 0.01")
        warnings.warn(f"{field}: {name} is {new} now{unit}", FutureWarning, stacklevel=2)
        return new
    if not isinstance(name, str) or name not in frame:
        allowed = "about columns of the table" + (f", not {name!r}" if field == "where" else "")
        remedy = did_you_mean(name, frame.columns, "see fmab show --format csv")
        if field == "where" and name == "none":
            remedy = "none among numbers is inf"
        refuse(field, value, allowed, remedy)
    return name


def _check_list(field: str, values: object) -> Sequence[object]:
    """Returns a list or tuple; refuses anything else."""
    if not isinstance(values, (list, tuple)):
        refuse(field, values, "a list of texts", "write it in brackets, each in quotes")
    return values


def _read_condition(frame: pd.DataFrame, text: object) -> ast.expr:
    """Reads a condition; commas and old names are translated, and a warning says so."""
    allowed = "a condition such as links_max <= 400 and leak_messages <= 2"
    remedy = "compare columns by <= >= < > == !=, and join with and, or, not"
    try:
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise SyntaxError
        # As in pandas, & and | are "and" and "or"; Python would bind them before comparisons.
        spoken = {"&": " and ", "|": " or "}
        plain = _OPERATORS.sub(lambda match: spoken.get(match[0], match[0]), text.strip())
        tree = ast.parse(plain, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        refuse("where", text, allowed, remedy)
    # 1,000 is no condition and a number.
    parts = tree.elts if isinstance(tree, ast.Tuple) else []
    if len(parts) > 1 and all(isinstance(part, ast.Compare) for part in parts):
        tree = ast.BoolOp(ast.And(), parts)
        line = f"where: commas are and now: {ast.unparse(tree)}"
        warnings.warn(line, FutureWarning, stacklevel=2)
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if (
            isinstance(tree, ast.Tuple)
            or not isinstance(node, _NODES)
            or (
                isinstance(node, ast.Constant)
                and not (is_text or isinstance(node.value, (int, float)))
            )
        ):
            refuse("where", text, allowed, remedy)
        if isinstance(node, ast.BinOp) and _has_text(node):
            refuse("where", text, allowed, remedy)
        if isinstance(node, ast.Name) and node.id != "inf":
            node.id = _find_column(frame, "where", text, node.id)
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Compare)):
        parts = [node.left, *node.comparators]
        names = [x.id for x in parts if isinstance(x, ast.Name) and x.id in frame]
        numbers = [name for name in names if frame[name].dtype.kind in "iuf"]
        if numbers and _has_text(node):
            # No row would equal it.
            allowed = f"a comparison of {numbers[0]} with numbers"
            refuse("where", text, allowed, "none among them is inf")
    return tree


def _write_column(rows: pd.DataFrame, name: str, words: bool) -> tuple[str, list[str]]:
    """Returns heading and texts of a column."""
    values, heading = rows[name], name.replace("_", " ")
    facts = rows.attrs.get("words", {}).get(name, {})
    if name.startswith("leak_") and f"{name}_delta" in rows:
        return _write_leaks(rows, name)
    if name in rows.attrs.get("dims", ()):
        coordinate = xr.DataArray(0, name=name, attrs=facts)
        # np.linspace gives 0.30000000000000004, which people write as 0.3.
        rounded = values.map(lambda x: float(f"{x:.15g}") if isinstance(x, float) else x)
        values = rounded if rounded.nunique() == values.nunique() else values
        # A tick has six digits, which need not tell two numbers apart.
        texts = [
            write_tick(coordinate, x) if words and not (is_number(x) and math.isfinite(x))
            else write_label(x)
            for x in values
        ]  # fmt: skip
        return str(facts.get("long_name", heading)) if words else name, texts
    if words and "long_name" in facts:
        heading = facts["long_name"] + f" ({facts.get('units')})" * bool(facts.get("units"))
    share = f"{100 * rows.attrs.get('level', 0.95):.6g} %"
    is_share = rows.attrs.get("units", {}).get(name) == "share of seeds"
    if not {f"{name}_lower", f"{name}_upper"} <= {*rows}:
        heading += ", %" * is_share
        return heading, [_write_value(x) for x in (100 * values if is_share else values)]
    low, high = rows[f"{name}_lower"], rows[f"{name}_upper"]
    if is_share:
        ends = zip(100 * values, 100 * low, 100 * high, strict=True)
        texts = [
            "-" if x != x else f"{x:.3g} [{_write_end(a)}, {_write_end(b)}]" for x, a, b in ends
        ]
        return f"{heading}, % [{share}]", texts
    texts = [
        "-" if x != x else f"{write_short(x)} ± {write_short(float(f'{half:.2g}'))}"
        for x, half in zip(values, (high - low) / 2, strict=True)
    ]
    return f"{heading} ± {share}", texts


def _write_end(percent: float) -> str:
    # Two digits of 99.6 would be 1e+02.
    return f"{percent:.{2 + (percent >= 99)}g}"


def _write_value(value: object) -> str:
    if isinstance(value, str) or not is_number(value):
        return "-" if value != value else shorten(str(value))
    return write_short(value) if math.isfinite(value) else write_label(value)


def _write_leaks(rows: pd.DataFrame, name: str) -> tuple[str, list[str]]:
    """Returns heading and texts of the leaks of a view."""
    pairs = zip(rows[name], rows[f"{name}_delta"], strict=True)
    if name != "leak_messages" or "leak_view" not in rows:
        texts = ["-" if x != x else costs.write_epsilon(x, delta) for x, delta in pairs]
        return f"leak ε, {name.removeprefix('leak_')}", texts
    exposures = [
        costs.Cost(x, delta, None if view in ("", costs.NO_MESSAGES) else ViewKind.MESSAGES, view)
        for (x, delta), view in zip(pairs, rows.leak_view, strict=True)
    ]
    shared = costs.find_shared_observation(exposures)
    texts = [costs.write_leak_cell(exposure, shared) for exposure in exposures]
    return costs.write_leak_heading(exposures), texts


def _write_legend(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Returns the meaning of the columns that are shown, in lines."""
    attrs, lines = frame.attrs, list[str]()
    if not {"interval", "meters", "units"} <= {*attrs}:
        return lines
    shares = [name for name, unit in attrs["units"].items() if unit == "share of seeds"]
    estimates = [name for name in columns if f"{name}_lower" in frame]
    if {*estimates} - {*shares}:
        lines.append(f"Means over the seeds; ± half the {attrs['interval']}.")
    if events := [name for name in estimates if name in shares]:
        share = f"{100 * attrs['level']:.6g} %"
        names = ", ".join(events).replace("_", " ").capitalize()
        lines.append(f"{names}: % of the seeds at T, with the {share} Clopper-Pearson interval.")
    if any(name.startswith("leak_") for name in columns):
        lines.append(f"{costs.LEAK_NOTE}.")
    if {"leak_sum", "leak_actions"} & {*columns}:
        lines.append("Leak, sum or actions: the same, if only sums or only actions are seen.")
    meters = attrs["meters"]
    counted = [name for name, meter in meters.items() if meter["counted"]]
    if {"links", "links_p95", "links_max"} & {*columns}:
        where = f", on {' and '.join(counted)}" * (len(counted) < len(meters))
        lines.append(f"Links are those of completed rounds; max: the most of any run{where}.")
    if "cost" in columns:
        peers = [name for name in counted if meters[name]["side"] == "peer"]
        prices = f"{attrs['server_price']:g} per server link, {attrs['peer_price']:g} per peer link"
        prices += f" ({', '.join(peers)})" * bool(peers)
        lines.append(f"Cost: {prices}.")
    return lines
