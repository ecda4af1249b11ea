"""What an algorithm promises of every trial, by outcomes that break one promise each."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from altered import altered
from refusals import refused, refuses

import fmab_jax as fmab
from fmab_jax.errors import Refusal
from fmab_jax.parts.trials import Outcome
from fmab_jax.run import promises


def outcome(**changed):
    """Returns what two seeds left at three recorded slots, with something changed."""
    whole = np.array([3, 1])
    right = dict(
        regret=np.array([[1.0, 2.0, 4.0], [0.0, 0.0, 1e6]]),
        waiting_regret=None,
        rounds_by=np.array([[0, 2, 3], [0, 0, 1]]),
        rounds=whole,
        arms_reported=whole,
        active_arms=whole,
        chosen_arm=whole,
        agents_lost=whole,
        agents_worse=whole,
        final_gap=np.array([0.5, 0.0]),
    )
    return Outcome(**(right | changed))


def test_kept_promises_are_taken():
    """Would catch a rounding of a large regret that is taken for a fall."""
    promises.check_batch(outcome(), [7, 9], "x")
    promises.check_batch(
        outcome(regret=np.array([[1.0, 2, 4], [1e6, 1e6 - 1e-4, 1e6]])), [7, 9], "x"
    )
    promises.check_batch(outcome(regret=np.array([[-1e-10, 2, 4], [0.0, 0, 1]])), [7, 9], "x")


BROKEN = {
    "a fall": (dict(regret=[[1, 2, 4], [0, 5, 4.9]]), "regret 4.9 of seed 9 at recorded slot 3"),
    "below zero": (dict(regret=[[-1, 2, 4], [0, 0, 1]]), "regret -1 of seed 7 at recorded slot 1"),
    "no number": (
        dict(regret=[[1, 2, np.nan], [0, 0, 1]]),
        "regret nan of seed 7 at recorded slot 3",
    ),
    "an infinity": (dict(regret=[[1, 2, 4], [0, 0, np.inf]]), "regret inf of seed 9"),
    "no gap": (dict(final_gap=[0.5, np.nan]), "final gap nan of seed 9"),
    "rounds that fall": (dict(rounds_by=[[0, 4, 3], [0, 0, 1]]), "rounds 3 of seed 7"),
    "rounds that are not all": (dict(rounds=[3, 2]), "rounds 2 of seed 9"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_promise_is_told_with_its_seed_and_slot(what):
    """Would catch numbers that no run can have, or a line that names another seed or slot."""
    changes, line = BROKEN[what]
    text = refused(
        promises.check_batch, outcome(**{k: np.array(v) for k, v in changes.items()}), [7, 9], "x"
    )
    assert text.startswith("x breaks the contract of algorithms: ") and line in text


SHAPES = {
    "a tuple": (tuple(outcome()), "a tuple"),
    "a curve too long": (dict(regret=np.zeros(4)), "regret of shape (4,) in place of (3,)"),
    "a number for a curve": (dict(rounds_by=np.int32(1)), "rounds_by of shape () in place of (3,)"),
    "a curve for a number": (dict(chosen_arm=np.zeros(3, int)), "chosen_arm of shape (3,)"),
    "a real number of arms": (dict(active_arms=np.float64(2)), "active_arms of type float64"),
    "a whole gap": (dict(final_gap=np.int64(0)), "final_gap of type int64"),
    "a wait of another length": (dict(waiting_regret=np.zeros(2)), "waiting_regret of shape (2,)"),
}


@pytest.mark.parametrize("what", SHAPES)
def test_an_outcome_of_another_shape_or_type_is_refused(what):
    """Would catch arrays that broadcast, and numbers of arms that were rounded."""
    case, line = SHAPES[what]
    one = outcome()._asdict()
    one = {k: v[0] for k, v in one.items() if v is not None} | {"waiting_regret": None}
    if isinstance(case, dict):
        case = Outcome(**(one | case))
    with jax.enable_x64(True):
        right = Outcome(**one)
        assert promises.check_outcome(right, 3, "x") is right
        waited = right._replace(waiting_regret=np.zeros(3))
        assert promises.check_outcome(waited, 3, "x") is waited
        with pytest.raises(Refusal, match=r"^x breaks the contract of algorithms: ") as caught:
            promises.check_outcome(case, 3, "x")
    assert line in str(caught.value)


def test_a_radius_that_is_no_number_is_refused():
    """Would catch a run in which no arm ever leaves, because each comparison with NaN is false."""

    def radius(epoch):
        return epoch.pulls * jnp.nan

    broken = altered(fmab.cdp_mab, radius=staticmethod(radius))
    problem = fmab.Problem([0.9, 0.1], agents=3)
    refuses("regret nan of seed 0", fmab.simulate, broken(1.0), problem, 2000, 2)
