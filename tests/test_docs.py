"""The pages for people: their Python runs, their commands parse, and their links lead somewhere."""

import hashlib
import json
import math
import re
import shlex
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import fresh
import jax.numpy as jnp
import matplotlib.image
import numpy as np
import pytest

import fmab_jax as fmab
from experiments.common import DEMAB
from fmab_jax.algorithms import base
from fmab_jax.cli import main, options
from fmab_jax.run.promises import PROMISES
from fmab_jax.sampling import evidence

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DELTA = {"delta": 1e-6}
# What makes the code of a page small; the words around it stay.
SMALL = (
    (r"agents=50, arms=100", "agents=6, arms=5"),
    (r"horizon=10\*\*\d", "horizon=2000"),
    (r"seeds=10\*?\*?\d+", "seeds=16"),
)


def blocks(page, language):
    """Returns the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


def small(code):
    """Returns code at small sizes."""
    for large, little in SMALL:
        code = re.sub(large, little, code)
    return code


def executed(page, monkeypatch, folder):
    """Runs the Python blocks of a page, one after the other, in a folder; returns their names."""
    monkeypatch.chdir(folder)
    matplotlib.use("Agg")
    module = ModuleType(f"page_{page.stem.lower()}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for number, code in enumerate(blocks(page, "python")):
        exec(compile(small(code), f"{page.name}, block {number + 1}", "exec"), module.__dict__)
    return module


def commands(page):
    """Returns the lines of a page's shell blocks that start fmab, and those inside its text."""
    lines = [
        line
        for kind in ("bash", "text")
        for each in blocks(page, kind)
        for line in each.split("\n")
    ]
    found = [match for line in lines for match in re.findall(r"(?:^|bin/)(fmab .*)", line)]
    prose = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    quoted = re.findall(r"`(fmab [a-z]+ (?:--|[a-z./]+)[^`|…]*)`", prose)
    return found + [each for each in quoted if not re.search(r"\.\.\.|[A-Z]{3}", each)]


@pytest.mark.slow
def test_the_worked_examples_run_and_do_what_they_say(monkeypatch, tmp_path, capsys):
    """Would catch an example that no longer runs, or whose printed settings are others."""
    page = executed(ROOT / "docs/own_algorithm.md", monkeypatch, tmp_path)
    told = capsys.readouterr().out
    assert '"factor": "q = 4"' in told
    assert '"rewards": "three-point rewards, middle 0.8"' in told
    assert (tmp_path / "steeper.png").stat().st_size > 10_000
    assert page.data.sizes["factor"] == 2
    # One uplink message of each of the 8 - 3 agents that are no relays.
    relayed = fmab.simulate(page.Relayed(0.5, branches=3), page.problem, 2000, 8)
    made = relayed.rounds_made.values
    assert made.max() > 0
    assert np.array_equal(relayed.links.sel(meter="uplink").values[:, -1], 5 * made)
    assert np.array_equal(relayed.links.sel(meter="server").values[:, -1], 3 * made)
    # Each batch is a round, until one arm is left or slots run out.
    kept = fmab.simulate(page.Batched(batch=20), page.problem, 2000, 8)
    assert kept.rounds_made.max() <= 2000 // 20 and kept.rounds_made.min() >= 5
    # Each quarter of a gap needs sixteen times the pulls of a whole one.
    steeper = [page.Steeper(None, factor=q) for q in (1.5, 4)]
    few, many = (fmab.simulate(each, page.problem, 2000, 8) for each in steeper)
    assert few.rounds_made.mean() > 2 * many.rounds_made.mean()


def test_the_page_of_promises_lists_all_of_them():
    """Would catch a promise that the page lacks, or that it words otherwise."""
    page = (ROOT / "docs/own_algorithm.md").read_text("utf-8")
    rows = re.findall(r"^\| ([A-Z].*?\.) \|", page, re.M)
    assert rows == list(PROMISES.values())


