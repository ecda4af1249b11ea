"""Epsilon by agent: bits, laws, radius and ledger against plain NumPy, and all doors."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from refusals import refuses
from sizes import SMALL

import fmab_jax as fmab
from experiments.audit import audit
from fmab_jax import elimination
from fmab_jax.algorithms.families.noisy_messages import NoisyMessages
from fmab_jax.analysis.privacy import laplace_sum_epsilon
from fmab_jax.cli.main import main
from fmab_jax.draws import ByAgent, Groups, OnReport, SplitArms, choose
from fmab_jax.equations import Epoch
from fmab_jax.parameters import ViewKind, parameter
from fmab_jax.parts.exchanges import Viewer
from fmab_jax.parts.per_agent import PerAgent
from fmab_jax.sampling import keys
from fmab_jax.sampling.scope import package_settings

ALPHA, SEEDS, DELTA = 1e-6, 60_000, 1e-6
BLANK = Epoch(*[()] * 8)
LEAKS = (0.5, 4.0, 0.5, 4.0, 1.0)
ALIKE = fmab.Problem([0.0, 1.0], agents=5)
DIFFER = fmab.Problem([[0.0, 1.0]] * 3 + [[1.0, 0.0]] * 2)

# Name: algorithm, problem, whether agents are summed out, how they are drawn, their weights.
CASES = {
    "server": (fmab.cdp_mab, {}, ALIKE, True, Groups),
    "differ": (fmab.cdp_mab, {}, DIFFER, True, Groups),
    "one by one": (fmab.cdp_mab, {}, ALIKE, False, ByAgent),
    "some": (fmab.cdp_mab, {"participation": 0.4}, ALIKE, True, OnReport),
    "ring": (fmab.ddp_mab, {"graph": "ring"}, ALIKE, True, ByAgent),
    "private": (fmab.ddp_mab, {"graph": "ring", "private_waiting": True}, DIFFER, True, ByAgent),
    "weights": (
        *(fmab.hdp_mab, {"components": "1,4:complete", "weights": "components"}),
        *(DIFFER, True, Groups),
    ),
    "gaussian": (fmab.cdp_mab, {"mechanism": "gaussian"}, ALIKE, True, Groups),
    "worth": (fmab.cdp_mab, {"weight_power": 1.0}, ALIKE, True, Groups),
}


def sample_noise(algorithm, problem, sum_agents, rounds=3):
    """Returns the noise of the aggregate of the last of some rounds, by seed, and the draws."""
    exchange = algorithm.exchange(5)
    trial = algorithm.bind(problem, 10**6, exchange=exchange, sum_agents=sum_agents)
    bound = problem.bind(5)
    wanted = exchange.weights @ np.broadcast_to(problem.means, (5, 2))

    def run(seed):
        key = keys.seed_key(jnp.uint32(0), seed)
        instance = bound.draw(key)
        bare = jax.tree.map(jnp.asarray, trial)
        bare = replace(bare, params=bare.algorithm.resolve_params(bare.params, instance))
        accounts = elimination.open_accounts(bare, instance, jnp.zeros(0, jnp.int64), bare.horizon)
        state = accounts.start(bare.draws.start_memory())
        draws = bare.draws
        arm = jnp.arange(2, dtype=jnp.uint32)
        # Each seed has constants of its own, or all would write into one table.
        zero = seed * jnp.uint32(0)
        fixed = draws.compute_constants(instance)
        fixed = jax.tree.map(lambda x: x + zero.astype(x.dtype), fixed)
        zeros = {name: jnp.zeros((2, *shape)) for name, shape in draws.sums.items()}
        arms = {"alive": jnp.ones(2, bool), "arm": arm, **zeros, **fixed}
        for _ in range(rounds):
            epoch = elimination.plan_epoch(bare, accounts, state, key)
            sums, mean = draws.aggregate(arms, epoch)
            arms = {**arms, **sums}
            state = state._replace(number=epoch.round_index, pulls=epoch.pulls, memory=epoch.memory)
        return (mean - wanted) * epoch.pulls

    with package_settings():
        return np.asarray(jax.jit(jax.vmap(run))(jnp.arange(SEEDS, dtype=jnp.uint32))), trial.draws


def slow_noise(scales, weights, reporting, gaussian, rounds=3, seed=5):
    """Returns the same by NumPy, agent by agent and round by round."""
    rng = np.random.default_rng(seed)
    sample = rng.normal if gaussian else rng.laplace
    noise = sum(sample(0.0, scales, (SEEDS, len(scales))) for _ in range(rounds))
    if reporting == len(scales):
        return noise @ weights
    reports = rng.permuted(np.tile(np.arange(len(scales)), (SEEDS, 1)), axis=1) < reporting
    return (noise * reports).sum(axis=1) / reporting


def compare(drawn, wanted):
    """Returns the p-value of two samples of one law."""
    edges = np.quantile(wanted, np.linspace(0.002, 0.998, 60))
    table = [np.histogram(x, [-np.inf, *edges, np.inf])[0] + 1 for x in (drawn, wanted)]
    return scipy.stats.chi2_contingency(table).pvalue


@pytest.mark.parametrize("name", CASES)
def test_each_agent_has_noise_of_its_scale(name):
    """Would catch a scale of another agent, of the pooled noise, or of a group that mixes scales,
    a noise that is counted twice, and rewards of another weight."""
    owner, options, problem, sum_agents, kind = CASES[name]
    algorithm = owner(epsilon_message=LEAKS, **options)
    exchange = algorithm.exchange(5)
    drawn, draws = sample_noise(algorithm, problem, sum_agents)
    assert isinstance(draws, kind)
    gaussian = name == "gaussian"
    scales = 1.0 / np.array(LEAKS)
    if gaussian:
        scales = np.array([algorithm.mechanism.scale(leak, 1e-6) for leak in LEAKS])
    inputs = exchange.weights, exchange.reporting, gaussian
    wanted = slow_noise(scales, *inputs)
    for arm in (0, 1):
        assert compare(drawn[:, arm], wanted) > ALPHA
    # The pooled scale on all agents, and the scales in another order where weights differ.
    wrong = np.roll(scales, 1) if name == "weights" else np.full(5, scales.max())
    assert compare(drawn[:, 0], slow_noise(wrong, *inputs)) < ALPHA


@pytest.mark.as_users_have_it
@pytest.mark.parametrize(
    "owner, name, options",
    [
        (fmab.cdp_mab, "epsilon_message", {}),
        (fmab.cdp_mab, "epsilon_message", {"participation": 0.5}),
        (fmab.kl_se, "epsilon", {}),
        (fmab.kl_se, "epsilon", {"mechanism": "gaussian"}),
    ],
)
def test_equal_numbers_are_one_number(owner, name, options):
    """Would catch a list whose equal numbers have another identity, label, or other bits."""
    one = owner(**{name: 2.0}, **options)
    for value in ([2.0] * 4, (2, 2, 2, 2), np.full(4, 2.0), "2x4", "2x1,2x3", "2,2,2,2"):
        many = owner(**{name: value}, **options)
        assert many == one and many.describe() == one.describe()
        assert many.settings() == one.settings() and hash(many) == hash(one)
    problem = fmab.Problem.uniform(**SMALL)
    first, second = (
        fmab.simulate(algorithm, problem, horizon=2000, seeds=8)
        for algorithm in (one, owner(**{name: [2.0] * 4}, **options))
    )
    assert all(first[name].identical(second[name]) for name in first)


def test_radius_has_the_deviation_of_the_sum():
    """Would catch a radius by the mean or the largest scale, or that forgets weights or N."""
    scales = 1.0 / np.array(LEAKS)
    state = dict(number=2.0, active=3.0, arms=3.0, agents=5.0, horizon=1e5)
    state |= dict(previous=10.0, pulls=50.0, fresh=40.0)
    for options, total, reporting in (
        ({}, scales, 5),
        # Any two agents may report.
        ({"participation": 0.4}, np.array([2.0, 2.0]), 2),
    ):
        algorithm = fmab.cdp_mab(epsilon_message=LEAKS, **options)
        params = algorithm.values(algorithm.exchange(5), 10**5)
        assert params["epsilon"] == pytest.approx(
            1.0 / (reporting * math.sqrt(np.mean(total**2))), rel=1e-14
        )
        with package_settings():
            numbers = {n: jnp.asarray(x) for n, x in params.items()}
            fields = {n: jnp.float64(x) for n, x in state.items()}
            fields["reporting"] = jnp.float64(reporting)
            radius = float(fmab.cdp_mab.radius(elimination.Epoch(**fields, params=numbers)))
        level = math.log(8 * 3 * 4 * 1e5)
        data = math.sqrt(level / (2 * reporting * 50))
        noise = 2 * math.sqrt(8 * level * np.sum(total**2)) / (reporting * 50)
        assert radius == pytest.approx(data + noise, rel=1e-12)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_messages_weigh_what_their_noise_is_worth(power):
    """Would catch another power, and a radius of the mean of as many equal messages."""
    scales = 1.0 / np.array(LEAKS)
    algorithm = fmab.cdp_mab(epsilon_message=LEAKS, weight_power=power)
    exchange = algorithm.exchange(5)
    weights = scales**-power / np.sum(scales**-power)
    np.testing.assert_allclose(exchange.weights, weights, rtol=1e-14)
    params = algorithm.values(exchange, 10**5)
    with package_settings():
        numbers = {n: jnp.asarray(x) for n, x in params.items()}
        state = dict(number=2.0, active=3.0, arms=3.0, agents=5.0, reporting=5.0, horizon=1e5)
        state |= dict(previous=10.0, pulls=50.0, fresh=40.0)
        fields = {n: jnp.float64(x) for n, x in state.items()}
        radius = float(fmab.cdp_mab.radius(elimination.Epoch(**fields, params=numbers)))
    level = math.log(8 * 3 * 4 * 1e5)
    data = math.sqrt(level * np.sum(weights**2) / (2 * 50))
    noise = 2 * math.sqrt(8 * level * np.sum((weights * scales) ** 2)) / 50
    assert radius == pytest.approx(data + noise, rel=1e-12)


def test_weights_are_for_agents_that_are_alike_and_all_report():
    """Would catch weights that favour the means of some agents, or that some agents lack."""
    for name, value in (("participation", 0.5), ("trim", 0.2)):
        refuses(
            f"weight_power=1.0: must be 0 with {name}",
            fmab.cdp_mab,
            1,
            weight_power=1,
            **{name: value},
        )
    algorithm = fmab.cdp_mab(epsilon_message=LEAKS, weight_power=1)
    refuses("must be one row for cdp", fmab.simulate, algorithm, DIFFER, 100, 2)
    plain, weighted = (fmab.cdp_mab(1.0, weight_power=power) for power in (0, 1))
    assert "weight_power" not in plain.describe() and "trim" not in plain.describe()
    assert weighted.exchange(5).uniform


def law_of(algorithm, agents=5):
    """Returns KL-SE's law of one noise."""
    from fmab_jax.algorithms.families.likelihood import _average_law

    params = algorithm.values(algorithm.exchange(agents), 10**4)
    numbers = {name: jnp.asarray(value) for name, value in params.items()}
    fields = dict.fromkeys(elimination.Epoch._fields, jnp.float64(1.0))
    epoch = elimination.Epoch(**fields | {"params": numbers, "mechanism": algorithm.noise})
    return _average_law(epoch)


