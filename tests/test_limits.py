"""The limits of a job on memory and cores, in made-up files and in commands under them."""

import os
import re
import shutil
import sys

import fresh
import pytest

from fmab_jax import limits, resources
from fmab_jax.cli import doctor
from fmab_jax.limits import Share

MEMINFO = "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:  8000 kB\n"
MACHINE = Share(8000 * 1024, "", 9000 * 1024)
GROUP, QUOTA = "memory limit of the control group", "CPU quota of the control group"
HUGE = str(2**63 - 4096)


def mount(kind, point, options="rw", top="/", number=30):
    return f"{number} 25 0:26 {top} {point} rw,nosuid shared:4 - {kind} {kind} {options}\n"


V2 = mount("cgroup2", "/sys/fs/cgroup")
V1 = mount("tmpfs", "/sys/fs/cgroup") + mount("cgroup", "/sys/fs/cgroup/memory", "rw,memory")
V1 += mount("cgroup", "/sys/fs/cgroup/cpu,cpuacct", "rw,cpu,cpuacct")
HYBRID = V1 + mount("cgroup2", "/sys/fs/cgroup/unified")


def group(folder="", limit="max", used=0, stat="", quota="max 100000"):
    """Returns the files of a group of version 2."""
    values = {"memory.max": limit, "memory.current": used, "memory.stat": stat, "cpu.max": quota}
    return {f"sys/fs/cgroup/{folder}{name}": str(value) for name, value in values.items()}


def old_group(folder="", limit=HUGE, used=0, stat="", quota=-1, period=100000):
    """Returns the files of a group of version 1."""
    memory = {"limit_in_bytes": limit, "usage_in_bytes": used, "stat": stat}
    files = {f"sys/fs/cgroup/memory/{folder}memory.{n}": str(v) for n, v in memory.items()}
    cpu = {"quota": quota, "period": period}
    return files | {
        f"sys/fs/cgroup/cpu,cpuacct/{folder}cpu.cfs_{n}_us": str(v) for n, v in cpu.items()
    }


