"""Results are, bit by bit, those whose digests are committed."""

import json

import pins
import programs
import pytest

import fmab_jax as fmab
from fmab_jax.run import compilation
from fmab_jax.sweeps import study

KNOWN = json.loads(pins.FILE.read_text(encoding="utf-8"))
HERE = KNOWN["digests"].get(pins.platform())
# A row of each kind of run; the others are for `-m slow`.
SOME = {*("cdp, p = 0.4", "cdp, log grid", "ddp, ring")}


@pytest.mark.skipif(HERE is None, reason="no digests for this device and version of JAX")
@pytest.mark.parametrize(
    "name", [n if n in SOME else pytest.param(n, marks=pytest.mark.slow) for n in pins.ROW]
)
@pytest.mark.parametrize("soon", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.as_users_have_it
def test_a_result_has_its_committed_bits(name, soon, monkeypatch):
    """Would catch any change of a draw, a rounding or a count that nobody meant to make, and other
    bits of runs of few seeds, whose programs are compiled sooner."""
    # Without the flag of the other tests, too.
    flag = programs.FLAG.removeprefix("--").partition("=")[0]
    usual = {**compilation._OPTIONS["cpu"], flag: True}
    monkeypatch.setitem(compilation._OPTIONS, "cpu", usual)
    if not soon:
        monkeypatch.setitem(compilation._FAST_OPTIONS, "cpu", {})
    compilation.compile_program.cache_clear()
    assert pins.ROW[name]() == HERE[name], "if meant: python tests/pins.py --write REASON"


def test_every_change_of_a_digest_has_its_reason():
    """Would catch digests that were replaced without saying why, or for which rows."""
    assert set(pins.ROW) >= SOME
    first, *later = KNOWN["history"]
    assert len(first["changed"]) == first["rows"] >= 40
    for item in later:
        assert item["reason"] and {*item["changed"], *item.get("new", ())} <= set(pins.ROW)
    assert HERE is None or set(HERE) == set(pins.ROW)


def test_every_shipped_algorithm_is_pinned():
    """Would catch an algorithm whose bits may change while a store of it is taken for the same, and
    a flag that the pinned run does not feel."""
    names = {output["name"] for output in fmab.list_algorithms()}
    for digests in KNOWN["digests"].values():
        assert {f"shipped, {name}" for name in names} <= set(digests)
        own = [digest for name, digest in digests.items() if name.startswith("shipped")]
        assert len(set(own)) == len(own) > len(names)


def test_the_engine_is_told_by_what_changed_and_why():
    """Would catch a store of other bits that is gone on with; and one that is refused though no bit
    of it has changed, such as for an algorithm that is new."""
    output = pins.ENGINE.read_text("utf-8").split()
    assert output[0] == pins.engine(KNOWN["history"])
    assert output[1] == study.engine_source(), "run python tests/pins.py, which writes it"
    first = {"reason": "all", "rows": 2, "changed": ["a", "b"], "new": []}
    more = {"reason": "a third", "rows": 3, "changed": [], "new": ["c"]}
    other = {"reason": "faster", "rows": 3, "changed": ["a"], "new": []}
    assert pins.engine([first]) == pins.engine([first, more]) != pins.engine([first, other])
    for else_ in ({"reason": "exact"}, {"changed": {"a": "9f"}}):
        assert pins.engine([first, other]) != pins.engine([first, other | else_])
