"""Speed, side by side with what one would write instead: ``python -m benchmarks``."""
