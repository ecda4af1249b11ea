"""Kills a sweep with SIGKILL at random moments, resumes it, and compares every byte.

    python benchmarks/kill_resume.py --kills 40
    python benchmarks/kill_resume.py --kills 40 --full    # 100 cells x 1000 seeds, T = 10^6

An uninterrupted run is the reference. The other run is killed and resumed until it has been killed
so often; when it finishes earlier it starts anew in an empty folder. After every kill each unit
that the store lists has to be readable and equal to the reference's, and at most one may be there
that is not listed: the unit being written. At the end the files of both have to be the same.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fmab_jax.results import open_sweep
from fmab_jax.run_folder import RunFolder

SMALL = (
    "--agents 5 --arms 10 --horizon 1e5 --epsilon 0.1 0.3 0.5 1 --rounds none 2 3 --seeds 20000 "
    "--unit 2000"
)
FULL = (
    "--agents 50 --arms 100 --horizon 1e6 --epsilon 0.1 0.3 0.5 1 "
    "--participation 0.2 0.4 0.6 0.8 1 --rounds none 2 3 4 5 --seeds 1000"
)


def started(options: str, out: Path, cache: Path) -> subprocess.Popen[bytes]:
    """Starts the sweep as a user would."""
    words = [sys.executable, "-m", "fmab_jax", "sweep", "cdp", *options.split(), "--out", str(out)]
    env = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(words, env=env, **quiet)


def digests(folder: Path) -> dict[str, str]:
    """Returns the SHA-256 of every unit's file."""
    files = sorted((folder / "units").glob("*.npz"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def listed(folder: Path) -> tuple[set[str], list[str]]:
    """Returns the units that the store lists, and what is wrong with any of them."""
    if not folder.exists():
        return set(), []
    try:
        store = RunFolder(folder)
    except ValueError:
        # Killed between making the folder and what is in it.
        return set(), []
    entries, damage = store.entries()
    for entry in entries:
        wrong = store.check(entry)
        if wrong is not None:
            damage.append(f"{entry.unit}: {wrong}")
    return {f"{entry.unit}.npz" for entry in entries}, damage


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 if nothing was lost."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--full", action="store_true", help="100 cells x 1000 seeds at T = 10^6")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    chosen = parser.parse_args(arguments)
    options = FULL if chosen.full else SMALL
    moments = random.Random(chosen.seed)
    root = Path(tempfile.mkdtemp(prefix="fmab-kill-"))
    whole, broken, cache = root / "whole", root / "broken", root / "cache"

    began = time.perf_counter()
    if started(options, whole, cache).wait() != 0:
        print("the uninterrupted run failed")
        return 1
    cold = time.perf_counter() - began
    began = time.perf_counter()
    started(options, whole, cache).wait()
    idle = time.perf_counter() - began
    reference = digests(whole)
    print(f"uninterrupted: {cold:.1f} s, {len(reference)} units; with nothing to do: {idle:.1f} s")

    kills = finished = unreadable = wrong = orphans = most_orphans = 0
    while kills < chosen.kills:
        process = started(options, broken, cache)
        # A fifth of the kills while it starts, the others while it computes.
        work = max(0.5, 2 * (cold - idle) / chosen.kills)
        early = moments.random() < 0.2
        pause = moments.uniform(0, idle) if early else idle + moments.uniform(0, work)
        try:
            process.wait(pause)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        else:
            finished += 1
            wrong += digests(broken) != reference
            shutil.rmtree(broken)
            continue
        there, damage = listed(broken)
        unreadable += len(damage)
        files = digests(broken) if broken.exists() else {}
        wrong += sum(files[name] != reference[name] for name in there)
        orphans = len(set(files) - there)
        most_orphans = max(most_orphans, orphans)
        print(f"kill {kills:3d} after {pause:5.1f} s: {len(there):4d} units safe, {orphans} begun")
    last = started(options, broken, cache).wait()
    same = digests(broken) == reference
    values = open_sweep(whole).identical(open_sweep(broken)) if same else False
    print(
        f"{kills} kills, {finished} finished in between: {unreadable} unreadable, {wrong} wrong, "
        f"at most {most_orphans} unit begun and lost; final files equal: {same}, values: {values}"
    )
    shutil.rmtree(root)
    failed = last != 0 or unreadable or wrong or most_orphans > 1 or not same or not values
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
