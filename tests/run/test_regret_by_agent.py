"""Each agent's regret: against the arm that is best on average, and against its own best arm."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
import sizes
from refusals import refuses

import fmab_jax as fmab
from fmab_jax.analysis.agents import KINDS, select_regret
from fmab_jax.cli.main import main
from fmab_jax.parts.outputs import AGENTS_DIFFER, OUTPUTS, Accumulator
from fmab_jax.plots import over_time
from fmab_jax.run import configs, outputs, resources
from fmab_jax.sampling import keys
from fmab_jax.sampling.scope import package_settings

AGENTS, ARMS, HORIZON, SEEDS = 4, 3, 300, 3
APART = fmab.Problem(agents=AGENTS, arms=ARMS, spread=0.7)
MOVING = fmab.Problem(agents=AGENTS, arms=ARMS, spread=0.7, world="drifting:3")
ALIKE = fmab.Problem.uniform(**sizes.SMALL)
DEFAULTS = [output.name for output in AGENTS_DIFFER]
CURVES = ["regret_by_agent", "own_regret_by_agent"]
LOOPS = {
    "sums": fmab.cdp_mab(1.0),
    "some report": fmab.cdp_mab(1.0, participation=0.5),
    "wait": fmab.ddp_mab(1.0, "path"),
    "alone": fmab.single_mab(1.0),
    "slots": fmab.ucb1(),
    "episodes": fmab.adap_ucb(1.0),
    "consensus": fmab.ces("ring"),
}


def start(rows, arms, grid):
    return jnp.zeros((rows, arms)), jnp.zeros((rows, arms, len(grid)))


def add(state, stretch, grid):
    total, curves = state
    until = lambda slots: (slots - stretch.start).astype(float)[None, None]  # noqa: E731
    lines = total[:, :, None] + stretch.share[:, :, None] * until(grid)
    curves = jnp.where((grid > stretch.start)[None, None], lines, curves)
    return total + stretch.share * until(stretch.stop), curves


PLAYS = fmab.Output(
    "plays",
    "slots that an agent has spent on an arm",
    "slots",
    lambda record: np.moveaxis(record["plays"], 3, 1),
    ("time", "agent", "arm"),
    accumulators=(
        Accumulator("plays", ("agent", "arm", "time"), start, add, lambda state: state[1]),
    ),
)


def draw_means(problem, seed, horizon):
    """Returns the means of a seed's agents in each slot: [slot, agent, arm]."""
    with package_settings():
        key = keys.seed_key(jnp.uint32(0), jnp.uint32(seed))
        instance = jax.device_get(problem.bind(problem.agents).draw(key, jnp.int64(horizon)))
    if instance.segments is None:
        return np.broadcast_to(instance.means, (horizon, *instance.means.shape))
    # A Bernoulli law's only parameter is the mean: [row, segment, arm].
    (means,) = instance.segments.parameters
    segment = np.searchsorted(instance.segments.ends, np.arange(1, horizon + 1))
    return np.moveaxis(means, 1, 0)[segment]


CASES = [(name, problem) for problem in (APART, MOVING) for name in LOOPS]
CASES.remove(("consensus", MOVING))  # which follows no world
BY_DEFAULT = [("sums", APART), ("wait", MOVING), ("alone", APART), ("slots", MOVING)]
BY_DEFAULT += [("episodes", MOVING), ("sums", MOVING), ("consensus", APART)]


def write_case(case):
    """Writes a case in a few words."""
    return f"{case[0]}{', drifting' * (case[1] is MOVING)}"


