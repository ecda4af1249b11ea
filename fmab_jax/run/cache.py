"""Compiled programs, kept between processes."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import platform
import stat
import sys
import zlib
from collections.abc import Callable, Mapping
from importlib import resources as package_files
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import serialize_executable

from fmab_jax.algorithms.base import Outcome
from fmab_jax.errors import Refusal, refuse
from fmab_jax.files import checked_path, whole_file
from fmab_jax.run.resources import versions

# The rooms whose source decides what a program computes.
_ROOMS = ("core", "algorithms", "run")
# Compiled programs of more bytes than this are removed, those used longest ago first.
_MOST_BYTES = 200_000_000
_PREFIX = "program-"
# Variables of the environment that a compiler reads.
_COMPILER = ("XLA_", "LIBTPU_")
# Settings of JAX that say where programs are kept, not what they compute.
_ELSEWHERE = ("jax_compilation_cache", "jax_persistent_cache", "jax_log", "jax_dump")
_own: Path | None = None


def use_compilation_cache(folder: str | os.PathLike[str] | None = None) -> Path:
    """Has JAX keep compiled programs between processes; one call, before the first simulation.

    Importing fmab_jax changes no setting of JAX; this does, for the whole process. The folder must
    be your own, because programs are loaded from it and run: one that others can write is refused.

    Programs of this package's own algorithms are kept whole as well: the next process that runs one
    on the same kind of processor neither traces nor compiles it.

    Args:
        folder: Where to keep them; made if missing. By default the environment's
            JAX_COMPILATION_CACHE_DIR, else ``fmab_jax`` among this user's caches.

    Returns:
        The folder.

    Raises:
        ValueError: If it cannot be made or written, is somebody else's, or others can write it.

    Example:
        >>> import tempfile
        >>> import fmab_jax as fmab
        >>> fmab.use_compilation_cache(tempfile.mkdtemp()).is_dir()
        True
    """
    path = _default() if folder is None else checked_path("folder", folder)
    with contextlib.suppress(OSError):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.path.isdir(path) or not os.access(path, os.W_OK):
        refuse("folder", str(path), "a folder that can be written", "choose another")
    if os.name == "posix":
        found = os.stat(path)
        if found.st_uid != os.geteuid():
            refuse("folder", str(path), "a folder of your own", "choose another")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            remedy = "chmod go-w, or choose another (programs are loaded from it)"
            refuse("folder", str(path), "a folder that only you can write", remedy)
    jax.config.update("jax_compilation_cache_dir", str(path))
    # JAX keeps what took a second to compile; a second is long for a command.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    global _own
    _own = path
    return path


def compiled(
    function: Callable[..., Outcome],
    arguments: Any,
    static: Any,
    options: Mapping[str, Any],
    tell: Callable[[], None],
) -> Callable[..., Outcome]:
    """Returns a function compiled for the first device; here, or by an earlier process.

    What was compiled under one name came of the same source of this package and versions, under the
    same settings, for the same kind of processor; whoever compiles it anew gets the same bits.
    Functions with parts from elsewhere, whose source nobody vouches for, are traced each time, as
    everything is without `use_compilation_cache`.

    Args:
        function: What a program computes.
        arguments: Shapes and types of what it takes; may hold static parts.
        static: All that it depends on besides, but for source, versions, settings and processor.
        options: Of compilation.
        tell: Is called before a traced function is compiled.
    """
    device = jax.local_devices()[0]
    leaves, structure = jax.tree.flatten(arguments)
    kept = _file((static, structure, leaves, dict(options)), device)
    if kept is not None and (found := _read(kept, arguments, device)) is not None:
        return found
    lowered = jax.jit(function).lower(*arguments)
    tell()
    made = with_options(lowered, options)
    if kept is not None:
        _keep(kept, made)
    return made


def with_options(lowered: Any, options: Mapping[str, Any]) -> Any:
    """Compiles what is traced, with those options that this compiler knows."""
    try:
        return lowered.compile(compiler_options=dict(options) or None)
    except jax.errors.JaxRuntimeError as error:
        if "option" not in str(error):
            raise
        # An option that this compiler does not know: it made programs faster, no more.
        return lowered.compile()


def _read(path: Path, arguments: Any, device: jax.Device) -> Any:
    """Returns what `_keep` wrote; None where that is missing or damaged."""
    try:
        digest, gives, packed = path.read_bytes().split(b"\n", 2)
        if hashlib.sha256(packed).hexdigest().encode() != digest:
            return None
        os.utime(path)
        takes = jax.tree.structure((tuple(arguments), {}))
        program = zlib.decompress(packed), takes, _structure(json.loads(gives))
        return serialize_executable.deserialize_and_load(
            *program, backend=device.client, execution_devices=[device]
        )
    except Exception:  # not there, or whatever a damaged file makes a parser say
        return None


def _keep(path: Path, made: Any) -> None:
    """Writes a compiled function; a full disk costs time only, and so does what cannot be kept."""
    try:
        program, _, gives = serialize_executable.serialize(made)
    except Exception:  # not every kind of device has it
        return
    fields = jax.tree.unflatten(gives, range(gives.num_leaves))._asdict()
    names = [name for name, value in fields.items() if value is not None]
    packed = zlib.compress(program, 1)
    digest = hashlib.sha256(packed).hexdigest().encode()
    with contextlib.suppress(OSError, Refusal), whole_file(path) as temporary:
        temporary.write_bytes(b"\n".join((digest, json.dumps(names).encode(), packed)))
    with contextlib.suppress(OSError):
        _bounded(path.parent)


def _structure(gives: list[str]) -> Any:
    """Returns the structure of an outcome that has these fields."""
    there: Any = {name: 0 if name in gives else None for name in Outcome._fields}
    return jax.tree.structure(Outcome(**there))


def _bounded(folder: Path) -> None:
    """Removes the programs that were used longest ago, where they are too many."""
    found = [(each.stat(), each) for each in folder.glob(_PREFIX + "*")]
    room = _MOST_BYTES
    for about, each in sorted(found, key=lambda pair: -pair[0].st_mtime):
        room -= about.st_size
        if room < 0:
            each.unlink(missing_ok=True)


@functools.cache
def source(*parts: str) -> str:
    """Returns a hash of the source of rooms or files of this package."""
    digest = hashlib.sha256()
    package = Path(str(package_files.files("fmab_jax")))
    for part in parts:
        for path in sorted((package / part).rglob("*.py")) or [package / part]:
            digest.update(path.read_bytes())
    return digest.hexdigest()


class _Foreign(Exception):
    """A program has a part that is not this package's."""


