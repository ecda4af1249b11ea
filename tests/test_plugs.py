"""A file outside the package is used everywhere; what breaks the contract is named."""

from __future__ import annotations

import json
import math
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import plugs
import pytest
import xarray as xr
from altered import altered
from refusals import refused, refuses
from scipy import stats

import fmab_jax as fmab
from fmab_jax.algorithms import base
from fmab_jax.algorithms.base import Disclosure
from fmab_jax.analysis import conformance, words
from fmab_jax.cli.main import main
from fmab_jax.core import laws, plugins
from fmab_jax.core.exchanges import View
from fmab_jax.core.trials import Outcome
from fmab_jax.errors import Refusal
from fmab_jax.parameters import Flag, Real, Whole, Word, parameters_of
from fmab_jax.run import batches, compilation, configs, resources
from fmab_jax.run.contract import PROMISES

FILE = str(Path(plugs.__file__))
MEANS = np.array([0.9, 0.5, 0.1])
PROBLEM = fmab.Problem(MEANS, agents=6, rewards=plugs.ThreePoint(0.5))
FEW = fmab.Problem(MEANS, agents=3)
GAPS = MEANS.max() - MEANS
SMALL = ["--agents", "6", "--arms", "5", "--horizon", "2000", "--seeds", "16"]


@pytest.fixture(autouse=True)
def _no_plugins_left():
    """What a test loads, the next does not know."""
    before = [(table, dict(table)) for table in (base._loaded, laws.LAWS_BY_NAME)]
    yield
    for table, kept in before:
        table.clear()
        table.update(kept)


def test_the_file_is_short():
    """Would catch a plug that needs more than forty lines."""
    import inspect

    for each in (plugs.Geometric, plugs.Greedy, plugs.relays, plugs.ThreePoint):
        assert len(inspect.getsource(each).splitlines()) <= 40


def test_elimination_runs_through_its_own_exchange():
    """Would catch equations or links of the file that are not the ones that run."""
    made = fmab.simulate(plugs.Geometric(first=16, branches=2), PROBLEM, 500, 16, times=100)
    # Phase 1: 16 pulls of each of 3 arms by 6 agents, in turn, whatever the rewards.
    phase = made.regret.sel(time=[5, 45])
    assert np.allclose(phase, 6 * GAPS.mean() * phase.time.values, rtol=1e-12)
    rounds = made.rounds_made.values
    assert rounds.max() >= 2
    last = made.links.isel(time=-1)
    assert np.array_equal(last.sel(meter="server"), 2 * rounds)
    assert np.array_equal(last.sel(meter="uplink"), 4 * rounds)
    cost = fmab.communication_cost(made, 10, 1)[:, -1]
    assert np.array_equal(cost, 24.0 * rounds)
    # Gaps of 0.4 and 0.8 are found: nobody plays a worse arm.
    assert (made.chosen_arm == 0).all() and (made.final_gap == 0).all()
    assert not made.best_arm_lost.any() and not made.worse_arm_played.any()
    # A round waits one slot: 6 agents lose at most the largest gap in each.
    waiting = made.waiting_regret.values[:, -1]
    assert (waiting <= 6 * GAPS.max() * rounds + 1e-9).all()
    settings = json.loads(made.attrs["settings"])
    assert settings["first"] == "n₁ = 16" and settings["rewards"].startswith("three-point")
    assert "growth" not in settings
    assert (made.attrs["wait"], made.attrs["title"]) == (1, "Geometric phases")


def test_index_policy_explores_as_it_says():
    """Would catch random numbers that are not uniform, or regret that is not its gaps."""
    made = fmab.simulate(plugs.Greedy(explore=1.0), PROBLEM, 200, 400, times=2)
    final = made.regret.values[:, -1]
    # Every pull is one of three arms with equal chance: 6 x 200 independent pulls.
    deviation = math.sqrt(6 * 200 * GAPS.var())
    z = (final.mean() - 6 * 200 * GAPS.mean()) / (deviation / math.sqrt(len(final)))
    assert 2 * stats.norm.sf(abs(z)) > 1e-6
    spread = final.var(ddof=1) * (len(final) - 1) / deviation**2
    assert min(stats.chi2.sf(spread, len(final) - 1), stats.chi2.cdf(spread, len(final) - 1)) > 1e-6
    assert made.sizes["meter"] == 0 and (made.rounds_made == 0).all()


def slow_greedy(rng, means, horizon):
    """Epsilon-greedy on three-point rewards, pull by pull."""
    agents, arms = means.shape
    middle = 2 * np.minimum(means, 1 - means)
    chances = np.stack([1 - means - middle / 2, middle, means - middle / 2], axis=-1)
    gaps = means.mean(axis=0).max() - means.mean(axis=0)
    lost = 0.0
    for agent in range(agents):
        pulls, sums = np.zeros(arms), np.zeros(arms)
        for _ in range(horizon):
            value = np.where(pulls > 0, sums / np.maximum(pulls, 1), np.inf)
            arm = rng.integers(arms) if rng.random() < 0.3 else int(value.argmax())
            pulls[arm] += 1
            sums[arm] += rng.choice((0.0, 0.5, 1.0), p=chances[agent, arm])
            lost += gaps[arm]
    return float(lost)


@pytest.mark.slow
def test_policy_and_law_keep_the_contract_beside_a_slow_reference():
    """Would catch a law of rewards, or a loop over slots, with another distribution."""
    problem = fmab.Problem([0.6, 0.5, 0.2], agents=2, rewards=plugs.ThreePoint(1.0))
    policy = plugs.Greedy(explore=0.3)
    told = fmab.check_algorithm(policy, problem, horizon=40, seeds=8, reference=slow_greedy)
    assert len(told) == len(PROMISES)
    assert f"kept: {PROMISES['law']}" in told

    def other(rng, means, horizon):
        return 1.2 * slow_greedy(rng, means, horizon)

    given = dict(horizon=40, seeds=8, reference=other)
    refuses("law of the slow reference", fmab.check_algorithm, policy, problem, **given)


@pytest.mark.slow
def test_elimination_keeps_the_contract():
    """Would catch equations that see batches, neighbours or padding."""
    problem = fmab.Problem.uniform(3, 4)
    told = fmab.check_algorithm(plugs.Geometric(), problem, horizon=120, seeds=8)
    for line in told:
        silent = "device" in line and jax.device_count() == 1 or "no reference" in line
        assert line.startswith("kept") != silent, line


@pytest.mark.slow
@pytest.mark.as_users_have_it
@pytest.mark.parametrize("name", sorted(base.load_shipped()))
def test_algorithms_of_the_package_keep_the_contract(name):
    """Would catch an algorithm whose bits depend on batch, neighbours, padding or compilation."""
    owner = base.find_by_name(name)
    given = {}
    if "epsilon" in parameters_of(owner):
        given["epsilon"] = 0.5
    if "components" in parameters_of(owner):
        given["components"] = [2, 1]
    told = fmab.check_algorithm(owner(**given), fmab.Problem.uniform(3, 4), horizon=60, seeds=8)
    assert sum(line.startswith("kept") for line in told) >= len(PROMISES) - 2


