"""The command line ``fmab``: finds the command, runs it and chooses the exit status."""

from __future__ import annotations

import gc
import io
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NoReturn, get_args, get_type_hints

from fmab_jax import __version__, cli
from fmab_jax.cli.jax_messages import quieten_jax
from fmab_jax.cli.options import (
    Answered,
    Call,
    Command,
    answer,
    choose,
    format_refusal,
    parse,
    split_plugins,
    visible,
    wants_help,
)
from fmab_jax.cli.signals import handle_signals
from fmab_jax.errors import Damaged, Refusal, describe_error, is_user_error, locate_error
from fmab_jax.files import drop_unwritable_errors, error_stream, hold_standard_streams
from fmab_jax.lazy_imports import hide_packages

# Modules of this folder that are not commands, and the first commands in help.
_SHARED = ("__init__", "jax_messages", "main", "options", "printing", "signals", "study_options")
_FIRST = ("run", "sweep", "plan", "show", "plot", "compare", "report")
# Packages that xarray and pandas import in more than a second, and the words that need them.
_OPTIONAL = {
    ("dask", "distributed"): r"--(scheduler|plugin)",
    ("pyarrow",): r"\.(parquet|toml)|--plugin",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        arguments: The words after ``fmab``; by default those of this process. Only then JAX's
            compilation cache is switched on, and Ctrl-C, SIGTERM or an error end the process.

    Returns:
        The exit status: 0; 2 for bad input, 1 for a disk, file or memory that gives out, and 130
        after Ctrl-C, each with one line on standard error; 3 for a plan that is not decided.
    """
    calls: list[Call] = []
    exit_lock = threading.Lock()

    def stop(number: int) -> int:
        # Only one thread prints the line: this one or the one that watches signals.
        if exit_lock.acquire(timeout=1.0):
            _fail(0, f"stopped; {_describe_outputs(calls)}")
        return 128 + number

    if arguments is not None:
        try:
            return _main(list(arguments), calls, ours=False)
        except KeyboardInterrupt:
            return stop(signal.SIGINT)
    hold_standard_streams()
    with handle_signals(stop):
        try:
            status = _main(sys.argv[1:], calls, ours=True)
            if status or any(not thread.daemon for thread in threading.enumerate()[1:]):
                _exit(status)
        except KeyboardInterrupt as error:
            # A normal exit would free a half-compiled program, which may crash.
            _exit(stop(getattr(error, "signal", signal.SIGINT)))
        finally:
            drop_unwritable_errors()
    return status


def _exit(status: int) -> NoReturn:
    """Ends the process at once; the interpreter would wait for compilations."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(status)


def _main(words: list[str], calls: list[Call], *, ours: bool) -> int:
    """Runs a command and adds it to calls; returns the exit status."""
    command = None
    if ours:
        quieten_jax()
        # Imports and traces make many objects and little garbage.
        gc.set_threshold(100_000, 20, 100)
    try:
        module, command = find(words)
        options, values = parse(command)
        call = Call(options, command, words, values, [], [])
        calls.append(call)
        if ours:
            if isinstance(sys.stdout, io.TextIOWrapper):
                # A path may have letters outside the encoding of the output.
                sys.stdout.reconfigure(errors="backslashreplace")
            _hide_unused(words)
            _use_compilation_cache()
        status = module.execute(call) or 0
        # An error of writing must arise here, not while the interpreter ends.
        sys.stdout.flush()
        return int(status)
    except Answered:
        return 0
    except Refusal as error:
        line = format_refusal(error, command)
        has_files = any(call.files for call in calls)
        return _fail(2, f"{line}; {_describe_outputs(calls)}" if has_files else line)
    except Damaged as error:
        return _fail(1, f"{error}; run the sweep again: it mends what is damaged")
    except BrokenPipeError:
        # The reader of the output is gone; the files are complete.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        prefix = f"{error.filename}: " if error.filename else ""
        return _fail(1, f"{prefix}{error.strerror or error}; {_describe_outputs(calls)}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        exhausted = isinstance(error, RuntimeError) and "RESOURCE_EXHAUSTED" in str(error)
        if isinstance(error, MemoryError) or exhausted:
            line = "out of memory; use fewer agents, arms or times"
            return _fail(1, f"{line}; {_describe_outputs(calls)}")
        line = _describe_plugin_error(error) or _describe_variable_error(error)
        if not line:
            raise
        return _fail(2, f"{line}; {_describe_outputs(calls)}")


def _hide_unused(words: Sequence[str]) -> None:
    """Hides packages that other packages would import, from a command that does not need them."""
    for names, pattern in _OPTIONAL.items():
        if not any(re.search(pattern, word, re.I) for word in words):
            hide_packages(*names)


def _describe_plugin_error(error: BaseException) -> str:
    """Returns the line for an error of a plug-in; "" for other errors."""
    plugins = sys.modules.get("fmab_jax.parts.plugins")
    file = plugins.plugin_of(error) if plugins and is_user_error(error) else ""
    line = f"{file}: must return, not end in {describe_error(error)}{locate_error(error)}"
    return line if file else ""


def _describe_variable_error(error: BaseException) -> str:
    """Returns the line for an error that names a JAX variable of the environment; else ""."""
    for name, value in os.environ.items():
        if name.startswith("JAX_") and name.lower() in str(error).lower():
            reason = describe_error(error)
            return f"{name} {visible(value)}: must be what JAX takes; change or unset it ({reason})"
    return ""


def commands() -> dict[str, Path]:
    """Returns the commands by name with their files; the first line of a file is its summary."""
    files = {file.stem: file for file in sorted(Path(__file__).parent.glob("*.py"))}
    return {name: files[name] for name in dict.fromkeys((*_FIRST, *files)) if name not in _SHARED}


def find(words: list[str]) -> tuple[ModuleType, Command]:
    """Finds the module and the command of some words.

    It loads plug-ins first, so that words may name their algorithms.

    Raises:
        Refusal: If the words name no command.
        Answered: If they ask for help or the version.
    """
    if words[:1] == ["--version"]:
        print(f"fmab {__version__}")
        raise Answered
    plugins, arguments = split_plugins(words)
    if wants_help(arguments) and arguments[:1] in ([], ["-h"], ["--help"]):
        texts = {name: file.read_text("utf-8")[3:] for name, file in commands().items()}
        command_list = "\n".join(
            f"  {name:<11} {text.splitlines()[0]}" for name, text in texts.items()
        )
        answer("fmab", "COMMAND [options]", f"{cli.__doc__}\nCommands:\n{command_list}")
    name = choose(arguments[0] if arguments else None, commands(), "fmab")
    module = import_module(f"fmab_jax.cli.{name}")
    for plugin in plugins:
        from fmab_jax.algorithms.base import load_plugin

        try:
            load_plugin(plugin)
        except Refusal as error:
            line = str(error).replace(f"={plugin!r}: ", ": ", 1).removeprefix("plugin: ")
            raise Refusal.line(f"--plugin {visible(plugin)}: {line}") from None
    if command := getattr(module, "command", None):
        return module, command(arguments[1:])
    # The type of the call states the options, such as Call[NoOptions].
    (options,) = get_args(get_type_hints(module.execute)["call"])
    return module, Command(f"fmab {name}", options, str(module.__doc__), arguments[1:])


def _fail(status: int, line: str) -> int:
    error_stream().write(f"fmab: {' '.join(line.split())}\n")
    return status


def _describe_outputs(calls: Sequence[Call]) -> str:
    """Describes the files and stores that a stopped command leaves."""
    lines = []
    for call in calls:
        if call.files:
            lines.append(f"whole files written: {', '.join(map(str, call.files))}")
        if call.stores:
            lines.append(f"what is computed is kept; go on with: fmab {shlex.join(call.words)}")
    return "; ".join(lines) or "nothing written"


def _use_compilation_cache() -> None:
    """Caches compiled programs on disk; without a cache runs only take longer."""
    from fmab_jax.run.cache import use_compilation_cache

    try:
        use_compilation_cache()
    except Refusal as error:
        import jax

        jax.config.update("jax_compilation_cache_dir", None)
        if error.field.startswith("JAX_"):
            _fail(0, f"{error}; until then programs are compiled in every run")
