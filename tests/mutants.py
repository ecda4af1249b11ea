"""Applies one-line mistakes to copies of the project, and runs the tests of the room on each.

``python -m tests.mutants`` tries every mutant of tests/mutants.toml with the tests that run by
default, and names those that no test catches; ``--room`` and ``--only`` choose some.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests import programs as kept_programs

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".toml")
# The lines of all refusals, whatever room they come from.
REFUSALS = "tests/test_refusals.py"
# Tests of what lies under a path; the longest path that fits counts.
TESTS = {
    "fmab_jax": (REFUSALS, "tests/test_errors.py", "tests/test_bad_input.py", "tests/cli"),
    "fmab_jax/machine.py": ("tests/test_machine.py",),
    "fmab_jax/equations.py": ("tests/algorithms",),
    "fmab_jax/accounts.py": ("tests/algorithms", "tests/run"),
    "fmab_jax/elimination.py": ("tests/algorithms", "tests/run"),
    "fmab_jax/layouts": ("tests/algorithms",),
    "fmab_jax/draws": ("tests/algorithms",),
    "fmab_jax/sampling": ("tests/sampling",),
    "fmab_jax/sampling/laplace.py": ("tests/sampling", "tests/analysis/test_privacy.py"),
    "fmab_jax/parts": ("tests/parts", REFUSALS),
    "fmab_jax/parts/plugins.py": ("tests/test_plugs.py",),
    "fmab_jax/parts/outputs": ("tests/run", "tests/sampling", REFUSALS),
    "fmab_jax/records": ("tests/parts", "tests/ratings", REFUSALS),
    "fmab_jax/parts/mechanisms": (
        "tests/parts/test_mechanisms.py",
        "tests/analysis/test_privacy.py",
    ),
    "fmab_jax/algorithms": ("tests/algorithms", "tests/test_plugs.py", REFUSALS),
    "fmab_jax/run": ("tests/run", "tests/algorithms", REFUSALS),
    "fmab_jax/analysis": ("tests/analysis", REFUSALS),
    "fmab_jax/sweeps": ("tests/sweeps", REFUSALS),
    "fmab_jax/planning": ("tests/planning",),
    "fmab_jax/ratings.py": ("tests/ratings", REFUSALS),
    "fmab_jax/plots": ("tests/plots", REFUSALS),
    "fmab_jax/reports": ("tests/reports", REFUSALS),
    "fmab_jax/cli": ("tests/cli", REFUSALS),
    "fmab_jax/cli/plan.py": ("tests/planning",),
    "experiments": ("tests/experiments",),
    "experiments/card": ("tests/experiments/test_card.py",),
    "benchmarks": ("tests/experiments/test_pages.py",),
}
# What a copy needs: the sources, the tests, and what they read.
COPIED = ("fmab_jax", "experiments", "benchmarks", "tests", "docs", "figures", ".ci")
LONGEST = 1800  # seconds; a run that takes longer counts as caught: the mutant hangs it


class Mutant(NamedTuple):
    """A line that is wrong; an "outsider" had not read the tests, and `lives` is why none can."""

    file: str
    old: str
    new: str
    why: str
    by: str = "insider"
    lives: str = ""

    @property
    def room(self) -> str:
        """The path whose tests are run."""
        return max((room for room in TESTS if f"{self.file}/".startswith(f"{room}/")), key=len)

    def applied(self) -> str:
        """Returns the whole file with the mutant in it; a LookupError unless it fits once."""
        text = (ROOT / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1 or self.old == self.new:
            raise LookupError(f"{self.file}: {text.count(self.old)} places of {self.old!r}")
        return text.replace(self.old, self.new)


def read(path: Path = LIST) -> list[Mutant]:
    """Returns all mutants of a list: tables called mutant, or by file why, and both texts."""
    by_file = tomllib.loads(path.read_text("utf-8"))
    whole = [Mutant(**row) for row in by_file.pop("mutant", [])]
    return whole + [
        Mutant(f, *two, why) for f, rows in by_file.items() for why, two in rows.items()
    ]


def order_tests(mutant: Mutant) -> list[str]:
    """Returns the test files of the mutant's room, first those that name its module most often."""
    name = re.compile(rf"\b{re.escape(Path(mutant.file).stem)}\b")
    share = {}
    for place in TESTS[mutant.room]:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("test_*.py")):
            text = file.read_text(encoding="utf-8")
            share[str(file.relative_to(ROOT))] = -len(name.findall(text)) / len(text)
    return sorted(share, key=share.__getitem__)


