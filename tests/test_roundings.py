"""Products that are added to are rounded first, in every shipped algorithm.

A processor may round a product and a sum once instead of twice, and whether it does depends on the
program around them. Traced programs tell which sums have a product on either side.
"""

import jax
import numpy as np
import pytest
from jax._src import source_info_util
from jax.extend.core import Literal

import fmab_jax as fmab
from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.draws import agent_sum, base
from fmab_jax.parameters import Flag, parameters_of
from fmab_jax.run import compilation, configs
from fmab_jax.sampling import arrays, curves
from fmab_jax.sampling.backend import trace_for
from fmab_jax.sampling.scope import package_settings

ALIKE = fmab.Problem.uniform(4, 5)
DIFFER = fmab.Problem.heterogeneous(4, 5, 0.4)
USUAL = {"epsilon": 0.5, "graph": "ring", "components": "4:path"}
# One kernel computes a sampler from its uniform to its result, whatever the program around it.
SAMPLERS = tuple(f"sampling/{name}.py" for name in ("normal", "binomials", "samplers", "laplace"))
SAMPLERS += ("parts/rewards/bernoulli.py", "algorithms/lazy_dp_ts.py")
# Their products are exact: of whole numbers, or with a power of two.
EXACT = {
    *(("sampling/arrays.py", name) for name in ("exact_parts", "exact_total")),
    *(("sampling/evidence.py", name) for name in ("_log_largest", "choose_tilts.<locals>.pair")),
    *(("algorithms/dducb.py", name) for name in ("DDUCB.choose", "_locate_slot")),
    ("elimination.py", "plan_epoch"),
    ("algorithms/lazy_dp_ts.py", "LazyDPTS.update"),
    ("algorithms/lcc_ucb.py", "LCCUCB.due"),
    ("algorithms/ldp_ucb.py", "LDPUCB.choose"),
}
# `vmap` and `jit` name these in place of what they call, which is named where nothing is mapped,
# and in the layout of accelerators.
CALLERS = {
    ("sampling/rare.py", "rare"),
    ("sampling/rare.py", "_make_packed.<locals>.rule"),
    ("layouts/ragged.py", "Ragged._apply.<locals>.apply_to_arm"),
    None,
}
# Operations that hand a product on as it is.
MOVES = {"broadcast_in_dim", "reshape", "squeeze", "transpose", "neg", "gather", "copy"}


# Of what a flag changes, these also by default.
QUICK = ("kl_se split=True", "cdp participation=0.5", "adap_ucb kl=True", "ucb1 pooled=True")


def runs():
    """Returns an algorithm and a problem for each way to run what is shipped."""
    for item in fmab.list_algorithms():
        kind, known = ALGORITHMS.find(item["name"]), parameters_of(ALGORITHMS.find(item["name"]))
        given = {name: value for name, value in USUAL.items() if name in known}
        flags = [{name: not x.default} for name, x in known.items() if isinstance(x.kind, Flag)]
        some = [{"participation": 0.5}] if "participation" in known else []
        for more in ({}, *flags, *some):
            name = " ".join([item["name"], *(f"{key}={value}" for key, value in more.items())])
            marks = pytest.mark.slow if more and name not in QUICK else ()
            yield pytest.param(kind(**given | more), ALIKE, id=name, marks=marks)
    for name in ("cdp", "ddp"):
        yield pytest.param(ALGORITHMS.find(name)(0.5), DIFFER, id=f"{name}, agents differ")


def programs_within(program):
    """Yields a traced program and all that it calls."""
    yield program
    for equation in program.eqns:
        for inner in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")
        ):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield from programs_within(inner)


def place_of(equation):
    """Returns the file of the package, and the function, that an operation comes from."""
    for frame in source_info_util.user_frames(equation.source_info.traceback):
        _, package, file = frame.file_name.partition("/fmab_jax/")
        if package:
            return file, frame.function_name
    return None


def unrounded_sums(program):
    """Returns where a float64 product is added to."""
    places = set()
    for inner in programs_within(program):
        makers = {value: equation for equation in inner.eqns for value in equation.outvars}

        def is_product(value, makers=makers):
            """Tells whether a value is a product, wherever it was moved since."""
            while not isinstance(value, Literal) and value in makers:
                name = makers[value].primitive.name
                if name not in MOVES:
                    return name == "mul"
                value = makers[value].invars[0]
            return False

        for equation in inner.eqns:
            if equation.primitive.name in ("add", "sub") and any(
                x.aval.dtype == np.float64 and is_product(x) for x in equation.invars
            ):
                places.add(place_of(equation))
    return places


def sums_of(algorithm, problem):
    """Returns where a seed, and a batch of them, adds to a product."""
    config = configs.bind(algorithm, problem, 10**4, times=3)
    structure, leaves, _ = config.program

    def arguments(*batch):
        shapes = [jax.ShapeDtypeStruct((*batch, *x), np.dtype(dtype)) for x, dtype in leaves]
        seeds = [jax.ShapeDtypeStruct(batch, np.dtype(np.uint32))] * 2
        return *jax.tree.unflatten(structure, shapes), *seeds

    def traced(function, platform, *given):
        # What was traced for another platform is not taken for this one.
        with trace_for(platform):
            return jax.make_jaxpr(lambda *given: function(*given))(*given).jaxpr

    with package_settings():
        actual = unrounded_sums(traced(compilation.run_trial, "cpu", *arguments()))
        if hasattr(config.trial, "run_batch"):
            for platform in ("cpu", "gpu"):
                actual |= unrounded_sums(
                    traced(compilation.run_many_trials, platform, *arguments(4))
                )
    return actual - CALLERS


@pytest.mark.parametrize("algorithm, problem", runs())
def test_a_product_is_rounded_before_it_is_added_to(algorithm, problem):
    """Would catch regret whose last bit depends on the program around it: `rounded` left out where
    a curve is continued, in an index or in the evidence of KL-SE."""
    sums = sums_of(algorithm, problem) - EXACT
    assert not {place for place in sums if place[0] not in SAMPLERS}


def test_a_product_that_is_not_rounded_is_seen(monkeypatch):
    """Would catch a search that finds nothing: without rounding, several places must show."""
    for module in (arrays, curves, agent_sum, base):
        monkeypatch.setattr(module, "rounded", lambda product: product)
    places = {name.partition(".<")[0] for _, name in sums_of(fmab.cdp_mab(0.7), ALIKE)}
    assert {"Accounts._explore", "extend", "Draws.aggregate"} <= places
