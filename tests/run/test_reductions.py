"""What a reduction of one's own may return, and that chunks of any size give one result."""

import jax.numpy as jnp
import numpy as np
import pytest
from refusals import refused

import fmab_jax as fmab


def reduction(**changes):
    """Returns the mean regret of seeds as a reduction, with some parts changed."""
    parts = {
        "of": lambda record: record["regret"][:, -1],
        "init": lambda: np.zeros(2),
        "add": lambda state, x: state + jnp.array([1.0 * len(x), x.sum()]),
        "merge": lambda first, second: first + second,
        "finish": lambda state: state[1] / state[0],
    }
    return fmab.Reduce("reduced", "mean", "reward", **parts | changes)


def reduced(output, seeds=20, **more):
    """Returns the result of a reduction of a small sweep."""
    problem = fmab.Problem.uniform(agents=3, arms=3)
    study = dict(horizon=300, seeds=seeds, times=2, keep="summary", epsilon=[1.0])
    return fmab.sweep(fmab.cdp_mab, problem, **study, outputs=[output], **more).reduced.item()


def add_largest(state, x):
    """Adds seeds to the ten largest values, the largest last."""
    return jnp.sort(jnp.concatenate([state, x]))[-10:]


RIGHT = {
    "sums": {},
    "sums in place": {"merge": lambda first, second: np.add(first, second, out=first)},
    "largest": {
        "init": lambda: np.float64(-np.inf),
        "add": lambda state, x: jnp.maximum(state, x.max()),
        "merge": np.maximum,
        "finish": lambda state: state,
    },
    "counts": {
        "init": lambda: (np.int64(0), 0),
        "add": lambda state, x: (state[0] + len(x), state[1] + (x > 150.0).sum()),
        "merge": lambda first, second: (first[0] + second[0], first[1] + second[1]),
        "finish": lambda state: state[1] / state[0],
    },
    "a sample in another order": {
        "init": lambda: np.full(10, -1.0),
        "add": add_largest,
        "merge": lambda first, second: np.partition(np.append(first, second), 10)[-10:],
        "finish": lambda state: np.sort(state)[-3:].sum(),
    },
    "no number for some": {"finish": lambda state: np.nan},
}


@pytest.mark.parametrize("case", RIGHT)
def test_chunks_of_any_size_give_the_result_of_all_seeds(case):
    """Would catch a right reduction that is refused, seeds that are lost, or states changed."""
    output = reduction(**RIGHT[case])
    expected = reduced(output)
    for chunk in (1, 3, 7):
        np.testing.assert_allclose(reduced(output, chunk=chunk), expected, rtol=1e-12)


def fail(*_):
    """Fails, as the code of a user may."""
    raise KeyError("x")


def merge_first_count(first, second):
    """Merges means of two parts rightly, but counts only the seeds of the first."""
    count = first[0] + second[0]
    return np.array([first[0], (first * first[0] + second * second[0])[1] / count])


MEAN = {
    "add": lambda state, x: jnp.array([1.0 * len(x), x.mean()]),
    "finish": lambda state: state[1],
}
LARGEST = RIGHT["largest"]
REAL = "must be real numbers"
WRONG = [
    *(({"finish": lambda state, x=x: x}, f"finish={shown}: {REAL}") for x, shown in [
        (2j, "2j"), (None, "None"), (np.timedelta64(1, "s"), "1 seconds"),
    ]),
    ({"finish": lambda state: np.ma.masked_less(state, 100.0)[0]}, "finish=masked values: "),
    ({"finish": lambda state: [[1.0], [1.0, 2.0]]}, "finish=[[1.0], [1.0, 2.0]]: must be an arr"),
    ({"finish": lambda state: state}, "finish=an array (2,): must be an array ()"),
    ({"finish": fail}, "finish: must return, not end in KeyError"),
    ({"merge": lambda first, second: second, **MEAN}, "merge="),
    ({"merge": lambda first, second: first}, "merge="),
    ({**LARGEST, "merge": lambda first, second: first}, "merge="),
    ({**LARGEST, "merge": lambda first, second: second}, "merge="),
    ({"merge": lambda first, second: 0.5 * (first + second), **MEAN}, "merge="),
    ({"merge": merge_first_count, **MEAN}, "merge="),
    ({"merge": fail}, "merge: must return, not end in KeyError"),
    ({"merge": lambda first, second: None}, "merge=in PyTreeDef(None): must be as init: float"),
    ({"merge": lambda first, second: (first + second)[:1]}, "merge=float64 (1,) in PyTreeDef(*): "),
    ({"merge": lambda first, second: np.float32(first)}, "merge=float32 (2,) in PyTreeDef(*): "),
    ({"merge": lambda first, second: [first + second]}, "merge=float64 (2,) in PyTreeDef([*]): "),
    ({"merge": lambda first, second: np.ma.masked_less(first, 1e9)}, "merge=masked values: "),
    *(({"init": lambda kind=kind: np.zeros(2, kind)}, f"init=an array of {kind}: must be arrays")
      for kind in ("uint8", "float32")),
    ({"init": lambda: "0"}, "init=an array of <U1: must be arrays of bool, int64"),
    ({"init": lambda: None}, "init=None: must be at least one array"),
    ({"init": fail}, "init: must return, not end in KeyError"),
    ({"add": lambda state, x: state.astype(jnp.float32)}, "add=float32 (2,) in PyTreeDef(*): "),
    ({"add": lambda state, x: state[0]}, "add=float64 () in PyTreeDef(*): "),
    ({"of": fail}, "of: must return, not end in KeyError"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_what_a_reduction_may_not_do_is_refused_in_one_line(case):
    """Would catch a result bent to a float, a merge that loses seeds, or a count that wraps."""
    changes, words = WRONG[case]
    line = refused(reduced, reduction(**changes), seeds=9)
    assert line.startswith(f"reduced.{words}"), line


def test_a_merge_is_refused_before_all_seeds_are_computed(monkeypatch):
    """Would catch a check that a chunk of one seed leaves out, or that comes after the run."""
    from fmab_jax.sweeps import work

    blocks = []
    compute = work.compute_block
    monkeypatch.setattr(work, "compute_block", lambda *x: blocks.append(x) or compute(*x))
    output = reduction(merge=lambda first, second: 0.5 * (first + second), **MEAN)
    line = refused(reduced, output, seeds=40, chunk=1)
    value, expected = (float(line.split(word)[1].split(at)[0]) for word, at in
                       (("=", ":"), ("must be ", ",")))  # fmt: skip
    assert len(blocks) == 1 and value != expected
    assert "as add gives for the same 6 seeds at once" in line


def test_a_merge_that_drops_what_is_rare_is_refused_when_it_happens():
    """Would catch a count of rare runs that is the first chunk's, since no seed of it is one."""
    problem = fmab.Problem.uniform(agents=3, arms=3)
    end = fmab.simulate(fmab.cdp_mab(1.0), problem, 300, 40, times=2).regret.values[:, -1]
    rare = (end[:20].max() + end[20:].max()) / 2
    assert (end[20:] > rare).any() and not (end[:20] > rare).any()
    output = reduction(
        init=lambda: jnp.zeros(2),
        add=lambda state, x: state + jnp.array([1.0 * len(x), jnp.where(x > rare, 1.0, 0.0).sum()]),
        merge=lambda first, second: np.array([first[0] + second[0], first[1]]),
        finish=lambda state: state[1],
    )
    assert refused(reduced, output, seeds=40, chunk=20).startswith("reduced.merge=0: must be 1")
