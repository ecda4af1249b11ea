"""What a trial is made of: pure functions of arrays, problems, graphs and exchanges."""
