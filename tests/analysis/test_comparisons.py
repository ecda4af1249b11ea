"""Comparisons of two runs: against SciPy's t-tests, by simulation, and in words."""

import hashlib
import itertools
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import xarray as xr
from refusals import refuses
from scipy import stats

import fmab_jax as fmab
from fmab_jax.analysis import comparisons, questions, summary
from fmab_jax.analysis.checks import check_result
from fmab_jax.analysis.costs import read_exposure

near = partial(pytest.approx, rel=1e-9, abs=0)


def run(values, root_seed=0, seeds=None, slot=1000, **attrs):
    """A result of one configuration that ends with these regrets."""
    values = np.asarray(values, float)
    curves = values[:, None] * np.linspace(0.5, 1, 3)
    return xr.Dataset(
        {"regret": (("seed", "time"), curves), "seeds": len(values)},
        {"seed": np.arange(len(values)) if seeds is None else seeds, "time": [10, 20, slot]},
        {"root_seed": root_seed, "title": "CDP-MAB", **attrs},
    )


def summarised(values, root_seed=0, **attrs):
    """The same, of which moments are kept."""
    part = summary.compute_moments(np.asarray(values, float)[:, None] * np.linspace(0.5, 1, 3))
    return xr.Dataset(
        {
            "regret_mean": ("time", part.mean),
            "regret_covariance": (("time", "time_2"), part.covariance),
            "seeds": ((), len(values)),
        },
        {"time": [10, 20, 1000]},
        {"root_seed": root_seed, "title": "CDP-MAB", **attrs},
    )


def regrets(mean, number, seed, shared=0.0):
    """Regrets with a common part that seeds share."""
    luck = np.random.default_rng(7).gamma(4.0, 1.0, number) / 4
    own = np.random.default_rng(seed).gamma(4.0, 1.0, number) / 4
    return mean * (shared * luck + (1 - shared) * own)


def test_common_seeds_are_paired_as_scipy_pairs_them():
    """Would catch an unpaired test of pairs, pairs by place, a wrong sign, level, or freedom."""
    a, b = regrets(20, 60, 1, 0.8), regrets(12, 60, 2, 0.8)
    order = np.random.default_rng(0).permutation(60)
    # Only the second half of the first run has partners; two pairs are enough.
    for mine, other in (
        (run(b), (a, b)),
        (run(b[order], seeds=order), (a, b)),
        (run(b, seeds=np.arange(30, 90)), (a[30:], b[:30])),
        (run(b, seeds=np.arange(58, 118)), (a[58:], b[:2])),
    ):
        found, known = fmab.compare(run(a), mine, level=0.9), stats.ttest_rel(*other)
        assert found.method == "paired" and found.seeds == (len(other[0]),) * 2
        assert found.difference == pytest.approx((other[0] - other[1]).mean(), rel=1e-12)
        ends = tuple(known.confidence_interval(0.9))
        assert (found.lower, found.upper) == pytest.approx(ends, rel=1e-9)
        assert found.p_value == found.adjusted == near(known.pvalue)
        means = [participant.mean for participant in found.participants]
        assert means == pytest.approx([half.mean() for half in other], rel=1e-12)


@pytest.mark.parametrize(
    "how", [{"root_seed": 1}, {"seeds": np.arange(100, 125)}], ids=["other root", "other seeds"]
)
def test_other_seeds_are_compared_as_welch_does(how):
    """Would catch a pooled variance, or pairs of seeds that only look alike."""
    a, b = regrets(20, 40, 1), 3 * regrets(12, 25, 2)
    found = fmab.compare(run(a, agents=5), run(b, arms=3, **how))
    known = stats.ttest_ind(a, b, equal_var=False)
    assert found.method == "Welch" and found.seeds == (40, 25)
    ends = tuple(known.confidence_interval(0.95))
    assert (found.lower, found.upper) == pytest.approx(ends, rel=1e-9)
    assert found.p_value == near(known.pvalue)
    # Of summaries under different root seeds as well: moments are all that Welch needs.
    if how.get("root_seed"):
        kept = fmab.compare(summarised(a), summarised(b, **how))
        assert kept.method == "Welch" and kept.p_value == near(known.pvalue)