@pytest.mark.parametrize("case", quick.only(CASES, *BY_DEFAULT), ids=write_case)
def test_own_regret_is_that_of_what_each_agent_played(case):
    """Would catch another agent's best arm, another segment's, and one best arm for all."""
    name, problem = case
    data = fmab.simulate(
        LOOPS[name], problem, HORIZON, SEEDS, times=HORIZON, outputs=[PLAYS, *CURVES]
    )
    plays = np.diff(data.plays.values, axis=1, prepend=0.0)
    np.testing.assert_allclose(plays.sum(3), 1.0, rtol=1e-9)
    for seed in range(SEEDS):
        means = draw_means(problem, seed, HORIZON)
        best = means.mean(1, keepdims=True).max(2, keepdims=True) - means.mean(1, keepdims=True)
        own = means.max(2, keepdims=True) - means
        expected = [(plays[seed] * gaps).sum(2).cumsum(0) for gaps in (best, own)]
        for variable, values in zip(CURVES, expected, strict=True):
            np.testing.assert_allclose(data[variable][seed], values, rtol=1e-9, atol=1e-9)
        for variable, values in zip(("regret", "own_regret"), expected, strict=True):
            np.testing.assert_allclose(data[variable][seed], values.sum(1), rtol=1e-9, atol=1e-9)
        for variable, values in zip(("agent_regret", "agent_own_regret"), expected, strict=True):
            np.testing.assert_allclose(data[variable][seed], values[-1], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(data.regret_by_agent[:, -1], data.agent_regret)
    np.testing.assert_array_equal(data.largest_regret, data.agent_regret.max("agent"))
    np.testing.assert_array_equal(data.largest_own_regret, data.agent_own_regret.max("agent"))


@pytest.mark.parametrize("name", quick.only([*LOOPS], "sums", "slots", "episodes"))
def test_agents_that_share_their_means_have_one_regret(name):
    """Would catch rounding that tells both regrets apart where they are one number."""
    request = [*DEFAULTS, *CURVES]
    data = fmab.simulate(LOOPS[name], ALIKE, HORIZON, SEEDS, times=7, outputs=request)
    np.testing.assert_array_equal(data.own_regret, data.regret)
    np.testing.assert_array_equal(data.agent_own_regret, data.agent_regret)
    np.testing.assert_array_equal(data.own_regret_by_agent, data.regret_by_agent)
    plain = fmab.simulate(LOOPS[name], ALIKE, HORIZON, SEEDS, times=7)
    assert not {*request} & {*plain}
    np.testing.assert_array_equal(data.regret, plain.regret)


def test_arms_that_tie_for_an_agent_cost_it_nothing():
    """Would catch rounding errors of means that count as regret, slot by slot."""
    # 0.1 + 0.2 is 5.6e-17 above 0.3.
    means = [[0.1 + 0.2, 0.3, 0.3], [0.5, 0.4, 0.1], [0.5, 0.4, 0.1], [0.5, 0.4, 0.1]]
    data = fmab.simulate(fmab.cdp_mab(None), fmab.Problem(means), 10**4, SEEDS)
    assert (data.agent_own_regret[:, 0] == 0).all() and (data.agent_own_regret[:, 1] > 0).all()


@functools.cache
def sweep(**options):
    """Returns a sweep over agents that differ."""
    options = {"horizon": HORIZON, "seeds": 8, "times": 5, "progress": False} | options
    return fmab.sweep(fmab.cdp_mab, epsilon=1.0, agents=(1, 3, 5), arms=4, spread=0.5, **options)


def test_a_configuration_has_its_own_regret_wherever_it_is():
    """Would catch rows of padding among the agents, and regret that depends on neighbours."""
    data, summary = sweep(), sweep(keep="summary")
    for agents in (1, 3, 5):
        cell = data.sel(agents=agents)
        problem = fmab.Problem(agents=agents, arms=4, spread=0.5)
        run = fmab.simulate(fmab.cdp_mab(1.0), problem, HORIZON, 8, times=5)
        for name in DEFAULTS:
            part = {dim: slice(run.sizes[dim]) for dim in run[name].dims}
            np.testing.assert_array_equal(cell[name].isel(part), run[name], name)
            mean = summary[f"{name}_mean"].sel(agents=agents)
            part = {dim: slice(run.sizes[dim]) for dim in mean.dims}
            np.testing.assert_allclose(mean.isel(part), run[name].mean("seed"), rtol=1e-12)
        for name in ("own_regret", "largest_regret", "largest_own_regret"):
            final = run[name][:, -1] if "time" in run[name].dims else run[name]
            # The smallest value that half of the seeds do not exceed.
            median = summary[f"{name}_quantile"].sel(agents=agents, quantile=0.5)
            np.testing.assert_allclose(median, np.sort(final)[3], rtol=1e-2)
        assert np.isnan(cell.agent_own_regret[:, agents:]).all()
    # A single agent is the average.
    np.testing.assert_array_equal(data.own_regret[0], data.regret[0])


def test_a_device_that_keeps_curves_summarises_to_the_same_bytes(monkeypatch):
    """Would catch accumulators that stay on a device, and sums of fewer digits."""
    summary = sweep(keep="summary").load()
    monkeypatch.setattr(resources, "keeps_curves", lambda devices: True)
    assert sweep(keep="summary", chunk=8).load().equals(summary)


@pytest.mark.parametrize("name", quick.only([*LOOPS], "sums", "slots"))
def test_padding_changes_no_bit(name, monkeypatch):
    """Would catch the regret of agents that do not exist."""
    plain = fmab.simulate(LOOPS[name], APART, 60, 2, times=4, outputs=CURVES)
    monkeypatch.setattr(configs, "_round_agents", lambda agents: 7)
    padded = fmab.simulate(LOOPS[name], APART, 60, 2, times=4, outputs=CURVES)
    for variable in (*DEFAULTS, *CURVES, "regret"):
        np.testing.assert_array_equal(plain[variable], padded[variable], variable)


def study(**options):
    """Returns a study of few agents."""
    return fmab.Study("cdp", **{"horizon": 100, "seeds": 2, "arms": 3, "epsilon": 1.0} | options)


def test_outputs_come_where_agents_differ():
    """Would catch a study that says outputs twice, and results of very many agents."""
    names = lambda study: {output.name for output in study.all_outputs}  # noqa: E731
    apart, alike = study(agents=4, spread=0.5), study(agents=4)
    assert names(apart) == {*DEFAULTS} and not names(alike)
    assert names(study(agents=4, spread=[0.0, 0.5])) == {*DEFAULTS}
    of_each = {"agent_regret", "agent_own_regret"}
    assert names(study(agents=100, spread=0.5)) == {*DEFAULTS}
    assert names(study(agents=101, spread=0.5)) == {*DEFAULTS} - of_each
    request = study(agents=4, spread=0.5, outputs=["fairness", "pulls"])
    assert names(request) == {*DEFAULTS, "pulls"}
    assert request == study(agents=4, spread=0.5, outputs=["pulls"]) != apart
    assert request.words()[request.words().index("--outputs") + 1] == "pulls"
    assert "--outputs" not in apart.words()
    assert study(agents=4, outputs=["fairness"]) != alike
    refuses("fairness=.*: must be left out", study, agents=4, fairness=[1, 2])


def test_a_store_of_an_older_version_opens(tmp_path, monkeypatch):
    """Would catch a store without these outputs that fails when one is read."""
    options = {"horizon": 100, "seeds": 4, "agents": 4, "arms": 3, "spread": 0.5, "epsilon": [1, 2]}
    options |= {"progress": False, "store": tmp_path / "s"}
    with monkeypatch.context() as patch:
        patch.setattr(outputs, "add_defaults", lambda requests, pairs: tuple(requests))
        old = fmab.sweep("cdp", **options).load()
    opened = fmab.open_sweep(tmp_path / "s").load()
    assert "own_regret" not in opened and opened.regret.equals(old.regret)
    assert "largest_own_regret" not in fmab.table(opened)
    refuses("outputs=.*: must be left out, as in the store", fmab.sweep, "cdp", **options)


def test_memory_of_each_agent_is_told():
    """Would catch a run that dies where it should refuse: one row stands for many agents."""
    problem = fmab.Problem(agents=50, arms=10, spread=0.5)
    request = outputs.resolve(["agent_own_regret"])
    config = configs.bind(fmab.cdp_mab(1.0), problem, 1000, outputs=request)
    assert config.accumulator_bytes == 8 * (52 + 1)


def test_the_index_is_one_where_nobody_has_regret():
    """Would catch 0 / 0 where all agents play the best arm all along."""
    regret = np.zeros((2, 3))
    fairness = OUTPUTS.by_name()["fairness"]

    def index():
        record = outputs.Record(
            {"agent_regret": regret}.__getitem__, {"agents": 3}, fairness.accumulators
        )
        return fairness.of(record).tolist()

    assert index() == [1, 1]
    regret[0, 0] = 1e308
    assert index() == [1 / 3, 1]


def study_of_curves(keep="curves"):
    """Returns a small sweep of agents that differ, with curves by agent."""
    options = {"horizon": HORIZON, "seeds": 8, "times": 5, "keep": keep, "progress": False}
    grid = {"epsilon": [1.0, 2.0], "agents": 3, "arms": 4, "spread": 0.5}
    return fmab.sweep(fmab.cdp_mab, outputs=CURVES, **grid, **options)


@functools.cache
def curves():
    """Returns such a sweep."""
    return study_of_curves()


@pytest.mark.parametrize("kind", KINDS)
def test_another_regret_is_tabled_and_compared(kind):
    """Would catch another agent's column, an interval of other seeds, or of a summary."""
    data, summary = curves(), study_of_curves("summary")
    frame, other = (fmab.table(select_regret(x, kind)) for x in (data, summary))
    values = data[kind] if "time" not in data[kind].dims else data[kind][..., -1]
    mean = values.mean("seed")
    np.testing.assert_allclose(frame.regret, mean.values.reshape(-1), rtol=1e-12)
    np.testing.assert_allclose(frame.regret, other.regret, rtol=1e-12)
    np.testing.assert_allclose(frame.regret_upper, other.regret_upper, rtol=1e-9)
    assert frame.leak_messages.tolist() == np.repeat([3.0, 6.0], len(frame) // 2).tolist()
    picked = select_regret(data, kind)
    if "agent" in picked.seeds.dims:
        picked = picked.sel(agent=2)
        values = values.sel(agent=2)
    pair = [picked.sel(epsilon=x) for x in (1.0, 2.0)]
    found = fmab.compare(*pair)
    expected = float((values.sel(epsilon=1.0) - values.sel(epsilon=2.0)).mean())
    assert found.method == "paired" and found.difference == pytest.approx(expected, abs=1e-9)


def test_another_regret_has_to_be_there():
    """Would catch a figure of the usual regret under another name."""
    plain = fmab.simulate(fmab.cdp_mab(1.0), ALIKE, HORIZON, SEEDS, times=5)
    refuses("kind='own_regret': must be in the result", select_regret, plain, "own_regret")
    refuses("kind='regret': must be", select_regret, plain, "regret")


def test_agents_are_drawn(tmp_path, monkeypatch):
    """Would catch the curve of another agent, and seeds counted once for each of them."""
    monkeypatch.chdir(tmp_path)
    fmab.save(curves(), "apart.nc")
    words = "plot apart.nc --curves --hue agent --metric own_regret --select epsilon=1"
    assert main(words.split()) == 0
    assert "8 seeds" in (text := next(tmp_path.glob("*.txt")).read_text()) and "24" not in text
    runs = over_time.split_runs(select_regret(curves(), "agent_own_regret"))
    assert len(runs) == 6
    figure = fmab.plot_runs(runs)
    lines = [line.get_ydata()[-1] for line in figure.axes[0].get_lines()]
    expected = curves().own_regret_by_agent[..., -1, :].mean("seed").values.reshape(-1)
    np.testing.assert_allclose(lines, expected, rtol=1e-12)
    assert main("plot apart.nc --x epsilon --hue agent".split()) == 0
    assert main("plot apart.nc --x epsilon --metric largest_own_regret".split()) == 0
    assert main("compare apart.nc --metric largest_own_regret".split()) == 0
    assert main("plot apart.nc --x epsilon --hue agent --metric cost".split()) == 2


def test_no_curve_is_drawn_where_there_is_none(tmp_path, monkeypatch, capsys):
    """Would catch a straight line to the regret at T, and a traceback of a summary."""
    monkeypatch.chdir(tmp_path)
    problem, epsilon = fmab.Problem(agents=3, arms=4, spread=0.5), [0.5, 1.0]
    known = {"horizon": 500, "seeds": 8, "times": 4, "progress": False}
    data = fmab.sweep(fmab.cdp_mab, problem, epsilon=epsilon, store="kept", **known)
    fmab.sweep(fmab.cdp_mab, problem, epsilon=epsilon, store="summary", keep="summary", **known)
    assert "own_regret" in data and "regret_by_agent" not in data
    for words, curve in (
        ("kept --curves --hue agent", "regret_by_agent"),
        ("summary --curves --hue agent", "regret_by_agent"),
        ("summary --curves --metric own_regret", "own_regret"),
    ):
        assert main(["plot", *words.split(), "--out", "x.png"]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"fmab: --curves: must be left out without {curve} over time")
        assert len(said.splitlines()) == 1
    assert not (tmp_path / "x.png").exists()


def test_an_accumulator_of_ones_own_is_no_shipped_one():
    """Would catch the regret of agents computed from the numbers of a user's accumulator."""
    mine = Accumulator("agent_regret", ("agent",), lambda *_: jnp.zeros(1), lambda total, *_: total)
    output = fmab.Output(
        "mine", "x", "1", lambda record: record["agent_regret"][:, 0], accumulators=(mine,)
    )
    refuses("^Accumulator.name='agent_regret'", outputs.resolve, [output])
    shipped = OUTPUTS.by_name()["agent_regret"].accumulators
    assert outputs.resolve([fmab.Output("most", "x", "1", len, accumulators=shipped)])


def test_a_comparison_names_the_regret_that_it_compares(tmp_path, monkeypatch, capsys):
    """Would catch the largest regret of an agent, reported as the regret of all."""
    pair = [select_regret(curves(), "largest_own_regret").sel(epsilon=x) for x in (1.0, 2.0)]
    found = fmab.compare(*pair)
    assert found.metric == "largest own regret" and " largest own regret " in found.sentence
    assert "largest own regret, first" in found.cells()
    assert fmab.compare(*(curves().sel(epsilon=x) for x in (1.0, 2.0))).metric == "regret"
    monkeypatch.chdir(tmp_path)
    fmab.save(curves(), "apart.nc")
    assert main("plot apart.nc --pareto --hue agent".split()) == 2
    assert capsys.readouterr().err.startswith("fmab: --hue agent: must be left out with --pareto")
