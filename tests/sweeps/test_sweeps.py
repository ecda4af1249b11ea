"""Sweeps: what is computed, what is kept, what is computed again, and that bytes never differ."""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses
from test_store import faulty

import fmab_jax as fmab
from fmab_jax.machine import Share
from fmab_jax.run import compilation
from fmab_jax.sweeps import layout
from fmab_jax.sweeps import runner as sweeps
from fmab_jax.sweeps.store import Store

PROBLEM = fmab.Problem.uniform(agents=3, arms=3)
# 2 x 2 cells of one array shape; small chunks, so that there are several.
GRID = dict(epsilon=[0.5, None], rounds=[None, 2], horizon=2000, times=8)
SMALL = dict(chunk=20, batch=16, progress=False)


class Counted(sweeps.Progress):
    """Counts the trials that are computed, and stops a sweep after so many chunks."""

    def __init__(self, stop_after=10**9):
        self.trials = self.chunks = 0
        self.stop_after = stop_after
        self.lines = []
        self.plan = None

    def report_plan(self, plan):
        self.plan = plan

    def advance(self, trials):
        self.trials += trials

    def report_damage(self, line):
        self.lines.append(line)

    def report_chunk(self, cells_done):
        self.chunks += 1
        if self.chunks >= self.stop_after:
            raise KeyboardInterrupt


def swept(store=None, seeds=20, teller=None, **changes):
    """Runs the grid, with changes."""
    options = {**SMALL, **({"progress": teller} if teller else {})}
    return fmab.sweep(
        fmab.cdp_mab,
        changes.pop("problem", PROBLEM),
        seeds=seeds,
        store=store,
        **{**GRID, **options, **changes},
    )


def computed(*given, **changes):
    """Runs the grid; returns how many trials are computed."""
    teller = Counted()
    swept(*given, teller=teller, **changes)
    return teller.trials


