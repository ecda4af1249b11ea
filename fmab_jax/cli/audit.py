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

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fmab_jax.cli import stated
from fmab_jax.cli.options import Call, Command, Contradicted, called, option
from fmab_jax.cli.tables import plain_table, show_table
from fmab_jax.files import checked_path, refuse_taken
from fmab_jax.parameters import UNSET, Real, Whole, parameters_of

_LEGEND = """\
claim         of the privacy ledger, or of `privacy` where no ledger is stated, for
              one changed reward{up_to}
lower bound   on epsilon{at}, from how often an event, chosen on other runs,
              happened for either data set; together wrong with a chance of
              {level} at most; so many runs can show {most:.3g} at most; infinite
              where no noise is left by construction
if exact      about what noise exactly as claimed would show, where that is known"""


@dataclass(frozen=True, kw_only=True)
class Options(stated.Plugged):
    """An empirical lower bound on epsilon, beside the claim."""

    agents: Any = option(None, kind=Whole(), shown="as for fmab run")
    """M, agents."""
    view: str | None = option(None, metavar="VIEW", shown="all of them")
    """What is seen: messages, sums or actions."""
    delta: Any = option(0.0, kind=Real(), shown="0")
    """Of (epsilon, delta): the bound is on epsilon up to delta; 0 for pure privacy."""
    runs: Any = option(2000000, kind=Whole(), shown="2000000")
    """Runs of each of the two data sets."""
    level: Any = option(1e-06, kind=Real(), shown="1e-6")
    """Chance that any lower bound is wrong."""
    root_seed: Any = option(0, kind=Whole())
    """Selects all randomness."""
    out: str | None = option(None, metavar="NAME", shown="no figure")
    """Write a figure of the two distributions: NAME.png, or with its own ending."""
    overwrite: bool = option(False)
    """Replace an older file."""


def command(words: list[str]) -> Command:
    """Returns the command that words state."""
    return stated.command_of("fmab audit", words, Options, several=False, drawn=False)


def execute(call: Call) -> None:
    """Prints the table, and draws the figure."""
    from fmab_jax.analysis.audit import audit
    from fmab_jax.analysis.words import quantity, written

    options, owner = call.options, call.command.subject
    values = {name: getattr(options, name) for name in parameters_of(owner)}
    given = {name: value for name, value in values.items() if value is not UNSET}
    path = None if options.out is None else _figure_path(options.out)
    with called(path="out"):
        if path is not None:
            for file in (path, path.with_suffix(".txt")):  # the caption beside the figure
                refuse_taken(checked_path("path", file), options.overwrite)
        algorithm = owner(**stated.suggested(owner, given))
        found = audit(
            algorithm,
            options.agents,
            view=options.view,
            delta=options.delta,
            runs=options.runs,
            level=options.level,
            root_seed=options.root_seed,
        )
    facts = [owner.title or owner.name, *algorithm.settings().values()]
    facts += [quantity("M = ", found.agents, "agent")]
    print(f"{', '.join(facts)}; {found.runs:,} runs of each data set\n")
    table = plain_table()
    for heading in ("who", "what is seen", "claim", "lower bound", "share", "if exact", "verdict"):
        table.add_column(heading, overflow="fold")
    for each in found.findings:
        claim = "none" if each.claim == float("inf") else written(each.claim)
        share = f"{each.share:.3f}" if 0 < each.share < float("inf") else "-"
        exact = f"{each.exact:.4f}" if each.exact == each.exact else "-"
        lower = "infinite" if each.infinite else f"{each.lower:.4f}"
        table.add_row(each.who, each.stream, claim, lower, share, exact, each.verdict)
    show_table(table, whole=False)
    for row in found.unseen:
        print(f"not shown: {row.who}, {row.what}: {row.why}")
    pure = found.delta == 0.0
    up_to = (
        "" if pure else f",\n              up to delta = {written(found.delta)}: its hockey-stick"
    )
    up_to += "" if pure else "\n              divergence at epsilon is at most delta"
    at = "" if pure else " at delta"
    told = _LEGEND.format(level=written(found.level), most=found.most, up_to=up_to, at=at)
    print(f"\n{told}")
    if path is not None:
        from fmab_jax.plots.audit import plot_audit
        from fmab_jax.plots.runs import files_of, save_figure

        with called(path="out"):
            figure = plot_audit(found)
            save_figure(figure, path, overwrite=options.overwrite)
        call.written.extend(files_of(figure, path))
        for file in call.written:
            print("wrote", file)
    if found.contradicted:
        wrong = [each for each in found.findings if each.contradicted]
        raise Contradicted(f"the claim is contradicted: {wrong[0].stream}, {_bound(wrong[0])}")


def _figure_path(name: str) -> Path:
    return Path(name if name.lower().endswith((".png", ".pdf")) else f"{name}.png")


def _bound(finding: Any) -> str:
    from fmab_jax.analysis.words import written

    told = "is not finite" if finding.infinite else f"is at least {finding.lower:.4g}"
    return f"epsilon {told}, not {written(finding.claim)}"
