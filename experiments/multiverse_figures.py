"""What the readings of the paper's sentences look like: a bar for each sentence, and words."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.patches import Patch

from experiments import claims, common, notes, pictures, verdicts
from experiments.multiverse import (
    KINDS,
    NAME,
    NOT_VARIED,
    READINGS,
    SEEDS,
    Data,
    Reading,
    Sentence,
    Told,
    counts_of,
    turned,
    verdicts_of,
)
from experiments.verdicts import (
    FAILS,
    HOLDS,
    NOT_ATTAINED,
    NOT_CONTRADICTED,
    NOT_PROVED,
    NOT_REACHED,
)
from fmab_jax.plots import style

CHOICES = {"T": "T"} | {name: f"the {name}" for name in Reading._fields}
# Dark, light, nearly white, and the contrary: told apart without colour, too.
COLOURS = ("#0072B2", "#8CC4E8", "0.6", "white", "white", "0.75", "0.9", "#D55E00")
LOOKS = dict(zip(KINDS, COLOURS, strict=True))
HATCHES = {NOT_REACHED: "////////", NOT_CONTRADICTED: "........", NOT_PROVED: "xxxxxxxx"}
NAMES = {kind: kind for kind in KINDS} | {
    NOT_ATTAINED: "bound not attained",
    NOT_REACHED: "condition not reached",
}
ROW, LABEL = 0.118, 3.3  # inches: of a row, and of the longest label
SYMBOLS = {
    r"\epsilon": "ε", r"\Delta": "Δ", r"\geq": "≥", r"\leq": "≤", r"\approx": "≈", r"\log": "log",
    r"\triangle": "Δ", r"\ ": " ", "{-{3/2}}": "(-3/2)", "_{C}(T)": "_C(T)", "_{D}(T)": "_D(T)",
    "_{H}(T)": "_H(T)", "$": "", "  ": " ", "``": "“", "''": "”",
}  # fmt: skip
PARTS = ("I", "IV", "V", "VI", "VII-A", "VII-B", "VII-C", "Appendix")


def look(kind: str) -> dict[str, Any]:
    """Returns the looks of a verdict's part of a bar."""
    hatch = HATCHES.get(kind)
    return {"facecolor": LOOKS[kind], "hatch": hatch, "edgecolor": "0.4" if hatch else "none"}


def part_of(section: str) -> str:
    """Returns the part of the paper that a section belongs to."""
    found = re.match("VII-[A-Z]|[IV]+|Appendix", section)
    return found[0] if found else section


def words_of(sentence: Sentence, shared: bool) -> str:
    """Writes a sentence without LaTeX; in place of a formula, or of shared words, the measure."""
    text = sentence.quote
    for symbol, sign in SYMBOLS.items():
        text = text.replace(symbol, sign)
    return sentence.measured if shared or re.search(r"[\\{}]", text) else text.strip()


def label_of(number: int, sentence: Sentence, words: str) -> str:
    """Writes number, section and as many words as a row has room for."""
    for most in range(len(words) + 4, 0, -1):
        text = f"{number}  {sentence.section}: {textwrap.shorten(words, most, placeholder=' …')}"
        if style.measure_text(text)[0] * notes.SMALL / style.FONT <= LABEL:
            return text
    return f"{number}  {sentence.section}"


def judge(data: Data, folder: Path, vary: Sequence[str] = tuple(READINGS)) -> list[Path]:
    """Judges every sentence in every reading; draws the shares, a row for each sentence."""
    return pictures.publish(picture_of(verdicts_of(data, vary), data, vary), folder)


def bars_page(
    order: Sequence[Sentence], counts: Mapping[Sentence, Counter[str]]
) -> Callable[[pictures.Page], None]:
    """Returns what draws the shares of readings, a row for each sentence."""
    numbers = {sentence: place for place, sentence in enumerate(order, 1)}
    quotes = Counter(sentence.quote for sentence in order)

    def page(page: pictures.Page) -> None:
        # As it is saved: widths of long labels differ by some per cent between resolutions.
        page.figure.set_dpi(300)
        axes = page.panels([""], [""], "share of readings (%)", ROW * len(order) + 0.4)[0, 0]
        for place, sentence in enumerate(order):
            left, count = 0.0, counts[sentence]
            total = sum(count.values())
            for kind in KINDS:
                share = 100 * count[kind] / total if total else 0.0
                axes.barh(place, share, 0.74, left, linewidth=0, **look(kind))
                left += share
            axes.text(101, place, f"{count[HOLDS]}/{total}", va="center", fontsize=notes.SMALL)
            if place and part_of(sentence.section) != part_of(order[place - 1].section):
                axes.axhline(place - 0.5, color="0.4", linewidth=0.5)
        labels = [
            f"{number}  {each.section}"
            if page.narrow
            else label_of(number, each, words_of(each, quotes[each.quote] > 1))
            for each, number in numbers.items()
        ]
        axes.set_yticks(range(len(order)), labels, fontsize=notes.SMALL)
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        axes.set(xlim=(0, 112), ylim=(len(order) - 0.4, -0.6))
        axes.set_xticks([0, 25, 50, 75, 100])
        page.handles = [Patch(label=NAMES[kind], linewidth=0, **look(kind)) for kind in KINDS]

    return page


