"""Every bad input of tests/refusals.json ends in the line that it has there."""

import pytest
import refusals

from fmab_jax.parts.registry import REGISTRIES

CASES = refusals.cases()


@pytest.fixture(autouse=True)
def shipped_parts(monkeypatch):
    """Hides parts that other tests of the process have loaded, which refusals would list."""
    for registry in REGISTRIES:
        monkeypatch.setattr(registry, "loaded", {})


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.mistake[:30]}-{case.input[:50]}")
def test_a_bad_input_is_refused_in_the_golden_line(case):
    """Would catch the case's own mistake: a value let through, a traceback, another field's name,
    a program that is compiled first, or a line whose wording changed unseen."""
    assert refusals.line_of(case) == case.line, case.mistake


def test_the_golden_file_is_as_it_is_written():
    """Would catch an input twice, and rows that a rewrite would move."""
    assert len({case[1:3] for case in CASES}) == len(CASES) > 500
    assert refusals.GOLDEN.read_text("utf-8") == refusals.write(CASES)
