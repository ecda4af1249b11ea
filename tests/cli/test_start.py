"""A command starts without what it does not use, and without raw messages of JAX and XLA."""

import json
import logging
import os

import fresh
import pytest

from fmab_jax.cli import jax_messages

TINY = "run cdp --epsilon 1 --agents 2 --arms 2 --horizon 50 --seeds 4 --times 5 --out x"
# Runs a command as a process of its own, and prints which packages it has imported.
SCRIPT = """
import json, sys
from fmab_jax.__main__ import main

status = main()
names = {name.partition(".")[0] for name, module in sys.modules.items() if module is not None}
names |= {"scipy.stats"} & set(sys.modules)
print(json.dumps([status, sorted(names)]))
"""


def imported(words, cwd, **more):
    """Returns the exit status of a command and what it has imported."""
    done = fresh.python("-c", SCRIPT, *words.split(), cwd=cwd, **more)
    assert done.returncode == 0, done.stderr
    status, names = json.loads(done.stdout.splitlines()[-1])
    assert status == 0
    return set(names)


@pytest.mark.parametrize("figure", [True, False])
def test_a_run_imports_only_what_it_uses(figure, tmp_path):
    """Would catch a second of imports for nothing: Dask, which xarray looks for, pyarrow, which
    pandas looks for, scipy's laws, graphs, pictures."""
    names = imported(TINY + " --no-figure" * (not figure), tmp_path)
    unused = {"dask", "distributed", "pyarrow", "networkx", "jinja2", "scipy.stats"}
    unused |= {"matplotlib"} if not figure else set()
    assert not names & unused
    assert {"jax", "xarray", "h5netcdf"} <= names and (tmp_path / "x.nc").is_file()


@pytest.mark.parametrize("package, words", [("dask", "--scheduler"), ("pyarrow", "a.parquet")])
def test_what_a_command_needs_is_not_hidden(package, words, tmp_path):
    """Would catch a package that is missing for the one command that needs it."""
    pytest.importorskip(package)
    script = "import sys; from fmab_jax.cli import main; main._hide_unused(sys.argv[1:]); "
    script += f"print({package!r} in sys.modules)"
    assert fresh.script(script, "sweep", "cdp").strip() == "True"
    assert fresh.script(script, "sweep", "cdp", words).strip() == "False"


# A plug-in of a later CUDA, which finds no libraries.
PLUGIN = (
    'def initialize():\n    raise RuntimeError("Unable to load\\n cuSPARSE. Is it installed?")\n'
)


def test_a_plug_in_that_does_not_load_is_one_line(tmp_path):
    """Would catch 20 lines of a traceback, which look as if the run had failed; and silence."""
    folder = tmp_path / "jax_plugins" / "xla_cuda99"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(PLUGIN)
    path = os.pathsep.join([fresh.surroundings()["PYTHONPATH"], str(tmp_path)])
    words = [*TINY.split(), "--no-figure", "--no-data"]
    done = fresh.python("-m", "fmab_jax", *words, cwd=tmp_path, PYTHONPATH=path)
    line = "(RuntimeError: Unable to load cuSPARSE. Is it installed?)"
    lines = [text for text in done.stderr.splitlines() if not text.startswith("running ")]
    assert done.returncode == 0 and len(lines) == 1, done.stderr
    assert lines[0].startswith("fmab: ") and lines[0].endswith(line)


@pytest.fixture
def backends(monkeypatch):
    """The logger of JAX's backends, with its filters as they were."""
    logger = logging.getLogger("jax._src.xla_bridge")
    monkeypatch.setattr(logger, "filters", [])
    for name in ("TF_CPP_MIN_LOG_LEVEL", "JAX_LOGGING_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    return logger


def test_messages_of_backends_are_one_line_each(backends, monkeypatch, capsys):
    """Would catch a warning that is lost, one of many lines, and debug messages made warnings."""
    jax_messages.quieten_jax()
    backends.warning("no GPU is\n used: %s", "too old")
    assert capsys.readouterr().err == "fmab: JAX: no GPU is used: too old\n"
    try:
        raise RuntimeError("no\n library")
    except RuntimeError:
        backends.exception("%s.initialize()", "jax_plugins.mine")
    line = "fmab: JAX: jax_plugins.mine.initialize() (RuntimeError: no library)\n"
    assert capsys.readouterr().err == line
    backends.warning("Plugin module %s does not exist", "jax_plugins.xla_cuda12")
    assert capsys.readouterr().err.endswith("jax_plugins.xla_cuda12 does not exist\n")
    record = backends.makeRecord("x", logging.DEBUG, "x.py", 1, "text", (), None)
    assert jax_messages._shorten_message(record) and capsys.readouterr().err == ""
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"


@pytest.mark.parametrize("name", ["TF_CPP_MIN_LOG_LEVEL", "JAX_LOGGING_LEVEL"])
def test_messages_that_somebody_asked_for_stay(name, backends, monkeypatch):
    """Would catch messages hidden from somebody who looks for an error."""
    monkeypatch.setenv(name, "0")
    jax_messages.quieten_jax()
    assert os.environ[name] == "0" and backends.filters == []
    assert ("TF_CPP_MIN_LOG_LEVEL" in os.environ) == (name == "TF_CPP_MIN_LOG_LEVEL")
