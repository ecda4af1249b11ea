"""Tables in other formats, what is remarked below them, and bounds that are capped."""

import csv
import io

import numpy as np
import pytest
import sizes
from spoken import said

import fmab_jax as fmab
from fmab_jax.analysis import theory
from fmab_jax.cli import bounds
from fmab_jax.sweeps import runner

SMALL = {"seeds": 20, "times": 4, "batch": 8, "progress": False}


@pytest.fixture(scope="module")
def swept():
    """Agents alike and apart, with and without noise, for long and for too short."""
    grid = {"spread": [0, 0.5], "epsilon": [1, None]}
    return fmab.sweep("cdp", **sizes.SMALL, horizon=2000, **grid, **SMALL)


@pytest.fixture(scope="module")
def written(swept, tmp_path_factory):
    return str(
        fmab.save(swept.assign_coords(epsilon=["1", "none"]), tmp_path_factory.mktemp("x") / "x.nc")
    )


def shown(capsys, path, form):
    return said(capsys, f"show {path} --format {form}").out


def test_csv_has_all_digits_of_the_table(written, capsys):
    """Would catch rounded numbers, columns without a name, or ends that are swapped."""
    frame = fmab.table(fmab.load(written))
    rows = list(csv.DictReader(io.StringIO(shown(capsys, written, "csv"))))
    assert [*rows[0]] == [*frame] and len(rows) == 4
    for row, expected in zip(rows, frame.to_dict("records"), strict=True):
        for name, value in expected.items():
            if isinstance(value, float):
                np.testing.assert_equal(float(row[name]), value, name)
            else:
                assert row[name] == str(value), name


def test_a_leak_up_to_delta_is_a_pair_and_its_epsilon_is_filtered(folder, capsys):
    """Would catch an epsilon without its delta, that of the first law, or a condition on what one
    message is stated to leak."""
    laws = {"mechanism": ["laplace", "gaussian"], "epsilon": 1, "delta": 1e-3}
    data = fmab.sweep("kl_se", **sizes.SMALL, **laws, horizon=2000, **SMALL)
    fmab.save(data.load(), "x.nc")
    out = said(capsys, "show x.nc --columns mechanism leak_messages leak_sum leak_actions").out
    rows = [line.split() for line in out.split("\n") if "laplace" in line or "gaussian" in line]
    views = fmab.add_leaks(data)
    for row, place in zip(rows, (0, 1), strict=True):
        leaks = [views[f"leak_{view}"].values[place] for view in ("sum", "actions")]
        texts = [f"({leak:.4g}, 10⁻⁶)" for leak in leaks]
        first = ["1", "(1.71, 10⁻⁶)"][place]
        assert " ".join(row) == " ".join([["laplace", "gaussian"][place], first, *texts])
    assert "(ε, δ) where it holds only up to δ" in " ".join(out.split())
    out = said(capsys, "show x.nc --where leak_messages<=1.1 --columns mechanism").out
    assert "laplace" in out and "gaussian" not in out.partition("\n\n")[2]
    rows = list(csv.DictReader(io.StringIO(shown(capsys, "x.nc", "csv"))))
    assert [float(row["leak_messages_delta"]) for row in rows] == [0.0, 1e-6]
    assert "gaussian & (1.71, 10$^{-}$$^{6}$) & " in shown(capsys, "x.nc", "latex")


def test_a_run_shows_the_rows_that_keep_a_budget(folder, capsys, monkeypatch):
    """Would catch a condition that is read after the trials, or an empty table as an error."""
    words = "run cdp --epsilon 0.5 1 --agents 4 --arms 3 --horizon 2000 --seeds 20 --no-figure"
    out = said(
        capsys,
        f"{words} --out x --columns links_max epsilon --where 'links_max>=0 and epsilon>0.5'",
    ).out
    lines = [line.split() for line in out.split("\n")]
    data = fmab.load("x.nc").sel(epsilon=1)
    most = int(data.links.isel(time=-1).max())
    assert [f"{most}", "1"] in lines and not any(line[1:] == ["0.5"] for line in lines)
    text = said(capsys, f"{words} --out x --overwrite --where links_max<0").out
    assert text.startswith("No configuration fulfils --where links_max<0.\n")
    monkeypatch.setattr(runner, "run", None)
    for condition in ("links_mx<0", "links_max=0", "links_max<=x"):
        err = said(capsys, f"{words} --out y --where {condition}", 2).err
        assert err.startswith(f"fmab: --where {condition}: must be ") and err.count("\n") == 1
    assert "--columns most" in said(capsys, f"{words} --out y --columns most", 2).err


