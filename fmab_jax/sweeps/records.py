"""What a store holds: a run.json of this format, and chunks with their facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fmab_jax.analysis.summary import Moments
from fmab_jax.errors import refuse
from fmab_jax.sweeps.store import Store

FORMAT = 4
"""Version of run.json and of the chunks beside it."""

KINDS = Moments._fields[1:]
"""What a summary keeps of a series, besides the number of seeds."""

_HEADER = {
    *("hash", "study", "made_by", "dims", "meters", "keep", "seeds", "until", "look_level"),
    *("cells", "grids"),
}
_FACTS = {"cells", "seeds", "keep", "made_by"}
_FIRST = "run the sweep again into another folder, or use the package that made it"


def state_name(output: str, number: int) -> str:
    """Returns the name of an array of a reduction's state in chunks."""
    return f"{output}_state{number}"


def header_in(store: Store) -> dict[str, Any] | None:
    """Returns what a store's run.json says, or None if nobody wrote it yet; refuses any other."""
    header = store.header()
    if header is None:
        return None
    version = header.get("format", 1)
    if version != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        remedy = "use the newer package that made it" if newer else _FIRST
        wanted = f"of format {FORMAT}"
        refuse("store", str(store.path), wanted, f"it is of format {version}: {remedy}")
    if missing := sorted(_HEADER - header.keys()):
        reason = f"its run.json has no {', '.join(missing)}: put a good copy back"
        refuse("store", str(store.path), "a store", reason)
    return header


def fit(facts: Mapping[str, Any]) -> bool:
    """Tells whether these are the facts of a chunk: cells, seeds, what is kept, versions."""
    return facts.keys() >= _FACTS
