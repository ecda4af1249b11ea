"""`python -m experiments card`: suites, matched trust, standings, ranks and the card."""

import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sizes
from altered import altered
from refusals import refused
from scipy import stats

import fmab_jax as fmab
from benchmarks import standings as recompute
from experiments.__main__ import main
from experiments.card import card, page, ranking, standings, suites
from experiments.card.suites import DEMAB, UNBOUNDED, Contestant, Group
from experiments.several import Entrant, Ranks
from fmab_jax.algorithms import base
from fmab_jax.errors import Refusal
from fmab_jax.sampling.laplace import share_epsilon

DIGEST = "607fea7bde02340276f06abd02d2a749e0d4e481ea19e72b9a18db7bc5b23662"
TINY = f"""
version = "test"
leaks = [1, 10]
stand_ins = 2
[[suite]]
name = "tiny"
about = "Four agents | three arms."
horizon = 2000
root_seed = 5
seeds = {{ rounds = 12, shared = 6 }}
problem = {{ agents = {sizes.SMALL["agents"]}, arms = {sizes.SMALL["arms"]} }}
"""
LINE_UP = (
    Contestant("Dist-DP-SE", fmab.dist_dp_se, {}),
    Contestant("CDP-MAB", fmab.cdp_mab, {}),
    Contestant("CDP-MAB alone", fmab.single_mab, {}),
    Contestant("DP-IMED", fmab.dp_imed, {}),
)


@pytest.fixture(scope="module")
def tiny():
    """Returns a small suite and its standings."""
    given = suites.read(TINY)
    *_, (made, _) = standings.complete(given, LINE_UP, None)
    return given, made


def test_the_suites_are_those_of_their_version():
    """Would catch a changed horizon, seed, problem or leak under the same version."""
    found = suites.shipped()
    assert (found.version, found.digest) == ("1", DIGEST)
    text = (suites.FOLDER / "suites.toml").read_text("utf-8")
    for old, new in (("T = ", "T = "), ("horizon = 100_000", "horizon = 100_001"), ("60", "61")):
        changed = suites.read(text.replace(old, new, 1))
        assert (changed.digest == DIGEST) == (old == new)
    assert found.suites["ratings"].problem.probabilities.shape == (20, 12, 5)
    hard = found.suites["hard"].problem.fixed(3, found.suites["hard"].root_seed).means[0]
    best, second, *_ = sorted(hard, reverse=True)
    assert best - second == pytest.approx(0.01)


def test_standings_of_other_suites_are_refused_in_a_line(tiny, tmp_path):
    """Would catch ranks against runs of other problems, and a file that loses what it was given."""
    given, made = tiny
    path = standings.write(made, tmp_path / "s.nc")
    back = standings.read(path, given.digest)
    assert back.lower == made.lower and list(back.table) == list(made.table)
    for key, each in made.table.items():
        other = back.table[key]
        assert (other.key, other.absent) == (each.key, each.absent)
        for group, played in each.groups.items():
            assert (other.groups[group].regret == played.regret).all()
            assert (other.groups[group].lost == played.lost).all()
            np.testing.assert_allclose(other.groups[group].bits, played.bits, rtol=1e-6)
            np.testing.assert_equal(other.values[group], each.values[group])
    with pytest.raises(Refusal) as caught:
        standings.read(path, DIGEST)
    assert str(caught.value) == (
        f"standings='of suites {given.digest[:12]}': must be of suites {DIGEST[:12]}; "
        "run python -m benchmarks standings"
    )


def test_what_is_there_is_not_computed_again(tiny, monkeypatch):
    """Would catch a run that begins anew, and one that keeps what changed."""
    given, made = tiny
    asked = []

    def play(planned, suite):
        asked.append(next(iter(planned.algorithms.values())).name)
        return iter(())

    monkeypatch.setattr(standings, "play", play)
    changed = (*LINE_UP[:1], replace(LINE_UP[1], options={"participation": 0.5}), *LINE_UP[2:])
    *_, (again, _) = standings.complete(given, changed, made, only=["DP-IMED", "Dist-DP-SE"])
    assert asked == []
    *_, (again, _) = standings.complete(given, changed, made)
    assert asked == ["cdp"]
    assert again.table["tiny", "Dist-DP-SE"] is made.table["tiny", "Dist-DP-SE"]
    asked.clear()
    other = replace(given, digest=DIGEST)
    list(standings.complete(other, LINE_UP[:1], made))
    assert asked == ["dist_dp_se"]


