"""Writers with one wrong line: the page that they write has a fault that the reader finds."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from pages import reader

from tests import mutants

HERE = Path(__file__).parent
LISTED = mutants.read(HERE / "writers.toml")
# Which pages a file writes: those of the claims, or else of the arena.
OF_CLAIMS = ("verdicts", "claims", "multiverse", "multiverse_figures")
# What the writers need.
NEEDED = ("fmab_jax", "experiments", "tests")


def page_of(mutant):
    """Returns which pages are written with a mutant."""
    return "claims" if Path(mutant.file).stem in OF_CLAIMS else "arena"


def faults(copy, what, folder):
    """Returns the faults of the pages that a copy of the project writes."""
    written = subprocess.run(
        [sys.executable, str(copy / HERE.relative_to(mutants.ROOT) / "writers.py"), what, folder],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        timeout=mutants.LONGEST,
    )
    assert written.returncode == 0, written.stderr[-2000:]
    return [fault for name in reader.pages(folder) if (fault := reader.fault_of(name, folder))]


def test_every_mutant_of_a_writer_fits():
    """Would catch a mutant of a line that is no more, two that are the same, and too few."""
    for each in LISTED:
        compile(each.applied(), each.file, "exec")
        assert each.why and "\n" not in each.old and not each.lives, each
    assert max(Counter((each.file, each.applied()) for each in LISTED).values()) == 1
    assert len(LISTED) >= 24


@pytest.mark.slow
@pytest.mark.parametrize("mutant", LISTED, ids=lambda each: each.why)
def test_a_page_of_a_broken_writer_has_a_fault(mutant, tmp_path):
    """Would catch a reader that looks away from what this writer gets wrong."""
    with mutants.copied(mutant, NEEDED) as copy:
        found = faults(copy, page_of(mutant), tmp_path)
    assert found
