"""Pages as the experiments write them from made-up results, read back by who knows no writer."""

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
    """Would catch words, ranks, counts or verdicts unlike their numbers, and who is not named."""
    writers.write(what, tmp_path, monkeypatch.setattr)
    found = {name: reader.fault_of(name, tmp_path) for name in reader.pages(tmp_path)}
    assert {name: told for name, told in found.items() if told} == {}
    assert set(names) <= set(found) and len(found) == many
