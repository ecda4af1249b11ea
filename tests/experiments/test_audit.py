"""The audit: close to a claim that is right, never above it, and above one that is wrong."""

import csv
import math
import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import quick
from altered import altered
from scipy import stats

import fmab_jax as fmab
from experiments.audit import (
    BROKEN,
    SOUND,
    audit,
    audited,
    events,
    exposures,
    findings,
    rows,
    worst,
)
from fmab_jax.algorithms.base import Disclosure, Noise, Viewer, ViewKind
from fmab_jax.parts.exchanges import server
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.sampling.scope import package_settings

QUICK = 200_000
TABLE = Path(__file__).parents[2] / "figures" / "audit_mechanisms.csv"
PUBLISHED = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
# Rewards that are heard of in their own round; else two noises lie on them.
TIGHT = ("one upload", "3 uploads", "uploads of rounds 1 and 3, reward of round 1")


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    """Draws no more runs than a test asks for."""
    monkeypatch.setattr(events, "BATCH", 2**13)


def test_a_right_claim_is_nearly_reached():
    """Would catch an audit that is blind, or noise too large or too small, in any stream."""
    algorithm = fmab.cdp_mab(0.04, participation=0.5)
    found = audit(algorithm, 100, view="messages", runs=QUICK)
    assert [each.claim for each in found.findings] == [2.0] * 5
    assert not found.is_contradicted
    for finding in found.findings:
        assert 0.0 < finding.lower <= finding.claim, finding
        assert finding.share >= 0.95 or not finding.stream.startswith(TIGHT), finding
    skipped = found.findings[-1]
    assert skipped.stream == "uploads of rounds 1 and 3, reward of round 2"
    # Two noises protect it, yet it is far from hidden.
    assert 0.6 < skipped.share < 0.9


@pytest.mark.parametrize(
    ("what", "runs", "stream"),
    [
        ("noise scaled by S_r, not n_r", QUICK, "3 uploads, reward of round 3"),
        # Who leaves follows from the data: one reward of 6 agents' decides.
        ("no noise, who leaves", 2000, "arms pulled in 2 rounds, reward of round 1"),
        pytest.param(
            *("own message not taken out", 20_000, "one sum over 2 agents less its own message"),
            marks=pytest.mark.slow,
        ),
        ("δ a tenth of what it is", 20_000, "one sum over 6 agents less its own message"),
    ],
)
def test_a_broken_mechanism_is_caught(what, runs, stream):
    """Would catch an audit of the first round alone or of messages alone."""
    found = audited(what, runs)
    one = worst(found.findings)
    assert one.stream == stream or found.delta > 0.0 and one.stream.startswith("3 sums")
    assert found.is_contradicted


def test_a_claim_is_that_of_the_ledger():
    """Would catch a claim of a mechanism whose ledger states none, or two sources of the claim."""

    half = staticmethod(lambda epoch: 0.5 * fmab.cdp_mab.noise_scale(epoch))
    unstated = altered(fmab.cdp_mab, noise_scale=half)
    found = audit(unstated(0.2), 5, view="messages", runs=1000)
    assert all(math.isinf(each.claim) for each in found.findings) and not found.is_contradicted
    # No finding of so many runs is larger.
    rule = events.Rule(1000, findings.LEVEL / (2 * len(found.findings)), 0.0)
    grid = np.arange(1001)
    every = events.bound_epsilon(grid[:, None], np.broadcast_to(grid, (1001, 1001)), rule)
    assert found.most == pytest.approx(every.max())


# What a message leaks, and what the noise is: stated in `privacy` alone.
Stating = altered(
    fmab.Elimination,
    noisy=True,
    exchange=lambda self, agents: server(agents),
    privacy=lambda self, exchange: {"epsilon": 0.5, "epsilon_message": 2.0},
    noise_scale=staticmethod(lambda epoch: 2.0 * jnp.ones_like(epoch.pulls)),
    pulls_per_arm=staticmethod(lambda epoch: epoch.previous + 5.0),
    radius=staticmethod(lambda epoch: 1.0 / jnp.sqrt(epoch.pulls)),
)
# Has a tenth of it, and says nothing of it.
Changed = altered(Stating, noise_scale=staticmethod(lambda epoch: 0.2 * jnp.ones_like(epoch.pulls)))


