"""Shows what results can depend on.

Versions, devices, precision, where compiled programs are kept, and memory.

Examples:
  fmab doctor
"""

from __future__ import annotations

import platform
from dataclasses import dataclass

from fmab_jax.cli.options import Call


@dataclass(frozen=True, kw_only=True)
class Options:
    """Versions, devices, caches and memory."""


def execute(call: Call) -> None:
    """Prints versions, devices and memory."""
    import jax

    from fmab_jax.resources import available_bytes, cores, local_devices
    from fmab_jax.run.resources import memory_of, versions

    devices, available = local_devices(), available_bytes()
    with jax.enable_x64(True):
        simulation_dtype = jax.numpy.zeros(()).dtype
    default_dtype = jax.numpy.zeros(()).dtype
    device_texts = (f"{device.platform}:{device.id} ({device.device_kind})" for device in devices)
    rows = {
        **versions(),
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "devices": ", ".join(device_texts),
        "precision": f"{simulation_dtype} in simulations, {default_dtype} elsewhere",
        "compiled programs": jax.config.values["jax_compilation_cache_dir"] or "not kept",
        "cores": str(cores()),
        "memory available": f"{available / 1e9:.3g} GB" if available else "unknown",
    }
    if devices[0].platform == "gpu" and (memory := memory_of(devices[0])):
        change = "XLA_PYTHON_CLIENT_MEM_FRACTION changes it"
        rows["device memory"] = f"{memory / 1e9:.3g} GB for JAX; {change}"
    for name, value in rows.items():
        print(f"{name:<18} {value}")