@pytest.mark.parametrize(
    ("contestant", "view", "leak", "agents", "value"),
    [
        # A message of CDP-MAB leaks N epsilon.
        (Contestant("", fmab.cdp_mab, {}), "messages", 10.0, 50, 0.2),
        (Contestant("", fmab.cdp_mab, {"participation": 0.4}), "messages", 10.0, 50, 0.5),
        # The agents know their own noise in a sum, so 49 noises hide a reward.
        (Contestant("", fmab.cdp_mab, {}), "sums", 1.0, 50, None),
        # Each agent knows its share of the one noise, and sees what follows from the sum.
        (Contestant("", fmab.dist_dp_se, {}), "sums", 0.5, 5, None),
        # Other agents report each time, so only its own noise stays with an agent's rewards.
        (Contestant("", fmab.cdp_mab, {"participation": 0.4}), "sums", 10.0, 50, 0.5000001),
        # An outsider knows no share.
        (Contestant("", fmab.dist_dp_se, {}), "actions", 0.5, 5, 0.500002000001),
        # Of one Laplace variable epsilon falls by 2 delta.
        (Contestant("", fmab.dp_se, {}), "actions", 3.0, 7, 3.000002),
    ],
)
def test_an_epsilon_is_found_that_leaks_what_is_asked(contestant, view, leak, agents, value):
    """Would catch a leak of the outsider in place of the insider, and pure in place of delta."""
    found = suites.match_trust(contestant, agents, [leak]).values[view, leak]
    if value is not None:
        assert found == value
        return
    if contestant.owner is fmab.dist_dp_se:
        assert found < 0.9 * leak
        assert share_epsilon(found, 4, 5) == pytest.approx(leak, rel=1e-9)
        return
    rows = fmab.privacy_ledger(contestant.build(found), agents)
    (worst,) = [row for row in rows if row.observation.startswith("sums")]
    assert worst.epsilon_at_delta == pytest.approx(leak, rel=1e-9)
    assert agents * found > 2 * leak and worst.number == 49


def test_who_has_no_epsilon_in_a_view_is_told_why():
    """Would catch a view that is guessed, and a reason that is another view's."""
    absent = suites.match_trust(LINE_UP[0], 5, [1.0]).absent
    assert absent == {
        "messages": "because no ε covers a message: the noise of a secure sum is split"
    }
    silent = suites.match_trust(LINE_UP[3], 5, [1.0])
    assert set(silent.absent) == {"messages", "sums"} and set(silent.values) == {("actions", 1.0)}
    ring = Contestant("", fmab.ddp_mab, {"graph": "ring"})
    assert suites.match_trust(ring, 5, [1.0]).absent["actions"] == "because its ledger has no bound"
    given = suites.read(TINY).suites["tiny"]
    uncounted = altered(fmab.cdp_mab, values=lambda *own: fmab.cdp_mab.values(*own))
    for bare in (
        Contestant("", uncounted, {}),
        Contestant("", fmab.uniform_play, {}),
        Contestant("", fmab.kl_se, {"epsilon": None}),
    ):
        assert list(standings.plan(bare, given, 4).algorithms) == [UNBOUNDED]


def test_no_noise_is_one_contestant():
    """Would catch a label that hides that there is no noise, and two names of one algorithm."""
    for name in ("epsilon", "epsilon_message"):
        assert card.contestant_of(fmab.cdp_mab, {name: None}).label == "CDP-MAB, no noise"
    own = card.contestant_of(fmab.cdp_mab, {"participation": 0.5, "epsilon_message": None})
    assert own.label == "CDP-MAB, p = 0.5, no noise" and own.options["epsilon"] is None
    assert card.contestant_of(DEMAB, {}).label == "DEMAB, private"
    assert card.contestant_of(DEMAB, {"epsilon": None}).label == "DEMAB"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--seeds 3", "--seeds: must come with --out"),
        ("--seeds 1 --out x.nc", "--seeds 1: must be at least 2"),
        ("--also missing.nc --out x.nc", "--also missing.nc: must be an existing file"),
    ],
)
def test_a_trial_never_replaces_the_standings(words, line, capsys):
    """Would catch a trial written over the package's file, and a file that is passed over."""
    with pytest.raises(SystemExit) as caught:
        recompute.main(words.split())
    assert caught.value.code == 2 and line in capsys.readouterr().err


