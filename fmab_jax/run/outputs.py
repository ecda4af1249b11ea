"""The outputs of a run: requests for them, their identity in a study, and their values.

An output is computed on the host from the records of trials: fields of an `Outcome`, and
accumulators, which the loops compute only for an output that needs them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from fmab_jax.errors import PlainText, Refusal, did_you_mean, refuse
from fmab_jax.parameters import VIEWS
from fmab_jax.parts.outputs import (
    AGENTS_DIFFER,
    OF_RESULTS,
    OUTPUTS,
    STANDARD,
    Accumulator,
    Output,
    Record,
    Reduce,
)
from fmab_jax.parts.plugins import code_digest
from fmab_jax.parts.trials import Trial
from fmab_jax.records.problem import Problem
from fmab_jax.run import promises, schema
from fmab_jax.run.reductions import Facts, check_initial_state, find_close, read_numbers

_NAME_WANTED = "a short plain name that no other variable has, nor a column of a table"
# Values of each of more agents would be most of a result, and come on request.
_MOST_AGENTS = 100
# Suffixes of variables that tables and summaries derive.
_ENDINGS = ("lower", "upper", "mean", "variance", "covariance", "quantile", "histogram")


def derive_names(names: Iterable[str]) -> set[str]:
    """Returns the names that tables and summaries derive from variables."""
    return {f"{name}_{ending}" for name in names for ending in _ENDINGS}


RESULT_NAMES: frozenset[str] = frozenset(
    {
        *(*OF_RESULTS, *(output.name for output in STANDARD)),
        *("row", "seeds", "means", "slot", "side", "priced", "counts", "undecided", "cost"),
        *("leak_epsilon", "leak_view", "level", "lower", "upper", "mean", "relative_width"),
        *("ledger", *(f"leak_{view}{end}" for view in VIEWS for end in ("", "_delta"))),
        *("bin_low", "bin_high", "rounds_histogram", "arm_at_T", "arm_at_T_seeds"),
        *derive_names(("cost", *(output.name for output in STANDARD))),
    }
)
"""Names of dimensions, variables and columns of results and their tables. Columns of meters also
begin with "links_"."""
AGENT_NAMES = {output.name for output in AGENTS_DIFFER}
AGENT_NAMES |= derive_names(AGENT_NAMES)
"""Names of variables and columns of results in which agents differ."""
# Names of columns, parameters and records; an axis may have them.
_RESERVED_NAMES = {
    *("algorithm", "problem", "leak", "rounds", "interval", "percent", "lost", "worse", "arm"),
    *("epsilon", "epsilon_message", "agents", "arms", "horizon", "reporting", "wait", "title"),
    *("numbers", "numbers_p95", "numbers_max", "bits", "bits_p95", "bits_max", "number_bits"),
    *("numbers_sent_p95", "numbers_sent_max", "counted"),
    *schema.FIELDS,
}


def resolve(requests: object) -> tuple[Output, ...]:
    """Returns requested outputs, given by name or as `Output`, in the order of their names.

    Raises:
        ValueError: If a name is unknown or occurs twice, or an output is invalid.
    """
    remedy = "such as outputs=['pulls']; fmab list outputs shows them"
    if not isinstance(requests, (list, tuple)):
        refuse("outputs", requests, "a list of outputs", remedy)
    outputs: list[Output] = []
    available = OUTPUTS.by_name()
    for item in requests:
        output = available.get(item, item) if isinstance(item, str) else item
        if isinstance(output, str):
            names = ", ".join(available)
            refuse("outputs", output, f"among {names}", did_you_mean(output, available, remedy))
        if not isinstance(output, Output):
            refuse("outputs", output, "names, or an fmab_jax.Output of one's own", remedy)
        if output in outputs:
            refuse("outputs", output.name, "named once", "drop one of them")
        if "meter" in output.dims:
            refuse("Output.dims", output.dims, "without the meter", "drop it")
        if np.dtype(output.dtype) != np.float64:
            refuse("Output.dtype", str(output.dtype), "float64", "leave it out")
        if isinstance(output, Reduce):
            check_initial_state(output)
        outputs.append(output)
    _check_names(outputs)
    # Sorted, so that the order of requests does not change the study.
    return tuple(sorted(outputs, key=lambda output: output.name))


def add_defaults(
    requests: Sequence[Output], pairs: Sequence[tuple[Trial, Problem]]
) -> tuple[Output, ...]:
    """Returns requested outputs and those by default, in the order of their names.

    Args:
        requests: The outputs that `resolve` returned.
        pairs: Trial and problem of all configurations of a study.
    """
    differ = any(not problem.homogeneous for _, problem in pairs)
    are_few = all(problem.agents <= _MOST_AGENTS for _, problem in pairs)
    if not (differ and all(trial.accumulates for trial, _ in pairs)):
        return tuple(requests)
    defaults = [output for output in AGENTS_DIFFER if are_few or "agent" not in output.dims]
    outputs = {output.name: output for output in (*requests, *defaults)}
    return tuple(outputs[name] for name in sorted(outputs))


def _check_names(outputs: Sequence[Output]) -> None:
    """Refuses outputs, axes and accumulators that share a name, or have one of a result."""
    taken = set(RESULT_NAMES | _RESERVED_NAMES)
    for output in outputs:
        name, names = output.name, {output.name, *derive_names([output.name])}
        is_foreign = OUTPUTS.shipped.get(name, output) is not output
        if is_foreign or names & taken or name.startswith("links_"):
            refuse("Output.name", name, _NAME_WANTED, "rename it")
        taken |= names
    axes: dict[str, object] = {}
    for output in outputs:
        for axis, values in output.over if isinstance(output, Reduce) else ():
            if axis in taken or axes.setdefault(axis, values) != values:
                refuse("Reduce.over", axis, _NAME_WANTED, "rename it")
    # Those that come by default are computed beside any other.
    shipped = {accumulator.name: accumulator for accumulator in collect_accumulators(AGENTS_DIFFER)}
    for accumulator in collect_accumulators(outputs):
        if shipped.get(accumulator.name, accumulator) != accumulator:
            refuse("Accumulator.name", accumulator.name, _NAME_WANTED, "rename it")
    accumulators = [accumulator.name for accumulator in collect_accumulators(outputs)]
    for name in accumulators:
        if name in schema.FIELDS or accumulators.count(name) > 1:
            allowed = "a short plain name that nothing else has"
            refuse("Accumulator.name", name, allowed, "rename it")


def collect_accumulators(outputs: Sequence[Output]) -> tuple[Accumulator, ...]:
    """Returns the distinct accumulators of outputs."""
    return tuple(
        dict.fromkeys(accumulator for output in outputs for accumulator in output.accumulators)
    )


def attach_accumulators(trial: Trial, outputs: Sequence[Output], title: str) -> Trial:
    """Returns a trial that computes the accumulators of outputs.

    Raises:
        ValueError: If the algorithm's loop cannot compute them.
    """
    accumulators = collect_accumulators(outputs)
    if not accumulators:
        return trial
    if not trial.accumulates:
        needy = next(output.name for output in outputs if output.accumulators)
        refuse("outputs", needy, f"left out with {title}", "its loop adds nothing up for outputs")
    for output in outputs:
        try:
            trial.with_accumulators(output.accumulators)
        except Refusal as error:
            # Users know the output, not its accumulators.
            raise Refusal("outputs", output.name, error.allowed, error.remedy) from None
    return trial.with_accumulators(accumulators)


def identity(output: Output) -> str:
    """Returns an output's identity: its name, and a digest of its source if it is not shipped."""
    if output is OUTPUTS.shipped.get(output.name):
        return output.name
    functions: list[Callable[..., object]] = [
        output.of,
        *(x for part in output.accumulators for x in part if callable(x)),
    ]
    facts: tuple[object, ...] = output.name, output.label, output.units, output.dims
    if isinstance(output, Reduce):
        functions += [output.init, output.add, output.merge, output.finish]
        facts = *facts, output.over
    accumulators = [(part.name, part.dims) for part in output.accumulators]
    return f"{output.name} {code_digest(repr((facts, accumulators)), *functions)}"