def test_evidence_reads_the_average_generating_function():
    """Would catch a function of a mean scale, a wrong end, and the agents that are left out."""
    tilts = np.array([0.05, 0.2, 0.45])
    with package_settings():
        law = law_of(fmab.kl_se(LEAKS))
        wanted = [np.mean(np.log1p(-((tilt / np.array(LEAKS)) ** 2))) for tilt in tilts]
        np.testing.assert_allclose(law.discount(jnp.asarray(tilts)), wanted, rtol=1e-13)
        assert float(law.farthest) == 0.5
        some = law_of(fmab.kl_se(LEAKS, participation=0.6))
        wanted = [np.mean(np.log1p(-((tilt / np.array([0.5, 0.5, 1])) ** 2))) for tilt in tilts]
        np.testing.assert_allclose(some.discount(jnp.asarray(tilts)), wanted, rtol=1e-13)
        scales = [fmab.kl_se(LEAKS, mechanism="gaussian").mechanism.scale(x, 1e-6) for x in LEAKS]
        normal = law_of(fmab.kl_se(LEAKS, mechanism="gaussian"))
        np.testing.assert_allclose(
            normal.discount(jnp.asarray(tilts)), -0.5 * tilts**2 * np.mean(np.square(scales))
        )


@pytest.mark.parametrize("participation", [1.0, 0.5])
def test_kl_se_loses_the_best_arm_as_rarely_as_it_says(participation):
    """Would catch evidence that takes the noise for less than it is."""
    problem = fmab.Problem([0.5, 0.47, 0.45], agents=4)
    algorithm = fmab.kl_se("0.05x1,5x3", failure=0.1, first=5, participation=participation)
    data = fmab.simulate(algorithm, problem, horizon=3000, seeds=2000)
    lost = int(data.best_arm_lost.sum())
    assert scipy.stats.binom.sf(lost - 1, 2000, 0.1) > ALPHA


