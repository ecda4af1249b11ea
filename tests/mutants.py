"""Applies one-line mistakes to copies of the project, and runs the tests of the room on each.

``python -m tests.mutants`` tries every mutant of tests/mutants.toml with the tests that run by
default, and names each mutant that no test catches. ``--room`` and
``--only`` choose some. A mutant with ``lives`` in the list is expected to live, for that reason.
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
    "fmab_jax": (
        REFUSALS,
        "tests/test_errors.py",
        "tests/test_bad_input.py",
        "tests/cli",
    ),
    "fmab_jax/accounts.py": ("tests/algorithms", "tests/run"),
    "fmab_jax/elimination.py": ("tests/algorithms", "tests/run"),
    "fmab_jax/layouts": ("tests/algorithms",),
    "fmab_jax/draws": ("tests/algorithms",),
    "fmab_jax/core": ("tests/core", "tests/ratings", REFUSALS),
    "fmab_jax/algorithms": ("tests/algorithms", "tests/test_plugs.py", REFUSALS),
    "fmab_jax/run": ("tests/run", "tests/algorithms", REFUSALS),
    "fmab_jax/analysis": ("tests/analysis", REFUSALS),
    "fmab_jax/sweeps": ("tests/sweeps", REFUSALS),
    "fmab_jax/ratings.py": ("tests/ratings", REFUSALS),
    "fmab_jax/plots": ("tests/plots", REFUSALS),
    "fmab_jax/reports": ("tests/reports", REFUSALS),
    "fmab_jax/cli": ("tests/cli", REFUSALS),
    "experiments": ("tests/experiments",),
    "experiments/card": ("tests/experiments/test_card.py",),
    "benchmarks": ("tests/experiments/test_pages.py",),
}
# What a copy needs: the sources, the tests, and what they read.
COPIED = ("fmab_jax", "experiments", "benchmarks", "tests", "docs", "figures", ".ci")
LONGEST = 1800
"""Seconds after which a run that does not end counts as caught: the mutant hangs it."""


class Mutant(NamedTuple):
    """A line that is wrong.

    Attributes:
        file: Where, from the project's root.
        old: A part of one line, which stands there once.
        new: What stands there instead.
        why: What a user would get wrong.
        by: Who wrote it: "insider", or "outsider", who had not read the tests.
        lives: Why no test can catch it; empty for all others.
    """

    file: str
    old: str
    new: str
    why: str
    by: str = "insider"
    lives: str = ""

    @property
    def room(self) -> str:
        """The path whose tests are run."""
        fits = [room for room in TESTS if f"{self.file}/".startswith(f"{room}/")]
        return max(fits, key=len)

    def applied(self) -> str:
        """Returns the whole file with the mutant in it.

        Raises:
            LookupError: If the old text does not stand there exactly once.
        """
        text = (ROOT / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1 or self.old == self.new:
            raise LookupError(f"{self.file}: {text.count(self.old)} places of {self.old!r}")
        return text.replace(self.old, self.new)


class Tried(NamedTuple):
    """What became of a mutant: the test that caught it, or "" if it lived."""

    mutant: Mutant
    caught: str


def read(path: Path = LIST) -> list[Mutant]:
    """Returns all mutants of a list: tables called mutant, or by file why, and both texts."""
    by_file = tomllib.loads(path.read_text("utf-8"))
    whole = [Mutant(**each) for each in by_file.pop("mutant", [])]
    return whole + [Mutant(f, *two, why) for f, own in by_file.items() for why, two in own.items()]


def ordered(mutant: Mutant) -> list[str]:
    """Returns the test files of the mutant's room, first those that name its module most often."""
    name = re.compile(rf"\b{re.escape(Path(mutant.file).stem)}\b")
    files = []
    for place in TESTS[mutant.room]:
        path = ROOT / place
        files += [path] if path.is_file() else sorted(path.rglob("test_*.py"))
    text = {path: path.read_text(encoding="utf-8") for path in files}
    files.sort(key=lambda path: -len(name.findall(text[path])) / len(text[path]))
    return [str(path.relative_to(ROOT)) for path in files]


