"""A file outside the package is used everywhere; what breaks the contract is named."""

from __future__ import annotations

import json
import math
import statistics
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import plugs
import pytest
import scipy.stats
from altered import altered
from refusals import refused, refuses

import fmab_jax as fmab
from fmab_jax import Study
from fmab_jax.algorithms import base
from fmab_jax.algorithms.base import Disclosure, Noise
from fmab_jax.analysis import conformance
from fmab_jax.cli.main import main
from fmab_jax.errors import Refusal
from fmab_jax.parameters import Word, parameters_of
from fmab_jax.parts import plugins
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.parts.registry import REGISTRIES
from fmab_jax.parts.rewards import REWARDS
from fmab_jax.parts.trials import Outcome, Trial
from fmab_jax.run import batches, compilation, resources
from fmab_jax.run.promises import PROMISES

FILE = str(Path(plugs.__file__))
MEANS = np.array([0.9, 0.5, 0.1])
PROBLEM = fmab.Problem(MEANS, agents=6, rewards=plugs.ThreePoint(0.5))
FEW = fmab.Problem(MEANS, agents=3)
GAPS = MEANS.max() - MEANS
SMALL = ["--agents", "6", "--arms", "5", "--horizon", "2000", "--seeds", "16"]


@pytest.fixture(autouse=True)
def _no_plugins_left():
    """What a test loads, the next does not know."""
    tables = [registry.loaded for registry in REGISTRIES]
    before = [(table, dict(table)) for table in tables]
    yield
    for table, kept in before:
        table.clear()
        table.update(kept)


def test_elimination_runs_through_its_own_exchange():
    """Would catch equations or links of the file that are not the ones that run."""
    run = fmab.simulate(plugs.Geometric(first=16, branches=2), PROBLEM, 500, 16, times=100)
    # Phase 1: 16 pulls of each of 3 arms by 6 agents, in turn, whatever the rewards.
    phase = run.regret.sel(time=[5, 45])
    assert np.allclose(phase, 6 * GAPS.mean() * phase.time.values, rtol=1e-12)
    rounds = run.rounds_made.values
    assert rounds.max() >= 2
    last = run.links.isel(time=-1)
    assert np.array_equal(last.sel(meter="server"), 2 * rounds)
    assert np.array_equal(last.sel(meter="uplink"), 4 * rounds)
    assert np.array_equal(fmab.communication_cost(run, 10, 1)[:, -1], 24.0 * rounds)
    assert (run.chosen_arm == 0).all() and not run.best_arm_lost.any()
    # A round waits one slot: 6 agents lose at most the largest gap in each.
    assert (run.waiting_regret.values[:, -1] <= 6 * GAPS.max() * rounds + 1e-9).all()
    settings = json.loads(run.attrs["settings"])
    assert settings["first"] == "n₁ = 16" and "growth" not in settings
    assert (run.attrs["wait"], run.attrs["title"]) == (1, "Geometric phases")


@pytest.mark.slow
@pytest.mark.as_users_have_it
@pytest.mark.parametrize("name", sorted(base.ALGORITHMS.shipped))
def test_algorithms_of_the_package_keep_the_contract(name):
    """Would catch an algorithm whose bits depend on batch, neighbours, padding or compilation."""
    owner = base.ALGORITHMS.find(name)
    given = {}
    if "epsilon" in parameters_of(owner):
        given["epsilon"] = 0.5
    if "components" in parameters_of(owner):
        given["components"] = [2, 1]
    output = fmab.check_algorithm(owner(**given), fmab.Problem.uniform(3, 4), horizon=60, seeds=8)
    assert sum(line.startswith("kept") for line in output) >= len(PROMISES) - 2


