"""Makes one site of the pages of the repository; ProperDocs calls the functions named on_*.

Pages outside of docs/ (README, changelog, figures) come in as they are. Their links are those of
the repository, so that they work there; here they are led to where a page stands on the site. Pages
that are lists of what there is (reference, gallery, arena) are written from it, not by hand.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import logging
import posixpath
import re
import textwrap
from pathlib import Path
from typing import Any

import griffe
from properdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]

# Files of the repository that are pages of the site under another name.
_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
# Where a link to a folder of the repository leads.
_FOLDERS = {"figures": "gallery.md"}
_FIGURES = ("*.md", "*.png", "*.csv")
# What follows the text of a link or a picture: the target, and its heading.
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?)(?=\))")
# A list right below a paragraph, which GitHub shows as a list.
_LIST = re.compile(r"^(?![*|>#\s-])(.*\S.*\n)(?=\* )", re.M)
_CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.M | re.S)
_LOG = logging.getLogger("properdocs.hooks.site")  # what it warns of ends a strict build
# Where the site's own files come from in the repository, for links that they hold.
_home: dict[str, str] = {}


def on_config(config: Any) -> Any:
    """Leaves pages out of the navigation that this checkout does not have."""
    docs = Path(config.docs_dir)
    config.nav = _present(config.nav, docs, set(config.extra.get("if_there", ())))
    return config


def _present(entry: Any, docs: Path, optional: set[str]) -> Any:
    """Returns a part of the navigation without optional pages that are not there."""
    if isinstance(entry, str):
        return None if entry in optional and not (docs / entry).is_file() else entry
    if isinstance(entry, dict):
        kept = {title: _present(below, docs, optional) for title, below in entry.items()}
        return {title: below for title, below in kept.items() if below} or None
    return [found for found in (_present(each, docs, optional) for each in entry) if found]


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that do not lie in docs/."""
    for source, target in _PAGES.items():
        _home[target] = source
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    for pattern in _FIGURES:
        for path in sorted((ROOT / "figures").glob(pattern)):
            target = f"figures/{path.name}"
            _home[target] = target
            files.append(File.generated(config, target, abs_src_path=str(path)))
    for target, text in {**_reference(), "gallery.md": _gallery(), "arena.md": _arena()}.items():
        _home[target] = f"docs/{target}"
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Leads the links of the repository to the pages of the site."""
    here = page.file.src_uri

    def led(match: re.Match[str]) -> str:
        before, target, heading = match.groups()
        return before + _led(target, here) + heading

    parts = _CODE.split(markdown)
    parts[::2] = [_LINK.sub(led, part) for part in parts[::2]]
    if here.startswith("figures/"):
        page.meta["hide"] = ["navigation"]  # more room for wide tables
    return _titled(_LIST.sub(r"\1\n", "".join(parts)), here)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Leads the links of notebooks, which ProperDocs does not look into, and checks them."""
    here = page.file.src_uri
    if not here.endswith(".ipynb"):
        return html

    def led(match: re.Match[str]) -> str:
        before, target, heading = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        at = _led(target, here)
        found = files.get_file_from_path(
            posixpath.normpath(posixpath.join(posixpath.dirname(here), at))
        )
        if found is None:
            _LOG.warning(
                f"Doc file '{here}' contains a link '{target}', but the target is not found."
            )
            return match[0]
        return f'{before}{found.url_relative_to(page.file)}{heading}"'

    return re.sub(r'((?:href|src)=")([^"#]+)((?:#[^"]*)?)"', led, html)


def _led(target: str, here: str) -> str:
    """Returns where a link of the repository leads on the site, from a page of the site."""
    if re.match(r"[a-z]+:", target):
        return target
    source = _home.get(here, f"docs/{here}")
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    at = _FOLDERS.get(meant) or _PAGES.get(meant) or meant.removeprefix("docs/")
    return posixpath.relpath(at, posixpath.dirname(here) or ".")


def _titled(markdown: str, here: str) -> str:
    """Gives a figure's page, which begins with the figure, a title."""
    if not here.startswith("figures/") or markdown.lstrip().startswith("# "):
        return markdown
    return f"# {_title(Path(here).stem)}\n\n{markdown}"


