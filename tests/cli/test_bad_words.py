"""Bad words on the command line, each with the line that refuses it; nothing is computed."""

from __future__ import annotations

import re

import pytest
from fresh import python as process
from spoken import said

from fmab_jax.algorithms.base import known
from fmab_jax.run import compilation, resources

# As the package's own refusals, but that None is called none.
EPSILON = "must be a number in (0, 1e+100]; give a privacy parameter, or none for no noise"
ROUNDS = "must be a whole number in [1, 100,000]; give a round budget, or none for none"
SHARE = "must be a number in (0, 1]; give the share of agents that report in a round, such as 0.4"
SMALLEST = (
    "must be a number in [1e-09, 1); give the smallest non-zero gap, or none to leave it to chance"
)
AGENTS = "must be a whole number in [1, 10,000,000]; give the number of agents M"
ARMS = "must be a whole number in [1, 1,000,000]; give the number of arms K"
HORIZON = "must be a whole number in [1, 1,000,000,000,000]; give the number of slots T"
SEED = (
    "must be a whole number in [0, 4,294,967,295]; "
    "larger seeds would repeat the streams of smaller ones"
)
INCREASING = "must be increasing; sort the slots and drop repeated ones"
GRAPH = (
    "must be one of complete, star, ring, path, grid, regular-D, random, random-P, preferential, "
    "preferential-m, or a .txt, .edgelist, .csv or .graphml file"
)
INSTANCE = (
    "must be a whole number in [0, 4,294,967,295]; give the seed whose means all seeds shall have"
)
COMMANDS = (
    "run, sweep, show, plot, compare, report, algorithms, audit, bounds, doctor, "
    "export, outputs, problem"
)
NAMES = ", ".join(sorted(known()))
OPTION = "must be an option of fmab"

