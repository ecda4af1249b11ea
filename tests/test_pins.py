"""Results are, bit by bit, those whose digests are committed."""

from __future__ import annotations

import json

import pins
import programs
import pytest

from fmab_jax.run import batches

KNOWN = json.loads(pins.FILE.read_text(encoding="utf-8"))
HERE = KNOWN["digests"].get(pins.platform())
# A row of each kind of run; the others are for `-m slow`.
SOME = {
    *("cdp, p = 0.4", "cdp, log grid", "ddp, ring"),
}


@pytest.mark.skipif(HERE is None, reason="no digests for this device and version of JAX")
@pytest.mark.parametrize(
    "name",
    [n if n in SOME else pytest.param(n, marks=pytest.mark.slow) for n in pins.ROW],
)
@pytest.mark.parametrize("soon", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.as_users_have_it
def test_a_result_has_its_committed_bits(name, soon, monkeypatch):
    """Would catch any change of a draw, a rounding or a count that nobody meant to make, and other
    bits of runs of few seeds, whose programs are compiled sooner."""
    # Without the flag of the other tests, too.
    flag = programs.FLAG.removeprefix("--").partition("=")[0]
    usual = {**batches._OPTIONS["cpu"], flag: True}
    monkeypatch.setitem(batches._OPTIONS, "cpu", usual)
    if not soon:
        monkeypatch.setitem(batches._SOON, "cpu", {})
    batches.executable.cache_clear()
    assert pins.ROW[name]() == HERE[name], "if meant: python tests/pins.py --write REASON"


def test_every_change_of_a_digest_has_its_reason():
    """Would catch digests that were replaced without saying why, or for which rows."""
    assert set(pins.ROW) >= SOME
    first, *later = KNOWN["history"]
    assert len(first["changed"]) == first["rows"] >= 40
    assert all(each["reason"] and set(each["changed"]) <= set(pins.ROW) for each in later)
    assert HERE is None or set(HERE) == set(pins.ROW)
