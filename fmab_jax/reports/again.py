"""The command that makes results again: worked out from their study, and checked.

A file may say anything of itself, so a text is read back, as its reader is going to type it, into a
study, which refuses what is none: `checked` tells whether it is the same.
"""

from __future__ import annotations

import ast
import os
import shlex
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import tomli_w
import xarray as xr

from fmab_jax.algorithms.base import named
from fmab_jax.core.laws import law_of
from fmab_jax.core.problems import MAX_AGENTS, Problem
from fmab_jax.errors import Refusal, count
from fmab_jax.parameters import UNSET, Parameter, parameters_of
from fmab_jax.run.attributes import said
from fmab_jax.run.outputs import of_study
from fmab_jax.sweeps.grid import SHARED, attributes_of
from fmab_jax.sweeps.makers import Drawn
from fmab_jax.sweeps.study import Study, state
from fmab_jax.sweeps.study_file import study_of

# Of a study, what is no parameter of an algorithm or a problem.
_SHARED = {
    *("axes", "algorithm", "problem", "horizon", "seeds", "listed", "root_seed", "times"),
    *("spacing", "sum_agents", "keep", "until", "outputs"),
}
_BREAK = " \\\n  "
# More are not written out.
_MOST_SEEDS = 200


class Again(NamedTuple):
    """How to make results again."""

    kind: str  # "shell", "toml" or "python"; "" where they do not say enough
    text: str  # what to type; for "toml" the study file's content
    checked: bool  # whether the text, read back, states the study that the results are from
    note: str  # a sentence for people
    whole: bool = True  # whether they hold all seeds and slots of that study, and no others


def again(data: xr.Dataset, path: str | None = None) -> Again:
    """Returns the command that makes results again, or a script where no command can.

    ``path`` is where they were read from: a command then writes there.
    """
    study = said(data, "study")
    try:
        if study:
            return _of_study(study, data, path)
    except (Refusal, AttributeError, KeyError, TypeError, ValueError):
        pass  # Foreign algorithms, graphs and functions of one's own.
    note = "These results use code or data of your own that they do not hold."
    return Again("", "", False, note if study else "These results do not say how they were made.")


def described(data: xr.Dataset) -> dict[str, Any]:
    """Returns what results say of their problem, by the names of `Drawn`; {} where they do not."""
    study = said(data, "study")
    problem = study.get("problem")
    if problem == "Drawn":
        return {"drawn": True, **{name: study.get(name) for name in parameters_of(Drawn)}}
    return {"drawn": False, **(problem if isinstance(problem, dict) else {})} if study else {}


def _of_study(study: Mapping[str, Any], data: xr.Dataset, path: str | None) -> Again:
    one, problem, until = not study["axes"], study["problem"], study["until"]
    # A command takes no single seed: it has no interval.
    if one and ("means" in data or "listed" in study or study["seeds"] < 2):
        return _script(study, data)
    if "listed" in study:
        note = "Their seeds were listed, which no command states: pass data.seed to sweep."
        return Again("", "", False, note)
    drawn = problem == "Drawn"
    note = "The means came from a file or a function of your own, which results do not hold."
    if not drawn and not _of_a_file(study):
        return Again("", "", False, note)
    names = study["algorithm"]
    owners = [named(name) for name in (names if isinstance(names, list) else [names])]
    known = dict(parameters_of(Drawn)) if drawn else {}
    for owner in reversed(owners):
        known |= parameters_of(owner)
    values: dict[str, Any] = {} if drawn else {"agents": problem["agents"]}
    for name in dict.fromkeys([*study["axes"], *study]):
        if name in _SHARED:
            continue
        value, each = study[name], known[name]
        asked = name in (*study["axes"], "agents", "arms") or each.suggested is not UNSET
        if asked or not _is_default(each, value):
            values[name] = value
    if "rewards" in values:
        laws = values["rewards"]
        values["rewards"] = [*map(_law, laws)] if isinstance(laws, list) else _law(laws)
    items = (i for v in values.values() for i in (v if isinstance(v, list) else [v]))
    if not all(isinstance(item, (int, float, str, bool, type(None))) for item in items):
        if one and drawn:
            return _script(study, data)
        if not drawn:
            return Again("", "", False, note)
        raise ValueError("a value that no command line can state")
    # On the command line one number is how many slots.
    slot = isinstance(study["times"], list) and len(study["times"]) == 1
    out = f" --out {shlex.quote(path)}" if path and not path.endswith(".nc") else ""
    saved = f"Save it as study.toml, then run: fmab sweep study.toml{out}"
    if not drawn:
        note = "The means came from a file, which results do not hold: put its name for FILE.npz."
        if slot:
            text = _toml(study, {"means": "FILE.npz", **values})
            return Again("toml", text, False, f"{note} {saved}")
        command, options = _command(study, values, path).split(_BREAK, 1)
        return Again("shell", _BREAK.join([command, "--means FILE.npz", options]), False, note)
    if len(owners) > 1 or not study["sum_agents"] or slot or (until and until["level"] != 0.95):
        text = _toml(study, values)
        return _judged("toml", text, study_of(tomllib.loads(text)), data, saved)
    text = _command(study, values, path)
    return _judged("shell", text, study_of(_typed(text)), data)