def test_the_bound_of_two_summaries_is_reached():
    """Would catch seeds taken for independent that are shared: one falls as the other rises."""
    a = regrets(20, 400, 1, 0.5)
    worst = stats.ttest_rel(a, 2 * a.mean() - a)
    opposite = fmab.compare(summarised(a), summarised(2 * a.mean() - a))
    assert opposite.method == "bound"
    assert opposite.upper == pytest.approx(worst.confidence_interval(0.95)[1], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("method", ["paired", "Welch"])
def test_the_percentage_agrees_with_its_test(method):
    """Would catch a delta method, or an interval that contradicts the p-value."""
    other = {"root_seed": int(method == "Welch")}
    for seed, gap in itertools.product(range(8), (0.0, 0.3, 0.6, 4.0)):
        a, b = regrets(12 + gap, 30, 10 + seed, 0.7), regrets(12, 30, 50 + seed, 0.7)
        found = fmab.compare(run(a), run(b, **other))
        assert found.method == method
        inside = found.percent_lower <= 0 <= found.percent_upper
        assert inside == (found.lower <= 0 <= found.upper) == (found.p_value >= 0.05)
        assert found.percent == pytest.approx(100 * (a.mean() / b.mean() - 1), rel=1e-9)
    # Each end is a ratio r at which the test of "a - r b = 0" is exactly at its level.
    if method == "paired":
        for end in (found.percent_lower, found.percent_upper):
            gone = stats.ttest_rel(a, (1 + end / 100) * b)
            assert gone.pvalue == pytest.approx(0.05, rel=1e-6)


def test_where_all_seeds_agree_nothing_is_uncertain():
    """Would catch 0 / 0: the same run twice, a constant difference, and no regret at all."""
    a = regrets(20, 10, 1)
    same = fmab.compare(run(a), run(a))
    assert (same.difference, same.lower, same.upper, same.p_value) == (0, 0, 0, 1)
    assert (same.first, same.second) == ("the first run", "the second run")
    whole = np.arange(1.0, 11.0)
    shifted = fmab.compare(run(whole + 2), run(whole), labels=("a", "b"))
    assert (shifted.lower, shifted.upper, shifted.p_value) == (2, 2, 0)
    free = fmab.compare(run(a), run(0 * a), labels=("a", "b"))
    assert np.isnan([free.percent, free.percent_lower, free.percent_upper]).all()
    assert free.sentence.startswith(f"a costs {a.mean():.0f} more regret than b [")


@pytest.mark.parametrize(
    "given, ends",
    [
        # one, two, half of one, half of two: the least of the first over the most of the second.
        ((10, 5, 2, 1), (8 / 6, 12 / 4)),
        ((1, 5, 2, 1), (-1 / 4, 3 / 4)),
        ((2, 5, 2, 1), (0, 1)),
        ((3, 5, 0, 0), (0.6, 0.6)),
        ((3, 5, 1, 5), (np.nan, np.nan)),
        ((3, 5, 1, 6), (np.nan, np.nan)),
    ],
)
def test_ends_of_a_bounded_ratio_by_hand(given, ends):
    """Would catch the wrong divisor at either end, also where the least is 0 or below."""
    assert comparisons._bound_ratio(*given) == pytest.approx(ends, rel=1e-14, nan_ok=True)


@pytest.mark.parametrize(
    "seeds, first, second, method, freedom",
    [
        # Of unequal numbers the smaller one decides.
        ((40, 5), {}, {}, "bound", 4),
        ((5, 40), {}, {}, "bound", 4),
        # A stop that depends on the results leaves no independence to use.
        ((40, 40), {}, {"root_seed": 1, "looks": 2}, "bound", 39),
        ((40, 40), {"looks": 1}, {"root_seed": 1}, "bound", 39),
        ((40, 40), {}, {"root_seed": 1}, "Welch", None),
    ],
)
def test_which_error_two_summaries_have(seeds, first, second, method, freedom):
    """Would catch degrees of freedom of the longer run, and Welch's test after a stop."""
    a, b = regrets(20, seeds[0], 1), regrets(12, seeds[1], 2)
    found = fmab.compare(summarised(a, **first), summarised(b, **second), level=0.9)
    assert found.method == method and found.seeds == seeds
    if freedom:
        looks = max(1, first.get("looks", 0) + second.get("looks", 0))
        errors = [each.std(ddof=1) / len(each) ** 0.5 for each in (a, b)]
        half = stats.t.ppf(1 - 0.05 / looks, freedom) * sum(errors)
        assert found.upper - found.difference == pytest.approx(half, rel=1e-9)
        due = min(1, looks * 2 * stats.t.sf((a.mean() - b.mean()) / sum(errors), freedom))
        assert found.p_value == near(due)


def test_holm_adjusts_as_written_down():
    """Would catch Bonferroni, values out of order, and adjusted values that fall."""
    values = [0.01, 0.04, 0.03, 0.005]
    one = fmab.compare(GOOD, GOOD)
    found = comparisons.adjust_p_values([replace(one, p_value=p) for p in values])
    # By hand: 4 x 0.005, 3 x 0.01, 2 x 0.03, then 0.04 is raised to 0.06.
    assert [each.adjusted for each in found] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [each.p_value for each in found] == values
    assert comparisons.adjust_p_values([replace(one, p_value=0.7)] * 3)[0].adjusted == 1
    assert comparisons.adjust_p_values([]) == []


def grid(values, **axes):
    """A sweep over axes, with the regrets of each configuration [..., seed]."""
    dims = [*axes, "seed", "time"]
    coords = {
        name: (name, labels, {"symbol": name[0], "none": "no limit"})
        for name, labels in axes.items()
    }
    shape = [len(labels) for labels in axes.values()]
    return xr.Dataset(
        {
            "regret": (dims, np.asarray(values, float)[..., None]),
            "seeds": (list(axes), np.full(shape, np.shape(values)[-1])),
        },
        {**coords, "seed": np.arange(np.shape(values)[-1]), "time": [1000]},
        {"root_seed": 0},
    )


def test_few_configurations_are_all_compared():
    """Would catch a pair left out, or the labels of another."""
    values = np.stack([regrets(mean, 20, mean, 0.5) for mean in (10, 12, 15)])
    found = fmab.compare_all(grid(values, epsilon=[0.1, 1, 3]))
    told = [(each.first, each.second) for each in found]
    assert told == [("e = 0.1", "e = 1"), ("e = 0.1", "e = 3"), ("e = 1", "e = 3")]
    pairs = itertools.combinations(values, 2)
    expected = np.array([stats.ttest_rel(a, b).pvalue for a, b in pairs])
    assert [each.p_value for each in found] == near(expected)
    assert all(each.adjusted >= each.p_value for each in found)


def test_of_many_one_parameter_varies_at_a_time():
    """Would catch a reference that depends on the results, and parameters mixed up."""
    labels = np.array([0.1, "none", 2], object)
    labels[0], labels[2] = 0.1, 2
    values = np.random.default_rng(0).gamma(4, 2, (3, 2, 20))
    data = grid(values, epsilon=labels, participation=[0.2, 1.0])
    found = fmab.compare_all(data)
    assert [(each.first, each.second, each.at) for each in found] == [
        ("e = 0.1", "no limit", "p = 1"),
        ("e = 2", "no limit", "p = 1"),
        ("p = 0.2", "p = 1", "no limit"),
    ]
    assert found[2].difference == pytest.approx((values[1, 0] - values[1, 1]).mean(), rel=1e-9)
    # A swept horizon stays at its end: regret at another T is another question.
    late = data.rename(epsilon="horizon").assign_coords(horizon=[1, 2, 3])
    assert [each.first for each in fmab.compare_all(late)] == ["p = 0.2"]


GOOD = run(np.arange(1.0, 9.0))


@pytest.mark.parametrize(
    "name", "horizon agents arms problem spread instance_gap fixed_instance rewards".split()
)
def test_other_questions_are_never_compared(name):
    """Would catch "M = 5 costs less than M = 10", which is no saving, among the comparisons."""
    values = np.random.default_rng(0).gamma(4, 2, (2, 2, 20))
    found = fmab.compare_all(grid(values, **{name: [1, 2]}, participation=[0.2, 1.0]))
    assert [(c.first, c.second) for c in found] == [("p = 0.2", "p = 1")] * 2
    assert fmab.compare_all(grid(values[0], **{name: [1, 2]})) == []


def test_runs_of_other_questions_are_told():
    """Would catch pairs that are dropped without a word, or compared across sizes."""
    made = {n: run(regrets(10, 20, i), agents=5 + i // 2) for i, n in enumerate("abcd")}
    with pytest.warns(UserWarning, match="other horizons, sizes or problems are not compared"):
        found = fmab.compare_all(made)
    assert [(c.first, c.second) for c in found] == [("a", "b"), ("c", "d")]
    made = {n: run(regrets(10, 20, i), agents=5 + (n in "bc")) for i, n in enumerate("abcde")}
    with pytest.warns(UserWarning, match="are not compared"):
        told = ["".join((c.first, c.second)) for c in fmab.compare_all(made)]
    assert told == ["ad", "ae", "bc", "de"]  # as the labels are given


def test_an_unknown_root_seed_is_not_zero():
    """Would catch two foreign files that are paired by the numbers of their seeds."""
    a, b = regrets(20, 40, 1), regrets(12, 40, 2)
    one, other = (run(values).drop_attrs() for values in (a, b))
    found = fmab.compare(one, other)
    assert found.method == "Welch" and "a root seed is unknown" in found.method_note
    assert found.p_value == near(stats.ttest_ind(a, b, equal_var=False).pvalue)
    assert fmab.compare(one, run(b)).method == "Welch"


def test_one_common_seed_makes_no_pairs():
    """Would catch runs that are called independent, and share a seed."""
    a, b = regrets(20, 40, 1), regrets(12, 30, 2)
    found = fmab.compare(run(a), run(b, seeds=np.arange(39, 69)))
    half = stats.t.ppf(0.975, 29) * (stats.sem(a) + stats.sem(b))
    assert (found.method, found.seeds) == ("bound", (40, 30))
    assert found.upper - found.difference == pytest.approx(half, rel=1e-9)
    assert "one seed is common to both" in found.method_note


def with_means(values, means, law="bernoulli", **more):
    """A run on fixed means."""
    means = np.asarray(means, float)
    rows = means[:1] if (means == means[:1]).all() else means  # as a study keeps them
    digest = hashlib.sha256(np.ascontiguousarray(rows).tobytes()).hexdigest()
    problem = {"means": digest, "rewards": {"law": law}}
    study = {"axes": [], "algorithm": "cdp", "problem": problem, "root_seed": 0}
    made = run(values, study=json.dumps(study), **more)
    return made.assign(means=(("row", "arm"), means))


def test_only_runs_on_the_same_means_are_paired():
    """Would catch agents in another order paired seed by seed, and other problems compared."""
    a, b = regrets(20, 40, 1, 0.8), regrets(12, 40, 2, 0.8)
    means = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.2]])
    same = fmab.compare(with_means(a, means), with_means(b, means))
    assert same.method == "paired"
    # The same rewards of an agent, but not of all of them together.
    other = means.copy()
    other[0] = [0.1, 0.9]
    for unlike in (other, means[:2], 0.5 * means, means[[2, 0, 1]]):
        with pytest.raises(ValueError, match=r"^second\.problem='.*: must be .*, the first's; "):
            fmab.compare(with_means(a, means), with_means(b, unlike))