def try_mutant(mutant: Mutant, programs: Path, tests: Sequence[str] = ()) -> str:
    """Returns the test that fails on a copy with the mutant, or ""; a RuntimeError if none can."""
    with copy_project(mutant) as copy:
        try:
            status, output = _run_tests(copy, programs, tests or order_tests(mutant))
        except subprocess.TimeoutExpired:
            return f"no end after {LONGEST} s"
    if status == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", output, re.M)
    if failed is None:
        raise RuntimeError(f"{mutant.file}: pytest ended with {status}: {output[-500:]}")
    # Without the mutant the same test must pass.
    if _run_tests(ROOT, programs, [failed[1]])[0] != 0:
        raise RuntimeError(f"{mutant.file}: fails without the mutant as well: {failed[1]}")
    return failed[1]


@contextmanager
def copy_project(mutant: Mutant) -> Iterator[Path]:
    """Makes a copy of the project that has the mutant, for a while."""
    text = mutant.applied()
    with tempfile.TemporaryDirectory(prefix="fmab-mutant-") as folder:
        copy = Path(folder)
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name, copy_function=_link)
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy2(path, copy / path.name)
        (copy / mutant.file).unlink()
        (copy / mutant.file).write_text(text, encoding="utf-8")
        yield copy


def _run_tests(folder: Path, programs: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Returns how pytest ended in a copy of the project, and its output."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "--tb=no", "--no-header"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTEST_XDIST_WORKER"}
    environment |= {"PYTHONPATH": str(folder), "FMAB_TEST_PROGRAMS": str(programs)}
    options = dict(cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST)
    done = subprocess.run([*command, "-p", "no:cacheprovider", *tests], **options)
    return done.returncode, done.stdout + done.stderr


def _link(source: str, target: str) -> None:
    """Links a file in place of copying it: nothing writes into it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries mutants; returns 1 if one lives that the list does not expect to."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--room", default="", help="only those under this path")
    parser.add_argument("--only", type=int, nargs="+", help="only these places in the list")
    parser.add_argument("--tests", nargs="+", default=(), help="run these, not the room's")
    parser.add_argument("--list", type=Path, default=LIST, help="another list of mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at once")
    options = parser.parse_args(arguments)
    mutants = [
        (number, mutant)
        for number, mutant in enumerate(read(options.list))
        if mutant.file.startswith(options.room) and number in (options.only or [number])
    ]
    with tempfile.TemporaryDirectory(prefix="fmab-mutants-") as name:
        folder = Path(name)
        # Programs of mutants are of no use to anybody else.
        for path in kept_programs.folder().glob("*-cache"):
            _link(str(path), str(folder / path.name))

        def is_caught(pair: tuple[int, Mutant]) -> bool:
            number, mutant = pair
            caught = ""
            try:
                caught = try_mutant(mutant, folder, options.tests)
                verdict = caught or "LIVES"
            except RuntimeError as error:  # the others go on; it does not count as caught
                verdict = f"NOT TRIED: {error}"
            if mutant.lives and not caught:
                verdict += f" (as expected: {mutant.lives})"
            print(f"{number:>4} {mutant.file}: {mutant.why}: {verdict}", flush=True)
            return bool(caught)

        with ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(is_caught, mutants))
    print(f"\n{sum(results)} of {len(results)} mutants are caught")
    needed = [
        caught for caught, (_, mutant) in zip(results, mutants, strict=True) if not mutant.lives
    ]
    return int(not all(needed))


if __name__ == "__main__":
    sys.exit(main())