def test_markdown_has_the_numbers(written, capsys):
    """Would catch cells in other columns than their names."""
    caption, _, *lines = shown(capsys, written, "markdown").rstrip().split("\n")
    assert caption.startswith("CDP-MAB, M = 4 agents, K = 3 arms")
    heads, _, first = ([x.strip() for x in line.strip("|").split("|")] for line in lines[:3])
    result = dict(zip(heads, first, strict=True))
    row = next(csv.DictReader(io.StringIO(shown(capsys, written, "csv"))))
    assert result["regret ± 95 %"].split()[0].replace(",", "") == f"{float(row['regret']):.4g}"
    assert result["seeds"] == "20" and result["leak ε of single messages"] == "4"


def test_latex_has_no_letter_that_pdflatex_lacks(written, capsys):
    """Would catch tables that do not compile: bare %, letters beyond ASCII, unequal rows."""
    text = shown(capsys, written, "latex")
    comment, *lines = text.rstrip().split("\n")
    assert comment.startswith("% CDP-MAB") and text.isascii()
    assert lines[0].startswith(r"\begin{tabular}{") and lines[-1] == r"\end{tabular}"
    rows = [line for line in lines if line.endswith(r"\\")]
    assert len(rows) == 5
    columns = len(lines[0].split("{")[-1].rstrip("}"))
    assert columns > 5
    assert {line.count("&") for line in rows} == {columns - 1}
    assert not [line for line in rows if "%" in line.replace(r"\%", "")]


def test_latex_has_words_for_a_paper(folder, capsys):
    """Would catch names for programs in a paper, cells in other columns, or digits that are cut."""
    grid = {"epsilon": [0.50000001, 0.5, None]}
    outputs = [fmab.Output("seeds_used", "seeds in use", "seeds", lambda x: 1.0 + 0 * x["rounds"])]
    data = fmab.sweep(
        ["cdp", "kl_se"], **sizes.SMALL, horizon=2000, **grid, **SMALL, outputs=outputs
    )
    frame, columns = fmab.table(data), ["algorithm", "epsilon", "seeds_used"]
    table = fmab.show(frame, columns)
    assert table.columns.tolist() == [*columns[:2], "seeds used ± 95 %"]
    assert table.algorithm[0] == "cdp" and set(table.iloc[:, 2]) == {"1 ± 0"}
    paper = fmab.show(frame, columns, words=True)
    heads = ["algorithm", "privacy parameter ε", "seeds in use (seeds) ± 95 %"]
    assert paper.columns.tolist() == heads
    assert paper.iloc[:, 0].tolist() == ["CDP-MAB"] * 3 + ["KL-SE"] * 3
    assert paper.iloc[:, 1].tolist() == ["0.50000001", "0.5", "no noise"] * 2


def test_bounds_say_that_they_are_capped(capsys):
    """Would catch parts that add up to more than their whole without a word."""
    out = said(capsys, "bounds cdp --agents 5 --arms 10 --horizon 1e3").out
    line = next(x for x in out.split("\n") if x.startswith(" regret  "))
    assert line.split()[1:] == ["2,344", "4,328", "(capped)"]
    table = fmab.cdp_mab(1).exchange(5)
    for horizon in (10**3, 10**6):
        for bound in (theory.bounds, theory.closed_form):
            result = bound(np.array([0, 0.3, 0.4]), table, horizon, 1.0)
            parts = [getattr(result, name) for name in result._fields if name.startswith("regret_")]
            assert bounds._is_capped(result) == (sum(parts) > result.regret * (1 + 1e-9))
            assert result.regret == pytest.approx(min(sum(parts), 5 * horizon * 0.4))