def rows_of(algorithm, agents=5, colluding=0):
    """Returns the ledger by viewer and observation."""
    ledger = fmab.privacy_ledger(algorithm, agents, colluding=colluding)
    return {(row.label, row.observation): row for row in ledger}


def find_divergence(scales, epsilon):
    """Returns the hockey-stick divergence of a sum of Laplace noises from its shift by 1."""
    step = 1.0 / 256
    x = np.arange(-(2**16), 2**16) * step
    spectrum = 1.0
    frequency = 2 * np.pi * np.fft.rfftfreq(len(x), step)
    for scale in scales:
        spectrum = spectrum / (1.0 + (scale * frequency) ** 2)
    density = np.fft.fftshift(np.fft.irfft(spectrum, len(x))) / step
    shifted = np.roll(density, 256)
    return float(np.sum(np.maximum(density - math.exp(epsilon) * shifted, 0.0)) * step)


def test_ledger_by_agent():
    """Would catch a message of an agent that leaks less, noise that a viewer takes out, and sums
    that are hidden by noises which are not in them."""
    algorithm = fmab.cdp_mab(epsilon_message=(1, 1, 1, 4, 4, 4, 4))
    scales = np.repeat([1.0, 0.25], [3, 4])
    assert algorithm.privacy(algorithm.exchange(7)) == {"epsilon": 4 / 7, "epsilon_message": 4.0}
    rows = rows_of(algorithm, 7, colluding=2)
    message = rows["the server", "single messages"]
    assert (message.epsilon, message.number) == (4.0, 1)
    for key, left, over in (
        (("an outsider who sees actions", "actions"), scales, 3),
        (("the agents", "sums over 7 agents"), scales[1:], 2),
        (("2 agents together", "sums over 7 agents, less their own"), scales[2:], 1),
    ):
        row = rows[key]
        assert (row.epsilon, row.number) == (1.0, over)
        exact = find_divergence(left, row.epsilon_at_delta)
        assert exact <= DELTA * 1.01
        # With one noise of scale 1 fewer, the bound would not hold.
        assert find_divergence(left[1:] if over > 1 else left[1:3], row.epsilon_at_delta) > DELTA
    some = rows_of(fmab.cdp_mab(epsilon_message=(1, 1, 1, 4, 4, 4, 4), participation=0.5), 7)
    round_row = some[
        "the agents", "one round's sum over 4 agents, that round alone and not the run"
    ]
    assert (round_row.epsilon, round_row.number) == (4.0, 3)
    assert some["the agents", "the sums of all rounds"].epsilon == 4.0