def files(folder):
    """Returns the SHA-256 of each chunk."""
    chunks = sorted((Path(folder) / "chunks").glob("*.npz"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in chunks}


def values(data):
    """Returns a digest of all a Dataset holds."""
    whole = hashlib.sha256()
    for name in sorted(map(str, data.variables)):
        held = data[name].values
        held = held.astype(str) if held.dtype == object else held
        whole.update(f"{name}{held.shape}{held.dtype}".encode())
        whole.update(np.ascontiguousarray(held).tobytes())
    return whole.hexdigest()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The grid, computed without interruption."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    swept(folder)
    return folder


def test_compilations_are_those_of_the_call():
    """Would catch a run that is told with the compilations of all runs before it."""
    options = {"problem": fmab.Problem([0.2, 0.9], agents=2), "horizon": 30, "seeds": 2}
    compilation.compile_program.cache_clear()
    compilations = [
        fmab.simulate(item(), **options).compilations for item in (fmab.ucb1, fmab.uniform_play)
    ]
    compilations += [fmab.sweep(fmab.ucb1, **options).compilations]
    assert compilations == [1, 1, 0]


def test_a_second_run_computes_nothing_and_more_seeds_the_difference(tmp_path):
    """Would catch chunks computed again, and seeds that are counted from a wrong start."""
    counts = []
    for seeds in (5, 5, 20, 20, 12):
        teller = Counted()
        data = swept(tmp_path / "run", seeds, teller)
        assert data.sizes["seed"] == seeds
        counts.append(teller.trials)
    assert counts == [4 * 5, 0, 4 * 15, 0, 0]
    assert values(swept(tmp_path / "run")) == values(swept(None))


@pytest.mark.parametrize("keep", ["curves", "summary"])
def test_another_size_of_chunk_computes_nothing_again(tmp_path, keep):
    """Would catch finished cells cut anew, and computed again, where chunks are cut elsewhere."""
    swept(tmp_path / "run", keep=keep)
    teller = Counted()
    swept(tmp_path / "run", teller=teller, keep=keep, chunk=8)
    assert teller.trials == 0
    data = swept(tmp_path / "run", 26, teller, keep=keep, chunk=8)
    assert teller.trials == 4 * 6 and (data.seeds == 26).all()


def test_equal_cells_are_computed_once():
    """Would catch a grid that pays for parameters an algorithm does not have."""
    teller = Counted()
    data = fmab.sweep(
        {"a": "cdp", "b": fmab.cdp_mab}, PROBLEM, epsilon=[0.5, None], horizon=2000, seeds=4,
        times=8, batch=16, progress=teller,
    )  # fmt: skip
    assert (teller.plan.cells, teller.plan.distinct_cells, teller.trials) == (4, 2, 8)
    assert (data.regret.sel(algorithm="a") == data.regret.sel(algorithm="b")).all()


@pytest.mark.parametrize("stop_after", [1, 2])
def test_an_interrupted_sweep_goes_on_to_the_same_bytes(tmp_path, whole, stop_after):
    """Would catch a chunk lost or changed by an interruption between chunks."""
    with pytest.raises(KeyboardInterrupt):
        swept(tmp_path / "run", teller=Counted(stop_after))
    assert len(files(tmp_path / "run")) == stop_after
    refuses(r"must be finished; it lacks at least \d+ trials", fmab.open_sweep, tmp_path / "run")
    assert computed(tmp_path / "run") == 80 - 20 * stop_after
    assert files(tmp_path / "run") == files(whole)
    assert values(fmab.open_sweep(tmp_path / "run")) == values(fmab.open_sweep(whole))


@pytest.mark.parametrize("harm", ["flip", "truncate", "delete", "manifest"])
def test_a_damaged_chunk_is_named_and_computed_again(tmp_path, whole, harm):
    """Would catch damage that is believed, or that stops a sweep for good."""
    swept(tmp_path / "run")
    path = sorted((tmp_path / "run" / "chunks").glob("*.npz"))[0]
    data = path.read_bytes()
    if harm == "flip":
        path.write_bytes(data[:300] + bytes([data[300] ^ 4]) + data[301:])
    elif harm == "truncate":
        path.write_bytes(data[:-1])
    elif harm == "delete":
        path.unlink()
    else:
        path = tmp_path / "run" / "manifest-main.jsonl"
        lines = path.read_bytes().split(b"\n")
        path.write_bytes(b"\n".join([lines[0].replace(b'"size"', b'"siez"'), *lines[1:]]))
    if harm in ("flip", "truncate"):
        with pytest.raises(Exception, match=path.name):
            fmab.open_sweep(tmp_path / "run").load()
    teller = Counted()
    swept(tmp_path / "run", teller=teller)
    assert teller.trials == 20
    # A chunk without its file, or without its line, was never there.
    assert len(teller.lines) == (harm in ("flip", "truncate"))
    assert all(path.name in line for line in teller.lines)
    assert len(list((tmp_path / "run/chunks").glob("*.damaged"))) == (harm in ("flip", "truncate"))
    assert files(tmp_path / "run") == files(whole)
    teller = Counted()
    swept(tmp_path / "run", teller=teller)
    assert (teller.trials, teller.lines) == (0, [])


def test_a_sweep_whose_disk_fails_at_any_step_goes_on_to_the_same_bytes(tmp_path, whole):
    """Would catch a chunk that a failed write of a sweep loses, spoils or has computed for nothing,
    and an error that names no file."""
    with faulty(None, 0, tmp_path) as calls:
        swept(tmp_path / "trace")
    for at in range(1, len(calls) + 1):
        if at % 3 or calls[at - 1].startswith("write lock"):
            continue
        path = tmp_path / f"{at}"
        fault = ("ENOSPC", "EIO")[at % 2]
        with pytest.raises(OSError, match=re.escape(str(path))), faulty(fault, at, path):
            swept(path)
        chunks = len(files(path)) if path.exists() else 0
        # A chunk without its line in the manifest is computed again.
        assert computed(path) in (80 - 20 * chunks, 100 - 20 * chunks)
        assert files(path) == files(whole)
        assert values(fmab.open_sweep(path)) == values(fmab.open_sweep(whole))


CHANGES = {
    "epsilon": dict(epsilon=[0.5, 1]),
    "rounds": dict(rounds=[None, 3]),
    "horizon": dict(horizon=2001),
    "schedule_gap": dict(schedule_gap=0.1),
    "times": dict(times=[1, 2, 3, 4, 5, 6, 7, 2000]),
    "spacing": dict(spacing="log"),
    "root_seed": dict(root_seed=1),
    "sum_agents": dict(sum_agents=False),
    "keep": dict(keep="summary"),
    "agents": dict(problem=fmab.Problem.uniform(4, 3)),
    "problem": dict(problem=fmab.Problem([0.1, 0.2, 0.3], 3)),
    "algorithm": dict(),
}


def test_another_study_is_refused_in_a_used_store(whole):
    """Would catch results of two configurations mixed in one folder."""
    before = files(whole)
    for field, change in CHANGES.items():
        maker = fmab.single_mab if field == "algorithm" else fmab.cdp_mab
        variant = {**GRID, **SMALL, **change}
        problem = variant.pop("problem", PROBLEM)
        line = rf"^{field}=.*: must be .*, as in the store .*run; "
        refuses(line, fmab.sweep, maker, problem, seeds=20, store=whole, **variant)
    assert files(whole) == before


def test_a_study_that_computed_nothing_holds_no_store(tmp_path, whole):
    """Would catch a study that was refused while it ran, and whose mended form is refused, too."""
    shutil.copytree(whole, tmp_path / "run")
    for path in (tmp_path / "run/chunks").iterdir():
        path.unlink()
    changed = {"store": tmp_path / "run", "problem": fmab.Problem.uniform(4, 3)}
    # A worker's header may be that of a study whose first chunk is not done.
    refuses("^problem=|^agents=", swept, worker=(1, 2), **changed)
    assert (swept(**changed).attrs["agents"], swept(**changed).attrs["compilations"]) == (4, 0)


def test_another_version_is_refused_in_a_used_store(whole, monkeypatch):
    """Would catch a resume that mixes bits of two versions, or of a changed algorithm."""
    real = sweeps.collect_provenance
    for field in ("fmab_jax", "jax", "jaxlib", "numpy", "platform"):
        variant = lambda platform, field=field: {**real(platform), field: "other"}  # noqa: E731
        monkeypatch.setattr(sweeps, "collect_provenance", variant)
        refuses(rf"^{field}='other': must be .*, as in the store", swept, whole)


@pytest.mark.parametrize("version", [None, 4, 6])
def test_a_store_of_another_format_is_refused_by_name(tmp_path, whole, version):
    """Would catch a store of another version that is read, resumed, or called damaged."""
    store = Store(shutil.copytree(whole, tmp_path / "run"))
    header = store.header()
    assert header.pop("format") == 5
    store.write_header(header | ({} if version is None else {"format": version}))
    # The first version kept its chunks elsewhere.
    (store.path / "chunks").rename(store.path / "units")
    line = f"must be of format 5; it is of {version or 1}: use the version of the package that made"
    refuses(line, fmab.open_sweep, store.path)
    refuses(line, swept, store.path)
    assert not (store.path / "chunks").exists()


def test_chunks_say_what_they_were_made_by(tmp_path, whole, monkeypatch):
    """Would catch chunks without versions: old ones would pass for those of the package in use."""
    real = sweeps.collect_provenance
    older = lambda platform: {**real(platform), "numpy": "1.0"}  # noqa: E731
    monkeypatch.setattr(sweeps, "collect_provenance", older)
    swept(tmp_path / "run")
    entries = Store(tmp_path / "run").entries()
    assert [entry.facts["made_by"] for entry in entries] == [older("cpu")] * 4
    monkeypatch.undo()
    changes = {"epsilon": [0.5, None, 2.0], "allow_changes": ["epsilon", "numpy"]}
    data = swept(tmp_path / "run", **changes)
    assert data.attrs["numpy_version"] == f"1.0, {np.__version__}"


def test_what_may_change_keeps_the_chunks_that_fit(tmp_path, whole):
    """Would catch a widened grid that is computed anew, or refused although it was allowed."""
    swept(tmp_path / "run")
    teller = Counted()
    wider = {"epsilon": [0.5, 2.0, None], "allow_changes": ["epsilon"]}
    data = swept(tmp_path / "run", teller=teller, **wider)
    assert teller.trials == 2 * 20
    old = fmab.open_sweep(whole)
    assert (data.regret.sel(epsilon=0.5).values == old.regret.sel(epsilon=0.5).values).all()
    assert (data.regret.sel(epsilon="none").values == old.regret.sel(epsilon="none").values).all()
    with pytest.raises(ValueError, match="^epsilon="):  # the folder is the wider study's now
        swept(tmp_path / "run")


def test_workers_share_the_work_and_give_the_same_bytes(tmp_path, whole):
    """Would catch blocks that two workers compute, or none, or that depend on who computes."""
    trials = []
    for index in (3, 1, 2):
        teller = Counted()
        data = swept(tmp_path / "run", teller=teller, worker=(index, 3))
        trials.append(teller.trials)
    assert sorted(trials) == [20, 20, 40] and data.sizes["seed"] == 20
    assert files(tmp_path / "run") == files(whole)
    # Alone, a worker says what is left; its colleague does the rest, not more.
    data = swept(tmp_path / "other", worker=(1, 2))
    assert data.attrs["missing_trials"] == 40
    assert computed(tmp_path / "other") == 40
    assert values(fmab.open_sweep(tmp_path / "other")) == values(fmab.open_sweep(whole))


def test_what_cannot_fit_is_refused_before_anything_is_made(tmp_path, monkeypatch):
    """Would catch a study that fills the disk or the memory, or a folder left by a refusal."""
    monkeypatch.setattr(layout, "_free_bytes", lambda store: 10**9)
    huge = dict(seeds=10**8, epsilon=[0.1, 0.2, 0.3], chunk=None)
    refuses(r"^disk='[\d.]+ GB': must be at most 90 % of the 1", swept, tmp_path / "run", **huge)
    monkeypatch.setattr("fmab_jax.machine.memory", lambda: Share(10**9, "", 0))
    refuses(r"^memory='.* GB'.*'summary'$", swept, None, **huge)
    assert list(tmp_path.iterdir()) == []
    # What the refusal offers does fit.
    teller = Counted()
    study = fmab.Study("cdp", PROBLEM, seeds=10**8, keep="summary", **GRID)
    sweeps.run(study, store=tmp_path / "run", progress=teller, dry=True)
    assert teller.plan.missing == 4 * 10**8 and list(tmp_path.iterdir()) == []


def test_until_stops_at_the_same_place_where_workers_share_the_seeds(tmp_path):
    """Would catch a look that is taken of one worker's seeds, and cells that go on in vain."""
    until = fmab.until_precise(0.2, level=0.9, max_seeds=640)
    options = dict(keep="summary", until=until, epsilon=[0.05, None], rounds=None, chunk=None)
    data = swept(tmp_path / "run", 20, **options)
    assert set(data.seeds.values.tolist()) <= {20, 40, 80, 160, 320, 640}
    # Interrupted or shared among workers it stops at the same place.
    for index in (1, 2):
        shared = swept(tmp_path / "shared", 20, worker=(index, 2), **options)
    assert (shared.seeds == data.seeds).all()
    assert values(shared.drop_vars("relative_width")) == values(data.drop_vars("relative_width"))


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--kills", "6"], ["--kills", "6", "--workers", "4"]])
def test_killed_sweeps_go_on_to_the_same_bytes(words):
    """Would catch a chunk lost, damaged or changed by SIGKILL, of one process or of four."""
    script = Path(__file__).parents[2] / "benchmarks" / "kill_resume.py"
    done = subprocess.run(
        [sys.executable, script, *words], cwd=script.parents[1], text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "0 unreadable, 0 wrong, 0 lost" in done.stdout