STAT = "anon 1\nfile 900\nshmem 600\ninactive_file 200\nactive_file 100"
OLD_STAT = "inactive_file 1\nactive_file 2\ntotal_inactive_file 200\ntotal_active_file 100"
OLD_LINES = "5:cpu,cpuacct:/job/step\n4:memory:/job/step\n"
# Files; mounts; control groups of the process; free bytes and cores of 8 (None: the machine's).
TREES = {
    "no control groups": ({}, "", "", None, None),
    "no limits": (group() | group("job/"), V2, "0::/job\n", None, None),
    "a limit; file cache is free, shared memory is not": (
        group("job/", 1000, 500, STAT, "250000 100000"), V2, "0::/job\n", 800, 3,
    ),
    "the parent's": (
        group("job/", 5000, 900, "", "200000 100000")
        | group("job/step/", 9000, 100, "", "max 100000"),
        V2, "0::/job/step\n", 4100, 2,
    ),
    "the child's": (
        group("job/", 5000, 900, "", "200000 100000")
        | group("job/step/", 1000, 100, "", "100000 100000"),
        V2, "0::/job/step\n", 900, 1,
    ),
    "high is below max": (
        group("job/", 1000) | {"sys/fs/cgroup/job/memory.high": "700"}, V2, "0::/job\n", 700, None,
    ),
    "all is used": (group("job/", 1000, 2000), V2, "0::/job\n", 1, None),
    "a container that sees its group as the root": (
        group("", 1000, 300, "", "50000 100000"), V2, "0::/\n", 700, 1,
    ),
    "a container with the host's path": (
        group("", 1000, 300, "", "300000 100000"),
        mount("cgroup2", "/sys/fs/cgroup", top="/docker/ab"), "0::/docker/ab\n", 700, 3,
    ),
    "a group inside a container with the host's path": (
        group("in/", 1000, 300), mount("cgroup2", "/sys/fs/cgroup", top="/docker/ab"),
        "0::/docker/ab/in\n", 700, None,
    ),
    "outside of the mounted groups": (group("", 1000), V2, "0::/../job\n", 1000, None),
    "a group that is gone": (group("", 1000), V2, "0::/job/step (deleted)\n", 1000, None),
    "a mount point with a space": (
        {k.replace("cgroup/", "c g/"): v for k, v in group("job/", 1000).items()},
        mount("cgroup2", r"/sys/fs/c\040g"), "0::/job\n", 1000, None,
    ),
    "version 1 without limits": (old_group("job/step/"), V1, OLD_LINES, None, None),
    "version 1, the parent's": (
        old_group("job/", 2000, 700, OLD_STAT, 400000) | old_group("job/step/", 9000),
        V1, OLD_LINES, 1600, 4,
    ),
    "version 1, another period": (
        old_group("job/step/", 2000, 0, "", 100000, 50000), V1, OLD_LINES, 2000, 2,
    ),
    "hybrid, limits in version 1": (
        old_group("job/step/", 2000, 700, "", 200000), HYBRID, OLD_LINES + "0::/other\n", 1300, 2,
    ),
    "hybrid, limits in version 2": (
        {k.replace("cgroup/", "cgroup/unified/"): v for k, v in group("job/", 50, 9).items()},
        HYBRID, "5:cpu,cpuacct:/\n4:memory:/\n0::/job\n", 41, None,
    ),
    "garbage": (
        group("job/", "x", "y", "z\n1", "1 2 3") | {"sys/fs/cgroup/job/memory.high": "-5"},
        V2, "0::/job\n", None, None,
    ),
    "garbage about groups": (
        group("job/", 1000), "x - cgroup2\n\n- - -\n", "x\n0:/job\n:::\n", None, None,
    ),
    "a quota without a period": (
        group("job/", quota="100000 0") | group(quota="0 100000"), V2, "0::/job\n", None, None,
    ),
    "a limit of unknown use": (
        {"sys/fs/cgroup/job/memory.max": "1000"}, V2, "0::/job\n", 1000, None,
    ),
}  # fmt: skip


