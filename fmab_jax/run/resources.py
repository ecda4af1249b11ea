"""Devices, batches and memory of a run, and the resources of this job."""

from __future__ import annotations

import functools
import importlib.metadata
import math
from collections.abc import Sequence

import jax

from fmab_jax import __version__
from fmab_jax.errors import count, refuse
from fmab_jax.machine import available_bytes, cores

MAX_SEEDS = 10**8
# Array elements per device: they fill an accelerator, or fit into the cache of a core.
_ELEMENTS = {"cpu": 200_000, "gpu": 8_000_000, "tpu": 8_000_000}
BATCHES, EVERYTHING = 0.7, 0.9
"""Largest parts of free memory for running batches, and for these with the results."""
SMALLEST = 2
"""Trials of the smallest batch of a device; a single one would be fused and rounded differently."""
# A processor's allocator reuses results of up to this size; it returns larger ones to the system,
# and requesting their pages again takes time.
_ALLOCATOR_BYTES = 2**24


def checked_devices(devices: Sequence[jax.Device] | None) -> tuple[jax.Device, ...]:
    """Returns the devices to use; by default all devices of this process.

    Raises:
        ValueError: If there is none.
    """
    used = tuple(jax.local_devices()) if devices is None else ()
    if isinstance(devices, (list, tuple)):
        used = tuple(devices)
    if not used or not all(isinstance(device, jax.Device) for device in used):
        refuse("devices", devices, "devices such as jax.devices()", "leave it out for all of them")
    return used


def choose_batch(
    elements: int,
    result_bytes: int,
    trials: int,
    devices: Sequence[jax.Device],
    batch: int | None = None,
    lanes: int | None = None,
) -> tuple[int, int]:
    """Returns the seeds of a batch, over all devices, and how many batches run at once.

    Args:
        elements: (agent, arm) elements of a trial's loop.
        result_bytes: Memory of a trial's results.
        trials: Number of trials.
        devices: Devices that share each batch.
        batch: Seeds per batch; None for a suitable number.
        lanes: Batches that run at once; `threads` by default.

    Raises:
        ValueError: If ``batch`` is not a positive whole number.
    """
    lanes = threads(devices) if lanes is None else lanes
    if batch is None:
        per_device = max(1, _ELEMENTS.get(devices[0].platform, 200_000) // elements)
        if devices[0].platform == "cpu":
            # A power of two, because the batch is rounded up to one.
            per_device = min(per_device, 1 << (_ALLOCATOR_BYTES // result_bytes).bit_length() >> 1)
        # Small batches take an accelerator the same time as half of them, so it gets whole ones.
        shares = len(devices) * (lanes if devices[0].platform == "cpu" else 1)
        per_device = min(per_device, -(-trials // shares))
    else:
        batch = count("batch", batch, 1, MAX_SEEDS, "give the number of seeds per batch")
        per_device = -(-min(batch, trials) // len(devices))
    # Powers of two, so that 900 seeds and 1000 share a compilation.
    least = 8 if elements <= 100_000 else SMALLEST
    batch = len(devices) * 2 ** math.ceil(math.log2(max(least, per_device)))
    return batch, min(lanes, -(-trials // batch))


def keeps_curves(devices: Sequence[jax.Device]) -> bool:
    """Tells whether curves stay on the device for a summary: on GPUs."""
    return devices[0].platform == "gpu"


def memory_of(device: jax.Device) -> int:
    """Returns the bytes of a device's memory for JAX; 0 if unknown."""
    if device.platform == "cpu":
        return available_bytes()
    return int((device.memory_stats() or {}).get("bytes_limit", 0))


def threads(devices: Sequence[jax.Device]) -> int:
    """Returns the number of batches that run at once.

    A single CPU device runs a batch on one core, so several batches use all cores. An accelerator
    computes one batch while it transfers the results of another.
    """
    if devices[0].platform != "cpu":
        return 2
    return cores() if len(devices) == 1 else 1


def versions() -> dict[str, str]:
    """Returns the versions of the packages that a result can depend on."""
    names = ("fmab_jax", "jax", "jaxlib", "numpy", "scipy", "networkx", "xarray", "h5netcdf")
    return {name: _version(name) for name in names}


@functools.cache
def _version(name: str) -> str:
    """Returns the version of a package; cached, because reading metadata takes time."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return __version__ if name == "fmab_jax" else "not installed"
