"""Bounds of single candidates, and what they rule out."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import fmab_jax as fmab
from fmab_jax.planning.candidates import Setting, check_candidates
from fmab_jax.planning.pruning import bound_regret, prune

PROBLEM = fmab.Problem([0.9, 0.1, 0.1], agents=5)
SETTING = Setting(PROBLEM, 2000, None)
FIELD = [
    fmab.cdp_mab(epsilon_message=1),
    fmab.cdp_mab(epsilon_message=1, participation=0.4),
    fmab.cdp_mab(epsilon_message=1, participation=0.4, scale=0.3),
    fmab.kl_se(1),
]


@pytest.mark.parametrize("algorithm", [*FIELD[:2], fmab.uniform_play()])
def test_mean_regret_is_within_its_bounds(algorithm):
    """Would catch a lower bound that is above what runs lose, or of one agent alone."""
    low, high = bound_regret(algorithm, SETTING)
    regret = fmab.simulate(algorithm, PROBLEM, 2000, seeds=50, times=[2000]).regret
    error = 5.0 * float(regret.std()) / 50**0.5
    assert 0.0 < low <= float(regret.mean()) + error
    assert float(regret.mean()) - error <= high * (1.0 + 1e-9)


@pytest.mark.parametrize("horizon", [30, 100])
def test_a_horizon_within_the_first_epoch_has_no_lower_bound(horizon):
    """Would catch a theorem that rules out the best candidate at a short horizon."""
    setting = SETTING._replace(horizon=horizon)
    for algorithm in FIELD[:2]:
        low, high = bound_regret(algorithm, setting)
        assert low == 0.0 and high > 0.0
    assert prune(check_candidates(FIELD, setting), setting)[1] == []


def test_agents_that_differ_have_the_bound_of_their_theorem():
    """Would catch the bound of agents that are alike for some of those whose means differ."""
    rows = np.array([[0.9, 0.1, 0.1]] * 5) + 0.05 * np.array([[-2], [-1], [0], [1], [2]]) * [
        -1,
        1,
        1,
    ]
    problem = fmab.Problem(rows)
    assert not problem.homogeneous and np.allclose(rows.mean(axis=0), [0.9, 0.1, 0.1])
    alike, unlike = (
        bound_regret(FIELD[1], SETTING._replace(problem=x)) for x in (PROBLEM, problem)
    )
    assert alike[0] == pytest.approx(unlike[0]) and alike[1] < unlike[1]


def test_a_class_with_other_equations_has_no_bounds():
    """Would catch the paper's bounds for a plug-in that plays other epochs."""

    @dataclass(frozen=True)
    class Quick(fmab.cdp_mab):
        name = "quick"

        @staticmethod
        def pulls_per_arm(epoch):
            return epoch.previous + 20.0

    assert bound_regret(Quick(epsilon_message=1), SETTING) == (0.0, math.inf)
    assert bound_regret(FIELD[0], SETTING)[1] < math.inf


def test_theorems_rule_out_a_candidate_only_where_they_hold():
    """Would catch unproven values, drawn means, or a leader that may exceed a budget."""
    candidates = check_candidates(FIELD, SETTING)
    rest, notes = prune(candidates, SETTING)
    assert [candidate.algorithm for candidate in rest] == [FIELD[0], *FIELD[2:]]
    assert notes[0].startswith("theorems rule out cdp(participation=0.4): ")
    others = (fmab.Problem.uniform(5, 3), fmab.Problem([0.9, 0.1, 0.1], 5, means_error=0.1))
    others += (fmab.Problem([0.9, 0.1, 0.1], 5, "gaussian:1"),)
    others += tuple(
        fmab.Problem([0.9, 0.1, 0.1], 5, presence=text) for text in ("absent:0.9", "corrupted:0.9")
    )
    for problem in others:
        assert prune(candidates, SETTING._replace(problem=problem)) == (candidates, [])
    unsure = [candidate._replace(is_sure=False) for candidate in candidates]
    assert prune(unsure, SETTING) == (unsure, [])
    answer = fmab.plan(PROBLEM, 2000, leak=1, within=0.5, candidates=FIELD[:2])
    assert answer.candidates == 2 and len(answer.race) == 1 and answer.holds
    assert any(note.startswith("theorems rule out") for note in answer.notes)
