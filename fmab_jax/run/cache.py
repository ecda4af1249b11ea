"""A cache of compiled programs between processes."""

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
from types import NotImplementedType

import jax
from jax import Array, export

from fmab_jax.errors import Refusal, refuse
from fmab_jax.files import check_path, whole_file
from fmab_jax.parts.trials import Outcome
from fmab_jax.run.resources import versions

ENGINE: tuple[str, ...] = (
    *("sampling", "parts", "records", "draws", "layouts", "algorithms", "run"),
    *("accounts.py", "elimination.py", "equations.py"),
)
"""Packages and files whose source decides what a program computes."""
# Above this size, the least recently used traced programs are removed.
_MOST_BYTES = 200_000_000
_PREFIX = "traced-"
# Settings of JAX about the place of programs and logs, which change no result.
_FOLDER_SETTINGS = ("jax_compilation_cache", "jax_persistent_cache", "jax_log", "jax_dump")
_folder: Path | None = None


def use_compilation_cache(folder: str | os.PathLike[str] | None = None) -> Path:
    """Keeps compiled programs between processes; call it once, before the first simulation.

    Importing fmab_jax changes no setting of JAX; this does, for the whole process. The folder must
    be your own, because programs are loaded from it and run: one that others can write is refused.

    Programs of this package's own algorithms are kept as they were traced as well: the next process
    that runs one neither traces nor compiles it. If JAX warns that it cannot read an entry, delete
    the files of the folder that end in ``-cache``.

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
    path = _find_default() if folder is None else check_path("folder", folder)
    with contextlib.suppress(OSError):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.path.isdir(path) or not os.access(path, os.W_OK):
        refuse("folder", str(path), "a folder that can be written", "choose another")
    if os.name == "posix":
        status = os.stat(path)
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            remedy = "chmod go-w, or choose another (programs are loaded from it)"
            refuse("folder", str(path), "a folder that only you can write", remedy)
    jax.config.update("jax_compilation_cache_dir", str(path))
    # JAX keeps what took a second to compile; a second is long for a command.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    global _folder
    _folder = path
    return path


def lower_program(
    function: Callable[..., Outcome], arguments: tuple[object, ...], static: object
) -> jax.stages.Lowered:
    """Lowers a function for the compiler; traces it here, or reads the trace of another process.

    The file name of a trace is a digest of the source of this package, the versions and the
    settings of JAX, so a new trace gives the same bits. Functions with parts of other packages,
    whose source has no digest, are traced each time; without `use_compilation_cache` all functions
    are.

    Args:
        function: The function of a program.
        arguments: Shapes and types of its arguments; may hold static parts.
        static: Everything else that it depends on, except source, versions and settings.
    """
    shapes, structure = jax.tree.flatten(arguments)
    path = _find_program((static, structure, shapes))
    if path is None:
        return jax.jit(function).lower(*arguments)
    exported = _read_program(path)
    if exported is None:

        def flat(*arrays: Array) -> dict[str, Array]:
            outcome = function(*jax.tree.unflatten(structure, arrays))
            return {name: x for name, x in outcome._asdict().items() if x is not None}

        exported = export.export(jax.jit(flat))(*shapes)
        _write_program(path, exported)

    def one_batch(*arguments: object) -> Outcome:
        values = exported.call(*jax.tree.leaves(arguments))
        return Outcome._make(map(values.get, Outcome._fields))

    return jax.jit(one_batch).lower(*arguments)


def _read_program(path: Path) -> export.Exported | None:
    """Reads a function that `_write_program` wrote; None if it is missing or damaged."""
    try:
        digest, program = path.read_bytes().split(b"\n", 1)
        if hashlib.sha256(program).hexdigest().encode() != digest:
            return None
        os.utime(path)
        return pickle.loads(program)
    except Exception:  # a damaged file may raise any error in a parser
        return None


def _write_program(path: Path, exported: export.Exported) -> None:
    """Writes a traced function; ignores a full disk."""
    # Without the function for gradients, which is local and cannot be pickled. The format of
    # jax.export needs another library.
    program = pickle.dumps(dataclasses.replace(exported, _get_vjp=None))
    digest = hashlib.sha256(program).hexdigest().encode()
    with contextlib.suppress(OSError, Refusal), whole_file(path) as temporary:
        temporary.write_bytes(digest + b"\n" + program)
    with contextlib.suppress(OSError):
        _remove_oldest(path.parent)


def _remove_oldest(folder: Path) -> None:
    """Removes the least recently used traced programs above the limit."""
    files = [(path.stat(), path) for path in folder.glob(_PREFIX + "*")]
    free_bytes = _MOST_BYTES
    for status, path in sorted(files, key=lambda pair: -pair[0].st_mtime):
        free_bytes -= status.st_size
        if free_bytes < 0:
            path.unlink(missing_ok=True)


@functools.cache
def source_digest(*parts: str) -> str:
    """Returns a hash of the source of packages or files of fmab_jax."""
    digest = hashlib.sha256()
    package = Path(str(package_files.files("fmab_jax")))
    for part in parts:
        for path in sorted((package / part).rglob("*.py")) or [package / part]:
            digest.update(path.read_bytes())
    return digest.hexdigest()


class _Serializer(pickle.Pickler):
    """Serialises everything that a program depends on; raises for parts of other packages."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        # No references to repeated objects, so that equal parts have equal bytes.
        self.fast = True

    def reducer_override(
        self, value: object
    ) -> tuple[Callable[..., object], tuple[object, ...]] | NotImplementedType:
        """Returns the serialised form of a part."""
        if isinstance(value, jax.tree_util.PyTreeDef):
            return list, ([value.node_data(), *value.children()],)
        if isinstance(value, jax.ShapeDtypeStruct):
            return str, (f"{value.shape}{value.dtype}{value.sharding}",)
        if hasattr(value, "__qualname__"):
            # Classes and functions are serialised by name.
            if value.__module__.partition(".")[0] not in ("builtins", "fmab_jax", "numpy"):
                raise pickle.PicklingError(value)
        elif dataclasses.is_dataclass(value):
            fields = dataclasses.fields(value)
            return type(value), tuple(getattr(value, field.name) for field in fields)
        return NotImplemented


def _serialize(value: object) -> bytes | None:
    """Returns a value as bytes; None for a value with parts of other packages."""
    stream = io.BytesIO()
    try:
        _Serializer(stream).dump(value)
    except (pickle.PicklingError, AttributeError, TypeError):  # local functions raise the last one
        return None
    return stream.getvalue()


def _find_program(static: object) -> Path | None:
    """Returns the file of a program; None if it has none."""
    if _folder is None or _get_jax_folder() != str(_folder):
        return None
    settings = [(n, x) for n, x in jax.config.values.items() if not n.startswith(_FOLDER_SETTINGS)]
    whole = static, repr(sorted(settings)), source_digest(*ENGINE), versions()
    if (statement := _serialize(whole)) is None:
        return None
    return _folder / f"{_PREFIX}{hashlib.sha256(statement).hexdigest()[:32]}"


def _get_jax_folder() -> str | None:
    """Returns the folder in JAX's settings, which the user may have changed."""
    return jax.config.values.get("jax_compilation_cache_dir")


def _find_default() -> Path:
    if folder := os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return check_path("JAX_COMPILATION_CACHE_DIR", folder)
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "fmab_jax"