# words: the line on standard error after "fmab: ".
WORDS = {
    "": f"no command: must be one of {COMMANDS}; see fmab --help",
    "run": f"no command: must be one of {NAMES}; see fmab run --help",
    "benchmark cdp": "benchmark: must be run in a clone, as python -m experiments card",
    "rum cdp": f"rum: must be one of {COMMANDS}; did you mean run?",
    "run cpd": f"cpd: must be one of {NAMES}; did you mean cdp?",
    "run doubling": f"doubling: must be one of {NAMES}; see fmab run --help, or load an "
    "algorithm of your own with --plugin",
    "run cdp --no-figure --figure": "--no-figure and --figure: must be given once; "
    "drop one of them",
    "sweep x.toml --epsilon 1": f"--epsilon: {OPTION} sweep STUDY.toml; "
    "the file states the study; see fmab sweep STUDY.toml --help for what is no part of it",
    "sweep x.toml --wroker 1/2": f"--wroker: {OPTION} sweep STUDY.toml; did you mean --worker?",
    "--agents 3": f"--agents: must be one of {COMMANDS}; see fmab --help",
    "sweep cdp --store x": f"--store: {OPTION} sweep cdp; did you mean --out?",
    "run cdp --hroizon 9": f"--hroizon: {OPTION} run cdp; did you mean --horizon?",
    "run cdp --graph ring": f"--graph: {OPTION} run cdp; see fmab run cdp --help",
    "run ddp -n 3": f"-n: {OPTION} run ddp; see fmab run ddp --help; a file of that name is ./-n",
    "show -x.nc": f"-x.nc: {OPTION} show; see fmab show --help; a file of that name is ./-x.nc",
    "run cdp --out -out": f"-out: {OPTION} run cdp; did you mean --out?; "
    "a file of that name is ./-out",
    "audit cdp --out nowhere/x": "--out nowhere/x.png: must be in an existing folder; "
    "make the folder first",
    f"report x.nc --out {300 * 'a'}.html": f"--out {76 * 'a'}...: must be a path of at most 4,000 "
    "bytes, at most 255 from / to /; "
    "choose a shorter one",
    "run cdp --epsilon 0,5": "--epsilon 0,5: must be a number in (0, 1e+100]; "
    "write decimals after a point, and no commas",
    "run cdp --seeds 1,000": "--seeds 1,000: must be a whole number in [1, 100,000,000]; "
    "write decimals after a point, and no commas",
    "doctor --seed 3": f"--seed: {OPTION} doctor; did you mean --seeds?",
    "run cdp --seeds": "--seeds: must be given with one value; see fmab run cdp --help",
    "run cdp --agents --arms 3": "--agents: must be given with one or more values; "
    "see fmab run cdp --help",
    "run cdp --seeds 3 4": "--seeds 3 4: must be given with one value; see fmab run cdp --help",
    "run cdp --epsilon": "--epsilon: must be given with one or more values; "
    "see fmab run cdp --help",
    "run cdp --no-figure=yes": "--no-figure yes: must be given with no value; "
    "see fmab run cdp --help",
    "run cdp 5 --agents 3": "fmab run cdp 5: must be given with options only; "
    "see fmab run cdp --help",
    "run cdp --seeds 3 --seeds 4": "--seeds: must be given once; drop one of them",
    "run cdp --epsilon 0": f"--epsilon 0: {EPSILON}",
    "run cdp --epsilon 1e400": f"--epsilon 1e400: {EPSILON}",
    "run cdp --epsilon 1e-99999999999999999999": f"--epsilon 1e-99999999999999999999: {EPSILON}",
    "run cdp --epsilon 1e308": f"--epsilon 1e+308: {EPSILON}",
    "run cdp --epsilon 1 -1": f"--epsilon -1: {EPSILON}",
    "run ddp --epsilon nan": f"--epsilon nan: {EPSILON}",
    "run hdp --epsilon x": f"--epsilon x: {EPSILON}",
    "run cdp --epsilon \u0661": f"--epsilon \u0661: {EPSILON}",
    "run cdp --epsilon 1 1.0": "--epsilon 1: must be distinct values; "
    "a repeated value repeats its configurations",
    "run cdp --epsilon 1 --epsilon-message 5": "--epsilon-message 5.0: must be given without "
    "epsilon; drop one",
    "run cdp --participation=0": f"--participation 0: {SHARE}",
    "run cdp --rounds 2.5": f"--rounds 2.5: {ROUNDS}",
    "run cdp --horizon 0": f"--horizon 0: {HORIZON}",
    "run cdp --horizon none": f"--horizon none: {HORIZON}",
    "run cdp --horizon 1__0": f"--horizon 1__0: {HORIZON}",
    "run cdp --horizon 1e13": f"--horizon 10000000000000: {HORIZON}",
    "run cdp --agents 0x10": f"--agents 0x10: {AGENTS}",
    "run cdp --arms 1e400": f"--arms 1e400: {ARMS}",
    "run cdp --instance-gap 1": f"--instance-gap 1: {SMALLEST}",
    "run cdp --fixed-instance -1": f"--fixed-instance -1: {INSTANCE}",
    "run cdp --seeds 1": "--seeds 1: must be a whole number in [2, 100,000,000]; "
    "an interval needs at least 2 seeds",
    "run cdp --root-seed 4294967296": f"--root-seed 4294967296: {SEED}",
    "run cdp --root-seed 12345678901234567890": f"--root-seed 12345678901234567890: {SEED}",
    "run kl_se --split true --spread 0.5": "--split true: must be for agents with the same means; "
    "let every agent pull every arm where agents differ",
    "run kl_se --split true --agents 2e3": "--split true: must be for at most 1,000 agents; "
    "drop it",
    "run demab --spread 0.5": "--spread heterogeneous: must be one whose agents share their means, "
    "for demab; choose another algorithm or --spread 0",
    "run kl_se --split true --outputs fairness": "--outputs fairness: must be left out with KL-SE, "
    "whose agents share the arms out; what each agent pulls is not worked out",
    "run cdp --times 5 2": f"--times 5 2: {INCREASING}",
    "run cdp --times 5 1e6": "--times 1000000: must be whole slots in [0, 100,000]; "
    "give slots, such as [1, 10, 100]",
    "run cdp --level 95": "--level 95: must be a number in (0, 1); use 0.95",
    "run cdp --band bayes": "--band bayes: must be 'pointwise' or 'simultaneous' or 'quantile'; "
    'use "simultaneous"',
    "run cdp --server-price -1": "--server-price -1: must be a number in [0, 1e+100]; "
    "give the price of one link",
    "run cdp --peer-price inf": "--peer-price inf: must be a number in [0, 1e+100]; "
    "give the price of one link",
    "run ddp --graph rng": f"--graph rng: {GRAPH}; did you mean ring?",
    "run hdp --components 20x4:star": "--components 20x4:star: must be sizes that sum to --agents "
    "100 (they sum to 80); "
    "change the sizes or the number of agents",
    "run hdp --weights sinks": "--weights sinks: must be 'agents' or 'components'; "
    "'agents' is unbiased",
    "run cdp --means nowhere.csv": "--means nowhere.csv: must be a readable file; "
    "check the path (no such file or directory)",
    "run cdp --means nowhere.csv --arms 3": "--arms 3: must be left out with --means "
    "nowhere.csv; the file fixes it: drop one",
    "run cdp --out nowhere/x": "--out nowhere/x.png: must be in an existing folder; "
    "make the folder first",
    "run cdp --out=": "--out : must be a file name in an existing folder that can be written; "
    "leave it out for the default",
    **{
        f"run cdp --out '{name}'": "--out ' ': must be a file name in an existing folder that can "
        "be written; leave it out for the default"
        for name in (" ", " .png")
    },
    **{
        f"{words}": f"{shown}: must be a path whose names can be seen; give it a name"
        for words, shown in {
            "sweep cdp --out ' '": "--out ' '",
            "sweep cdp --out 'x/ /y'": "--out x/ /y",
            "sweep cdp --save-study ' .toml' --plan": "--save-study ' .toml'",
            "audit cdp --out ' .png'": "--out ' .png'",
            "run ddp --graph ' .csv'": "--graph ' .csv'",
            "show ' '": "' '",
        }.items()
    },
    f"run cdp --out {300 * 'x'}": f"--out {76 * 'x'}...: must be a file name in an existing folder "
    "that can be written; "
    ".: File name too long",
    "doctor --arms 0": f"--arms 0: {ARMS}",
    "doctor --horizon x": "--horizon x: must be a whole number in [1, 1,000,000,000,000]; "
    "give T, such as 1e6",
}


