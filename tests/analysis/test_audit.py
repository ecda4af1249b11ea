"""The audit: close to a claim that is right, never above it, and above one that is wrong."""

import math
import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import quick
from altered import altered
from refusals import refuses
from scipy import stats
from scipy.integrate import quad

import fmab_jax as fmab
from experiments.audit import BROKEN, SOUND, audited, worst
from fmab_jax.algorithms.base import Seen
from fmab_jax.analysis import audit as module
from fmab_jax.analysis import exposures, pulls, streams
from fmab_jax.analysis.privacy import noise_tail
from fmab_jax.cli.main import main
from fmab_jax.core.exchanges import server
from fmab_jax.core.scope import own_settings

QUICK = 200_000
# Rewards that are heard of in their own round; else two noises lie on them.
TIGHT = ("one upload", "3 uploads", "uploads of rounds 1 and 3, reward of round 1")


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    """Draws no more runs than a test asks for."""
    monkeypatch.setattr(streams, "BATCH", 2**13)


def checked(found, least):
    """Holds every tight finding to a share of the claim, and all to the claim."""
    assert not found.contradicted
    for each in found.findings:
        assert 0.0 < each.lower <= each.claim, each
        if each.stream.startswith(TIGHT):
            assert each.share >= least, each


def test_a_right_claim_is_nearly_reached():
    """Would catch an audit that is blind, or noise too large or too small, in any stream."""
    algorithm = fmab.cdp_mab(0.04, participation=0.5)
    found = fmab.audit(algorithm, 100, view="messages", runs=QUICK)
    assert [each.claim for each in found.findings] == [2.0] * 5
    checked(found, 0.95)
    skipped = found.findings[-1]
    assert skipped.stream == "uploads of rounds 1 and 3, reward of round 2"
    # Two noises protect it, yet it is far from hidden.
    assert 0.6 < skipped.share < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("claim", [0.5, 1.0, 2.0, 4.0])
def test_right_claims_are_reached_to_three_percent(claim):
    """Would catch noise that is 3 % off, for any claim, in single uploads and in joint ones."""
    checked(fmab.audit(fmab.cdp_mab(claim / 50), 50, view="messages"), 0.97)


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
        pytest.param("un-noised waiting", 2000, "arm pulled while waiting", marks=pytest.mark.slow),
    ],
)
def test_a_broken_mechanism_is_caught(what, runs, stream):
    """Would catch an audit of the first round alone, of messages alone, of waits that are not
    looked at, of an agent that forgets what it knows, and of a delta that is left out."""
    found = audited(what, runs)
    one = worst(found.findings)
    assert one.stream == stream or found.delta > 0.0 and one.stream.startswith("3 sums")
    assert one.infinite == (what in ("un-noised waiting", "no noise, who leaves"))
    if what == "un-noised waiting":
        # Nothing is claimed for the wait.
        assert one.happened == (0, found.runs)
        assert not found.contradicted and math.isinf(one.claim)
    else:
        assert found.contradicted


def test_private_waiting_has_the_claim_of_messages():
    """Would catch waits that are audited for nothing, and a bound that no bit can show.

    The arm of the larger sum is pulled. With the reward that is the other one where a difference of
    two Laplace variables exceeds the claim; without it either is as likely.
    """
    source = sources(fmab.ddp_mab(1 / 6, "ring", private_waiting=True), 6, "actions")[0]
    assert isinstance(source, pulls.Waits)
    with own_settings():
        how = module._How(QUICK, 1e-7, 0.0)
        (one,) = module._findings(source, how)
    assert (one.stream, one.claim) == ("arm pulled while waiting", pytest.approx(1.0))
    tail = 0.75 * math.exp(-1.0)
    assert one.exact == pytest.approx(math.log(0.5 / tail), abs=0.05)
    assert one.lower == pytest.approx(one.exact, abs=0.02)
    played = sorted(one.happened)
    for happened, chance in zip(played, (tail, 0.5), strict=True):
        assert stats.binomtest(happened, QUICK, chance).pvalue > 1e-6