def build(root, files, mounts="", groups=""):
    """Writes files below a root; returns it."""
    lines = {"proc/self/mountinfo": mounts, "proc/self/cgroup": groups, "proc/meminfo": MEMINFO}
    for name, text in (lines | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize("name", TREES)
def test_the_smallest_limit_over_all_groups_holds(name, tmp_path):
    """Would catch a parent or a version that nobody reads, cached files or shared memory counted
    wrongly, "max" or 2^63 as a number, a part of a core lost, and garbage that ends a run."""
    files, mounts, groups, free, cores = TREES[name]
    root = build(tmp_path, files, mounts, groups)
    expected = MACHINE if free is None else Share(free, GROUP, MACHINE.machine)
    assert limits.find_memory(root) == expected
    expected = Share(8, "", 8) if cores is None else Share(cores, QUOTA, 8)
    assert limits.find_cores(8, 8, root) == expected


def test_what_cannot_be_read_sets_no_limit(tmp_path):
    """Would catch an error where files are folders, are missing, or are not text."""
    assert limits.find_memory(tmp_path) == Share(0, "", 0)
    (build(tmp_path / "old", old_group(), V1, OLD_LINES) / "proc/meminfo").unlink()
    assert limits.find_memory(tmp_path / "old") == Share(0, "", 0)
    root = build(tmp_path, group("job/", 1000), V2, "0::/job\n")
    file = root / "sys/fs/cgroup/job/memory.max"
    file.write_bytes(b"\xff\xfe")
    assert limits.find_memory(root) == MACHINE
    file.unlink()
    file.mkdir()
    assert limits.find_memory(root) == MACHINE
    shutil.rmtree(root / "sys")
    assert limits.find_memory(root) == MACHINE and limits.find_cores(8, 8, root) == Share(8, "", 8)


def test_affinity_and_quota_limit_cores_together(tmp_path):
    """Would catch a quota that hides a smaller affinity, or the other way round."""
    root = build(tmp_path, group("job/", quota="300000 100000"), V2, "0::/job\n")
    found = [limits.find_cores(8, affinity, root)[:2] for affinity in (2, 3, 4, 8)]
    assert found == [(2, "CPU affinity"), (3, "CPU affinity"), (3, QUOTA), (3, QUOTA)]


def test_an_address_space_limits_memory_by_what_jax_leaves_of_it(tmp_path):
    """Would catch the whole limit counted as free, a negative one, and 0 as if it were unknown."""
    root = build(tmp_path, group("job/", 3_000_000), V2, "0::/job\n")
    name = "address space, ulimit -v"
    sizes = {(5_000_000, 4_000_000): (1_000_000, name), (5, 9): (1, name), (9**9, 9): (3e6, GROUP)}
    for addresses, found in sizes.items():
        assert limits.find_memory(root, addresses)[:2] == found


def test_addresses_are_those_of_jax_or_those_mapped(tmp_path, monkeypatch):
    """Would catch pages taken for bytes, and the needs of JAX forgotten before it starts."""
    resource = pytest.importorskip("resource")
    root = build(tmp_path, {"proc/self/statm": "5000000 1 1\n"})
    page = os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (10**11, resource.RLIM_INFINITY))
    assert limits.find_addresses(2, root) == (10**11, 5_000_000 * page)
    (root / "proc/self/statm").write_text("5 1 1\n")
    assert limits.find_addresses(2, root) == (10**11, 2_200_000_000)
    assert limits.find_addresses(6, root) == (10**11, 2_300_000_000)
    (root / "proc/self/statm").write_text("")
    assert limits.find_addresses(2, root) is None
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY,) * 2)
    assert limits.find_addresses(2) is None


def test_the_doctor_names_the_limit_in_plain_words():
    """Would catch a job's limit shown as the machine's, and unknown memory shown as none."""
    shown = [doctor._describe_share(share, lambda size: f"{size} GB") for share in (
        Share(3, GROUP, 24), Share(3, GROUP, 0), Share(20, "", 24), Share(0, "", 0),
    )]  # fmt: skip
    assert shown == [
        "3 GB for this job (memory limit of the control group; the machine has 24 GB)",
        "3 GB for this job (memory limit of the control group)",
        "20 GB",
        "unknown",
    ]


def test_a_refusal_names_the_limit_to_raise(monkeypatch):
    """Would catch a user sent to a smaller run who only has to raise a limit of the shell."""
    monkeypatch.setattr(resources, "memory", lambda: Share(10**9, GROUP, 10**10))
    line = f"must be at most 90% of the 1.0 GB available; use fewer, or raise the {GROUP}$"
    with pytest.raises(ValueError, match=line):
        resources.check_memory("arms", 1e9, "use fewer")
    assert resources.available_bytes() == 10**9


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(float(sys.argv[1])),) * 2)
os.execv(sys.executable, [sys.executable, "-m", "fmab_jax", *sys.argv[2:]])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
@pytest.mark.parametrize(
    ("size", "words", "line"),
    [
        ("1.5e9", "--seeds 5", "address space='1.5 GB': must be more than the 2.* that JAX takes"),
        ("5e9", "--seeds 9e6", "memory='.* GB': must be at most 90 % .*, or raise the address sp"),
    ],
)
def test_a_run_that_a_limit_of_the_shell_does_not_allow_is_one_line(size, words, line, tmp_path):
    """Would catch a run that hangs while it compiles, or dies of memory at its end."""
    words = f"run ucb1 --agents 2 --arms 2 --horizon 1000 --out {tmp_path}/x {words}"
    done = fresh.python("-c", LIMITED, size, *words.split())
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert re.match(f"fmab: {line}", done.stderr)