def test_a_twin_has_the_same_bits_and_place(tiny):
    """Would catch other seeds, another root seed, another epsilon, or ranks of another group."""
    given, made = tiny
    suite = given.suites["tiny"]
    twin = Contestant("Twin", altered(fmab.dist_dp_se, title="Twin <b>"), {})
    known = made.table["tiny", "Dist-DP-SE"]
    for groups, played in standings.play(standings.plan(twin, suite), suite):
        for group in groups:
            assert (played.regret == known.groups[group].regret).all()
            assert (played.bits == 64 * played.links * sizes.SMALL["arms"]).any()
            found = ranking.rank_run(suite.name, group, "Twin", played, made)
            itself = ranking.rank_run(suite.name, group, "Dist-DP-SE", known.groups[group], made)
            # The twin is one more of them, and as good as the other.
            many = len(made.members("tiny", group))
            assert found.rank.endswith(f" of {many + 1}") and itself.rank.endswith(f" of {many}")
            assert found.place.first == itself.place.first
            assert found.place.last == itself.place.last + 1
            assert found.run.regret.tolist() == itself.run.regret.tolist()


def test_few_agents_stand_for_all_that_are_alone(tiny):
    """Would catch a regret of two agents shown as that of four, and stand-ins of those who talk."""
    given, made = tiny
    group = Group("actions", 10.0)
    alone = made.table["tiny", "CDP-MAB alone"].groups[group]
    problem = fmab.Problem.uniform(2, sizes.SMALL["arms"])
    data = fmab.simulate(fmab.single_mab(10.0), problem, 2000, 12, root_seed=5, times=[2000])
    assert (alone.regret == 2 * data.regret.values[:, -1]).all() and alone.stand_ins == 2
    assert made.table["tiny", "CDP-MAB"].groups[group].stand_ins == 0
    costs = (fmab.cdp_mab(1.0), fmab.dp_imed(1.0), fmab.ucb1(pooled=True), fmab.ucb1())
    assert tuple(map(suites.cost_of, costs)) == suites.COSTS
    # Episodes have no seeds here, and say so.
    why = "because simulating it takes too long here"
    assert made.absent("tiny", "actions")[why] == ["DP-IMED"]


def test_a_lost_arm_and_a_worse_one_both_count(tiny, monkeypatch):
    """Would catch seeds that count only if they lost the best arm and play a worse one, too."""
    given, _ = tiny
    suite, contestant = given.suites["tiny"], LINE_UP[1]
    run, seen = fmab.simulate, []

    def odd(*given, **more):
        data = run(*given, **more)
        data["best_arm_lost"].values[:] = np.arange(12) == 3
        data["worse_arm_played"].values[:] = np.arange(12) == 7
        seen.append(data)
        return data

    monkeypatch.setattr(standings, "simulate", odd)
    _, played = next(standings.play(standings.plan(contestant, suite), suite))
    assert seen and np.flatnonzero(played.lost).tolist() == [3, 7]
    assert ranking.write_lost(played).startswith("2 of 12")


def test_a_tail_is_measured_by_the_median():
    """Would catch a tail beside the mean, which a heavy tail lifts until it is hidden."""
    regret = np.array([1.0] * 6 + [2.0] * 2 + [6.0, 1000.0])
    zero = np.zeros(10)
    told = ranking.write_tail(standings.Run(regret, zero, zero, zero > 0, 0, 1.0))
    assert told == ("1,000", "20 %")


def test_lower_bounds_are_those_of_who_plays_together_or_alone():
    """Would catch the bounds of a federation and of agents alone exchanged, or misplaced."""
    given = suites.read(TINY)
    suite = given.suites["tiny"]
    lower = standings.lower_bounds(suite)
    for leak, (together, alone) in lower.items():
        # Four agents alone lose at least what each loses; together they pay once.
        assert 0 < together < alone, leak
    known = standings.Standings(given.version, given.digest, {}, {("tiny", 10.0): (7.0, 1234.0)})
    for contestant, told in ((LINE_UP[1], "7"), (LINE_UP[2], "1,234")):
        group = Group("actions", 10.0)
        algorithm = standings.plan(contestant, suite).algorithms[group]
        result = SimpleNamespace(suite=suite, plan=SimpleNamespace(algorithms={group: algorithm}))
        own = result
        assert card._write_bound(known, own, SimpleNamespace(group=group)) == told