def test_a_claim_is_that_of_the_ledger():
    """Would catch a claim of a mechanism whose ledger states none, or two sources of the claim."""

    half = staticmethod(lambda epoch: 0.5 * fmab.cdp_mab.noise_scale(epoch))
    unstated = altered(fmab.cdp_mab, noise_scale=half)
    found = fmab.audit(unstated(0.2), 5, view="messages", runs=1000)
    assert all(math.isinf(each.claim) for each in found.findings) and not found.contradicted
    # No finding of so many runs is larger.
    how = module._How(1000, module.LEVEL / (2 * len(found.findings)), 0.0)
    grid = np.arange(1001)
    every = module._ratio(grid[:, None], np.broadcast_to(grid, (1001, 1001)), how)
    assert found.most == pytest.approx(every.max())
    assert [each.most for each in found.findings] == [found.most] * 5


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
    """Would catch "none claimed" of a plug-in that states an epsilon, or a claim that it has not
    made: of agents' actions, or of noise that it has changed.

    Mutants: `_claims` that returns `rows`; without `stating > changed`; and
    without `own is any(about)`.
    """
    found = fmab.audit(Stating(), 4, runs=20_000)
    claims = {(each.view, each.claim) for each in found.findings}
    assert claims == {("messages", 2.0), ("sums", 2.0), ("actions", math.inf)}
    assert {each.verdict for each in found.findings} == {"within the claim", "none claimed"}
    changed = fmab.audit(Changed(), 4, runs=20_000, view="messages")
    assert {each.claim for each in changed.findings} == {math.inf}


@pytest.mark.slow
@pytest.mark.parametrize("what", BROKEN)
def test_all_broken_mechanisms_are_caught(what):
    """Would catch an audit that one of the ways to break a mechanism slips through."""
    found = audited(what, 2 * QUICK)
    assert found.contradicted or what == "un-noised waiting"
    bare = {"un-noised waiting", "no noise", "no noise, who leaves"}
    assert any(each.infinite for each in found.findings) == (what in bare)
    # From runs alone that follows of none: noise may be rare.
    certain = bare | {"one noise for all rounds", "no noise on episodes"}
    assert any(each.constant for each in found.findings) == (what in certain)


@pytest.mark.parametrize("what", quick.only(SOUND, "KL-SE, secure sum"))
def test_every_claim_is_kept(what):
    """Would catch the wrong scale, or the wrong claim, of any algorithm of the package; and a
    bound that is far from what the noise as claimed would show.

    Mutant: `_drawn_shares` that takes no sums so far where a round remembers those before.
    """
    found = audited(what, 2 * QUICK)
    assert not found.contradicted
    for each in found.findings:
        assert each.lower <= each.claim
        if not math.isnan(each.exact):
            # Of whole runs a few data sets are tried.
            assert each.lower > (0.5 if each.view == "actions" else 0.85) * each.exact, each
    assert any(each.out_of_reach for each in found.findings) == (what == "CDP-MAB, claim 50")


def test_no_noise_and_bits():
    """Would catch a claim where there is none, and a bit that is kept too often or too rarely."""
    bare = fmab.audit(fmab.ldp_ucb(None), 2, view="messages", runs=1000)
    assert all(each.infinite and math.isinf(each.claim) for each in bare.findings)
    assert not bare.contradicted
    bits = fmab.audit(fmab.ldp_ucb(1.0, bits=True), 2, view="messages", runs=QUICK)
    for each in bits.findings:
        assert 0.95 < each.share <= 1.0
        kept = max(each.happened)
        assert stats.binomtest(kept, QUICK, 1 / (1 + math.exp(-1))).pvalue > 1e-6


