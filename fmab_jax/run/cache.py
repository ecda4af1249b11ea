"""Compiled programs, kept between processes."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path

import jax

from fmab_jax.errors import refuse
from fmab_jax.files import checked_path


def use_compilation_cache(folder: str | os.PathLike[str] | None = None) -> Path:
    """Has JAX keep compiled programs between processes; one call, before the first simulation.

    Importing fmab_jax changes no setting of JAX; this does, for the whole process. The folder must
    be your own, because programs are loaded from it and run: one that others can write is refused.

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
    return path


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
