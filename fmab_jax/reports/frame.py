"""Pages that make no request: templates of the package, and the tables that they show."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import resources
from typing import Any, NamedTuple

from fmab_jax import __version__
from fmab_jax.errors import Refusal


class Table(NamedTuple):
    """A table."""

    caption: str  # above it
    heads: Sequence[str]  # of the columns
    rows: Sequence[Sequence[str]]
    first: int = 1  # how many cells of a row are its headings
    words: bool = False  # whether its cells are words rather than numbers
    sortable: bool = False  # whether the script may sort it

    @property
    def kind(self) -> str:
        """Its classes in a page."""
        return " ".join(name for name in ("sortable", "words") if getattr(self, name))


def check_installed(door: str) -> None:
    """Refuses to make a page where the extra that pages need is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise Refusal.line(f'{door} needs: pip install "fmab_jax[report]"') from None


def rendered(template: str, **given: Any) -> str:
    """Returns a page of a template of the package; a name that is not given is an error."""
    return _templates().get_template(template).render(given)


def own(name: str) -> str:
    """Returns a file of this room."""
    return (resources.files("fmab_jax.reports") / name).read_text("utf-8")


@functools.cache
def _templates() -> Any:
    check_installed("A page")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("fmab_jax", "")
    found = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, finalize=_shown,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.globals |= {"version": __version__, "own": own}
    found.filters["grouped"] = "{:,}".format
    return found


def _shown(value: Any) -> Any:
    """Lets a number keep its per cent sign; what is markup already stays as it is."""
    if hasattr(value, "__html__"):
        return value
    return str(value).replace(" %", "\N{NO-BREAK SPACE}%")