def test_a_sound_bit_keeps_its_claim_up_to_delta():
    """Would catch the claim of a Laplace variable, .78928, for a bit, which shows .85291."""
    found = fmab.audit(fmab.ldp_ucb(1.0, bits=True), 2, view="messages", delta=0.1, runs=QUICK)
    assert not found.contradicted
    for each in found.findings:
        assert each.claim == pytest.approx(0.8529051, abs=1e-7)
        assert 0.95 < each.share <= 1.0
    assert SOUND["LDP-UCB, bits, δ"].delta == 0.01
    with own_settings():
        every = exposures.exposed(
            fmab.ldp_ucb(1.0, bits=True), fmab.ldp_ucb(1.0).exchange(3), 0, streams.VIEWS
        )[0]
    assert {s.row.law for each in every for group in each.groups() for s in group} == {"bits"}


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_limits_are_clopper_and_pearsons(delta):
    """Would catch one-sided limits of the wrong tail, an infinite bound from few runs, and a delta
    that is left out, or taken off the wrong chance: P > e^epsilon Q + delta."""
    for more, less in ((90, 10), (100, 0), (1, 99), (0, 100), (40, 30)):
        high = stats.binomtest(less, 100, alternative="less").proportion_ci(0.999).high
        low = stats.binomtest(more, 100, alternative="greater").proportion_ci(0.999).low
        with np.errstate(divide="ignore"):
            wanted = np.log(max(low - delta, 0.0)) - np.log(high)
        found = module._ratio(more, less, module._How(100, 1e-3, delta))
        assert found == pytest.approx(wanted, rel=1e-9)


def test_a_claim_at_delta_is_that_of_the_ledger():
    """Would catch a pure epsilon that is held against a bound at delta, or the reverse."""
    found = fmab.audit(fmab.cdp_mab(1 / 6), 6, view="sums", delta=0.01, runs=1000)
    row = fmab.privacy_ledger(fmab.cdp_mab(1 / 6), 6, delta=0.01)[1]
    assert [each.claim for each in found.findings] == [row.epsilon_at_delta] * 2
    assert {each.who for each in found.findings} == {row.who} == {"the agents"}
    assert module.claimed(Seen("", "", 1.0, "", over=5), 0.0) == 1.0
    # One noise, by hand.
    one = module.claimed(Seen("", "", 1.0, "", over=1), 0.01)
    assert one == pytest.approx(1.0 + 2.0 * math.log1p(-0.01))


def test_what_no_run_can_speak_about_is_out_of_reach():
    """Would catch a claim of 50 that a thousand runs are said to be within, or contradict."""
    found = fmab.audit(fmab.cdp_mab(50 / 6), 6, view="messages", runs=1000)
    for each in found.findings:
        assert each.lower <= each.most < 6.0 < each.claim
        assert each.verdict == f"out of reach: so many runs show {found.most:.3g} at most"
    assert not found.contradicted


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
    """Would catch "contradicted: no finite epsilon" of a sound mechanism whose noise is so small
    that all runs end alike: a bit that flips with a chance of 2e-9."""
    found = fmab.audit(algorithm, 2, view=view, runs=1000)
    assert not found.contradicted
    assert any(each.constant for each in found.findings)
    for each in found.findings:
        assert each.lower <= found.most < each.claim and each.out_of_reach and not each.infinite
        told = "; nothing random in 1,000 runs" * each.constant
        assert each.verdict == f"out of reach: so many runs show {found.most:.3g} at most{told}"
        assert each.share < 1.0


@pytest.mark.parametrize("participation", [1.0, 0.5])
def test_no_noise_by_construction_has_no_epsilon(participation):
    """Would catch a bound of 5 where the noise has scale 0, and none where who is heard is drawn,
    which may hide a reward."""
    quiet = staticmethod(lambda epoch: 0.0 * epoch.fresh)
    silent = altered(fmab.cdp_mab, noise_scale=quiet, ledger=fmab.cdp_mab.ledger)
    found = fmab.audit(silent(0.25, participation=participation), 4, runs=1000)
    for each in found.findings:
        bare = each.view == "messages" or participation == 1.0 or each.what.startswith("one round")
        assert each.infinite == (bare and each.constant) and (each.constant or not bare)
        if bare:
            assert each.verdict == "contradicted: no finite epsilon" and each.lower == math.inf
    with own_settings():
        made = exposures.exposed(found.algorithm, found.algorithm.exchange(4), 0, streams.VIEWS)
        told = [
            (s.bare, s.row.what)
            for source in made[0]
            for group in source.groups()
            for s in group
            if not (s.row.what.startswith(("one round", "single")) or participation == 1.0)
        ]
    # Who is drawn anew in each round, or decides by whom it hears, has chance left.
    assert {what for _, what in told} == {"the sums of all rounds", "actions"} or not told
    assert not any(bare for bare, _ in told)