def _of_a_file(study: Mapping[str, Any]) -> bool:
    """Tells whether a command with a file of fixed means could state a study."""
    problem, plain = study["problem"], {"law": "bernoulli"}
    if not isinstance(problem, dict) or "means" not in problem or study["until"]:
        return False
    single = isinstance(study["algorithm"], str) and study["sum_agents"]
    return single and problem.get("rewards", plain) == plain


def _is_default(each: Parameter, value: Any) -> bool:
    return each.default is not UNSET and value == each.kind.plain(each.check(each.default))


def _judged(kind: str, text: str, study: Study, data: xr.Dataset, note: str = "") -> Again:
    """Returns a text with what the study that it states has to do with the results."""
    return Again(kind, text, _same(study, data), note, _whole(study, data))


def _whole(study: Study, data: xr.Dataset) -> bool:
    """Tells whether results hold all seeds and slots of a study, and no others."""
    if "seed" in data.coords:
        seeds = np.arange(study.seeds) if study.listed is None else np.asarray(study.listed)
        if not np.array_equal(data.seed, seeds):
            return False
    if "time" not in data.coords:
        return True
    grids = [point.config.grid[: point.config.wanted] for point in study.points]
    if "slot" in data.coords:  # each configuration has slots of its own
        return data.sizes["time"] == max(map(len, grids))
    return np.array_equal(data.time, grids[0])


def _same(study: Study, data: xr.Dataset) -> bool:
    """Tells whether a study is the one of some results, and they show what it says."""
    shown = attributes_of(study)
    agree = (data.attrs.get(name, shown.get(name)) == shown.get(name) for name in SHARED)
    return study.hash == data.attrs.get("study_hash") and all(agree)


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
    if options.pop("log_time", None) is not None:
        document["spacing"] = "log"
    if "until" in options:
        (relative,), (most,) = options.pop("until"), options.pop("max_seeds")
        document["until"] = {"relative": relative, "level": 0.95, "max_seeds": most}
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


def _law(described: Mapping[str, Any]) -> str:
    """Returns the text of a reward law."""
    text = ":".join(map(str, described.values()))
    if law_of(text, "rewards").describe() != dict(described):
        raise ValueError("a law that no text states")
    return text


def _command(study: Mapping[str, Any], values: Mapping[str, Any], path: str | None) -> str:
    folder = path is not None and not path.endswith(".nc")
    until = study["until"] or {}
    # Dimensions of the problem come first anyway; those of the algorithm in the order typed.
    options = {
        **{**values, "horizon": study["horizon"], "seeds": study["seeds"]},
        "times": study["times"],
        "log_time": [] if study["spacing"] == "log" else None,
        "root_seed": study["root_seed"],
        "keep": study["keep"],
        "outputs": _outputs(study),
        "until": until.get("relative"),
        "max_seeds": until.get("max_seeds"),
        "out": path.removesuffix(".nc") if path else None,
    }
    usual = {"times": 100, "root_seed": 0, "keep": "curves", "outputs": []}
    usual |= dict.fromkeys(("log_time", "until", "max_seeds", "out"))
    lines = [f"fmab {'sweep' if folder else 'run'} {study['algorithm']}"]
    for name, value in options.items():
        if name not in usual or value != usual[name]:
            texts = map(_word, value if isinstance(value, list) else [value])
            lines.append(shlex.join([f"--{name.replace('_', '-')}", *texts]))
    return _BREAK.join(lines)


def _outputs(study: Mapping[str, Any]) -> list[str]:
    return [each.name for each in of_study(study.get("outputs", []))]


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _toml(study: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(item) for item in value]
        return "none" if value is None else value

    shared = ("algorithm", "horizon", "seeds", "root_seed", "times", "spacing", "sum_agents")
    document = {name: plain(study[name]) for name in (*shared, "keep")}
    if "outputs" in study:
        document["outputs"] = _outputs(study)
    document |= {"problem": {}, "parameters": {}}
    for name, value in values.items():
        table = "problem" if name in (*parameters_of(Drawn), "means") else "parameters"
        document[table][name] = plain(value)
    if study["until"]:
        document["until"] = study["until"]
    return tomli_w.dumps(document)