def test_many_small_noises_hide_more_than_one_large():
    """Would catch a sum that is hidden by its largest noise alone."""
    rows = rows_of(fmab.kl_se("0.9x1,1x49"), 50)
    row = rows["an outsider who sees actions", "actions"]
    # Without delta the largest noise hides most; up to delta all of them together.
    assert (row.epsilon, row.number) == (pytest.approx(0.9), 50)
    assert row.epsilon_at_delta == laplace_sum_epsilon(50, 1.0)
    assert find_divergence([1.0] * 49 + [1 / 0.9], row.epsilon_at_delta) < DELTA
    assert find_divergence([1.0] * 48, row.epsilon_at_delta) > DELTA
    row = rows_of(fmab.kl_se("0.01x1,1x49"), 50)["an outsider who sees actions", "actions"]
    assert (row.epsilon, row.number) == (pytest.approx(0.01), 1)


def test_actions_are_seen_by_whoever_has_the_largest_noise():
    """Would catch a large noise that is said to hide others' rewards from its own agent, too."""
    for algorithm in (fmab.kl_se("0.01x1,1x4"), fmab.cdp_mab(epsilon_message="0.01x1,1x4")):
        (_, agents, actions) = fmab.privacy_ledger(algorithm, 5)
        assert (actions.viewer, actions.epsilon) == (Viewer.OUTSIDER, pytest.approx(0.01))
        assert (agents.viewer, agents.epsilon) == (Viewer.AGENTS, 1.0)


