"""`fmab compare` finds the runs that words name, and prints what `fmab.compare` says of them."""

from __future__ import annotations

import functools
import re

import pytest
import sizes
from spoken import number, said

import fmab_jax as fmab

RUNS = {"horizon": 10_000, "seeds": 12, "times": 1, "progress": False}


@functools.cache
def swept():
    """Returns a small sweep."""
    grid = {"epsilon": [0.1, 1.0], "participation": [0.4, 0.7, 1.0]}
    return fmab.sweep("cdp", **sizes.SMALL, **grid, **RUNS).load()


@functools.cache
def sized():
    """Returns a sweep of unlike problems."""
    return fmab.sweep("cdp", agents=[3, 4], arms=3, epsilon=1.0, **RUNS).load()


@pytest.fixture(autouse=True)
def files(folder):
    """Files to compare."""
    data = swept()
    fmab.save(data, "grid.nc")
    fmab.save(data.isel(participation=0), "two.nc")
    one = data.isel(participation=0, epsilon=1)
    fmab.save(one, "one.nc")
    fmab.save(one.isel(seed=[0]).assign(seeds=one.seeds.clip(max=1)), "alone.nc")
    fmab.save(sized(), "sizes.nc")


@pytest.mark.parametrize(
    "words, first, second",
    [
        ("two.nc", {"epsilon": 0.1, "participation": 0.4}, {"epsilon": 1, "participation": 0.4}),
        (
            "grid.nc --where epsilon==0.1 participation==1 --against epsilon==1&participation==1",
            {"epsilon": 0.1, "participation": 1},
            {"epsilon": 1, "participation": 1},
        ),
        (
            "grid.nc one.nc --where epsilon==0.1&participation==1",
            {"epsilon": 0.1, "participation": 1},
            {"epsilon": 1, "participation": 0.4},
        ),
    ],
    ids=["one file of two", "two cells", "two files"],
)
def test_words_name_two_runs(capsys, words, first, second):
    """Would catch selectors of the wrong side, or values that are not inherited."""
    data = swept()
    result = fmab.compare(data.sel(first), data.sel(second), labels=("a", "b"), level=0.8)
    out = said(capsys, f"compare {words} --level 0.8").out
    cells = result.cells()
    row = next(line for line in out.split("\n") if cells["difference"] in line)
    run = result.participants
    leaks = f"{run[0].leak:.4g} and {run[1].leak:.4g}"
    names = ("regret, first", "regret, second", "difference", "per cent", "p-value")
    assert re.split(r"\s{2,}", row.strip())[2:] == [leaks, *(cells[name] for name in names)]
    assert number(cells["regret, first"]) == pytest.approx(run[0].mean, rel=1e-3)
    assert "Each 80 % interval holds" in " ".join(out.split())
    assert "Paired by seed: Student's t of the differences; 12 seeds each." in out


@pytest.mark.parametrize(
    "words, line",
    {
        "one.nc": "one.nc: must hold two runs of one horizon and problem with seeds; ",
        "sizes.nc": "sizes.nc: must hold two runs of one horizon and problem with seeds; ",
        "one.nc two.nc grid.nc": "fmab compare one.nc two.nc grid.nc: must be given one or two; ",
        "grid.nc --where epsilon==0.1 --against epsilon==1": "--where epsilon==0.1: must choose "
        "one configuration with seeds of grid.nc, not 3; tell them apart by epsilon (0.1, 1) and",
        "two.nc --against epsilon==1": "--where: must be given, since two.nc has 2 ",
        "two.nc --where epsilon==1 --against epsilon==2": "--against epsilon==2: must choose "
        "one configuration with seeds of two.nc, not 0; ",
        "grid.nc --where links<=0": "grid.nc: must hold two runs ",
        "two.nc --where link<=0": "--where link<=0: must be a condition ... 'link' is not defined",
        "two.nc --where epsilon==1 --against epsilon=1": "--against epsilon=1: must be true or ",
        "one.nc alone.nc": "second.seeds=1: must be at least 2; ",
    }.items(),
)
def test_bad_words_end_in_one_line(capsys, words, line):
    """Would catch a traceback, or a comparison of something else."""
    err = said(capsys, f"compare {words}", 2).err
    start, *parts = line.split(" ... ")
    assert err.startswith(f"fmab: {start}") and err.count("\n") == 1
    assert all(part in err for part in parts), err


def test_conditions_choose_the_configurations(capsys):
    """Would catch conditions that are passed over, and means where maxima are asked for."""
    data = swept()
    records = fmab.table(data).to_dict("records")
    most = sorted(row["links_max"] for row in records)[-1]
    kept = [row for row in records if row["links_max"] < most]
    pairs = fmab.compare_all(data, where=f"links_max<{most}")
    means = {run.mean for pair in pairs for run in pair.participants}
    assert 2 <= len(kept) < 6 and sorted(means) == pytest.approx(sorted(x["regret"] for x in kept))
    assert len(pairs) == len(kept) * (len(kept) - 1) // 2
    out = said(capsys, f"compare grid.nc --where 'links_max<{most}'").out
    assert all(pair.cells()["difference"] in out for pair in pairs)


@functools.cache
def noisy():
    """Returns a sweep of two laws of noise, of which one has no epsilon without delta."""
    laws = {"mechanism": ["laplace", "gaussian"], "epsilon": 1, "delta": 1e-3}
    return fmab.sweep("kl_se", **sizes.SMALL, **laws, **RUNS).load()


def test_a_leak_up_to_delta_is_compared_as_one(capsys):
    """Would catch (1.71, 10⁻⁶) written or judged as 1.71, or called that of another law; and a cell
    that does not leak what the same configuration leaks alone."""
    fmab.save(noisy(), "laws.nc")
    problem = fmab.Problem.heterogeneous(**sizes.SMALL, spread=0.0)
    algorithm = fmab.kl_se(1, mechanism="gaussian", delta=1e-3)
    fmab.save(fmab.simulate(algorithm, problem, 10_000, 12, times=1), "gaussian.nc")
    text = " ".join(said(capsys, "compare laws.nc").out.split())
    assert "mechanism = laplace mechanism = gaussian 1 and (1.71, 10⁻⁶) " in text
    assert "leak ε = 1 and (ε, δ) = (1.71, 10⁻⁶) (single messages); links " in text
    words = "compare laws.nc gaussian.nc --where 'mechanism==\"gaussian\"'"
    text = " ".join(said(capsys, words).out.split())
    assert "leak (ε, δ) = (1.71, 10⁻⁶) each (single messages); links " in text
    cell = noisy().sel(mechanism="gaussian")
    pair = fmab.compare(cell, fmab.load("gaussian.nc"), labels=("cell", "alone"))
    first, second = (run[:4] for run in pair.participants)
    assert first == second and first[1] == 1e-6 and pair.difference == 0


def test_without_the_reference_the_first_configuration_is_compared():
    """Would catch no comparison at all where a condition leaves out the reference."""
    grid = {"epsilon": [0.1, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]}
    data = fmab.sweep("cdp", **sizes.SMALL, **grid, **RUNS)
    pairs = fmab.compare_all(data, where="epsilon<32")
    assert [(pair.first, pair.second) for pair in pairs] == [
        (f"ε = {epsilon}", "ε = 0.1") for epsilon in (1, 2, 4, 8, 16)
    ]