def executed_classes(page, monkeypatch):
    """Runs only the definitions of a page: imports, functions and classes."""
    import ast

    module = ModuleType(f"classes_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for code in blocks(page, "python"):
        tree = ast.parse(code)
        tree.body = [
            node
            for node in tree.body
            if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef))
            or (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name))
            and node.targets[0].id.isupper()
        ]
        exec(compile(tree, page.name, "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("name", ["README.md", "docs/sweeps.md", "docs/report.md"])
def test_the_code_of_a_page_runs(name, monkeypatch, tmp_path):
    """Would catch an example of the API that no longer runs, and names of variables that moved."""
    module = executed(ROOT / name, monkeypatch, tmp_path)
    if name == "README.md":
        assert {path.name for path in tmp_path.iterdir()} == {"compare.png", "compare.txt", "runs"}
        assert [*module.runs] == ["CDP-MAB", "KL-SE", "KL-SE, arms split"]
    elif name == "docs/report.md":
        assert {path.name for path in tmp_path.iterdir()} == {"eps.html", "both.html"}
        assert module.found.method == "paired"
    else:
        assert list(module.data.regret_quantile.dims) == ["epsilon", "quantile"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_parse(page, monkeypatch, tmp_path):
    """Would catch a command in a document with an option that there is not."""
    own = executed_classes(ROOT / "docs/own_algorithm.md", monkeypatch)
    short = executed_classes(ROOT / "README.md", monkeypatch)
    world = executed_classes(ROOT / "docs/own_world.md", monkeypatch)
    owners = own.Steeper, own.Batched, own.Moss, own.Relayed, short.Doubling, world.LinUCB, DEMAB
    for owner in owners:
        monkeypatch.setitem(base.ALGORITHMS.loaded, owner.name, owner)
    monkeypatch.chdir(tmp_path)
    # A command that takes a file of somebody's own loads it.
    monkeypatch.setattr(base.ALGORITHMS, "loaded", dict(base.ALGORITHMS.loaded))
    mine = (ROOT / "tests/plugs_bernstein.py").read_text("utf-8")
    Path("mine.py").write_text(mine.replace('"bernstein"', '"mine"'), "utf-8")
    for line in commands(page):
        words = re.sub(r" --plugin \S+", "", line.split("#")[0].split("&&")[0])
        _, command = main.find(shlex.split(words)[1:])
        options.parse(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    """Would catch a link to a file that moved, and to a heading that is no more."""
    for text, target in re.findall(r"!?\[([^\]]*)\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, heading = target.partition("#")
        linked = (page.parent / path) if path else page
        assert linked.exists(), (page.name, text, target)
        if heading:
            slugs = {
                re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
                for line in linked.read_text("utf-8").split("\n")
                if line.startswith("#")
            }
            assert heading in slugs, (page.name, target)


# What stands behind a promise: `path::function`, as pytest calls them.
HELD = re.compile(r"<!-- test: (.*?) -->", re.S)


def promises(text):
    """Returns the sentences of the page of promises, each with the tests named after it.

    What stands between two comments is a sentence; where there are several, or no comment follows,
    they have no tests.
    """
    _, _, section = text.partition("\n")
    made = []
    for part in re.split(r"\n\n|^\* ", section, flags=re.M):
        part = re.sub(r"^\*\*[^*]+\*\*", "", part.strip())
        *held, rest = re.split(HELD, part)
        pairs = [*zip(held[::2], held[1::2], strict=True), (rest, "")]
        for words, names in pairs:
            sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z`*])", " ".join(words.split()))
            named = [each.strip() for each in names.split(",") if each.strip()]
            # One comment is about one sentence, the last before it.
            made += [(each, []) for each in sentences[:-1]]
            made += [(sentences[-1], named)] * bool(sentences[-1] or named)
    return made


def in_the_default_run(names, session):
    """Returns those tests that `python -m pytest` runs, in part or as a whole."""
    mine = {item.nodeid.partition("[")[0] for item in session.items}
    if "not slow" == session.config.getoption("markexpr"):
        names = names - mine
        found = {name for name in mine}
    else:
        found = set()
    if names:  # only some files were collected
        files = sorted({name.partition("::")[0] for name in names})
        files = [file for file in files if (ROOT / file).is_file()]
        done = fresh.python("-m", "pytest", "--collect-only", "-q", "-n", "0", *files, cwd=ROOT)
        found |= {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    return found


def test_every_promise_names_its_tests(request):
    """Would catch a promise without a test, and a test that is no more, or that is left out of the
    default run without a word."""
    found = promises((ROOT / "docs/promises.md").read_text("utf-8"))
    wanted = {name for _, names in found for name in names}
    default = in_the_default_run(wanted, request.session)
    for sentence, names in found:
        if sentence.startswith("Not promised: "):
            assert not names, sentence
            continue
        assert names, f"no test holds: {sentence}"
        for name in names:
            assert name in default or "-m slow" in sentence, (name, sentence)
    assert len(found) >= 13


def test_the_glossary_has_the_words_that_lead_to_it():
    """Would catch a bold word of a page that leads to the glossary, which does not have it."""
    glossary = (ROOT / "docs/glossary.md").read_text("utf-8")
    entries = set(re.findall(r"^\| \*\*(.*?)\*\* \|", glossary, re.M))
    text = (ROOT / "README.md").read_text("utf-8")
    words = re.findall(r"\*\*([^*]+)\*\* \(\[glossary\]", text)
    assert words and {word.lower() for word in words} <= entries
    # What a sum promises is what the tests of samplers ask for, and a trial has a thousand sums.
    (entry,) = re.findall(r"^\| \*\*exact in law\*\* \|(.*)\|$", glossary, re.M)
    assert "$10^{-6}$" in entry and "about $10^{-3}$ for a thousand sums" in entry


def test_the_page_of_meanings_has_every_algorithm():
    """Would catch an algorithm of the package whose meaning is nowhere said."""
    page = (ROOT / "docs/semantics.md").read_text("utf-8")
    for name, owner in base.ALGORITHMS.shipped.items():
        assert owner.title in page or f"`{name}_mab`" in page, name


def test_the_readme_says_what_the_notebooks_need():
    """Would catch a notebook that imports what neither the package nor the README's line brings."""
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert "for the notebooks, `pip install jupyterlab`" in readme
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    there = {re.split(r"[^\w-]", name)[0] for name in project["dependencies"]}
    there |= {"fmab_jax", "pandas", "IPython"}  # pandas comes with xarray, IPython with jupyterlab
    for path in sorted((ROOT / "docs/tutorials").glob("*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        code = "\n".join("".join(x["source"]) for x in cells if x["cell_type"] == "code")
        used = set(re.findall(r"^\s*(?:import|from) (\w+)", code, re.M)) - sys.stdlib_module_names
        assert used <= there, (path.name, used - there)


def test_formulas_of_the_page_of_meanings_are_those_of_the_code():
    """Would catch a deviation, a tangent, the end of a segment or a first epoch that the code has
    otherwise."""
    page = " ".join((ROOT / "docs/semantics.md").read_text("utf-8").split())
    count, level, scale = 50.0, 20.0, 0.7
    deviations = {
        r"$\sqrt{2 N L}\, \sigma$": ("gaussian", math.sqrt(2 * count * level) * scale),
        r"$L/3 + \sqrt{L^2/9 + 2 N L \sigma^2}$": (
            "skellam",
            level / 3 + math.sqrt(level**2 / 9 + 2 * count * level * scale**2),
        ),
        r"$b (2 \sqrt{N L} + L)$": (
            "discrete_laplace",
            scale * (2 * math.sqrt(count * level) + level),
        ),
    }
    for formula, (name, value) in deviations.items():
        mechanism = fmab.cdp_mab(1.0, mechanism=name, **({} if "discrete" in name else DELTA)).noise
        assert formula in page
        assert float(mechanism.deviation(count, level, scale)) == pytest.approx(value, rel=1e-6)
    assert r"65 means $\sin^2(i \pi / 128)$" in page and r"$\sin^2((i + 1/2) \pi / 32)$" in page
    assert evidence._EDGES == pytest.approx(np.sin(np.arange(65) * math.pi / 128) ** 2)
    assert evidence._MEANS == pytest.approx(np.sin((np.arange(16) + 0.5) * math.pi / 32) ** 2)
    assert r"segment $i$ ends with slot $\lfloor i T / S \rfloor$" in page
    ends = fmab.Drifting(2).ends(jnp.asarray(1000))
    assert ends.tolist() == [333, 666, 1000]
    # With arms split the first epoch is that of one agent: its pulls are of all together.
    algorithm = fmab.kl_se(0.1, split=True, failure=1e-3)
    params = algorithm.values(algorithm.exchange(50), 10**5)
    assert params["noises"] == params["senders"] == 1.0
    assert "With `split` both $m$ and $N$ are 1" in page


def test_the_note_for_print_is_that_of_the_page():
    """Would catch a PDF that was not made anew when the note or its numbers changed."""
    page, pdf = (ROOT / "docs/note.md").read_bytes(), (ROOT / "docs/note.pdf").read_bytes()
    digest = hashlib.sha256(page)
    shown = re.findall(rb"\.\./figures/(\w+)\.png\)", page)
    assert len(shown) >= 2
    for name in shown:
        digest.update((ROOT / f"figures/{name.decode()}.csv").read_bytes())
    assert f"<pdf:Keywords>{digest.hexdigest()}</pdf:Keywords>".encode() in pdf
