"""The one line that every bad input ends in, and the numbers that pass."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from refusals import refused as message

from fmab_jax import files, machine
from fmab_jax.errors import (
    Busy,
    Refusal,
    count,
    parse_number,
    privacy,
    real,
    refuse,
)
from fmab_jax.machine import Share


def test_refusal_names_field_value_range_and_remedy():
    """Catches a part of the message that is lost, or out of order."""
    found = message(refuse, "horizon", "ten", "a number", "give slots")
    assert found == "horizon='ten': must be a number; give slots"


def test_refusal_is_one_short_line():
    """Catches values that break the line or flood the terminal: arrays, texts, lists."""
    values = ("a\nb\r\n  c", np.eye(9), list(range(10**5)), "x" * 10**6, {"a": "\n" * 99})
    for value in values:
        text = message(refuse, "means", value, "short", "cut it")
        assert "\n" not in text and "\r" not in text and len(text) <= 80 + 40
    assert message(refuse, "f", "y" * 500, "z", "w") == f"f='{'y' * 76}...: must be z; w"
    assert message(refuse, "f", "y" * 78, "z", "w") == f"f='{'y' * 78}': must be z; w"


WHOLE = [
    (5, 5),
    (0, 0),
    (1e6, 10**6),
    (np.int64(7), 7),
    (np.float32(3.0), 3),
    (Fraction(6, 2), 3),
    (10**18 + 1, 10**18 + 1),
]


@pytest.mark.parametrize(("value", "whole"), WHOLE, ids=repr)
def test_whole_numbers_pass_unchanged(value, whole):
    """Catches NumPy integers refused, digits lost past 2^53, or a result that is no plain int."""
    found = count("n", value, 0, 2 * 10**18, "x")
    assert found == whole and type(found) is int


@pytest.mark.parametrize(
    ("ends", "inside", "outside", "shown"),
    [
        ({}, (0, 0.0, -0.0, 0.5, 1, 1.0), (-1e-300, 1 + 2**-52, math.inf, math.nan), "[0, 1]"),
        ({"open_low": True}, (5e-324, 0.5, 1), (0, -0.0, -1, 2, math.nan), "(0, 1]"),
        ({"open_high": True}, (0, 0.5, 1 - 2**-53), (1, 1.0, 2, math.nan, -math.inf), "[0, 1)"),
        ({"open_low": True, "open_high": True}, (0.5,), (0, 1, math.nan), "(0, 1)"),
    ],
)
def test_ends_of_a_real_range(ends, inside, outside, shown):
    """Catches < for <=, at either end, and NaN, which no comparison refuses by itself."""
    for value in inside:
        found = real("p", value, 0.0, 1.0, "x", **ends)
        assert found == value and type(found) is float
    for value in outside:
        text = message(real, "p", value, 0.0, 1.0, "x", **ends)
        assert f"{value!r}" in text and f" in {shown}" in text


@pytest.mark.parametrize(
    "error",
    [
        Refusal("a", "x" * 200, "short", "cut it"),
        Refusal.line("a: b"),
        Busy("runs/x", "header", "process 3 on h: wait"),
    ],
)
def test_a_refusal_survives_a_process(error):
    """Catches a refusal of another process that cannot be read, or is quoted twice."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
    assert again.__dict__ == error.__dict__


TEXTS = [
    *(("5", 5), ("1e6", 10**6), ("-0.5", -0.5)),
    *((".5", 0.5), ("5.", 5), ("+1E-3", 0.001), ("1e18", 1e18), ("0e-99999999999999999999", 0)),
    *(("inf", math.inf), ("-INF", -math.inf), ("123456789012345678", 123456789012345678)),
    *(("-12345678901234567890123", -12345678901234567890123), ("1.2e20", 1.2e20)),
]


@pytest.mark.parametrize(("text", "number"), TEXTS, ids=repr)
def test_a_text_is_read_as_this_number(text, number):
    """Catches a whole number read as a float, or digits lost past 2^53."""
    found = parse_number(text)
    assert found == number and type(found) is type(number)


@pytest.mark.parametrize(
    "text",
    [
        *("1e400", "-1e309", "1e-400", "1e-99999999999999999999", "1e99999999999999999999"),
        *("1_0", "0.1_5", "\u0661\u0662", "\uff15", "\u0131nf", "infinity", "", " 1", "1 ", "1\n"),
        *("0x10", "1e", "e1", ".", "1.2.3", "--1", "1j", "1,5", "none"),
    ],
)
def test_a_text_is_no_number(text):
    """Catches a traceback of decimal, 1e400 as no noise, and digits that nobody typed."""
    assert parse_number(text) is None


def test_privacy_is_bounded_so_that_what_a_message_leaks_is_a_number():
    """Catches an epsilon that overflows times the agents, or no noise that is refused."""
    found = [privacy("epsilon", each) for each in (None, math.inf, np.float32("inf"), 1e100)]
    assert found == [*3 * [math.inf], 1e100]
    for value in (1e308, 1.0001e100, 0, -1, math.nan, -math.inf, np.longdouble("1e4000")):
        assert " in (0, 1e+100]" in message(privacy, "epsilon", value)


# --- files and memory, whose refusals these are ---


TAKEN = "must be a new name; "
FOLDER = "must be the name of a file; "


@pytest.mark.parametrize(
    ("name", "plain", "replaced"),
    [
        ("free", None, None),
        ("file", TAKEN, None),
        ("folder", FOLDER, FOLDER),
        ("link to a file", TAKEN, None),
        ("link to a folder", TAKEN, None),
        ("link to nowhere", TAKEN, None),
    ],
)
def test_a_name_that_is_taken_is_replaced_only_if_that_is_said(tmp_path, name, plain, replaced):
    """Would catch a link to nowhere that counts as free, a folder that is replaced, or a link that
    cannot be, though only the link is."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    if name.startswith("link"):
        (tmp_path / name).symlink_to(tmp_path / name.split()[-1])
    for overwrite, line in ((False, plain), (True, replaced)):
        if line is None:
            files.refuse_taken(tmp_path / name, overwrite)
        else:
            said = message(files.refuse_taken, tmp_path / name, overwrite)
            assert f": {line}" in said


@pytest.mark.parametrize(
    ("free", "needed", "passes"), [(10**9, 0.9e9, True), (10**9, 0.91e9, False), (0, 1e30, True)]
)
def test_nine_tenths_of_the_memory_may_be_taken(monkeypatch, free, needed, passes):
    """Would catch all of the memory taken, and a refusal where nobody knows how much there is."""
    monkeypatch.setattr(machine, "memory", lambda: Share(free, "", 0))
    if passes:
        return machine.check_memory("arms", needed, "use fewer")
    line = "arms='0.9 GB': must be at most 90% of the 1.0 GB available; "
    assert message(machine.check_memory, "arms", needed, "use fewer").startswith(line)
