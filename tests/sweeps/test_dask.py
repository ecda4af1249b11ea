"""Sweeps on Dask workers: the bytes of one process, whatever happens to workers and scheduler."""

import os
import pickle
import shlex
import signal
import time
from unittest.mock import patch

import pytest
from refusals import refuses
from test_sweeps import PROBLEM, Counted, computed, files, swept, values

import fmab_jax as fmab
from fmab_jax.algorithms import base
from fmab_jax.cli.main import main
from fmab_jax.parts import plugins
from fmab_jax.sweeps import cluster as clusters

distributed = pytest.importorskip("distributed", reason="needs fmab_jax[dask]")
# Bits of other processes are compared with those of this one.
pytestmark = pytest.mark.as_users_have_it

PLUGIN = '''
from dataclasses import dataclass

import jax.numpy as jnp

import fmab_jax as fmab


@dataclass(frozen=True)
class Doubling(fmab.cdp_mab):
    """Epochs double; first = 13 breaks the contract."""

    name = "doubling_there"
    first: int = 100

    def values(self, exchange, horizon):
        return super().values(exchange, horizon) | {"first": float(self.first)}

    @staticmethod
    def pulls_per_arm(epoch):
        first = epoch.params["first"]
        return jnp.where(first == 13, jnp.nan, jnp.ceil(first * 2.0 ** (epoch.number - 1.0)))
'''


class Told(Counted):
    """Counts what is computed and keeps what is told of workers; may do something at a chunk."""

    def __init__(self, at=10**9, do=None, client=None):
        super().__init__()
        self.told = []
        self.held = 0
        self.at, self.do, self.client = at, do, client

    def report_workers(self, number, threads):
        self.told.append((number, threads))

    def report_chunk(self, cells_done):
        super().report_chunk(cells_done)
        if self.client is not None:
            self.held = max(self.held, len(self.client.futures))
        if self.chunks == self.at:
            self.do()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The grid, computed by this process alone, 20 chunks."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    swept(folder, chunk=4)
    return folder