def sources(algorithm, agents, view):
    """Returns what shows an algorithm."""
    with own_settings():
        return exposures.exposed(algorithm, algorithm.exchange(agents), 0, (view,))[0]


def test_a_viewer_that_is_stronger_than_the_ledgers_is_marked():
    """Would catch noisy sums of agents alone, which nobody sees, told as what actions show; and a
    page that says that every row is shown as its viewer sees it."""
    for algorithm in (fmab.single_mab(1.0), fmab.dp_se(1.0)):
        found = fmab.audit(algorithm, 2, runs=1000)
        by_view = {each.view: each.who for each in found.findings}
        ledger = fmab.privacy_ledger(algorithm, 2)[0].who
        assert by_view == {
            "messages": f"{ledger}, and the noisy sums that they follow from",
            "actions": ledger,
        }
    with own_settings():
        (upload,) = sources(fmab.cdp_mab(1.0), 4, "messages")[0].groups()[0]
    assert upload.row.who == "the server"
    page = Path(__file__).parents[2] / "docs/privacy_audit.md"
    assert "Every row of the ledger but those of [the second table]" in page.read_text("utf-8")
    assert "under ``unseen``" in str(fmab.audit.__doc__)


def test_what_no_run_shows_is_said():
    """Would catch a row of a ledger that vanishes, and a reason that is another's."""
    with own_settings():
        for algorithm, views, hidden in (
            (fmab.fed_ucb(1.0), ["actions"], ("neighbours", 1.0, "which part of its state")),
            (
                fmab.ddp_mab(0.25, "ring", protocol="gossip"),
                ["messages", "actions"],
                ("every agent", 1.0, "no more than these"),
            ),
            (fmab.dist_dp_se(1.0), ["sums", "sums", "actions"], None),
            (fmab.single_mab(1.0), ["messages", "actions"], None),
            (fmab.cdp_mab(1.0, participation=0.5), ["messages", "sums", "sums", "actions"], None),
        ):
            found, unseen = exposures.exposed(algorithm, algorithm.exchange(4), 0, streams.VIEWS)
            assert [each.view for each in found] == views
            told = [(row.who, row.epsilon, row.why) for row in unseen]
            assert len(told) == (hidden is not None)
            if hidden:
                assert told[0][:2] == hidden[:2] and hidden[2] in told[0][2]


def test_what_has_a_loop_of_its_own_is_refused():
    """Would catch an audit of nothing that ends well."""
    exchange = staticmethod(lambda agents: fmab.ucb1().exchange(agents))
    own = altered(fmab.Algorithm, exchange=exchange, bind=lambda *given, **named: None)
    for algorithm, told in (
        (own(), "its loop is its own"),
        ("cdp", "algorithm='cdp': must be an algorithm"),
    ):
        refuses(told, fmab.audit, algorithm, 2)


def test_pulls_of_a_whole_run_are_those_of_the_policy():
    """Would catch a changed reward in another slot, of another arm, or of every pull of it; and
    regret that is read as the wrong arm. UCB1 by hand on the rewards that are given."""
    (source,) = sources(fmab.ucb1(alpha=0.5), 3, "actions")
    assert len(source.tried) == 6
    for place, (data, _) in enumerate(source.tried):
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
            with own_settings():
                drawn = source.drawn((place, changed), 0)[:5]
            assert drawn.tolist() == [played] * 5


def leading(state, episode, own):
    """Returns the arm of the larger mean, and one slot."""
    return jnp.argmax(state.sums / state.pulls), jnp.float64(1.0)


