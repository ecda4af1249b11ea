"""Plans, shares, progress and agreement of a sweep, by arithmetic: nothing is computed."""

import json
from types import SimpleNamespace

import pytest
from refusals import refuses

import fmab_jax as fmab
from fmab_jax import Study
from fmab_jax.algorithms import base
from fmab_jax.cli import study_options
from fmab_jax.sweeps import chunks, claims, cluster, grid, layout, progress
from fmab_jax.sweeps.precision import until_precise
from fmab_jax.sweeps.store import Store
from fmab_jax.sweeps.study import collect_provenance


def study(cells=5, **changes):
    """Returns a study of so many configurations of the house's small size."""
    options = {"agents": 3, "arms": 4, "horizon": 2000, "times": 8, "seeds": 5}
    return Study("cdp", epsilon=[1 + i for i in range(cells)], **{**options, **changes})


def lay_out(design, worker=None, chunk=None):
    """Returns the layout of a study for a processor."""
    return layout.Layout(design, "cpu", chunk, worker)


def empty(design):
    """Returns the results of a study of which nothing is computed."""
    return chunks.Results(grid.build_header(design, {}), chunks.Memory(), [])


# --- workers of a cluster ---


@pytest.mark.parametrize("others", [["cpu", "gpu"], ["gpu", "gpu", "cpu"]])
def test_workers_of_mixed_platforms_are_refused(others):
    """Would catch chunks of two kinds of device in one store, whose bits differ."""
    worker_plan = object.__new__(cluster.Cluster)
    worker_plan.versions = {}
    worker_plan._count_threads = lambda progress: None
    answers = {f"w{i}": collect_provenance(item) for i, item in enumerate(others)}
    worker_plan.client = SimpleNamespace(run=lambda *_, **__: answers, status="running")
    last = f"w{len(others) - 1}"
    line = f"^worker {last}: platform is {others[-1]}, and the other workers' is {others[0]}; "
    refuses(line, worker_plan.agree_on_versions, progress.Progress())
    worker_plan.versions = {}
    del answers[f"w{len(others) - 1}"]
    assert worker_plan.agree_on_versions(progress.Progress()) == collect_provenance(others[0])


# --- who computes what ---


@pytest.mark.parametrize("keep", ["curves", "summary"])
def test_workers_share_all_trials(keep):
    """Would catch trials that two workers compute, or that none does."""
    blocks = [
        block
        for i in range(3)
        for block in lay_out(study(keep=keep), (i + 1, 3), 4).list_missing(empty(study()))
    ]
    trials = [(x, seed) for block in blocks for x in block.cells
              for seed in range(block.start, block.stop)]  # fmt: skip
    assert len(trials) == len({*trials}) == 25


@pytest.mark.parametrize("worker", [None, (1, 3), (3, 3)])
@pytest.mark.parametrize(
    "keep, chunk, disk",
    [
        ("curves", None, 25 * (8 * 9 + 32) + 2000),  # alone, one chunk has all trials
        ("curves", 5, 25 * (8 * 9 + 32) + 5 * 2000),
        ("summary", 5, 5 * (8 * 8 * (8 + 8) + 24_000) + 5 * 2000),
    ],
)
def test_a_plan_tells_the_disk_of_all_workers(keep, chunk, disk, worker, tmp_path):
    """Would catch a full disk that no worker foresees, each of them counting its own part."""
    design = study(keep=keep)
    assert lay_out(design, worker, chunk).plan(empty(design), tmp_path).disk_bytes == disk


@pytest.mark.parametrize(
    "keep, chunk, memory",
    [
        # Regret, rounds and four numbers of a slot of 25 trials, and four copies of what is kept.
        ("curves", None, 25 * (8 * 9 + 32 + 4 * 8) + 4 * 25 * (8 * 9 + 32)),
        # Ten copies of what is kept of a cell, of which five are read in the end, four times.
        ("summary", 5, 5 * (8 * 9 + 32 + 4 * 8) + (10 + 4 * 5) * (8 * 8 * (8 + 8) + 24_000)),
    ],
)
def test_a_plan_tells_the_memory_of_a_chunk_and_its_copies(keep, chunk, memory, tmp_path):
    """Would catch a plan that counts what is kept once, and memory that gives out in the middle."""
    design = study(keep=keep)
    assert lay_out(design, None, chunk).plan(empty(design), tmp_path).memory_bytes == memory


def test_cells_that_need_other_seeds_at_each_look_are_chunks_of_their_own():
    """Would catch cells that go on together until the last of them is precise."""
    changes = {"seeds": 4, "keep": "summary"}
    for until, cells in ((None, {5}), (until_precise(0.1, max_seeds=8), {1})):
        design = study(**changes, until=until)
        blocks = lay_out(design).list_missing(empty(design))
        assert {len(block.cells) for block in blocks} == cells


def test_a_worker_with_an_older_study_takes_no_seeds_away(tmp_path):
    """Would catch a header with fewer seeds than another worker is computing."""
    store = Store(tmp_path / "s", create=True)
    with store.lock_writer():  # without a chunk the header is free
        store.put("0" * 32, {}, {})
    headers = {n: grid.build_header(study(seeds=n), {"jax": "1"}) for n in (4, 5, 6)}
    expected = [(5, False, 5), (4, False, 5), (6, False, 6), (5, False, 6), (4, True, 4)]
    for seeds, alone, current in expected:
        claims.register_study(store, headers[seeds], (), is_alone=alone)
        header = store.header()
        assert header is not None and header["seeds"] == current


# --- what a store says ---


@pytest.mark.parametrize("until", [None, fmab.until_precise(relative=0.1, max_seeds=4)])
@pytest.mark.parametrize("name", sorted(base.ALGORITHMS.by_name()))
def test_whatever_a_study_writes_can_be_read(tmp_path, name, until):
    """Would catch a check that is too strict: no parameters, no noise, no links, no rounds."""
    owner = base.ALGORITHMS.by_name()[name]
    algorithm = owner(**study_options.add_suggestions(owner, {}))
    options = {"agents": 12, "arms": 3, "horizon": 50, "times": 4, "seeds": 2}
    options |= {"until": until, "keep": "summary" if until else "curves"}
    study = Study(algorithm, fixed_instance=[None, 7], **options)
    header = grid.build_header(study, {"jax": "1"})
    store = Store(tmp_path / "s", create=True)
    store.write_header(header)
    assert claims.header_in(store) == json.loads(json.dumps(header))
    data = fmab.open_sweep(store.path, partial=True)
    assert data.attrs["algorithm"] == name and data.attrs["study_hash"] == study.hash
    assert data.seeds.values.tolist() == [0, 0] and data.attrs["title"] == algorithm.title