def test_a_trimmed_mean_leaks_the_largest_epsilon_of_its_agents():
    """Would catch a trimmed mean that the large noises of other agents are said to hide.

    It may be the message of one agent: any of them.
    """
    for epsilons in ("1x4,10x1", "1x1,10x4"):
        trimmed = fmab.cdp_mab(epsilon_message=epsilons, trim=0.4)
        rows = fmab.privacy_ledger(trimmed, 5, colluding=2)
        assert [(row.epsilon, row.number) for row in rows] == [(10.0, 1)] * len(rows)
        assert {row.view for row in rows} == {*ViewKind}
        for view in ViewKind:
            assert fmab.find_leak(trimmed, 5, view) == 10.0


def list_chances(scale, step, reach=60.0):
    """Returns the law of discrete Laplace noise times a weight: by steps of a fine grid."""
    numbers = np.arange(-math.ceil(reach * scale), math.ceil(reach * scale) + 1)
    chances = np.zeros(step * (len(numbers) - 1) + 1)
    chances[::step] = np.exp(-np.abs(numbers) / scale)
    return chances / chances.sum()


def test_whole_numbers_of_another_weight_hide_nothing():
    """Would catch integer noise of light agents that is said to hide heavy ones' rewards.

    Of weights 1/4 and 1/6 the reward moves the sum by 3 steps, and the noise of the three light
    agents by 2: whether the sum is odd tells what the two heavy ones add.
    """
    options = {"components": "2,3:complete", "weights": "components"}
    options |= {"epsilon_message": "4x2,0.1x3", "mechanism": "discrete_laplace"}
    rows = rows_of(fmab.hdp_mab(**options))
    law = np.ones(1)
    for scale, step in [(1 / 4, 3)] * 2 + [(10.0, 2)] * 3:
        law = np.convolve(law, list_chances(scale, step))

    def find_excess(epsilon):
        return np.maximum(law[3:] - math.exp(epsilon) * law[:-3], 0.0).sum()

    # What the noise of all three would leak.
    assert find_excess(0.15) > 0.8
    for key in (("an outsider who sees actions", "actions"), ("the agents", "sums over 5 agents")):
        row = rows[key]
        assert (row.epsilon, row.number) == (pytest.approx(4.0), 1)
        assert find_excess(row.epsilon_at_delta) <= DELTA and "its own noise" in row.why
    # Weights of 2/7 and 5/7, by the deviations of the noise.
    weighted = fmab.cdp_mab(
        epsilon_message="2x1,5x1", mechanism="discrete_laplace", weight_power=1.0
    )
    law = np.convolve(list_chances(1 / 2, 2), list_chances(1 / 5, 5))
    row = fmab.privacy_ledger(weighted, 2)[-1]
    assert np.maximum(law[5:] - math.exp(row.epsilon_at_delta) * law[:-5], 0.0).sum() <= DELTA
    assert row.epsilon == pytest.approx(5.0)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_whoever_weighs_most_keeps_its_own_noise(mechanism):
    """Would catch an agent of one alone in its component, whose noise a light agent takes out.

    Weights are 1/2 and 1/8: beside a reward of the first agent the noise of the others is a
    quarter as large; beside theirs it is as large, and three others' are left.
    """
    options = {"components": "1,4:complete", "weights": "components", "mechanism": mechanism}
    algorithm = fmab.hdp_mab(epsilon_message=2.0, **options)
    own = algorithm.mechanism.scale(2.0, DELTA)
    for presence in (None, "absent:0.1"):
        rows = fmab.privacy_ledger(algorithm, 5, presence=presence)
        row = next(row for row in rows if row.viewer == Viewer.AGENTS)
        assert row.noises[0][1:3] == (pytest.approx(own), 1)
        assert row.epsilon_at_delta <= algorithm.mechanism.epsilon(own, 1, DELTA)