def test_sweep_keeps_results_and_computes_nothing_twice(tmp_path):
    """Would catch a plug whose configurations have no stable identity."""
    asked = {"growth": [2, 4], "branches": [1, 3], "horizon": 500, "seeds": 16}
    study = partial(fmab.sweep, plugs.Geometric, PROBLEM, **asked, store=tmp_path / "own")
    first, files = study(), {p.name: p.read_bytes() for p in (tmp_path / "own/chunks").iterdir()}
    second = study()
    assert second.attrs["compilations"] == 0 and first.attrs["compilations"] == 1
    assert {p.name: p.read_bytes() for p in (tmp_path / "own/chunks").iterdir()} == files
    xr.testing.assert_identical(first.regret, second.regret)
    single = fmab.simulate(plugs.Geometric(growth=4, branches=3), PROBLEM, 500, 16)
    assert np.array_equal(first.regret.sel(growth=4, branches=3), single.regret)
    assert first.growth.attrs["long_name"] == "growth g" and first.growth.attrs["symbol"] == "g"
    table = fmab.final_table(first)
    expected = first.rounds_made.mean("seed") * 3
    assert np.allclose(table.links.sel(branches=3, meter="server"), expected.sel(branches=3))


@pytest.mark.as_users_have_it
def test_command_line_study_file_and_figures(tmp_path, monkeypatch, capsys):
    """Would catch a command that knows only the package's own algorithms."""
    monkeypatch.chdir(tmp_path)
    words = ["run", "geometric", "--plugin", FILE, "--growth", "4", *SMALL, "--out", "own"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "Geometric phases" in told and "g = 4" in told and "uplink" in told
    assert Path("own.png").stat().st_size > 10_000
    ran = fmab.load("own.nc")

    Path("study.toml").write_text(
        'algorithm = "geometric"\nhorizon = 2000\nseeds = 16\n'
        "[problem]\nagents = 6\narms = 5\n[parameters]\ngrowth = [2, 4]\n",
        encoding="utf-8",
    )
    base._loaded.clear()
    assert main(["sweep", "study.toml", "--out", "runs/own"]) == 2
    assert "load a plug-in" in capsys.readouterr().err and not Path("runs").exists()
    assert main(["sweep", "study.toml", "--out", "runs/own", "--plugin", FILE]) == 0
    swept = fmab.open_sweep("runs/own")
    assert np.array_equal(swept.regret.sel(growth=4), ran.regret)
    words = ["sweep", "geometric", "--growth", "2", "4", *SMALL]
    assert main([*words, "--out", "runs/options", "--plugin", FILE]) == 0
    assert np.array_equal(fmab.open_sweep("runs/options").regret, swept.regret)

    # Results say of themselves what they are: no plug-in is needed to look at them.
    base._loaded.clear()
    capsys.readouterr()
    assert main(["plot", "runs/own", "--x", "growth", "--out", "growth.png"]) == 0
    assert main(["show", "runs/own"]) == 0
    assert "Geometric phases" in capsys.readouterr().out
    assert Path("growth.png").stat().st_size > 10_000
    figure = fmab.plot_parameter(fmab.final_table(swept), "growth")
    assert figure.axes[0].get_xlabel() == "growth g"


@pytest.mark.slow
@pytest.mark.as_users_have_it
def test_policy_and_law_by_command_line_study_file_and_figure(tmp_path, monkeypatch, capsys):
    """Would catch a law of a plug-in that a word or a study file cannot name, or names wrongly."""
    monkeypatch.chdir(tmp_path)
    words = [*SMALL, "--plugin", FILE]
    ran = ["run", "greedy", *words, "--rewards", "three-point:0.25", "--out", "own"]
    assert main(ran) == 0
    assert "three-point rewards, middle 0.25" in " ".join(capsys.readouterr().out.split())
    Path("study.toml").write_text(
        'algorithm = "greedy"\nhorizon = 2000\nseeds = 16\n[problem]\nagents = 6\narms = 5\n'
        'rewards = ["bernoulli", "three-point", "three-point:0.25"]\n',
        encoding="utf-8",
    )
    assert main(["sweep", "study.toml", "--out", "runs", "--plugin", FILE]) == 0
    swept = fmab.open_sweep("runs").regret
    middles = [f"three-point rewards, middle {middle}" for middle in (0.5, 0.25)]
    assert swept.rewards.values.tolist()[1:] == middles
    problem = fmab.Problem.uniform(6, 5, plugs.ThreePoint(0.25))
    same = fmab.simulate(plugs.Greedy(), problem, 2000, 16)
    for each in (same, fmab.load("own.nc")):
        assert np.array_equal(swept[2], each.regret)
    assert len({each.values.tobytes() for each in swept}) == 3
    # Results say of themselves what they are: no plug-in is needed to look at them.
    base._loaded.clear()
    del laws.LAWS_BY_NAME["three-point"]
    assert main(["plot", "own.nc", "--curves", "--out", "one.png"]) == 0
    assert main(["plot", "runs", "--x", "rewards", "--out", "laws.png"]) == 0
    assert min(Path(name).stat().st_size for name in ("one.png", "laws.png")) > 10_000
    # A study file loads no code.
    capsys.readouterr()
    Path("cdp.toml").write_text(
        'algorithm = "cdp"\nhorizon = 9\nseeds = 8\n[problem]\nrewards = "three-point:0.25"\n'
        "[parameters]\nepsilon = 1\n",
        encoding="utf-8",
    )
    assert main(["sweep", "cdp.toml", "--out", "none"]) == 2
    assert "must be a reward law: bernoulli, gaussian:SD, or" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("three-pont", "did you mean three-point[:MIDDLE]?"),
        ("normal", "bernoulli, gaussian:SD, three-point[:MIDDLE], or an object"),
        ("three-point:x", "must be written three-point[:MIDDLE] with middle a number in"),
        ("three-point:0.5,1", "must be written three-point[:MIDDLE]; "),
        ("three-point:2", "ThreePoint.parameters=-0.00391389 at mean 0.334638"),
        ("gaussian", "must be written gaussian:SD; "),
        ("gaussian:x", "must be written gaussian:SD with sd a number in (0, 1e+09]; "),
        ("gaussian:0", "must be written gaussian:SD with sd a number in (0, 1e+09]; "),
        ("gaussian:1e400", "must be written gaussian:SD with sd a number in (0, 1e+09]; "),
        ("bernoulli:1", "must be written bernoulli; "),
    ],
)
def test_texts_of_laws_that_make_no_sense(text, told, capsys):
    """Would catch a refusal that shows a value nobody typed, or does not say what there is."""
    assert main(["run", "ucb1", *SMALL, "--plugin", FILE, "--rewards", text]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1, error
    if not text.endswith(":2"):
        assert error.startswith(f"fmab: --rewards {text}: must be ")
        refuses("^rewards=" + repr(text), fmab.Problem.uniform, 2, 3, rewards=text)


def test_a_text_is_a_law_where_a_law_is_taken(tmp_path):
    """Would catch a text that sweeps take and problems refuse."""
    base.load_plugin(FILE)
    assert fmab.Problem.uniform(2, 3, "bernoulli") == fmab.Problem.uniform(2, 3)
    assert fmab.Problem([0.5], 2, "gaussian:0.5").rewards == fmab.Gaussian(0.5)
    made = fmab.Problem([0.5], 2, "three-point:1")
    assert made.rewards.describe()["middle"] == 1.0
    other = tmp_path / "other.py"
    source = Path(FILE).read_text("utf-8")
    source = source.replace('"geometric"', '"other_one"').replace('"greedy"', '"other_two"')
    other.write_text(source, encoding="utf-8")
    refuses("three-point.*: must be the name of no other reward law", base.load_plugin, str(other))
    assert "other_one" not in base.collect_algorithms()


def test_listed_with_what_it_says_of_itself(capsys):
    """Would catch a table that leaves plug-ins out."""
    assert main(["algorithms", "--plugin", FILE]) == 0
    told = capsys.readouterr().out
    assert "geometric" in told and "branches" in told
    assert "bernoulli, gaussian:SD, three-point[:MIDDLE]" in told
    found = {each["name"]: each for each in fmab.list_algorithms()}
    assert found["greedy"]["parameters"] == ["explore", "optimistic"]
    assert found["geometric"]["communication"] == "a root hears relays, relays hear agents"


def test_bad_values_end_in_one_line(capsys):
    """Would catch a parameter of a plug-in that is not checked where the package's own are."""
    assert main(["run", "geometric", "--plugin", FILE, "--growth", "1", *SMALL]) == 2
    assert capsys.readouterr().err.startswith("fmab: --growth 1: must be a number in (1, 100]; ")
    refuses(r"growth=0.5: must be a number in \(1, 100\]", plugs.Geometric, growth=0.5)
    refuses("explore='much': must be a number", plugs.Greedy, explore="much")


def test_unknown_names_are_refused_with_the_nearest(capsys):
    """Would catch a misspelt name without a hint."""
    assert main(["run", "geometrik", "--plugin", FILE, *SMALL]) == 2
    assert capsys.readouterr().err.rstrip().endswith("did you mean geometric?")
    refuses("did you mean 'geometric'", base.find_by_name, "geometrick")


def test_plain_annotations_are_parameters():
    """Would catch a field whose annotation means another kind of value."""

    @dataclass(frozen=True)
    class Plain(fmab.IndexPolicy):
        name = "plain"

        width: float = 2.0
        phases: int = 3
        often: bool = False
        word: str = "a"
        limit: float | None = None

    Plain.__annotations__ = dict(width=float, phases=int, often=bool, word=str, limit=float | None)
    kinds = {name: type(each.kind) for name, each in parameters_of(Plain).items()}
    assert kinds == dict(width=Real, phases=Whole, often=Flag, word=Word, limit=Real)
    assert Plain(limit=None).limit is None and Plain(phases=4.0).phases == 4
    plain = Plain(limit=0.5)
    assert plain.values(plain.exchange(3), 10) == dict(width=2.0, phases=3.0, often=0.0, limit=0.5)
    refuses("phases=2.5: must be a whole number", Plain, phases=2.5)
    refuses("often=1: must be True or False", Plain, often=1)


def test_configurations_are_values():
    """Would catch identity by object: equal configurations must share exchanges and results."""
    one, two, other = plugs.Geometric(growth=4), plugs.Geometric(growth=4.0), plugs.Geometric()
    assert one == two and hash(one) == hash(two) and one != other
    assert configs.build_exchange(one, 6) is configs.build_exchange(two, 6)
    assert one.describe() == two.describe() != other.describe()
    assert plugs.Geometric(growth=2) != plugs.Greedy()


# --- plug-ins that break their contract ---


@partial(jax.tree_util.register_dataclass, meta_fields=["regret", "last"], data_fields=["horizon"])
@dataclass(frozen=True)
class BareTrial:
    """A trial of one's own, without a family: its regret is any function of the slots."""

    regret: Any
    last: int
    horizon: Any

    def elements(self):
        """One row."""
        return 1

    def run(self, instance, grid, key):
        """The regret that was asked for."""
        zero = jnp.int32(0) * jax.random.key_data(key)[0].astype(jnp.int32)
        curve = self.regret(grid.astype(jnp.float64), key)
        rounds = jnp.broadcast_to(zero, grid.shape)
        gap = jnp.float64(0.0)
        return Outcome(curve, None, rounds, zero + self.last, *[zero] * 5, gap)


@dataclass(frozen=True)
class Bare(fmab.Algorithm):
    """An algorithm without a family."""

    name = "bare"
    regret: Any = fmab.parameter(Word(none_label="none"), "Of a trial.", default=None)
    last: int = 0

    def __post_init__(self):
        """Functions are no words."""

    def describe(self):
        """Enough for these tests."""
        return {"algorithm": "bare", "last": self.last}

    def settings(self):
        """None."""
        return {}

    def exchange(self, agents):
        """Nobody is heard."""
        return fmab.core.exchanges.alone(agents)

    def bind(self, problem, horizon, **_):
        """Binds nothing but the horizon."""
        return BareTrial(self.regret, self.last, np.int64(horizon))


def own_policy(choose, **more):
    """Returns a policy with a function of its own."""
    made = type("Own", (fmab.IndexPolicy,), {"name": "own", "choose": staticmethod(choose), **more})
    return dataclass(frozen=True)(made)()


def same_arm(state, arm):
    """Every row pulls one arm."""
    return jnp.broadcast_to(jnp.asarray(arm, jnp.int32), state.pulls.shape[:1])


def plays(arm, **more):
    """Returns a policy of which every row pulls one arm, which may be a function."""
    each = arm if callable(arm) else lambda *_: arm
    return own_policy(lambda *given: same_arm(given[0], each(*given)), **more)


COUNTED = [0]


def counting(state, slot, params):
    """Keeps a count between compilations."""
    COUNTED[0] += 1
    return COUNTED[0] % 3


def random_digits():
    """Returns thirty arms that differ each time the policy is traced."""
    return jnp.asarray(np.random.randint(3, size=30))


@jax.custom_batching.custom_vmap
def crowded(slots):
    """Returns the slots, by how many trials there are in the batch."""
    return slots


@crowded.def_vmap
def _crowded(size, batched, slots):
    return slots / size, batched[0]


@dataclass(frozen=True)
class Unwritten(Bare):
    """An algorithm whose description cannot be written."""

    name = "unwritten"

    def describe(self):
        """No JSON."""
        return {"weights": np.ones(2)}


def slow_linear(rng, means, horizon):
    """Another law: half a slot's regret more or less."""
    return float(horizon * rng.uniform(0.4, 0.6))


SLOW = {"reference": slow_linear, "runs": 100}
LOST = plays(1, commit=staticmethod(lambda s: same_arm(s, 99)))
BROKEN = {
    "a field without a hash": (Bare(regret=[]), "value", "no hash"),
    "a description of arrays": (Unwritten(), "value", "a description that is not JSON"),
    "a share of its batch": (Bare(regret=lambda t, key: crowded(t)), "batch", "regret of seed 0"),
    "another law": (Bare(regret=lambda t, key: 0.6 * t), "law", "Kolmogorov-Smirnov", SLOW),
    "a scalar for rows": (own_policy(lambda s, t, o: jnp.int32(0)), "outcome", "choose returns"),
    "reals for arms": (
        own_policy(lambda s, t, o: jnp.zeros(s.pulls.shape[0])),
        *("outcome", "choose returns float64"),
    ),
    "an arm that is none": (plays(3), "finite", "regret nan"),
    "an arm before the first": (plays(-1), "finite", "nan"),
    "a commitment to an arm that is none": (LOST, "finite", "final gap nan of seed 0"),
    "a commitment of one row for all": (
        *(plays(1, commit=staticmethod(lambda s: jnp.int32(0))), "outcome", "commit returns"),
    ),
    "an unknown name": (
        own_policy(lambda s, t, o: no_such_name),  # noqa: F821
        *("outcome", "choose: NameError: name 'no_such_name'"),
    ),
    "an unknown parameter": (
        *(plays(lambda s, t, o: o["alfa"]), "outcome", "KeyError: there is no 'alfa'"),
    ),
    "state in Python": (plays(counting), "again", "regret of seed"),
    # One random digit per slot: two compilations agree once in 3^30.
    "randomness in Python": (
        *(plays(lambda s, t, o: random_digits()[t.number - 1]), "again", "regret of seed"),
    ),
    "the room": (plays(lambda s, t, o: int(s.pulls.shape[0] > 4)), "room", "regret of seed"),
    "no number": (Bare(regret=lambda t, key: t * jnp.nan), "finite", "regret nan of seed 0"),
    "negative regret": (Bare(regret=lambda t, key: -t), "grows", "regret -"),
    "falling regret": (Bare(regret=lambda t, key: jnp.abs(t - 9.0)), "grows", "regret"),
    "too much regret": (Bare(regret=lambda t, key: 1e6 * t), "grows", "by slot"),
    "a wrong length": (Bare(regret=lambda t, key: t[:-1]), "outcome", "regret of shape"),
    "whole numbers": (Bare(regret=lambda t, key: t.astype(int)), "outcome", "of type int64"),
    "rounds that do not add up": (Bare(regret=lambda t, key: t, last=7), "rounds", "rounds 7"),
    "a curve of its grid": (
        Bare(regret=lambda t, key: jnp.arange(len(t), dtype=jnp.float64) / 100.0),
        *("exact", "regret of seed"),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_breaks_the_contract_is_named_with_its_sentence(what):
    """Would catch a broken plug-in that passes, or that ends in somebody else's error."""
    algorithm, promise, seen, *more = BROKEN[what]
    given = dict(horizon=30, seeds=8) | (more or [{}])[0]
    told = refused(fmab.check_algorithm, algorithm, FEW, **given)
    name, _, said = told.partition(" ")
    # A trial without a family is named by its class where it is traced.
    assert name in (algorithm.name, "BareTrial")
    assert said.startswith("breaks the contract of algorithms: ")
    assert PROMISES[promise] in told and seen in told.partition("Seen: ")[2], told


def test_every_promise_is_broken_by_a_plug_in(monkeypatch):
    """Would catch a promise that nothing looks at: there may be one device, which needs another."""
    assert {promise for _, promise, *_ in BROKEN.values()} == set(PROMISES) - {"devices", "rewards"}
    laws_looked_at = []
    monkeypatch.setattr(conformance, "check_everywhere", laws_looked_at.append)
    fmab.check_algorithm(fmab.ucb1(), PROBLEM, horizon=5, seeds=8)
    assert laws_looked_at == [PROBLEM.rewards]  # tests/core/test_laws.py: what it finds
    first = jax.devices()[0]
    monkeypatch.setattr(conformance, "checked_devices", lambda _: (first, first))
    run_trials = batches.run_trials

    def uneven(trials, batch, used):
        for start, outcome in run_trials(trials, batch, used[:1]):
            yield start, outcome._replace(regret=outcome.regret * len(used))

    monkeypatch.setattr(batches, "run_trials", uneven)
    straight, line = Bare(regret=lambda t, key: 0.1 * t), " Seen: regret of seed 0"
    given = dict(horizon=30, seeds=8)
    refuses(PROMISES["devices"] + line, fmab.check_algorithm, straight, FEW, **given)


@pytest.mark.parametrize("run", ["simulate", "sweep"])
@pytest.mark.parametrize("what", ["no number", "negative regret", "falling regret"])
def test_every_run_looks_at_its_regret(what, run):
    """Would catch a check of the contract that only `check_algorithm` makes."""
    algorithm, promise, seen = BROKEN[what]
    told = refused(getattr(fmab, run), algorithm, FEW, horizon=30, seeds=8)
    assert told.startswith("bare breaks the contract of algorithms: ") and seen in told
    assert PROMISES[promise] in told


def test_regret_is_looked_at_where_it_stays_on_a_device(monkeypatch):
    """Would catch a check of the contract that is made of curves on the host alone."""
    monkeypatch.setattr(resources, "keeps_curves", lambda devices: True)
    algorithm, promise, seen = BROKEN["falling regret"]
    told = refused(fmab.sweep, algorithm, FEW, horizon=30, seeds=8, keep="summary")
    assert PROMISES[promise] in told and seen in told


def elimination(**more):
    """Returns a small elimination with functions of its own."""
    usual = {
        "name": "own",
        "exchange": lambda self, agents: fmab.core.exchanges.server(agents),
        "pulls_per_arm": staticmethod(lambda epoch: epoch.previous + 5.0),
        "radius": staticmethod(lambda epoch: 1.0 / jnp.sqrt(epoch.pulls)),
    }
    return dataclass(frozen=True)(type("Own", (fmab.Elimination,), usual | more))()


@pytest.mark.parametrize("equation", ["pulls_per_arm", "radius"])
def test_an_equation_that_yields_no_number_ends(equation):
    """Would catch a run that never ends, or ends with numbers that mean nothing."""
    algorithm = elimination(**{equation: staticmethod(lambda epoch: epoch.pulls * jnp.nan)})
    refuses("Regret is a finite number", fmab.simulate, algorithm, FEW, 60, 8)


@pytest.mark.slow
def test_noise_that_no_result_would_tell_of_is_refused():
    """Would catch a noisy run under a caption that says no noise."""
    noise = {"noisy": True, "noise_scale": staticmethod(lambda epoch: 1.0 + 0.0 * epoch.pulls)}
    line = "Own.privacy=.*: must be its own where noisy = True"
    refuses(line, fmab.simulate, elimination(**noise), FEW, 60, 8)
    told = {"privacy": lambda self, exchange: {"epsilon": 1.0, "epsilon_message": 3.0}}
    loud = fmab.simulate(elimination(**noise, **told), FEW, 60, 8)
    assert loud.attrs["epsilon"] == 1.0
    assert not loud.equals(fmab.simulate(elimination(), FEW, 60, 8))
    normal = fmab.Problem(MEANS, agents=3, rewards=fmab.Gaussian(0.1))
    line = "epsilon=1.0: must be None"
    refuses(line, fmab.simulate, elimination(**noise, **told), normal, 60, 8)


@pytest.mark.parametrize(
    ("table", "field"),
    [
        (dict(weights=np.full(4, 1 / 3)), "exchange.weights"),
        (dict(weights="even"), "exchange.weights"),
        (dict(links=5), "exchange.links"),
        (dict(links=(plugs.UPLINK,)), "exchange.links"),
        (dict(weights=np.full(3, 1.0)), "exchange.weights"),
        (dict(reporting=4), "exchange.reporting"),
        (dict(wait=-1), "exchange.wait"),
        (dict(links=((plugs.UPLINK, -3),)), "exchange.links"),
        (dict(agents=4, weights=np.full(4, 1 / 4)), "Own.exchange"),
        # Of the right sum, and no weights.
        (dict(weights=[2.0, -0.5, -0.5]), r"exchange.weights=.*numbers in \[0, 1\]"),
        (dict(weights=[1.5, -0.5, 0.0]), "exchange.weights"),
        (dict(weights=[math.nan, 0.5, 0.5]), "exchange.weights"),
        (dict(links=((plugs.UPLINK, 1), (plugs.UPLINK, 2))), "exchange.links=.*once"),
        (dict(links=((plugs.UPLINK._replace(side="both"), 1),)), "exchange.links=.*'peer'"),
        (dict(links=((plugs.UPLINK._replace(priced="no"), 1),)), "exchange.links=.*True or False"),
        (dict(links=((plugs.UPLINK._replace(name=5), 1),)), "exchange.links=.*two texts"),
        (dict(links=((plugs.UPLINK._replace(name=[]), 1),)), "exchange.links=.*two texts"),
        (dict(agents=True, reporting=1, weights=[1.0]), "exchange.agents=True"),
        (dict(diameter=-1), "exchange.diameter=-1"),
        (dict(alone=1), "exchange.alone=1"),
        (dict(name=5), "exchange.name=5"),
        (dict(views=5), "exchange.views=5"),
        (dict(views=("the server",)), "exchange.views='the server': must be Views"),
        (dict(views=(View("the server", 2.5),)), "exchange.views=2.5"),
        (dict(views=(View("the server", 2, is_member="no"),)), "exchange.views.is_member='no'"),
    ],
)
def test_an_exchange_that_is_no_table_is_refused(table, field):
    """Catches weights, meters or numbers that nobody asks about."""
    usual = {"name": "x", "agents": 3, "reporting": 3, "weights": np.full(3, 1 / 3)} | table
    algorithm = elimination(exchange=lambda self, agents: fmab.Exchange(**usual))
    refuses(field, fmab.simulate, algorithm, FEW, 60, 8)


def test_a_changed_algorithm_does_not_pass_for_the_one_it_changes():
    """Would catch a figure that calls a variant by the paper's name, or credits it to the paper."""

    @dataclass(frozen=True)
    class Nearly(fmab.cdp_mab):
        name = "nearly"

    @dataclass(frozen=True)
    class Named(fmab.cdp_mab):
        name, title, source = "named", "A title", "A source"

    assert (Nearly.title, Nearly.source) == ("", "")
    assert Nearly.communication == fmab.cdp_mab.communication
    assert (Named.title, Named.source) == ("A title", "A source")
    assert fmab.cdp_mab.title == "CDP-MAB" and fmab.cdp_mab.source == fmab.ddp_mab.source != ""
    data = fmab.simulate(Nearly(1.0), FEW, 60, 8)
    assert data.attrs["title"] == "nearly"


def reading(owner, function, **more):
    """Returns a plug-in with fields of its own, which a function of it reads."""

    @dataclass(frozen=True)
    class Reading(owner):
        name = "reading"
        first: int = 4
        factor: float = 1.5
        steady: bool = True
        label: str = "a text is no number"

    for name, value in ({function.__name__: staticmethod(function)} | more).items():
        setattr(Reading, name, value)
    return Reading


def test_fields_of_a_class_are_in_own_by_themselves():
    """Would catch `params["first"]` that a class has to hand on itself, since the class that it
    changes says which numbers it has."""

    def pulls_per_arm(epoch):
        return epoch.previous + jnp.ceil(epoch.params["first"] * epoch.params["factor"])

    def fixed(epoch):
        return epoch.previous + 6.0

    fixed.__name__ = "pulls_per_arm"
    problem, own = FEW, reading(fmab.cdp_mab, pulls_per_arm)
    found = fmab.simulate(own(1.0), problem, 600, 8)
    wanted = fmab.simulate(reading(fmab.cdp_mab, fixed)(1.0), problem, 600, 8)
    np.testing.assert_array_equal(found.regret, wanted.regret)
    assert found.rounds_made.max() > 3
    # Nothing of what is sent has changed, so what is known of it still holds.
    stated, usual = (fmab.privacy_ledger(each, 3) for each in (own(1.0), fmab.cdp_mab(1.0)))
    assert stated == usual

    def bound(algorithm):
        exchange = algorithm.exchange(3)
        found = algorithm.bind(FEW, 600, exchange=exchange).params
        # The instance's own gap is NaN, until there is an instance.
        return {name: value for name, value in found.items() if not np.isnan(value)}

    fields = {"first": 4.0, "factor": 1.5, "steady": 1.0}
    for parent in (fmab.cdp_mab(1.0), fmab.ucb1(), fmab.dp_imed(1.0), fmab.kl_se(1.0)):
        given = {"epsilon": 1.0} if "epsilon" in parameters_of(type(parent)) else {}
        child = reading(type(parent), fixed)(**given)
        usual = bound(parent)
        assert bound(child) == bound(child) | fields | {n: usual[n] for n in {*usual} - {*fields}}
        # A class that hands on only some still has all; it may replace them.
        some = reading(type(parent), fixed, values=lambda *given: {"factor": 3.0})(**given)
        assert bound(some) == bound(some) | fields | {"factor": 3.0}


def fails(*_, **__):
    """Divides by zero."""
    return 1 // 0


@pytest.mark.parametrize(
    "function", ["exchange", "bind", "values", "privacy", "settings", "describe", "budget"]
)
def test_a_function_that_fails_is_named_in_one_line(function):
    """Would catch a traceback, or a line that does not say whose function it was."""
    static = staticmethod if function == "budget" else lambda each: each
    algorithm = elimination(**{function: static(fails)})
    with pytest.raises(Refusal) as caught:
        fmab.simulate(algorithm, FEW, 60, 8)
    told, usual = str(caught.value), f"own.{function}: must return, not end in "
    place = "Seen: budget: " if function == "budget" else usual
    assert told.startswith("own") and f"{place}ZeroDivisionError: " in told and "\n" not in told
    # The line that failed, in somebody else's file: the package's own frames lie around it.
    assert f", line {fails.__code__.co_firstlineno + 2} of test_plugs.py" in told
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


BOTH = ("epsilon", "epsilon_message")
STATED = [
    ("ledger", (), "=(): must be one Disclosure, or several"),
    ("ledger", None, "=None: must be one Disclosure, or several"),
    ("ledger", ("x",), "=('x',): must be one Disclosure, or several"),
    (
        "ledger",
        Disclosure("a", "b", math.nan, "c"),
        "[0].epsilon=nan: must be a number in [0, inf]",
    ),
    (
        "ledger",
        Disclosure("a", "b", 1.0, "c", over=math.nan),
        "[0].over=nan: must be a whole number",
    ),
    ("ledger", Disclosure("a", "b", 1.0, None), "[0]=Disclosure("),
    ("privacy", {}, "={}: must be a dict of epsilon and epsilon_message"),
    ("privacy", None, "=None: must be a dict of epsilon and epsilon_message"),
    ("privacy", dict.fromkeys(BOTH, -1.0), "['epsilon']=-1.0: must be a number in [0, inf]"),
    ("privacy", dict.fromkeys((*BOTH, "agents"), 1.0), "={'agents': 1.0, "),
    ("number_bits", -7, "=-7: must be a whole number in [0, 1,000,000]"),
    ("describe", None, "=None: must be a dict that JSON can hold"),
    ("describe", {"a": math.nan}, "={'a': nan}: must be a dict that JSON can hold"),
]


@pytest.mark.parametrize(("function", "stated", "told"), STATED)
def test_what_results_cannot_say_is_refused_before_anything_runs(
    function, stated, told, monkeypatch
):
    """Would catch a traceback, or a wrong statement that is found when all is computed."""
    monkeypatch.setattr(compilation, "compile_program", None)
    monkeypatch.setattr("fmab_jax.analysis.audit.list_exposures", None)
    algorithm = altered(fmab.cdp_mab, **{function: lambda *_: stated})(1.0)
    start = f"Altered.{function}{told}"
    for work in (
        lambda: fmab.simulate(algorithm, FEW, 60, 8),
        lambda: fmab.sweep(algorithm, FEW, horizon=60, seeds=8),
        lambda: fmab.audit(algorithm, 4, runs=1000),
    ):
        with pytest.raises(Refusal) as caught:
            work()
        assert str(caught.value).startswith(start)


# An elimination, and what may stand around it: all with places where something may go wrong.
HOOKED = """\
from dataclasses import dataclass
import jax.numpy as jnp
import fmab_jax as fmab
{top}
@dataclass(frozen=True)
class Own(fmab.Elimination):
    name = "own"
    width: float = 1.0

    def exchange(self, agents):
        {exchange}
        return fmab.core.exchanges.server(agents)

    def check(self):
        {check}

    @staticmethod
    def pulls_per_arm(epoch):
        {pulls}
        return epoch.previous + 5.0

    @staticmethod
    def radius(epoch):
        return 1.0 / jnp.sqrt(epoch.pulls)
"""
TOSSED = """\
from fmab_jax.core.rewards import FiniteSupport
@dataclass(frozen=True)
class Coin(FiniteSupport):
    name = "coin"
    levels = (0.0, 1.0)

    def label(self):
        {label}
        return "a coin"

    def parameters(self, means, **traced):
        {law}
        return 1.0 - means, means
"""
HELD = dict.fromkeys(("top", "check", "exchange", "pulls", "law", "label"), "pass")
COMPLETE = HOOKED.format(**HELD)


@pytest.mark.parametrize("place", HELD)
@pytest.mark.parametrize(
    ("raised", "told"),
    [
        ("raise SystemExit", "SystemExit"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("raise KeyError('name')", "KeyError: there is no 'name'"),
    ],
)
def test_a_plug_in_that_ends_the_process_is_named_in_one_line(
    place, raised, told, tmp_path, capsys
):
    """Catches `except Exception` in `refuse_errors`, `load_plugin`, `_check_numbers`, untried."""
    path = tmp_path / "quits.py"
    source = HOOKED + TOSSED
    path.write_text(source.format(**HELD | {place: raised}), encoding="utf-8")
    words = ["run", "own", "--plugin", str(path), *SMALL, "--rewards", "coin", "--no-figure"]
    assert main(words) == 2
    error = capsys.readouterr().err.removeprefix("compiling ...\n")
    line = path.read_text("utf-8").splitlines().index(" " * 8 * (place != "top") + raised) + 1
    assert told in error and f"line {line} of quits.py" in error, error
    assert error.startswith("fmab: ") and error.count("\n") == 1, error


def test_ctrl_c_in_a_plug_in_is_ctrl_c(tmp_path, capsys):
    """Catches an interruption taken for the plug-in's error: `foreign` of KeyboardInterrupt."""
    path = tmp_path / "stops.py"
    path.write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    assert main(["algorithms", "--plugin", str(path)]) == 130
    assert capsys.readouterr().err == "fmab: stopped; nothing written\n"


def test_a_policy_whose_hooks_fail_is_named(capsys):
    """Would catch a traceback from the state, from a check, or from a family by itself."""
    policy = plays(1, init=staticmethod(fails))
    line = "must return, not end in ZeroDivisionError"
    refuses(f"^own.init: {line}", fmab.simulate, policy, FEW, 60, 8)
    made = {"name": "own", "choose": staticmethod(fails), "check": fails}
    owner = dataclass(frozen=True)(type("Own", (fmab.IndexPolicy,), made))
    refuses(f"^own.check: {line}", fmab.sweep, owner, FEW, horizon=60, seeds=8)
    for family, missing in ((fmab.Elimination, "exchange"), (fmab.IndexPolicy, "choose")):
        line = f"must be a class that states {missing}; .*{family.__name__}.{missing}"
        refuses(line, lambda family=family: fmab.simulate(family(), FEW, 60, 8))


@pytest.mark.parametrize("function", ["exchange", "pulls_per_arm", "radius"])
def test_an_incomplete_plug_in_is_refused(function, tmp_path, capsys):
    """Would catch an algorithm without an equation that is loaded, and ends in a traceback."""
    path = tmp_path / "own.py"
    path.write_text(COMPLETE.replace(f"def {function}(", "def other("), encoding="utf-8")
    assert main(["run", "own", "--plugin", str(path), *SMALL]) == 2
    error = capsys.readouterr().err
    assert f"must be a class that states {function}; " in error and f"Own.{function}" in error
    assert error.count("\n") == 1 and "own" not in base.collect_algorithms()
    path.write_text(COMPLETE, encoding="utf-8")
    assert [owner.name for owner in base.load_plugin(str(path))] == ["own"]


def test_weights_in_a_list_are_weights():
    """Catches a list that is an AttributeError or changes later, and NumPy's whole numbers."""
    given = [1 / 3] * 3
    links = [(plugs.UPLINK, np.int64(2))]
    made = fmab.Exchange("x", np.int32(3), 3, given, links=links)
    assert type(made.agents) is int and type(made.links[0][1]) is int
    given[0] = 2.0
    assert made.uniform and made.on("uplink") == 2 and not made.weights.flags.writeable
    algorithm = elimination(exchange=lambda self, agents: made)
    run = fmab.simulate(algorithm, FEW, 60, 8)
    assert np.array_equal(run.links[:, -1, 0], 2 * run.rounds_made)


# --- where plug-ins come from ---


@pytest.mark.slow
def test_the_source_of_ones_own_is_told():
    """Would catch two versions of a plug-in that make the same caption and heading."""
    made = fmab.simulate(plugs.Geometric(first=16, branches=2), PROBLEM, 50, 2, times=2)
    digest = plugs.Geometric(first=16, branches=2).describe()["code"]
    assert f"code {digest[:8]}" in words.list_facts(made)
    ours = fmab.simulate(fmab.cdp_mab(1.0), fmab.Problem.uniform(4, 3), 50, 2, times=2)
    assert not any(fact.startswith("code") for fact in words.list_facts(ours))


HELPED = "from fmab_test_helper import factor\n" + COMPLETE
for old, new in (
    *(("Own", "Helped"), ("own", "helped"), ("+ 5.0", "+ 5.0 * factor()")),
    ("return 1.0 /", "import fmab_test_late\n        return fmab_test_late.WIDTH /"),
):
    HELPED = HELPED.replace(old, new)
HELPERS = {
    "fmab_test_helper.py": "import fmab_test_late\nfrom fmab_test_deep import VALUE\n"
    "def factor():\n    return VALUE * SCALE * fmab_test_late.WIDTH\nSCALE = 1\n",
    "fmab_test_late.py": "WIDTH = 1.0\n",
    "fmab_test_deep.py": "VALUE = 1\n",
    "fmab_test_beside.py": "raise ValueError('nobody imports it')\n",
}


@pytest.fixture
def helped(tmp_path, monkeypatch):
    """A plug-in file with helpers in its folder, which is on the path."""
    for name, text in {"mine.py": HELPED, **HELPERS}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    forget_helpers()


def forget_helpers():
    """Has the next import be the first, as in another process."""
    for name in [name for name in sys.modules if name.startswith(("fmab_test_", "fmab_plugin_"))]:
        del sys.modules[name]
    plugins._executed.clear()
    base._loaded.clear()


def loaded(path):
    """Loads the one algorithm of a file."""
    (owner,) = base.load_plugin(str(path))
    return owner


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("mine.py", "+ 5.0 *", "+ 9.0 *"),
        ("fmab_test_helper.py", "SCALE = 1", "SCALE = 3"),
        ("fmab_test_late.py", "= 1.0", "= 3.0"),
    ],
)
def test_a_changed_file_or_helper_is_another_configuration(helped, name, old, new):
    """Catches a file left out of its digest; `_helpers` of nothing; an old helper that stays."""
    study = partial(fmab.sweep, "helped", PROBLEM, horizon=500, seeds=8, store=helped / "runs")
    text = (helped / name).read_text("utf-8")
    assert text.count(old) == 1
    results = []
    for each in (text, text.replace(old, new)):  # of one length, in one second
        (helped / name).write_text(each, encoding="utf-8")
        loaded(helped / "mine.py")
        results.append(study())
        # Computed anew, in the same store.
        assert results[-1].attrs["compilations"] == 1
        assert study().attrs["compilations"] == 0
    assert not np.array_equal(*(each.regret for each in results))
    assert not [*helped.rglob("*helper*.pyc"), *helped.rglob("mine*.pyc")]
    # As it was, here and then in another process: the configuration that it was.
    (helped / name).write_text(text, encoding="utf-8")
    for forget in (list, forget_helpers):
        forget()
        loaded(helped / "mine.py")
        again = study()
        assert again.attrs["compilations"] == 0
        assert np.array_equal(again.regret, results[0].regret)


@pytest.mark.parametrize("name", HELPERS)
def test_every_helper_counts_and_nothing_else(helped, name):
    """Catches an import in a function uncounted, or a file that counts: a helper's helper."""
    counts = name in ("fmab_test_helper.py", "fmab_test_late.py")
    before = plugins.source_digest(loaded(helped / "mine.py"))
    for text, same in ((HELPERS[name] + "# changed\n", not counts), (HELPERS[name], True)):
        (helped / name).write_text(text, encoding="utf-8")
        owner = loaded(helped / "mine.py")
        assert (plugins.source_digest(owner) == before) is same
    # Nor where the folder lies.
    shutil.copytree(helped, helped / "elsewhere")
    forget_helpers()
    sys.path.insert(0, str(helped / "elsewhere"))
    assert plugins.source_digest(loaded(helped / "elsewhere/mine.py")) == before
    sys.path.remove(str(helped / "elsewhere"))


@pytest.mark.parametrize(
    ("name", "text", "factor"),
    [
        ("fmab_test_helper.py", "def factor():\n    return 9\n", 9),
        ("fmab_test_late.py", "WIDTH = 4.0\n", 4),
    ],
)
def test_the_digest_is_of_what_was_imported(helped, name, text, factor):
    """Would catch an old helper that runs under the name of a new one, edited since."""
    first = loaded(helped / "mine.py")
    (helped / name).write_text(text, "utf-8")
    digest = first().describe()["code"]
    second = loaded(helped / "mine.py")
    assert second is not first and second().describe()["code"] != digest
    assert first.pulls_per_arm.__globals__["factor"]() == 1
    # A helper that has not changed imports the new one.
    assert second.pulls_per_arm.__globals__["factor"]() == factor


def test_helpers_travel_with_their_plug_in(helped):
    """Would catch a worker that computes with another version of a helper, or with none."""
    owner = loaded(helped / "mine.py")
    digest, (source,) = plugins.source_digest(owner), plugins.plugin_sources()[-1:]
    forget_helpers()
    # There, a helper is another one, and was imported before.
    (helped / "fmab_test_helper.py").write_text("def factor():\n    return 7\n", "utf-8")
    there = loaded(helped / "mine.py")
    assert plugins.source_digest(there) != digest
    (helped / "fmab_test_helper.py").unlink()
    (helped / "fmab_test_late.py").unlink()
    plugins.import_sources([source])
    same = sys.modules[source.name].Helped
    assert same.pulls_per_arm.__globals__["factor"]() == 1
    # What a function imports later is sent along.
    epoch = SimpleNamespace(pulls=jnp.ones(1))
    assert float(same.radius(epoch)[0]) == 1.0
    assert plugins.source_digest(same) == digest


def test_a_module_of_another_place_is_no_helper(helped):
    """Would catch a file beside a plug-in that takes the name of a module that Python has."""
    before = plugins.source_digest(loaded(helped / "mine.py"))
    (helped / "dataclasses.py").write_text("raise ValueError('not this one')\n", "utf-8")
    forget_helpers()
    assert plugins.source_digest(loaded(helped / "mine.py")) == before


@pytest.mark.parametrize("line", ["from .more import factor", "from fmab_test_own import more"])
def test_a_module_counts_with_its_neighbours(helped, line):
    """Would catch imports in a package, relative or absolute, that do not count."""
    text = HELPED.replace("from fmab_test_helper import factor", f"{line}\nfactor = int")
    (helped / "fmab_test_own").mkdir()
    files = {"__init__": "", "algorithms": text, "more": "def factor():\n    return 1\n"}
    for name, content in {**files, "other": "VALUE = 1\n"}.items():
        (helped / f"fmab_test_own/{name}.py").write_text(content, encoding="utf-8")

    def digest():
        forget_helpers()
        (owner,) = base.load_plugin("fmab_test_own.algorithms")
        return plugins.source_digest(owner)

    for name, counts in (("more", True), ("other", False)):
        before = digest()
        with (helped / f"fmab_test_own/{name}.py").open("a", encoding="utf-8") as file:
            file.write("# changed\n")
        assert (digest() != before) is counts, name


def test_a_constant_in_code_without_source_counts(monkeypatch):
    """Would catch a class typed into a session that is taken for an earlier one."""
    made = []
    monkeypatch.setitem(sys.modules, "typed_in", ModuleType("typed_in"))
    for constant in (0.25, 0.5, 0.25):
        names = {"__name__": "typed_in"}
        exec(
            "import dataclasses, fmab_jax\n@dataclasses.dataclass(frozen=True)\n"
            "class Mine(fmab_jax.IndexPolicy):\n    name = 'mine'\n    width: float = 1.0\n"
            f"    @staticmethod\n    def choose(state, slot, params):\n        return {constant}\n",
            names,
        )
        made.append(plugins.source_digest(names["Mine"]))
    assert made[0] == made[2] != made[1]


HEAD = "from dataclasses import dataclass\nimport fmab_jax as fmab\n@dataclass(frozen=True)\n"
CLASS, COIN = (
    HEAD + "class Mine(fmab.{}):\n    {}\n",
    (
        "from dataclasses import dataclass\nfrom fmab_jax.core.rewards import FiniteSupport\n"
        "@dataclass(frozen=True)\nclass Coin(FiniteSupport):\n    name = 'mine'\n"
        "    levels = (0.0, 1.0)\n    {}\n"
        "    def parameters(self, means, **traced):\n        return 1.0 - means, means\n"
    ),
)
# What stands in a file, and what is told of it; a line of an algorithm; a line of a law.
NO_PLUG_INS = (
    ("x = 1\n", "a module that defines an algorithm"),
    ("raise ValueError('no')\n", "ValueError: no"),
    ("def f(:\n", "SyntaxError"),
    ("import no_such_module_at_all\n", "no_such_module_at_all"),
    (CLASS.format("cdp_mab", "name = 'cdp'"), "the name of no other algorithm"),
    (
        CLASS.format("IndexPolicy", "name = 'mine'\n    width: float = 1.0").replace(
            "@dataclass(frozen=True)\n", ""
        ),
        "a frozen dataclass",
    ),
    (CLASS.format("IndexPolicy", "width: float = 1.0"), "Mine.name='': must be a short plain name"),
    (CLASS.format("Law", "width: float = 1.0"), "Mine.name='': must be a short plain name"),
    (CLASS.format("IndexPolicy", "name = 'My UCB'"), "a short plain name"),
)
LINES = (
    ("arms: list = None", "float, int, bool or str"),
    ("name = 5", "Mine.name=5: must be a short plain name"),
    ("x: 'Unknown' = 1", "Mine's annotations=name 'Unknown' is not defined: must be"),
    ("x: 'a b' = 1", "Mine's annotations=Forward reference must be an expression"),
    ("x: 5 = 1", "Mine.x=5: must be float, int, bool or str"),
    ("x: int | str = 1", "Mine.x=int | str: must be float, int, bool or str"),
    ("x: int = fmab.parameter(5, 'h')", "Mine.x=5: must be declared with a Kind"),
    ("no_figure: bool = False", "Mine.no_figure=a parameter: must be a name that"),
    ("no_overwrite: bool = True", "Mine.no_overwrite=a parameter: must be a name"),
    ("time: int = 5", "Mine.time=a parameter: must be a name that nothing else has"),
    ("meter: int = 5", "Mine.meter=a parameter: must be a name that nothing else"),
)
LAW_LINES = (
    ("name = 5", "Coin.name=5: must be a short plain name"),
    ("x: 'Unknown' = 1", "Coin's annotations=name 'Unknown' is not defined: must be"),
)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        *NO_PLUG_INS,
        *((CLASS.format("ucb1", f"name = 'mine'\n    {line}"), told) for line, told in LINES),
        *((COIN.format(line), told) for line, told in LAW_LINES),
    ],
)
def test_files_that_are_no_plug_ins_are_refused(source, told, tmp_path, monkeypatch, capsys):
    """Would catch a traceback in place of one line, another value, or a half that is known."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(source, encoding="utf-8")
    assert main(["algorithms", "--plugin", "mine.py"]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1, error
    assert error.startswith("fmab: --plugin mine.py: ") and "='mine.py'" not in error
    assert "mine" not in base.collect_algorithms()


TWICE = """\
from dataclasses import dataclass
import fmab_jax as fmab
from fmab_jax.core.rewards import FiniteSupport

