"""What comes out besides the usual: every algorithm, sweeps, stores, summaries, plug-ins."""

import contextlib
import functools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import quick
import sizes
import xarray as xr
from refusals import refuses

import fmab_jax as fmab
from fmab_jax.algorithms.base import ALGORITHMS, load_plugin
from fmab_jax.parameters import UNSET, parameters_of
from fmab_jax.parts import plugins
from fmab_jax.parts.outputs import OUTPUTS, Accumulator
from fmab_jax.parts.outputs.pulls import PULLS
from fmab_jax.run import configs, outputs, resources
from fmab_jax.sweeps.exports import tidy_tables

ROOT = Path(__file__).parents[2]
ALL = ["regret_by_agent", "pulls", "fairness", "bits_sent"]
MEANS = np.array([0.9, 0.5, 0.2])
GAPS = MEANS.max() - MEANS
AGENTS = sizes.SMALL["agents"]


def made(name, **more):
    """Returns an algorithm with the parameters that must be given."""
    owner = ALGORITHMS.shipped[name]
    request = {n: item.suggested for n, item in parameters_of(owner).items()}
    needed = {n: value for n, value in request.items() if value is not UNSET}
    graph = {"graph": "ring"} if "graph" in parameters_of(owner) else {}
    needed = {n: v for n, v in needed.items() if n not in ("epsilon_message",)}
    return owner(**{**needed, **graph, **more})


# One of each loop by default, and the other value of a parameter that decides how it goes.
LOOPS = [
    *(("cdp", {}), ("cdp", {"participation": 0.5}), ("cdp", {"rounds": 1}), ("ddp", {})),
    *(("single", {}), ("ucb1", {}), ("ucb1", {"pooled": True}), ("dp_imed", {"secure": True})),
]
CASES = LOOPS + [(name, {}) for name in ALGORITHMS.shipped if (name, {}) not in LOOPS]


@pytest.mark.parametrize("case", quick.only(CASES, *LOOPS), ids=str)
def test_outputs_add_up_and_change_nothing(case):
    """Would catch slots that are counted twice or not at all, or padding among the agents."""
    name, more = case
    algorithm, problem = made(name, **more), fmab.Problem(MEANS, AGENTS)
    options = dict(horizon=1500, seeds=8, times=7)
    data = fmab.simulate(algorithm, problem, outputs=ALL, **options)
    if not more:
        plain = fmab.simulate(algorithm, problem, **options)
        for variable in plain.data_vars:
            np.testing.assert_array_equal(data[variable], plain[variable], variable)
    assert data.regret_by_agent.dims == ("seed", "time", "agent")
    assert data.pulls.dims == ("seed", "arm")
    total = data.regret_by_agent.sum("agent")
    np.testing.assert_allclose(total, data.regret, rtol=1e-12)
    np.testing.assert_allclose(data.pulls.sum("arm"), AGENTS * 1500, rtol=1e-12)
    assert (data.pulls >= 0).all()
    np.testing.assert_allclose(data.pulls @ xr.DataArray(GAPS, dims="arm"), data.regret[:, -1])
    x = data.regret_by_agent[:, -1].values
    jain = [sum(row) ** 2 / (len(row) * sum(v * v for v in row)) if any(row) else 1 for row in x]
    np.testing.assert_allclose(data.fairness, jain, rtol=1e-12)
    bits = algorithm.number_bits(len(MEANS))
    np.testing.assert_array_equal(data.bits_sent, data.numbers_sent * bits)


def test_pulls_and_regret_of_each_agent_are_those_of_a_run_worked_out_by_hand():
    """Would catch agents that wait on another's arm, or regret in another agent's column."""
    means = np.array([[1.0, 0.0, 0.0]] * 3 + [[0.0, 1.0, 0.0]])
    algorithm = fmab.ddp_mab(None, "path")
    data = fmab.simulate(algorithm, fmab.Problem(means), 1000, 1, times=[1000], outputs=ALL)
    wait, waiting = algorithm.exchange(4).wait, float(data.waiting_regret[0, -1])
    # Means over agents: 3/4, 1/4, 0.
    assert wait > 0 and waiting == pytest.approx(0.5 * wait * float(data.rounds_made[0]))
    item = data.regret_by_agent[0, -1].values
    np.testing.assert_allclose(item - item[0], [0, 0, 0, waiting], atol=1e-9)
    pulls = data.pulls[0].values
    # All arms are explored alike; then agent 3 waits on the middle one, and all play the first.
    assert pulls[1] - pulls[2] == pytest.approx(float(data.rounds_made[0]) * wait)
    assert pulls[0] == 4000 - pulls[1] - pulls[2]