def _title(stem: str) -> str:
    """Returns a figure's title: "fig04_epsilon" is "Figure 4: epsilon"."""
    told = re.fullmatch(r"(fig|table)(\d+)_(.*)", stem)
    if told:
        kind = "Figure" if told[1] == "fig" else "Table"
        return f"{kind} {int(told[2])}: {told[3].replace('_', ' ')}"
    stem = re.sub(r"_T1e(\d)$", r", T = 10^\1", stem)
    stem = re.sub(r"10\^(\d)", lambda power: "10" + "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(power[1])], stem)
    words = stem.replace("_", " ")
    return words[:1].upper() + words[1:]


# --- Gallery --------------------------------------------------------------------------------------

_SECTIONS = {
    "The paper's figures": "fig",
    "The arena": "arena_",
    "Real ratings": "ratings_",
    "The audit of privacy": "audit",
}


def _gallery() -> str:
    """Returns the gallery: every figure with its words, which lie beside it."""
    parts = [
        "# Gallery\n",
        "Every figure of the experiments stands here. "
        "A click opens its page, with the caption and the numbers.\n",
    ]
    for heading, prefix in _SECTIONS.items():
        parts.append(f"## {heading}\n\n<div class='gallery' markdown>\n")
        for path in sorted((ROOT / "figures").glob(f"{prefix}*.png")):
            if not path.with_suffix(".md").is_file():
                continue
            words = path.with_suffix(".md").read_text("utf-8")
            told = re.match(r"!\[(.*?)\]\(", words, re.S)
            alt = told[1] if told else _title(path.stem)
            parts.append(
                f"<figure markdown>\n[![{alt}](../figures/{path.name}){{ loading=lazy }}]"
                f"(../figures/{path.stem}.md)\n<figcaption markdown>**{_title(path.stem)}.** {alt}"
                "</figcaption>\n</figure>\n"
            )
        parts.append("</div>\n")
    return "\n".join(parts)


# --- Arena ----------------------------------------------------------------------------------------


def _arena() -> str:
    """Returns the table of algorithms, with links, and where they are compared."""
    page = (ROOT / "docs/algorithms.md").read_text("utf-8")
    table = re.search(r"^\| name \| in Python .*?(?=^$)", page, re.M | re.S)
    assert table, "docs/algorithms.md has no table of algorithms"
    rows = []
    for line in table[0].strip().split("\n"):
        link = r"| [`\1`](reference/algorithms.md#fmab_jax.\2) | `\2` |"
        rows.append(re.sub(r"^\| `(\w+)` \| `(\w+)` \|", link, line))
    return "\n".join([
        "# The arena\n",
        "Every algorithm of the package, and what it asks of the others. The names lead to the "
        "reference.\n",
        *rows,
        "\n[The arena's report](../figures/ARENA.md) compares them on the paper's instance: regret "
        "over time, against links, against bits sent, at matched trust (covered by the same "
        "epsilon in the same view), and where agents differ. "
        "[The twins](twins.md) show that each is drawn from the right law.\n",
        "[![Regret of all algorithms](../figures/arena_regret_T1e4.png)]"
        "(../figures/arena_regret_T1e4.md)\n",
    ])  # fmt: skip


# --- Reference ------------------------------------------------------------------------------------

_HOOKS = "what you state, and what you may state, in an algorithm of your own"
_ROOMS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "problems": (
        "Problems and reward laws",
        "What agents face: arms, their means or how they are drawn, and the law of a reward.",
        ("Problem", "Bernoulli", "Gaussian", "Ratings", "Law"),
    ),
    "running": (
        "Running",
        "Many trials at once, and their files.",
        ("simulate", "communication_cost", "save", "load", "use_compilation_cache"),
    ),
    "analysis": (
        "Analysis",
        "Bands, differences, tables, privacy.",
        (),
    ),
    "sweeps": (
        "Sweeps",
        "Grids of configurations, in a folder.",
        (),
    ),
    "plots": (
        "Plots and reports",
        "Figures with bands, seeds and horizon in their captions.",
        (),
    ),
    "families": (
        "Own algorithms",
        f"The two families, and {_HOOKS}.",
        ("Algorithm", "Elimination", "IndexPolicy", "Exchange", "parameter", "check_algorithm"),
    ),
}
# Rooms whose names follow from where they are defined.
_BY_HOME = {"analysis": "analysis", "sweeps": "sweeps", "plots": "plots", "reports": "plots"}
_BESIDES = (
    *(f"parts.graphs.{name}" for name in ("make", "components", "diameter")),
    *(f"analysis.theory.{name}" for name in ("bounds", "closed_form", "regret_curve", "epochs")),
    *(f"analysis.theory.{n}" for n in ("pair_failure", "lai_robbins", "private_lower_bound")),
)
_FULL = ("Problem", "Algorithm", "Elimination", "IndexPolicy", "Exchange", "Law")


def _reference() -> dict[str, str]:
    """Returns the pages of the reference, by where they stand."""
    import fmab_jax as fmab

    named = {name for *_, names in _ROOMS.values() for name in names}
    pages = {}
    left = [name for name in fmab._HOME if name not in named and name != "list_algorithms"]
    by_room: dict[str, list[str]] = {room: list(names) for room, (*_, names) in _ROOMS.items()}
    by_room["problems"] += [name for name in fmab.__all__ if inspect.ismodule(getattr(fmab, name))]
    for name in left:
        by_room[_BY_HOME.get(fmab._HOME[name].partition(".")[0], "running")].append(name)
    for room, (title, words, _) in _ROOMS.items():
        listed = ", ".join(f"[`{name}`](#fmab_jax.{name})" for name in by_room[room])
        parts = [f"# {title}\n", f"{words}\n", f"{listed}.\n"]
        parts += [_entry(fmab, name) for name in by_room[room]]
        pages[f"reference/{room}.md"] = "\n".join(parts)
    parts = [
        "# Algorithms\n",
        "Every algorithm is a frozen dataclass: a name and its parameters. Give it to "
        "[`simulate`](running.md#fmab_jax.simulate), or sweep over it.\n",
        ", ".join(f"[`{name}`](#fmab_jax.{name})" for name in fmab._PLUGS) + ".\n",
        *(_entry(fmab, name) for name in ("list_algorithms", *fmab._PLUGS)),
    ]
    pages["reference/algorithms.md"] = "\n".join(parts)
    parts = ["# Graphs and bounds\n", "Functions that have a place of their own.\n"]
    parts += [
        f"## fmab_jax.{name} {{ #fmab_jax.{name} data-toc-label='{name.rpartition('.')[2]}' }}\n\n"
        f"{_call(name, _at(fmab, name))}\n::: fmab_jax.{name}\n"
        "    options: { show_root_heading: false, show_root_toc_entry: false, heading_level: 6 }\n"
        for name in _BESIDES
    ]
    pages["reference/besides.md"] = "\n".join(parts)
    return pages