def test_what_privacy_states_is_the_claim_where_no_ledger_is():
    """Would catch "none claimed" of a plug-in that states an epsilon."""
    found = audit(Stating(), 4, runs=20_000)
    claims = {(each.view, each.claim) for each in found.findings}
    assert claims == {("messages", 2.0), ("sums", 2.0), ("actions", math.inf)}
    assert {each.verdict for each in found.findings} == {"within the claim", "none claimed"}
    changed = audit(Changed(), 4, runs=20_000, view="messages")
    assert {each.claim for each in changed.findings} == {math.inf}


@pytest.mark.slow
@pytest.mark.parametrize("what", BROKEN)
def test_all_broken_mechanisms_are_caught(what):
    """Would catch an audit that one of the ways to break a mechanism slips through."""
    found = audited(what, 2 * QUICK)
    assert found.is_contradicted
    # These let out one thing in every run, and another with the reward.
    certain = {"no noise", "no noise, who leaves", "one noise for all rounds"}
    certain |= {"no noise on episodes"}
    assert (worst(found.findings).lower == found.most) == (what in certain)


# Bounds of a few runs are lower than those of the published table: by how much at most, by view.
NEARLY = {"messages": 0.9, "sums": 0.8, "actions": 0.5}


@pytest.mark.parametrize("what", quick.only(SOUND, "KL-SE, secure sum"))
def test_every_claim_is_kept(what):
    """Would catch the wrong scale, or the wrong claim, of any algorithm of the package."""
    found = audited(what, 2 * QUICK)
    assert not found.is_contradicted
    for finding in found.findings:
        assert finding.lower <= finding.claim
        if finding.stream.startswith(TIGHT) and not finding.is_out_of_reach:
            assert finding.share > 0.85, finding
    published = [row for row in PUBLISHED if row["mechanism"] == what]
    measured = rows({what: found})
    assert [(row["who"], row["view"]) for row in measured] == [
        (row["who"], row["view"]) for row in published
    ]
    for row, known in zip(measured, published, strict=True):
        least = NEARLY[row["view"]] * float(known["lower bound"])
        assert float(row["lower bound"]) >= least, row
    out_of_reach = any(finding.is_out_of_reach for finding in found.findings)
    assert out_of_reach == (what == "CDP-MAB, claim 50")


def test_no_noise_and_bits():
    """Would catch a claim where there is none, and a bit that is kept too often or too rarely."""
    bare = audit(fmab.ldp_ucb(None), 2, view="messages", runs=1000)
    assert all(each.lower == bare.most and math.isinf(each.claim) for each in bare.findings)
    assert not bare.is_contradicted
    bits = audit(fmab.ldp_ucb(1.0, bits=True), 2, view="messages", runs=QUICK)
    for each in bits.findings:
        assert 0.95 < each.share <= 1.0
        kept = max(each.happened)
        assert stats.binomtest(kept, QUICK, 1 / (1 + math.exp(-1))).pvalue > 1e-6


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_limits_are_clopper_and_pearsons(delta):
    """Would catch one-sided limits of the wrong tail, or an infinite bound from few runs."""
    for more, less in ((90, 10), (100, 0), (1, 99), (0, 100), (40, 30)):
        high = stats.binomtest(less, 100, alternative="less").proportion_ci(0.999).high
        low = stats.binomtest(more, 100, alternative="greater").proportion_ci(0.999).low
        with np.errstate(divide="ignore"):
            wanted = np.log(max(low - delta, 0.0)) - np.log(high)
        found = events.bound_epsilon(more, less, events.Rule(100, 1e-3, delta))
        assert found == pytest.approx(wanted, rel=1e-9)


