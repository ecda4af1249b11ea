"""Opens a store for a study: compares headers, writes the header, finds intact chunks."""

from __future__ import annotations

import os
import time
from collections.abc import Collection

from fmab_jax.errors import Busy, abbreviate, did_you_mean, refuse
from fmab_jax.run.outputs import from_study
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.progress import Progress
from fmab_jax.sweeps.store import FORMAT, Entry, Store


def header_in(store: Store) -> Record | None:
    """Returns the header of a store, None before the first write; refuses other formats."""
    header = store.header()
    if header is not None and (version := header.get("format", 1)) != FORMAT:
        remedy = "use the version of the package that made it, or run the sweep into another folder"
        refuse("store", str(store.path), f"of format {FORMAT}", f"it is of {version}: {remedy}")
    return header


def open_existing(
    store: str | os.PathLike[str],
    results: Results,
    allow_changes: Collection[str],
    *,
    is_alone: bool,
) -> None:
    """Adds the chunks that a store lists for a study, if there is one.

    Args:
        store: Folder of the store; one that is absent, or has only hidden files, is a new store.
        results: Results of the study in memory, which get the chunks.
        allow_changes: Fields of the study or packages that may differ.
        is_alone: Whether no other worker shares the store.

    Raises:
        ValueError: If the store belongs to another study, or an output cannot be loaded again.
    """
    if os.path.lexists(store):
        is_folder = os.path.isdir(store)
        has_only_hidden_files = is_folder and all(x.startswith(".") for x in os.listdir(store))
        if not has_only_hidden_files:
            folder = Store(store)
            _compare(folder, results.header, allow_changes, is_alone)
            results.replace_entries(folder, folder.entries())
    # Refuses outputs that are not registered: whoever opens the store later finds them by name.
    from_study(results.header["study"].get("outputs", []))


def _compare(
    folder: Store, header: Record, allow_changes: Collection[str], is_alone: bool
) -> Record | None:
    """Returns the store's header; refuses a field that differs and may not.

    A study that was refused while it ran leaves a header without chunks, which is replaced, unless
    it may be that of another worker.
    """
    old = header_in(folder)
    if old is None:
        return None
    old_fields, new_fields = ({**record["study"], **record["made_by"]} for record in (old, header))
    fields = old_fields.keys() | new_fields.keys()
    for name in allow_changes:
        if name not in fields:
            remedy = did_you_mean(name, fields, "name the field that was refused")
            refuse("allow_changes", name, "a field of the study or a package", remedy)
    if is_alone and not folder.entries():
        return None
    # More or fewer seeds, and another order of the dimensions, change no chunk.
    free = {"seeds", "until", "axes", *allow_changes}
    names = fields - free
    for name in sorted(names, key=lambda name: (name not in ("algorithm", "problem"), name)):
        if old_fields.get(name) != new_fields.get(name):
            old_text = abbreviate(old_fields[name]) if name in old_fields else "left out"
            remedy = f"use another store, or allow_changes=[{name!r}] (--allow-changes {name})"
            if name == "outputs":
                remedy = "use another store; where agents differ, some outputs come by themselves"
            allowed = f"{old_text}, as in the store {folder.path}"
            refuse(name, new_fields.get(name), allowed, remedy)
    return old


def register_study(
    folder: Store,
    header: Record,
    allow_changes: Collection[str],
    *,
    is_alone: bool,
) -> None:
    """Writes the study into the header of a store, under a lock against another first writer."""
    for _ in range(100):
        try:
            with Store(folder.path).lock_writer("header"):
                old = _compare(folder, header, allow_changes, is_alone)
                # A worker of an older study with fewer seeds must not lower the number.
                is_older = old is not None and old["seeds"] > header["seeds"] and not is_alone
                if old != header and not is_older:
                    folder.write_header(header)
                return
        except Busy:
            time.sleep(0.1)
    refuse("store", str(folder.path), "free for its header to be written", "try again")


def find_intact(folder: Store, cells: Collection[str], progress: Progress) -> list[Entry]:
    """Returns the intact chunks; damaged ones are set aside and computed again."""
    intact = []
    for entry in folder.entries():
        if not {*cells} & {*entry.facts["cells"]}:
            continue
        # A second check, since another worker may be replacing the file.
        if (reason := folder.check(entry) and folder.check(entry)) is None:
            intact.append(entry)
        else:
            path = folder.file_of(entry.chunk)
            folder.set_aside(entry)
            progress.report_damage(f"{path}: {reason}; it is computed again, and kept as .damaged")
    return intact