def test_ledger_of_components_and_weights():
    """Would catch a component whose noises are those of another, and noise in other units than
    the reward that it hides."""
    algorithm = fmab.hdp_mab(epsilon_message="4x2,1x3", components="2,3")
    row = rows_of(algorithm)["the server", "sums over 2 agents or more"]
    assert (row.epsilon, row.number) == (4.0, 2)
    unequal = fmab.hdp_mab(
        epsilon_message="4x1,1x4", components="1,4:complete", weights="components"
    )
    # Weights are 1/2 and 1/8, so the noise of the others is a quarter as large to the first.
    row = rows_of(unequal)["an outsider who sees actions", "actions"]
    assert (row.epsilon, row.number) == (4.0, 5)
    waits = rows_of(fmab.ddp_mab(epsilon_message="4x2,1x3", graph="ring"), colluding=2)
    assert waits["2 agents together", "actions"].epsilon == math.inf


def test_audit_changes_the_reward_of_who_leaks_most():
    """Would catch an audit of the agent with the most noise, or of a viewer with little of it."""
    algorithm = fmab.kl_se("0.2x2,2x1")
    found = audit(algorithm, agents=3, runs=100_000)
    bounds = {finding.view: finding.lower for finding in found.findings}
    assert not any(finding.is_contradicted for finding in found.findings)
    assert bounds["messages"] > 1.2
    # The largest noise but one hides a sum, and the audit sees no more than that.
    sums = [f for f in found.findings if f.view == "sums"]
    assert sums and all(0.05 < f.lower <= f.claim == pytest.approx(0.2) for f in sums)


def test_texts_lists_and_files(tmp_path):
    """Would catch a row or a run that is lost, and a header that is taken for data."""
    wanted = (1.0, 1.0, 0.5)
    kind = PerAgent(low=0.0)
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("1\n1.0\n\n0.5\n")
    two.write_text("name,budget\nx,1\ny,1\nz,0.5\n")
    files = str(one), f"{two}:budget"
    for value in ([1, 1, 0.5], np.array(wanted), "1x2,0.5", "1, 1, 5e-1", *files):
        assert kind.check("epsilon", value, "") == wanted
    assert kind.plain(wanted) == kind.label(wanted) == "1x2,0.5x1"
    assert kind.check("epsilon", kind.plain((1 / 3, 2e-9, 7.0)), "") == (1 / 3, 2e-9, 7.0)
    many = tuple(0.001 * n for n in range(1, 60))
    assert kind.label(many).startswith("0.001 to 0.059 (") and len(kind.label(many)) < 30
    assert kind.label(many) != kind.label(many[::-1])
    refuses(r"e\[1\]=-1: must be a number in \[0", kind.check, "e", [1, -1], "")
    refuses("if agents differ", PerAgent(none_label="none").check, "e", [1, None], "")
    refuses("VALUExAGENTS", kind.check, "e", "1x2,ax3", "")
    refuses("VALUExAGENTS", kind.check, "e", f"{10**400}x3", "")
    refuses("VALUExAGENTS", kind.check, "e", "1x0,2", "")
    refuses("one for each agent", kind.check, "e", [], "")
    refuses("2,000 runs", kind.check, "e", list(range(1, 3000)), "")
    refuses("a number in", kind.check, "e", "all", "")
    refuses("one of 2|name of one column.*name, budget", kind.check, "e", f"{two}:x", "")
    refuses("file of one column", kind.check, "e", str(two), "")
    refuses("plain decimal number; mend 'x'", kind.check, "e", f"{two}:name", "")


