"""Writes one self-contained HTML page of everything that results say.

What was run, regret with bands, links, comparisons with p-values, the privacy
ledger, what went wrong, versions, and the study file that makes it again; of a
plan its answer and the race. The page needs no network. Open it in any browser, or print it.

Examples:
  fmab report runs/eps
  fmab report ours.nc theirs.nc --out both.html
  fmab report plan --out plan.html
  fmab report runs/eps --select participation=1 --title "Privacy at p = 1"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fmab_jax.cli.options import Call, option, rename_fields
from fmab_jax.cli.tables import Priced, select_cells
from fmab_jax.errors import refuse

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Options(Priced):
    """One HTML page about results."""

    sources: tuple[str, ...] = option((), metavar="PATH", word=True)
    """Sweeps' folders, or .nc files of fmab run, fmab export or fmab_jax.save; or the folder of a
    plan."""
    out: str = option("report.html", metavar="FILE.html")
    """Where to write."""
    title: str | None = option(None, metavar="TEXT", default_text="the algorithms' titles")
    """Heading of the page."""
    select: tuple[str, ...] = option((), metavar="NAME=VALUE", default_text="all")
    """Only configurations with these values."""
    overwrite: bool = option(False)
    """Replace an older file."""


def execute(call: Call[Options]) -> None:
    """Reads results and writes the page."""
    from fmab_jax.reports import page
    from fmab_jax.reports.plan_page import find_plan

    options = call.options
    with rename_fields(path="sources", store="sources"):
        sources: str | list[str] | dict[str, xr.Dataset] = list(options.sources)
        if len(options.sources) == 1 and find_plan(options.sources[0]) is not None:
            sources = options.sources[0]
            if options.select:
                allowed = "left out with a plan"
                refuse("select", options.select, allowed, "its page has all candidates")
        elif options.select:
            page.check_out(options.out, options.overwrite)
            sources = _select_configurations(page.read_results(sources), options.select)
        path = page.write_report(
            sources,
            options.out,
            title=options.title,
            level=0.95 if options.level is None else options.level,
            overwrite=options.overwrite,
            **options.prices,
        )
    call.files.append(path)
    size = path.stat().st_size / 1e6
    print(f"wrote {path} ({size:.1f} MB)")


def _select_configurations(
    results: Mapping[str, xr.Dataset], select: Sequence[str]
) -> dict[str, xr.Dataset]:
    """Selects configurations in each result that has the parameter."""
    names = {str(name) for data in results.values() for name in data.seeds.dims}
    selection = {}
    for label, data in results.items():
        absent_names = names - {*map(str, data.seeds.dims)}
        selection[label] = select_cells(
            data, [t for t in select if t.partition("=")[0] not in absent_names]
        )
    return selection
