"""The audit: close to a claim that is right, never above it, and above one that is wrong."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fmab_jax as fmab
from experiments.audit import BROKEN, broken, waiting, worst
from fmab_jax.analysis import audit as module
from fmab_jax.cli.main import main
from fmab_jax.errors import Refusal

QUICK = 200_000
# Rewards that are heard of in their own round; else two noises lie on them.
TIGHT = ("one upload", "3 uploads", "uploads of rounds 1 and 3, reward of round 1")


def checked(found: module.Audit, least: float) -> None:
    """Holds every tight finding to a share of the claim, and all to the claim."""
    assert not found.contradicted
    for each in found.findings:
        assert 0.0 < each.lower <= each.claim, each
        if each.stream.startswith(TIGHT):
            assert each.share >= least, each


def test_a_right_claim_is_nearly_reached() -> None:
    """Would catch an audit that is blind, or noise too large or too small, in any stream."""
    found = fmab.audit(fmab.cdp_mab(0.04, participation=0.5), 100, runs=QUICK)
    assert [each.claim for each in found.findings] == [2.0] * 5
    checked(found, 0.95)
    skipped = found.findings[-1]
    assert skipped.stream == "uploads of rounds 1 and 3, reward of round 2"
    # Two noises protect it, yet it is far from hidden.
    assert 0.6 < skipped.share < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("claim", [0.5, 1.0, 2.0, 4.0])
def test_right_claims_are_reached_to_three_percent(claim: float) -> None:
    """Would catch noise that is 3 % off, for any claim, in single uploads and in joint ones."""
    checked(fmab.audit(fmab.cdp_mab(claim / 50), 50), 0.97)


@pytest.mark.parametrize(
    "what",
    [
        "noise scaled by S_r, not n_r",
        pytest.param("un-noised waiting", marks=pytest.mark.slow),
    ],
)
def test_a_broken_mechanism_is_caught(what: str) -> None:
    """Would catch an audit of the first round alone, and one that does not look at waits."""
    found = broken(what, QUICK)
    one = worst(found)
    assert one.infinite == (what == "un-noised waiting")
    if one.infinite:
        # The messages themselves keep their claim; nothing is claimed for the wait.
        assert (one.stream, one.happened) == ("arm played while waiting", (0, QUICK))
        assert not found.contradicted and math.isinf(one.claim)
    else:
        assert found.contradicted and one.stream == "3 uploads, reward of round 3"


def test_private_waiting_has_the_claim_of_messages() -> None:
    """Would catch waits that are audited for nothing, and a bound that no bit can show.

    The arm of the larger sum is played. With the reward that is the other one where a difference of
    two Laplace variables exceeds the claim; without it either is as likely.
    """
    one = waiting(QUICK).findings[-1]
    assert (one.stream, one.claim) == ("arm played while waiting", pytest.approx(1.0))
    tail = 0.75 * math.exp(-1.0)
    assert one.exact == pytest.approx(math.log(0.5 / tail), abs=0.05)
    assert one.lower == pytest.approx(one.exact, abs=0.02)
    played = sorted(one.happened)
    for happened, chance in zip(played, (tail, 0.5), strict=True):
        assert stats.binomtest(happened, QUICK, chance).pvalue > 1e-6


def test_a_claim_is_that_of_the_ledger() -> None:
    """Would catch a claim of a mechanism whose ledger states none, or two sources of the claim."""

    @dataclass(frozen=True)
    class Unstated(fmab.cdp_mab):
        """Half the noise, and nothing is claimed."""

        @staticmethod
        def noise_scale(epoch: Any) -> Any:
            return 0.5 * fmab.cdp_mab.noise_scale(epoch)

    found = fmab.audit(Unstated(0.2), 5, runs=1000)
    assert all(math.isinf(each.claim) for each in found.findings) and not found.contradicted
    # No finding of so many runs is larger.
    tail = module.LEVEL / (2 * len(found.findings))
    grid = np.arange(1001)
    every = module._ratio(grid[:, None], np.broadcast_to(grid, (1001, 1001)), 1000, tail)
    assert found.most == pytest.approx(every.max())


@pytest.mark.slow
@pytest.mark.parametrize("what", BROKEN)
def test_all_broken_mechanisms_are_caught(what: str) -> None:
    """Would catch an audit that six ways to break a mechanism slip through."""
    found = broken(what, 2 * QUICK)
    assert found.contradicted or what == "un-noised waiting"
    certain = {"one noise for all rounds", "no noise", "un-noised waiting"}
    assert any(each.infinite for each in found.findings) == (what in certain)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "claim"),
    [
        (fmab.single_mab(1.0), 1.0),
        (fmab.dp_se(1.0), 1.0),
        (fmab.dist_dp_se(1.0), 1.0),
        (fmab.hdp_mab(0.01), 1.0),
        (fmab.ddp_mab(0.02), 1.0),
        (fmab.ldp_ucb(1.0), 1.0),
        (fmab.ldp_ucb(1.0, bits=True, pooled=True), 1.0),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_every_noise_keeps_its_claim(algorithm: Any, claim: float) -> None:
    """Would catch the wrong scale, or the wrong claim, of any algorithm of the package."""
    found = fmab.audit(algorithm, runs=QUICK)
    claimed = [each for each in found.findings if math.isfinite(each.claim)]
    assert [each.claim for each in claimed] == pytest.approx([claim] * len(claimed))
    assert not found.contradicted
    assert max(each.share for each in claimed) > 0.94


def test_no_noise_and_bits() -> None:
    """Would catch a claim where there is none, and a bit that is kept too often or too rarely."""
    bare = fmab.audit(fmab.ldp_ucb(None), 2, runs=1000)
    assert all(each.infinite and math.isinf(each.claim) for each in bare.findings)
    assert not bare.contradicted
    bits = fmab.audit(fmab.ldp_ucb(1.0, bits=True), 2, runs=QUICK)
    for each in bits.findings:
        assert 0.95 < each.share <= 1.0
        kept = max(each.happened)
        assert stats.binomtest(kept, QUICK, 1 / (1 + math.exp(-1))).pvalue > 1e-6


def test_limits_are_clopper_and_pearsons() -> None:
    """Would catch one-sided limits of the wrong tail, and an infinite bound from few runs."""
    for more, less in ((90, 10), (100, 0), (1, 99), (0, 100)):
        high = stats.binomtest(less, 100, alternative="less").proportion_ci(0.999).high
        low = stats.binomtest(more, 100, alternative="greater").proportion_ci(0.999).low
        with np.errstate(divide="ignore"):
            wanted = np.log(low) - np.log(high)
        assert module._ratio(more, less, 100, 1e-3) == pytest.approx(wanted, rel=1e-9)


def test_exact_noise_has_the_tails_that_it_is_compared_with() -> None:
    """Would catch a wrong law of one noise, or of two."""
    x = np.array([-3.0, -0.5, 0.0, 0.7, 4.0])
    assert module._tail(x, 1) == pytest.approx(stats.laplace.sf(x), rel=1e-12)
    grid = np.linspace(-40.0, 40.0, 400_001)
    both = [np.trapezoid(stats.laplace.pdf(grid) * stats.laplace.sf(at - grid), grid) for at in x]
    assert module._tail(x, 2) == pytest.approx(both, rel=1e-6)


class Coins(module._Slots):
    """Something to see: a number, larger by the reward; notes which batches are drawn."""

    def __init__(self) -> None:
        object.__setattr__(self, "drawn_", [])

    def streams(self) -> list[module._Stream]:
        return [module._Stream("one", 0, (0,)), module._Stream("other", 2, (0, 1, 2))]

    def drawn(self, changed: int, batch: int) -> np.ndarray:
        self.drawn_.append((changed, batch))  # type: ignore[attr-defined]
        rng = np.random.default_rng([changed + 1, batch])
        return rng.laplace(size=(module._BATCH, 3)) + (np.arange(3) == changed)

    def seen(self, stream: module._Stream, drawn: np.ndarray) -> module._Seen:
        heard = list(stream.heard)
        return module._Seen(drawn[:, heard], np.ones(len(heard)), [f"x{t}" for t in heard])


@pytest.mark.parametrize(
    ("runs", "pilots", "counted"), [(900, 9, 9), (1000, 10, 10), (1600, 10, 16), (1550, 10, 16)]
)
def test_an_event_is_counted_on_other_runs(
    monkeypatch: pytest.MonkeyPatch, runs: int, pilots: int, counted: int
) -> None:
    """Would catch runs that an event is chosen on and counted on, which claims too much; more runs
    than are asked for; and two data sets that share their noise."""
    monkeypatch.setattr(module, "_BATCH", 100)
    monkeypatch.setattr(module, "_PILOT", 1000)
    source: Any = Coins()
    found = module._findings(source, module._Claims(1.0, math.inf), runs, 1e-3)
    first, second = [*range(pilots)], [*range(10, 10 + counted)]
    assert source.drawn_ == [(side, batch) for batch in first + second for side in (-1, 0, 2)]
    data = {side: [source.drawn(side, batch) for batch in second] for side in (-1, 0, 2)}
    for each, changed in zip(found, (0, 2), strict=True):
        match = re.fullmatch(rf"x{changed}: (at least|below) \S+", each.event)
        assert match
        sides = [np.concatenate(data[side])[:runs, changed] for side in (-1, changed)]
        above = [int((side >= each.threshold).sum()) for side in sides]
        side = above if match[1] == "at least" else [runs - number for number in above]
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
        ("audit ucb1", "ucb1: must be one of cdp, ddp, dist_dp_se, dp_se, hdp, ldp_ucb, single;"),
        ("audit cdp --runs 10", "--runs 10: must be a whole number in [1,000, 1,000,000,000]"),
        ("audit cdp --level 0", "--level 0: must be a number in (0, 0.5]"),
        ("audit cdp --epsilon -1", "--epsilon -1: must be a number in (0, 1e+100]"),
        ("audit cdp --arms 3", "--arms: must be an option of fmab audit cdp"),
        ("audit cdp --out taken.png", "--out taken.png: must be a new name"),
    ],
)
def test_wrong_words_end_in_one_line(
    words: str,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Would catch a traceback, or minutes of runs before a name is found to be taken."""
    monkeypatch.chdir(tmp_path)
    Path("taken.png").touch()
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"fmab: {line}")