def test_equal_links_leave_out_those_who_send_more(tiny):
    """Would catch a rank at equal links among all, and one among those who send more."""
    _, made = tiny
    group, zero = Group("actions", 10.0), np.zeros(4)
    noise = np.array([0.0, 0.1, 0.2, 0.3])

    def sent(regret, links):
        return standings.Run(regret + noise, links + zero, zero, zero > 0, 0, 1.0)

    row = made.table["tiny", "DP-IMED"]
    runs = {"chatty": sent(10.0, 99.0), "alike": sent(20.0, 54.0), "quiet": sent(90.0, 1.0)}
    table = {("tiny", name): row._replace(groups={group: run}) for name, run in runs.items()}
    shown = replace(made, table=table)
    ranked = ranking.rank_run("tiny", group, "Own", sent(30.0, 50.0), shown)
    assert (ranked.rank, ranked.rank_at_equal_links) == ("3rd of 4", "2nd of 3")
    assert ranked.leader == "chatty"


@pytest.fixture
def at_hand(tiny, tmp_path, monkeypatch):
    """Returns the command on the small suite, in a folder with a plug-in."""
    given, made = tiny
    monkeypatch.setattr(suites, "shipped", lambda: given)
    monkeypatch.setattr(standings, "shipped", lambda digest: made)
    monkeypatch.setattr(card, "contestants", lambda: LINE_UP)
    # What a test loads is forgotten after it.
    monkeypatch.setattr(base.ALGORITHMS, "loaded", dict(base.ALGORITHMS.loaded))
    monkeypatch.chdir(tmp_path)
    Path("law.py").write_text("import fmab_jax as fmab\n")
    return lambda words: main(["card", *words.split()])


MINE = """
import math
from dataclasses import dataclass
import fmab_jax as fmab
from fmab_jax.algorithms.base import Disclosure

@dataclass(frozen=True)
class Mine(fmab.cdp_mab):
    name = "mine"
    strength: float = 2.0
"""


def test_a_card_names_the_best_and_the_parent_of_a_subclass(at_hand, capsys):
    """Would catch a subclass under its parent's name, and a best one without its parameters."""
    Path("mine.py").write_text(MINE)
    assert at_hand("mine.py --set strength=3 --out mine") == 0
    text = Path("mine.md").read_text("utf-8").replace("\\", "")
    lines = text.splitlines()
    assert lines[0] == "# Benchmark card: mine, strength = 3"
    assert "* A subclass of CDP-MAB (cdp)" in lines and "* strength: 3" in lines
    assert "* participation: 1 (default)" in lines
    assert "* epsilon: set by the card, as the tables say" in lines
    (head,) = (i for i, line in enumerate(lines) if "least regret of" in line)
    heads = lines[head].split(" | ")
    own, leader, call = map(heads.index, ("this", "least regret of", "that is"))
    names = {each.label: each.owner.name for each in LINE_UP}
    for line in lines[head + 2 : head + 4]:
        cells = line.split(" | ")
        assert re.fullmatch(r"mine\(epsilon=[\d.e-]+, strength=3\)", cells[own])
        name = names.get(cells[leader], "mine")
        assert re.fullmatch(rf"{name}\(epsilon=[\d.e-]+(, strength=3)?\)", cells[call])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("nobody", "algorithm='nobody': must be one of "),
        ("law.py", "plugin='law.py': must be a module that defines an algorithm"),
        ("cdp --suite papr", "suite='papr': must be one of tiny; leave it out for all"),
        ("cdp --set epsilon=1", "epsilon=1: must be left to the card"),
        ("cdp --set participation=2", "participation=2: must be a number in (0, 1]"),
        ("cdp --set horizon=10", "set='horizon=10': must be one of epsilon, "),
        ("cdp --out no/card", "out='no/card.md': must be in an existing folder"),
        ("thompson", "contestant='Thompson sampling': must be an algorithm that fits a suite; "),
    ],
)
def test_wrong_words_end_in_one_line(words, line, at_hand, capsys):
    """Would catch a traceback, or minutes of runs before a name is refused."""
    assert at_hand(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"error: {line}"), err
    assert not list(Path().glob("card*"))