@pytest.mark.parametrize("shared", [False, True])
def test_pulls_of_episodes_are_those_of_the_policy(shared):
    """Would catch a reward that is changed in no run, for every agent that plays, or for every pull
    of an episode, and one that leaves [0, 1]. By hand on the rewards that are given."""
    whole = altered(fmab.Episodes, shared=True, choose=staticmethod(leading))
    algorithm = whole() if shared else fmab.adap_ucb(None, alpha=0.3)
    (source,) = sources(algorithm, 3, "actions")
    agents, seen = (3 if shared else 1), set()
    for place, (data, _) in enumerate(source.tried):
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
            with own_settings():
                drawn = source.drawn((place, changed), 0)[:5]
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
    """Would catch data that are far from a decision, a reward that is added for each agent, to the
    wrong arm or in the wrong round: without noise the second arm leaves, and with the reward not.

    Where half of the agents are heard, the reward is, in half of the runs.
    """
    (source,) = [each for each in sources(algorithm, 4, "actions")]
    with own_settings():
        for place, (data, _) in enumerate(source.tried):
            without, changed = (source.drawn((place, side), 0) for side in (0, 1))
            at = source.names.index(f"after round {data.when}")
            # Both arms are explored until then.
            assert (without[:, :at] == rest).all() and (changed[:, :at] == rest).all()
            assert (without[:, at:] == 0.0).all()
            stays = changed[:, at] == rest
            share = 0.5 if "0.5" in str(algorithm.settings()) else 1.0
            assert stats.binomtest(int(stays.sum()), len(stays), share).pvalue > 1e-6


def test_sums_are_over_others_and_those_who_are_drawn():
    """Would catch an agent's own message left in, that of the agent whose reward differs taken out,
    a sum over all where half are heard, or the same agents drawn in every round and run."""
    (source,) = sources(fmab.cdp_mab(0.25), 4, "sums")
    assert np.asarray(source.weights).tolist() == [1.0, 0.0, 1.0, 1.0]
    (source,) = sources(fmab.cdp_mab(0.25, participation=0.5), 4, "sums")[1:]
    (stream,) = source.groups()[0]
    assert "less its own message, reward of round 1" in stream.words
    with own_settings():
        uploads, heard = source.drawn(-1, 0)
    assert (heard.sum(axis=2) == 2).all()
    for round_ in range(3):
        for agent in range(4):
            times = int(heard[round_, :, agent].sum())
            assert stats.binomtest(times, source.size, 0.5).pvalue > 1e-6
    both = int((heard[0, :, 0] & heard[1, :, 0]).sum())
    assert stats.binomtest(both, source.size, 0.25).pvalue > 1e-6
    seen = source.seen(stream, (uploads, heard))
    run, round_, arm = 7, 2, 1
    sent = uploads.sent[round_, 4 * run : 4 * run + 4, arm] * uploads.length[round_]
    due = sum(sent[agent] for agent in (0, 2, 3) if heard[round_, run, agent])
    assert seen.values[run, 2 * round_ + arm] == pytest.approx(due, rel=1e-12)
    weighted = fmab.hdp_mab(0.25, "1,3:complete", weights="components")
    found = {each.row.who: each for each in sources(weighted, 4, "sums")}
    # The agent that is alone weighs three times as much as the others, one of whom looks.
    assert np.asarray(found["the agents"].weights) == pytest.approx([1.0, 0.0, 1 / 3, 1 / 3])


def test_arms_that_are_shared_out_have_the_noises_of_those_who_pull_them():
    """Would catch the unshared algorithm under the name of the other: a sum over all agents, or
    over those that pull an arm with the noise of the one that looks still in it."""
    algorithm = fmab.kl_se(0.5, first=42, split=True)
    # Two arms are pulled by three agents each; of two agents each has an arm of its own.
    for agents, view, noises in ((6, "messages", 1), (6, "sums", 2), (2, "sums", 1)):
        (source,) = sources(algorithm, agents, view)
        with own_settings():
            told = [each for group in source.groups() for each in group]
            first, changed = (source.drawn(data, 0)[0] for data in (-1, 1))
        rows = slice(None, None, source.each)
        without, with_it = (
            np.diff(each.sent * each.length[:, None, None], axis=0, prepend=0.0)[:, rows]
            for each in (first, changed)
        )
        for drawn in without[0, :, 1], without[2, :, 0], with_it[1, :, 1] - 1.0:
            tails = noise_tail(noises, drawn[:2000] / 2.0)
            assert stats.kstest(tails, "uniform").pvalue > 1e-6
        if view == "sums":
            assert all("agents that pull an arm less its own message" in s.words for s in told)
            assert {each.noises for each in told} == {noises}
        else:
            # Whoever shares the arms out is asked in every round.
            assert not any("rounds 1 and 3" in each.words for each in told)


