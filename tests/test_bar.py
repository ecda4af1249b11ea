"""A bar tells how far something is: on a terminal, in lines, or not at all."""

import io
import re
import sys

import pytest

import fmab_jax as fmab
from fmab_jax import progress
from fmab_jax.progress import Bar, place


class Terminal(io.StringIO):
    """A terminal, in memory."""

    def isatty(self):
        """Says that it is one."""
        return True


def last(text):
    """Returns the last line that a terminal shows, without its bar."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    line = plain.replace("\r", "\n").rstrip().rpartition("\n")[2]
    return " ".join(re.split(r"[\s━╸╺]+|-{5,}", line)).replace("  ", " ")


@pytest.mark.parametrize("timed", [False, True])
def test_a_bar_tells_how_far_it_is(timed, monkeypatch):
    """Would catch a bar without numbers, one that still says "compiling", or is left behind."""
    heard = Terminal()
    monkeypatch.setattr(sys, "stderr", heard)
    monkeypatch.setenv("COLUMNS", "120")
    with Bar("seeds", 10, place(None), timed=timed) as bar:
        bar.expect(20)
        bar.say("long", "compiling 1/1")
        bar._bar.refresh()
        assert re.match(r"compiling 1/1\s+0/20", last(heard.getvalue()))
        bar.advance(8)
        bar.besides("not here", "more")
        bar.say("a line [b] of its own")
        bar._bar.refresh()
        end = last(heard.getvalue())
        assert re.match(r"seeds\s+8/20", end) and end.endswith("more")
        assert ("40%" in end) != timed
    text = heard.getvalue()
    assert "a line [b] of its own\n" in text.replace("\r", "") and "not here" not in text
    # The last thing is that the line is wiped out.
    assert text.endswith("\x1b[2K")


def test_lines_come_now_and_then(monkeypatch):
    """Would catch a log of a line for each step, and a rate since the last line: 6 in 12 s."""
    clock, heard = [100.0], io.StringIO()
    monkeypatch.setattr(progress.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", heard)
    with Bar("trials", 10, "lines", timed=True) as bar:
        bar.besides("more", "not here")
        for _ in range(6):
            clock[0] += 2
            bar.advance(1)
    assert heard.getvalue().splitlines() == [
        "5 of 10 trials, 0.5 trials/s, 10 s left, more",
        "6 of 10 trials, 0.5 trials/s, 8 s left, more",
    ]


@pytest.mark.parametrize("batch, lines", [(8, ["24 of 24 seeds"]), (32, [])])
def test_a_run_tells_in_lines_where_there_is_no_terminal(batch, lines, monkeypatch):
    """Would catch a run of several batches that is silent though asked, or one of a single batch
    that is not."""
    heard = io.StringIO()
    monkeypatch.setattr(sys, "stderr", heard)
    problem = fmab.Problem.uniform(agents=2, arms=2)
    fmab.simulate(fmab.ucb1(), problem, 50, 24, times=5, batch=batch, progress=True)
    assert heard.getvalue().splitlines() == lines


def test_nobody_who_does_not_look_is_told(monkeypatch):
    """Would catch a log that is filled unasked, and a terminal that stays empty."""
    for stream, shown in ((io.StringIO(), "lines"), (Terminal(), "terminal")):
        monkeypatch.setattr(sys, "stderr", stream)
        asked = {wanted: place(wanted) for wanted in (None, False, True)}
        assert asked == {None: "" if shown == "lines" else shown, False: "", True: shown}
        with Bar("seeds", 10, "") as bar:
            bar.say("a line")
            bar.advance(10)
        assert stream.getvalue() == ""
