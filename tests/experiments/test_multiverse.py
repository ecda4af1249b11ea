"""The multiverse: which readings a sentence is judged in, what each changes, and what is told."""

import itertools
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from legibility import drawn, readable
from matplotlib.colors import to_rgba

import fmab_jax as fmab
from experiments import (
    claims,
    claims_bounds,
    claims_runs,
    common,
    multiverse,
    multiverse_figures,
    pictures,
    verdicts,
)
from experiments.fig06_rounds import GAPS as FIGURE_GAPS
from experiments.multiverse import ANY, BASE, PART, READINGS, Reading, Sentence, Told
from experiments.readings import Late, LateHybrid
from experiments.verdicts import (
    FAILS,
    HOLDS,
    NOT_ATTAINED,
    NOT_CONTRADICTED,
    NOT_PROVED,
    NOT_REACHED,
    OPEN,
    Finding,
    Measured,
)
from fmab_jax.core.exchanges import Exchange
from fmab_jax.errors import Busy
from fmab_jax.sweeps.study import state

HORIZONS = (10**4, 10**5)
FIGURES = Path(multiverse.__file__).parents[1] / "figures"


@pytest.fixture
def asked(monkeypatch):
    """What is asked of `fmab.sweep`: (study, store, seeds) each; a made-up result for it."""
    found = []

    def sweep(algorithm, problem=None, *, store=None, seeds, **settings):
        study = state(algorithm, problem, seeds=seeds, **settings)
        found.append((study, store, seeds))
        dims = [axis.name for axis in study.axes]
        shape = [len(axis.values) for axis in study.axes]
        regret = np.arange(np.prod([*shape, seeds]), dtype=float).reshape([*shape, seeds])
        coords = {axis.name: list(axis.labels) for axis in study.axes}
        return xr.Dataset({"regret": ([*dims, "seed"], regret)}, coords)

    monkeypatch.setattr(fmab, "sweep", sweep, raising=False)
    return found


def world(seeds=1000, runs=Path("runs"), load=None, **reading):
    """Returns the world of a reading."""
    data = multiverse.Data(load or {}.__getitem__, HORIZONS, seeds, runs)
    return multiverse.World(Reading(**reading), data, {})


UNIFORM = fmab.Problem.uniform(6, 4)


def run(own, algorithm="cdp", problem=UNIFORM, **settings):
    """Asks for a sweep of its own in a world."""
    settings = {"epsilon": 1, "horizon": 10**4} | settings
    with own.entered():
        return own.own("mine", algorithm, problem, **settings)


def problems(study):
    """Returns the problem of each cell."""
    return [point.config.problem for point in study.points]


def test_what_a_reading_leaves_is_read_from_the_runs_of_others(asked, tmp_path):
    """Catches runs of the base done again in the others' store, and seeds not the first ones."""
    found = run(world(runs=tmp_path), rounds=[2, 3])
    ((study, store, seeds),) = asked
    assert (store, seeds) == (tmp_path / "claims_mine", 1000)
    assert set(problems(study)) == {UNIFORM}
    assert found.regret.values.tolist() == [list(range(200)), list(range(1000, 1200))]
    # Fewer than are compared are all of them.
    assert run(world(seeds=30, runs=tmp_path)).sizes["seed"] == 30


def test_instances_are_one_draw_for_all_or_have_a_smallest_gap(asked, tmp_path):
    """Catches instances of the base, one for each agent, another draw, a row's own that stays."""
    own = UNIFORM.fixed(3)
    with_spread = {"problem": None, "agents": 6, "arms": 4}
    differ = fmab.Problem.heterogeneous(6, 4, 1.0)
    for name, wanted, fixed in (
        ("one for all seeds", UNIFORM.fixed(0), UNIFORM.fixed(0)),
        ("smallest gap 1/16", fmab.Problem.with_gap(6, 4, 1 / 16), None),
    ):
        asked.clear()
        worlds = [world(runs=tmp_path, instance=name) for _ in range(3)]
        run(worlds[0])
        run(worlds[1], problem={"a": UNIFORM, "b": own})
        run(worlds[2], **with_spread, spread={"alike": 0, "apart": 1})
        (one, store, seeds), (two, _, _), (three, _, _) = asked
        assert problems(one) == [wanted] and seeds == 200
        assert store.name.startswith("multiverse-") and store.name.endswith("-claims_mine")
        assert problems(two) == [wanted, fixed or wanted.fixed(0)]
        apart = differ.fixed(0) if fixed else fmab.Problem.heterogeneous(6, 4, 1.0, 1 / 16)
        assert problems(three) == [wanted, apart] and three.axes[0].labels == ("alike", "apart")
    # The spread moves no global mean.
    assert differ.fixed(0).means.mean(axis=0) == pytest.approx(UNIFORM.fixed(0).means[0])