LOW, HIGH = ([0.9, 0.2, 0.1], [0.9, 0.8, 0.1])


def of_sweep(made, values, **place):
    """One configuration of a sweep of which nothing was computed, with these regrets."""
    cell = made.isel(place)
    kept = {name: cell[name] for name in cell.coords if not cell[name].ndim}
    return run(values, **cell.attrs).assign_coords(kept)


def test_problems_are_known_by_what_their_labels_stand_for(uncomputed):
    """Would catch two problems under one label that are paired, and one under two refused."""
    how = {"epsilon": 1, "horizon": 1000, "seeds": 2, "times": 3}
    low, high = (fmab.Problem(means, agents=4) for means in (LOW, HIGH))
    first = uncomputed("cdp", {"easy": low, "hard": high}, **how)
    second = uncomputed("cdp", [high, low], **how)
    third = uncomputed("cdp", {"easy": high, "hard": low}, **how)
    a, b = regrets(20, 40, 1, 0.8), regrets(12, 40, 2, 0.8)
    easy = of_sweep(first, a, problem=0)
    assert str(easy.problem.values) == "easy"
    for made, place in ((second, 1), (third, 1)):
        assert fmab.compare(easy, of_sweep(made, b, problem=place)).method == "paired"
        with pytest.raises(ValueError, match=r"^second\.problem='[0-9a-f]{64}': must be [0-9a-f]"):
            fmab.compare(easy, of_sweep(made, b, problem=0))
    # A run of its own on the same means, too.
    alone = with_means(b, [LOW], agents=4)
    assert fmab.compare(easy, alone).method == "paired"


