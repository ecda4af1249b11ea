"""Sentences of captions."""

import fmab_jax as fmab


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
