"""The page of a plan: its answer, the candidates beside it, and the race."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from fmab_jax.analysis.costs import write_epsilon
from fmab_jax.analysis.words import write_short
from fmab_jax.files import check_path
from fmab_jax.planning.answers import FILE, NO_COMMAND
from fmab_jax.planning.runs import Look
from fmab_jax.plots.race import plot_race
from fmab_jax.reports.content import make_picture
from fmab_jax.reports.page import Table, render_template
from fmab_jax.sampling.shapes import Record


def find_plan(source: object) -> Path | None:
    """Returns the file of a plan, if a source is its folder; else None."""
    if not isinstance(source, (str, os.PathLike)):
        return None
    path = check_path("sources", source) / FILE
    return path if os.path.isfile(path) else None


def render_plan(document: Record, title: str | None = None) -> str:
    """Returns the page of a document that `read_document` returned."""
    looks = [Look(*(row[name] for name in Look._fields)) for row in document["looks"]]
    figure = plot_race(looks, document["label"], document["infeasible"])
    gap = document["final_gap"]
    facts = [] if gap is None else [("gap played at T, mean", f"{gap:.3g}")]
    for view, leak in document["leak"].items():
        text = write_epsilon(math.inf if leak is None else leak, document["delta"].get(view, 0.0))
        facts.append((f"leak of one reward, view of {view}", text))
    if document["remark"]:
        facts.append(("note", document["remark"]))
    return render_template(
        "plan.html.j2",
        title=title or "What to run",
        plan=document,
        no_command=NO_COMMAND,
        figures=_tabulate_figures(document),
        facts=facts,
        question=[(name, _write_setting(value)) for name, value in document["setting"].items()],
        rivals=_tabulate_rivals(document),
        race=_tabulate_race(document),
        pictures=[make_picture(figure)],
    )


def _tabulate_figures(document: Record) -> Table:
    heads = ["quantity", "mean", "interval", "95 % of runs at most", "maximum"]
    rows = []
    names = {"regret": "regret at T", "links": "links", "numbers": "numbers", "bits": "bits"}
    for name, label in names.items():
        summary = document[name]
        interval = f"[{write_short(summary['low'])}, {write_short(summary['high'])}]"
        ends = [write_short(summary["p95"]), write_short(summary["max"])]
        rows.append([label, write_short(summary["mean"]), interval, *ends])
    return Table("The answer's runs", heads, rows)


def _tabulate_rivals(document: Record) -> Table:
    rows = [
        [f"with {row['for']}", row["label"], _write_number(row["regret"]), "", ""]
        for row in document["front"]
    ]
    for row in document["rivals"]:
        more = "" if row["more"] is None else f"{100 * row['more']:+.3g} %"
        if None not in (row["more_low"], row["more_high"]):
            more += f" [{100 * row['more_low']:.3g}, {100 * row['more_high']:.3g}]"
        budget = f"too many {row['budget']}" if row["budget"] else ""
        rows.append(["rival", row["label"], _write_number(row["mean"]), more, budget])
    heads = ["for", "candidate", "mean regret", "more than the answer", "budget"]
    return Table("Beside the answer", heads, rows)


def _tabulate_race(document: Record) -> Table:
    """Returns the table of candidates, the smallest mean regret first."""
    rows = []
    infeasible = {*document["infeasible"]}
    for row in sorted(document["race"], key=_rank):
        state = "not surely worse" if row["survives"] else "surely worse"
        state = "exceeds a budget" if row["label"] in infeasible else state
        seeds, regret = f"{row['seeds']:,}", _write_number(row["regret"])
        rows.append([row["label"], state, regret, seeds])
    heads = ["candidate", "at the end", "mean regret", "seeds"]
    return Table("Candidates", heads, rows, 1, "sortable")


def _rank(row: dict[str, Any]) -> float:
    return math.inf if row["regret"] is None else float(row["regret"])


def _write_setting(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _write_number(value: float | None) -> str:
    return "not known" if value is None else write_short(value)