@pytest.mark.parametrize(("words", "line"), WORDS.items(), ids=[words[:40] for words in WORDS])
def test_bad_words_end_with_status_2_one_line_and_no_file(
    words, line, tmp_path, monkeypatch, capsys
):
    """Would catch a box or traceback for a line, a field's name for an option's, a started run."""
    monkeypatch.setattr(compilation, "compile_program", None)
    assert said(capsys, words, 2) == ("", f"fmab: {line}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_does_not_fit_is_refused_on_the_command_line(tmp_path, monkeypatch, capsys):
    """Would catch the memory check, which is no option, falling through to a traceback."""
    monkeypatch.setattr(resources, "available_bytes", lambda: 10**9)
    _, err = said(capsys, "run cdp --seeds 1e6 --times 1e5 --horizon 1e6", 2)
    assert re.sub("'[0-9.]+ GB'", "'~ GB'", err) == (
        "fmab: memory='~ GB': must be at most 90 % of the 1 GB free; "
        "use --keep summary, which does not grow with the seeds, or at most 999 seeds\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.png", "x.nc"])
def test_a_folder_in_the_way_is_refused(name, tmp_path, capsys):
    """Would catch a long run whose last step, replacing a folder by a file, must fail."""
    (tmp_path / name).mkdir()
    line = "--out x: must be a file name in an existing folder that can be written"
    assert said(capsys, "run cdp --out x", 2).err == f"fmab: {line}; {name} is a folder\n"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["run", "cdp", "--epsilon", "0"], f"--epsilon 0: {EPSILON}"),
        (["run", "cdp", "--agnets", "3"], f"--agnets: {OPTION} run cdp; did you mean --agents?"),
        (["run", "ddp", "--out", "a\nb/c"], None),
    ],
)
def test_a_real_process_refuses_in_one_line(words, line, tmp_path):
    """Would catch warnings beside the line, a wrong exit status, or a line feed let through."""
    result = process("-m", "fmab_jax", *words)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("fmab: --")
    assert line is None or result.stderr == f"fmab: {line}\n"
    assert not list(tmp_path.glob("*.n*")) + list(tmp_path.glob("*.png"))