GRID = {
    **{"agents": [3, 5], "arms": [3, 4], "horizon": 600, "epsilon": 1.0, "graph": "ring"},
    **{"seeds": 12, "times": 5, "progress": False},
}


@functools.cache
def swept(store=None, keep="curves"):
    """Returns a sweep over agents and arms with all outputs."""
    return fmab.sweep(fmab.ddp_mab, outputs=ALL, store=store, keep=keep, **GRID)


def test_a_sweep_has_the_outputs_of_its_runs(tmp_path):
    """Would catch another cell's agents or arms, or numbers where there is no agent."""
    data, current = swept(), swept(tmp_path / "s")
    for agents, arms in ((3, 4), (5, 3)):
        cell = data.sel(agents=agents, arms=arms)
        problem = fmab.Problem.uniform(agents, arms)
        run = fmab.simulate(fmab.ddp_mab(1.0, "ring"), problem, 600, 12, times=5, outputs=ALL)
        for name in ALL:
            part = {dim: slice(run.sizes[dim]) for dim in run[name].dims}
            np.testing.assert_array_equal(cell[name].isel(part), run[name])
        assert np.isnan(cell.regret_by_agent[..., agents:]).all()
        assert np.isnan(cell.pulls[..., arms:]).all()
    lazy = fmab.open_sweep(tmp_path / "s").chunk(agents=1, seed=5)
    for name in ALL:
        np.testing.assert_array_equal(current[name], data[name])
        np.testing.assert_array_equal(lazy[name], data[name])
    opened = fmab.open_sweep(tmp_path / "s")
    part = {"agents": 1, "arms": slice(1, None), "seed": [7, 2], "time": [3, 0], "agent": 4}
    result, expected = (item.regret_by_agent.isel(part) for item in (opened, data))
    np.testing.assert_array_equal(result, expected)


def test_a_summary_has_means_and_variances_of_outputs():
    """Would catch a variance over n, moments of another slot or agent, and padding in a mean."""
    data, summary = swept(), swept(keep="summary")
    for name in ALL:
        assert summary[f"{name}_mean"].dims == tuple(d for d in data[name].dims if d != "seed")
        mean, variance = data[name].mean("seed", skipna=False), data[name].var("seed", ddof=1)
        np.testing.assert_allclose(summary[f"{name}_mean"], mean, rtol=1e-12)
        # The least and the largest regret of an agent differ by rounding alone at some places.
        expected = variance.where(~np.isnan(mean))
        np.testing.assert_allclose(summary[f"{name}_variance"], expected, rtol=1e-7, atol=1e-12)
    table, other = fmab.table(summary), fmab.table(data)
    np.testing.assert_array_equal(table.fairness, summary.fairness_mean.values.reshape(-1))
    np.testing.assert_allclose(table.fairness, other.fairness, rtol=1e-12)
    np.testing.assert_allclose(table.bits_sent_upper, other.bits_sent_upper)


@functools.cache
def page(name="own_output"):
    """Returns what the blocks of a page define."""
    text = (ROOT / f"docs/{name}.md").read_text("utf-8")
    space = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
        exec(block, space)
    return space


def test_outputs_of_the_page_do_what_it_says():
    """Would catch a page whose code fails, rows that are not agents, and a wrong shape."""
    own, problem = page()["STRETCH"], fmab.Problem(MEANS, AGENTS)
    request = [own, page()["TRIED"], "pulls"]
    data = fmab.simulate(fmab.cdp_mab(None), problem, 10**4, 2, outputs=request)
    assert data.longest_stretch.shape == (2, AGENTS) and (data.arms_tried == 3).all()
    # The longest is the last one, in which all play the arm that is left.
    alone = (data.pulls[:, 0] - data.pulls[:, 1]) / AGENTS
    assert (data.longest_stretch[:, 0] == alone).all() and (alone < 10**4).all()
    flat = replace(own, dims=())
    with pytest.raises(ValueError, match=r"stretch\.of=an array \(2, 4\): must be \[seed\]"):
        fmab.simulate(fmab.cdp_mab(None), problem, 10**4, 2, outputs=[flat])
    options = dict(horizon=99, seeds=2, store="never", outputs=[own])
    with pytest.raises(ValueError, match="outputs='longest_stretch': must be known here"):
        fmab.sweep(fmab.cdp_mab(1.0), problem, **options)


