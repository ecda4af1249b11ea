"""Settings for every test: strict promotion, checked array shapes, importable helper modules."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The slow reference, the protocol checks and the exact oracle are plain modules beside the tests;
# experiments and benchmarks are folders beside the package.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import programs  # noqa: E402

# Before JAX reads its settings, by the process that the workers of a run come from.
if "PYTEST_XDIST_WORKER" not in os.environ:
    programs.use(programs.folder())

import jax  # noqa: E402
import pytest  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402

# Its asserts say what is on both sides.
pytest.register_assert_rewrite("pages.reader")

# Traced programs are many long-lived objects: looking through them for garbage took a fifth of the
# time of some files.
gc.set_threshold(200_000, 50, 100)

# Silent broadcasting over ranks and silent dtype promotion hide bugs; the package writes both out.
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# Array shapes are checked at every call, under pytest only, where signatures hold arrays: elsewhere
# mypy has seen as much, and a fifth of the time of some files went into it. The hook stays because
# the package imports its modules lazily.
# Ruff would write one name a line.
# fmt: off
ARRAYS = (
    "accounts", "algorithms", "draws", "elimination", "equations", "layouts", "records", "run",
    "sampling", "analysis.device_summary", "analysis.epochs", "analysis.theory", "parts.alone",
    "parts.exchanges", "parts.graphs", "parts.instances", "parts.networks", "parts.outputs",
    "parts.presences", "parts.rewards", "parts.trials", "parts.worlds",
)
# fmt: on
install_import_hook(
    ["experiments.audit", *(f"fmab_jax.{room}" for room in ARRAYS)], "signatures.check"
)


# What JAX keeps the machine code of, the package keeps as it was traced.
from fmab_jax.run import cache  # noqa: E402

cache._folder = Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
_KEPT = {name: value for name, value in jax.config.values.items() if "_cache_" in name}


# Files of tests that mostly wait: for kernels, workers, processes that are killed. One
# worker has them all, beside one worker for each core; it stays small, so that forks are quick.
WAITING = (
    *("sweeps/test_store.py", "planning/test_kill.py", "sweeps/test_dask.py"),
    *("test_notebooks.py", "sweeps/test_progress.py", "test_doors.py", "test_layers.py"),
)
# The files that take longest, in this order; what is short fills the gaps at the end.
LONGEST = (
    *("algorithms/test_worlds.py", "algorithms/test_presences.py", "algorithms/test_layouts.py"),
    *("test_roundings.py", "algorithms/test_per_agent.py", "planning/test_plan.py"),
    *("run/test_simulate.py", "algorithms/test_elimination.py", "cli/test_sweep.py"),
    *("algorithms/test_demab.py", "algorithms/test_episodes.py", "algorithms/test_arena.py"),
    *("sampling/test_samplers.py", "experiments/test_card.py", "experiments/test_audit.py"),
    *("parts/test_rewards.py", "test_docs.py", "test_plugs.py", "test_examples.py"),
)


def _rank(nodeid: str) -> int:
    """Returns when a test's file starts: first what waits, then what takes longest."""
    file = nodeid.partition("::")[0].removeprefix("tests/")
    order = (*WAITING, *LONGEST)
    return order.index(file) if file in order else len(order)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Orders files; the order of tests within a file stays."""
    items.sort(key=lambda item: _rank(item.nodeid))


@functools.cache
def _usual() -> dict[str, Any]:
    """Returns the options with which users' runs are compiled on a processor."""
    from fmab_jax.run import compilation

    return dict(compilation._OPTIONS["cpu"])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Has runs compiled quickly or, for a test marked ``as_users_have_it``, as users have them."""
    from fmab_jax.run import compilation

    marked = item.get_closest_marker("as_users_have_it")
    wanted = _usual() if marked else _usual() | programs.UNOPTIMISED
    if compilation._OPTIONS["cpu"] != wanted:
        compilation._OPTIONS["cpu"] = wanted
        compilation.compile_program.cache_clear()
    _lay_out(item)


@functools.cache
def _laid_out() -> Any:
    """Returns what gives the axes of a figure their places, which takes most of its time."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return ConstrainedLayoutEngine.execute


def _lay_out(item: pytest.Item) -> None:
    """Lays figures out only for a test marked ``as_users_see_it``, which looks where things are.

    Before its fixtures are made: what they draw does not depend on the test before.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    whole = _laid_out()
    marked = item.get_closest_marker("as_users_see_it")
    ConstrainedLayoutEngine.execute = whole if marked else lambda *_: None  # type: ignore[method-assign]


@pytest.fixture
def x64() -> Iterator[None]:
    """Sets 64-bit types, in whose scope the package calls its samplers."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="module")
def _forget_plugins() -> Iterator[None]:
    """Restores the plug-ins that are known, so that no file of tests leaves one to the next."""
    import fmab_jax.algorithms.base  # noqa: F401  # which knows all kinds
    from fmab_jax.parts import plugins
    from fmab_jax.parts.registry import REGISTRIES

    tables = [*(x.loaded for x in REGISTRIES), plugins._sources, plugins._modules]
    before = [dict(table) for table in tables]
    sources = {*plugins._sources}
    yield
    for name in {*plugins._sources} - sources:
        sys.modules.pop(name, None)
    for table, content in zip(tables, before, strict=True):
        table.clear()
        table.update(content)


def _resident_mb() -> float:
    """Returns how much memory this process takes, in MB; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


# A worker above this many MB forgets its programs, which are read again from their folder.
_MOST_MB = 1200.0


def _free_memory() -> None:
    """Forgets compiled programs and collects garbage, if this process has grown large."""
    global _limit_mb
    if _resident_mb() < _limit_mb:
        return
    import ctypes

    from fmab_jax.run import compilation

    compilation.compile_program.cache_clear()
    jax.clear_caches()
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    # Memory that nothing frees must not clear the programs after every test.
    _limit_mb = max(_MOST_MB, _resident_mb() + 300)


_limit_mb = _MOST_MB


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Frees memory, and has programs kept where they were: a test may have chosen a folder."""
    _free_memory()
    for name, value in _KEPT.items():
        if getattr(jax.config, name) != value:
            jax.config.update(name, value)
    cache._folder = Path(os.environ["JAX_COMPILATION_CACHE_DIR"])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Returns a worker for each core, four at most, and one for the tests that wait."""
    if chosen := os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS"):
        return int(chosen)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(4, cores or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Returns what hands out whole files, whose tests share results; what waits is one file."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "waiting" if _rank(nodeid) < len(WAITING) else super()._split_scope(nodeid)

    return Files(config, log)
