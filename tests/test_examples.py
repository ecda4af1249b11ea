"""Every public name has an example in its docstring, and every example does what it shows."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import matplotlib.pyplot
import pytest

import fmab_jax as fmab
from fmab_jax.analysis import likelihood, theory
from fmab_jax.core import graphs

# What the pages name besides, by where it is.
BESIDES = (
    *(graphs.make, graphs.components, graphs.diameter),
    *(theory.bounds, theory.closed_form, theory.regret_curve, theory.epochs),
    *(theory.pair_failure, theory.crossover_epsilon),
    *(theory.lai_robbins, theory.private_lower_bound, likelihood.likelihood_bounds),
)
NAMES = [name for name in fmab.__all__ if name != "__version__"]


def methods(owner: type) -> Iterator[tuple[str, Any]]:
    """Yields the public methods of a class, each from the class that first declares it.

    An algorithm overrides what its family tells of.
    """
    for name in dir(owner):
        homes = [each for each in owner.__mro__ if name in vars(each)]
        if name.startswith("_") or not homes[-1].__module__.startswith("fmab_jax"):
            continue
        # A value for one class may be worked out by another.
        declared = [each for each in homes if documented(vars(each)[name]) is not None]
        if declared:
            home = declared[-1]
            yield f"{home.__qualname__}.{name}", documented(vars(home)[name])


def written_in(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yields the public functions and classes of a module that is public as a whole."""
    for name, value in vars(module).items():
        if not name.startswith("_") and getattr(value, "__module__", "").startswith(
            module.__name__
        ):
            if inspect.isfunction(value) or inspect.isclass(value):
                yield name, value


def documented(member: Any) -> Any:
    """Returns what holds the docstring of a member of a class, None for an attribute."""
    member = getattr(member, "fget", None) or getattr(member, "__func__", member)
    return member if inspect.isfunction(member) else None


def public() -> dict[str, Any]:
    """Returns everything that has to have an example, once each."""
    found: dict[str, Any] = {f"{each.__module__}.{each.__name__}": each for each in BESIDES}
    for name in NAMES:
        value = getattr(fmab, name)
        if inspect.ismodule(value):
            found |= {f"{name}.{below}": each for below, each in written_in(value)}
            continue
        found[name] = value
        if isinstance(value, type):
            found |= dict(methods(value))
    return found


PUBLIC = public()
# Each compiles a program that no other example needs.
_LONG = {"check_algorithm", "until_precise", "plot_heat", "plot_pareto", "plot_audit"}
_LONG |= {"Law.at_most", *fmab._PLUGS} - {"cdp_mab"}
EXAMPLES = [
    pytest.param(name, marks=pytest.mark.slow) if name in _LONG else name for name in PUBLIC
]


@pytest.fixture
def settings() -> Iterator[None]:
    """Puts back what an example sets for the whole process."""
    names = [name for name in jax.config.values if "compilation_cache" in name]
    names += [name for name in jax.config.values if "persistent_cache" in name]
    before = {name: jax.config.values[name] for name in names}
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    matplotlib.pyplot.close("all")


def test_the_walk_finds_what_users_call() -> None:
    """Would catch a walk that misses methods, so that their examples are neither asked nor run."""
    wanted = {"simulate", "Problem.uniform", "Problem.drawn", "Law.cumulants", "cdp_mab"}
    wanted |= {"Elimination.radius", "IndexPolicy.choose", "Described.settings", "Exchange.on"}
    assert wanted <= set(PUBLIC) and len(PUBLIC) > 100
    assert "CDP.exchange" not in PUBLIC and "Problem._drawn" not in PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example(name: str) -> None:
    """Would catch a public name whose docstring shows nothing that runs, or shows it elsewhere."""
    text = inspect.getdoc(PUBLIC[name]) or ""
    _, heading, example = text.partition("\nExample:\n")
    assert heading and ">>> " in example, name
    # Google style: it comes last, and nothing hides in other sections.
    assert ">>> " not in text.partition("\nExample:\n")[0], name


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.usefixtures("settings")
def test_an_example_does_what_it_shows(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Would catch an example with another result than it shows, and one that no longer runs."""
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # Of this object alone: methods are entries of their own.
    finder = doctest.DocTestFinder(recurse=False)
    flags = doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    told: list[str] = []
    for test in finder.find(PUBLIC[name], name, globs={"__name__": "__main__"}):
        assert test.examples, name
        runner.run(test, out=told.append)
    assert not runner.failures, "".join(told)
