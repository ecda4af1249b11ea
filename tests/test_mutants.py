"""The list of mutants fits the sources, and the runner tells who is caught; a sample is run."""

import ast
from collections import Counter

import pytest

from tests import mutants
from tests.mutants import Mutant

LISTED = mutants.read()


def test_every_mutant_stands_in_its_file_once_and_parses():
    """Would catch a mutant of a line that is no more, which would count as caught or be skipped."""
    for each in LISTED:
        ast.parse(each.applied(), each.file)
        assert each.why and each.by in ("insider", "outsider"), each
    assert max(Counter((each.file, each.applied()) for each in LISTED).values()) == 1


def test_there_are_mutants_of_every_room():
    """Would catch a room whose tests nobody tries, and a list by insiders alone."""
    rooms = Counter(each.room for each in LISTED)
    assert set(rooms) == set(mutants.TESTS) and min(rooms.values()) >= 2
    assert len(LISTED) >= 120
    assert sum(each.by == "outsider" for each in LISTED) >= len(LISTED) / 2
    assert sum(bool(each.lives) for each in LISTED) <= 0.05 * len(LISTED)


def test_a_mutant_that_no_longer_fits_is_an_error():
    """Would catch a runner that runs the unchanged sources and calls that a mutant that lived."""
    file = "fmab_jax/sampling/curves.py"
    for old in ("nowhere in the file", "slot"):
        with pytest.raises(LookupError, match=file):
            Mutant(file, old, "x", "why").applied()
