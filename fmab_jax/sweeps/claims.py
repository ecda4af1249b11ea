"""What a store is for: the study that it holds, or that takes it, and which chunks are intact."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Mapping
from typing import Any

from fmab_jax.errors import Busy, PlainText, abbreviate, did_you_mean, refuse
from fmab_jax.run.outputs import of_study
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.progress import Progress
from fmab_jax.sweeps.store import FORMAT, Entry, Store


def header_in(store: Store) -> dict[str, Any] | None:
    """Returns what a store's run.json says, or None if nobody wrote it yet; refuses any other."""
    header = store.header()
    if header is not None and (version := header.get("format", 1)) != FORMAT:
        remedy = "run the sweep again into another folder, or use the package that made it"
        if isinstance(version, int) and version > FORMAT:
            remedy = "use the newer package that made it"
        allowed = f"of format {FORMAT}"
        refuse("store", str(store.path), allowed, f"it is of format {version}: {remedy}")
    return header


def open_existing(
    store: str | os.PathLike[str], results: Results, allow_changes: Collection[str]
) -> None:
    """Adds what a store seems to hold of a study; refuses one that holds another."""
    if os.path.lexists(store):
        hidden = os.path.isdir(store) and all(name.startswith(".") for name in os.listdir(store))
        if not hidden:
            folder = Store(store)
            _compare(folder, results.header, allow_changes)
            results.replace_entries(folder, folder.entries()[0])
    # Whoever opens the store has to find its outputs.
    of_study(results.header["study"].get("outputs", []))


def _compare(
    folder: Store, header: Mapping[str, Any], allow_changes: Collection[str]
) -> dict[str, Any] | None:
    """Returns the store's header; refuses it where a field differs that may not."""
    old = header_in(folder)
    if old is None:
        return None
    old_fields, new_fields = ({**record["study"], **record["made_by"]} for record in (old, header))
    for name in allow_changes:
        if name not in old_fields and name not in new_fields:
            remedy = did_you_mean(
                name, {**old_fields, **new_fields}, "name the field that was refused"
            )
            refuse("allow_changes", name, "a field of the study or a package", remedy)
    # More or fewer seeds, and another order of the dimensions, change no chunk.
    free = {"seeds", "until", "axes", *allow_changes}
    names = {*old_fields, *new_fields} - free
    for name in sorted(names, key=lambda name: (name not in ("algorithm", "problem"), name)):
        if old_fields.get(name) != new_fields.get(name):
            old_text = (
                abbreviate(_shorten(old_fields.get(name))) if name in old_fields else "left out"
            )
            remedy = f"use another store, or allow_changes=[{name!r}] (--allow-changes {name})"
            allowed = f"{old_text}, as in the store {folder.path}"
            refuse(name, _shorten(new_fields.get(name)), allowed, remedy)
    return old


def _shorten(value: Any) -> Any:
    """Writes what JSON spells out, such as a graph, in words, and digests with few digits."""
    if isinstance(value, dict):
        items = {name: item for name, item in value.items() if name != "edge_list"}
        return PlainText(", ".join(f"{name} {_shorten(item)}" for name, item in items.items()))
    if isinstance(value, list):
        return [_shorten(item) for item in value]
    if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value):
        return value[:8]
    return value


def register_study(
    folder: Store,
    header: Mapping[str, Any],
    allow_changes: Collection[str],
    *,
    is_alone: bool,
) -> None:
    """Writes what the store is for; one process at a time, so that two cannot both be first."""
    for _ in range(100):
        try:
            with Store(folder.path).lock_writer("header"):
                old = _compare(folder, header, allow_changes)
                # A worker that was started with an older study takes no seeds from the others.
                is_older = old is not None and old["seeds"] > header["seeds"] and not is_alone
                if old != header and not is_older:
                    folder.write_header(header)
                return
        except Busy:
            time.sleep(0.1)
    refuse("store", str(folder.path), "free for its header to be written", "try again")


def find_intact(folder: Store, cells: Collection[str], progress: Progress) -> list[Entry]:
    """Returns the chunks that are as they were written; the others are computed again."""
    entries, damage = folder.entries()
    for line in damage:
        progress.report_damage(f"{folder.path / line}; the line is passed over")
    intact = []
    for entry in entries:
        if not {*cells} & {*entry.facts["cells"]}:
            continue
        # Looked at twice: another worker may just be putting it in place again.
        if (reason := folder.check(entry) and folder.check(entry)) is None:
            intact.append(entry)
        else:
            path = folder.file_of(entry.chunk)
            folder.set_aside(entry)
            progress.report_damage(f"{path}: {reason}; it is computed again, and kept as .damaged")
    return intact
