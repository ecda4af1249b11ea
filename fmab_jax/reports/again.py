"""The command that makes results again: worked out from what they say of themselves, and checked.

A sweep's results hold their study, a run's its configuration. A file may say anything of itself, so
every value is typed before it is written. The text is then read back, as its reader is going to
type it, into a study, or into algorithm and problem: `checked` tells whether it came out the same.
"""

from __future__ import annotations

import ast
import json
import math
import os
import shlex
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import tomli_w
import xarray as xr

from fmab_jax.algorithms.base import named
from fmab_jax.core import keys
from fmab_jax.core.curves import time_grid
from fmab_jax.core.laws import law_of
from fmab_jax.core.problems import MAX_AGENTS, Problem
from fmab_jax.core.rewards import Law
from fmab_jax.errors import Refusal, count
from fmab_jax.parameters import UNSET, parameters_of
from fmab_jax.run.batches import MAX_HORIZON
from fmab_jax.run.outputs import chosen, of_study
from fmab_jax.run.outputs import stated as stated_outputs
from fmab_jax.sweeps.study import Drawn, Precision, state
from fmab_jax.sweeps.study_file import study_of

# Of a study, what is no parameter of an algorithm or a problem.
_SHARED = {
    *("axes", "algorithm", "problem", "horizon", "seeds", "root_seed", "times", "spacing"),
    *("sum_agents", "keep", "until", "outputs"),
}
# By the last word of their names.
_MAKERS: dict[str, Callable[..., Any]] = {
    **{"Problem": Problem, "uniform": Problem.uniform, "heterogeneous": Problem.heterogeneous}
}
_BREAK = " \\\n  "
# Times beyond that many are not written out.
_MOST_TIMES = 200


class Again(NamedTuple):
    """How to make results again.

    Attributes:
        kind: "shell", "toml" or "python"; "" where they do not say enough.
        text: What to type; for "toml" the study file's content.
        checked: Whether the text, read back, states the same configurations, seeds and slots.
        note: A sentence for people.
    """

    kind: str
    text: str
    checked: bool
    note: str


def again(data: xr.Dataset, path: str | None = None) -> Again:
    """Returns the command that makes results again, or a script where no command can.

    Args:
        data: The results.
        path: Where they were read from: a command then writes there.
    """
    try:
        if "study" in data.attrs:
            return _of_study(json.loads(data.attrs["study"]), data, path)
        if "config" in data.attrs:
            return _of_run(json.loads(data.attrs["config"]), data)
    except (Refusal, KeyError, TypeError, ValueError):
        pass  # Foreign algorithms, graphs and functions of one's own.
    note = "These results use code or data of your own that they do not hold."
    if "study" not in data.attrs and "config" not in data.attrs:
        note = "These results do not say how they were made."
    return Again("", "", False, note)


def described(data: xr.Dataset) -> dict[str, Any]:
    """Returns what results say of their problem, by the names of `Drawn`; {} where they do not."""
    if "study" in data.attrs:
        study = json.loads(data.attrs["study"])
        problem = study.get("problem")
        if problem == "Drawn":
            return {"drawn": True, **{name: study.get(name) for name in parameters_of(Drawn)}}
        return {"drawn": False, **(problem if isinstance(problem, dict) else {})}
    if "config" in data.attrs:
        problem = json.loads(data.attrs["config"])["problem"]
        return {"drawn": "means" not in problem and "probabilities" not in problem, **problem}
    return {}