@pytest.mark.parametrize("algorithm", [fmab.cdp_mab(None), fmab.ucb1()], ids=["alike", "apart"])
def test_an_accumulator_of_the_page_reads_the_own_gaps_of_each_agent(algorithm):
    """Would catch a row for agents that act alike, and gaps to the arm that is best on average."""
    means = np.clip(MEANS + np.linspace([-0.8, 0.4, 0.0], 0.0, AGENTS), 0.0, 1.0)
    request = [page()["LATE"], "own_regret_by_agent"]
    options = {"seeds": 2, "times": [150, 300], "outputs": request}
    data = fmab.simulate(algorithm, fmab.Problem(means), 300, **options)
    late = data.own_regret_by_agent.diff("time")[:, 0]
    np.testing.assert_allclose(data.late_own_regret, late, rtol=1e-9)
    assert np.ptp(late.values, axis=1).min() > 1.0


WIDE = {"problem": fmab.Problem.uniform(5, 10), "horizon": 10**4, "epsilon": [0.5, 1.0]}
WIDE |= {"progress": False, "times": 5}


def test_the_reduction_of_the_page_is_that_of_all_seeds(monkeypatch):
    """Would catch seeds that are left out or added up twice, or another configuration's."""
    risk = page("own_reduction")["RISK"]
    curves = fmab.sweep("cdp", seeds=200, **WIDE)
    worst = np.sort(curves.regret.values[:, :, -1], axis=1)[:, ::-1]
    request = {"seeds": 200, "keep": "summary", "outputs": [risk], **WIDE}
    whole = fmab.sweep("cdp", **request)
    result = whole.regret_at_risk
    assert result.dims == ("epsilon", "share") and result.share.values.tolist() == [0.01, 0.05, 0.2]
    for place, share in enumerate(result.share.values):
        mean = worst[:, : round(200 * share)].mean(1)
        np.testing.assert_allclose(result.values[:, place], mean, rtol=1e-3)
    rows = pd.concat(tidy_tables(whole))
    for share in result.share.values:
        column = rows[rows.time == rows.time.max()][f"regret_at_risk_share_{share:g}"]
        np.testing.assert_array_equal(column, result.sel(share=share).values)
    cut = fmab.sweep("cdp", chunk=64, batch=32, **request).regret_at_risk
    assert cut.equals(result)
    monkeypatch.setattr(resources, "keeps_curves", lambda devices: True)
    assert fmab.sweep("cdp", **request).regret_at_risk.equals(result)


def test_a_reduction_without_a_summary_is_refused():
    """Would catch a result without its reduction."""
    options = {"seeds": 8, "keep": "curves", "outputs": [page("own_reduction")["RISK"]], **WIDE}
    line = "outputs='regret_at_risk': must be left out, or given with"
    refuses(line, fmab.sweep, "cdp", **options)


def test_a_store_keeps_the_state_of_a_reduction(tmp_path):
    """Would catch a state that is lost when a sweep is resumed."""
    text = (ROOT / "docs/own_reduction.md").read_text("utf-8")
    code = re.search(r"^```python\n(# risk.py\n.*?)^```", text, re.M | re.S)[1]
    (tmp_path / "risk.py").write_text(code)
    load_plugin(str(tmp_path / "risk.py"))
    options = {"keep": "summary", "outputs": ["regret_at_risk"], "chunk": 20, **WIDE}
    whole = fmab.sweep("cdp", seeds=40, **options).load()
    for seeds in (20, 40):
        resumed = fmab.sweep("cdp", seeds=seeds, store=tmp_path / "a", **options).load()
    assert resumed.regret_at_risk.equals(whole.regret_at_risk)


ONE = {"problem": fmab.Problem.uniform(3, 3), "progress": False}


