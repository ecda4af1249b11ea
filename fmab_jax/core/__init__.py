"""The parts of a trial: pure functions of arrays, problems, graphs and exchanges."""
