"""Kills a sweep with SIGKILL at random moments, resumes it, and compares every byte.

    python benchmarks/kill_resume.py --kills 40
    python benchmarks/kill_resume.py --kills 40 --full       # 100 cells x 1000 seeds, T = 10^6
    python benchmarks/kill_resume.py --kills 40 --workers 4  # four processes share the store

An uninterrupted run is the reference. The other run is killed and resumed until it has been killed
so often; when it finishes earlier it starts anew in an empty folder. After every kill each chunk
that the store lists has to be readable and equal to the reference's, what was listed before has to
be listed still, and at most one per process may be there that is not: the chunk being written. At
the end the files of both have to be the same.
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

from fmab_jax.sweeps.results import open_sweep
from fmab_jax.sweeps.store import Store

SMALL = (
    "--agents 5 --arms 10 --horizon 1e5 --epsilon 0.1 0.3 0.5 1 --rounds none 2 3 --seeds 20000 "
    "--chunk 2000"
)
FULL = (
    "--agents 50 --arms 100 --horizon 1e6 --epsilon 0.1 0.3 0.5 1 "
    "--participation 0.2 0.4 0.6 0.8 1 --rounds none 2 3 4 5 --seeds 1000"
)


def started(
    options: str, out: Path, cache: Path, worker: str | None = None
) -> subprocess.Popen[bytes]:
    """Starts the sweep as a user would."""
    words = [sys.executable, "-m", "fmab_jax", "sweep", "cdp", *options.split(), "--out", str(out)]
    words += ["--worker", worker] if worker else []
    env = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(words, env=env, **quiet)


def digests(folder: Path) -> dict[str, str]:
    """Returns the SHA-256 of every chunk's file."""
    files = sorted((folder / "chunks").glob("*.npz"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def listed(folder: Path) -> tuple[set[str], list[str]]:
    """Returns the chunks that the store lists, and what is wrong with any of them."""
    if not folder.exists():
        return set(), []
    if not (folder / "chunks").exists():
        # Killed between making the folder and what is in it.
        return set(), []
    store = Store(folder)
    entries, damage = store.entries(), []
    for entry in entries:
        wrong = store.check(entry)
        if wrong is not None:
            damage.append(f"{entry.chunk}: {wrong}")
    return {f"{entry.chunk}.npz" for entry in entries}, damage


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 if nothing was lost."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--workers", type=int, default=1)
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
    print(f"uninterrupted: {cold:.1f} s, {len(reference)} chunks; with nothing to do: {idle:.1f} s")

    kills = finished = unreadable = wrong = lost = most_orphans = 0
    before: set[str] = set()
    names = [f"{index}/{chosen.workers}" for index in range(1, chosen.workers + 1)]
    names = names if chosen.workers > 1 else [None]
    running: dict[str | None, subprocess.Popen[bytes]] = {}
    while kills < chosen.kills:
        for name in names:
            if name not in running:
                running[name] = started(options, broken, cache, name)
        # A fifth of the kills while it starts, the others while it computes.
        work = max(0.5, 2 * (cold - idle) / chosen.kills)
        early = moments.random() < 0.2
        pause = moments.uniform(0, idle) if early else idle + moments.uniform(0, work)
        time.sleep(pause)
        if all(process.poll() is not None for process in running.values()):
            finished += 1
            wrong += digests(broken) != reference
            shutil.rmtree(broken)
            before, running = set(), {}
            continue
        victim = moments.choice(names)
        process = running.pop(victim)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        there, damage = listed(broken)
        unreadable += len(damage)
        lost += len(before - there)
        before = there
        files = digests(broken) if broken.exists() else {}
        wrong += sum(files.get(name) != reference[name] for name in there)
        orphans = len(set(files) - listed(broken)[0])
        most_orphans = max(most_orphans, orphans)
        print(f"kill {kills:3d} after {pause:5.1f} s: {len(there):4d} chunks safe, {orphans} begun")
    for process in running.values():
        process.wait()
    last = started(options, broken, cache).wait()
    same = digests(broken) == reference
    values = open_sweep(whole).identical(open_sweep(broken)) if same else False
    print(
        f"{kills} kills, {finished} finished in between: {unreadable} unreadable, {wrong} wrong, "
        f"{lost} lost, at most {most_orphans} begun; final files equal: {same}, values: {values}"
    )
    failed = last != 0 or unreadable or wrong or lost or most_orphans > len(names)
    if failed or not same or not values:
        print(f"see {root}")
        return 1
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