def test_rows_are_told_the_gaps_of_the_instances_that_were_run(asked):
    """Would catch regret of one instance held against the gaps of another, in any module."""
    usual, mine = claims_runs.gaps_of(UNIFORM, 3), UNIFORM.fixed(0)
    gaps = {}
    for name in READINGS["instance"]:
        with world(instance=name).entered():
            gaps[name] = claims_bounds.gaps_of(UNIFORM, 3)
            assert (claims_runs.gaps_of(UNIFORM, 3) == gaps[name]).all()
    assert (gaps["as in CLAIMS"] == usual).all() and np.ptp(usual, axis=0).max() > 0
    best = mine.means[0].max()
    assert gaps["one for all seeds"] == pytest.approx(np.tile(best - mine.means[0], (3, 1)))
    assert np.sort(gaps["smallest gap 1/16"])[:, 1] == pytest.approx(1 / 16)


def test_delays_are_those_of_who_waits(asked, tmp_path):
    """Catches waits of the base, another algorithm by a label, and a server's runs done again."""
    late = {"delay": "d_G", "runs": tmp_path}
    everybody = {"CDP": fmab.cdp_mab, "DDP": fmab.ddp_mab, "HDP": fmab.hdp_mab}
    run(world(**late), everybody)
    run(world(**late), "ddp", graph=["ring", "complete"])
    run(world(**late), ["cdp", "hdp"])
    run(world(**late))
    run(world(**late), {"CDP": fmab.cdp_mab})
    kinds = [[type(point.config.algorithm) for point in study.points] for study, _, _ in asked]
    assert kinds[0] == [fmab.cdp_mab, Late, LateHybrid] and kinds[1] == [Late, Late]
    assert asked[0][0].axes[0].labels == ("CDP", "DDP", "HDP")
    assert asked[2][0].axes[0].labels == ("cdp", "hdp") and kinds[2][1] is LateHybrid
    assert [point.config.exchange.wait for point in asked[1][0].points] == [3, 1]
    assert [store.name for _, store, _ in asked] == [
        "multiverse-late-claims_mine", "multiverse-late-claims_mine",
        "multiverse-late-claims_mine", "claims_mine", "claims_mine",
    ]  # fmt: skip


def test_hybrids_wait_a_slot_longer_where_anybody_has_to_be_heard():
    """Would catch a wait for nobody, and components of which the nearest decides."""
    for components, slots in (("3x2:ring", 1), ("6x1:ring", 3), ("6x1:star", 1), ("1x6", 0)):
        assert LateHybrid(1, components=components).exchange(6).wait == slots
        assert fmab.hdp_mab(1, components=components).exchange(6).wait == max(0, slots - 1)


def test_a_budget_is_built_for_the_gap_of_the_reading(asked, tmp_path):
    """Catches the instance's own gap under the other reading, and another gap's answer."""
    for gap, wanted in (("own", None), ("1/16", 1 / 16)):
        asked.clear()
        run(world(runs=tmp_path, gap=gap), rounds=[2, 3])
        run(world(runs=tmp_path, gap=gap))
        found = run(world(runs=tmp_path, gap=gap), rounds=[2, 3], schedule_gap=FIGURE_GAPS)
        (swept, store, _), (none, plain, _), (both, third, _) = asked
        assert {p.config.algorithm.schedule_gap for p in swept.points} == {wanted}
        assert store.name == ("multiverse-gap-" if wanted else "") + "claims_mine"
        # Where there is no budget, or both gaps are there, nothing has to be run.
        assert plain.name == third.name == "claims_mine"
        assert {p.config.algorithm.schedule_gap for p in none.points} == {None}
        (axis,) = (axis for axis in both.axes if axis.name == "schedule_gap")
        place = list(axis.values).index(wanted)
        label = list(FIGURE_GAPS)[place]
        every = found.regret.transpose("schedule_gap", "rounds", "seed")
        assert found.schedule_gap.values.tolist() == list(FIGURE_GAPS)
        assert (every[0].values == every[1].values).all()
        first = 2000 * place if axis is both.axes[0] else 1000 * place
        assert float(found.regret.sel(schedule_gap=label, rounds=2)[0]) == first