def test_what_is_missing_of_a_sweep_has_no_output(tmp_path):
    """Would catch an index of 1 for seeds that nobody has run."""
    options = dict(epsilon=[0.5, 1.0], outputs=ALL, horizon=300, seeds=10, chunk=4, **ONE)
    fmab.sweep(fmab.cdp_mab, worker=(1, 2), store=tmp_path / "s", **options)
    data = fmab.open_sweep(tmp_path / "s", partial=True)
    assert data.seeds.values.tolist() == [4, 0]
    for name in ALL:
        finite = ~np.isnan(data[name].values.reshape(2, 4, -1)).any(-1)
        assert finite.tolist() == [[True] * 4, [False] * 4], name


def test_cells_are_joined_from_chunks_of_other_sizes(tmp_path):
    """Would catch padding that depends on who else is in a chunk, taken for agents."""
    options = dict(horizon=100, outputs=ALL, times=4, allow_changes=["agents"])
    options |= {"progress": False, "arms": 3}
    few = fmab.sweep(fmab.ucb1, agents=[3, 5], seeds=8, store=tmp_path / "c", **options)
    extra = {"agents": [3, 5, 40], "seeds": 12, "store": tmp_path / "c"}
    joined_cells = fmab.sweep(fmab.ucb1, **extra, **options)
    for name in ALL:
        own = joined_cells[name].isel(agents=slice(2), seed=slice(8))
        own = own.isel(agent=slice(5)) if "agent" in own.dims else own
        np.testing.assert_array_equal(few[name], own)
    options |= {"epsilon": 1.0, "graph": "complete", "keep": "summary", "store": tmp_path / "s"}
    fmab.sweep(fmab.ddp_mab, agents=[3, 5], seeds=8, **options)
    joined = fmab.sweep(fmab.ddp_mab, agents=[3], seeds=16, **options)
    assert joined.pulls_mean.sum() == pytest.approx(300)


def test_another_accumulator_is_another_output():
    """Would catch a store that goes on with what an accumulator that was mended has added up."""
    of = lambda record: record["g"]  # noqa: E731
    adds = [lambda had, stretch, grid: had, lambda had, stretch, grid: 2 * had]
    accumulators = [Accumulator("g", ("arm",), len, add, len) for add in adds]
    one, variant, same = (
        outputs.identity(fmab.Output("x", "", "", of, ("arm",), accumulators=(accumulator,)))
        for accumulator in (*accumulators, accumulators[0])
    )
    assert one == same != variant


def test_memory_of_accumulators_is_told():
    """Would catch a run that dies where it should refuse: accumulators are held for all seeds."""
    problem = fmab.Problem.uniform(50, 10)
    plain = configs.bind(fmab.ddp_mab(1.0, "ring"), problem, 1000)
    request = outputs.resolve(["regret_by_agent"])
    with_it = configs.bind(fmab.ddp_mab(1.0, "ring"), problem, 1000, outputs=request)
    assert with_it.accumulator_bytes == 8 * 52 * 100
    assert with_it.result_bytes - plain.result_bytes == 8 * 52 * 100 + 8 * 50 * 100
    alike = configs.bind(fmab.cdp_mab(1.0), problem, 1000, outputs=request)
    assert alike.accumulator_bytes == 8 * 100
    extra_bytes = with_it.curve_bytes - plain.curve_bytes
    assert extra_bytes == 8 * 52 * 100


def test_pulls_are_counted_where_agents_split_the_arms():
    """Would catch an output of zeros where the loop adds up one agent of all."""
    problem = fmab.Problem.uniform(**sizes.SMALL)
    shared = fmab.kl_se(1.0, split=True)
    data = fmab.simulate(shared, problem, 100, 2, outputs=["pulls"])
    assert data.pulls.sum("arm").values.tolist() == pytest.approx([400, 400])


@pytest.mark.parametrize("pooled", [False, True])
def test_rows_of_padding_have_no_output(pooled, monkeypatch):
    """Would catch pulls, or regret, of rows that no agent has."""
    monkeypatch.setattr(configs, "_round_agents", lambda agents: 7)
    data = fmab.simulate(fmab.ucb1(pooled=pooled), fmab.Problem(MEANS, AGENTS), 60, 2, outputs=ALL)
    np.testing.assert_allclose(data.pulls.sum("arm"), AGENTS * 60, rtol=1e-12)
    np.testing.assert_allclose(data.regret_by_agent.sum("agent"), data.regret, rtol=1e-12)


