"""A simulation inside a caller's own JAX settings: the same bits, or one line."""

import json

import fresh
import pytest

# Runs in a process of its own: settings of JAX are everybody's. Programs are traced anew under each
# setting, and compiled once. A simulation waits, so that all parts of the loop are traced.
SCRIPT = """
import contextlib, hashlib, json, signal, warnings
import jax
from jax.sharding import AxisType
import fmab_jax as fmab
from fmab_jax.run import compilation

warnings.simplefilter("ignore")
signal.alarm(900)
problem = fmab.Problem.heterogeneous(3, 4)


def bits():
    compilation.compile_program.cache_clear()
    run = fmab.ddp_mab(0.5, graph="ring")
    data = fmab.simulate(run, problem, 2000, seeds=20, times=5, batch=8)
    means = problem.fixed(3).means
    return hashlib.sha256(data.regret.values.tobytes() + means.tobytes()).hexdigest()


@contextlib.contextmanager
def configured(name, value):
    before = jax.config.values[name]
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, before)


def mesh(name, kind):
    return jax.set_mesh(jax.make_mesh((1,), (name,), axis_types=(kind,)))


settings = {
    "plain": contextlib.nullcontext,
    "set_mesh explicit": lambda: mesh("x", AxisType.Explicit),
    "set_mesh auto": lambda: mesh("x", AxisType.Auto),
    "transfer_guard disallow": lambda: jax.transfer_guard("disallow"),

    "debug_nans": lambda: jax.debug_nans(True),
    "jax_debug_infs": lambda: configured("jax_debug_infs", True),
    "disable_jit": jax.disable_jit,
    "default_matmul_precision": lambda: jax.default_matmul_precision("bfloat16"),
    "numpy_rank_promotion": lambda: jax.numpy_rank_promotion("raise"),
    "jax_numpy_dtype_promotion": lambda: configured("jax_numpy_dtype_promotion", "strict"),
    "enable_x64": lambda: jax.enable_x64(True),
    "enable_x64 off": lambda: jax.enable_x64(False),
    "jax_threefry_partitionable": lambda: configured("jax_threefry_partitionable", False),
    "jax_default_prng_impl": lambda: configured("jax_default_prng_impl", "rbg"),
    "checking_leaks": jax.checking_leaks,
}
found = {}
for name, setting in settings.items():
    try:
        with setting():
            found[name] = bits()
            # The caller's own setting is as it was.
            if name == "transfer_guard disallow":
                try:
                    jax.jit(lambda x: x + 1)(3)
                except Exception:
                    continue
                found[name] = "the guard is off"
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_callers_setting_changes_no_bit(tmp_path):
    """Would catch a mesh that is refused, a guard that stops a run, and bits that follow x64."""
    current = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    current |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    results = json.loads(fresh.script(SCRIPT, **current).splitlines()[-1])
    assert len(results) == 15 and len(results["plain"]) == 64
    assert results == dict.fromkeys(results, results["plain"])


@pytest.mark.parametrize(
    ("variable", "value"), [("JAX_ENABLE_X64", "maybe"), ("JAX_PLATFORMS", "cpu,nowhere")]
)
def test_a_setting_that_jax_does_not_take_is_one_line(variable, value):
    """Would catch a traceback where a variable of JAX is misspelt."""
    done = fresh.python("-m", "fmab_jax", "doctor", **{variable: value})
    start = f"fmab: {variable} {value}: must be what JAX takes; "
    assert done.returncode == 2 and done.stderr.startswith(start)
    assert done.stderr.count("\n") == 1
