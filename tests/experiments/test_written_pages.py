"""Pages as the experiments write them from made-up results, read back by who knows no writer."""

from pages import reader, writers


def test_pages_of_made_up_results_have_no_fault(monkeypatch, tmp_path):
    """Would catch words, ranks or counts unlike their numbers, and who is not named."""
    writers.write(tmp_path, monkeypatch.setattr)
    found = {name: reader.fault_of(name, tmp_path) for name in reader.pages(tmp_path)}
    assert {name: told for name, told in found.items() if told} == {}
    # Three pictures of each horizon; three fronts and the radius.
    assert {"ARENA.md", "arena_leak_T1e5.md", "arena_radius.md"} <= set(found)
    assert len(found) == 1 + 3 * 2 + 4
