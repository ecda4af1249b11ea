"""Sentences of captions."""

import pytest

import fmab_jax as fmab
from fmab_jax.plots import captions


@pytest.mark.parametrize(
    "undecided, seeds, told",
    [
        ([520, 540, 531], [1000, 1000, 1000], ["52 to 54 % of the seeds still explore at T"]),
        ([10, 0], [20, 0], ["50 % of the seeds still explore at T"]),
        (9, 1000, []),
        ([0, 10], [1000, 1000], ["0 to 1 % of the seeds still explore at T"]),
        ([0], [0], []),
    ],
)
def test_a_caption_says_how_many_still_explore(undecided, seeds, told):
    """Would catch seeds that seem to have found the best arm and explore, and shares of no seed."""
    assert captions.describe_exploring(undecided, seeds) == told


def test_figures_say_that_seeds_still_explore():
    """Would catch a figure whose caption is silent where the table is not."""
    problem = fmab.Problem.uniform(agents=5, arms=10)
    how = {"horizon": 300, "times": 4}
    data = fmab.simulate(fmab.cdp_mab(0.5), problem, seeds=20, **how)
    assert (data.chosen_arm.values < 0).all()
    told = "100 % of the seeds still explore at T."
    assert told in fmab.plot_runs({"one": data}).get_label()
    swept = fmab.sweep("cdp", problem, epsilon=[0.5, 1.0], seeds=20, **how)
    figure = fmab.plot_parameter(fmab.final_table(swept), "epsilon")
    assert told in figure.get_label()