def test_a_column_of_agents_orders_the_rows(tmp_path):
    """Would catch epsilons that go to other agents, and ids that are ignored."""
    kind, file = PerAgent(low=0.0), tmp_path / "e.csv"
    from_zero, plain = "agent,e\n2,5\n0,1\n1,3\n", "e\n1\n3\n5\n"
    for text in (from_zero, plain, "e,other,Agent\n5,x,3\n1,y,1\n3,z,2\n"):
        file.write_text(text)
        name = f"{file}:e" if "other" in text else str(file)
        assert kind.check("epsilon", name, "") == (1.0, 3.0, 5.0)
    for ids in ("0 0 1", "0 1 3", "2 3 4", "x y z", "-1 0 1", "0.5 1 2"):
        rows = "".join(f"{i},{e}\n" for i, e in zip(ids.split(), "135", strict=True))
        file.write_text(f"agent,e\n{rows}")
        refuses("must be a file whose column agent has 0 to ", kind.check, "e", str(file), "")


def test_what_has_one_noise_takes_one_number():
    """Would catch numbers of agents where nobody reads them, and a wrong count of them."""
    problem = fmab.Problem.uniform(**SMALL)
    run = dict(problem=problem, horizon=100, seeds=1)
    line = "one number where agents are alone"
    refuses(line, fmab.simulate, fmab.single_mab(epsilon_message="1x2,2x2"), **run)
    for name in ("split", "secure"):
        refuses(f"^{name}=True: must be False where agents", fmab.kl_se, "1x2,2x2", **{name: True})
    line = "^epsilon='1x2,2x3': must be one number, or one for each of 4 agents, not 5"
    refuses(line, fmab.simulate, fmab.kl_se("1x2,2x3"), **run)
    refuses(line, fmab.privacy_ledger, fmab.kl_se("1x2,2x3"), 4)
    refuses("must be a number", fmab.dp_se, [1.0, 2.0])


def test_sweeps_stores_and_study_files(tmp_path):
    """Would catch a text that is swept letter by letter, an item that is lost from its axis, a
    store that takes two lists for one, and a study that does not come back from its results."""
    given = dict(**SMALL, horizon=500, seeds=3)
    data = fmab.sweep(
        "kl_se", epsilon=["0.5x2,4x2", 1.0, (0.5, 4, 4, 4)], store=tmp_path / "store", **given
    )
    assert data.epsilon.values.tolist() == ["0.5x2,4x2", 1, "0.5x1,4x3"]
    single = fmab.simulate(
        fmab.kl_se([0.5, 0.5, 4, 4]), fmab.Problem.uniform(**SMALL), horizon=500, seeds=3
    )
    np.testing.assert_array_equal(
        data.regret.sel(epsilon="0.5x2,4x2").squeeze().values, single.regret.values
    )
    assert json.loads(data.attrs["study"])["epsilon"] == ["0.5x2,4x2", 1.0, "0.5x1,4x3"]
    alone = fmab.sweep("cdp", epsilon_message="0.5x2,4x2", **given)
    assert "epsilon_message" not in alone.dims and alone.attrs["epsilon_message"] == 4.0
    assert "0.5x2,4x2" in alone.attrs["settings"]
    assert fmab.kl_se("1x2,2x2").describe() != fmab.kl_se("2x2,1x2").describe()
    fmab.save(data, tmp_path / "data.nc")
    assert fmab.load(tmp_path / "data.nc").epsilon.values.tolist() == data.epsilon.values.tolist()


def test_command_line(tmp_path, capsys, monkeypatch):
    """Would catch an option that reads a number only, and a study file of another list."""
    monkeypatch.chdir(tmp_path)
    words = "--agents 4 --arms 3 --horizon 300 --seeds 2"
    assert main(f"run cdp --epsilon-message 1x2,2x2 {words} --out a.nc".split()) == 0
    assert "1x2,2x2" in capsys.readouterr().out
    assert main(f"sweep kl_se --epsilon 1x2,2x2 1 {words} --save-study s.toml --out s".split()) == 0
    assert "1x2,2x2" in (tmp_path / "s.toml").read_text()
    assert main("sweep s.toml --out t".split()) == 0
    assert main(f"run cdp --epsilon-message 1x2,2x3 {words}".split()) != 0
    assert "--epsilon-message 1x2,2x3: must be one number" in capsys.readouterr().err
    assert main("bounds cdp --epsilon-message 1x2,2x2 --agents 4 --arms 3".split()) != 0