def tried(mutant: Mutant, programs: Path, tests: Sequence[str] = ()) -> Tried:
    """Runs the tests of the room on a copy of the project that has the mutant.

    Raises:
        RuntimeError: If tests fail for another reason than the mutant, or do not run.
    """
    with copied(mutant) as copy:
        try:
            status, told = _tested(copy, programs, tests or ordered(mutant))
        except subprocess.TimeoutExpired:
            return Tried(mutant, f"no end after {LONGEST} s")
    if status == 0:
        return Tried(mutant, "")
    found = re.search(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", told, re.M)
    if found is None:
        raise RuntimeError(f"{mutant.file}: pytest ended with {status}: {told[-500:]}")
    # Without the mutant the same test must pass.
    status, told = _tested(ROOT, programs, [found[1]])
    if status != 0:
        raise RuntimeError(f"{mutant.file}: fails without the mutant as well: {found[1]}")
    return Tried(mutant, found[1])


@contextmanager
def copied(mutant: Mutant, names: Sequence[str] = COPIED) -> Iterator[Path]:
    """Makes a copy of the project that has the mutant, for a while.

    Args:
        mutant: The line that is wrong.
        names: Which folders the copy needs; it has the files beside them as well.

    Raises:
        LookupError: If the mutant does not fit.
    """
    text = mutant.applied()
    with tempfile.TemporaryDirectory(prefix="fmab-mutant-") as folder:
        copy = Path(folder)
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name, copy_function=_linked)
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy2(path, copy / path.name)
        (copy / mutant.file).unlink()
        (copy / mutant.file).write_text(text, encoding="utf-8")
        yield copy


def _tested(folder: Path, programs: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Returns how pytest ended in a copy of the project, and what it said."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "--tb=no", "--no-header"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTEST_XDIST_WORKER"}
    environment |= {"PYTHONPATH": str(folder), "FMAB_TEST_PROGRAMS": str(programs)}
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *tests],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    return done.returncode, done.stdout + done.stderr


def _linked(source: str, target: str) -> None:
    """Links a file in place of copying it: nothing writes into it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries mutants; returns 1 if one lives that the list does not expect to."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--room", help="only those under this path")
    parser.add_argument(
        "--only", type=int, nargs="+", help="only these, by their place in the list"
    )
    parser.add_argument("--tests", nargs="+", default=(), help="run these, not the room's")
    parser.add_argument("--list", type=Path, default=LIST, help="another list of mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at once")
    chosen = parser.parse_args(arguments)
    numbered = [
        (number, mutant)
        for number, mutant in enumerate(read(chosen.list))
        if (chosen.room is None or mutant.file.startswith(chosen.room))
        and (chosen.only is None or number in chosen.only)
    ]
    found: dict[int, Tried] = {}
    with tempfile.TemporaryDirectory(prefix="fmab-mutants-") as name:
        folder = Path(name)
        # Programs of mutants are of no use to anybody else.
        for path in kept_programs.folder().glob("*-cache"):
            _linked(str(path), str(folder / path.name))

        def one(pair: tuple[int, Mutant]) -> None:
            number, mutant = pair
            try:
                found[number] = tried(mutant, folder, chosen.tests)
                said = found[number].caught or "LIVES"
            except RuntimeError as error:  # the others go on; it does not count as caught
                found[number], said = Tried(mutant, ""), f"NOT TRIED: {error}"
            if mutant.lives and not found[number].caught:
                said += f" (as expected: {mutant.lives})"
            print(f"{number:>4} {mutant.file}: {mutant.why}: {said}", flush=True)

        with ThreadPoolExecutor(chosen.jobs) as pool:
            list(pool.map(one, numbered))
    results = [found[number] for number, _ in numbered]
    caught = sum(bool(each.caught) for each in results)
    print(f"\n{caught} of {len(results)} mutants are caught")
    return int(any(not each.caught and not each.mutant.lives for each in results))


if __name__ == "__main__":
    sys.exit(main())