def _at(fmab: Any, name: str) -> Any:
    """Returns a function by where it is."""
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(f"{fmab.__name__}.{module}"), function)


def _entry(fmab: Any, name: str) -> str:
    """Returns one public name: heading, call, docstring, and the parameters of an algorithm."""
    value = getattr(fmab, name)
    heading = f"## fmab_jax.{name} {{ #fmab_jax.{name} data-toc-label='{name}' }}\n"
    if inspect.ismodule(value):
        options = "{ show_root_heading: false, show_root_toc_entry: false, heading_level: 3 }"
        return f"{heading}\n::: {value.__name__}\n    options: {options}\n"
    members = _methods(value) if name in _FULL else []
    return "\n".join(
        [
            heading,
            _call(name, value),
            f"::: {value.__module__}.{value.__qualname__}\n    options:",
            "      show_root_heading: false",
            "      show_root_toc_entry: false",
            f"      heading_level: {3 if members else 6}",
            f"      show_docstring_attributes: {str(name not in fmab._PLUGS).lower()}",
            f"      members: {members}",
            f"      inherited_members: {str(bool(members)).lower()}\n",
            *([_parameters(value)] if name in fmab._PLUGS else []),
        ]
    )


def _methods(owner: type) -> list[str]:
    """Returns what a class declares, or takes from the equations, but for plain attributes."""
    from fmab_jax.equations import Equations

    kinds = (staticmethod, classmethod, property)
    equations = vars(Equations) if Equations in owner.__bases__ else {}
    return [
        name
        for name, value in {**equations, **vars(owner)}.items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, kinds))
    ]


def _call(name: str, value: Any) -> str:
    """Returns how something is called, with defaults; types stand at the parameters."""
    from fmab_jax.parameters import UNSET

    try:
        given = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return ""
    if name in _FULL and name not in ("Problem", "Exchange"):
        return ""  # to derive from, not to call
    words, starred = [], False
    for each in given:
        if each.kind is each.KEYWORD_ONLY and not starred:
            words.append("*")
        starred = starred or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        stars = {each.VAR_KEYWORD: "**", each.VAR_POSITIONAL: "*"}.get(each.kind, "")
        plain = each.default in (each.empty, dataclasses.MISSING) or each.default is UNSET
        told = "" if plain else f"={_told(each.default)}"
        words.append(f"{stars}{each.name}{told}")
    line = f"fmab_jax.{name}({', '.join(words)})"
    if len(line) > 88:
        body = textwrap.fill(", ".join(words), 84, initial_indent="    ", subsequent_indent="    ")
        line = f"fmab_jax.{name}(\n{body}\n)"
    return f"```python\n{line}\n```\n"


def _told(value: Any) -> str:
    """Returns a default as one writes it."""
    return "Bernoulli()" if type(value).__name__ == "Bernoulli" else repr(value)


def _parameters(owner: type) -> str:
    """Returns who is heard and trusted, and all parameters, those that are inherited as well."""
    from fmab_jax.parameters import UNSET, parameters_of

    facts = [
        f"**{fact}:** {told}."
        for fact, told in (
            ("Communication", getattr(owner, "communication", "")),
            ("Trusted", getattr(owner, "trusted", "")),
            ("Source", getattr(owner, "source", "")),
        )
        if told
    ]
    said = _attributes(owner)
    rows = []
    for name, each in parameters_of(owner).items():
        default = "" if each.default is UNSET else f"`{each.default!r}`"
        meaning = said.get(name, each.help).replace("|", "/").replace("\n", " ")
        rows.append(f"| `{name}` | {default} | {meaning} |")
    table = ["", "| parameter | default | meaning |", "|---|---|---|", *rows] if rows else []
    return "\n".join(["<br>\n".join(facts), *table, ""])


def _attributes(owner: type) -> dict[str, str]:
    """Returns what docstrings say of a class's attributes; its own goes before its parents'."""
    found: dict[str, str] = {}
    for each in reversed(owner.__mro__):
        text = inspect.cleandoc(each.__doc__ or "")
        for section in griffe.Docstring(text, parser="google").parse(warnings=False):
            if section.kind is griffe.DocstringSectionKind.attributes:
                found |= {told.name: told.description for told in section.value}
    return found