def _of_study(study: Mapping[str, Any], data: xr.Dataset, path: str | None) -> Again:
    if study["problem"] != "Drawn":
        if (found := _of_means(study, path)) is not None:
            return found
        note = "The means came from a file or a function of your own, which results do not hold."
        return Again("", "", False, note)
    names = study["algorithm"]
    owners = [named(name) for name in (names if isinstance(names, list) else [names])]
    known = {**parameters_of(Drawn)}
    for owner in reversed(owners):
        known |= parameters_of(owner)
    order = [name for name in study["axes"] if name not in _SHARED]
    order += [name for name in study if name not in _SHARED and name not in order]
    values: dict[str, Any] = {}
    for name in order:
        value = study[name]
        if name == "rewards":
            value = [_law(v) for v in value] if isinstance(value, list) else _law(value)
        each = known[name]
        if name not in study["axes"] and each.suggested is UNSET and each.default is not UNSET:
            plain = each.kind.plain(each.check(each.default))
            if study[name] == plain and name not in ("agents", "arms"):
                continue
        values[name] = value
    shared = {name: study[name] for name in ("horizon", "seeds", "root_seed", "times", "spacing")}
    shared |= {name: study[name] for name in ("sum_agents", "keep")}
    shared["asked"] = [each.name for each in of_study(study.get("outputs", []))]
    until = study["until"]
    # Whatever is not a study of these types is refused here, before anything of it is written.
    state(names, None, **shared, until=None if until is None else Precision(**until), **values)
    plain_values = all(
        isinstance(item, (int, float, str, bool, type(None)))
        for value in values.values()
        for item in (value if isinstance(value, list) else [value])
    )
    if not plain_values:
        raise ValueError("a value that no command line can state")
    if len(owners) > 1 or not shared["sum_agents"] or (until and until["level"] != 0.95):
        text = _toml(study, values, set(parameters_of(Drawn)))
        out = f" --out {shlex.quote(path)}" if path and not path.endswith(".nc") else ""
        note = f"Save it as study.toml, then run: fmab sweep study.toml{out}"
        return Again("toml", text, _states(tomllib.loads(text), data), note)
    text = _command(study, values, path)
    return Again("shell", text, _states(_typed(text), data), "")


def _states(document: dict[str, Any], data: xr.Dataset) -> bool:
    """Tells whether a study that was read back is the one of the results."""
    return study_of(document).hash == data.attrs.get("study_hash")


def _typed(text: str) -> dict[str, Any]:
    """Returns the document that a command states: its words, as a shell takes them apart."""
    _, _, name, *words = shlex.split(text.replace(_BREAK, " "))
    document: dict[str, Any] = {"algorithm": name, "parameters": {}, "problem": {}}
    tables = {"problem": parameters_of(Drawn), "parameters": parameters_of(named(name))}
    options: dict[str, list[Any]] = {}
    given: list[Any] = []
    for word in words:
        if word.startswith("--"):
            given = options.setdefault(word[2:].replace("-", "_"), [])
        else:
            given.append(_value(word))
    options.pop("out", None)
    if "log_time" in options:
        document["spacing"] = "log" if not options.pop("log_time") else "linear"
    if "until" in options:
        document["until"] = {"relative": options.pop("until")[0], "level": 0.95}
        document["until"]["max_seeds"] = options.pop("max_seeds")[0]
    if "outputs" in options:
        document["outputs"] = options.pop("outputs")
    for option, values in options.items():
        table = next((document[each] for each in tables if option in tables[each]), document)
        table[option] = values if len(values) > 1 else values[0]
    return document


def _value(word: str) -> Any:
    """Reads a word of a command as `_word` writes it."""
    if word in ("true", "false"):
        return word == "true"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(word)
    return word


def _of_means(study: Mapping[str, Any], path: str | None) -> Again | None:
    """Returns the command of a study of fixed means, their file left open; None where none can."""
    name, problem = study["algorithm"], study["problem"]
    if not isinstance(problem, dict) or "means" not in problem or not isinstance(name, str):
        return None
    plain = {"law": "bernoulli"}
    if not study["sum_agents"] or study["until"] or problem.get("rewards", plain) != plain:
        return None
    own = parameters_of(named(name))
    values: dict[str, Any] = {"agents": problem["agents"]}
    for each in [n for n in study["axes"] if n in own] + sorted(own.keys() - {*study["axes"]}):
        known, value = own[each], study.get(each)
        default = None if known.default is UNSET else known.kind.plain(known.check(known.default))
        if each in study and (value != default or known.suggested is not UNSET):
            values[each] = value
    if {*study["axes"]} - {*own, "horizon"}:
        return None
    items = [i for v in values.values() for i in (v if isinstance(v, list) else [v])]
    if not all(isinstance(item, (int, float, str, bool, type(None))) for item in items):
        return None
    lines = _command(study, values, path).split(_BREAK)
    text = _BREAK.join([lines[0], "--means FILE.npz", *lines[1:]])
    note = "The means came from a file, which results do not hold: put its name for FILE.npz."
    return Again("shell", text, False, note)


def _law(described: Mapping[str, Any]) -> str:
    """Returns the text of a reward law."""
    law: Law = law_of(":".join(str(each) for each in described.values()), "rewards")
    if law.describe() != dict(described):
        raise ValueError("a law that no text states")
    return ":".join(str(each) for each in described.values())


