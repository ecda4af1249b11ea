"""Compiled programs, kept between processes."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import io
import os
import pickle
import stat
from collections.abc import Callable
from importlib import resources as package_files
from pathlib import Path
from typing import Any

import jax
from jax import export

from fmab_jax.core.trials import Outcome
from fmab_jax.errors import Refusal, refuse
from fmab_jax.files import check_path, whole_file
from fmab_jax.run.resources import versions

ENGINE: tuple[str, ...] = (
    *("core", "draws", "layouts", "algorithms", "run"),
    *("accounts.py", "elimination.py"),
)
"""The rooms and files whose source decides what a program computes."""
# Traced programs of more bytes than this are removed, those used longest ago first.
_MOST_BYTES = 200_000_000
_PREFIX = "traced-"
# Settings of JAX that say where programs are kept, not what they compute.
_ELSEWHERE = ("jax_compilation_cache", "jax_persistent_cache", "jax_log", "jax_dump")
_own: Path | None = None


def use_compilation_cache(folder: str | os.PathLike[str] | None = None) -> Path:
    """Has JAX keep compiled programs between processes; one call, before the first simulation.

    Importing fmab_jax changes no setting of JAX; this does, for the whole process. The folder must
    be your own, because programs are loaded from it and run: one that others can write is refused.

    Programs of this package's own algorithms are kept as they were traced as well: the next process
    that runs one neither traces nor compiles it.

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
    path = _default() if folder is None else check_path("folder", folder)
    with contextlib.suppress(OSError):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.path.isdir(path) or not os.access(path, os.W_OK):
        refuse("folder", str(path), "a folder that can be written", "choose another")
    if os.name == "posix":
        about = os.stat(path)
        if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            remedy = "chmod go-w, or choose another (programs are loaded from it)"
            refuse("folder", str(path), "a folder that only you can write", remedy)
    jax.config.update("jax_compilation_cache_dir", str(path))
    # JAX keeps what took a second to compile; a second is long for a command.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    global _own
    _own = path
    return path


def lowered(function: Callable[..., Outcome], arguments: Any, static: Any) -> jax.stages.Lowered:
    """Returns a function as the compiler takes it; traced here, or by an earlier process.

    What was traced under one name came of the same source of this package and versions, under the
    same settings of JAX; whoever traces it anew gets the same bits. Functions with parts from
    elsewhere, whose source nobody vouches for, are traced each time, as everything is without
    `use_compilation_cache`.

    Args:
        function: What a program computes.
        arguments: Shapes and types of what it takes; may hold static parts.
        static: All that it depends on besides, but for source, versions and settings.
    """
    leaves, structure = jax.tree.flatten(arguments)
    path = _file((static, structure, leaves))
    if path is None:
        return jax.jit(function).lower(*arguments)
    exported = _read(path)
    if exported is None:

        def flat(*leaves: Any) -> dict[str, Any]:
            outcome = function(*jax.tree.unflatten(structure, leaves))
            return {name: x for name, x in outcome._asdict().items() if x is not None}

        exported = export.export(jax.jit(flat))(*leaves)
        _keep(path, exported)

    def one_batch(*arguments: Any) -> Outcome:
        fields: Any = dict.fromkeys(Outcome._fields)
        return Outcome(**fields | exported.call(*jax.tree.leaves(arguments)))

    return jax.jit(one_batch).lower(*arguments)


def _read(path: Path) -> export.Exported | None:
    """Returns what `_keep` wrote; None where that is missing or damaged."""
    try:
        digest, program = path.read_bytes().split(b"\n", 1)
        if hashlib.sha256(program).hexdigest().encode() != digest:
            return None
        os.utime(path)
        return pickle.loads(program)
    except Exception:  # not there, or whatever a damaged file makes a parser say
        return None


def _keep(path: Path, exported: export.Exported) -> None:
    """Writes a traced function; a full disk costs time only."""
    # Without what differentiates it: that is a local function, and jax.export's own format needs
    # a library more.
    program = pickle.dumps(dataclasses.replace(exported, _get_vjp=None))
    digest = hashlib.sha256(program).hexdigest().encode()
    with contextlib.suppress(OSError, Refusal), whole_file(path) as temporary:
        temporary.write_bytes(digest + b"\n" + program)
    with contextlib.suppress(OSError):
        _bounded(path.parent)


def _bounded(folder: Path) -> None:
    """Removes the traced programs that were used longest ago, where they are too many."""
    found = [(each.stat(), each) for each in folder.glob(_PREFIX + "*")]
    room = _MOST_BYTES
    for about, each in sorted(found, key=lambda pair: -pair[0].st_mtime):
        room -= about.st_size
        if room < 0:
            each.unlink(missing_ok=True)


@functools.cache
def source_digest(*parts: str) -> str:
    """Returns a hash of the source of rooms or files of this package."""
    digest = hashlib.sha256()
    package = Path(str(package_files.files("fmab_jax")))
    for part in parts:
        for path in sorted((package / part).rglob("*.py")) or [package / part]:
            digest.update(path.read_bytes())
    return digest.hexdigest()


class _Statement(pickle.Pickler):
    """Writes all that a program depends on; parts that are not this package's raise."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        # Nothing is written as "the same object as before": equal parts have equal bytes.
        self.fast = True

    def reducer_override(self, value: Any) -> Any:
        """Returns how a part is written."""
        if isinstance(value, jax.tree_util.PyTreeDef):
            return list, ([value.node_data(), *value.children()],)
        if isinstance(value, jax.ShapeDtypeStruct):
            return str, (f"{value.shape}{value.dtype}{value.sharding}",)
        if hasattr(value, "__qualname__"):
            # Classes and functions are written by name.
            if value.__module__.partition(".")[0] not in ("builtins", "fmab_jax", "numpy"):
                raise pickle.PicklingError(value)
        elif dataclasses.is_dataclass(value):
            fields = dataclasses.fields(value)
            return type(value), tuple(getattr(value, field.name) for field in fields)
        return NotImplemented


def _statement(value: Any) -> bytes | None:
    """Returns bytes that state a value; None for a value with parts from elsewhere."""
    stream = io.BytesIO()
    try:
        _Statement(stream).dump(value)
    except (pickle.PicklingError, AttributeError, TypeError):  # the latter of local functions
        return None
    return stream.getvalue()


def _file(static: Any) -> Path | None:
    """Returns where a program is kept; None if it is not."""
    if _own is None or _asked() != str(_own):
        return None
    settings = [(n, x) for n, x in jax.config.values.items() if not n.startswith(_ELSEWHERE)]
    whole = static, repr(sorted(settings)), source_digest(*ENGINE), versions()
    if (statement := _statement(whole)) is None:
        return None
    return _own / f"{_PREFIX}{hashlib.sha256(statement).hexdigest()[:32]}"


def _asked() -> str | None:
    """Returns where JAX keeps programs; a caller may have changed it since."""
    return jax.config.values.get("jax_compilation_cache_dir")


def _default() -> Path:
    if chosen := os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return check_path("JAX_COMPILATION_CACHE_DIR", chosen)
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "fmab_jax"
