"""Every public name has an example in its docstring, and every example does what it shows.

A public name is in `fmab.__all__`, or in a module of it (`fmab.ratings`), or in `BESIDES`. A method
has an example only if it makes another object of its class, as `Problem.fixed` does: hooks are
shown together, in the algorithm of their family's docstring. Older names have that of the new one.
"""

import ast
import doctest
import inspect
from pathlib import Path

import jax
import matplotlib.pyplot
import pytest

import fmab_jax as fmab
from fmab_jax.analysis import accountant, theory
from fmab_jax.parts import graphs

# What the pages name besides, by where it is.
BESIDES = (
    *(graphs.make, graphs.components, graphs.diameter),
    *(theory.bounds, theory.closed_form, theory.regret_curve, theory.epochs),
    *(theory.pair_failure, theory.lai_robbins, theory.private_lower_bound),
    accountant.noise_epsilon,
)
PACKAGE = Path(fmab.__file__).parent
OLDER = {f"Problem.{name}" for name in ("uniform", "heterogeneous", "with_gap", "from_file")}
NAMES = [name for name in fmab.__all__ if name != "__version__"]


def makers(owner):
    """Yields the methods of a class that return another object of it."""
    for name, value in vars(owner).items():
        method = getattr(value, "__func__", value)
        if inspect.isfunction(method) and not name.startswith("_"):
            if method.__annotations__.get("return") == owner.__name__:
                yield f"{owner.__name__}.{name}", method


def written_in(module):
    """Yields the public functions and classes of a module that is public as a whole."""
    for name, value in vars(module).items():
        if not name.startswith("_") and getattr(value, "__module__", "").startswith(
            module.__name__
        ):
            if inspect.isfunction(value) or inspect.isclass(value):
                yield name, value


def public():
    """Returns everything that has to have an example, once each."""
    found = {f"{each.__module__}.{each.__qualname__}": each for each in BESIDES}
    for name in NAMES:
        value = getattr(fmab, name)
        if inspect.ismodule(value):
            found |= {f"{name}.{below}": each for below, each in written_in(value)}
            continue
        found[name] = value
        if isinstance(value, type):
            found |= dict(makers(value))
    return {name: value for name, value in found.items() if name not in OLDER}


PUBLIC = public()
# Each compiles a program that no other example needs.
_LONG = {"check_algorithm", "until_precise", "plot_heat", "plot_pareto"}
_LONG |= {*fmab._PLUGS} - {"cdp_mab"}
EXAMPLES = [
    pytest.param(name, marks=pytest.mark.slow) if name in _LONG else name for name in PUBLIC
]


@pytest.fixture
def settings():
    """Puts back what an example sets for the whole process."""
    names = [name for name in jax.config.values if "compilation_cache" in name]
    names += [name for name in jax.config.values if "persistent_cache" in name]
    before = {name: jax.config.values[name] for name in names}
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    matplotlib.pyplot.close("all")


def shown_in(tree, inside=""):
    """Yields the qualified names, of what stands in a file, whose docstrings hold examples."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    if isinstance(tree, kinds) and ">>> " in (ast.get_docstring(tree) or ""):
        yield inside
    for child in ast.iter_child_nodes(tree):
        name = getattr(child, "name", "")
        yield from shown_in(child, f"{inside}.{name}".strip("."))


def test_examples_stand_where_they_are_asked_for():
    """Would catch an example that nobody runs, and one of a hook, which its family shows."""
    asked = {(each.__module__, each.__qualname__) for each in PUBLIC.values()}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(("fmab_jax", *path.relative_to(PACKAGE).with_suffix("").parts))
        found = {(module, name) for name in shown_in(ast.parse(path.read_text("utf-8")))}
        assert found <= asked, found - asked


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example(name):
    """Would catch a public name whose docstring shows nothing that runs, or shows it elsewhere."""
    text = inspect.getdoc(PUBLIC[name]) or ""
    _, heading, example = text.partition("\nExample:\n")
    assert heading and ">>> " in example, name
    # Google style: it comes last, and nothing hides in other sections.
    assert ">>> " not in text.partition("\nExample:\n")[0], name


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.usefixtures("settings")
def test_an_example_does_what_it_shows(name, monkeypatch, tmp_path):
    """Would catch an example with another result than it shows, and one that no longer runs."""
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # Of this object alone: methods are entries of their own.
    finder = doctest.DocTestFinder(recurse=False)
    flags = doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    told = []
    for test in finder.find(PUBLIC[name], name, globs={"__name__": "__main__"}):
        assert test.examples, name
        runner.run(test, out=told.append)
    assert not runner.failures, "".join(told)