def test_what_is_left_of_shares_and_the_own_one_are_the_whole_noise():
    """Would catch shares of another shape or scale: left and own add up to a Laplace variable."""
    _, insider = sources(fmab.dist_dp_se(0.5), 5, "sums")
    if insider.sight.shares[0] == 5:
        insider = sources(fmab.dist_dp_se(0.5), 5, "sums")[0]
    with own_settings():
        uploads, _ = insider.drawn(-1, 0)
        with_it, _ = insider.drawn(1, 0)
    left = uploads.sent * uploads.length[:, None, None]
    rng = np.random.default_rng(3)
    own = 2.0 * (rng.standard_gamma(0.2, left.shape) - rng.standard_gamma(0.2, left.shape))
    for noise in (left + own)[0, :, 1], (left + own)[2, :, 0]:
        assert stats.kstest(noise, stats.laplace(scale=2.0).cdf).pvalue > 1e-6
    moved = with_it.sent[1, :, 1] * with_it.length[1] - 1.0 + own[1, :, 1]
    assert stats.kstest(moved, stats.laplace(scale=2.0).cdf).pvalue > 1e-6


def test_exact_noise_has_the_tails_that_it_is_compared_with():
    """Would catch a wrong law of one noise, of two, or of a share of one."""
    x = np.array([-3.0, -0.5, 0.0, 0.7, 4.0])
    assert noise_tail(1, x) == pytest.approx(stats.laplace.sf(x), rel=1e-12)
    grid = np.linspace(-40.0, 40.0, 400_001)
    both = [np.trapezoid(stats.laplace.pdf(grid) * stats.laplace.sf(at - grid), grid) for at in x]
    assert noise_tail(2, x) == pytest.approx(both, rel=1e-6)
    share = [
        quad(lambda g, at=at: stats.gamma.sf(at + g, 0.8) * stats.gamma.pdf(g, 0.8), 0.0, 60.0)[0]
        for at in x
    ]
    assert noise_tail(0.8, x) == pytest.approx(share, rel=1e-5)


def test_a_sequence_tells_more_than_its_parts():
    """Would catch a table of ratios with swapped sides, or one that is read at another sequence.

    Two bits are fair coins; with the reward they are equal more often.
    """
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, (2, 40_000))
    second = np.where(rng.random((2, 40_000)) < [[0.5], [0.8]], first, 1 - first)
    sides = [np.stack(each, axis=1).astype(float) for each in zip(first, second, strict=True)]
    pilot = [streams.Numbers(each, np.ones(2), ["a", "b"], 0, counts=True) for each in sides]
    event = module._chosen(pilot, module._How(40_000, 1e-3, 0.0))
    told = module._event_text(event, ["a", "b"])
    assert told.startswith("pulls of a to b in a set of 2 sequences")
    assert event.bound == pytest.approx(math.log(0.5 / 0.2), abs=0.1)
    score = event.statistic.of(np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]]))
    assert score[:2] == pytest.approx([math.log(0.8 / 0.5)] * 2, abs=0.1)
    assert score[2:] == pytest.approx([math.log(0.2 / 0.5), 0.0], abs=0.1)


class Coins:
    """Something to see: a number, larger by the reward; notes which batches are drawn."""

    view, size = "messages", 100

    def __init__(self):
        self.drawn_ = []

    def groups(self):
        row = Seen("one", "numbers", 1.0, "", 1)
        return [
            [streams.Stream(row, "first", -1, 0, (0,), 1, 1.0)],
            [streams.Stream(row, "last", -1, 2, (0, 1, 2), 1, 1.0)],
        ]

    def drawn(self, data, batch):
        self.drawn_.append((data, batch))
        rng = np.random.default_rng([data + 1, batch])
        return rng.laplace(size=(self.size, 3)) + (np.arange(3) == data)

    def seen(self, stream, drawn):
        heard = list(stream.heard)
        names = [f"x{t}" for t in heard]
        return streams.Numbers(drawn[:, heard], np.ones(len(heard)), names, len(heard) - 1)