def picture_of(told: Sequence[Told], data: Data, vary: Sequence[str]) -> pictures.Picture:
    """Returns the picture of the shares, its words and its numbers."""
    order = ordered(dict.fromkeys(each.sentence for each in told))
    counts = counts_of(told)
    numbers = {sentence: place for place, sentence in enumerate(order, 1)}

    rows = [
        {
            "number": numbers[each.sentence],
            **each.sentence._asdict(),
            "T": each.T,
            **each.reading._asdict(),
            "verdict": each.verdict,
            "seeds": each.seeds,
        }
        for each in sorted(told, key=lambda each: numbers[each.sentence])
        if each.verdict
    ]
    table = [
        {
            "": numbers[sentence],
            "section": sentence.section,
            "the paper's words": claims.quoted(sentence.quote),
            "measured": sentence.measured,
            "open": _open(told, sentence),
            "readings": sum(counts[sentence].values()),
            **{kind: counts[sentence][kind] for kind in KINDS},
        }
        for sentence in order
    ]
    words = summary(told)
    page = bars_page(order, counts)
    return pictures.Picture(NAME, page, _caption(data, vary, words), words, rows, table)


def ordered(sentences: Iterable[Sentence]) -> list[Sentence]:
    """Returns sentences in the order of the paper's sections, the appendices last."""
    places = {part: place for place, part in enumerate(PARTS)}

    def place(sentence: Sentence) -> tuple[int, str]:
        part = part_of(sentence.section)
        return places.get(part, len(places)), sentence.section.partition(",")[0]

    return sorted(sentences, key=place)


def _open(told: Sequence[Told], sentence: Sentence) -> str:
    """Lists what is open for a sentence, among the readings that count."""
    own = [each for each in told if each.sentence == sentence and each.verdict]
    names = {"T": {each.T for each in own}}
    names |= {name: {getattr(each.reading, name) for each in own} for name in Reading._fields}
    return ", ".join(name for name, values in names.items() if len(values) > 1) or "nothing"


def summary(told: Sequence[Told]) -> str:
    """Says how many sentences hold in every reading, in none and in some, and what turns them."""
    counts = {sentence: count for sentence, count in counts_of(told).items() if count}
    always = sum(count[HOLDS] == sum(count.values()) for count in counts.values())
    never = [count for count in counts.values() if not count[HOLDS]]
    fail = sum(count[FAILS] == sum(count.values()) for count in never)
    turns = sorted(turned(told).items(), key=lambda each: -each[1])
    more = turned(told, undecided=True)
    listed = ", ".join(f"{CHOICES[name]} in {number}" for name, number in turns)
    counted = ", ".join(f"{CHOICES[name]} in {more[name]}" for name, _ in turns)
    return (
        f"Of {len(counts)} sentences {always} hold in every reading tried, "
        f"{len(counts) - always - len(never)} in some, {len(never)} in none; {fail} fail in every "
        "reading tried. Sentences that one choice turns from one decided verdict into another, all "
        f"others alike: {listed}. What more seeds would decide is no turn there; with “not "
        f"decided” as a verdict of its own: {counted}."
    )


def depending(told: Sequence[Told]) -> list[dict[str, Any]]:
    """Returns the sentences that hold in some readings only, each with what is open, as rows."""
    counts = counts_of(told)
    return [
        {
            "section": sentence.section,
            "the paper's words": claims.quoted(sentence.quote),
            "measured": sentence.measured,
            "open": _open(told, sentence),
            "holds in": f"{count[HOLDS]} of {sum(count.values())}",
        }
        for sentence in ordered(counts)
        if 0 < (count := counts[sentence])[HOLDS] < sum(count.values())
    ]


def _choices(vary: Sequence[str]) -> str:
    """Says how many choices are varied, T among them."""
    return f"{('one', 'two', 'three', 'four', 'five')[len(vary)]} choice{'s' * (len(vary) > 0)}"


def _seeds(data: Data) -> str:
    """Says how many seeds a reading has, and that of CLAIMS.md."""
    few = f"{common.write_count(min(SEEDS, data.seeds))} seeds a configuration"
    more = f", {common.write_count(data.seeds)} where CLAIMS.md reads a sentence so"
    return few + more * (data.seeds > SEEDS)


def _caption(data: Data, vary: Sequence[str], words: str) -> str:
    listed = common.listed(data.horizons)
    ways = {
        "gap": "the gap Δ that a budget is built for (own: the instance's smallest, which theorems "
        "mean; or 1/16; open in section VII)",
        "instance": "the instance (as in CLAIMS.md: drawn from U[0, 1] for each seed, or a row's "
        "own; one draw from U[0, 1] for all seeds; drawn with a smallest gap of 1/16)",
        "delay": "the delay of a round (d_G - 1 slots or d_G)",
        "meter": "the meter of links between agents (edges: diameter × edges of GIS, edges of "
        "components; what carries data: edges of GIS that do, hops to the sinks; theorems, VI-B1 "
        "and VII-C1 say it)",
    }
    choices = "; ".join([f"T ({listed} slots)", *(ways[name] for name in vary)])
    return (
        f"Sentences of CLAIMS.md over {_choices(vary)} that the paper leaves open, T = {listed} "
        f"slots, {_seeds(data)}. They are {choices}. "
        f"Open as well, and not varied: {'; '.join(NOT_VARIED)}. A "
        "reading counts for a sentence only where it changes its numbers; beside a bar, how many "
        "readings it holds in, of how many that count. Each is judged by the sentence's rule in "
        f"CLAIMS.md, with {100 * verdicts.LEVEL:g} % intervals; holds in part: under some of the "
        "row's conditions; not contradicted: only a consequence was tested, or too few runs could "
        "have failed it; not proved: by the steps that are printed, or ours; a bound that is not "
        "attained holds as a bound, in a row of its own; a condition that is not reached: the "
        f"sentence says nothing of most runs. {words} Numbers at the left are those of the table."
    )
