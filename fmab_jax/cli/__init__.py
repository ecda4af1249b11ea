"""The command line ``fmab``."""