def _command(study: Mapping[str, Any], values: Mapping[str, Any], path: str | None) -> str:
    folder = path is not None and not path.endswith(".nc")
    lines = [f"fmab {'sweep' if folder else 'run'} {study['algorithm']}"]

    def option(name: str, value: Any) -> None:
        texts = [_word(item) for item in (value if isinstance(value, list) else [value])]
        lines.append(f"--{name.replace('_', '-')} {shlex.join(texts)}")

    # Dimensions of the problem come first anyway; those of the algorithm in the order typed.
    for name, value in values.items():
        option(name, value)
    option("horizon", study["horizon"])
    option("seeds", study["seeds"])
    if study["times"] != 100:
        option("times", study["times"])
    lines += ["--log-time"] * (study["spacing"] == "log")
    if study["root_seed"]:
        option("root_seed", study["root_seed"])
    if study["keep"] != "curves":
        option("keep", study["keep"])
    if "outputs" in study:
        option("outputs", [each.name for each in of_study(study["outputs"])])
    if study["until"]:
        option("until", study["until"]["relative"])
        option("max_seeds", study["until"]["max_seeds"])
    if path is not None:
        option("out", path if folder else path.removesuffix(".nc"))
    return _BREAK.join(lines)


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _toml(study: Mapping[str, Any], values: Mapping[str, Any], problem: set[str]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(item) for item in value]
        return "none" if value is None else value

    shared = ("algorithm", "horizon", "seeds", "root_seed", "times", "spacing", "sum_agents")
    document = {name: plain(study[name]) for name in (*shared, "keep")}
    if "outputs" in study:
        document["outputs"] = [each.name for each in of_study(study["outputs"])]
    tables: dict[str, dict[str, Any]] = {"problem": {}, "parameters": {}}
    for name, value in values.items():
        tables["problem" if name in problem else "parameters"][name] = plain(value)
    if study["until"]:
        tables["until"] = dict(study["until"])
    return tomli_w.dumps(document | tables)


def _of_run(config: Mapping[str, Any], data: xr.Dataset) -> Again:
    """Writes a script for what `simulate` returned."""
    owner = named(config["algorithm"])
    given = {}
    for name, each in parameters_of(owner).items():
        value = config[name]
        default = each.default
        plain = None if default is UNSET else each.kind.plain(each.check(default))
        # Where a value must be given, None states "no noise"; elsewhere it is what is left out.
        if value != plain or (default is UNSET and each.suggested is not UNSET):
            given[name] = value
    try:
        owner(**given)
    except Refusal:
        # One of two that exclude each other, such as epsilon and epsilon_message.
        given = {name: value for name, value in given.items() if value is not None}
        owner(**given)
    horizon = count("horizon", config["horizon"], 1, MAX_HORIZON, "make them again")
    root_seed = keys.checked_seed("root_seed", config["root_seed"])
    home = owner.__module__.rpartition(".")
    imported = f"fmab.{home[2]}" if home[0] == "fmab_jax.algorithms" else owner.__name__
    lines = ["import fmab_jax as fmab", ""]
    if not imported.startswith("fmab."):
        lines.insert(0, f"from {owner.__module__} import {owner.__name__}")
    stated = ", ".join(f"{name}={value!r}" for name, value in given.items())
    lines += ["data = fmab.simulate(", f"    {imported}({stated}),"]
    lines += [f"    {_problem(config['problem'])},"]
    lines += [f"    horizon={horizon},", f"    seeds={_seeds(data)},"]
    times = _times(data, horizon)
    lines += [f"    {times}," * bool(times)] * bool(times)
    if root_seed:
        lines.append(f"    root_seed={root_seed},")
    if not config["sum_agents"]:
        lines.append("    sum_agents=False,")
    if "outputs" in config:
        lines.append(f"    outputs={[each.name for each in of_study(config['outputs'])]!r},")
    text = "\n".join([*lines, ")"])
    try:
        same = _says(text, owner, config, data)
    except (AttributeError, KeyError, TypeError, ValueError):
        same = False  # Means that are read from the file, or seeds too many to be written.
    return Again("python", text, same, "")


