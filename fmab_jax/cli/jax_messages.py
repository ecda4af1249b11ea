"""What JAX and its compiler say by themselves: one calm line each."""

from __future__ import annotations

import logging
import os

from fmab_jax.errors import describe_error
from fmab_jax.files import error_stream


def quieten_jax() -> None:
    """Shortens messages of JAX; call it before JAX is imported.

    Where the user asked JAX or XLA for messages, by a variable, they stay as they are.
    """
    # A process that has imported JAX hands on the level 1.
    if "JAX_LOGGING_LEVEL" in os.environ or os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1") != "1":
        return
    # XLA logs a compilation of two minutes as an error.
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    logging.getLogger("jax._src.xla_bridge").addFilter(_shorten_message)


def _shorten_message(record: logging.LogRecord) -> bool:
    """Shows a message about a backend in one line; returns whether to show it as it is."""
    if record.levelno < logging.WARNING:
        return True
    error = record.exc_info[1] if record.exc_info else None
    # Some messages have a place for a word, and no word.
    line = f"JAX: {record.getMessage() if record.args else record.msg}"
    line += f" ({describe_error(error)})" if error else ""
    error_stream().write(f"fmab: {' '.join(line.split())}\n")
    return False
