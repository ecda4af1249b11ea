"""What comes out of a run, and how an output is found.

An output is made, on the host, of what trials have recorded: fields of an `Outcome`, and gauges,
which the loops add up only where an output needs them. A file of this folder that defines an
`Output` adds it; one of the user's own is passed to `simulate` or `sweep` as it is.
"""

from __future__ import annotations

import functools
import importlib
import math
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import jax
import numpy as np

from fmab_jax.core.outputs import OF_RESULTS, Gauge, Output, Record, Reduce
from fmab_jax.core.plugins import code_digest, forget_plugin, plugin_modules
from fmab_jax.core.scope import own_settings
from fmab_jax.errors import PlainText, Refusal, did_you_mean, refuse
from fmab_jax.run import contract, schema
from fmab_jax.run.outputs.usual import USUAL

# Relative to a seed's largest value, or to 1.
_ROUNDING = 1e-9
_NAME_WANTED = "a short plain name that no other variable has, nor a column of a table"
# How tables and summaries call what they make of a variable.
_ENDINGS = ("lower", "upper", "mean", "variance", "covariance", "quantile", "histogram")


def derive_names(names: Iterable[str]) -> set[str]:
    """Returns the names of what tables and summaries make of some variables."""
    return {f"{name}_{ending}" for name in names for ending in _ENDINGS}


RESULT_NAMES: frozenset[str] = frozenset(
    {
        *(*OF_RESULTS, *(each.name for each in USUAL)),
        *("row", "seeds", "means", "slot", "side", "priced", "counts", "undecided", "cost"),
        *("leak_epsilon", "leak_view", "level", "lower", "upper", "mean", "relative_width"),
        *("bin_low", "bin_high", "rounds_histogram", "arm_at_T", "arm_at_T_seeds"),
        *derive_names(("cost", *(each.name for each in USUAL))),
    }
)
"""Names of dimensions, variables and columns of results and of tables of them; besides, meters
have columns that begin with "links_"."""
# What columns of tables, parameters and records are called; an axis may have these names.
_TAKEN = {
    *("algorithm", "problem", "leak", "rounds", "interval", "percent", "lost", "worse", "arm"),
    *("epsilon", "epsilon_message", "agents", "arms", "horizon", "reporting", "wait", "title"),
    *schema.FIELDS,
}


def further() -> dict[str, Output]:
    """Returns the outputs that are made where they are asked for, by name.

    They are this folder's and those of plug-ins that are loaded.

    Raises:
        ValueError: If a plug-in takes the name of another output.
    """
    outputs = dict(_shipped())
    names = {*outputs, *(output.name for output in USUAL)}
    for module in plugin_modules():
        for output in _defined_in(module):
            if output not in _shipped().values() and output.name in names:
                forget_plugin(module)
                refuse("plugin", output.name, "the name of no other output", "rename it")
            outputs[output.name] = output
    return outputs


def _defined_in(module: ModuleType) -> list[Output]:
    """Returns the outputs that a module has, but for the usual ones."""
    return [x for x in vars(module).values() if isinstance(x, Output) and x not in USUAL]