def test_readings_share_the_runs_that_they_do_not_change(asked, tmp_path):
    """Would catch a reading that is told the runs of another one, and runs read again for each."""
    data = multiverse.Data({}.__getitem__, HORIZONS, 1000, tmp_path)
    swept, one = {}, BASE._replace(instance="one for all seeds")
    other = {"meter": "what carries data", "delay": "d_G"}
    for reading in (BASE, one, BASE._replace(**other), one._replace(**other)):
        run(multiverse.World(reading, data, swept))
    assert [problems(study) for study, _, _ in asked] == [[UNIFORM], [UNIFORM.fixed(0)]]
    run(multiverse.World(one, data, swept), horizon=10**5)
    assert [point.config.horizon for point in asked[-1][0].points] == [10**5]


def test_links_are_told_on_the_meter_of_the_reading():
    """Catches meters exchanged, links to a server that change, and a meter that is not there."""
    meters = {"meter": ["server", "bound", "used", "edges", "sac"]}
    links = xr.Dataset({"links": ("meter", [7, 10, 20, 30, 40])}, meters)
    alone = links.sel(meter=["server", "bound"])
    for meter, wanted in (
        ("edges", [7, 10, 10, 30, 30]),
        ("what carries data", [7, 20, 20, 40, 40]),
    ):
        own = world(meter=meter)
        told = own._answer(links, {})
        assert told.links.values.tolist() == wanted
        assert told.meter.values.tolist() == links.meter.values.tolist()
        assert own._answer(alone, {}).links.values.tolist() == [7, 10]
        ring = fmab.ddp_mab(1, "ring").exchange(50)
        five = fmab.hdp_mab(1, "5x1:complete").exchange(5)
        usual = {name: ring.on(name) for name in ("bound", "used")}
        with own.entered():
            counted = [ring.on("bound"), ring.on("used"), five.on("edges"), five.on("sac")]
            assert five.on("server") == 1
        carried = meter != "edges"
        assert counted == [usual["used" if carried else "bound"]] * 2 + [4 if carried else 10] * 2
        assert {name: ring.on(name) for name in usual} == usual == {"bound": 1250, "used": 1249}


def test_nothing_is_left_replaced():
    """Would catch rows of CLAIMS.md that are judged in another world, once one has failed here."""
    before = fmab.sweep, Exchange.on, claims_runs.gaps_of, claims_bounds.gaps_of
    other = world(**{name: values[-1] for name, values in READINGS.items()})
    with pytest.raises(KeyError), other.entered():
        assert claims_bounds.gaps_of is not before[3] and Exchange.on is not before[1]
        raise KeyError
    assert before == (fmab.sweep, Exchange.on, claims_runs.gaps_of, claims_bounds.gaps_of)


# --- which readings count -----------------------------------------------------------------------


def finding(value, verdict=HOLDS, condition="all", counted=True):
    number = Measured(value, value, value)
    return Finding(condition, "", (verdict,) * 3, {"x": number}, counted)


VARY = {name: values for name, values in READINGS.items() if name in ("gap", "delay", "meter")}


def test_a_reading_counts_only_where_it_changes_numbers():
    """Catches readings that cannot matter counted, two at once left out, another's verdict."""

    def ask(reading, horizons):
        # The delay changes nothing, the meter only a number if the gap is the own one.
        wide, carried = reading.gap == "1/16", reading.meter != "edges"
        failing = FAILS if wide and carried else HOLDS
        kinds = {T: failing if T > 10**4 else HOLDS for T in horizons}
        return [finding(T * (1 + wide) + carried, kind, f"T = {T}") for T, kind in kinds.items()]

    told = multiverse.judged(ask, HORIZONS, VARY)
    assert len(told) == 8 and all(reading.delay == reading.instance == ANY for _, reading in told)
    failed = {(T, r.gap, r.meter) for (T, r), outcome in told.items() if outcome.verdict == FAILS}
    assert failed == {("10⁵", "1/16", "what carries data")}