@pytest.fixture(scope="module")
def local(whole):
    """Two worker processes of one thread each; what this process compiled is at hand for them."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as resource:
        yield resource


@pytest.fixture(scope="module")
def client(local):
    """A client of them."""
    with distributed.Client(local, set_as_default=False) as resource:
        yield resource


def idle(client):
    """Waits until no worker has anything to do; tells whether that came."""
    for _ in range(100):
        if not client.futures and not any(client.processing().values()):
            return True
        time.sleep(0.1)
    return False


def test_workers_give_the_bytes_of_one_process(tmp_path, whole, client):
    """Would catch chunks cut, labelled or computed otherwise, and chunks that pile up."""
    teller = Told(client=client)
    data = swept(tmp_path / "run", teller=teller, chunk=4, client=client)
    assert files(tmp_path / "run") == files(whole) and len(files(whole)) == 20
    ours, reference = ((folder / "run.json").read_bytes() for folder in (tmp_path / "run", whole))
    assert ours == reference
    assert values(data) == values(fmab.open_sweep(whole))
    assert (teller.trials, teller.chunks) == (80, 20) and (2, 2) in teller.told
    # Two tasks for each of two threads; what is written has been let go.
    assert 1 <= teller.held <= 4 and idle(client)
    # Nothing is left to do, and nothing is done.
    second = Told()
    swept(tmp_path / "run", teller=second, chunk=4, client=client)
    assert second.trials == 0
    # Without a store, the same values.
    assert values(swept(None, chunk=4, client=client)) == values(data)


def test_a_plan_on_workers_has_the_answer_of_one_process(client):
    """Would catch a client that a plan does not pass on, or seeds that workers draw anew."""
    candidates = [fmab.kl_se(1, rounds=rounds) for rounds in (1, None)]
    options = {"leak": 1, "candidates": candidates, "max_seeds": 200}
    problem = fmab.Problem([0.9, 0.5], agents=3)
    with patch.object(client, "submit", side_effect=client.submit) as submit:
        answer = fmab.plan(problem, 100, client=client, **options)
    due = fmab.plan(problem, 100, **options)
    seconds = dict.fromkeys(("elapsed_s", "compile_s"))
    answer, due = (x.build_document() | seconds for x in (answer, due))
    assert submit.called and answer == due


def test_a_worker_that_is_killed_costs_nothing(tmp_path, whole, client):
    """Would catch a chunk lost, or changed, with the worker that computed it."""
    killed = []

    def kill():
        killed.extend(client.run(os.getpid).values())
        os.kill(killed[0], signal.SIGKILL)

    teller = Told(3, kill)
    data = swept(tmp_path / "run", teller=teller, chunk=4, client=client)
    assert killed and files(tmp_path / "run") == files(whole)
    assert teller.trials == 80 and values(data) == values(fmab.open_sweep(whole))
    client.wait_for_workers(2)


@pytest.mark.parametrize("how", ["interrupted", "closed"])
def test_a_sweep_that_ends_early_goes_on_to_the_same_bytes(tmp_path, whole, client, how):
    """Would catch a sweep that hangs without its scheduler, a half-written store, and tasks that go
    on computing for nobody."""
    address = client.scheduler.address
    with distributed.Client(address, set_as_default=False) as other:

        def end():
            if how == "interrupted":
                raise KeyboardInterrupt
            other.close()

        line = rf"^the Dask scheduler {address} is lost, or does not answer"
        error, line = (KeyboardInterrupt, "") if how == "interrupted" else (ConnectionError, line)
        with pytest.raises(error, match=line):
            swept(tmp_path / "run", teller=Told(3, end), chunk=4, client=other)
        assert len(files(tmp_path / "run")) >= 3 and idle(client)
    assert computed(tmp_path / "run", chunk=4) <= 68 and files(tmp_path / "run") == files(whole)


SMALL = dict(horizon=2000, times=8, chunk=4, batch=16, progress=False)


@pytest.fixture
def plug_ins(monkeypatch):
    """What a test loads, the next does not know."""
    monkeypatch.setattr(base.ALGORITHMS, "loaded", dict(base.ALGORITHMS.loaded))
    monkeypatch.setattr(plugins, "_sources", dict(plugins._sources))


def loaded(path, name="doubling_there", elsewhere="pass"):
    """Loads the algorithm under a name, from a file that does something in other processes."""
    there = "import multiprocessing\nif multiprocessing.current_process().name != 'MainProcess':\n"
    path.write_text(PLUGIN.replace("doubling_there", name) + f"\n{there}    {elsewhere}\n")
    return base.load_plugin(str(path))[0]


@pytest.mark.usefixtures("plug_ins")
def test_a_plug_in_file_reaches_the_workers_and_its_errors_come_back(tmp_path, client):
    """Would catch classes that workers cannot import, and an error that is tried again and again"""
    algorithm = loaded(tmp_path / "mine.py")
    (tmp_path / "mine.py").unlink()  # Workers elsewhere would not see it.
    options = dict(seeds=20, **SMALL)
    for folder, there in (("here", None), ("there", client)):
        store = tmp_path / folder
        fmab.sweep(
            algorithm, PROBLEM, first=[50, 100], epsilon=1, store=store, client=there, **options
        )
    assert files(tmp_path / "here") == files(tmp_path / "there")
    assert len(files(tmp_path / "there")) == 10
    # One that the study does not need stays here.
    loaded(tmp_path / "other.py", "failing_there", "{}['x']")
    extra = dict(epsilon=1, client=client, store=None, **{**options, "seeds": 4})
    assert values(fmab.sweep(algorithm, PROBLEM, **extra))
    broken = r"^doubling_there breaks the contract .*regret nan of seed"
    extra = dict(first=[100, 13], epsilon=1, store=tmp_path / "run", client=client) | options
    refuses(broken, fmab.sweep, algorithm, PROBLEM, **extra)
    assert idle(client)
    refuses("unfinished|finished; it lacks at least", fmab.open_sweep, tmp_path / "run")


def test_workers_of_another_package_are_refused_by_name(tmp_path, client, monkeypatch):
    """Would catch chunks of two engines in one store, labelled as one."""
    real = clusters.collect_provenance
    monkeypatch.setattr(clusters, "collect_provenance", lambda p: {**real(p), "jax": "0.0.1"})
    line = r"^worker tcp://[\d.:]+: jax is \d.*, and this process's is 0\.0\.1; "
    refuses(line, swept, tmp_path / "run", client=client)
    assert not (tmp_path / "run").exists()
    monkeypatch.undo()
    lines = {
        r"^worker=\(1, 2\): must be left out with a client": dict(worker=(1, 2)),
        r"^client='tcp://here:1': must be a dask.distributed.Client": dict(client="tcp://here:1"),
    }
    for line, changes in lines.items():
        refuses(line, swept, tmp_path / "run", **{"client": client, **changes})
    # One that joins later is noticed by its first task, before that is even unpacked.
    order = pickle.dumps(({**real("cpu"), "fmab_jax": "9.9 (abc)"}, False, b"", b"no pickle"))
    line = r"tcp://[\d.:]+ on .*: fmab_jax is .*, and this process's is 9\.9 \(abc\); "
    refuses(line, client.submit(clusters._compute_task, order).result)


def test_the_command_line_computes_on_a_scheduler(tmp_path, client, capsys, monkeypatch):
    """Would catch a command that computes here, or that fails with a traceback."""
    monkeypatch.chdir(tmp_path)
    words = "sweep cdp --agents 3 --arms 3 --horizon 2000 --times 8 --epsilon 0.5 none --seeds 20"
    address = client.scheduler.address
    assert main(shlex.split(f"{words} --chunk 8 --out here")) == 0
    capsys.readouterr()
    assert main(shlex.split(f"{words} --chunk 8 --out there --scheduler {address}")) == 0
    text = capsys.readouterr()
    assert "computing on 2 workers with 2 threads" in text.err and "2 configurations" in text.out
    assert files("there") == files("here")

    for more, line in (
        ("nonsense", "--scheduler nonsense: must be the address of a running Dask"),
        (f"{address} --worker 1/2", "--worker 1/2: must be left out with a scheduler"),
    ):
        assert main(shlex.split(f"{words} --scheduler {more}")) == 2
        assert line in capsys.readouterr().err


@pytest.mark.slow
def test_workers_join_before_and_during_a_sweep(tmp_path, whole):
    """Would catch a sweep that fails without workers, or never uses those that join."""
    with (
        distributed.LocalCluster(
            n_workers=0, threads_per_worker=2, processes=True, dashboard_address=None
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):

        class Joined(Told):
            def report_workers(self, number, threads):
                super().report_workers(number, threads)
                if not number:
                    local.scale(1)

        def join():
            local.scale(2)
            client.wait_for_workers(2)
            time.sleep(2 * clusters._POLL_S)

        teller = Joined(2, join)
        swept(tmp_path / "run", teller=teller, chunk=4, client=client)
        assert teller.told == [(0, 0), (1, 2), (2, 4)]
        assert files(tmp_path / "run") == files(whole)
