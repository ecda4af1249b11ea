"""Many seeds: the same numbers whatever the batch and the devices, labels, memory, files."""

import dataclasses
import hashlib
import os
import re
import threading
import time
from pathlib import Path
from unittest import mock

import fresh
import jax
import numpy as np
import protocols
import pytest
import quick
import scipy.stats
import sizes
import xarray as xr
from refusals import refuses

import fmab_jax as fmab
from fmab_jax import elimination
from fmab_jax.run import batches, cache, compilation, configs
from fmab_jax.run import resources as run_resources

PROBLEM = fmab.Problem.uniform(**sizes.MIDDLE)
# A setting of each path through the loop: pooled, drawn participants, waiting, alone.
PATHS = {
    "pooled": fmab.cdp_mab(0.5),
    "drawn": fmab.cdp_mab(0.5, participation=0.5),
    "waiting": fmab.ddp_mab(0.5, "ring"),
    "alone": fmab.single_mab(0.5),
}
UNEQUAL = fmab.Problem.heterogeneous(**sizes.MIDDLE, spread=0.8)


def digests(data):
    """Returns a SHA-256 of everything a seed produced, one per seed."""
    hashes = []
    for i in range(data.sizes["seed"]):
        one = data.isel(seed=i).drop_vars("seeds")
        whole = b"".join(np.ascontiguousarray(one[name].values).tobytes() for name in sorted(one))
        hashes.append(hashlib.sha256(whole).hexdigest())
    return hashes


@pytest.mark.parametrize("path", quick.only(PATHS, "pooled"))
@pytest.mark.as_users_have_it
def test_a_seed_has_the_same_bits_in_every_batch(path):
    """Would catch randomness or rounding that depends on neighbours, padding or threads."""
    batch_sizes = (1, 7, 64, 250) if path == "pooled" else (7, 64)
    problem = UNEQUAL if path in ("drawn", "waiting") else PROBLEM
    runs = {
        size: fmab.simulate(PATHS[path], problem, 20_000, 40 if size == 1 else 200, batch=size)
        for size in batch_sizes
    }
    reference = digests(runs[64])
    for size, data in runs.items():
        assert digests(data) == reference[: data.sizes["seed"]], size
    assert len(set(reference)) == 200


@dataclasses.dataclass(frozen=True)
class EachItsWeight(fmab.cdp_mab):
    """CDP-MAB whose agents weigh less the later they come, and wait."""

    name = "each_its_weight"

    def exchange(self, agents):
        weights = np.arange(agents, 0.0, -1.0)
        usual = super().exchange(agents)
        return dataclasses.replace(usual, weights=weights / weights.sum(), wait=3)


# What shapes an array by the number of agents.
ROOMY = {
    "drawn": (PATHS["drawn"], PROBLEM),
    "waiting": (PATHS["waiting"], PROBLEM),
    "unequal": (PATHS["pooled"], UNEQUAL),
    "alone": (PATHS["alone"], UNEQUAL),
    "components": (fmab.hdp_mab(0.5, "5:ring+6:star", weights="components"), PROBLEM),
    # As many groups as agents: rows of noise are in the order of their weights.
    "each its weight": (EachItsWeight(0.05), PROBLEM),
}


def run_batch(config, seeds, rows=None):
    """Returns the outcome of one batch of seeds of a configuration."""
    trials = batches.Trials([config], np.zeros(seeds, np.int32), range(seeds), 0)
    ((_, outcome),) = batches.run_trials(trials, seeds, (jax.devices()[0],), rows=rows)
    return outcome


@pytest.mark.parametrize("path", quick.only(ROOMY))
@pytest.mark.as_users_have_it
def test_rows_of_padding_change_no_bit(path):
    """Would catch a row of padding that draws, is heard, weighs, plays or is counted."""
    algorithm, problem = ROOMY[path]
    programs, result = set(), []
    for rows in (11, 37):
        config = configs.bind(algorithm, problem, 20_000, times=10, padded_agents=rows)
        programs.add(config.program)
        result.append(run_batch(config, 32))
    # Each number of rows is a program of its own: there was something to pad.
    assert len(programs) == 2
    assert len(set(result[0].regret[:, -1])) > 5
    plain, padded = ([x.tobytes() for x in jax.tree.leaves(outcome)] for outcome in result)
    assert plain == padded