def test_a_worse_arm_counts_where_no_best_arm_is_lost():
    """Would catch one event in the column of the other."""
    data = fmab.simulate(fmab.ucb1(), fmab.Problem([0.6, 0.5], 1), 40, 50, times=1)
    assert 0 < data.worse_arm_played.sum() < 50 and not data.best_arm_lost.any()
    np.testing.assert_array_equal(data.worse_arm_played, data.final_gap > 0)


PLUG = """
import functools

import fmab_jax as fmab
from fmab_jax.parts.outputs.pulls import PULLS

TRIED = fmab.Output(
    "arms_tried", "arms pulled", "arms", lambda r: (r["pulls"] > 0).sum(-1),
    accumulators=PULLS.accumulators,
)
PART = fmab.Output("part", "", "", functools.partial(lambda scale, r: scale * r["rounds"], 0.5))
"""


def test_an_output_of_a_plug_in_is_known_by_its_name(tmp_path, monkeypatch):
    """Would catch a plug-in's output that only Python can ask for."""
    # Other tests know of no plug-in.
    monkeypatch.setattr(plugins, "_sources", dict(plugins._sources))
    path = tmp_path / "tried.py"
    path.write_text(PLUG)
    assert load_plugin(str(path)) == []
    options = dict(horizon=500, seeds=3, outputs=["arms_tried"], progress=False)
    folder = tmp_path / "s"
    data = fmab.sweep(fmab.cdp_mab(1.0), fmab.Problem.uniform(3, 3), store=folder, **options)
    assert data.arms_tried.values.tolist() == [3, 3, 3]
    run = fmab.simulate(
        fmab.cdp_mab(1.0), fmab.Problem.uniform(3, 3), 500, 3, outputs=["arms_tried", "part"]
    )
    assert run.arms_tried.dtype == data.arms_tried.dtype == np.float64
    assert (run.part == 0.5 * run.rounds_made).all()
    assert fmab.open_sweep(folder).arms_tried.values.tolist() == [3, 3, 3]
    path.write_text(PLUG.replace("> 0", "> 1"))
    load_plugin(str(path))
    refuses("outputs='arms_tried': must be known here", fmab.open_sweep, folder)
    path.write_text(PLUG.replace("arms_tried", "pulls"))
    refuses("plugin='pulls': must be the name of no other output", load_plugin, str(path))


# Means of their own: else all seeds have the same regret.
DRAWN = fmab.Problem.uniform(**sizes.SMALL)
SHORT = {"horizon": 1500, "seeds": 8, "times": 7, "progress": False}


def own(of, name="own", **more):
    """Returns an output of one's own."""
    return fmab.Output(name, "", "", of, **more)


def changing(name):
    """Returns what changes a field of a record in place, if it can, and is zero."""

    def of(record):
        values = record.links if name == "links" else record[name]
        with contextlib.suppress(ValueError):
            values[:] = 7
        return np.zeros(len(record["regret"]))

    return of


@pytest.mark.parametrize("keep", ["curves", "summary"])
def test_an_output_changes_nothing_beside_it(keep):
    """Would catch regret, links or another output's accumulator that an output has changed."""
    names = ("regret", "rounds_by", "chosen_arm", "links", "pulls")
    request = [own(changing(name), f"of_{name}", accumulators=PULLS.accumulators) for name in names]
    plain = fmab.sweep(fmab.cdp_mab(1.0), DRAWN, keep=keep, outputs=["pulls"], **SHORT)
    data = fmab.sweep(fmab.cdp_mab(1.0), DRAWN, keep=keep, outputs=["pulls", *request], **SHORT)
    # Its own outputs first: they are read when they are used.
    data[[name for name in data if str(name).startswith("of_")]].load()
    for name in plain.variables:
        np.testing.assert_array_equal(data[name], plain[name], str(name))


def last(record):
    """Returns the regret at the horizon, in which seeds differ."""
    return record["regret"][:, -1]