def test_horizons_are_readings_only_of_sentences_about_each():
    """Catches a comparison judged at one T, an own horizon counted thrice, several refused."""

    def each(reading, horizons):
        return [finding(T, condition=f"T = {T}") for T in horizons]

    def own(reading, horizons):
        return [finding(7.0)]

    def compared(reading, horizons):
        verdict = FAILS if len(horizons) > 1 else HOLDS
        return [finding(horizons[-1] / horizons[0], verdict)]

    def several(reading, horizons):
        return [finding(horizons[1] - horizons[0])]

    def partly(reading, horizons):
        return [finding(T, condition=f"T = {T}", counted=T > 10**4) for T in horizons]

    found = {
        ask: {T: o.verdict for (T, _), o in multiverse.judged(ask, HORIZONS, {}).items()}
        for ask in (each, own, compared, several, partly)
    }
    assert found[each] == {"10⁴": HOLDS, "10⁵": HOLDS}
    assert found[own] == found[several] == {ANY: HOLDS} and found[compared] == {ANY: FAILS}
    assert found[partly] == {"10⁴": "", "10⁵": HOLDS}
    told = [Told(Sentence("IV", "q", "m"), T, BASE, v) for T, v in found[partly].items()]
    assert multiverse.counts_of(told) == {Sentence("IV", "q", "m"): Counter({HOLDS: 1})}

    def refused(reading, horizons):
        if len(horizons) == 1:
            raise Busy("runs", "main", "wait")
        return [finding(7.0)]

    with pytest.raises(Busy):
        multiverse.judged(refused, HORIZONS, {})


def test_what_holds_under_some_conditions_is_no_verdict_that_holds():
    """Catches one failing condition told as true or open, and not contradicted as not decided."""
    for verdict, kinds in (
        (HOLDS, [HOLDS, HOLDS]), (OPEN, [HOLDS, OPEN]), (PART, [HOLDS, OPEN, FAILS]),
        (FAILS, [FAILS, OPEN]), (FAILS, [FAILS]), ("", []),
        (NOT_PROVED, [HOLDS, NOT_PROVED]), (FAILS, [NOT_CONTRADICTED, FAILS]),
        (NOT_CONTRADICTED, [HOLDS, NOT_CONTRADICTED]), (OPEN, [NOT_CONTRADICTED, OPEN]),
        (NOT_REACHED, [NOT_REACHED]), (PART, [NOT_REACHED, HOLDS]),
        (NOT_REACHED, [NOT_REACHED, OPEN]), (NOT_ATTAINED, [NOT_ATTAINED, OPEN]),
        (NOT_ATTAINED, [NOT_ATTAINED]), (PART, [NOT_ATTAINED, HOLDS]),
    ):  # fmt: skip
        assert multiverse.kind_of(kinds) == verdict


