"""The options of a table of ratings that are numbers or words, checked."""

from __future__ import annotations

from typing import Any, NamedTuple

from fmab_jax.errors import NONE, choice, count, real, refuse

_ENOUGH = (1, 2**40, "give the fewest ratings that are enough")
# The least and the largest of each number, and the remedy; those of `_OR_NONE` may be left out.
_COUNTS = {
    "groups": (2, 10**4, f"give the number of groups, or {NONE} for an agent for each value"),
    "groups_seed": (0, 2**63 - 1, "give a seed of the clustering"),
    "most_arms": (2, 10**6, f"give the number of arms to keep, or {NONE} for all"),
    **dict.fromkeys(("least_per_agent", "least_per_arm", "least_per_cell"), _ENOUGH),
}
_OR_NONE = ("groups", "most_arms")


class Options(NamedTuple):
    """What is asked for, as `fmab_jax.ratings.from_table` takes it."""

    groups: Any
    groups_seed: Any
    most_arms: Any
    least_per_agent: Any
    least_per_arm: Any
    least_per_cell: Any
    smoothing: Any
    toward: Any
    fill: Any
    split: Any
    uneven_rows: Any

    def checked(self) -> Options:
        """Returns the options, each refused where it is out of its range."""
        numbers: dict[str, float] = {}
        for name, (low, high, remedy) in _COUNTS.items():
            given = getattr(self, name)
            if given is not None or name not in _OR_NONE:
                numbers[name] = count(name, given, low, high, remedy)
        remedy = "give the number of ratings to add to every cell; 0 adds none"
        numbers["smoothing"] = real("smoothing", self.smoothing, 0.0, 1e9, remedy)
        choice("toward", self.toward, ("arm", "uniform"), "choose what added ratings are like")
        if self.fill is not None:
            remedy = f"{NONE} refuses cells without data"
            choice("fill", self.fill, ("arm",), remedy, f"'arm' or {NONE}")
        choice("uneven_rows", self.uneven_rows, ("refuse", "drop"), "choose what becomes of them")
        if self.split is not None and not (isinstance(self.split, str) and self.split):
            allowed = f"a text that separates parts, or {NONE}"
            refuse("split", self.split, allowed, "'|' is usual")
        return self._replace(**numbers)

    @property
    def smoothing_words(self) -> str:
        """The smoothing in words."""
        if not self.smoothing:
            return "none: plain frequencies"
        like = "like the arm's by all agents" if self.toward == "arm" else "uniform over the levels"
        number = f"{self.smoothing:g} rating" + "s" * (self.smoothing != 1)
        return f"{number} added to every cell, {like}"
