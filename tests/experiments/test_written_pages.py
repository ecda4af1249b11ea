"""Pages as the experiments write them from made-up results, read back by who knows no writer."""

from __future__ import annotations

import pytest
from pages import reader, writers


@pytest.mark.parametrize(
    ("what", "names", "many"),
    [
        ("claims", ["CLAIMS.md", "multiverse.md"], 2),
        # Four pictures of each horizon; three fronts, the radius and the years.
        ("arena", ["ARENA.md", "arena_leak_T1e5.md", "arena_years.md"], 1 + 4 * 2 + 5),
    ],
)
def test_pages_of_made_up_results_have_no_fault(monkeypatch, tmp_path, what, names, many):
    """Would catch a sentence, a rank, a count, a table or words of a picture that say otherwise
    than the numbers beside them, whoever was not run and is not named, and a verdict that its
    numbers do not have."""
    writers.write(what, tmp_path, monkeypatch.setattr)
    found = reader.all_faults(tmp_path)
    assert {name: told for name, told in found.items() if told} == {}
    assert set(names) <= set(found) and len(found) == many