@pytest.mark.as_users_have_it
def test_more_seeds_and_other_orders_change_no_seed():
    """Would catch results that depend on how many seeds were asked for, or in which order."""
    long_run = fmab.simulate(PATHS["pooled"], PROBLEM, 20_000, 200, batch=64)
    few = fmab.simulate(PATHS["pooled"], PROBLEM, 20_000, 50, batch=64)
    assert digests(long_run)[:50] == digests(few)
    turned = fmab.simulate(PATHS["pooled"], PROBLEM, 20_000, range(199, -1, -1), batch=64)
    assert digests(turned)[::-1] == digests(long_run)
    variant = fmab.simulate(PATHS["pooled"], PROBLEM, 20_000, 50, batch=64, root_seed=1)
    assert not set(digests(variant)) & set(digests(few))


def test_runs_with_the_same_seeds_share_means_and_uniforms():
    """Would catch means, rewards or noise that depend on the algorithm: runs would not be paired.

    Agents on a ring do what those of a server do, and wait besides. Where both find the best arm in
    time, what they pay beside the waits is the same, if and only if they draw the same.
    """
    problem = fmab.Problem.uniform(**sizes.SMALL)

    def run(algorithm, **more):
        more = {"sum_agents": False} | more
        return fmab.simulate(algorithm, problem, 20_000, 200, times=1, **more)

    served, ring = run(fmab.cdp_mab(1.0)), run(fmab.ddp_mab(1.0, "ring"))
    result = (served.final_gap.values == 0) & (ring.final_gap.values == 0)
    result &= (served.active_arms.values == 1) & (ring.active_arms.values == 1)
    assert result.sum() > 100
    paid = (served.regret - (ring.regret - ring.waiting_regret)).values[result, -1]
    assert np.abs(paid).max() < 1e-6 < ring.waiting_regret.values[result, -1].max()
    final = served.regret.values[:, -1]

    def agrees(other):
        return np.corrcoef(final, other.regret.values[:, -1])[0, 1]

    # Totals over agents are drawn by uniforms of their own; the means are still the same.
    summed = run(fmab.cdp_mab(1.0), sum_agents=True)
    assert (summed.regret != served.regret).mean() > 0.05 and agrees(summed) > 0.8
    assert abs(agrees(run(fmab.cdp_mab(1.0), root_seed=1))) < 0.4


ON_DEVICES = """
import sys, numpy as np, jax
sys.path.insert(0, sys.argv[1])
import fmab_jax as fmab
from test_simulate import PATHS, PROBLEM, UNEQUAL, digests
assert len(jax.devices()) in (4, 8)
for path in ("pooled", "waiting"):
    problem = UNEQUAL if path == "waiting" else PROBLEM
    data = fmab.simulate(PATHS[path], problem, 20_000, 101, times=10, batch=64)
    print(path, *digests(data))
from fmab_jax.run import batches, configs, compilation
program = configs.bind(PATHS["waiting"], UNEQUAL, 20_000, times=10).program
text = compilation.compile_program(program, 64, tuple(jax.devices())).as_text()
bad = [w for w in ("all-reduce", "all-gather", "reduce-scatter", "collective") if w in text]
print("collectives", *bad)
from fmab_jax.run import resources
grid = {"horizon": 20_000, "seeds": 300, "times": 10, "keep": "summary", "epsilon": [0.5, 1.0]}
host = fmab.sweep(fmab.cdp_mab, PROBLEM, batch=64, **grid).load()
resources.keeps_curves = lambda devices: True
there = fmab.sweep(fmab.cdp_mab, PROBLEM, batch=64, **grid).load()
print("summary", host.equals(there))
"""


