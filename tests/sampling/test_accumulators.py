"""Accumulators: what a plug-in adds up in a loop, and who is to blame where that goes wrong."""

import jax.numpy as jnp
import pytest
import sizes

import fmab_jax as fmab
from fmab_jax.errors import Refusal
from fmab_jax.parts.outputs import OUTPUTS, Accumulator


def own(of, accumulator):
    """Returns an output of one's own."""
    return fmab.Output("own", "", "", of, accumulators=(accumulator,))


def zeros(rows, arms, grid):
    return jnp.zeros(arms)


def keep(value, stretch, grid):
    return value


ACCUMULATORS = (
    (lambda r, a, g: jnp.zeros(a + 3), keep, ("arm",), "end returns"),
    (lambda r, a, g: jnp.zeros(r - 1), keep, ("agent",), "end returns"),
    (zeros, keep, (), r"end returns float64\(3,\) in place of float64\(\)"),
    (lambda r, a, g: jnp.zeros(a, int), keep, ("arm",), "end returns int64"),
    (zeros, lambda f, s, g: f.sum(), ("arm",), "add returns"),
    (zeros, lambda f, s, g: f / None, ("arm",), "add: TypeError: .*, line"),
    (lambda r, a, g: "x", keep, ("arm",), "start: TypeError"),
)


@pytest.mark.parametrize(("start", "add", "dims", "line"), ACCUMULATORS)
def test_an_accumulator_of_another_shape_is_the_plug_ins_fault(
    start, add, dims, line, tmp_path, monkeypatch
):
    """Would catch a wrong shape that is reported as damage of the store, or is cut to fit."""
    accumulator = Accumulator("g", dims, start, add, lambda value: value)
    output = own(lambda record: record["g"].reshape(len(record["g"]), -1)[:, 0], accumulator)
    monkeypatch.setitem(OUTPUTS.loaded, "own", output)
    size = dict(horizon=40, seeds=2, times=4, outputs=["own"], store=tmp_path / "s")
    pattern = (
        f"^g breaks the contract of accumulators: An accumulator starts as arrays, .* Seen: {line}"
    )
    for _ in range(2):
        with pytest.raises(Refusal, match=pattern):
            fmab.sweep(fmab.ucb1(), fmab.Problem.uniform(**sizes.SMALL), progress=False, **size)


@pytest.mark.parametrize("algorithm", [fmab.cdp_mab(1.0), fmab.single_mab(1.0), fmab.dp_imed(1.0)])
def test_an_accumulator_is_checked_in_every_loop(algorithm):
    """Would catch a loop that does not know the shape of an accumulator."""
    few = Accumulator(
        "g", ("agent", "arm"), lambda r, a, g: jnp.zeros((r, a - 1)), keep, lambda x: x
    )
    asked = [own(lambda record: record["g"][:, 0, 0], few)]
    with pytest.raises(Refusal, match=r"^g breaks .* float64\(1, 2\) in place of float64\(1, 3\)"):
        fmab.simulate(algorithm, fmab.Problem.uniform(**sizes.SMALL), 40, 2, outputs=asked)