REAL = "must be real numbers; NaN where there is none"
ALONE = "must be the same for a seed, whatever seeds are beside it; "
BROKEN = {
    "one row": (lambda r: np.ones(1), r"an array \(1,\): must be \[seed\], here \(8,\)"),
    "one number": (lambda r: 3.0, r"an array \(\): must be \[seed\]"),
    "a row too many": (lambda r: np.append(last(r), 0.0), r"an array \(9,\): must be \[seed\]"),
    "times": (lambda r: last(r).astype("m8[s]"), f"an array of .*: {REAL}"),
    "masked": (lambda r: np.ma.masked_less(last(r), 1e9), "masked values: must be without a mask"),
    "an error": (lambda r: last(r) / None, r"\.of: must return, not end in TypeError: .*, line"),
    "less the mean": (lambda r: last(r) - last(r).mean(), ALONE),
    "the rank": (lambda r: last(r).argsort().argsort(), ALONE),
    "by chance": (lambda r: np.random.default_rng().uniform(size=len(last(r))), ALONE),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_output_that_breaks_a_promise_is_refused(name, tmp_path, monkeypatch):
    """Would catch one row for all seeds, values that are bent into numbers, and what is stored."""
    of, line = BROKEN[name]
    # Only outputs of plug-ins may be in a store.
    monkeypatch.setitem(OUTPUTS.loaded, "own", own(of))
    with pytest.raises(ValueError, match=f"^own.*{line}"):
        fmab.sweep(fmab.cdp_mab(1.0), DRAWN, outputs=["own"], store=tmp_path / "s", **SHORT)
    assert not list((tmp_path / "s" / "chunks").iterdir())


SOUND = {
    "truth values": lambda r: last(r) > 100.0,
    "whole numbers": lambda r: r["rounds_by"][:, -1] * 100_000,
    "NaN and infinity": lambda r: np.where(last(r) > 100.0, np.nan, np.inf),
    # Another order of the sum in another number of rows.
    "rounded": lambda r: np.asfortranarray(r["pulls"]) @ MEANS - 1e6,
}


@pytest.mark.parametrize("name", SOUND)
def test_an_output_may_return_what_is_real_numbers(name):
    """Would catch an output that is refused for its rounding or its type."""
    request = own(SOUND[name], accumulators=PULLS.accumulators)
    data = fmab.sweep(fmab.cdp_mab(1.0), DRAWN, outputs=[request], **SHORT)
    summary = fmab.sweep(fmab.cdp_mab(1.0), DRAWN, outputs=[request], keep="summary", **SHORT)
    assert data.own.dtype == np.float64
    np.testing.assert_allclose(data.own.mean(skipna=False), summary.own_mean, rtol=1e-12)
    if name == "whole numbers":
        np.testing.assert_array_equal(data.own, 100_000.0 * data.rounds_made)
    assert data.own.isel(seed=slice(0, 0)).shape == (0,)


def test_an_output_takes_no_name_of_a_result_a_table_or_another_output():
    """Would catch a table that prints an output's values in a column of its own."""
    options = dict(epsilon=[0.5, 1.0], **SHORT)
    curves = fmab.sweep(fmab.cdp_mab, DRAWN, **options)
    precise = fmab.until_precise(0.9, max_seeds=16)
    summary = fmab.sweep(fmab.cdp_mab, DRAWN, keep="summary", until=precise, **options)
    tables = curves, summary, fmab.confidence_band(summary), fmab.add_leaks(curves)
    names = {str(name) for table in tables for name in (*table.variables, *table.dims)}
    names |= {name for name in fmab.table(curves) if name.endswith(("_lower", "_upper"))}
    names |= {name for data in (curves, summary) for name in next(tidy_tables(data))}
    assert {"regret_lower", "cost_upper", "links_mean", "relative_width", "lower"} <= names
    assert {"leak_messages", "leak_actions_delta", "leak_view", "ledger"} <= names
    for name in names:
        refuses(f"Output.name='{name}': must be a short", outputs.resolve, [own(len, name)])
    for pair in (["fairness", own(len, "fairness_upper")], [own(len, "x_mean"), own(len, "x")]):
        for request in (pair, pair[::-1]):
            refuses(r"Output.name='\w+': must be a short", outputs.resolve, request)
    # A word that no table derives is free.
    assert outputs.resolve([own(len, "agent_mean"), own(len, "regretful")])