@pytest.mark.parametrize("devices", quick.only([4, 8], 4))
@pytest.mark.as_users_have_it
def test_many_devices_give_the_bits_of_one_and_never_talk(devices):
    """Would catch numbers that depend on sharding, a loop that synchronises devices, and summaries
    of one device's share."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    text = fresh.script(ON_DEVICES, Path(__file__).parent, XLA_FLAGS=flags, timeout=300)
    lines = dict(line.split(" ", 1) if " " in line else (line, "") for line in text.split("\n"))
    assert lines["collectives"] == "" and lines["summary"] == "True"
    for path, problem in (("pooled", PROBLEM), ("waiting", UNEQUAL)):
        run = fmab.simulate(PATHS[path], problem, 20_000, 101, times=10, batch=64)
        local = digests(run)
        assert lines[path].split() == local, path


def test_a_second_value_compiles_and_traces_nothing(monkeypatch):
    """Would catch epsilon, p, R, gap, T, prices, weights, waits or means frozen into a program; a
    second tracing of the loop inside one compilation, or one per batch."""
    traces = []
    # Another test, or another process, may have traced it.
    compilation.compile_program.cache_clear()
    monkeypatch.setattr(cache, "_folder", None)
    run = elimination.run
    monkeypatch.setattr(elimination, "run", lambda *given: traces.append(run) or run(*given))
    problem = fmab.Problem.uniform(agents=7, arms=4)
    before = compilation.compile_program.cache_info().misses
    draws = [
        fmab.cdp_mab(0.5, participation=0.3),
        fmab.cdp_mab(None, participation=0.8),
        fmab.cdp_mab(0.1, participation=0.5, rounds=3),
        fmab.cdp_mab(epsilon_message=2.0, participation=0.5, rounds=5, schedule_gap=0.1),
    ]
    runs = [fmab.simulate(a, problem, t, 32) for a in draws for t in (1000, 10**6)]
    assert compilation.compile_program.cache_info().misses == before + 1
    # The runs do differ: nothing was frozen.
    assert len({float(run.regret[:, -1].sum()) for run in runs}) == len(runs)
    costs = {float(fmab.communication_cost(runs[-1], c, 1.0)[:, -1].sum()) for c in (1.0, 25.0)}
    assert len(costs) == 2
    # Where agents sum out, their number is a value too; so are the graph of a wait and its length.
    for agents in (1, 5, 10**5):
        fmab.simulate(fmab.cdp_mab(0.5), fmab.Problem.uniform(agents, 4), 1000, 32)
    assert compilation.compile_program.cache_info().misses == before + 2
    for graph in ("ring", "path", "star"):
        fmab.simulate(fmab.ddp_mab(0.5, graph), problem, 1000, 32)
    assert compilation.compile_program.cache_info().misses == before + 3
    assert len(traces) == 3


@pytest.mark.as_users_have_it
def test_curves_are_exact_wherever_they_are_recorded():
    """Would catch a curve interpolated on its grid instead of evaluated at the recorded slots."""
    horizon = 5000
    full = fmab.simulate(PATHS["waiting"], PROBLEM, horizon, 64, times=np.arange(horizon + 1))
    subset = fmab.simulate(PATHS["waiting"], PROBLEM, horizon, 64, times=126, spacing="log")
    assert len(subset.time) == 100
    picked = full.sel(time=subset.time)
    for name in ("regret", "waiting_regret", "links"):
        np.testing.assert_array_equal(picked[name].values, subset[name].values)
    # Between knots it is linear, and a knot is an epoch's end, a wait's end or the horizon.
    bends = np.abs(np.diff(full.regret.values, n=2)) > 1e-9
    rounds = full.rounds_made.values
    assert (bends.sum(axis=1) <= 2 * rounds + 2).all()
    assert (full.regret.values[:, 0] == 0).all()


def test_links_are_rounds_times_the_exchange_table():
    """Would catch a meter under the wrong name or counted per slot."""
    # A ring of 10: its last hop meets in the middle, so that the meters differ.
    problem = fmab.Problem.uniform(agents=10, arms=20)
    ring = {agent: [(agent - 1) % 10, (agent + 1) % 10] for agent in range(10)}
    used, bound = protocols.flood(ring).edge_slots(), 5 * 10
    data = fmab.simulate(PATHS["waiting"], problem, 20_000, 50, times=10, batch=64)
    rounds = data.rounds_made.values
    assert data.meter.values.tolist() == ["bound", "used"] and bound != used
    np.testing.assert_array_equal(data.links.sel(meter="bound")[:, -1], rounds * bound)
    np.testing.assert_array_equal(data.links.sel(meter="used")[:, -1], rounds * used)
    cost = fmab.communication_cost(data, 25.0, 2.0)
    np.testing.assert_array_equal(cost[:, -1], 2.0 * rounds * bound)
    variant = fmab.communication_cost(data, 25.0, 2.0, meter="used")
    np.testing.assert_array_equal(variant[:, -1], 2.0 * rounds * used)


def test_seeds_are_independent_and_unbiased_over_batches():
    """Would catch correlated neighbours: regret of consecutive seeds must not correlate."""
    data = fmab.simulate(PATHS["pooled"], PROBLEM, 20_000, 20_000, times=1)
    regret = data.regret.values[:, -1]
    assert scipy.stats.pearsonr(regret[:-1], regret[1:]).pvalue > 1e-6
    halves = scipy.stats.ks_2samp(regret[:10_000], regret[10_000:])
    assert halves.pvalue > 1e-6


# (elements, result bytes, trials, batch, lanes) of runs on one device: seeds of a batch, and
# batches.
BATCHES = {
    "as many as stay in a core's cache": ((1000, 7, 10**6, None, 2), (256, 3907)),
    "one for each lane": ((20, 7, 3000, None, 2), (2048, 2)),
    "as many as have 16 MiB of results": ((10, 2048, 10**6, None, 2), (8192, 123)),
    "few seeds": ((20, 7, 5, None, 2), (8, 1)),
    "large seeds": ((10**5 + 1, 7, 5, None, 2), (2, 3)),
    "one with larger results": ((20, 10**8, 50, None, 2), (8, 7)),
    "of a size": ((20, 7, 100, 33, 2), (64, 2)),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches_are_those_computed_by_hand(name):
    """Would catch a batch that is no power of two, one seed alone, more batches at once than there
    are, and more results in a batch than are kept."""
    (elements, result, trials, batch, lanes), (size, number) = BATCHES[name]
    device = (jax.devices("cpu")[0],)
    actual = run_resources.choose_batch(elements, result, trials, device, batch, lanes)
    assert actual == (size, min(lanes, number))


def test_counts_that_a_tpu_does_not_have_are_refused(monkeypatch):
    """Would catch rewards that are counted in 48 bits, of one configuration of many; and a GPU that
    is refused as well."""
    tpu, gpu = (
        mock.Mock(spec=jax.Device, platform=item, process_index=0) for item in ("tpu", "gpu")
    )
    problem = fmab.Problem.uniform(100, 4)
    line = "horizon=1000000000000: must be at most 703,687,441,776 with 100 agents on a TPU; "
    grid = {"horizon": [200, 10**12], "seeds": 8, "progress": False}
    refuses(re.escape(line), fmab.sweep, fmab.cdp_mab, problem, devices=[tpu], epsilon=1.0, **grid)
    configs.check_counts(configs.bind(fmab.cdp_mab(1.0), problem, 10**12), gpu.platform)
    configs.check_counts(configs.bind(fmab.cdp_mab(1.0), problem, 2**46 // 100), tpu.platform)


ALONE_OR_NOT = {
    "cdp": (fmab.cdp_mab(1.0), fmab.Problem.uniform(7, 11)),
    "agents differ": (fmab.cdp_mab(1.0), fmab.Problem.heterogeneous(7, 11)),
    "ring": (fmab.ddp_mab(1.0, "ring"), fmab.Problem.uniform(7, 11)),
    "ucb1": (fmab.ucb1(), fmab.Problem.uniform(7, 11)),
    "dducb": (fmab.dducb("ring"), fmab.Problem.uniform(7, 11)),
}


@pytest.mark.parametrize("name", quick.only(ALONE_OR_NOT, "cdp", "agents differ", "ucb1"))
@pytest.mark.as_users_have_it
def test_a_configuration_alone_has_the_bits_that_it_has_among_others(name):
    """Would catch a quotient by a number that is the same for all trials, of which XLA makes a
    product, and which is none where trials are of several configurations."""
    algorithm, problem = ALONE_OR_NOT[name]
    config = configs.bind(algorithm, problem, 3000, times=10)
    one, eight = (run_batch(config, 64, rows) for rows in (1, 8))
    assert len(set(one.regret[:, -1])) > 5
    jax.tree.map(np.testing.assert_array_equal, one, eight)


def test_a_batch_that_runs_out_of_memory_is_halved(monkeypatch):
    """Would catch a run that ends for want of memory, and trials that are lost, come twice or lie
    at another's place: of the first batches, one is there before the other fails."""
    config = configs.bind(fmab.cdp_mab(1.0), PROBLEM, 20_000, times=10)
    real, request, second = compilation.compile_program, [], threading.Event()

    def small(program, batch, *rest):
        request.append(batch)
        compiled = real(program, batch, *rest)

        def run(table, row, *given):
            seeds = np.asarray(given[-1])
            if batch == 64 or (batch == 128 and 0 in seeds):
                second.wait(60)
                time.sleep(0.5)  # until the other is handed on
                raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
            outcome = jax.block_until_ready(compiled(table, row, *given))
            if 128 in seeds:
                second.set()
            return outcome

        return run

    monkeypatch.setattr(compilation, "compile_program", small)
    work = batches.Trials([config], np.zeros(300, np.int32), range(300), 0)
    monkeypatch.setattr(compilation, "_LARGEST", {})
    collected = batches.TrialResults(300, config.points)
    batch_sizes = []
    for start, outcome in batches.run_trials(work, 128, (jax.devices()[0],), 2):
        collected.put(start, outcome)
        batch_sizes.append((start, len(outcome.rounds)))
    assert request == [128, 64, 32] and sum(trials for _, trials in batch_sizes) == 300
    assert {(0, 32), (96, 32)} <= set(batch_sizes)
    assert len({start for start, _ in batch_sizes}) == len(batch_sizes)
    monkeypatch.undo()
    whole = fmab.simulate(fmab.cdp_mab(1.0), PROBLEM, 20_000, 300, times=10)
    assert (collected.gather()["regret"] == whole.regret.values).all()