def to_study(outputs: Sequence[Output]) -> dict[str, list[str]]:
    """Returns the entry of outputs in a study; {} without outputs."""
    return {"outputs": [identity(output) for output in outputs]} if outputs else {}


def from_study(identities: Sequence[str]) -> tuple[Output, ...]:
    """Returns the outputs of a study.

    Raises:
        ValueError: If an output belongs to a plug-in that is not loaded or has changed.
    """
    available = {identity(output): output for output in OUTPUTS.by_name().values()}
    for text in identities:
        if text not in available:
            remedy = "load the plug-in that defines it, as it was"
            refuse("outputs", text.partition(" ")[0], "known here", remedy)
    return tuple(available[text] for text in identities)


def is_shipped(output: Output) -> bool:
    """Tells whether this package defines an output; by name, because processes have copies."""
    return output.name in OUTPUTS.shipped or output.name in {standard.name for standard in STANDARD}


def compute_output(
    output: Output,
    arrays: Callable[[str], Array | np.ndarray],
    facts: Facts,
    size: Callable[[str], int],
    seeds: int,
) -> np.ndarray:
    """Computes an output from records.

    A plug-in gets read-only arrays. It must return real numbers of its shape, and the value of a
    seed must not depend on other seeds.

    Args:
        output: The output.
        arrays: Returns a record of the seeds, by name.
        facts: Attributes of their `Record`.
        size: Returns the length of a dimension.
        seeds: Number of seeds, at least 1.

    Raises:
        ValueError: If the output breaks a promise, fails, or requests a missing record.
    """
    if is_shipped(output):
        recorded = np.asarray(output.of(Record(arrays, facts, output.accumulators)))
        # Optional outputs are float64, which has a NaN for missing values.
        is_optional = output.name in OUTPUTS.shipped
        return recorded.astype(np.float64, copy=False) if is_optional else recorded
    sizes = tuple(map(size, output.dims))
    facts = {**facts, "links": _lock(facts["links"])}

    @functools.cache
    def fetch(name: str) -> np.ndarray:
        return _lock(arrays(name))

    def compute_rows(rows: slice | list[int], number: int) -> np.ndarray:
        shape = number, *sizes
        with promises.refuse_errors(output):
            value = output.of(Record(lambda name: fetch(name)[rows], facts, output.accumulators))
        allowed = f"[{', '.join(('seed', *output.dims))}], here {shape}"
        return read_numbers(f"{output.name}.of", value, shape, allowed)

    values = compute_rows(slice(None), seeds)
    # An output that compares seeds differs at the first, the last or an extreme seed.
    width = math.prod(sizes)
    extremes = (int(values.argmin()) // width, int(values.argmax()) // width) if width else ()
    for seed in {0, seeds - 1, *extremes}:
        # Two rows, so that an array of one row is not broadcast to all seeds.
        pair = compute_rows([seed, seed], 2)
        if not find_close(pair, np.broadcast_to(values[seed], pair.shape)).all():
            allowed = "the same for a seed, whatever seeds are beside it"
            remedy = f"compare seeds in the result: data.{output.name} - data.{output.name}.mean()"
            text = PlainText("another value for a seed by itself")
            refuse(f"{output.name}.of", text, allowed, remedy)
    return values


def _lock(values: ArrayLike) -> np.ndarray:
    """Returns a read-only view."""
    view = np.asarray(values).view()
    view.flags.writeable = False
    return view