def test_a_claim_at_delta_is_that_of_the_ledger():
    """Would catch a pure epsilon that is held against a bound at delta, or the reverse."""
    found = audit(fmab.cdp_mab(1 / 6), 6, view="sums", delta=0.01, runs=1000)
    row = fmab.privacy_ledger(fmab.cdp_mab(1 / 6), 6, delta=0.01)[1]
    assert [each.claim for each in found.findings] == [row.epsilon_at_delta] * 2
    assert {each.viewer for each in found.findings} == {row.viewer} == {"the agents"}
    pure = audit(fmab.cdp_mab(1 / 6), 6, view="sums", runs=1000)
    assert [each.claim for each in pure.findings] == [pytest.approx(1.0)] * 2
    # One noise, by hand.
    (one, *_) = audit(fmab.cdp_mab(1 / 6), 6, view="messages", delta=0.01, runs=1000).findings
    assert one.claim == pytest.approx(1.0 + 2.0 * math.log1p(-0.01))


@pytest.mark.parametrize(
    ("algorithm", "view"),
    [
        (fmab.ldp_ucb(20.0, bits=True), "messages"),
        (fmab.ldp_ucb(20.0, bits=True), "actions"),
        (fmab.single_mab(50.0), "actions"),
        (fmab.dist_dp_se(50.0), "actions"),
    ],
    ids=lambda each: getattr(each, "name", each),
)
def test_noise_that_no_run_shows_is_not_taken_for_none(algorithm, view):
    """Would catch "contradicted" of a sound mechanism whose noise no run shows."""
    found = audit(algorithm, 2, view=view, runs=1000)
    assert not found.is_contradicted
    assert any(each.happened in ((0, 1000), (1000, 0)) for each in found.findings)
    for each in found.findings:
        assert each.lower <= found.most < each.claim and each.is_out_of_reach
        assert each.verdict == f"out of reach: so many runs show {found.most:.3g} at most"
        assert each.share < 1.0


@pytest.mark.parametrize("participation", [1.0, 0.5])
def test_no_noise_is_contradicted_as_far_as_runs_show(participation):
    """Would catch a smaller bound where the noise has scale 0."""
    quiet = staticmethod(lambda epoch: 0.0 * epoch.fresh)
    silent = altered(fmab.cdp_mab, noise_scale=quiet, ledger=fmab.cdp_mab.ledger)
    found = audit(silent(0.25, participation=participation), 4, runs=1000)
    for each in found.findings:
        bare = (
            each.view == "messages"
            or participation == 1.0
            or each.observation.startswith("one round")
        )
        assert (each.lower == found.most) == bare
        if bare:
            assert each.verdict == "contradicted"
    assert {each.view for each in found.findings} == set(events.VIEWS)


def sources(algorithm, agents, view):
    """Returns what shows an algorithm."""
    with package_settings():
        return exposures.list_exposures(algorithm, algorithm.exchange(agents), 0, (view,))[0]


def test_a_claim_for_waits_without_noise_is_contradicted():
    """Would catch a false claim for actions that is only told as not shown."""
    row = Disclosure("anybody who sees actions", "actions", 1.0, "it is said")
    own = altered(fmab.ddp_mab, ledger=lambda *_: (row,))(0.25, "ring")
    found = audit(own, 4, view="actions", runs=2000)
    assert found.is_contradicted and found.findings[0].happened in ((0, 2000), (2000, 0))


def test_pulls_of_a_whole_run_are_those_of_the_policy():
    """Would catch a changed reward in another slot, of another arm, or of every pull of it."""
    (source,) = sources(fmab.ucb1(alpha=0.5), 3, "actions")
    assert len(source.data) == 6
    for place, data in enumerate(source.data):
        for changed in (0, 1):
            pulls, sums, played = np.zeros(2), np.zeros(2), []
            for slot in range(1, 33):
                with np.errstate(all="ignore"):
                    index = sums / pulls + np.sqrt(0.5 * np.log(slot) / pulls)
                arm = int(np.argmax(np.where(pulls > 0, index, np.inf)))
                reward = data.base[arm]
                if changed and slot == 2:
                    reward = data.value
                    assert arm == 1 and abs(data.value - data.base[1]) == 1.0
                pulls[arm], sums[arm] = pulls[arm] + 1, sums[arm] + reward
                played.append(arm)
            with package_settings():
                drawn = source.draw(2 * place + changed, 0)[:5]
            assert drawn.tolist() == [played] * 5


