"""Observed ratings as problems: a long table of who rated what becomes a `Problem` of levels.

Source of the ratings are the reader's own files; MovieLens' and Amazon's published layouts are read
as they are. What is assumed and what is dropped is in docs/ratings.md, and in the summary of every
table that is read.
"""

from fmab_jax.ratings.layouts import LAYOUTS
from fmab_jax.ratings.observed import ObservedRatings, from_table

__all__ = ["LAYOUTS", "ObservedRatings", "from_table"]