def test_rows_are_judged_where_their_section_leaves_a_reading_open(monkeypatch):
    """Catches Δ read otherwise in theorems, another row's findings, too many seeds, reruns."""
    seen = {}

    def row(section, asks=True):
        def judge(data):
            assert data.load("runs") == "of others" if asks else True
            if data.seeds == 1000:  # as CLAIMS.md has it
                assert data.reading == BASE
                return [finding(0, OPEN, f"T = {T}") for T in data.horizons]
            assert data.seeds == 200
            seen.setdefault(section, []).append(data.reading)
            places = (READINGS[name].index(value) for name, value in data.reading._asdict().items())
            value = sum(3**power * place for power, place in enumerate(places))
            verdict = HOLDS if data.reading.gap == "own" else FAILS
            return [finding(value, verdict, f"T = {T}") for T in data.horizons]

        return verdicts.Row(section, "words", section, judge, "")

    sections = ("IV-B, Theorem 2", "IV-B", "VII-A2")
    rows = [row(section) for section in sections]
    monkeypatch.setattr(claims, "ROWS", [*rows, row("V", asks=False)])
    monkeypatch.setattr(claims, "SETTLED", [])
    data = multiverse.Data({"runs": "of others"}.__getitem__, HORIZONS, 1000, None)
    told = multiverse.verdicts_of(data)
    count = Counter(each.sentence.section for each in told)
    # T x instance x delay; x meter; x gap, but where the instance's own is 1/16.
    assert count == dict(zip((*sections, "V"), (12, 24, 40, 2), strict=True))
    assert len(seen.pop("V")) == 3
    gaps = {section: {reading.gap for reading in own} for section, own in seen.items()}
    assert gaps == dict(zip(sections, ({"own"}, {"own"}, {"own", "1/16"}), strict=True))
    assert {(each.verdict, each.seeds) for each in told if each.own} == {(OPEN, 1000)}
    # One for each T.
    count = Counter(each.sentence.section for each in told if each.own)
    assert count == dict.fromkeys((*sections, "V"), 2)
    others = [each for each in told if not each.own]
    assert {each.verdict for each in others if each.reading.gap == "1/16"} == {FAILS}
    assert {each.verdict for each in others if each.reading.gap != "1/16"} == {HOLDS}
    assert {each.seeds for each in others} == {200}
    few = multiverse.verdicts_of(data, multiverse.QUICK)
    count = Counter(each.sentence.section for each in few)
    assert count == dict(zip((*sections, "V"), (2, 4, 8, 2), strict=True))


def test_settled_sentences_are_those_that_a_meter_changes(monkeypatch):
    """Catches a cost judged on one meter, theorems, which say theirs, and no links."""
    quotes = {
        "rather than fully connected or ring structure": (HOLDS, PART),
        # SAC's own messages; and figure 11 counts edges.
        "reduces the number of agent-to-agent links inside a component": None,
        "the communication cost gradually increases": None,
        "or the fully-decentralized setting(case 3)": None,
        "has the smallest communication cost": (HOLDS, HOLDS),
        r"$O(2(M-1)\log T$ & $O((M^2/2)\log T)$": (HOLDS, HOLDS),
        r"O( (c_2M\max_{q\in Q}\{d_G^q\} +c_1Q) \log T)": None,
        "the unbalanced agent distribution may cause a large delay": None,
        "significantly reduces the burden of the uplink": None,
    }
    rows = [row for row in claims.SETTLED if row.quote in quotes]
    assert len(rows) == len(quotes)
    monkeypatch.setattr(claims, "ROWS", [])
    monkeypatch.setattr(claims, "SETTLED", rows)
    told = multiverse.verdicts_of(multiverse.Data({}.__getitem__, HORIZONS, 40, None))
    found = {}
    for each in told:
        assert each.reading._replace(meter=ANY) == Reading(ANY, ANY, ANY, ANY) and each.T == ANY
        found.setdefault(each.sentence.quote, {})[each.reading.meter] = each.verdict
    wanted = {q: dict(zip(READINGS["meter"], v, strict=True)) for q, v in quotes.items() if v}
    assert found == wanted


# --- what is told -------------------------------------------------------------------------------


def made_up(number=60):
    """Returns readings of many sentences; the first holds always, the second never."""
    told = []
    for place in range(number):
        formula = rf"words number {place} that $\epsilon$ go on and on, \sum_{{k}}"
        plain = f"words number {place} without a formula, {'MMMM ' * 20}"
        plain = "words that two sentences share" if place in (10, 20) else plain
        sentence = Sentence(
            f"VII-{'ABC'[place % 3]}{place % 4}" if place % 2 else "VI-C2, Corollary 3",
            formula if place % 5 else plain,
            f"what is measured of {place}, which is told where the words are a formula",
        )
        kinds = (HOLDS, PART, OPEN, FAILS, "")
        for T, gap in itertools.product(("10⁴", "10⁵", "10⁶"), ("own", "1/16")):
            kind = kinds[3 * place] if place < 2 else kinds[(place + (T == "10⁵")) % 5]
            told.append(Told(sentence, T, Reading(gap, ANY, ANY, ANY), kind))
    return told


