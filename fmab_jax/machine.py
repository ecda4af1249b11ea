"""Memory and cores that this job may use of its machine.

A batch system, a container or a shell may allow a job less than its machine has: control groups,
``ulimit -v``, CPU affinity and quotas say so. Files are read below a root folder; a file that is
missing, unreadable or meaningless sets no limit.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from fmab_jax.errors import refuse

ROOT = Path("/")
_HUGE = 2**60  # version 1 writes a number near 2**63 where there is no limit
# Address space of a process that runs one trial and draws it, and more for the stacks of each core.
_ADDRESSES, _ADDRESSES_PER_CORE = 2.15e9, 25e6


class Share(NamedTuple):
    """What a job may use of its machine.

    Attributes:
        amount: Free bytes, or cores; 0 if unknown.
        limit: Name of the job's limit that decides; "" if only the machine limits the job.
        machine: What the machine has; 0 if unknown.
    """

    amount: int
    limit: str
    machine: int


def memory(root: Path = ROOT) -> Share:
    """Returns the bytes that this job may still take, at least 1 if they are known.

    Args:
        root: Folder that contains ``proc`` and ``sys``.
    """
    lines = re.findall(r"^(\w+): +(\d+) kB$", _read(root / "proc/meminfo"), re.M)
    sizes = {name: int(kilobytes) * 1024 for name, kilobytes in lines}
    amounts = [(sizes["MemAvailable"], "")] if "MemAvailable" in sizes else []
    free_in_groups = map(_find_free_memory, _list_groups("memory", root))
    name = "memory limit of the control group"
    amounts += [(free, name) for free in free_in_groups if free is not None]
    addresses = _find_free_addresses(root)
    amounts += [] if addresses is None else [(addresses, "address space, ulimit -v")]
    if amounts:
        amount, limit = min(amounts, key=lambda pair: pair[0])
        return Share(max(1, amount), limit, sizes.get("MemTotal", 0))
    try:  # not Linux
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        size = 0
    return Share(size, "", size)


def available_bytes() -> int:
    """Returns the bytes of memory this job may still take; 0 if that is unknown."""
    return memory().amount


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


def suggest_more_memory() -> str:
    """Returns the end of a remedy where a limit of this job leaves too little memory."""
    limit = memory().limit
    return f", or raise the {limit}" if limit else ""


def processors(root: Path = ROOT) -> Share:
    """Returns the cores that this job may use; a part of a core counts as one."""
    machine = os.cpu_count() or 1
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else machine
    amounts = [(machine, ""), (affinity, "CPU affinity")]
    quotas = map(_find_quota, _list_groups("cpu", root))
    name = "CPU quota of the control group"
    amounts += [(max(1, math.ceil(quota)), name) for quota in quotas if quota is not None]
    amount, limit = min(amounts, key=lambda pair: pair[0])
    return Share(amount, limit, machine)


def cores() -> int:
    """Returns how many cores this job may use."""
    return processors().amount


def _list_groups(controller: str, root: Path) -> list[Path]:
    """Returns the folders of this process's control groups, and of their parents.

    A container may see the host's path of its group: its own files are then those of the mount
    point, the outermost parent.
    """
    folders = []
    for names, path in re.findall(r"^\d+:(.*?):(/.*)$", _read(root / "proc/self/cgroup"), re.M):
        if names and controller not in names.split(","):
            continue
        mount = root / "sys/fs/cgroup" / (controller if names else "")  # version 1, or 2
        parts = PurePosixPath(path).parts[1:]
        folders += [mount.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]
    return folders


def _find_free_memory(group: Path) -> int | None:
    """Returns the free bytes of a control group, where cached files count as free."""
    names = ("memory.max", "memory.high", "memory.limit_in_bytes")
    limits = [n for n in (_read_number(group / name) for name in names) if 0 <= n < _HUGE]
    if not limits:
        return None
    used = max(_read_number(group / n) for n in ("memory.current", "memory.usage_in_bytes"))
    stat = dict(re.findall(r"^(\w+) (\d+)$", _read(group / "memory.stat"), re.M))
    # In version 1 only the totals include the groups below.
    prefix = "total_" if "total_inactive_file" in stat else ""
    cached = sum(int(stat.get(f"{prefix}{kind}_file", 0)) for kind in ("inactive", "active"))
    return max(0, min(limits) - max(0, used - cached))


def _find_free_addresses(root: Path) -> int | None:
    """Returns the bytes that arrays may take of a limited address space; None without a limit.

    JAX reserves address space for threads and code when it starts and compiles. Until then its
    needs are estimated; later they are what is mapped.
    """
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        mapped = int(_read(root / "proc/self/statm").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, AttributeError, ValueError, OSError, IndexError):  # not Linux
        return None
    if limit == resource.RLIM_INFINITY:
        return None
    needs = _ADDRESSES + _ADDRESSES_PER_CORE * processors(root).amount
    return limit - max(mapped, int(needs))


def _find_quota(group: Path) -> float | None:
    """Returns the cores of a control group's CPU quota; None without one."""
    words = _read(group / "cpu.max").split()
    if len(words) != 2:
        words = [_read(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    if not all(word.isdecimal() and int(word) > 0 for word in words):  # "max", or -1
        return None
    return int(words[0]) / int(words[1])


def _read_number(path: Path) -> int:
    """Returns the number in a file; -1 if there is none."""
    text = _read(path).strip()
    return int(text) if text.isdecimal() else -1


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
