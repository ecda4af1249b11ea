"""What this machine has, its memory and devices, and the refusal of what would take more."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

from fmab_jax.errors import Shown, reason_of, refuse


def affordable(field: str, needed: float, remedy: str, available: int | None = None) -> None:
    """Refuses what would take more than nine tenths of the free memory, before it is allocated.

    Args:
        field: Public name of what takes it.
        needed: Bytes.
        remedy: What to do instead.
        available: Bytes that are free; by default looked up.

    Raises:
        Refusal: If it does not fit; never where the free memory is unknown.
    """
    available = available_bytes() if available is None else available
    if available and needed > 0.9 * available:
        allowed = f"at most 90% of the {available / 1e9:.1f} GB available"
        refuse(field, f"{needed / 1e9:.1f} GB", allowed, remedy)


def available_bytes() -> int:
    """Returns the bytes of memory this process may still take; 0 if that is unknown."""
    found = [_container_bytes(Path("/sys/fs/cgroup"))]
    try:
        with open("/proc/meminfo") as lines:
            found += [int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable:")]
    except OSError:
        pass
    known = [size for size in found if size is not None]
    if known:
        return min(known)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0


def local_devices() -> list[Any]:
    """Returns this process's devices, in JAX's order; starts JAX.

    Raises:
        Refusal: If JAX cannot start the platforms that it is told to use; names those it can.
    """
    import jax

    try:
        return jax.local_devices()
    except (RuntimeError, AssertionError) as error:
        told = {n.upper(): jax.config.values.get(n) for n in ("jax_platforms", "jax_platform_name")}
        field, value = next(((n, v) for n, v in told.items() if v), ("JAX_PLATFORMS", None))
        # JAX's own list holds platforms that it cannot start.
        why = "" if "known backends" in str(error) else f" ({reason_of(error)})"
        allowed = f"made of platforms that start here: {', '.join(_platforms())}"
        refuse(field, value or Shown("unset"), allowed, f"set it to these{why}")


def _platforms() -> list[str]:
    """Returns the platforms that JAX can start here, of which none is started by then."""
    import jax
    from jax.extend import backend

    told = jax.config.values.get("jax_platforms")
    try:
        jax.config.update("jax_platforms", None)
        return sorted(backend.backends())
    except Exception:  # whatever a platform's own library raises
        return ["cpu"]
    finally:
        jax.config.update("jax_platforms", told)
        backend.clear_backends()


def refuse_after_fork() -> None:
    """Refuses to go on in a child of ``os.fork`` whose parent had started JAX: it would hang.

    A fork copies JAX's devices, but not the threads that work for them.

    Raises:
        Refusal: If this process was forked after JAX was started, as far as can be told.
    """
    if _FORKED or (_jax_started() and _threads_lost()):
        remedy = 'start processes with multiprocessing.get_context("spawn"), or before JAX is used'
        refuse("process", "forked", "one in which JAX was not started before a fork", remedy)


def _jax_started() -> bool:
    bridge = sys.modules.get("jax._src.xla_bridge")
    return getattr(bridge, "backends_are_initialized", lambda: False)()


def _threads_lost() -> bool:
    """Tells, of a fork before this module was imported, that only Python's own threads are here."""
    try:
        alive = {int(name) for name in os.listdir("/proc/self/task")}
    except OSError:  # not on this system
        return False
    return alive <= {thread.native_id for thread in threading.enumerate()}


def _note_fork() -> None:
    global _FORKED
    _FORKED = _FORKED or _jax_started()


_FORKED = False
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def _container_bytes(folder: Path) -> int | None:
    """Returns what a control group leaves free; cached files do not count, they give way."""
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