@dataclass(frozen=True)
class Budgets(NoisyMessages):
    """A plug-in whose parameter of noise is by agent."""

    name = "budgets"
    noisy = True
    epsilon: object = parameter(PerAgent(low=0.0, open_low=True), "Budget of each agent.")

    def exchange(self, agents):
        """Returns the exchange of a server."""
        return fmab.cdp_mab(1.0).exchange(agents)

    def values(self, exchange, horizon):
        """Returns the pooled epsilon."""
        return {"epsilon": self.pool_epsilon(exchange)}

    @staticmethod
    def noise_scale(epoch):
        """Returns 1 / epsilon."""
        return 1.0 / epoch.params["epsilon"]

    @staticmethod
    def pulls_per_arm(epoch):
        """Returns 100 more."""
        return epoch.previous + 100.0

    @staticmethod
    def radius(epoch):
        """Returns a radius."""
        return jnp.sqrt(epoch.number / epoch.pulls)


def test_plug_in_with_budgets():
    """Would catch a parameter of a plug-in that is checked or drawn as one number."""
    assert Budgets(epsilon=LEAKS).epsilon == LEAKS
    drawn, _ = sample_noise(Budgets(epsilon=LEAKS), ALIKE, True)
    wanted = slow_noise(1.0 / np.array(LEAKS), np.full(5, 0.2), 5, False)
    assert compare(drawn[:, 0], wanted) > ALPHA


def test_groups_of_agents_draw_numbers_of_their_own():
    """Would catch a group that draws the numbers of another one: rewards that go together."""
    arms, agents = 1000, 6
    means = 0.5 + 0.01 * np.arange(agents)[:, None] + np.zeros(arms)
    problem = fmab.Problem(means, rewards="gaussian:1")
    algorithm = fmab.hdp_mab(None, components="2,4:complete", weights="components")
    drawer = choose(algorithm, problem, algorithm.exchange(agents), agents, True, True)
    assert isinstance(drawer, Groups) and len(drawer.sizes) == 2
    with package_settings():
        key = keys.seed_key(jnp.uint32(0), jnp.uint32(5))
        instance = problem.bind().draw(key, jnp.int64(1000))
        rewards, noise = keys.stream_keys(key, jnp.int32(1), keys.REWARD, keys.NOISE)
        one, pulls = jnp.float64(1.0), jnp.float64(400.0)
        epoch = BLANK._replace(number=one, pulls=pulls, drawn=pulls, scale=one)
        epoch = epoch._replace(reward_key=rewards, noise_key=noise)
        places = {"arm": jnp.arange(arms, dtype=jnp.uint32), "alive": jnp.ones(arms, bool)}

        @jax.jit
        def sample(drawer, instance, epoch):
            return drawer.sample(places | drawer.compute_constants(instance), epoch)

        sums = sample(drawer, instance, epoch)
    first, second = np.asarray(sums["rewards"]).T
    assert scipy.stats.pearsonr(first, second).pvalue > ALPHA
    assert first.std() > 1.0 and second.std() > 1.0


def test_agents_that_share_an_arm_are_counted_by_hand():
    """Would catch an agent too many, or one too few, whose noise is in an arm's sum."""
    with package_settings():
        for agents, active, pulls in ((3, 2, 3), (4, 3, 8), (5, 2, 7), (2, 5, 4), (7, 3, 1)):
            slots = -(-active * pulls // agents)
            parts = np.arange(active * pulls).reshape(active, pulls) // slots
            arms = {"alive": jnp.ones(active, bool), "rank": jnp.arange(active, dtype=jnp.int32)}
            epoch = BLANK._replace(slots=jnp.int64(slots), drawn=jnp.float64(pulls))
            found = SplitArms.count_parts(None, arms, epoch)
            assert found.tolist() == [len({*row}) for row in parts.tolist()]
