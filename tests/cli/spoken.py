"""What a command says, and its table read back."""

import re
import shlex

import numpy as np
import pytest
from scipy import stats

from fmab_jax.cli.main import main


def said(capsys, words, status=0):
    """Returns what a command writes to standard output and standard error."""
    capsys.readouterr()
    assert main(shlex.split(words)) == status, capsys.readouterr()
    return capsys.readouterr()


def number(text):
    return float(text.replace(",", ""))


def rows(out):
    """Returns a table's headings, a column's lines joined, and its cells, with intervals whole."""
    lines = out.split("\n")
    rule = next(i for i, line in enumerate(lines) if line.strip() and set(line) <= set(" ─"))
    head = [line for line in lines[1:rule] if line.strip()]
    end = next(i for i, line in enumerate(lines) if line.startswith("Regret"))
    body = [line for line in lines[rule + 1 : end] if line.strip()]
    return [" ".join(line.split()) for line in head], [re.split(r"\s{2,}", x.strip()) for x in body]


def check_rows(out, data, level=0.95, prices=(1.0, 1.0)):
    """Compares rows with results by formulas of its own: Student t, beta quantiles, eq. (2)."""
    dims = list(data.seeds.dims)
    _, found = rows(out)
    assert len(found) == data.seeds.size
    many = data.sizes["meter"]
    # What a message leaks has a column, where nothing swept says it.
    leaks = int("epsilon_message" in {*data.coords, *data.attrs} and "epsilon_message" not in dims)
    for row, place in zip(found, np.ndindex(data.seeds.shape), strict=True):
        run = data.isel(dict(zip(dims, place, strict=True)))
        assert row[: len(dims)] == [str(run[name].item()) for name in dims]
        if leaks:
            said_by = run.coords if "epsilon_message" in run.coords else run.attrs
            told = float(row[len(dims)].replace("no bound", "inf"))
            assert told == float(said_by["epsilon_message"])
        regret, half, share, rounds, *links, cost, seeds, lost, worse = row[len(dims) + leaks :]
        final, n = run.regret.values[:, -1], run.sizes["seed"]
        near = {"rel": 5e-4, "abs": 1e-9}
        width = stats.t.ppf((1 + level) / 2, n - 1) * final.std(ddof=1) / np.sqrt(n)
        assert number(regret) == pytest.approx(final.mean(), **near)
        assert number(half) == pytest.approx(width, **near)
        assert number(share) == pytest.approx(100 * width / final.mean(), rel=0.06)
        assert number(rounds) == pytest.approx(run.rounds_made.values.mean(), **near)
        ends = run.links.values[:, -1].mean(axis=0)
        assert len(links) == many and list(map(number, links)) == pytest.approx(ends, **near)
        paid = [prices[0] if side == "server" else prices[1] for side in run.side.values]
        expected = sum(ends * paid * (run.priced.values | (run.side.values == "server")))
        assert number(cost) == pytest.approx(expected, **near)
        assert int(number(seeds)) == n
        for text, name in ((lost, "best_arm_lost"), (worse, "worse_arm_played")):
            event, low, high = re.fullmatch(r"(\d+) \[(\S+), (\S+)\]", text).groups()
            count, tail = int(run[name].values.sum()), (1 - level) / 2
            lower = stats.beta.ppf(tail, count, n - count + 1) if count else 0.0
            upper = stats.beta.ppf(1 - tail, count + 1, n - count) if count < n else 1.0
            assert int(event) == count
            assert (float(low), float(high)) == pytest.approx((lower, upper), rel=0.06)
