"""The standings of `python -m experiments card`: every shipped algorithm on every suite.

    python -m benchmarks standings                # computes what is missing, writes after each
    python -m benchmarks standings --only KL-SE   # contestants whose labels hold a word
    python -m benchmarks standings --also b.nc    # takes over what another process has computed

Stop it at any time and start it again: what is in the file is kept. A new line in
`experiments/card/contestants.toml` costs its own runs only.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import fmab_jax as fmab
from experiments.card import standings, suites
from fmab_jax.errors import Refusal


def main(words: list[str]) -> None:
    """Computes, prints and writes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks standings", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--out", type=Path, default=standings.FILE, help="the file to go on with")
    parser.add_argument(
        "--only", nargs="+", default=[], help="contestants whose labels hold a word"
    )
    parser.add_argument("--also", nargs="+", default=[], help="files of other processes")
    parser.add_argument("--seeds", type=int, help="of every suite, for a trial")
    asked = parser.parse_args(words)
    if asked.seeds is not None and asked.seeds < 2:
        parser.error(f"--seeds {asked.seeds}: must be at least 2; an interval needs that many")
    if asked.seeds is not None and asked.out.resolve() == standings.FILE.resolve():
        parser.error("--seeds: must come with --out; the file of the folder has the suites' seeds")
    for path in asked.also:
        if not Path(path).is_file():
            parser.error(f"--also {path}: must be an existing file; check the path")
    fmab.use_compilation_cache()
    given = suites.shipped()
    known = standings.Standings(given.version, given.digest)
    for path in filter(Path.exists, map(Path, [asked.out, *asked.also])):
        try:
            read = standings.read(path, given.digest)
        except Refusal as error:
            print(f"begun anew: {error}", flush=True)
            continue
        known.table |= read.table
        known.lower |= read.lower
    everybody = suites.contestants()
    only = [e.label for e in everybody if any(word in e.label for word in asked.only)]
    if asked.only and not only:
        sys.exit(f"--only {' '.join(asked.only)}: no label holds it")
    if asked.also:
        standings.write(known, asked.out)
    seeds = dict.fromkeys(given.suites, asked.seeds) if asked.seeds is not None else None
    started, used = time.perf_counter(), time.process_time()
    for made, told in standings.complete(given, everybody, known, seeds, only):
        standings.write(made, asked.out)
        spent = time.perf_counter() - started, time.process_time() - used
        print(f"{spent[0]:7.0f} s, {spent[1]:7.0f} s CPU  {told}", flush=True)