@pytest.mark.parametrize(
    ("algorithm", "each"),
    [
        (fmab.cdp_mab(1.0), 8 + 4 + 8),
        (fmab.ddp_mab(1.0, "ring"), 8 + 4 + 8 + 2 * 8),
        (fmab.single_mab(1.0), 8 + 4),
    ],
)
def test_the_memory_of_results_is_that_computed_by_hand(algorithm, each):
    """Would catch a series or a meter that is left out: results of many seeds would not fit."""
    config = configs.bind(algorithm, fmab.Problem.uniform(20, 4), 1000, times=30)
    assert config.result_bytes == 30 * each + 40


def test_files_keep_everything_and_no_damage_is_read(tmp_path):
    """Would catch a lossy or silently damaged result file."""
    data = fmab.simulate(PATHS["waiting"], PROBLEM, 20_000, 50, times=10, batch=64)
    path = fmab.save(data, tmp_path / "run.nc")
    loaded = fmab.load(path)
    xr.testing.assert_identical(loaded, data)
    kinds = [{v: item[v].dtype for v in item.variables} for item in (loaded, data)]
    assert kinds[0] == kinds[1]
    assert fmab.confidence_band(loaded.regret).identical(fmab.confidence_band(data.regret))
    whole = path.read_bytes()
    # Every one of 60 damaged copies is refused, or the byte carried nothing.
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        copy = tmp_path / "copy.nc"
        copy.write_bytes(damaged)
        try:
            xr.testing.assert_identical(fmab.load(copy), data)
        except ValueError:
            refused += 1
    assert refused >= 16