def test_laws_are_known_by_what_they_are(uncomputed):
    """Would catch a law in words that is never another than a table, and a label that is."""
    how = {"epsilon": None, "horizon": 1000, "seeds": 2, "times": 3, "agents": 4, "arms": 3}
    swept = uncomputed("cdp", rewards=["gaussian:0.1", "gaussian:0.2", "bernoulli"], **how)
    narrow, wide, coins = (of_sweep(swept, regrets(20, 40, 1, 0.8), rewards=i) for i in range(3))
    for law, same in (("gaussian:0.1", narrow), ("gaussian:0.2", wide), ("bernoulli", coins)):
        alone = uncomputed("cdp", rewards=law, **how)
        other = run(regrets(12, 40, 2, 0.8), **alone.attrs)
        assert fmab.compare(same, other).method == "paired"
        for unlike in (each for each in (narrow, wide, coins) if each is not same):
            refuses(r"^second\.rewards=", fmab.compare, unlike, other)
            refuses(r"^second\.rewards=", fmab.compare, other, unlike)


def test_a_fixed_instance_is_known_by_its_seeds(uncomputed):
    """Would catch instances of other root seeds for one."""
    how = {"horizon": 1000, "seeds": 2, "times": 3, "agents": 4, "arms": 3}
    a, b = regrets(20, 40, 1, 0.8), regrets(12, 40, 2, 0.8)
    seven, same, other_root = (
        of_sweep(uncomputed("cdp", epsilon=e, fixed_instance=7, root_seed=root, **how), values)
        for e, root, values in ((1, 0, a), (2, 0, b), (1, 3, b))
    )
    assert fmab.compare(seven, same).method == "paired"
    with pytest.raises(ValueError, match=r"^second\.problem='the instance of seed 7 under root se"):
        fmab.compare(seven, other_root)
    # Means that each seed draws are no instance.
    with pytest.raises(ValueError, match=r"^second\.(problem|fixed_instance)="):
        fmab.compare(seven, of_sweep(uncomputed("cdp", epsilon=1, **how), b))