@pytest.mark.parametrize(
    ("runs", "pilots", "counted"), [(900, 9, 9), (1000, 10, 10), (1600, 10, 16), (1550, 10, 16)]
)
def test_an_event_is_counted_on_other_runs(monkeypatch, runs, pilots, counted):
    """Would catch runs that an event is chosen on and counted on, which claims too much; more runs
    than are asked for; and two data sets that share their noise."""
    monkeypatch.setattr(module, "_PILOT", 1000)
    source = Coins()
    found = module._findings(source, module._How(runs, 1e-3, 0.0))
    first, second = [*range(pilots)], [*range(10, 10 + counted)]
    assert source.drawn_ == [(side, batch) for batch in first + second for side in (-1, 0, 2)]
    data = {side: [source.drawn(side, batch) for batch in second] for side in (-1, 0, 2)}
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


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("audit", "no command: must be one of "),
        ("audit cdpp", "cdpp: must be one of adap_ucb, cdp, "),
        ("audit cdp --view all", "--view all: must be one of messages, sums, actions"),
        ("audit cdp --delta 1", "--delta 1: must be a number in [0, 1)"),
        ("audit cdp --runs 10", "--runs 10: must be a whole number in [1,000, 1,000,000,000]"),
        ("audit cdp --level 0", "--level 0: must be a number in (0, 0.5]"),
        ("audit cdp --epsilon -1", "--epsilon -1: must be a number in (0, 1e+100]"),
        ("audit cdp --arms 3", "--arms: must be an option of fmab audit cdp"),
        ("audit cdp --out taken.png", "--out taken.png: must be a new name"),
    ],
)
def test_wrong_words_end_in_one_line(words, line, tmp_path, monkeypatch, capsys):
    """Would catch a traceback, or minutes of runs before a name is found to be taken."""
    monkeypatch.chdir(tmp_path)
    Path("taken.png").touch()
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"fmab: {line}")


@pytest.mark.slow
def test_the_command_tells_the_findings(tmp_path, monkeypatch, capsys):
    """Would catch a table of other numbers than those of the audit, and a missing figure."""
    monkeypatch.chdir(tmp_path)
    words = "audit ddp --epsilon 0.5 --graph ring --protocol gossip --agents 6 --delta 0.01"
    assert main([*words.split(), "--runs", "1e5", "--out", "audit"]) == 0
    out, _ = capsys.readouterr()
    algorithm = fmab.ddp_mab(0.5, graph="ring", protocol="gossip")
    found = fmab.audit(algorithm, 6, delta=0.01, runs=10**5)
    table = re.sub(r"\s+", " ", out)
    for each in found.findings[:1] + found.findings[-1:]:
        lower = "infinite" if each.infinite else f"{each.lower:.4f}"
        claim = "none" if math.isinf(each.claim) else f"{each.claim:.6g}"
        # Long words are folded.
        assert f"{each.who.split()[0]} " in table and f" {claim} {lower} " in table
    assert f"neighbours one upload {found.findings[0].claim:.6g} " in table
    assert "not shown: every agent, averages that hold the message: weighted sums" in table
    assert "up to delta = 0.01: its hockey-stick divergence at epsilon is at most delta" in table
    assert Path("audit.png").stat().st_size > 10_000


def test_a_contradicted_claim_ends_with_status_1(monkeypatch, capsys):
    """Would catch a wrong claim that ends with status 0, a figure that needs noise, and an option
    that does not reach the audit."""
    wrong = audited("no noise", 1000)
    assert len(fmab.plot_audit(wrong).axes) == 2
    asked = []
    monkeypatch.setattr(module, "audit", lambda *given, **how: asked.append((*given, how)) or wrong)
    words = "audit cdp --epsilon 0.25 --agents 7 --runs 5e3 --level 0.01 --root-seed 3"
    assert main([*words.split(), "--view", "messages", "--delta", "1e-3"]) == 1
    how = {"view": "messages", "delta": 1e-3, "runs": 5000, "level": 0.01, "root_seed": 3}
    assert asked == [(fmab.cdp_mab(0.25), 7, how)]
    out, err = capsys.readouterr()
    assert "contradicted: no finite epsilon" in re.sub(r"\s+", " ", out)
    assert err == "fmab: the claim is contradicted: one upload, epsilon is not finite, not 1\n"
