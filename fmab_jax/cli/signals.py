"""Ctrl-C and SIGTERM end a command at once, with one line."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType

from fmab_jax.files import error_stream, is_writing

# Seconds for a command to end by itself, and for an open file to be completed.
_END_S, _WRITE_S = 1.0, 8.0


class Stopped(KeyboardInterrupt):
    """Ctrl-C or SIGTERM.

    Attributes:
        signal: Its number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


@contextmanager
def handle_signals(end: Callable[[int], object]) -> Iterator[None]:
    """Makes signals raise `Stopped`, and ends the process if that takes too long.

    Python raises between two bytecodes, so not while the main thread compiles a program or runs a
    batch, and drops what is raised within garbage collection. A second signal ends the process at
    once.

    Args:
        end: Prints the last line; called with the number of the signal, in another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread gets signals.
        return
    # Shells make background commands ignore Ctrl-C.
    end_signals = (signal.SIGINT, signal.SIGTERM)
    numbers = [number for number in end_signals if signal.getsignal(number) is not signal.SIG_IGN]
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    is_stopping = threading.Event()

    def stop(number: int, _: FrameType | None) -> None:
        if not is_stopping.is_set():
            is_stopping.set()
            raise Stopped(number)

    def notice_dropped(dropped: sys.UnraisableHookArgs) -> None:
        if not isinstance(dropped.exc_value, Stopped):
            old_hook(dropped)

    old_hook, sys.unraisablehook = sys.unraisablehook, notice_dropped
    old_handlers = {number: signal.signal(number, stop) for number in numbers}
    listener = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=(receiver, numbers, end), daemon=True)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(listener)
        for number, handler in old_handlers.items():
            signal.signal(number, handler)
        sys.unraisablehook = old_hook
        sender.close()


def _watch(receiver: socket.socket, numbers: Collection[int], end: Callable[[int], object]) -> None:
    """Waits for a signal, then ends the process after a second signal or a time limit.

    Args:
        receiver: Socket that gets the number of every signal, also while the main thread is busy.
        numbers: Numbers of the signals that end the process.
        end: See `handle_signals`.
    """
    first, start = 0, 0.0
    with receiver:
        while True:
            try:
                data = receiver.recv(1)
            except TimeoutError:
                data = b"\0"
            if not data:
                return
            is_repeated = data[0] in numbers and first
            if data[0] in numbers and not first:
                first, start = data[0], time.monotonic()
                receiver.settimeout(0.05)
            elapsed = time.monotonic() - start
            may_wait = elapsed < (_WRITE_S if is_writing() else _END_S)
            if first and (is_repeated or not may_wait):
                if error_stream().isatty():
                    error_stream().write("\x1b[?25h\n")  # a bar has hidden the cursor
                end(first)
                os._exit(128 + first)
