"""Which version of the package computed each table of figures/, and when.

figures/runs.csv has a row for each table. A page that shows a table says it in one line. The
version is the last one that was released when the run began.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fmab_jax as fmab
from experiments import common, seen

FILE = "runs.csv"
# Tables that a page shows without a link to their CSV.
UNNAMED = {
    "ARENA": r"arena_(?:leak_)?T1e\d|arena_(?:ledger|settings|caps)",
    "CLAIMS": "claims",
    "audit": "audit|audit_mechanisms",
    **{f"arena_regret_T1e{power}": f"arena_(?:regret_)?T1e{power}" for power in (4, 5, 6)},
}
LINE = re.compile(r"^Computed by fmab_jax .*\.$", re.M)


def record(tables: Iterable[Path], stores: Iterable[Path]) -> None:
    """Records the run of tables of one folder: that of their newest chunk, or now without any."""
    tables = [path for path in tables if path.suffix == ".csv" and path.name != FILE]
    if not tables:
        return
    version, date = _find_run(stores)
    path = tables[0].parent / FILE
    rows = {row["table"]: row for row in common.read_rows(path)} if path.exists() else {}
    for table in tables:
        cells = {"table": table.stem, "version": version, "date": date, "sha256": digest(table)}
        # A table that came out the same was computed by this run as well.
        rows[table.stem] = cells
    common.save_rows([rows[name] for name in sorted(rows)], path)


def digest(table: Path) -> str:
    """Returns what tells one state of a table from another."""
    return hashlib.sha256(table.read_bytes()).hexdigest()[:16]


def _find_run(stores: Iterable[Path]) -> tuple[str, str]:
    """Returns the version and the day of the newest chunk of some stores, or those of now."""
    newest: tuple[float, str] = (0.0, "")
    for manifest in (path for store in stores for path in store.rglob("manifest-*.jsonl")):
        lines = manifest.read_text("utf-8").splitlines()
        if lines:
            version = json.loads(lines[-1])["facts"]["made_by"]["fmab_jax"].split()[0]
            newest = max(newest, (manifest.stat().st_mtime, version))
    if not newest[1]:
        return fmab.__version__, _write_day(datetime.now(UTC))
    return newest[1], _write_day(datetime.fromtimestamp(newest[0], UTC))


def _write_day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"


def describe(folder: Path, names: Iterable[str]) -> str:
    """Returns the line of some tables: which version computed them, and when."""
    rows: dict[str, dict[str, Any]] = {r["table"]: r for r in common.read_rows(folder / FILE)}
    return write_runs({n: (rows[n]["version"], rows[n]["date"]) for n in sorted(names)})


def write_runs(runs: Mapping[str, tuple[str, str]]) -> str:
    """Writes the version and the day of runs, by what they computed."""
    texts = {name: f"{version} on {date}" for name, (version, date) in runs.items()}
    return f"Computed by fmab_jax {seen.grouped(texts)}."


def write_line(page: Path) -> None:
    """Writes the line at the end of a page of figures/, in place of an older one."""
    text = LINE.sub("", page.read_text("utf-8")).rstrip()
    line = describe(page.parent, tables_of(page.stem, text, page.parent))
    with common.whole_file(page) as temporary:
        temporary.write_text(f"{text}\n\n{line}\n", encoding="utf-8")


def tables_of(stem: str, text: str, folder: Path) -> set[str]:
    """Returns the tables that a page of a folder shows."""
    linked = {name for name in re.findall(r"\((\w+)\.csv\)", text)}
    unnamed = re.compile(UNNAMED.get(stem, stem))
    return linked | {path.stem for path in folder.glob("*.csv") if unnamed.fullmatch(path.stem)}
