"""The one line in which a call is refused."""

import re

import pytest

from fmab_jax.errors import Refusal


def refused(call, *given, **named):
    """Returns the line of the refusal that a call must end in."""
    with pytest.raises(Refusal) as caught:
        call(*given, **named)
    line = str(caught.value)
    assert "\n" not in line
    return line


def refuses(words, call, *given, **named):
    """Asserts that a call is refused in a line in which a pattern is found."""
    line = refused(call, *given, **named)
    assert re.search(words, line), line