def test_command_line_and_study_file_take_a_plug_in(tmp_path, monkeypatch, capsys):
    """Would catch a command that knows only the package's own algorithms."""
    monkeypatch.chdir(tmp_path)
    words = ["run", "geometric", "--plugin", FILE, "--growth", "4", *SMALL, "--out", "own"]
    assert main([*words, "--rewards", "three-point:0.25", "--no-figure"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for fact in ("Geometric phases", "g = 4", "uplink", "three-point rewards, middle 0.25"):
        assert fact in printed
    Path("study.toml").write_text(
        'algorithm = "geometric"\nhorizon = 2000\nseeds = 16\n[problem]\nagents = 6\narms = 5\n'
        'rewards = "three-point:0.25"\n[parameters]\ngrowth = [2, 4]\n',
        encoding="utf-8",
    )
    base.ALGORITHMS.loaded.clear()
    del REWARDS.loaded["three-point"]
    assert main(["sweep", "study.toml", "--out", "own_sweep"]) == 2
    assert "load a plug-in" in capsys.readouterr().err and not Path("own_sweep").exists()
    assert main(["sweep", "study.toml", "--out", "own_sweep", "--plugin", FILE]) == 0
    # Results say of themselves what they are: no plug-in is needed to look at them.
    base.ALGORITHMS.loaded.clear()
    assert main(["show", "own_sweep"]) == 0 and "Geometric phases" in capsys.readouterr().out
    swept = fmab.open_sweep("own_sweep")
    assert np.array_equal(swept.regret.sel(growth=4), fmab.load("own.nc").regret)


def test_a_name_is_taken_once(tmp_path):
    """Would catch a plug-in, or a law, that silently replaces another."""
    base.load_plugin(FILE)
    assert {owner.name for owner in base.load_plugin(FILE)} == {"geometric", "greedy"}
    source = Path(FILE).read_text("utf-8")
    (tmp_path / "copy.py").write_text(source, "utf-8")
    refuses("the name of no other", base.load_plugin, str(tmp_path / "copy.py"))
    source = source.replace('"geometric"', '"other_one"').replace('"greedy"', '"other_two"')
    (tmp_path / "law.py").write_text(source, "utf-8")
    refuses(
        "three-point.*: must be the name of no other", base.load_plugin, str(tmp_path / "law.py")
    )
    assert "other_one" not in base.ALGORITHMS.by_name()


@partial(jax.tree_util.register_dataclass, meta_fields=["regret", "last"], data_fields=["horizon"])
@dataclass(frozen=True)
class BareTrial(Trial):
    """A trial of one's own, without a family: its regret is any function of the slots."""

    regret: Any
    last: int
    horizon: Any

    def elements(self):
        return 1

    def run(self, instance, grid, key):
        zero = jnp.int32(0) * jax.random.key_data(key)[0].astype(jnp.int32)
        curve = self.regret(grid.astype(jnp.float64), key)
        rounds = jnp.broadcast_to(zero, grid.shape)
        return Outcome(curve, None, rounds, zero + self.last, *[zero] * 5, jnp.float64(0.0))


@dataclass(frozen=True)
class Bare(fmab.Algorithm):
    """An algorithm without a family, whose parameter is a function."""

    name = "bare"
    regret: Any = fmab.parameter(Word(none_label="none"), "Of a trial.", default=None)
    last: int = 0

    __post_init__ = settings = lambda self: {}

    def describe(self):
        return {"algorithm": "bare", "last": self.last}

    def exchange(self, agents):
        return fmab.parts.exchanges.alone(agents)

    def bind(self, problem, horizon, **_):
        return BareTrial(self.regret, self.last, np.int64(horizon))


def test_a_trial_of_another_kind_is_refused():
    """Would catch a trial that no base class completes, which fails late and without a name."""

    @dataclass(frozen=True)
    class Odd(Bare):
        def bind(self, problem, horizon, **_):
            return object()

    refuses(r"^Odd\.bind='object': must be a fmab_jax\.parts", fmab.simulate, Odd(), FEW, 10, 1)


def own_policy(choose, **more):
    """Returns a policy with a function of its own."""
    result = type(
        "Own", (fmab.IndexPolicy,), {"name": "own", "choose": staticmethod(choose), **more}
    )
    return dataclass(frozen=True)(result)()


def same_arm(state, arm):
    """Every row pulls one arm."""
    return jnp.broadcast_to(jnp.asarray(arm, jnp.int32), state.pulls.shape[:1])


def plays(arm, **more):
    """Returns a policy of which every row pulls one arm, which may be a function."""
    item = arm if callable(arm) else lambda *_: arm
    return own_policy(lambda *given: same_arm(given[0], item(*given)), **more)


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
    """An algorithm whose description cannot be written: no JSON holds an array."""

    name = "unwritten"

    def describe(self):
        return {"weights": np.ones(2)}


def slow_linear(rng, means, horizon):
    """Another law: half a slot's regret more or less."""
    return float(horizon * rng.uniform(0.4, 0.6))


SLOW = {"reference": slow_linear, "runs": 100}
LOST = plays(1, commit=staticmethod(lambda s: same_arm(s, 99)))
BROKEN = {
    "a field without a hash": (Bare(regret=[]), "value", "no hash"),
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
    "an unknown name": (
        own_policy(lambda s, t, o: no_such_name),  # noqa: F821
        *("outcome", "choose: NameError: name 'no_such_name'"),
    ),
    "state in Python": (plays(counting), "again", "regret of seed"),
    # One random digit per slot: two compilations agree once in 3^30.
    "randomness in Python": (
        *(plays(lambda s, t, o: random_digits()[t.number - 1]), "again", "regret of seed"),
    ),
    "the padding": (plays(lambda s, t, o: int(s.pulls.shape[0] > 4)), "padding", "regret of seed"),
    "no number": (Bare(regret=lambda t, key: t * jnp.nan), "finite", "regret nan of seed 0"),
    "falling regret": (Bare(regret=lambda t, key: jnp.abs(t - 9.0)), "grows", "regret"),
    "too much regret": (Bare(regret=lambda t, key: 1e6 * t), "grows", "by slot"),
    "rounds that do not add up": (Bare(regret=lambda t, key: t, last=7), "rounds", "rounds 7"),
    "a curve of its grid": (
        Bare(regret=lambda t, key: jnp.arange(len(t), dtype=jnp.float64) / 100.0),
        *("exact", "regret of seed"),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_breaks_the_contract_is_named_with_its_sentence(what):
    """Would catch a broken plug-in that passes, or that ends in somebody else's error."""
    algorithm, promise, observed, *more = BROKEN[what]
    given = dict(horizon=30, seeds=8) | (more or [{}])[0]
    output = refused(fmab.check_algorithm, algorithm, FEW, **given)
    name, _, said = output.partition(" ")
    # A trial without a family is named by its class where it is traced.
    assert name in (algorithm.name, "BareTrial")
    assert said.startswith("breaks the contract of algorithms: ")
    assert PROMISES[promise] in output and observed in output.partition("Seen: ")[2], output


def test_every_promise_is_broken_by_a_plug_in(monkeypatch):
    """Would catch a promise that nothing looks at: there may be one device, which needs another."""
    assert {promise for _, promise, *_ in BROKEN.values()} == set(PROMISES) - {"devices", "rewards"}
    laws_looked_at = []
    monkeypatch.setattr(conformance, "check_numbers", laws_looked_at.append)
    fmab.check_algorithm(fmab.ucb1(), PROBLEM, horizon=5, seeds=8)
    assert laws_looked_at == [PROBLEM.rewards]  # tests/parts/test_laws.py: what it finds
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


@pytest.mark.parametrize("device", [False, True])
@pytest.mark.parametrize("what", ["no number", "falling regret"])
def test_every_run_looks_at_its_regret(what, device, monkeypatch):
    """Would catch a check of the contract that `check_algorithm` alone makes, or the host alone."""
    algorithm, promise, observed = BROKEN[what]
    keep = {"keep": "summary"} if device else {}
    monkeypatch.setattr(resources, "keeps_curves", lambda devices: device)
    calls = [partial(fmab.sweep, **keep)] if device else [fmab.simulate, fmab.sweep]
    for call in calls:
        line = refused(call, algorithm, FEW, horizon=30, seeds=8)
        assert line.startswith("bare breaks the contract of algorithms: ") and observed in line
        assert PROMISES[promise] in line


def elimination(**more):
    """Returns a small elimination with functions of its own."""
    usual = {
        "name": "own",
        "exchange": lambda self, agents: fmab.parts.exchanges.server(agents),
        "pulls_per_arm": staticmethod(lambda epoch: epoch.previous + 5.0),
        "radius": staticmethod(lambda epoch: 1.0 / jnp.sqrt(epoch.pulls)),
    }
    return dataclass(frozen=True)(type("Own", (fmab.Elimination,), usual | more))()


def test_an_exchange_of_other_agents_is_refused():
    """Would catch a table that is not of the problem's agents."""
    algorithm = elimination(exchange=lambda self, agents: fmab.parts.exchanges.server(agents + 1))
    refuses("Own.exchange", fmab.simulate, algorithm, FEW, 60, 8)


def test_a_changed_algorithm_does_not_pass_for_the_one_it_changes():
    """Would catch a figure that calls a variant by the paper's name, or credits it to the paper."""
    nearly, titles = altered(fmab.cdp_mab), ("A title", "A source")
    named = altered(fmab.cdp_mab, title=titles[0], source=titles[1])
    assert (nearly.title, nearly.source) == (
        "",
        "",
    ) and nearly.communication == fmab.cdp_mab.communication
    assert (named.title, named.source) == titles and fmab.cdp_mab.title == "CDP-MAB"
    assert fmab.cdp_mab.source == fmab.ddp_mab.source != ""
    assert fmab.simulate(nearly(1.0), FEW, 60, 8).attrs["title"] == "altered"


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


def test_fields_of_a_class_are_parameters_of_its_equations():
    """Would catch `params["first"]` that a class has to hand on itself."""

    def pulls_per_arm(epoch):
        return epoch.previous + jnp.ceil(epoch.params["first"] * epoch.params["factor"])

    def fixed(epoch):
        return epoch.previous + 6.0

    fixed.__name__ = "pulls_per_arm"
    own = reading(fmab.cdp_mab, pulls_per_arm)
    run = fmab.simulate(own(1.0), FEW, 600, 8)
    expected = fmab.simulate(reading(fmab.cdp_mab, fixed)(1.0), FEW, 600, 8)
    np.testing.assert_array_equal(run.regret, expected.regret)
    assert run.rounds_made.max() > 3
    # Nothing of what is sent has changed, so the privacy ledger still holds.
    assert fmab.privacy_ledger(own(1.0), 3) == fmab.privacy_ledger(fmab.cdp_mab(1.0), 3)
    fields = {"first": 4.0, "factor": 1.5, "steady": 1.0}
    for parent in (fmab.cdp_mab, fmab.ucb1, fmab.dp_imed):
        epsilon = {"epsilon": 1.0} if "epsilon" in parameters_of(parent) else {}
        for values, changed in ({}, {}), ({"values": lambda *_: {"factor": 3.0}}, {"factor": 3.0}):
            algorithm = reading(parent, fixed, **values)(**epsilon)
            params = algorithm.bind(FEW, 600, exchange=algorithm.exchange(3)).params
            assert params | fields | epsilon | changed == params


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
    output, usual = str(caught.value), f"own.{function}: must return, not end in "
    place = "Seen: budget: " if function == "budget" else usual
    assert (
        output.startswith("own") and f"{place}ZeroDivisionError: " in output and "\n" not in output
    )
    # The line that failed, in somebody else's file: the package's own frames lie around it.
    assert f", line {fails.__code__.co_firstlineno + 2} of test_plugs.py" in output
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


BOTH = ("epsilon", "epsilon_message")
STATED = [
    ("ledger", (), "=(): must be one Disclosure, or several"),
    (
        "ledger",
        Disclosure("anybody", "messages", math.nan, "c"),
        "[0].epsilon=nan: must be a number in [0, inf]",
    ),
    (
        "ledger",
        Disclosure("anybody", "messages", 1.0, "c", (Noise(LAPLACE, 1.0, math.nan),)),
        "[0].noises.number=nan: must be a whole number",
    ),
    (
        "ledger",
        Disclosure("anybody", "messages", 1.0, "c", (Noise("laplace", 1.0),)),
        "[0].noises=Noise(mechanism='laplace', ",
    ),
    ("ledger", Disclosure("a friend", "messages", 1.0, "c"), "[0].viewer='a friend': must be "),
    ("ledger", Disclosure("anybody", "all", 1.0, "c"), "[0].view='all': must be 'messages' or "),
    ("privacy", {}, "={}: must be a dict of epsilon and epsilon_message"),
    ("privacy", dict.fromkeys(BOTH, -1.0), "['epsilon']=-1.0: must be a number in [0, inf]"),
    ("number_bits", -7, "=-7: must be a whole number in [0, 1,000,000]"),
    ("describe", {"a": math.nan}, "={'a': nan}: must be a dict that JSON can hold"),
]


@pytest.mark.parametrize(("function", "stated", "line"), STATED)
def test_what_results_cannot_say_is_refused_before_anything_runs(
    function, stated, line, monkeypatch
):
    """Would catch a traceback, or a wrong statement that shows up when all is computed."""
    monkeypatch.setattr(compilation, "compile_program", None)
    algorithm = altered(fmab.cdp_mab, **{function: lambda *_: stated})(1.0)
    for call in (
        lambda: fmab.simulate(algorithm, FEW, 60, 8),
        lambda: fmab.sweep(algorithm, FEW, horizon=60, seeds=8),
    ):
        assert refused(call).startswith(f"Altered.{function}{line}")


# A file of an elimination, which imports a helper at once, and another one when it runs.
HELPED = """\
from dataclasses import dataclass
import jax.numpy as jnp
import fmab_jax as fmab
from fmab_test_helper import factor
@dataclass(frozen=True)
class Helped(fmab.Elimination):
    name = "helped"

    def exchange(self, agents):
        return fmab.parts.exchanges.server(agents)

    @staticmethod
    def pulls_per_arm(epoch):
        return epoch.previous + 5.0 * factor()

    @staticmethod
    def radius(epoch):
        import fmab_test_late
        return fmab_test_late.WIDTH / jnp.sqrt(epoch.pulls)
"""
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
    plugins._helpers.clear()
    base.ALGORITHMS.loaded.clear()


def load(path):
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
    """Would catch a file left out of its digest, and an old helper that stays."""
    study = partial(fmab.sweep, "helped", PROBLEM, horizon=500, seeds=8, store=helped / "runs")
    text = (helped / name).read_text("utf-8")
    results = []
    for content in (text, text.replace(old, new)):  # of one length, in one second
        (helped / name).write_text(content, encoding="utf-8")
        load(helped / "mine.py")
        results.append(study())
        # Computed anew, in the same store.
        assert (results[-1].attrs["compilations"], study().attrs["compilations"]) == (1, 0)
    assert not np.array_equal(*(result.regret for result in results))
    # As it was, in another process: the configuration that it was.
    (helped / name).write_text(text, encoding="utf-8")
    forget_helpers()
    load(helped / "mine.py")
    again = study()
    assert again.attrs["compilations"] == 0
    assert np.array_equal(again.regret, results[0].regret)


def test_a_module_counts_with_its_neighbours(helped):
    """Would catch imports in a package that do not count."""
    text = HELPED.replace("from fmab_test_helper import", "from .more import")
    (helped / "fmab_test_own").mkdir()
    files = {"__init__": "", "algorithms": text, "more": "def factor():\n    return 1\n"}
    for name, content in {**files, "other": "VALUE = 1\n"}.items():
        (helped / f"fmab_test_own/{name}.py").write_text(content, encoding="utf-8")

    def digest():
        forget_helpers()
        return plugins.source_digest(base.load_plugin("fmab_test_own.algorithms")[0])

    for name, counts in (("more", True), ("other", False)):
        before = digest()
        with (helped / f"fmab_test_own/{name}.py").open("a", encoding="utf-8") as file:
            file.write("# changed\n")
        assert (digest() != before) is counts, name


# One part of every kind, each of which reads a factor.
PARTS = """\
from dataclasses import dataclass
import jax.numpy as jnp
import fmab_jax as fmab
from fmab_jax.parts.rewards import FiniteSupport
from fmab_test_parts.more import factor
@dataclass(frozen=True)
class Mine(fmab.cdp_mab):
    name = "mine"
@dataclass(frozen=True)
class Noise(fmab.Mechanism):
    name, title, scales = "mine", "mine", True
    def sample(self, words, lane, scale, draw=0):
        return factor() * scale * (fmab.sampling.keys.uniform(*words, lane, draw) - 0.5)
    def epsilon(self, scale, count, delta):
        return 1.0 / scale
@dataclass(frozen=True)
class Fair(FiniteSupport):
    name, levels = "fair", (0.0, 1.0)
    def parameters(self, means, **traced):
        return 1.0 - means, means
@dataclass(frozen=True)
class Still(fmab.World):
    name, title, segments = "still", "still", 1
    def ends(self, horizon):
        return horizon[None]
    def means(self, words, first):
        return first[None]
@dataclass(frozen=True)
class Here(fmab.Presence):
    name, title = "here", "here"
    def is_heard(self, occasion, agent):
        return agent >= 0
OUTPUT = fmab.Output("mine", "mine", "", lambda record: factor() * record["regret"][:, -1])
REDUCE = fmab.Reduce(
    "all", "all", "", lambda record: record["regret"][:, -1],
    init=lambda: 0.0, add=lambda state, new: state + factor() * jnp.sum(new),
    merge=lambda one, other: one + other, finish=lambda state: state,
)
"""
BESIDE = {
    "mine.py": PARTS,
    "fmab_test_parts/__init__.py": "",
    "fmab_test_parts/more.py": "from .deep import FACTOR\ndef factor():\n    return FACTOR\n",
    "fmab_test_parts/deep.py": "FACTOR = 1.0\n",
    "fmab_test_parts/beside.py": "FACTOR = 1.0\n",
}
KINDS = {
    "an algorithm": lambda module: {"algorithm": module.Mine(1.0)},
    "noise": lambda module: {"algorithm": fmab.cdp_mab(1.0, mechanism=module.Noise())},
    "swept noise": lambda module: {
        "algorithm": "cdp",
        "epsilon": 1.0,
        "mechanism": ["laplace", module.Noise()],
    },
    "a law": lambda module: {"rewards": module.Fair()},
    "a world": lambda module: {"world": module.Still()},
    "a presence": lambda module: {"presence": module.Here()},
    "an output": lambda module: {"outputs": [module.OUTPUT]},
    "a reduction": lambda module: {"outputs": [module.REDUCE], "keep": "summary"},
}


@pytest.fixture
def parts(tmp_path):
    """A plug-in file with parts of every kind, and a package beside it."""
    (tmp_path / "fmab_test_parts").mkdir()
    for name, text in BESIDE.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    yield tmp_path
    forget_helpers()


def load_parts(folder):
    """The module of the file as it is now."""
    (owner,) = base.load_plugin(str(folder / "mine.py"))
    return sys.modules[owner.__module__]


def hash_with(kind, folder):
    """The last configuration of a study with a part of the file as it is now."""
    chosen = {"algorithm": fmab.cdp_mab(1.0), **KINDS[kind](load_parts(folder))}
    algorithm = chosen.pop("algorithm")
    return Study(algorithm, horizon=50, seeds=2, agents=2, arms=2, **chosen).points[-1].hash


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_part_counts_with_all_that_it_reaches(parts, kind):
    """Would catch a kind whose source, helper, or helper's helper is no part of a configuration."""
    before = hash_with(kind, parts)
    for name, text in BESIDE.items():
        (parts / name).write_text(text + "# changed\n", encoding="utf-8")
        assert (hash_with(kind, parts) == before) is name.endswith("beside.py"), name
        (parts / name).write_text(text, encoding="utf-8")
    assert hash_with(kind, parts) == before


def test_two_classes_of_one_name_are_two_mechanisms(monkeypatch):
    """Would catch an object whose configuration or ledger is that of another class of its name."""
    monkeypatch.setitem(sys.modules, "typed_in", ModuleType("typed_in"))
    hashes, leaks = [], []
    for factor in (1.0, 30.0, 1.0):
        names = {"__name__": "typed_in", "FACTOR": factor}
        exec(
            "import dataclasses, fmab_jax\ndef scaled(x):\n    return FACTOR * x\n"
            "@dataclasses.dataclass(frozen=True)\nclass Noise(fmab_jax.Mechanism):\n"
            "    name, title, scales = 'typed', 'typed', True\n"
            "    def sample(self, words, lane, scale, draw=0):\n"
            "        return scale * (fmab_jax.sampling.keys.uniform(*words, lane, draw) - 0.5)\n"
            "    def epsilon(self, scale, count, delta):\n        return scaled(1.0 / scale)\n",
            names,
        )
        algorithm = fmab.kl_se(1.0, mechanism=names["Noise"]())
        hashes.append(Study(algorithm, FEW, horizon=50, seeds=2).points[0].hash)
        leaks.append((algorithm, fmab.find_leak(algorithm, agents=3, view="sum")))
    assert hashes[0] == hashes[2] != hashes[1]
    for algorithm, leak in leaks:  # the last class has not replaced the others
        assert fmab.find_leak(algorithm, agents=3, view="sum") == leak


def make_noise(factor):
    """Makes a class, whose text does not say the factor."""

    @dataclass(frozen=True)
    class Noise(fmab.Mechanism):
        name, title, scales = "made", "made", True

        def sample(self, words, lane, scale, draw=0):
            return factor * scale * (fmab.sampling.keys.uniform(*words, lane, draw) - 0.5)

        def epsilon(self, scale, count, delta):
            return 1.0 / scale

    return Noise()


def test_classes_that_a_function_makes_are_told_apart_by_what_they_hold():
    """Would catch noise of one factor given for noise of another, since their source is one."""
    algorithms = [fmab.kl_se(1.0, mechanism=make_noise(factor)) for factor in (1.0, 30.0, 1.0)]
    base_class = type(make_noise(1.0))
    for factor in (1, 2):
        owner = dataclass(frozen=True)(type("Noise", (base_class,), {"factor": factor}))
        algorithms.append(fmab.kl_se(1.0, mechanism=owner()))
    hashes = [Study(x, FEW, horizon=50, seeds=2).points[0].hash for x in algorithms]
    assert hashes[0] == hashes[2] and len(set(hashes)) == 4


def test_a_folder_without_init_is_found(tmp_path):
    """Would catch a module that counts, and that the plug-in then cannot import."""
    (tmp_path / "fmab_test_folder").mkdir()
    (tmp_path / "fmab_test_folder/more.py").write_text("FACTOR = 3\n", encoding="utf-8")
    text = "from fmab_test_folder.more import FACTOR\n"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    assert plugins.imported(tmp_path / "mine.py").FACTOR == 3
    forget_helpers()


def test_libraries_are_not_read(monkeypatch):
    """Would catch an output whose identity is that of a version of SciPy or Python."""
    monkeypatch.setattr(plugins, "_read_module", None)
    for function in (statistics.mean, scipy.stats.gmean, np.maximum, jnp.sum):
        assert plugins.code_digest(function) == plugins.code_digest(function)


@pytest.mark.parametrize(
    "function",
    [
        "double",
        "functools.partial(times, factor=FACTOR)",
        "compiled",
        "lambda record: TABLE[0] @ Settings.factors @ record['regret'][:, -1:].T",
        "Callable().call",
        "Callable(FACTOR).own",
    ],
)
def test_what_a_typed_output_reads_counts(monkeypatch, function):
    """Would catch an output of a notebook that is taken for the one before an edit."""
    monkeypatch.setitem(sys.modules, "typed_in", ModuleType("typed_in"))
    made = []
    for factor in (1.0, 30.0, 1.0):
        names = {"__name__": "typed_in", "FACTOR": factor}
        exec(
            "import functools, jax, fmab_jax\n"
            "def times(record, factor):\n    return factor * record['regret'][:, -1]\n"
            "def double(record):\n    return times(record, FACTOR)\n"
            "@jax.jit\ndef scaled(x):\n    return FACTOR * x\n"
            "def compiled(record):\n    return [scaled(x) for x in record['regret'][:, -1]]\n"
            "TABLE = [jax.numpy.ones(3000)]\n"
            "class Settings:\n    factors = jax.numpy.ones((3000, 1)).at[1500].set(FACTOR)\n"
            "class Callable:\n"
            "    def __init__(self, factor=1.0):\n        self.factor = factor\n"
            "    def own(self, record):\n        return times(record, self.factor)\n"
            "    def call(self, record):\n        return double(record)\n"
            f"OUTPUT = fmab_jax.Output('typed', 'typed', '', {function})\n",
            names,
        )
        options = {"agents": 2, "arms": 2, "outputs": [names["OUTPUT"]]}
        made.append(Study(fmab.cdp_mab(1.0), horizon=50, seeds=2, **options).points[0].hash)
    assert made[0] == made[2] != made[1]