VIEWS = ("leak_sum", "leak_sum_delta", "leak_actions", "leak_actions_delta")
# Leaks that differ; and those that differ in other views than that of messages.
JOINED = {
    "epsilon": [fmab.cdp_mab(0.5), fmab.cdp_mab(2.0)],
    "trim": [fmab.cdp_mab(0.25), fmab.cdp_mab(0.25, trim=0.25)],
    "delta": [fmab.kl_se(1, mechanism="gaussian", delta=delta) for delta in (1e-6, 1e-3)],
}


@pytest.mark.parametrize("defaults", [False, True], ids=["old defaults", "new defaults"])
@pytest.mark.parametrize("case", JOINED)
def test_joined_runs_keep_their_leaks(case, defaults, uncomputed):
    """Would catch the first one's leak, in any view, its trust, ledger or epsilon told of both."""
    problem = fmab.Problem.uniform(agents=4, arms=5)
    runs = [fmab.simulate(algorithm, problem, 300, 2, times=3) for algorithm in JOINED[case]]
    due = [fmab.add_leaks(run) for run in runs]
    for dim in (case, "who"):
        with xr.set_options(use_new_combine_kwarg_defaults=defaults):
            data = xr.concat(runs, xr.DataArray([0.5, 2.0], dims=dim, name=dim))
        frame = fmab.table(fmab.add_leaks(data))
        assert data.leak_messages.dims == (dim,)
        for name in ("leak_messages", "leak_messages_delta"):
            assert frame[name].tolist() == data[name].values.tolist() == [run[name] for run in due]
        assert not {"epsilon", "epsilon_message"} & {*check_result(data).attrs}
        for name in VIEWS:
            for leak, run in zip(frame[name], due, strict=True):
                assert leak == float(run[name]) or (defaults and np.isnan(leak)), name
        for place, run in enumerate(due):
            told = read_exposure(check_result(data).isel({dim: place}))
            assert told == read_exposure(run) or (defaults and told.trust == told.observation == "")
            row = frame.loc[place]
            assert (row.leak_messages, row.leak_view, row.trust) == (
                told.leak,
                told.observation,
                told.trust,
            )


