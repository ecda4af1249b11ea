"""Accumulators: what a plug-in adds up in a loop, and who is to blame where that goes wrong."""

import jax.numpy as jnp
import pytest
import sizes

import fmab_jax as fmab
from fmab_jax.core.outputs import Accumulator
from fmab_jax.errors import Refusal
from fmab_jax.run import outputs


def own(of, accumulator):
    """Returns an output of one's own."""
    return fmab.Output("own", "", "", of, accumulators=(accumulator,))


def zeros(rows, arms, grid):
    """Returns a number for each arm."""
    return jnp.zeros(arms)


def stays(had, stretch, grid):
    """Returns what there was."""
    return had


ACCUMULATORS = {
    "of three arms too many": (lambda r, a, g: jnp.zeros(a + 3), stays, ("arm",), "end returns"),
    "of too few arms": (lambda r, a, g: jnp.zeros(a - 1), stays, ("arm",), "end returns"),
    "of a row too few": (lambda r, a, g: jnp.zeros(r - 1), stays, ("agent",), "end returns"),
    "of a slot too few": (lambda r, a, g: jnp.zeros(len(g) - 1), stays, ("time",), "end returns"),
    "of no dimension": (zeros, stays, (), r"end returns float64\(3,\) in place of float64\(\)"),
    "of whole numbers": (lambda r, a, g: jnp.zeros(a, int), stays, ("arm",), "end returns int64"),
    "of nothing": (lambda r, a, g: None, stays, ("arm",), "end returns nothing"),
    "that becomes one number": (zeros, lambda f, s, g: f.sum(), ("arm",), "add returns"),
    "that grows": (zeros, lambda f, s, g: jnp.zeros((2, 3)), ("arm",), "add returns"),
    "that becomes two": (zeros, lambda f, s, g: (f, f), ("arm",), "add returns float64"),
    "that changes its type": (
        zeros,
        lambda f, s, g: f.astype(complex),
        ("arm",),
        "add returns",
    ),
    "that fails": (zeros, lambda f, s, g: f / None, ("arm",), "add: TypeError: .*, line"),
    "that starts as a text": (lambda r, a, g: "x", stays, ("arm",), "start: TypeError"),
}


@pytest.mark.parametrize("name", ACCUMULATORS)
def test_an_accumulator_of_another_shape_is_the_plug_ins_fault(name, tmp_path, monkeypatch):
    """Would catch an accumulator that is told as damage of the store, "run the sweep again", for
    ever; one that is cut or repeated to the shape it should have; and an algorithm that is blamed
    for it."""
    start, add, dims, line = ACCUMULATORS[name]
    accumulator = Accumulator("g", dims, start, add, lambda had: had)
    asked = own(lambda record: record["g"].reshape(len(record["g"]), -1)[:, 0], accumulator)
    monkeypatch.setattr(outputs, "optional_outputs", lambda: {"own": asked})
    problem = fmab.Problem.uniform(**sizes.SMALL)
    given = dict(horizon=40, seeds=2, times=4, outputs=["own"], store=tmp_path / "s")
    wanted = (
        f"^g breaks the contract of accumulators: An accumulator starts as arrays, .* Seen: {line}"
    )
    for _ in range(2):
        with pytest.raises(Refusal, match=wanted):
            fmab.sweep(fmab.ucb1(), problem, progress=False, **given)


@pytest.mark.parametrize("algorithm", [fmab.cdp_mab(1.0), fmab.single_mab(1.0), fmab.dp_imed(1.0)])
def test_an_accumulator_is_checked_in_every_loop(algorithm):
    """Would catch a loop that does not know how many rows, arms or slots an accumulator has."""
    few = Accumulator(
        "g", ("agent", "arm"), lambda r, a, g: jnp.zeros((r, a - 1)), stays, lambda x: x
    )
    asked = [own(lambda record: record["g"][:, 0, 0], few)]
    with pytest.raises(Refusal, match=r"^g breaks .* float64\(1, 2\) in place of float64\(1, 3\)"):
        fmab.simulate(algorithm, fmab.Problem.uniform(**sizes.SMALL), 40, 2, outputs=asked)
