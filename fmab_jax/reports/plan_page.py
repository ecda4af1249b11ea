"""The page of a plan: its answer, the candidates beside it, and the race."""

from __future__ import annotations

import math
import os
from html import escape
from pathlib import Path

import pandas as pd

from fmab_jax.analysis.costs import write_epsilon
from fmab_jax.analysis.words import write_short
from fmab_jax.files import check_path
from fmab_jax.planning.answers import FILE, State, list_rivals
from fmab_jax.planning.runs import Look
from fmab_jax.plots.race import plot_race
from fmab_jax.reports.blocks import (
    write_code,
    write_facts,
    write_figure,
    write_note,
    write_page,
    write_table,
)
from fmab_jax.sampling.shapes import Record

NO_COMMAND = "No words of a command state a graph or a partition of this configuration."


def find_plan(source: object) -> Path | None:
    """Returns the file of a plan, if a source is its folder; else None."""
    if not isinstance(source, (str, os.PathLike)):
        return None
    path = check_path("sources", source) / FILE
    return path if os.path.isfile(path) else None


def render_plan(document: Record, title: str | None = None) -> str:
    """Returns the page of a document that `read_document` returned."""
    frame = pd.DataFrame(document["candidates"])
    # Where no row has a number, null would be None.
    frame = frame.astype(dict.fromkeys(("regret", "more", "more_low", "more_high"), float))
    looks = [Look(*(row[name] for name in Look._fields)) for row in document["looks"]]
    over = list(frame.candidate[frame.state == State.OVER])
    gap, line = document["final_gap"], document["command"]
    facts = [] if gap is None else [("gap played at T, mean", f"{gap:.3g}")]
    for view, (epsilon, delta) in document["leaks"].items():
        text = write_epsilon(math.inf if epsilon is None else epsilon, delta or 0.0)
        facts.append((f"leak of one reward, view of {view}", text))
    facts += [("note", document["remark"])] * bool(document["remark"])
    sections = {
        "The answer": [
            f"<p>{escape(document['statement'])}</p>",
            write_code(line, "Command") if line else write_note(NO_COMMAND),
            write_table(_show_figures(document), "The answer's runs"),
            write_note("Intervals are those of the mean, 95 %, Student."),
            write_facts(facts),
        ],
        "The question": [write_facts(document["question"].items())],
        "Other candidates": [
            write_table(_show_rivals(document, frame), "Beside the answer"),
            *(write_note(f"{note}.") for note in document["notes"]),
        ],
        "The race": [
            write_figure(plot_race(looks, document["label"], over), "The race"),
            write_table(_show_candidates(frame), "Candidates"),
            write_note("All candidates run on the same seeds; means are over all of a candidate."),
        ],
        "The plan again": [write_code(document["plan"], "Command of the plan")],
    }
    return write_page(title or "What to run", sections)


def _show_figures(document: Record) -> pd.DataFrame:
    names = {"regret": "regret at T", "links": "links", "numbers": "numbers", "bits": "bits"}
    rows = []
    for name, label in names.items():
        texts = {end: write_short(number) for end, number in document[name].items()}
        row = {"quantity": label, "mean": texts["mean"]}
        row["interval"] = f"[{texts['low']}, {texts['high']}]"
        rows.append(row | {"95 % of runs at most": texts["p95"], "maximum": texts["max"]})
    return pd.DataFrame(rows)


def _show_rivals(document: Record, frame: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {"for": f"with {x['purpose']}", "candidate": x["label"], "regret": write_short(x["mean"])}
        for x in document["front"]
    ]
    for row in list_rivals(frame).itertuples():
        more = "" if math.isnan(row.more) else f"{100 * row.more:+.3g} %"
        more += f" [{100 * row.more_low:.3g}, {100 * row.more_high:.3g}]" * bool(more)
        texts = {"for": "rival", "candidate": row.candidate, "regret": write_short(row.regret)}
        texts |= {"more than the answer": more}
        rows.append(texts | {"budget": f"too many {row.over}" if row.over else ""})
    return pd.DataFrame(rows).fillna("")


def _show_candidates(frame: pd.DataFrame) -> pd.DataFrame:
    regret = [write_short(x.regret) if x.seeds else "" for x in frame.itertuples()]
    seeds = frame.seeds.map("{:,.0f}".format)
    shown = pd.DataFrame({"candidate": frame.candidate, "at the end": frame.state})
    return shown.assign(**{"mean regret": regret, "seeds": seeds})
