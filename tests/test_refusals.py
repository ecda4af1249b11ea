"""Every bad input of tests/refusals.py ends in the line that tests/refusals.json has for it."""

import pytest
import refusals

CASES = refusals.cases()
LINES = refusals.golden()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.mistake[:30]}-{case.input[:50]}")
def test_a_bad_input_is_refused_in_the_golden_line(case):
    """Would catch the case's own mistake: a value let through, a traceback, another field's name,
    a program that is compiled first, or a line whose wording changed unseen."""
    assert refusals.line_of(case) == LINES[case[:2]], case.mistake


def test_the_golden_file_has_a_row_for_each_case_and_no_other():
    """Would catch a case without its line, a line that no case gives, and rows out of order."""
    assert list(LINES) == [case[:2] for case in CASES]
    assert refusals.GOLDEN.read_text("utf-8") == refusals.write(LINES)
