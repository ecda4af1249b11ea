"""Tries to contradict the privacy that an algorithm claims.

Neighbouring data, which differ in one reward, are sent through the simulation
many times; an event that one of them makes far likelier bounds epsilon from
below, whatever the noise is (docs/privacy_audit.md). What is seen is single
messages, sums over agents, or the arms pulled over a whole run. The exit status
is 1 if a claim is contradicted.

Examples:
  fmab audit cdp --epsilon 0.02 --agents 50 --view messages --out audit
  fmab audit cdp --epsilon 0.1 --agents 10 --view sums --delta 0.01
  fmab audit adap_ucb --view actions
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fmab_jax.cli import study_options
from fmab_jax.cli.options import Call, Command, Contradicted, option, rename_fields
from fmab_jax.cli.tables import print_rows
from fmab_jax.files import check_path, refuse_taken
from fmab_jax.parameters import UNSET, Real, Whole, parameters_of

_LEGEND = """\
claim         of the privacy ledger, or of `privacy` where no ledger is stated, for
              one changed reward{up_to}
lower bound   on epsilon, from how often an event, chosen on other runs, happened
              for either data set; together wrong with a chance of {level} at most;
              so many runs can show {most:.3g} at most"""
_UP_TO = """,
              up to delta = {delta}: its hockey-stick divergence at epsilon is at
              most delta"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """An empirical lower bound on epsilon, beside the claim."""

    shared: ClassVar[tuple[str, ...]] = ("delta",)

    agents: int | None = option(None, kind=Whole(), default_text="as for fmab run")
    """M, agents."""
    view: str | None = option(None, metavar="VIEW", default_text="all of them")
    """What is seen: messages, sums or actions."""
    delta: float = option(0.0, kind=Real(), default_text="0")
    """Of (epsilon, delta): the bound is on epsilon up to delta; 0 for pure privacy."""
    runs: int = option(2000000, kind=Whole(), default_text="2000000")
    """Runs of each of the two data sets."""
    level: float = option(1e-06, kind=Real(), default_text="1e-6")
    """Chance that any lower bound is wrong."""
    root_seed: int = option(0, kind=Whole(high=2**32 - 1))
    """Selects all randomness."""
    out: str | None = option(None, metavar="NAME", default_text="no figure")
    """Write a figure of the two distributions: NAME.png, or with its own ending."""
    overwrite: bool = option(False)
    """Replace an older file."""


def command(words: list[str]) -> Command:
    """Builds the command of some words."""
    return study_options.build_command(
        "fmab audit", words, Options, allow_lists=False, has_random_problem=False
    )


def execute(call: Call[Options]) -> None:
    """Prints the table, and draws the figure."""
    from fmab_jax.analysis.audit import audit
    from fmab_jax.analysis.words import write_number, write_quantity
    from fmab_jax.parts.mechanisms import MECHANISMS

    options, owner = call.options, call.algorithm
    values = {name: getattr(options, name) for name in parameters_of(owner)}
    # A message has a delta only if its noise needs one; the audit's default is pure privacy.
    mechanism = values.get("mechanism", UNSET)
    is_pure = mechanism is UNSET or MECHANISMS.parse(mechanism, "mechanism").pure
    if is_pure or not options.delta:
        values["delta"] = UNSET
    names = parameters_of(owner)
    params = {n: value for n, value in values.items() if n in names and value is not UNSET}
    path = None
    if options.out is not None:
        has_ending = options.out.lower().endswith((".png", ".pdf"))
        path = Path(options.out if has_ending else f"{options.out}.png")
    with rename_fields(path="out"):
        for file in (path, path.with_suffix(".txt")) if path else ():  # the caption, too
            refuse_taken(check_path("path", file), options.overwrite)
        algorithm = owner(**study_options.add_suggestions(owner, params))
        settings = {name: getattr(options, name) for name in ("view", "delta", "runs", "level")}
        report = audit(algorithm, options.agents, **settings, root_seed=options.root_seed)
    facts = [owner.title or owner.name, *algorithm.settings().values()]
    facts += [write_quantity("M = ", report.agents, "agent")]
    print(f"{', '.join(facts)}; {report.runs:,} runs of each data set\n")
    rows = []
    for finding in report.findings:
        claim = "none" if math.isinf(finding.claim) else write_number(finding.claim)
        share = f"{finding.share:.3f}" if 0 < finding.share < math.inf else "-"
        lower = f"{finding.lower:.4f}"
        rows.append((finding.viewer, finding.stream, claim, lower, share, finding.verdict))
    print_rows(("viewer", "what is seen", "claim", "lower bound", "share", "verdict"), rows)
    for row in report.unseen:
        print(f"not shown: {row.viewer}, {row.observation}: {row.why}")
    up_to = _UP_TO.format(delta=write_number(report.delta)) if report.delta else ""
    legend = _LEGEND.format(level=write_number(report.level), most=report.most, up_to=up_to)
    print(f"\n{legend}")
    if path is not None:
        from fmab_jax.plots.audit import plot_audit
        from fmab_jax.plots.runs import list_figure_files, save_figure

        with rename_fields(path="out"):
            figure = plot_audit(report)
            save_figure(figure, path, overwrite=options.overwrite)
        call.files.extend(list_figure_files(figure, path))
        for file in call.files:
            print("wrote", file)
    for finding in report.findings:
        if finding.is_contradicted:
            bound = f"epsilon is at least {finding.lower:.4g}, not {write_number(finding.claim)}"
            raise Contradicted(f"the claim is contradicted: {finding.stream}, {bound}")
