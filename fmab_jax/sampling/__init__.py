"""How trials draw random numbers and sums: keys, binomials, Laplace noise, curves."""
