"""Python in a process of its own, which imports the package, and the tests' modules, from here."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def surroundings(**more):
    """Returns the environment of such a process."""
    paths = filter(None, [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH")])
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | more


def python(*words, timeout=None, cwd=None, **more):
    """Runs Python, in an environment with more; returns how it ended, and what it said."""
    command, how = [sys.executable, *map(str, words)], {"timeout": timeout, "cwd": cwd}
    return subprocess.run(command, capture_output=True, text=True, env=surroundings(**more), **how)


def script(text, *words, **how):
    """Runs a script, which must end well; returns what it printed."""
    done = python("-c", text, *words, **how)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