def test_seeds_of_runs_joined_unseen_tell_no_leak():
    """Would catch two epsilons joined along seed, and told with the first one's leak."""
    problem = fmab.Problem.uniform(agents=4, arms=5)
    first, other, more = (
        fmab.simulate(fmab.cdp_mab(epsilon), problem, 300, seeds)
        for epsilon, seeds in ((0.5, 3), (2.0, range(3, 6)), (0.5, range(3, 6)))
    )
    for kept, compat in (("all", "equals"), ("minimal", "override")):
        # As xarray will by default: the first one's attributes, whatever the others are.
        coords = "different" if compat == "equals" else "minimal"
        how = {"dim": "seed", "coords": coords, "compat": compat, "data_vars": kept}
        joined = xr.concat([first, other], combine_attrs="override", **how)
        for data in (joined, joined.drop_vars("seeds")):
            found = fmab.compare(data, first)
            assert np.isnan(found.participants[0].leak) and found.participants[1].leak == 2.0
            assert (found.first, found.second) == ("the first run", "ε = 0.5")
            assert found.participants[0].trust == found.participants[0].observation == ""
        assert fmab.table(joined).leak_messages.isna().all()
        assert np.isnan(fmab.add_leaks(joined).leak_sum) and "" in set(fmab.table(joined).trust)
        assert fmab.plot_runs({"a": joined, "b": first}).get_label()
    how = {"dim": "seed", "coords": "different", "compat": "equals", "data_vars": "all"}
    both = xr.concat([first, other], combine_attrs="drop_conflicts", **how)
    assert fmab.table(both).leak_messages.isna().all()
    whole = xr.concat([first, more], combine_attrs="drop_conflicts", **how)
    table = fmab.table(whole)
    assert table[["leak_messages", "leak_messages_delta"]].values.tolist() == [[2.0, 0.0]]


