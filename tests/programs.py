"""A folder of compiled programs that outlives a run of the tests.

A program's key holds the program itself, the compiler and its options, so that changed code
compiles anew and no test loses power. JAX's key says nothing of the processor: the folder does.
"""

import atexit
import contextlib
import hashlib
import os
import platform
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

# XLA's newer emitters of fusions take two fifths of the time of compiling, and change no bit of the
# pinned results; programs run a little faster with them, for which tests are too small. What is
# pinned is compiled as users have it (tests/test_pins.py). Known to jaxlib 0.10.
FLAG = "--xla_cpu_use_fusion_emitters=false"
# The option of one program that turns them on again.
EMITTERS = {"xla_cpu_use_fusion_emitters": True} if version("jaxlib").startswith("0.10.") else {}
# Of the programs that runs compile: barely optimised they take half the time of compiling, and run
# as fast as tests need. Where bits are the subject, they are users' programs (tests/conftest.py).
# Level 0 beside FLAG is miscompiled for processors with AVX2 alone: `thompson, pooled` plays wrong.
UNOPTIMISED = {"xla_backend_optimization_level": 1, "xla_llvm_disable_expensive_passes": True}
# Folders that grow past this are emptied: most of their programs are of code that is no more.
MOST_BYTES = 1_000_000_000


def folder():
    """Returns where the programs are kept: $FMAB_TEST_PROGRAMS, or among this user's caches."""
    if chosen := os.environ.get("FMAB_TEST_PROGRAMS"):
        return Path(chosen)
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "fmab_jax-tests" / key()


def key():
    """Returns a name for all that decides about machine code besides a program."""
    parts = [version("jax"), version("jaxlib"), platform.machine(), _processor()]
    parts += [os.environ.get(name, "") for name in ("XLA_FLAGS", "JAX_PLATFORMS")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _processor():
    """Returns the processor's name and what it can do."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
        return "\n".join(line for line in lines if line.startswith(("model name", "flags")))
    return platform.processor()


def use(path):
    """Has this process, and those that it starts, keep their programs there, and compile faster.

    Where nothing can be kept, they share a folder that goes with this process.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = list(path.glob("*-cache"))
        if sum(each.stat().st_size for each in kept) > MOST_BYTES:
            for each in kept:
                each.unlink(missing_ok=True)
    except OSError:
        path = Path(tempfile.mkdtemp(prefix="fmab-programs-"))
        atexit.register(shutil.rmtree, path, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(path)
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    given = os.environ.get("XLA_FLAGS", "")
    # A compiler that does not know a flag ends the process.
    if version("jaxlib").startswith("0.10.") and FLAG.partition("=")[0] not in given:
        os.environ["XLA_FLAGS"] = f"{given} {FLAG}".strip()
    heal(path)  # which imports JAX, and JAX reads these


def heal(path):
    """Removes programs that a killed process left half-written: JAX would never replace them."""
    from jax._src import compilation_cache

    unpacked = compilation_cache.decompress_executable
    stamp = path / "checked"
    since = stamp.stat().st_mtime_ns if stamp.exists() else 0
    for each in path.glob("*-cache"):
        try:
            # A little earlier as well: clocks of file systems are coarse.
            if each.stat().st_mtime_ns > since - 10**9:
                unpacked(each.read_bytes())
        except FileNotFoundError:  # another process was here first
            continue
        except Exception:  # whatever a codec says of half a file
            each.unlink(missing_ok=True)
    stamp.touch()