@functools.cache
def _shipped() -> dict[str, Output]:
    names = sorted(file.name for file in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return {output.name: output for module in modules for output in _defined_in(module)}


def chosen(asked: Any) -> tuple[Output, ...]:
    """Returns what is asked for besides the usual outputs, by name or as it is.

    Raises:
        ValueError: If a name is unknown or asked for twice, or an output is not made as it has to.
    """
    remedy = "such as outputs=['pulls']; fmab outputs lists them"
    if isinstance(asked, str) or not isinstance(asked, (list, tuple)):
        refuse("outputs", asked, "a list of outputs", remedy)
    outputs: list[Output] = []
    taken, known, axes = RESULT_NAMES | _TAKEN, further(), dict[str, Any]()
    for item in asked:
        output = known.get(item, item) if isinstance(item, str) else item
        if isinstance(output, str):
            choice = ", ".join(known)
            refuse("outputs", output, f"among {choice}", did_you_mean(output, known, remedy))
        if not isinstance(output, Output):
            refuse("outputs", output, "names, or an fmab_jax.Output of one's own", remedy)
        if output in outputs:
            refuse("outputs", output.name, "named once", "drop one of them")
        name, names = output.name, {output.name, *derive_names([output.name])}
        other = _shipped().get(name, output) is not output
        if other or names & taken or name in axes or name.startswith("links_"):
            refuse("Output.name", name, _NAME_WANTED, "rename it")
        if "meter" in output.dims:
            refuse("Output.dims", output.dims, "without the meter", "drop it")
        if np.dtype(output.dtype) != np.float64:
            refuse("Output.dtype", str(output.dtype), "float64", "leave it out")
        outputs.append(output)
        taken |= names
        for axis, values in output.over if isinstance(output, Reduce) else ():
            if axis in taken or axes.setdefault(axis, values) != values:
                refuse("Reduce.over", axis, _NAME_WANTED, "rename it")
    gauges = [gauge.name for gauge in gauges_of(outputs)]
    for name in gauges:
        if name in schema.FIELDS or gauges.count(name) > 1:
            refuse("Gauge.name", name, "a short plain name that nothing else has", "rename it")
    # In whatever order they are asked for, the study is the same.
    return tuple(sorted(outputs, key=lambda output: output.name))


def gauges_of(outputs: Sequence[Output]) -> tuple[Gauge, ...]:
    """Returns what has to be added up for some outputs, each gauge once."""
    return tuple(dict.fromkeys(gauge for each in outputs for gauge in each.gauges))


def gauging(trial: Any, outputs: Sequence[Output], title: str) -> Any:
    """Returns a trial that adds up what some outputs need.

    Raises:
        ValueError: If the algorithm's loop cannot.
    """
    gauges = gauges_of(outputs)
    if not gauges:
        return trial
    if not callable(getattr(trial, "gauging", None)):
        needy = next(each.name for each in outputs if each.gauges)
        refuse("outputs", needy, f"left out with {title}", "its loop adds nothing up for outputs")
    for each in outputs:
        try:
            trial.gauging(each.gauges)
        except Refusal as error:
            # What was asked for is the output, not what it needs.
            raise Refusal("outputs", each.name, error.allowed, error.remedy) from None
    return trial.gauging(gauges)


def described(output: Output) -> str:
    """Returns what tells an output from others: its name, and its source if it is one's own."""
    if output is _shipped().get(output.name):
        return output.name
    functions: list[Callable[..., Any]] = [
        output.of,
        *(x for each in output.gauges for x in each if callable(x)),
    ]
    about: tuple[Any, ...] = output.name, output.label, output.units, output.dims
    if isinstance(output, Reduce):
        functions += [output.init, output.add, output.merge, output.finish]
        about = *about, output.over
    gauges = [(each.name, each.dims) for each in output.gauges]
    return f"{output.name} {code_digest(repr((about, gauges)), *functions)}"


def stated(outputs: Sequence[Output]) -> dict[str, list[str]]:
    """Returns what a study says of them; nothing where none is asked for."""
    return {"outputs": [described(each) for each in outputs]} if outputs else {}


def of_study(said: Sequence[str]) -> tuple[Output, ...]:
    """Returns the outputs that a study states.

    Raises:
        ValueError: If one is of a plug-in that is not loaded, or says something else now.
    """
    known = {described(each): each for each in further().values()}
    for each in said:
        if each not in known:
            remedy = "load the plug-in that defines it, as it was"
            refuse("outputs", each.partition(" ")[0], "known here", remedy)
    return tuple(known[each] for each in said)


def is_shipped(output: Output) -> bool:
    """Tells whether an output is this package's; by name, since processes have their own."""
    return output.name in _shipped() or output.name in {each.name for each in USUAL}


def reduce_seeds(
    output: Reduce, fields: Mapping[str, Any], facts: Mapping[str, Any]
) -> list[np.ndarray]:
    """Returns the arrays of a reduction's state after the seeds of one configuration.

    Args:
        output: Which.
        fields: What the seeds have recorded, by name, on the host or on a device.
        facts: The attributes of their `Record`.

    Raises:
        ValueError: If it fails, or its state changes shape or type.
    """
    links = tuple(facts["links"].tolist())
    numbers = tuple(sorted((name, x) for name, x in facts.items() if name != "links"))
    before = output.leaves
    with contract.asking(output), own_settings():
        after = _fold(output, numbers, links)(output.state(before), dict(fields))
        found = [np.asarray(x) for x in jax.tree.leaves(after)]
    shapes = [[(x.shape, x.dtype.kind) for x in leaves] for leaves in (found, before)]
    if shapes[0] != shapes[1]:
        told = PlainText(f"arrays {[x.shape for x in found]}")
        refuse(f"{output.name}.add", told, f"as init: {[x.shape for x in before]}", "mend it")
    return found


@functools.lru_cache(maxsize=64)
def _fold(output: Reduce, numbers: tuple[Any, ...], links: tuple[int, ...]) -> Any:
    facts = {**dict(numbers), "links": np.array(links, np.int64)}

    def fold(state: Any, fields: Mapping[str, Any]) -> Any:
        return output.add(state, output.of(Record(fields.__getitem__, facts)))

    return jax.jit(fold)


def finish_reduction(output: Reduce, leaves: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the result of a reduction's state.

    Raises:
        ValueError: If it fails, or is not over its dimensions.
    """
    wanted = tuple(len(values) for _, values in output.over)
    with contract.asking(output):
        found = np.asarray(output.finish(output.state(leaves)), np.float64)
    if found.shape != wanted:
        told = PlainText(f"an array {found.shape}")
        refuse(f"{output.name}.finish", told, f"an array {wanted}", "mend it, or `over`")
    return found


def made(
    output: Output,
    arrays: Callable[[str], np.ndarray],
    facts: Mapping[str, Any],
    size: Callable[[str], int],
    seeds: int,
) -> np.ndarray:
    """Returns an output of what is recorded.

    A plug-in sees arrays that it cannot change, and is held to what it promises: real numbers of
    its shape, which of a seed are the same whatever seeds are beside it.

    Args:
        output: Which.
        arrays: Returns what some seeds have recorded, by name.
        facts: The attributes of their `Record`.
        size: Returns the length of a dimension.
        seeds: How many there are, at least 1.

    Raises:
        ValueError: If it breaks a promise, fails, or asks for what is not recorded.
    """
    if is_shipped(output):
        usual = np.asarray(output.of(Record(arrays, facts, output.gauges)))
        # What is asked for is kept as real numbers, which have a NaN.
        return usual.astype(np.float64, copy=False) if output.name in _shipped() else usual
    sizes, field = tuple(map(size, output.dims)), f"{output.name}.of"
    facts = {**facts, "links": _lock(facts["links"])}

    @functools.cache
    def fetch(name: str) -> np.ndarray:
        return _lock(arrays(name))

    def compute(rows: Any, number: int) -> np.ndarray:
        with contract.asking(output):
            result = output.of(Record(lambda name: fetch(name)[rows], facts, output.gauges))
            values = np.asarray(result)
        shape = number, *sizes
        if values.shape != shape:
            allowed = f"[{', '.join(('seed', *output.dims))}], here {shape}"
            refuse(field, PlainText(f"an array {values.shape}"), allowed, "mend it")
        if values.dtype.kind not in "biuf" or np.ma.is_masked(result):
            kind = "masked " * np.ma.is_masked(result) + f"values of type {values.dtype}"
            refuse(field, PlainText(kind), "real numbers; NaN for none", "mend it")
        return values.astype(np.float64, copy=False)

    values = compute(slice(None), seeds)
    width = math.prod(sizes)
    # An output that compares seeds shows it at the first, the last and the extreme ones.
    extremes = (int(values.argmin()) // width, int(values.argmax()) // width) if width else ()
    for seed in {0, seeds - 1, *extremes}:
        # Twice, so that an array of one row is not taken for one of all seeds.
        pair = compute([seed, seed], 2)
        if not _is_close(pair, values[seed : seed + 1]):
            allowed = "the same for a seed, whatever seeds are beside it"
            remedy = f"compare seeds in the result: data.{output.name} - data.{output.name}.mean()"
            refuse(field, PlainText("another value for a seed by itself"), allowed, remedy)
    return values


def _lock(values: np.ndarray) -> np.ndarray:
    """Returns a view that cannot be changed in place."""
    view = values.view()
    view.flags.writeable = False
    return view


def _is_close(one: np.ndarray, other: np.ndarray) -> bool:
    """Tells whether values are equal up to rounding, which may depend on the size of an array."""
    finite = np.abs(other, where=np.isfinite(other), out=np.zeros_like(other))
    spare = _ROUNDING * max(1.0, float(finite.max(initial=0.0)))
    return bool(np.allclose(one, other, rtol=_ROUNDING, atol=spare, equal_nan=True))