@pytest.mark.parametrize("factor", [1e300, np.inf])
def test_regret_whose_squares_are_no_numbers_is_refused_by_name(factor):
    """Would catch intervals of infinite width, and a traceback."""
    huge = GOOD.assign(regret=GOOD.regret * factor)
    for first, second, side in ((huge, GOOD, "first"), (GOOD, huge, "second")):
        refuses(f"^{side}.regret=.*: must be finite", fmab.compare, first, second)
    refuses(r"^runs\['b'\].*: must be finite", fmab.compare_all, {"a": GOOD, "b": huge})


@pytest.mark.parametrize("roots", [(0, 0), (0, 1)])
@pytest.mark.parametrize("scale", [2.0**400, 2.0**-400])
def test_a_unit_changes_no_comparison(scale, roots):
    """Would catch powers of large or small regrets that end in infinity, 0 or an OverflowError."""
    values = [regrets(20, 40, 1, 0.8), regrets(14, 25, 2, 0.8)]
    plain, scaled = (
        fmab.compare(*(run(unit * x, root) for x, root in zip(values, roots, strict=True)))
        for unit in (1.0, scale)
    )
    names = ("percent", "percent_lower", "percent_upper", "p_value", "method")
    assert [getattr(scaled, n) for n in names] == [getattr(plain, n) for n in names]
    assert scaled.lower == scale * plain.lower and plain.percent_lower < plain.percent_upper


def test_labels_of_ones_own_stand_for_the_sizes_that_the_study_states():
    """Would catch a label read as a number of agents, and runs of other sizes that are compared."""
    named = {"agents": {"few": 4, "many": 6}, "arms": 5, "horizon": 500, "seeds": 4}
    data = fmab.sweep(fmab.uniform_play, **named)
    assert questions.read_question(data.sel(agents="many"))["agents"] == 6
    alone = fmab.simulate(fmab.ucb1(), fmab.Problem.uniform(4, 5), 500, 4)
    assert fmab.compare(alone, data.sel(agents="few")).seeds == (4, 4)
    with pytest.raises(ValueError, match=r"^second\.agents=6: must be 4, the first's"):
        fmab.compare(alone, data.sel(agents="many"))


def test_results_count_the_seeds_that_they_hold():
    """Would catch selected or joined seeds counted as those of one run, in table and comparison."""
    problem = fmab.Problem.uniform(agents=4, arms=5)
    runs = [fmab.simulate(fmab.ucb1(), problem, 300, seeds) for seeds in (6, range(6, 9), 9)]
    first, second, whole = runs
    joined = xr.concat([first, second], "seed", data_vars="all")
    other = fmab.simulate(fmab.uniform_play(), problem, 300, 9)
    for data in (joined, joined.isel(seed=slice(5))):
        number = data.sizes["seed"]
        found = fmab.compare(data, other)
        expected = fmab.compare(whole.isel(seed=slice(number)), other)
        assert found.seeds == expected.seeds == (number, number)
        assert (found.difference, found.lower) == (expected.difference, expected.lower)
    table, expected = (fmab.table(data) for data in (joined, whole))
    assert table.seeds[0] == 9 and table.regret_upper[0] == expected.regret_upper[0]
    # Joined as xarray will by default, the variable has the number of one run.
    few = first.isel(seed=slice(3)).assign(seeds=3)
    minimal = xr.concat([few, second], "seed", data_vars="minimal")
    assert int(minimal.seeds) == 3 and fmab.table(minimal).seeds[0] == 6
    repeated = xr.concat([first, first], "seed", data_vars="all")
    refuses("^data.seed='repeated': must be distinct; ", fmab.table, repeated)
