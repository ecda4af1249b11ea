"""A configuration has one row, wherever it is: alone, in a sweep, selected, stored, saved, spoken.

Leaks, deltas, trust, spending and regret are compared; what swept neighbours have must not show.
"""

from __future__ import annotations

import itertools
import json
import random
import tomllib

import pytest

import fmab_jax as fmab
from fmab_jax import Study
from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.analysis import costs, privacy
from fmab_jax.cli.main import main
from fmab_jax.errors import Refusal
from fmab_jax.parameters import parameters_of
from fmab_jax.parts.mechanisms import MECHANISMS
from fmab_jax.parts.per_agent import PerAgent
from fmab_jax.sweeps import runner, study_file

AGENTS, ARMS, HORIZON = 4, 3, 200
EPSILONS = 1.0, "1x3,3x1"
PRESENCES = None, "absent:0.2", "corrupted:0.1"
NETWORKS = {"graph": "ring", "components": "2x2:complete"}
# Shipped laws and those of tests must be told apart: only the former are drawn.
LAWS = ("laplace", "gaussian", "discrete_laplace", "skellam")


def list_deltas(law):
    """Returns deltas that noise may have."""
    return (None,) if MECHANISMS.parse(law, "mechanism").pure else (1e-9, 1e-3)


def list_cases():
    """Returns all cases: an algorithm, its parameters, and a presence."""
    cases = []
    for name, owner in ALGORITHMS.shipped.items():
        known = parameters_of(owner)
        network = {key: value for key, value in NETWORKS.items() if key in known}
        noise = next((key for key in ("epsilon_message", "epsilon") if key in known), None)
        laws = LAWS if "mechanism" in known else (None,)
        for law in laws:
            for delta in (None,) if law is None else list_deltas(law):
                is_by_agent = noise is not None and isinstance(known[noise].kind, PerAgent)
                for epsilon in EPSILONS if is_by_agent else EPSILONS[:1]:
                    values = network | ({noise: epsilon} if noise else {})
                    values |= {"mechanism": law} if law not in (None, "laplace") else {}
                    values |= {"delta": delta} if delta is not None else {}
                    cases += [(name, values, presence) for presence in PRESENCES]
    return cases


def list_axes(values, presence):
    """Returns sweeps that hold a case: an axis each, with a neighbour that leaks otherwise."""
    axes = [{"presence": [presence, "absent:0.5"]}]
    for name in ("epsilon_message", "epsilon"):
        if name in values:
            axes.append({name: [5.0, values[name]]})
    if "delta" in values:
        axes.append({"delta": [values["delta"], 1e-6]})
        axes.append({"mechanism": ["laplace", values["mechanism"]]})
    return axes


def read_leaks(data):
    """Returns all that a result says of what one configuration leaks."""
    data = fmab.add_leaks(data)
    numbers = {name: float(data[name]) for name in costs.LEAKS}
    exposure = costs.read_exposure(data)
    ledger, _ = privacy.write_table(data)
    return json.dumps([numbers, exposure, ledger], sort_keys=True, default=str)


def read_row(data):
    """Returns all that tables say of one configuration."""
    (record,) = fmab.table(fmab.add_leaks(data)).to_dict("records")
    # What is set to nothing has a column only where it is swept.
    record = {name: value for name, value in record.items() if value != "none"}
    record = {n: float(x) if isinstance(x, int) else x for n, x in record.items()}
    return json.dumps([record, read_leaks(data)], sort_keys=True, default=str)


def write_words(values):
    """Returns parameters as options."""
    return [x for n, v in values.items() for x in (f"--{n.replace('_', '-')}", f"{v}")]