def leading(state, episode, params):
    """Returns the arm of the larger mean, and one slot."""
    return jnp.argmax(state.sums / state.pulls), jnp.float64(1.0)


@pytest.mark.parametrize("shared", [False, True])
def test_pulls_of_episodes_are_those_of_the_policy(shared):
    """Would catch a reward that is changed in no run or for every agent that plays."""
    whole = altered(fmab.Episodes, shared=True, choose=staticmethod(leading))
    algorithm = whole() if shared else fmab.adap_ucb(None, alpha=0.3)
    (source,) = sources(algorithm, 3, "actions")
    agents, seen = (3 if shared else 1), set()
    for place, data in enumerate(source.data):
        for changed in (0, 1):
            base = np.array(data.base)
            sums = agents * base
            sums[1] += changed * (1.0 - 2.0 * base[1])
            pulls, length, played = np.full(2, agents * 1.0), np.ones(2), [0, 1]
            means = sums / agents
            while len(played) < 32:
                width = np.sqrt(0.3 * np.log(2 * (len(played) + 1)) / (2 * length))
                arm = int(np.argmax(means if shared else means + width))
                slots = 1 if shared else int(pulls[arm])
                played += [arm] * slots
                pulls[arm] += agents * slots
                sums[arm] = agents * slots * base[arm] + (sums[arm] if shared else 0.0)
                length[arm] = slots
                means[arm] = sums[arm] / (pulls[arm] if shared else slots)
            with package_settings():
                drawn = source.draw(2 * place + changed, 0)[:5]
            assert drawn.tolist() == [[agents * each for each in played[:32]]] * 5
            seen.add(tuple(played[:32]))
    assert len(seen) > (1 if shared else 4)


@pytest.mark.parametrize(
    ("algorithm", "rest"),
    [
        (fmab.cdp_mab(None), 2.0),
        # Every agent has rows of its own, and the one whose reward differs is heard, or not.
        (fmab.cdp_mab(None, participation=0.5), 2.0),
        (fmab.single_mab(None), 0.5),
        pytest.param(
            fmab.hdp_mab(None, "1,3:complete", weights="components"), 2.0, marks=pytest.mark.slow
        ),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_one_reward_decides_who_leaves(algorithm, rest):
    """Would catch data that are far from a decision, or a reward that is added for each agent."""
    (source,) = [each for each in sources(algorithm, 4, "actions")]
    with package_settings():
        for place, data in enumerate(source.data):
            without, changed = (source.draw(2 * place + side, 0) for side in (0, 1))
            at = source.names.index(f"after round {data.when}")
            # Both arms are explored until then.
            assert (without[:, :at] == rest).all() and (changed[:, :at] == rest).all()
            assert (without[:, at:] == 0.0).all()
            stays = changed[:, at] == rest
            share = 0.5 if "0.5" in str(algorithm.settings()) else 1.0
            assert stats.binomtest(int(stays.sum()), len(stays), share).pvalue > 1e-6


def test_sums_are_over_others():
    """Would catch an agent's own message left in."""
    (source,) = sources(fmab.cdp_mab(0.25), 4, "sums")
    assert np.asarray(source.weights).tolist() == [1.0, 0.0, 1.0, 1.0]
    stream = source.streams()[-1]
    with package_settings():
        batch = source.draw(-1, 0)
    run, round_, arm = 7, 2, 1
    sums = batch.means[:, 4 * run : 4 * run + 4, arm] * batch.length[:, None]
    due = sum(sums[round_, agent] - sums[round_ - 1, agent] for agent in (0, 2, 3))
    values = source.show(stream, batch).values
    assert values[run, 2 * round_ + arm] == pytest.approx(due, rel=1e-9)
    # Of a round of two of four agents.
    (source,) = sources(fmab.cdp_mab(0.25, participation=0.5), 4, "sums")
    assert source.agents == 2 and np.asarray(source.weights).tolist() == [1.0, 0.0]
    weighted = fmab.hdp_mab(0.25, "1,3:complete", weights="components")
    found = {each.row.viewer: each for each in sources(weighted, 4, "sums")}
    # The agent that is alone weighs three times as much as the others, one of whom looks.
    assert np.asarray(found["the agents"].weights) == pytest.approx([1.0, 0.0, 1 / 3, 1 / 3])


def test_a_sequence_tells_more_than_its_parts():
    """Would catch a table of ratios with swapped sides, or one that is read at another sequence.

    Two bits are fair coins; with the reward they are equal more often.
    """
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, (2, 40_000))
    second = np.where(rng.random((2, 40_000)) < [[0.5], [0.8]], first, 1 - first)
    sides = [np.stack(each, axis=1).astype(float) for each in zip(first, second, strict=True)]
    pilot = [events.Numbers(each, np.ones(2), ["a", "b"], 0, counts=True) for each in sides]
    event = events.choose_event(pilot, events.Rule(40_000, 1e-3, 0.0))
    assert re.match("log likelihood ratio of pulls, a to b: (at least|below) ", event.words)
    assert event.bound == pytest.approx(math.log(0.5 / 0.2), abs=0.1)
    score = event.statistic.evaluate(np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]]))
    assert score[:2] == pytest.approx([math.log(0.8 / 0.5)] * 2, abs=0.1)
    assert score[2:] == pytest.approx([math.log(0.2 / 0.5), 0.0], abs=0.1)


