"""Plans, shares, progress and agreement of a sweep, by arithmetic: nothing is computed."""

import pytest
from refusals import refuses

from fmab_jax import Study
from fmab_jax.sweeps import chunks, claims, cluster, grid, layout, progress
from fmab_jax.sweeps import work as work_module
from fmab_jax.sweeps.precision import until_precise
from fmab_jax.sweeps.store import Store
from fmab_jax.sweeps.study import collect_provenance


def study(cells=5, **changes):
    """Returns a study of so many configurations of the house's small size."""
    options = {"agents": 3, "arms": 4, "horizon": 2000, "times": 8, "seeds": 5}
    return Study("cdp", epsilon=[1 + i for i in range(cells)], **{**options, **changes})


def work(made, worker=None, chunk=None):
    sharers = 1 if worker is None else worker[1]
    return work_module.BlockRunner(layout.Layout(made, "cpu", chunk, worker, sharers), (), 4, None)


# --- workers of a cluster ---


@pytest.mark.parametrize("others", [["cpu", "gpu"], ["gpu", "gpu", "cpu"]])
def test_workers_of_mixed_platforms_are_refused(others):
    """Would catch chunks of two kinds of device in one store, whose bits differ."""
    worker_plan = object.__new__(cluster.Cluster)
    worker_plan.versions = {}
    worker_plan._count_threads = lambda progress: None
    answers = [(f"w{i}", collect_provenance(item)) for i, item in enumerate(others)]
    worker_plan._collect_versions = lambda: answers
    last = f"w{len(others) - 1}"
    line = f"^worker {last}: platform is {others[-1]}, and the other workers' is {others[0]}; "
    refuses(line, worker_plan.agree_on_versions, progress.Progress())
    worker_plan.versions, answers = {}, answers[:-1]
    assert worker_plan.agree_on_versions(progress.Progress()) == collect_provenance(others[0])


# --- who computes what ---


@pytest.mark.parametrize(
    "cells, seeds, workers, most",
    [
        (5, 5, 3, 9),  # 25 trials: ceil(25 / 3)
        (5, 5, 5, 8),  # never fewer than a batch
        (1, 1000, 7, 143),
        (2, 500, 1, 1000),
    ],
)
def test_a_share_is_rounded_up(cells, seeds, workers, most):
    """Would catch a worker without a chunk, or one chunk more than there are workers."""
    worker_plan = study(cells, seeds=seeds)
    result = chunks.Results(grid.build_header(worker_plan, {}), chunks.Memory(), [])
    blocks = [
        work(worker_plan, (i + 1, workers)).layout.list_missing(result) for i in range(workers)
    ]
    trials_todo = [(name, b.start, b.stop) for item in blocks for b in item for name in b.cells]
    trials = sum(stop - start for _, start, stop in trials_todo)
    assert len(trials_todo) == len(set(trials_todo)) and trials == cells * seeds
    assert all(len(b.cells) * (b.stop - b.start) <= most for item in blocks for b in item)


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
    worker_plan = work(study(keep=keep), worker, chunk)
    # No program is compiled for its memory.
    worker_plan.cluster = object.__new__(cluster.Cluster)
    result = chunks.Results(grid.build_header(worker_plan.layout.study, {}), chunks.Memory(), [])
    assert worker_plan.plan(result, tmp_path).disk_bytes == disk


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
    worker_plan = work(study(keep=keep), None, chunk)
    worker_plan.cluster = object.__new__(cluster.Cluster)
    result = chunks.Results(grid.build_header(worker_plan.layout.study, {}), chunks.Memory(), [])
    assert worker_plan.plan(result, tmp_path).memory_bytes == memory


def test_cells_that_need_other_seeds_at_each_look_are_chunks_of_their_own():
    """Would catch cells that go on together until the last of them is precise."""
    changes = {"seeds": 4, "keep": "summary"}
    for until, cells in ((None, {5}), (until_precise(0.1, max_seeds=8), {1})):
        worker_plan = work(study(**changes, until=until))
        result = chunks.Results(
            grid.build_header(worker_plan.layout.study, {}), chunks.Memory(), []
        )
        assert {len(block.cells) for block in worker_plan.layout.list_missing(result)} == cells


def test_a_worker_with_an_older_study_takes_no_seeds_away(tmp_path):
    """Would catch a header with fewer seeds than another worker is computing."""
    store = Store(tmp_path / "s", create=True)
    headers = {n: grid.build_header(study(seeds=n), {"jax": "1"}) for n in (4, 5, 6)}
    expected = [(5, False, 5), (4, False, 5), (6, False, 6), (5, False, 6), (4, True, 4)]
    for seeds, alone, current in expected:
        claims.register_study(store, headers[seeds], (), is_alone=alone)
        header = store.header()
        assert header is not None and header["seeds"] == current


# --- what is told ---