@pytest.mark.parametrize(
    ("function", "stated", "line"),
    [
        ("ledger", "('x',)", "Mine.ledger=('x',): must be one Disclosure, or several; "),
        ("bind", "1 / 0", "mine.bind: must return, not end in ZeroDivisionError: "),
    ],
)
def test_a_wrong_statement_ends_in_one_line(function, stated, line, at_hand, capsys, monkeypatch):
    """Would catch a traceback, a fault taken for a suite that does not fit, or found at the end."""
    monkeypatch.setattr(card, "play", None)
    Path("mine.py").write_text(f"{MINE}\n    def {function}(self, *_, **__): return {stated}\n")
    assert at_hand("mine.py") == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1) and err.startswith(f"error: {line}"), err


def test_a_file_with_several_algorithms_asks_which(at_hand):
    """Would catch the first of a file run without a word, and a name that is not in the file."""
    second = MINE[MINE.index("@dataclass") :].replace("Mine", "Two").replace('"mine"', '"two"')
    Path("two.py").write_text(MINE + second)
    for name in (None, "cdp"):
        with pytest.raises(Refusal, match=f"algorithm={name!r}: must be one of mine, two; "):
            card.load("two.py", name)
    assert card.load("two.py", "two").__name__ == "Two"


def test_the_shipped_standings_are_those_of_this_package():
    """Would catch numbers of an algorithm that has changed since, and runs of nobody."""
    made = standings.shipped(DIGEST)
    labels = [each.label for each in suites.contestants()]
    assert set(made.table) == {(name, each) for name in suites.shipped().suites for each in labels}
    suite = suites.shipped().suites["paper"]
    planned = standings.plan(suites.contestants()[0], suite, 8)
    group = Group("messages", 10.0)
    one = planned._replace(algorithms={group: planned.algorithms[group]})
    ((_, played),) = standings.play(one, suite)
    known = made.table["paper", "CDP-MAB"]
    np.testing.assert_allclose(played.regret, known.groups[group].regret[:8], rtol=1e-9)
    assert known.values[group] == 0.2


def test_a_card_has_ranks_and_keeps_markup_as_text(at_hand, capsys):
    """Would catch a lost rank, text that is taken for markup, and an older card replaced."""
    assert at_hand("dist_dp_se") == 0
    out, _ = capsys.readouterr()
    assert "tiny: 4 runs of 12 seeds ..." in out and "wrote card.md" in out
    text = Path("card.md").read_text("utf-8")
    found = re.findall(r"\| actions \| tiny \| (.*) \| (.*) \|", text)
    assert found and all(re.fullmatch(r"\d\w\w( to \d\w\w)? of 3", each) for each in found[0])
    assert "not a card to cite" not in text and "12 seeds." in text
    assert r"Four agents \| three arms." in text
    assert "not a card to cite" in card._lead("x", suites.read(TINY), None, True)
    assert r"| \<i\> |" in page.write_table("c", ("|",), (("<i>",),))
    # Again: the name is taken, unless it may be replaced.
    assert at_hand("dist_dp_se") == 2
    assert capsys.readouterr().err.startswith("error: out='card.md': must be a new name")


def entrants(**changes):
    """Three that differ by 2 and by 100 in every seed; the last has a seed more."""
    base = np.array([10.0, 30.0, 20.0, 40.0])
    first = Entrant("B", "nobody", "1", base + 2)
    rest = {"A": base, "C, late": np.append(base + 100, -1e9)}
    others = [Entrant(name, "nobody", "1", regret) for name, regret in rest.items()]
    return [first._replace(**changes), *others]


def in_step(**shifts):
    """Contestants that differ from the first by a shift and a little noise, in so many seeds."""
    base = np.linspace(100, 200, 40)
    noise = np.tile([-1.0, 1.0], 20)
    return [
        Entrant(name, "nobody", "1", (base + shift + wide * noise * (-1) ** place)[:seeds])
        for place, (name, (shift, wide, seeds)) in enumerate(shifts.items())
    ]


