"""Throws random cases at every reader of files; a process of its own.

Usage: throw.py KIND FIRST COUNT [KIND FIRST COUNT ...]. A case is made of its kind and its seed
alone, so that a failure is repeated by ``throw.py KIND SEED 1``. Prints a line of JSON for each
case: kind, seed, its data, and its outcome as in ``doors``.

What is accepted says what an independent reader finds: the csv module and Python's own floats.
"""

import csv
import io
import json
import math
import os
import random
import sys
import tempfile
import tomllib
import warnings
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import doors
import numpy as np

import fmab_jax as fmab
from fmab_jax.algorithms.base import find_by_name
from fmab_jax.parameters import Real, parameters_of
from fmab_jax.sweeps import study_file


class Wrong(AssertionError):
    """What was accepted is not what was given."""


def same(actual, expected, name):
    """Compares exactly."""
    if actual != expected:
        raise Wrong(
            f"{name}: {str(actual)[:150]}, and an independent reader has {str(expected)[:150]}"
        )


CELLS = (
    *"0.5 0 1 0.25 1.0 .5 1. +0.5 -0 5e-1 1e-400 1e400 nan inf -0.1 1_0 0,5 0x1p-1 \u0661".split(),
    *("", " ", " 0.5 ", '"0.5"', '"0.5', "a", "0.1;", "true", "None", "1+0j", "9" * 400),
    *("1" * 140_000, "0.5\r", "\x00", "\ufeff0.5", "=1", "5e-324", "0.30000000000000004"),
    *("0.1e-1", "--1", "1e", "e1", "'0.5'", '"0.5\n"', '"a""b"'),
)
ENDS = ("\n", "\r\n", "\r", "\n\n", "\n,\n", "")


def lines_of(rows, rng):
    """Writes rows, sometimes with what no writer should write."""
    end = rng.choice(ENDS) if rng.random() < 0.3 else "\n"
    text = end.join(",".join(row) for row in rows) + rng.choice([end, "", "\n"])
    data = text.encode(rng.choice(["utf-8"] * 8 + ["utf-8-sig", "utf-16"]), "surrogatepass")
    return broken(data, rng) if rng.random() < 0.15 else data


def broken(data, rng):
    """Cuts, flips or repeats bytes."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        damage = rng.randrange(4)
        if damage == 0:
            data = data[:at]
        elif damage == 1:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif damage == 2:
            data = data[:at] + data[at // 2 : at] + data[at:]
        else:
            data = data[:at] + bytes(rng.randrange(256) for _ in range(4)) + data[at:]
    return data


def cell(rng, hostile):
    """Returns a mean, or something else."""
    return rng.choice(CELLS) if rng.random() < hostile else repr(round(rng.random(), 3))


def rows_in(data):
    """Reads as the csv module does."""
    text = data.decode("utf-8-sig")
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    return [[item.strip() for item in row] for row in rows if any(item.strip() for item in row)]


def means_csv(rng):
    """Means in a CSV file."""
    wide, hostile = rng.randint(1, 4), rng.choice([0, 0, 0.1, 0.5])
    rows = [[cell(rng, hostile) for _ in range(wide)] for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.3:
        rows.insert(
            0, [rng.choice(["a", "b", "id", "", "index", "0.5", "x y"]) for _ in range(wide)]
        )
    if rng.random() < 0.1:
        rng.choice(rows).append("0.5")
    data = lines_of(rows, rng)
    path = Path("means.csv")
    path.write_bytes(data)

    def throw():
        result = fmab.Problem.from_file(path)
        expected = rows_in(data)
        if any(not number(item) for item in expected[0]):
            expected = expected[1:]
        shape = result.agents if result.rows == 1 else result.rows, result.means.shape[-1]
        content = np.broadcast_to(result.means, shape if len(expected) > 1 else (1, shape[1]))
        same(content.tolist(), [[*map(float, row)] for row in expected], "means")
        same([*map(exact, sum(expected, []))], [True] * sum(map(len, expected)), "digits")

    return data[:300], throw


def number(text):
    """Tells whether Python reads a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def exact(text):
    """Tells whether a number that is not zero stays so."""
    return (float(text) != 0) == (Fraction(text) != 0)


LITERALS = (
    *'0.5 1 2 none "none" inf -inf nan 1e400 1e-400 -1 true ""'.split(),
    *("[0.5, 1]", "[]", "[[1]]", "{a = 1}", "1979-05-27", "0x10", "1_0", '"ring"', '"a\\u0000"'),
    *("[1, 1.0]", "9223372036854775808", "10" * 30, '["ring", "star"]', "0.1e1", "'2:ring'"),
    *('"3x5:ring"', "''''''"),
)


PLAIN = ("0.5", "0.0625", "0.30000000000000004", "0.123", "2.5", "3.125", "2")


def study(rng):
    """A study file, its values made of the parameters' names and hostile literals."""
    name = rng.choice([each["name"] for each in fmab.list_algorithms()])
    names = list(parameters_of(find_by_name(name)))
    lines = [f'algorithm = "{name}"', "horizon = 1000", "seeds = 4"]
    if rng.random() < 0.3:
        lines[rng.randrange(3)] = (
            f"{rng.choice(['horizon', 'seeds', 'x'])} = {rng.choice(LITERALS)}"
        )
    lines.append("[parameters]")
    options = rng.sample(names, min(len(names), rng.randint(0, 2)))
    if "epsilon" in names and "epsilon" not in options:
        lines.append("epsilon = 1")
    usual = rng.random() < 0.5
    if usual:
        options = [
            each
            for each in options
            if isinstance(parameters_of(find_by_name(name))[each].kind, Real)
        ]
    lines += [f"{each} = {rng.choice(PLAIN if usual else LITERALS)}" for each in options]
    arms = rng.choice(LITERALS) if rng.random() < 0.2 else 3
    lines += ["[problem]", "agents = 3", f"arms = {arms}"]
    data = "\n".join(lines).encode()
    data = broken(data, rng) if rng.random() < 0.15 else data
    path = Path("study.toml")
    path.write_bytes(data)

    def throw():
        points = study_file.build_study(study_file.read_study(path)).points
        expected = tomllib.loads(data.decode("utf-8-sig"))
        for field, value in expected.get("parameters", {}).items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                result = {getattr(point.config.algorithm, field) for point in points}
                value = None if value == math.inf and result == {None} else value
                same(result, {value and float(value)}, field)

    return data.decode("utf-8", "replace"), throw


KINDS = {"means_csv": means_csv, "study": study}


def main():
    """Throws cases of a kind, in an empty folder, within the time and memory of a case."""
    warnings.simplefilter("ignore")
    doors.guard()
    words = iter(sys.argv[1:])
    for kind, first, count in zip(words, words, words, strict=True):
        for seed in range(int(first), int(first) + int(count)):
            print(kind, seed, file=sys.stderr, flush=True)
            data, throw = KINDS[kind](random.Random(f"{kind} {seed}"))
            end = doors.outcome(lambda throw: throw(), throw)
            print(json.dumps([kind, seed, repr(data)[:600], end]), flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["XDG_CACHE_HOME"] = folder
        main()
