"""Shows what results can depend on, and whether the curves of a run fit here.

Versions, devices, precision, where compiled programs are kept, and whether the
curves of a run fit into memory.

Examples:
  fmab doctor
  fmab doctor --agents 1000 --seeds 1e5 --times 1000
  fmab doctor --algorithm ddp
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import Any

from fmab_jax.cli.options import Call, option
from fmab_jax.errors import count
from fmab_jax.parameters import Whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """Versions, devices and caches, and whether the curves of a run fit."""

    algorithm: str = option("cdp", metavar="NAME")
    """Whose run."""
    agents: Any = option(50, kind=Whole())
    """M, agents."""
    arms: Any = option(100, kind=Whole())
    """K, arms."""
    horizon: Any = option(100000, kind=Whole())
    """T, slots."""
    seeds: Any = option(1000, kind=Whole())
    """How many independent trials."""
    times: Any = option(100, kind=Whole())
    """How many slots to record."""


def execute(call: Call) -> None:
    """Prints versions, devices and the memory of a run's curves."""
    options = call.options
    import jax

    from fmab_jax.algorithms.base import named
    from fmab_jax.cli.stated import suggested
    from fmab_jax.core.problems import Problem
    from fmab_jax.resources import local_devices
    from fmab_jax.run.configs import MAX_HORIZON, bind
    from fmab_jax.run.resources import MAX_SEEDS, cores, memory_of, versions

    owner = named(options.algorithm)
    horizon = count("horizon", options.horizon, 1, MAX_HORIZON, "give T, such as 1e6")
    seeds = count("seeds", options.seeds, 1, MAX_SEEDS, "give the number of seeds")
    devices = local_devices()
    algorithm = owner(**suggested(owner, {}))
    problem = Problem.uniform(options.agents, options.arms)
    config = bind(algorithm, problem, horizon, times=options.times)
    need = config.needs(seeds, tuple(devices))
    with jax.enable_x64(True):
        inside = jax.numpy.zeros(()).dtype
    outside = jax.numpy.zeros(()).dtype
    listed = (f"{each.platform}:{each.id} ({each.device_kind})" for each in devices)
    available = need.available_bytes
    rows = {
        **versions(),
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "devices": ", ".join(listed),
        "precision": f"{inside} in simulations, {outside} elsewhere",
        "compiled programs": jax.config.values["jax_compilation_cache_dir"] or "not kept",
        "cores": str(cores()),
        "memory available": f"{available / 1e9:.3g} GB" if available else "unknown",
    }
    if devices[0].platform == "gpu" and (room := memory_of(devices[0])):
        change = "XLA_PYTHON_CLIENT_MEM_FRACTION changes it"
        rows["device memory"] = f"{room / 1e9:.3g} GB for JAX; {change}"
    for name, value in rows.items():
        print(f"{name:<18} {value}")
    print(
        f"\nfmab run {owner.name}, agents M = {problem.agents:,}, arms K = {problem.arms:,}, "
        f"slots T = {horizon:,}, {config.points:,} of them recorded, seeds {seeds:,}:"
    )
    fits = "fit" if need.fits else "do not fit"
    curves = f"curves of {need.result_bytes / 1e9:.3g} GB"
    print(f"{need.batches:,} x {need.batch:,} seeds; {curves} {fits} into memory")
