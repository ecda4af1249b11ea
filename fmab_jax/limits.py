"""Memory and cores that this job may use: limits of control groups, ulimit, affinity and quotas.

A batch system, a container or a shell may allow a job less than its machine has. Files are read
below a root folder; a file that is missing, unreadable or meaningless sets no limit.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

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


def find_memory(root: Path = ROOT, addresses: tuple[int, int] | None = None) -> Share:
    """Returns the bytes that this job may still take, at least 1 if they are known.

    Args:
        root: Folder that contains ``proc`` and ``sys``.
        addresses: Limit on the address space and its needs, as of `find_addresses`.
    """
    lines = re.findall(r"^(\w+): +(\d+) kB$", _read(root / "proc/meminfo"), re.M)
    sizes = {name: int(kilobytes) * 1024 for name, kilobytes in lines}
    machine = sizes.get("MemTotal", 0)
    amounts = [(sizes["MemAvailable"], "")] if "MemAvailable" in sizes else []
    if addresses is not None:
        amounts.append((addresses[0] - addresses[1], "address space, ulimit -v"))
    free_in_groups = map(_find_free_memory, list_groups("memory", root))
    name = "memory limit of the control group"
    amounts += [(free, name) for free in free_in_groups if free is not None]
    amount, limit = min(amounts, key=lambda pair: pair[0], default=(0, ""))
    return Share(max(1, amount) if amounts else 0, limit, machine)


def find_cores(machine: int, affinity: int, root: Path = ROOT) -> Share:
    """Returns the cores that this job may use; a part of a core counts as one.

    Args:
        machine: Cores of the machine.
        affinity: Cores that the scheduler gives this process.
        root: Folder that contains ``proc`` and ``sys``.
    """
    amounts = [(machine, ""), (affinity, "CPU affinity")]
    quotas = map(_find_quota, list_groups("cpu", root))
    name = "CPU quota of the control group"
    amounts += [(max(1, math.ceil(quota)), name) for quota in quotas if quota is not None]
    amount, limit = min(amounts, key=lambda pair: pair[0])
    return Share(amount, limit, machine)


def find_addresses(cores: int, root: Path = ROOT) -> tuple[int, int] | None:
    """Returns the limit on the address space, and what the process needs of it besides its arrays.

    JAX reserves address space for threads and code when it starts and compiles. Until then its
    needs are estimated; later they are what is mapped.

    Args:
        cores: Cores that JAX starts threads for.
        root: Folder that contains ``proc``.

    Returns:
        (limit, needs) in bytes; None without a limit.
    """
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        mapped = int(_read(root / "proc/self/statm").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, AttributeError, ValueError, OSError, IndexError):  # not Linux
        return None
    if limit == resource.RLIM_INFINITY:
        return None
    return limit, max(mapped, int(_ADDRESSES + _ADDRESSES_PER_CORE * cores))


def list_groups(controller: str, root: Path = ROOT) -> list[Path]:
    """Returns the folders of this process's control groups with their parents, innermost first.

    Args:
        controller: "memory" or "cpu"; one of version 2 is in every hierarchy of version 2.
        root: Folder that contains ``proc`` and ``sys``.
    """
    lines = re.findall(r"^\d+:(.*?):(/.*)$", _read(root / "proc/self/cgroup"), re.M)
    groups = {name: path for names, path in lines for name in names.split(",")}
    folders = []
    for kind, mounted, mount_point, options in _list_mounts(root):
        name = "" if kind == "cgroup2" else controller
        if name not in groups or (name and name not in options.split(",")):
            continue
        group, top = PurePosixPath(groups[name]), PurePosixPath(mounted)
        # A container may see its group as the root, or have the host's path of it.
        names = group.relative_to(top).parts if group.is_relative_to(top) else ()
        folder = root / mount_point.lstrip("/")
        folders += [folder.joinpath(*names[:depth]) for depth in range(len(names), -1, -1)]
    return folders


def _list_mounts(root: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yields (type, mounted folder of the hierarchy, mount point, options) of control groups."""
    pattern = r"^\S+ \S+ \S+ (\S+) (\S+) .*?- (cgroup2?) \S+ (\S+)$"
    for top, point, kind, options in re.findall(pattern, _read(root / "proc/self/mountinfo"), re.M):
        # Spaces and the like are octal numbers there.
        top, point = (re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), x) for x in (top, point))
        yield kind, top, point, options


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
