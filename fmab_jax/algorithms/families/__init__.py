"""The loops that algorithms fill in."""