def _script(study: Mapping[str, Any], data: xr.Dataset) -> Again:
    """Writes a script for one configuration that no command states, such as one of listed seeds."""
    owner = named(study["algorithm"])
    given = {
        name: study[name]
        for name, each in parameters_of(owner).items()
        if name in study and not _is_default(each, study[name])
    }
    usual = {"times": 100, "spacing": "linear", "root_seed": 0, "sum_agents": True}
    more = {name: study[name] for name, value in usual.items() if study[name] != value}
    if "outputs" in study:
        more["outputs"] = _outputs(study)
    problem, horizon = _problem_of(study, data), study["horizon"]
    # Whatever is not a study of these types is refused here, before anything of it is written.
    _ = state(owner(**given), problem, horizon=horizon, seeds=1, **more).points
    home = owner.__module__.rpartition(".")
    imported = f"fmab.{home[2]}" if home[0] == "fmab_jax.algorithms" else owner.__name__
    lines = ["import fmab_jax as fmab", ""]
    if not imported.startswith("fmab."):
        lines.insert(0, f"from {owner.__module__} import {owner.__name__}")
    words = ", ".join(f"{name}={value!r}" for name, value in given.items())
    lines += ["data = fmab.simulate(", f"    {imported}({words}),", f"    {_problem(problem)},"]
    lines += [f"    horizon={horizon!r},", f"    seeds={_seeds(data)},"]
    lines += [f"    {name}={value!r}," for name, value in more.items()]
    text = "\n".join([*lines, ")"])
    try:
        return _judged("python", text, _read_back(text, owner), data)
    except (AttributeError, KeyError, TypeError, ValueError):
        # Means that are read from the file, or seeds too many to be written.
        return Again("python", text, False, "")


def _read_back(text: str, owner: Any) -> Study:
    """Returns the study that a script states; it is read as literals, not run."""
    call: Any = ast.parse(text).body[-1].value  # type: ignore[attr-defined]
    algorithm, problem = call.args

    def words(node: Any) -> dict[str, Any]:
        return {each.arg: _literal(each.value) for each in node.keywords}

    maker = problem.func.attr
    make: Any = Problem if maker == "Problem" else getattr(Problem, maker)
    made = make(*map(_literal, problem.args), **words(problem))
    return state(owner(**words(algorithm)), made, **words(call))


def _literal(node: Any) -> Any:
    """Returns a literal, or a range of literals."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "range":
        return range(*map(ast.literal_eval, node.args))
    return ast.literal_eval(node)


def _problem_of(study: Mapping[str, Any], data: xr.Dataset) -> Problem:
    """Returns the problem of one configuration: of means that come along, or that seeds draw."""
    about = study if study["problem"] == "Drawn" else study["problem"]
    law = _law(about["rewards"])
    if "probabilities" in about or study.get("fixed_instance") is not None:
        raise ValueError("ratings are not kept, nor does simulate draw for a seed")
    agents = count("agents", about["agents"], 1, MAX_AGENTS, "make them again")
    if "means" in data:
        rows = data.means.values
        return Problem(rows[0] if len(rows) == 1 else rows, agents, law)
    size = agents, about["arms"], about["spread"], about["instance_gap"]
    return Problem.heterogeneous(*size, rewards=law)


def _problem(made: Problem) -> str:
    """Writes a problem in Python."""
    law = _law(made.rewards.describe())
    rewards = f", rewards={law!r}" * (law != "bernoulli")
    if made.means is not None:
        rows = np.asarray(made.means)
        if rows.size > 60:
            row = "[0]" * (len(rows) == 1)
            from_file = f'fmab.load("run.nc").means.values{row}'
            return f"fmab.Problem({from_file}, agents={made.agents}{rewards})"
        shared = f", agents={made.agents}" * (len(rows) == 1 and made.agents > 1)
        return f"fmab.Problem({(rows[0] if len(rows) == 1 else rows).tolist()}{shared}{rewards})"
    size, gap = f"agents={made.agents}, arms={made.arms}", made.instance_gap
    if not made.spread and gap is None:
        return f"fmab.Problem.uniform({size}{rewards})"
    how = f", spread={made.spread!r}" + f", instance_gap={gap!r}" * (gap is not None)
    return f"fmab.Problem.heterogeneous({size}{how}{rewards})"


def _seeds(data: xr.Dataset) -> str:
    seeds = data.seed.values
    first, last = int(seeds[0]), int(seeds[-1])
    if np.array_equal(seeds, np.arange(first, first + len(seeds))):
        return f"range({first}, {last + 1})" if first else str(len(seeds))
    return str(seeds.tolist()) if len(seeds) <= _MOST_SEEDS else "..."


def where_from(path: str | os.PathLike[str]) -> str:
    """Returns a path as a command states it: what begins with a dash would be an option."""
    whole = os.path.normpath(os.fspath(path))
    return os.path.join(os.curdir, whole) if whole.startswith("-") else whole