def _file(static: Any, device: jax.Device) -> Path | None:
    """Returns where a program is kept; None if it is not."""
    if _own is None or _asked() != str(_own):
        return None
    try:
        parts = _spelled(static), _settings(), source(*_ROOMS), repr(versions()), _machine(device)
    except _Foreign:
        return None
    return _own / f"{_PREFIX}{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"


def _machine(device: jax.Device) -> str:
    """Returns what machine code depends on: the processor, the device, the compiler's settings."""
    said = {name: value for name, value in os.environ.items() if name.startswith(_COMPILER)}
    kind = device.platform, device.device_kind, device.client.platform_version
    return repr((*kind, _processor(), sorted(said.items())))


@functools.cache
def _processor() -> str:
    """Returns the processor's kind and what it can do; a folder may be shared by many."""
    found = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        told = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
        found += [each for each in told if each.startswith(("model name", "flags", "Features"))]
    return repr(found)


def _asked() -> str | None:
    """Returns where JAX keeps programs; a caller may have changed it since."""
    return jax.config.values.get("jax_compilation_cache_dir")


def _settings() -> str:
    """Returns the settings of JAX that a program may depend on."""
    said = sorted(jax.config.values.items())
    return repr([(name, value) for name, value in said if not name.startswith(_ELSEWHERE)])


def _spelled(value: Any) -> str:
    """Returns all that a static part of a program says, as a text of its own.

    Raises:
        _Foreign: If it, or a part of it, is not this package's or a plain value.
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str, bytes) or isinstance(value, np.dtype):
        return f"{kind.__name__}:{value!r}"
    if kind in (tuple, list):
        return f"({', '.join(map(_spelled, value))})"
    if kind is dict:
        return _spelled([(key, value[key]) for key in sorted(value)])
    if isinstance(value, jax.ShapeDtypeStruct):
        return f"{value.shape}{value.dtype}{value.sharding}"
    if isinstance(value, jax.tree_util.PyTreeDef):
        return _spelled([value.node_data(), *value.children()])
    if isinstance(value, type):
        return _ours(value)
    if dataclasses.is_dataclass(value) or hasattr(value, "_asdict"):
        names = getattr(kind, "_fields", None) or [each.name for each in dataclasses.fields(value)]
        return f"{_ours(kind)}{_spelled([(name, getattr(value, name)) for name in names])}"
    raise _Foreign(kind)


def _ours(kind: type) -> str:
    where, name = kind.__module__, kind.__qualname__
    plain = where == "builtins" or where.partition(".")[0] == "fmab_jax" and "<" not in name
    if not plain:
        raise _Foreign(kind)
    return f"{where}.{name}"


def _default() -> Path:
    if chosen := os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return checked_path("JAX_COMPILATION_CACHE_DIR", chosen)
    if sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        caches = "~/Library/Caches"
    else:
        caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "fmab_jax"
