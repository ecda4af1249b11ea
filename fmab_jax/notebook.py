"""Progress in notebooks: one line with a bar, by what every notebook has, without widgets."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

# A browser is told so often at most.
_EVERY_S = 0.2


def is_notebook() -> bool:
    """Tells whether this process is the kernel of a notebook, which shows what is displayed."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class Line:
    """A line of an output cell that is written anew, with a bar; plain text where HTML is not."""

    def __init__(self) -> None:
        from IPython.display import display

        self._handle: Any = display(_Shown("", None), display_id=True)
        self._last = -_EVERY_S

    def show(self, words: str, share: float | None = None, *, now: bool = False) -> None:
        """Shows words, and a bar where a share of the whole is known.

        Args:
            words: What is going on.
            share: In [0, 1].
            now: Whether it must be shown, however little time has passed.
        """
        moment = time.monotonic()
        if now or moment - self._last >= _EVERY_S:
            self._last = moment
            self._handle.update(_Shown(words, share))


class _Shown:
    """What a line shows."""

    def __init__(self, words: str, share: float | None) -> None:
        self.words, self.share = words, share

    def __repr__(self) -> str:
        return self.words

    def _repr_html_(self) -> str:
        words = escape(self.words)
        if self.share is None:
            return words
        told = f'value="{self.share:.4f}" max="1" aria-label="progress"'
        return f'<progress {told} style="width: 16em; vertical-align: middle"></progress> {words}'
