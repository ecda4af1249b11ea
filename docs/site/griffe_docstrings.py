"""Lets Griffe read the docstrings of this project as they are meant."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    """Puts two things into words that Griffe knows, before docstrings are parsed."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Looks at one object."""
        if obj.is_alias or not obj.docstring:
            return
        # The block `Example:` is code, as `Examples:` is.
        text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.M)
        # What stands before a colon in `Returns:` is no type; the annotation is.
        if obj.is_function and obj.returns is not None:
            text = re.sub(
                r"^(Returns:\n +)(?=\S)", lambda m: f"{m[1]}{obj.returns}: ", text, flags=re.M
            )
        obj.docstring.value = text