def test_ranks_that_are_left_open_are_told():
    """Would catch a rank by the mean alone, ends that are swapped or off by one, means of unequal
    seeds, common seeds of all in place of each two, and a pair counted for one side only."""
    given = in_step(D=(3, 0, 40), B=(0.1, 1, 40), A=(0, 1, 40), C=(30, 1, 4))
    # C's 4 seeds are those of the smallest regret: its own mean is below that of the others.
    assert given[3].regret.mean() < min(each.regret.mean() - 1 for each in given[:2])
    found = Ranks(given, 0.95).places
    # B and A: 0.1 with a standard error of 0.3; D is above both by 10 errors and more.
    assert list(found) == ["A", "B", "D", "C"]
    assert [each[:2] for each in found.values()] == [(1, 2), (1, 2), (3, 3), (4, 4)]
    assert [each.seeds for each in found.values()] == [40, 40, 40, 4]
    assert [each.text for each in found.values()] == ["1–2", "1–2", "3", "4"]
    # Of four seeds all pairs would be open: each two have their own.
    few = Ranks([each._replace(regret=each.regret[:2]) for each in given[:3]])
    assert {each[:2] for each in few.places.values()} == {(1, 3)}
    assert Ranks(given[:1]).places == {"D": (1, 1, 40)}
    twice = [given[0], given[0]._replace(label="Dd")]
    assert Ranks(twice).places["Dd"] == (1, 2, 40)


def test_intervals_of_differences_hold_together():
    """Would catch intervals, of differences or of ranks, that hold one by one, against the first
    one only, or only with one that is chosen beforehand."""
    apart = np.array([-1.0, 0.0, 1.0, 2.0, 3.0])  # 1 on average, deviation 1.58
    base = np.array([10.0, 30.0, 20.0, 50.0, 40.0])
    # Student t with 4 degrees of freedom for 1, 3 and 6 pairs at 95 %.
    for number, t in {2: 2.776445, 3: 3.960786, 4: 4.851008}.items():
        edge = t * math.sqrt(2.5 / 5)
        for shift in (0.999, 1.001):
            given = [Entrant("A", "x", "1", base)]
            given += [Entrant("B", "x", "1", base + apart - 1 + shift * edge)]
            far = zip("CD"[: number - 2], (1e3, 2e3), strict=False)
            given += [Entrant(name, "x", "1", base + away) for name, away in far]
            ranks = Ranks(given)
            assert ranks.level == pytest.approx(1 - 0.1 / (number * (number - 1)))
            places = ranks.places
            assert places["A"].last == places["B"].last - 1 + (shift < 1) == 1 + (shift < 1)
            assert places["B"].first == 1 + (shift > 1)


def test_differences_have_their_intervals_in_numbers_and_in_per_cent():
    """Would catch sizes of another base, an interval that is not simultaneous, seeds of another."""
    rng = np.random.default_rng(1)
    base = rng.gamma(4, 10, 30)
    far = 1.5 * base + rng.normal(0, 2, 30)
    given = [
        Entrant("B", "x", "1", np.append(far, 9.0)),
        Entrant("A", "x", "1", base),
        Entrant("C", "x", "1", base + rng.normal(0.4, 2, 30)),
    ]
    ranks, level = Ranks(given, 0.9), 1 - 0.1 / 3
    known = stats.ttest_rel(far, base).confidence_interval(level)
    assert ranks.more("B", "A") == pytest.approx(((far - base).mean(), *known), rel=1e-9)
    percent, *ends = ranks.percent("B", "A")
    assert percent == pytest.approx(100 * (far.mean() / base.mean() - 1), rel=1e-12)
    for end in ends:
        gone = stats.ttest_rel(far, (1 + end / 100) * base)
        assert gone.pvalue == pytest.approx(1 - level, rel=1e-6)
    assert ends[0] < percent < ends[1]


@pytest.mark.parametrize("field", ["trust", "leak", "view", "accountant"])
def test_ranks_of_unlike_trust_are_refused(field):
    """Would catch views or accountants that are ranked together."""
    given = entrants(**{field: 0.5 if field == "accountant" else "2"})[:2]
    assert "must be alike in whom they trust" in refused(Ranks, given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "entrants=[]: must be at least one; "),
        ([Entrant("A", "x", "1", np.array([1, np.nan]))], "entrants=['A']: must be of finite"),
        ([Entrant("A", "x", "1", np.ones(1))], "entrants='1 common seeds': must be at least 2"),
        ([Entrant("A", "x", "1", np.arange(3.0))] * 2, "entrants=['A']: must be of labels of"),
        (
            [Entrant(f"{T}", "x", "1", np.arange(3.0), question=(T, 0)) for T in (10, 20)],
            "entrants=['(10, 0)', '(20, 0)']: must be asked the same question; ",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(given, told):
    """Would catch a winner of nothing, an interval of one number, and two horizons compared."""
    assert refused(Ranks, given).startswith(told)