def test_what_has_no_noise_is_refused() -> None:
    """Would catch an audit of nothing that ends well."""
    for bad in (fmab.ucb1(), fmab.adap_ucb(1.0), "cdp"):
        with pytest.raises(Refusal, match="must be one with noise: cdp, ddp, dist_dp_se"):
            fmab.audit(bad)


@pytest.mark.slow
def test_the_command_tells_the_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a table of other numbers than those of the audit, and a missing figure."""
    monkeypatch.chdir(tmp_path)
    words = "audit ddp --epsilon 0.5 --graph ring --agents 6 --runs 1e5 --out audit"
    assert main(words.split()) == 0
    out, _ = capsys.readouterr()
    found = fmab.audit(fmab.ddp_mab(0.5, graph="ring"), 6, runs=10**5)
    table = re.sub(r"\s+", " ", out)
    for each in found.findings[:1] + found.findings[-1:]:
        lower = "infinite" if each.infinite else f"{each.lower:.4f}"
        claim = "none" if math.isinf(each.claim) else "3"
        assert f"{each.stream} {claim} {lower} " in table
    assert Path("audit.png").stat().st_size > 10_000


def test_a_contradicted_claim_ends_with_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a wrong claim that ends with status 0, a figure that needs noise, and an option
    that does not reach the audit."""
    wrong = broken("no noise", 1000)
    assert len(fmab.plot_audit(wrong).axes) == 2
    asked: list[Any] = []
    monkeypatch.setattr(module, "audit", lambda *given, **how: asked.append((*given, how)) or wrong)
    words = "audit cdp --epsilon 0.25 --agents 7 --runs 5e3 --level 0.01 --root-seed 3"
    assert main(words.split()) == 1
    assert asked == [(fmab.cdp_mab(0.25), 7, {"runs": 5000, "level": 0.01, "root_seed": 3})]
    out, err = capsys.readouterr()
    assert "contradicted: no finite epsilon" in re.sub(r"\s+", " ", out)
    assert err == "fmab: the claim is contradicted: one upload, epsilon is not finite, not 1\n"
