"""Settings for every test: strict promotion, checked array shapes, importable helper modules."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

# The workers of one run, and the processes that tests start, share what they compile. The folder is
# made before JAX reads its settings, by the process that the workers come from, and goes with it.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _programs = tempfile.mkdtemp(prefix="fmab-programs-")
    atexit.register(shutil.rmtree, _programs, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _programs
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

import jax
from jaxtyping import install_import_hook

# The slow reference, the protocol checks and the exact oracle are plain modules beside the tests.
sys.path.insert(0, str(Path(__file__).parent))

# Silent broadcasting over ranks and silent dtype promotion hide bugs; the package writes both out.
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# Array shapes and records in the package's signatures are checked at every call, under pytest only.
# Numbers and strings are left to checks.py, whose refusals the tests want to see, and to mypy. The
# hook stays installed because the package imports its modules lazily.
install_import_hook(
    "fmab_jax",
    "beartype.beartype(conf=beartype.BeartypeConf(hint_overrides=beartype.FrozenDict("
    "{bool: object, int: object, float: object, str: object})))",
)
