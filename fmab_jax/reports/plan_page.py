"""The page of a plan: its answer, the candidates beside it, and the race."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pandas as pd

from fmab_jax.analysis.costs import write_epsilon
from fmab_jax.analysis.words import write_short
from fmab_jax.files import check_path
from fmab_jax.planning.answers import FILE, State, list_rivals
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
    frame = pd.DataFrame(document["candidates"])
    looks = [Look(*(row[name] for name in Look._fields)) for row in document["looks"]]
    over = frame.candidate[frame.state == State.OVER]
    gap = document["final_gap"]
    facts = [] if gap is None else [("gap played at T, mean", f"{gap:.3g}")]
    for view, (epsilon, delta) in document["leaks"].items():
        text = write_epsilon(math.inf if epsilon is None else epsilon, delta or 0.0)
        facts.append((f"leak of one reward, view of {view}", text))
    if document["remark"]:
        facts.append(("note", document["remark"]))
    return render_template(
        "plan.html.j2",
        title=title or "What to run",
        plan=document,
        figures=_tabulate_figures(document),
        facts=facts,
        question=[*document["question"].items()],
        rivals=_tabulate_rivals(document, frame),
        race=_tabulate_race(frame),
        pictures=[make_picture(plot_race(looks, document["label"], list(over)))],
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


def _tabulate_rivals(document: Record, frame: pd.DataFrame) -> Table:
    rows = [
        [f"with {row['purpose']}", row["label"], write_short(row["mean"]), "", ""]
        for row in document["front"]
    ]
    for row in list_rivals(frame).itertuples():
        more = "" if math.isnan(row.more) else f"{100 * row.more:+.3g} %"
        more += f" [{100 * row.more_low:.3g}, {100 * row.more_high:.3g}]" * bool(more)
        budget = f"too many {row.over}" if row.over else ""
        rows.append(["rival", row.candidate, write_short(row.regret), more, budget])
    heads = ["for", "candidate", "mean regret", "more than the answer", "budget"]
    return Table("Beside the answer", heads, rows)


def _tabulate_race(frame: pd.DataFrame) -> Table:
    """Returns the table of candidates, the answer first, then by mean regret."""
    rows = [
        [x.candidate, x.state, write_short(x.regret) if x.seeds else "", f"{x.seeds:,.0f}"]
        for x in frame.itertuples()
    ]
    heads = ["candidate", "at the end", "mean regret", "seeds"]
    return Table("Candidates", heads, rows, 1, "sortable")
