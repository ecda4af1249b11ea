"""One file per algorithm, over the families that own the loops."""