class Coins:
    """Something to see: a number, larger by the reward; notes which batches are drawn."""

    view, size, compete, is_stronger = "messages", 100, False, False
    row = Disclosure(Viewer.SERVER, ViewKind.MESSAGES, 1.0, "", (Noise(LAPLACE, 1.0),))

    def __init__(self):
        self.batches = []

    def streams(self):
        return [events.Stream("first", -1, 0, (0,)), events.Stream("last", -1, 2, (0, 1, 2))]

    def draw(self, data, batch):
        self.batches.append((data, batch))
        rng = np.random.default_rng([data + 1, batch])
        return rng.laplace(size=(self.size, 3)) + (np.arange(3) == data)

    def show(self, stream, batch):
        rounds = list(stream.rounds)
        names = [f"x{t}" for t in rounds]
        return events.Numbers(batch[:, rounds], np.ones(len(rounds)), names, len(rounds) - 1)


@pytest.mark.parametrize(
    ("runs", "pilots", "counted"), [(900, 9, 9), (1000, 10, 10), (1600, 10, 16), (1550, 10, 16)]
)
def test_an_event_is_counted_on_other_runs(monkeypatch, runs, pilots, counted):
    """Would catch runs that an event is chosen on and counted on, which claims too much."""
    monkeypatch.setattr(findings, "_PILOT", 1000)
    source = Coins()
    found = findings._measure_findings(source, events.Rule(runs, 1e-3, 0.0))
    first, second = [*range(pilots)], [*range(10, 10 + counted)]
    assert source.batches == [(side, batch) for batch in first + second for side in (-1, 0, 2)]
    data = {side: [source.draw(side, batch) for batch in second] for side in (-1, 0, 2)}
    for each, changed in zip(found, (0, 2), strict=True):
        told = rf"(distance of )?x{changed}( from [01])?: (at least|below) \S+"
        match = re.fullmatch(told, each.event)
        assert match
        sides = [np.concatenate(data[side])[:runs, changed] for side in (-1, changed)]
        if match[1]:
            sides = [np.abs(side - float(match[2][-1])) for side in sides]
        above = [int((side >= each.threshold).sum()) for side in sides]
        side = above if match[3] == "at least" else [runs - number for number in above]
        assert each.happened == tuple(side)
        tail = [stats.beta.ppf(1e-3, max(side), runs - max(side) + 1)]
        tail += [stats.beta.ppf(1 - 1e-3, min(side) + 1, runs - min(side))]
        assert each.lower == pytest.approx(max(0.0, math.log(tail[0] / tail[1])), rel=1e-9)
        for drawn, binned in zip(sides, each.histogram[1:], strict=True):
            due = np.histogram(drawn, each.histogram.edges)[0]
            assert binned.tolist() == due.tolist()
