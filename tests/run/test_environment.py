"""A simulation inside a caller's own JAX settings, and after a fork: the same bits, or one line."""

import json
import re

import fresh
import pytest

# Runs in a process of its own: settings of JAX are everybody's. Programs are traced anew under each
# setting, and compiled once. A simulation waits, so that all parts of the loop are traced.
SCRIPT = """
import contextlib, hashlib, json, os, signal, sys, warnings
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


def child(work):
    read, write = os.pipe()
    number = os.fork()
    if number == 0:
        signal.alarm(20)
        try:
            work()
            said = "done"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with open(read) as file:
        said = file.read()
    os.waitpid(number, 0)
    return said


# Where there is no fork, the tests of it are skipped.
if not hasattr(os, "fork"):
    print(json.dumps(found))
    sys.exit()
found["simulate after fork"] = child(bits)
found["fixed after fork"] = child(lambda: problem.fixed(3))
found["sweep after fork"] = child(
    lambda: fmab.sweep("cdp", epsilon=1, agents=2, arms=2, horizon=50, seeds=2)
)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_callers_setting_changes_no_bit_and_a_fork_is_refused(tmp_path):
    """Would catch a mesh that is refused, a guard that stops a run, bits that follow x64, and a
    child that waits for ever for threads that a fork does not copy."""
    current = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    current |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    results = json.loads(fresh.script(SCRIPT, **current).splitlines()[-1])
    forked = {name: results.pop(name) for name in list(results) if name.endswith("after fork")}
    assert len(results) == 15 and len(results["plain"]) == 64
    assert results == dict.fromkeys(results, results["plain"])
    line = "Refusal: process='forked': must be one in which JAX was not started before a fork; "
    assert len(forked) in (0, 3) and all(text.startswith(line) for text in forked.values())


PLATFORMS = """
import sys
import fmab_jax as fmab
from fmab_jax.cli.main import main

problem = fmab.Problem.uniform(2, 2)
works = {
    "simulate": lambda: fmab.simulate(fmab.ucb1(), problem, 10, 2),
    "sweep": lambda: fmab.sweep("ucb1", problem, horizon=10, seeds=2),
    "fixed": lambda: problem.fixed(3),
}
for name, work in works.items():
    try:
        work()
    except ValueError as error:
        print(error)
print(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("told", ["nowhere", "cpu,nowhere"])
def test_platforms_that_do_not_start_are_refused_by_name(told):
    """Would catch a traceback, and what runs on another platform the second time it is asked."""
    done = fresh.python("-c", PLATFORMS, "doctor", JAX_PLATFORMS=told)
    allowed = r"must be made of platforms that start here, such as cpu; set it .*"
    *lines, status = done.stdout.splitlines()
    assert re.fullmatch(rf"JAX_PLATFORMS='{told}': {allowed}", lines[0])
    assert lines == 3 * [lines[0]] and status == "2"
    assert done.stderr == f"fmab: {lines[0]}\n"


def test_a_setting_that_jax_does_not_take_is_one_line():
    """Would catch a traceback where a variable of JAX is misspelt."""
    done = fresh.python("-m", "fmab_jax", "doctor", JAX_ENABLE_X64="maybe")
    start = "fmab: JAX_ENABLE_X64 maybe: must be what JAX takes; "
    assert done.returncode == 2 and done.stderr.startswith(start)
    assert done.stderr.count("\n") == 1