@dataclass(frozen=True)
class Mine(fmab.ucb1):
    name = "mine"

@dataclass(frozen=True)
class Other(fmab.ucb1):
    name = "other"

Alias = Other

@dataclass(frozen=True)
class Coin(FiniteSupport):
    name = "coin"
    levels = (0.0, 1.0)

    def parameters(self, means, **traced):
        return 1.0 - means, means

@dataclass(frozen=True)
class Token(Coin):
    name = "token"
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('name = "other"', 'name = "mine"', "'mine' of Mine and of Other"),
        ('name = "token"', 'name = "coin"', "'coin' of Coin and of Token"),
    ],
)
def test_two_of_one_name_in_one_file_are_refused(old, new, told, tmp_path, capsys):
    """Catches one that another replaces: no comparison of names, no `defined_once`."""
    path = tmp_path / "own.py"
    path.write_text(TWICE, encoding="utf-8")
    assert [owner.name for owner in base.load_plugin(str(path))] == ["mine", "other"]
    base._loaded.clear()
    laws.LAWS_BY_NAME.pop("coin"), laws.LAWS_BY_NAME.pop("token")
    text = TWICE.replace(old, new).replace("Alias = Other", "")
    assert text != TWICE
    path.write_text(text, encoding="utf-8")
    assert main(["algorithms", "--plugin", str(path)]) == 2
    error = capsys.readouterr().err
    assert told in error and "own.py" in error and error.count("\n") == 1, error
    assert not base._loaded and "coin" not in laws.LAWS_BY_NAME


def test_another_file_cannot_take_a_loaded_name(tmp_path):
    """Would catch one plug-in that silently replaces another."""
    base.load_plugin(FILE)
    shutil.copy(FILE, tmp_path / "other.py")
    refuses("the name of no other algorithm", base.load_plugin, str(tmp_path / "other.py"))
    assert {owner.name for owner in base.load_plugin(FILE)} == {"geometric", "greedy"}
