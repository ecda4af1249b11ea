"""How far something is: a bar on terminals, a line in notebooks without widgets, else lines."""

from __future__ import annotations

import html
import math
import sys
import time
from typing import Any

from fmab_jax.files import error_stream

# A log gets a line so often at most, and a browser another text.
_EVERY_S = {"lines": 10.0, "notebook": 0.2}


def place(wanted: bool | None) -> str:
    """Returns where progress is shown: "notebook", "terminal", "lines", or "" for nowhere.

    Args:
        wanted: None means on terminals and in notebooks.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    terminal, notebook = error_stream().isatty(), getattr(shell, "kernel", None) is not None
    if not (terminal or notebook if wanted is None else wanted):
        return ""
    return "notebook" if notebook else "terminal" if terminal else "lines"


class Bar:
    """How far something is, as people see it."""

    def __init__(self, noun: str, total: int, where: str, *, timed: bool = False) -> None:
        """Begins with nothing done.

        Args:
            noun: What is counted, such as "seeds".
            total: How many it will be in all.
            where: See `place`.
            timed: Whether other work comes first, and the rate is told.
        """
        self.noun, self.total, self.where, self.timed = noun, total, where, timed
        self.done, self.more = 0, ""
        self.began = time.perf_counter()
        self._out, self._last = error_stream(), self.began if where == "lines" else -math.inf
        if where == "notebook":
            from IPython.display import display

            nothing = {"text/plain": "", "text/html": ""}
            self._cell: Any = display(nothing, raw=True, display_id=True)
        if where == "terminal":
            from rich import progress as bars
            from rich.console import Console

            columns = (
                bars.TextColumn("{task.description}"),
                bars.BarColumn(),
                bars.MofNCompleteColumn(),
                bars.TextColumn("{task.fields[rate]}") if timed else bars.TaskProgressColumn(),
                bars.TimeRemainingColumn(),
                bars.TextColumn("{task.fields[more]}"),
            )
            self._bar = bars.Progress(*columns, console=Console(file=self._out), transient=True)
            size = None if timed else total
            self._task = self._bar.add_task(noun, start=not timed, total=size, rate="", more="")

    def __enter__(self) -> Bar:
        if self.where == "terminal":
            self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self.where == "terminal":
            self._bar.stop()
        elif self.where and self.done:
            self.report()

    def say(self, line: str, short: str = "") -> None:
        """Says something in a line; a bar says in its place what is short, if there is."""
        if self.where == "notebook":
            self._show(line)
        elif self.where == "lines":
            # In one piece, so that processes that share it do not mix their lines.
            self._out.write(line + "\n")
        elif self.where and short:
            self._bar.update(self._task, description=short)
        elif self.where:
            self._bar.console.print(line, highlight=False, markup=False)

    def expect(self, total: int) -> None:
        """Is told how many it will be in all."""
        self.total = total
        if self.where == "terminal":
            self._bar.update(self._task, total=total)

    def besides(self, line: str, short: str) -> None:
        """Is told what else is to be said from now on, in a line and beside a bar."""
        self.more = line
        if self.where == "terminal":
            self._bar.update(self._task, more=short)

    def advance(self, number: int) -> None:
        """Is told that so many more are done."""
        self.done += number
        if self.where == "terminal":
            self._bar.start_task(self._task)
            self._bar.update(self._task, description=self.noun, advance=number)
            speed = self._bar.tasks[0].speed
            self._bar.update(self._task, rate=f"{speed:,.0f}/s" if speed else "")
        elif self.where:
            now, full = time.perf_counter(), self.where == "notebook" and self.done >= self.total
            if full or now - self._last >= _EVERY_S[self.where]:
                self._last = now
                self.report()

    def report(self) -> None:
        """Says how far it has come."""
        words = f"{self.done:,} of {self.total:,} {self.noun}"
        if self.timed:
            rate = self.done / max(time.perf_counter() - self.began, 1e-9)
            left = f"{duration(max(0, self.total - self.done) / max(rate, 1e-9))} left"
            if self.where == "notebook" and self.done >= self.total:
                left = f"in {duration(self.done / rate)}"
            words = f"{words}, {rate:,.3g} {self.noun}/s, {left}"
        if self.where == "notebook":
            self._show(words, min(1.0, self.done / max(1, self.total)))
        else:
            self.say(f"{words}, {self.more}" if self.more else words)

    def _show(self, words: str, share: float | None = None) -> None:
        """Writes a notebook's line anew; plain text stands where HTML is not shown."""
        told = f'value="{share:.4f}" max="1" aria-label="progress"' if share is not None else ""
        style = 'style="width: 16em; vertical-align: middle"'
        bar = f"<progress {told} {style}></progress> " if told else ""
        line = {"text/plain": words, "text/html": bar + html.escape(words)}
        self._cell.update(line, raw=True)


def duration(seconds: float) -> str:
    """Writes how long something takes."""
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
