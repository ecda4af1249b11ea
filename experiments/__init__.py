"""The paper's experiments, one file each; `python -m experiments` runs them all."""
