"""Memory, cores and devices of this machine, and the refusal of what needs more."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fmab_jax.errors import PlainText, describe_error, refuse

if TYPE_CHECKING:
    import jax


def check_memory(field: str, needed: float, remedy: str, available: int | None = None) -> None:
    """Refuses an allocation of more than nine tenths of the free memory.

    Args:
        field: Public name of the argument that needs it.
        needed: Bytes.
        remedy: What to do instead.
        available: Free bytes; by default measured.

    Raises:
        Refusal: If it does not fit; never if the free memory is unknown.
    """
    available = available_bytes() if available is None else available
    if available and needed > 0.9 * available:
        allowed = f"at most 90% of the {available / 1e9:.1f} GB available"
        refuse(field, f"{needed / 1e9:.1f} GB", allowed, remedy)


def available_bytes() -> int:
    """Returns the bytes of memory this process may still take; 0 if that is unknown."""
    sizes = [_container_bytes(Path("/sys/fs/cgroup"))]
    try:
        with open("/proc/meminfo") as lines:
            sizes += [int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable:")]
        return min(size for size in sizes if size is not None)
    except (OSError, ValueError):  # not Linux
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0


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


def _container_bytes(folder: Path) -> int | None:
    """Returns the free bytes of a control group; the file cache counts as free."""
    try:
        limit = int((folder / "memory.max").read_text())
        used = int((folder / "memory.current").read_text())
        lines = (folder / "memory.stat").read_text().splitlines()
        cached = int(dict(line.split() for line in lines).get("file", 0))
    except (OSError, ValueError):  # no such group, or no limit: "max"
        return None
    return max(0, limit - max(0, used - cached))


def cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
