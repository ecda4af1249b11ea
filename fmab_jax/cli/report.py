"""Writes one self-contained HTML page of everything that results say.

What was run, regret with bands, links, comparisons with p-values, the privacy
ledger, what went wrong, versions, and the study file that makes it again. The
page needs no network. Open it in any browser, or print it.

Examples:
  fmab report runs/eps
  fmab report ours.nc theirs.nc --out both.html
  fmab report runs/eps --select participation=1 --title "Privacy at p = 1"
"""

from __future__ import annotations

from dataclasses import dataclass

from fmab_jax.cli.options import Call, option, rename_fields
from fmab_jax.cli.printing import Priced, select_cells


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Priced):
    """One HTML page about results."""

    sources: tuple[str, ...] = option((), metavar="PATH", word=True)
    """Sweeps' folders, or .nc files of fmab run, fmab export or fmab_jax.save."""
    out: str = option("report.html", metavar="FILE.html")
    """Where to write."""
    title: str | None = option(None, metavar="TEXT", default_text="the algorithms' titles")
    """Heading of the page."""
    select: tuple[str, ...] = option((), metavar="NAME=VALUE", default_text="all")
    """Only configurations with these values, in all results."""
    overwrite: bool = option(False)
    """Replace an older file."""


def execute(call: Call[ReportOptions]) -> None:
    """Reads results and writes the page."""
    from fmab_jax.reports import page

    options = call.options
    with rename_fields(path="sources", store="sources"):
        results = page.read_results(options.sources)
        path = page.write_report(
            {label: select_cells(data, options.select) for label, data in results.items()},
            options.out,
            title=options.title,
            level=0.95 if options.level is None else options.level,
            overwrite=options.overwrite,
            **options.prices,
        )
    call.files.append(path)
    size = path.stat().st_size / 1e6
    print(f"wrote {path} ({size:.1f} MB)")