def test_shares_are_those_of_the_file(tmp_path):
    """Catches shares of another sentence, unjudged readings counted or as open, and of failures."""
    same = Sentence("IV", "q", "one"), Sentence("IV", "q", "another")
    told = [
        Told(same[0], T, Reading(gap, ANY, ANY, ANY), verdict, 1000 if gap == "own" else 200)
        for T, gap, verdict in (
            ("10⁴", "own", HOLDS), ("10⁴", "1/16", FAILS), ("10⁵", "own", HOLDS),
            ("10⁵", "1/16", OPEN), ("10⁶", "own", ""),
        )
    ]  # fmt: skip
    told += [Told(same[1], ANY, Reading(*[ANY] * 4), PART, 200), Told(same[1], "10⁶", BASE, "")]
    data = multiverse.Data({}.__getitem__, HORIZONS, 40, None)
    picture = multiverse_figures.picture_of(told, data, tuple(READINGS))
    common.save_rows(picture.rows, tmp_path / "multiverse.csv")
    share = multiverse.shares(tmp_path)
    assert {sentence: each.text for sentence, each in share.items()} == {
        same[0]: "holds in 2 of 4 readings, not decided in 1, does not hold in 1; "
        "200 seeds (1,000 as read here)",
        same[1]: "holds in 0 of 1 reading, holds in part in 1; 200 seeds",
    }
    assert {sentence: each.own for sentence, each in share.items()} == {
        same[0]: {"10⁴": HOLDS, "10⁵": HOLDS}, same[1]: {ANY: PART},
    }  # fmt: skip
    assert multiverse.shares(tmp_path / "nowhere") == {}
    assert [picture.table[0][kind] for kind in multiverse.KINDS] == [2, 0, 0, 0, 0, 0, 1, 1]
    # The gap turns a verdict at one T; what is open at the other is no other verdict, but with it T
    # turns one as well, and the gap those of another sentence.
    third = Sentence("V", "r", "a third")
    gaps = (("own", HOLDS), ("1/16", OPEN))
    undecided = [Told(third, ANY, Reading(gap, ANY, ANY, ANY), found) for gap, found in gaps]
    turns = dict.fromkeys(("T", "gap", "instance", "delay", "meter"), 0)
    assert multiverse.turned(told) == turns | {"gap": 1}
    assert multiverse.turned([*told, *undecided], undecided=True) == turns | {"T": 1, "gap": 2}
    (row,) = multiverse_figures.depending(told)
    assert (row["section"], row["open"], row["holds in"]) == ("IV", "T, gap", "2 of 4")
    assert "over five choices that the paper leaves open" in picture.caption
    few = multiverse_figures.picture_of(told, data, multiverse.QUICK).caption
    assert "over three choices" in few and "d of the d-regular graph (4)" in few
    assert "T = 10⁴ and 10⁵ slots, 40 seeds a configuration. They" in picture.caption
    many = multiverse.Data({}.__getitem__, HORIZONS, 1000, None)
    wanted = "200 seeds a configuration, 1000 where CLAIMS.md reads a sentence so. They are"
    assert wanted in multiverse_figures.picture_of(told, many, tuple(READINGS)).caption


@pytest.mark.as_users_see_it
def test_the_figure_can_be_read_at_both_widths(monkeypatch, tmp_path):
    """Catches labels off the page, too small or over each other, and bars that do the same."""
    kept, told = drawn(monkeypatch), made_up()
    data = multiverse.Data({}.__getitem__, HORIZONS, 40, None)
    picture = multiverse_figures.picture_of(told, data, tuple(READINGS))
    pictures.publish(picture, tmp_path)
    readable(kept, "multiverse", tmp_path)
    assert max(figure.get_figheight() for figure in kept.values()) < 9.2
    for name, least in (("multiverse", 3.2), ("multiverse_column", 1.9)):
        figure = kept[name]
        assert figure.axes[0].get_position().width * figure.get_figwidth() > least
    (axes,) = kept["multiverse"].axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert not any(re.search(r"[\\$]", label) for label in labels)
    for place in (1, 10, 20):
        assert any(f"what is measured of {place}, " in label for label in labels)
    assert any("words number 5 without" in label for label in labels)
    ends = [text.get_text() for text in axes.texts]
    for place, row in enumerate(picture.table):
        assert labels[place].startswith(f"{row['']}  {row['section']}")
        assert ends[place] == f"{row[HOLDS]}/{row['readings']}"
        bars = [b for b in axes.patches if abs(b.get_y() + b.get_height() / 2 - place) < 0.01]
        total = row["readings"] or 1
        widths = [100 * row[kind] / total for kind in multiverse.KINDS]
        assert [bar.get_width() for bar in bars] == pytest.approx(widths)
        ends_before = np.concatenate([[0.0], np.cumsum(widths)[:-1]])
        assert [bar.get_x() for bar in bars] == pytest.approx(ends_before)
        colours = [multiverse_figures.LOOKS[kind] for kind in multiverse.KINDS]
        assert [bar.get_facecolor() for bar in bars] == [to_rgba(colour) for colour in colours]
        hatched = [k for k, bar in zip(multiverse.KINDS, bars, strict=True) if bar.get_hatch()]
        assert hatched == [NOT_REACHED, NOT_CONTRADICTED, NOT_PROVED]


