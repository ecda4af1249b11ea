"""One leak for all algorithms: epsilon is solved from the ledger, in a view."""

import math

import pytest

import fmab_jax as fmab
from fmab_jax.algorithms.base import collect_algorithms
from fmab_jax.analysis.leaks import find_leak
from fmab_jax.errors import Refusal
from fmab_jax.parameters import VIEWS


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["cdp", "ddp", "hdp", "kl_se", "dist_dp_se", "dp_se", "ldp_ucb"])
def test_exactly_this_leaks_or_the_algorithm_is_refused(name, view):
    """Would catch an epsilon that is not solved, or solved in another view."""
    try:
        algorithm = fmab.at_leak(name, 2, agents=50, view=view)
    except Refusal as error:
        assert "the nearest that bounds it is" in str(error)
        owner = collect_algorithms()[name]
        known = "epsilon_message" if hasattr(owner, "epsilon_message") else "epsilon"
        assert not math.isfinite(find_leak(owner(**{known: 2.0}), 50, view))
        return
    assert find_leak(algorithm, 50, view) == pytest.approx(2, rel=1e-9)


def test_a_sum_leaks_less_than_its_messages():
    """Would catch a sum that is counted as a message: 50 noises hide more than one."""
    message, summed = (fmab.at_leak("kl_se", 2, agents=50, view=v) for v in ("messages", "sum"))
    assert message.epsilon == 2 and summed.epsilon > 4
    assert find_leak(message, 50, "sum") < find_leak(message, 50, "messages") == 2


def test_a_leak_is_an_axis_and_the_same_runs_as_its_epsilon():
    """Would catch another configuration than that of the epsilon that leaks as much."""
    problem = fmab.Problem.uniform(agents=20, arms=5)
    given = {"horizon": 2000, "seeds": 4}
    data = fmab.sweep([fmab.cdp_mab, fmab.kl_se], problem, leak=[1, 2], **given)
    assert data.regret.dims[:2] == ("algorithm", "leak") and data.leak.values.tolist() == [1, 2]
    for place, algorithm in enumerate([fmab.cdp_mab(epsilon_message=2), fmab.kl_se(2)]):
        alone = fmab.simulate(algorithm, problem, **given)
        assert (data.regret[place, 1].values == alone.regret.values).all()


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"leak": 1, "epsilon": 2}, "epsilon=2: must be left out with leak"),
        ({"view": "sum", "epsilon": 1}, "view='sum': must be given with a leak"),
        ({"leak": 0}, "leak=0: must be a number in (0, 1e+100]"),
        ({"leak": 1, "view": "x"}, "view='x': must be 'messages' or 'sum' or 'actions'"),
        ({"algorithm": fmab.ucb1, "leak": 1}, "leak=1.0: must be left out with ucb1"),
        ({"algorithm": fmab.kl_se(1), "leak": 1}, "leak=1: must be left out with a configured"),
        ({"algorithm": fmab.dp_imed, "leak": 1}, "leak=1.0: must be left out with dp_imed"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(changes, start):
    """Would catch a leak that is ignored, or that silently wins over an epsilon."""
    given = {"algorithm": fmab.kl_se, "horizon": 10, "seeds": 2} | changes
    with pytest.raises(Refusal) as caught:
        fmab.sweep(given.pop("algorithm"), fmab.Problem.uniform(4, 3), **given)
    assert str(caught.value).startswith(start)
