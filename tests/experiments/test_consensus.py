"""CES beside its rivals: what the pages say is what the tables hold; CES with noise is fair."""

from pathlib import Path

import numpy as np
import pytest

from experiments import common, consensus, noisy_consensus
from fmab_jax.parts.networks import weigh_edges

FIGURES = Path(consensus.__file__).parents[1] / "figures"


def noisy(means, seeds=20, epsilon=1e9, graph="complete", drift=0.0, pulls=4):
    means = np.broadcast_to(means, (seeds, 5, np.shape(means)[-1]))
    mixing, rng = weigh_edges(graph, 5, "metropolis"), np.random.default_rng(1)
    return noisy_consensus.simulate(means, mixing, drift, 1000, epsilon, lambda _: pulls, rng)


def test_without_noise_an_arm_leaves_when_its_gap_is_two_radii():
    """Catches epochs that are counted wrong, a gap or agents left out, and slots after T."""
    # Rewards are 1 and 0: the gap is 1 > 2 sqrt(log T / (M tau)) after one epoch of 8 pulls.
    assert noisy([1.0, 0.0], pulls=8) == pytest.approx(5 * 8 * 1.0)
    # With 4 it takes a second epoch; with estimates that may differ by all, it never leaves.
    assert noisy([1.0, 0.0], pulls=4) == pytest.approx(5 * 8 * 1.0)
    assert noisy([1.0, 0.0], drift=100.0) == pytest.approx(5 * 500 * 1.0)


def test_noise_and_a_sparse_graph_cost_regret():
    """Catches noise that is not added or not covered, and estimates that are not mixed."""
    means = [0.9, 0.6, 0.3]
    assert noisy(means, epsilon=0.05).mean() > 1.5 * noisy(means).mean()
    assert noisy(means, drift=0.2).mean() > noisy(means).mean()
    # One agent is sure of its own best arm, but all go by means over agents, 0.48 and 0.52.
    apart = [[0.6, 0.4]] * 4 + [[0.0, 1.0]]
    assert noisy(apart, pulls=100) == pytest.approx(5 * 500 * 0.04)


def test_the_published_tables_say_what_they_hold():
    """Catches words of another run, and a bound that is below the regret."""
    rows = common.read_rows(FIGURES / "consensus.csv")
    assert consensus.describe(rows) in (FIGURES / "consensus.md").read_text("utf-8")
    bounded = [row for row in rows if row["bound of CES"]]
    assert len(bounded) == len(consensus.HORIZONS) * len(consensus.SPREADS) * len(consensus.GRAPHS)
    assert all(row["regret"][2] < row["bound of CES"] for row in bounded)
    private = common.read_rows(FIGURES / "consensus_private.csv")
    assert consensus.judge_private(private) in (FIGURES / "consensus_private.md").read_text("utf-8")
    # What docs/theory.md says of every leak and graph.
    assert len(private) == 80 and all(r["CES with noise"][0] > r["KL-SE"][0] for r in private)


@pytest.mark.parametrize(
    ("graph", "agents", "rounds"), [("complete", 20, "2 to 38"), ("regular-4", 200, "from 14 on")]
)
def test_the_term_of_ces_for_estimates_that_differ(graph, agents, rounds):
    """Catches a disagreement that is no worst case, and a table of other graphs."""
    rows = common.read_rows(FIGURES / "consensus_drift.csv")
    (row,) = [row for row in rows if (row["graph"], row["agents"]) == (graph, agents)]
    found = consensus.measure_disagreement(graph, agents)
    assert row["too small in rounds"] == found["too small in rounds"] == rounds
    assert row["largest disagreement"] == pytest.approx(found["largest disagreement"])
    # On a complete graph only the last reward is not shared yet: 1 - 1 / M of it.
    assert graph != "complete" or found["largest disagreement"] == pytest.approx(1 - 1 / agents)
