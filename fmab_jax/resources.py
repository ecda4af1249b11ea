"""Memory, cores and devices of this job, and the refusal of what needs more."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from fmab_jax import limits
from fmab_jax.errors import PlainText, describe_error, refuse

if TYPE_CHECKING:
    import jax


def check_memory(field: str, needed: float, remedy: str) -> None:
    """Refuses an allocation of more than nine tenths of the free memory.

    Args:
        field: Public name of the argument that needs it.
        needed: Bytes.
        remedy: What to do instead.

    Raises:
        Refusal: If it does not fit; never if the free memory is unknown.
    """
    available = available_bytes()
    if available and needed > 0.9 * available:
        allowed = f"at most 90% of the {available / 1e9:.1f} GB available"
        refuse(field, f"{needed / 1e9:.1f} GB", allowed, remedy + suggest_more_memory())


def available_bytes() -> int:
    """Returns the bytes of memory this job may still take; 0 if that is unknown."""
    return memory().amount


def memory() -> limits.Share:
    """Returns the free memory of this job, with the limit that decides."""
    share = limits.find_memory(addresses=addresses())
    if share.amount:
        return share
    try:  # not Linux
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        size = 0
    return limits.Share(size, "", size)


def cores() -> int:
    """Returns how many cores this job may use."""
    return processors().amount


def processors() -> limits.Share:
    """Returns the cores of this job, with the limit that decides."""
    return limits.find_cores(os.cpu_count() or 1, _affinity())


def suggest_more_memory() -> str:
    """Returns the end of a remedy where a limit of this job leaves too little memory."""
    limit = memory().limit
    return f", or raise the {limit}" if limit else ""


def check_address_space() -> None:
    """Refuses an address space in which JAX cannot compile: it would hang, or end the process.

    Raises:
        Refusal: If the limit on the address space is below what JAX reserves.
    """
    sizes = addresses()
    if sizes and sizes[0] <= sizes[1]:
        limit, needed = (f"{size / 1e9:.3g} GB" for size in sizes)
        refuse("address space", limit, f"more than the {needed} that JAX takes", "raise ulimit -v")


def addresses() -> tuple[int, int] | None:
    """Returns the limit on the address space and its needs, as of `limits.find_addresses`."""
    return limits.find_addresses(_affinity())


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def local_devices() -> list[jax.Device]:
    """Returns this process's devices, in JAX's order; starts JAX.

    Raises:
        Refusal: If JAX cannot start the configured platforms.
    """
    import jax
    from jax.extend import backend

    try:
        return jax.local_devices()
    except (RuntimeError, AssertionError) as error:
        backend.clear_backends()  # else a second call would return the platforms that started
        platforms = jax.config.values.get("jax_platforms")
        allowed = "made of platforms that start here, such as cpu"
        refuse(
            "JAX_PLATFORMS",
            platforms or PlainText("unset"),
            allowed,
            f"set it ({describe_error(error)})",
        )


def refuse_after_fork() -> None:
    """Refuses to go on in a child of ``os.fork`` whose parent had started JAX: it would hang.

    A fork copies JAX's devices, but not the threads that work for them.

    Raises:
        Refusal: If this process was forked after JAX was started.
    """
    if _FORKED:
        remedy = 'start processes with multiprocessing.get_context("spawn"), or before JAX is used'
        refuse("process", "forked", "one in which JAX was not started before a fork", remedy)


def _note_fork() -> None:
    global _FORKED
    bridge = sys.modules.get("jax._src.xla_bridge")
    _FORKED = _FORKED or getattr(bridge, "backends_are_initialized", lambda: False)()


_FORKED = False
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