def test_claims_show_the_shares_of_their_sentences(monkeypatch, tmp_path):
    """Catches another row's share, a column without any, and another verdict than the row's."""
    judge = lambda data: [finding(1.0)]  # noqa: E731
    rows = [verdicts.Row("IV", f"words {i}", "what", judge, "fig04") for i in (0, 1)]
    for name, value in (("ROWS", rows), ("BOUNDS", rows[:1]), ("SETTLED", [])):
        monkeypatch.setattr(claims, name, value)
    data = verdicts.Data({}.__getitem__, [10**4], 20, None)
    share = {("IV", "words 1", "what"): multiverse.Share("holds in 3 of 4 readings", {ANY: HOLDS})}
    page = claims.judge(data, tmp_path, share)[0].read_text("utf-8")
    assert page.count("| see | [readings](multiverse.md) |") == 1
    assert "| fig04 | holds in 3 of 4 readings |" in page.split("words 1")[1].split("\n")[0]
    assert "| fig04 |  |" in page.split("words 0")[1].split("\n")[0]
    assert "readings" not in claims.judge(data, tmp_path)[0].read_text("utf-8")
    stale = {("IV", "words 1", "what"): multiverse.Share("holds in 0 of 4 readings", {ANY: OPEN})}
    with pytest.raises(ValueError, match="not decided at T = any.*must be holds, as found"):
        claims.judge(data, tmp_path, stale)


def test_a_share_stands_beside_what_its_own_reading_says_too():
    """Catches verdicts of another T, gap or run, and a short run that stops at one of no T."""
    found = [
        finding(1, HOLDS, "T = 10⁴, own gap"), finding(1, FAILS, "T = 10⁴, gap 1/16"),
        finding(1, OPEN, "T = 10⁵, own gap"), finding(1, FAILS, "T = 10⁵, own gap", counted=False),
    ]  # fmt: skip
    free = [finding(1, HOLDS, "M from 10 to 100"), finding(1, HOLDS, "M from 100 to 1000")]
    for own, beside in (
        ({"10⁴": HOLDS, "10⁵": OPEN}, found), ({ANY: OPEN}, found), ({"10⁴": HOLDS}, free),
    ):  # fmt: skip
        assert multiverse.Share("words", own).beside(beside) == "words"
    for own, beside in (
        ({"10⁴": OPEN}, found), ({"10⁵": FAILS}, found), ({ANY: PART}, found),
        ({"10⁴": OPEN}, free), ({"10⁴": HOLDS, "10⁵": HOLDS}, free),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="python -m experiments multiverse"):
            multiverse.Share("words", own).beside(beside)


def test_the_published_figure_is_of_the_sentences_of_claims():
    """Would catch a sentence that is missing, one that is there twice, and another order."""
    told = multiverse.read(FIGURES)
    assert len(set(told)) == len(told) > len(claims.ROWS)
    counts = multiverse.counts_of(told)
    sentences = [multiverse.sentence_of(row) for row in claims.ROWS]
    assert [s for s in sentences if s not in counts] == []
    lines = (FIGURES / "multiverse.md").read_text("utf-8").splitlines()
    rows = [line for line in lines if re.match(r"\| \d", line)]
    for number, (row, sentence) in enumerate(
        zip(rows, multiverse_figures.ordered(counts), strict=True), 1
    ):
        cells = [str(number), sentence.section, claims.quoted(sentence.quote)]
        assert row.startswith(f"| {' | '.join(cells)} |")