def hold_everywhere(case, compute, read, folder):
    """Compares what is read of a case with what is read elsewhere; returns how many there are."""
    name, values, presence = case
    owner = ALGORITHMS.shipped[name]
    problem = fmab.Problem.uniform(AGENTS, ARMS, presence=presence)
    options = {"horizon": HORIZON, "seeds": 2}
    alone = fmab.simulate(owner(**values), problem, **options)
    rows = {"alone": read(alone)}
    fmab.save(alone, folder / "alone.nc")
    rows["file"] = read(fmab.load(folder / "alone.nc"))
    document = study_file.build_document(json.loads(alone.attrs["study"]))
    text = study_file.format_document(document)
    rows["TOML"] = read(runner.run(study_file.build_study(tomllib.loads(text))).load())
    words = [*write_words(values), *([] if presence is None else ["--presence", presence])]
    words += ["--agents", f"{AGENTS}", "--arms", f"{ARMS}", "--horizon", f"{HORIZON}"]
    out = str(folder / "words")
    assert main(["run", name, *words, "--seeds", "2", "--no-figure", "--out", out]) == 0
    rows["words"] = read(fmab.load(f"{out}.nc"))
    for place, axis in enumerate(list_axes(values, presence)):
        ((swept, neighbours),) = axis.items()
        drawn = {"agents": AGENTS, "arms": ARMS, "presence": presence} | values | axis
        try:
            data = compute(owner, store=folder / f"{place}", **drawn, **options)
        except Refusal:  # the neighbour is none
            continue
        value = presence if swept == "presence" else values[swept]
        at = {swept: data[swept].values.tolist()[neighbours.index(value)]}
        rows[f"sweep of {swept}"] = read(data.sel(at))
        rows[f"leaks, then {swept}"] = read(fmab.add_leaks(data).sel(at))
        stored = fmab.open_sweep(folder / f"{place}", partial=True)
        rows[f"store of {swept}"] = read(stored.sel(at))
        if place < 2:  # a file takes half a second
            fmab.save(data.sel(at), folder / f"{place}.nc")
            rows[f"file of {swept}"] = read(fmab.load(folder / f"{place}.nc"))
    for where, row in rows.items():
        assert row == rows["alone"], (case, where)
    return len(rows)


def is_possible(case):
    """Tells whether an algorithm takes these parameters among such agents."""
    name, values, presence = case
    try:
        problem = fmab.Problem.uniform(AGENTS, ARMS, presence=presence)
        Study(ALGORITHMS.shipped[name](**values), problem, horizon=HORIZON, seeds=2).points  # noqa: B018
    except Refusal:
        return False
    return True


def draw_cases(number):
    """Returns some possible cases; half of them have noise without pure epsilon."""
    cases = list_cases()
    random.Random(5).shuffle(cases)
    halves = [case for case in cases if "delta" in case[1]], cases
    return [
        case for half in halves for case in itertools.islice(filter(is_possible, half), number // 2)
    ]


def test_some_leaks_are_the_same_everywhere(uncomputed, tmp_path):
    """Would catch the leak of a neighbouring cell, at its delta, or with its trust."""
    for place, case in enumerate(draw_cases(4)):
        folder = tmp_path / f"{place}"
        folder.mkdir()
        assert hold_everywhere(case, uncomputed, read_leaks, folder) >= 8


@pytest.mark.slow
def test_all_leaks_are_the_same_everywhere(uncomputed, tmp_path):
    """Would catch what a draw of some cases does not."""
    cases = [*filter(is_possible, list_cases())]
    assert len(cases) > 150 and {name for name, *_ in cases} == {*ALGORITHMS.shipped}
    for place, case in enumerate(cases):
        folder = tmp_path / f"{place}"
        folder.mkdir()
        hold_everywhere(case, uncomputed, read_leaks, folder)


@pytest.mark.parametrize(
    "case",
    [
        ("cdp", {"epsilon_message": 1.0, "mechanism": "gaussian", "delta": 1e-3}, None),
        ("kl_se", {"epsilon": "1x3,3x1"}, None),
        ("kl_se_graph", {"epsilon": 1.0, "graph": "ring"}, None),
    ],
    ids=lambda case: case[0],
)
def test_regret_and_spending_are_the_same_everywhere(case, tmp_path):
    """Would catch a row that has the regret, the links or the bits of another configuration."""

    def run(owner, *, store, **options):
        return fmab.sweep(owner, store=str(store), **options)

    assert hold_everywhere(case, run, read_row, tmp_path) >= 8