def _says(text: str, owner: Any, config: Mapping[str, Any], data: xr.Dataset) -> bool:
    """Tells whether a script, read as literals, states a run's configuration; nothing is run.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: If it holds more than literals.
    """
    *imports, last = ast.parse(text).body
    call: Any = last.value  # type: ignore[attr-defined]
    made, problem = call.args
    given = {each.arg: _literal(each.value) for each in call.keywords}
    algorithm = owner(**{each.arg: _literal(each.value) for each in made.keywords})
    words = {each.arg: _literal(each.value) for each in problem.keywords}
    stated: Any = _MAKERS[problem.func.attr](*map(_literal, problem.args), **words)
    seeds = given["seeds"]
    seeds = range(seeds) if isinstance(seeds, int) else seeds
    grid = time_grid(given["horizon"], given.get("times", 100), given.get("spacing", "linear"))
    # The page shows the attributes: they must be those of the configuration.
    leaks = algorithm.privacy(algorithm.exchange(stated.agents))
    shown = {"algorithm": algorithm.name, "title": algorithm.title or algorithm.name, **leaks}
    return (
        all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in imports)
        and all(_alike(data.attrs.get(name, value), value) for name, value in shown.items())
        and (ast.unparse(call.func), made.args) == ("fmab.simulate", [])
        and algorithm.plain() == {name: config[name] for name in parameters_of(owner)}
        and stated.describe() == config["problem"]
        and given["horizon"] == config["horizon"]
        and given.get("root_seed", 0) == config["root_seed"]
        and given.get("sum_agents", True) == config["sum_agents"]
        and stated_outputs(chosen(given.get("outputs", []))).get("outputs") == config.get("outputs")
        and np.array_equal(np.asarray(seeds), data.seed.values)
        and np.array_equal(grid, data.time.values)
    )


def _alike(shown: Any, value: Any) -> bool:
    """Tells whether an attribute says this, whose infinity is "none" or itself."""
    if isinstance(value, float) and math.isinf(value):
        return shown in ("none", value)
    return bool(shown == value)


def _literal(node: Any) -> Any:
    """Returns a literal, or a range of literals."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "range":
        return range(*map(ast.literal_eval, node.args))
    return ast.literal_eval(node)


def _problem(described: Mapping[str, Any]) -> str:
    """Writes a problem in Python."""
    law = law_of(":".join(str(each) for each in described["rewards"].values()), "rewards")
    text = ":".join(str(each) for each in described["rewards"].values())
    rewards = f", rewards={text!r}" * (text != "bernoulli")
    agents = count("agents", described["agents"], 1, MAX_AGENTS, "make them again")
    if "probabilities" in described:
        raise ValueError("ratings are not kept")
    if "means" in described:
        rows = np.asarray(described["means"])
        if rows.size > 60:
            return f'fmab.Problem(fmab.load("run.nc").means.values, agents={agents})'
        shared = f", agents={agents}" * (len(rows) == 1 and agents > 1)
        means = rows[0].tolist() if len(rows) == 1 else rows.tolist()
        Problem(means, agents if len(rows) == 1 else None, law)  # or it is refused
        return f"fmab.Problem({means}{shared}{rewards})"
    arms, spread, gap = (described[name] for name in ("arms", "spread", "instance_gap"))
    Problem.heterogeneous(agents, arms, spread, gap, rewards=law)  # or it is refused
    if not spread and gap is None:
        return f"fmab.Problem.uniform(agents={agents}, arms={arms}{rewards})"
    how = f", spread={spread!r}" + f", instance_gap={gap!r}" * (gap is not None)
    return f"fmab.Problem.heterogeneous(agents={agents}, arms={arms}{how}{rewards})"


def _seeds(data: xr.Dataset) -> str:
    seeds = data.seed.values
    first, last = int(seeds[0]), int(seeds[-1])
    if np.array_equal(seeds, np.arange(first, first + len(seeds))):
        return f"range({first}, {last + 1})" if first else str(len(seeds))
    return str(seeds.tolist()) if len(seeds) <= _MOST_TIMES else "..."


def _times(data: xr.Dataset, horizon: int) -> str | None:
    """Writes the recorded slots as `simulate` is told of them; None where they are too many."""
    slots = data.time.values
    for spacing in ("linear", "log"):
        for number in {100, len(slots), *range(len(slots), len(slots) + 30)}:
            grid = time_grid(horizon, number, spacing)
            if np.array_equal(grid, slots):
                told = f"times={number}, " * (number != 100)
                told += f'spacing="{spacing}"' * (spacing != "linear")
                return told.rstrip(", ")
    return f"times={slots.tolist()}" if len(slots) <= _MOST_TIMES else None


def where_from(path: str | os.PathLike[str]) -> str:
    """Returns a path as a command states it: what begins with a dash would be an option."""
    whole = os.path.normpath(os.fspath(path))
    return os.path.join(os.curdir, whole) if whole.startswith("-") else whole


def quoted(path: str) -> str:
    """Returns a path as a shell takes it."""
    return shlex.quote(path)
