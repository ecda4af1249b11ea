"""Shows what results can depend on.

Versions, devices, precision, where compiled programs are kept, and the cores
and the memory of this job, with the limit that decides: CPU affinity, or the
limits of a control group (systemd, Slurm, containers).

Examples:
  fmab doctor
"""

from __future__ import annotations

import platform
from collections.abc import Callable

from fmab_jax.cli.options import Call, NoOptions
from fmab_jax.machine import Share


def execute(call: Call[NoOptions]) -> None:
    """Prints versions, devices and memory."""
    import jax

    from fmab_jax.machine import memory, processors
    from fmab_jax.run.resources import memory_of, versions

    devices = jax.local_devices()
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
        "cores": _describe_share(processors(), str),
        "memory available": _describe_share(memory(), _format_gigabytes),
    }
    if devices[0].platform == "gpu" and (device_bytes := memory_of(devices[0])):
        change = "XLA_PYTHON_CLIENT_MEM_FRACTION changes it"
        rows["device memory"] = f"{device_bytes / 1e9:.3g} GB for JAX; {change}"
    for name, value in rows.items():
        print(f"{name:<18} {value}")


def _format_gigabytes(size: int) -> str:
    return f"{round(size / 1e9, 3):.3g} GB"


def _describe_share(share: Share, show: Callable[[int], str]) -> str:
    """Describes what a job may use, and what limits it to less than its machine."""
    amount = show(share.amount) if share.amount else "unknown"
    if not share.limit:
        return amount
    machine = f"; the machine has {show(share.machine)}" if share.machine else ""
    return f"{amount} for this job ({share.limit}{machine})"
