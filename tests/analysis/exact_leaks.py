"""Makes exact_leaks.json: epsilons of the laws of noise in 60 digits, which the tests compare.

``python tests/analysis/exact_leaks.py`` needs ``pip install mpmath gmpy2`` (1.4, 2.3), and no other
package. It takes a quarter of an hour. A reward moves a message by 1. Epsilons are of the laws:

* Whole numbers: noise is convolved with noise, noise by noise, or two Poisson laws are. The
  divergence is the sum over all numbers, so that no event is assumed to be the worst.
* Laplace: the density of a sum is e^-x times a polynomial with rational coefficients, because
  f - f'' is the density of the sum of one noise less.
* Gaussian: the normal law.

A row of ``grid`` has the leak of a message, from 1 to 100: at delta 0 of Laplace and discrete
Laplace noise, at delta 1e-6 of the others. Its epsilons are by count, then by delta. A row of
``far`` has another scale and count of discrete Laplace noise; its epsilons are by delta.
"""

import json
from fractions import Fraction
from pathlib import Path

from mpmath import mp, mpf

PATH = Path(__file__).with_suffix(".json")
LEAKS = (
    *(1, 1.5, 2, 3, 4, 5, 7, 9, 11, 13, 15, 18, 21, 24, 25, 27),
    *(28, 29, 30, 32, 34, 36, 37, 40, 45, 50, 60, 75, 88, 100),
)
COUNTS = (1, 2, 5, 10, 32, 33, 50)
DELTAS = (1e-12, 1e-9, 1e-6, 1e-3, 0.3)
# Scale, and counts of noises.
FAR = {
    **{1e3: (1, 2, 12, 40), 100.0: (1, 5, 200), 10.0: (2, 32, 33), 2.0: (300,), 0.5: (300,)},
    **{0.2: (10**4,), 0.05: (10**6,), 0.025: (10**6,), 0.015: (2, 33, 10**5)},
    **{5e-3: (2, 1000), 1 / 745: (3, 33), 1e-3: (1, 32, 33, 10**5)},
}


def list_discrete_laplace(scale, counts):
    """Returns laws of sums of discrete Laplace noises, as chances of 0, 1, ..."""
    q = mp.exp(-1 / mpf(scale))
    least, factor = q * mpf(10) ** -50, (1 - q) / (1 + q)
    law, laws = [mpf(1)], []
    for count in range(1, counts[-1] + 1):
        # Of the noises that come from above, and of those from below, a number on is q times less.
        above = [mpf(0)]
        for chance in law[:0:-1]:
            above.append(q * (chance + above[-1]))
        above.reverse()
        below = law[0] + above[0]
        total = [factor * (below + above[0])]
        for chance, other in zip(law[1:], above[1:], strict=True):
            below = chance + q * below
            total.append(factor * (below + other))
        while len(total) < 3 or total[-1] > least:
            below *= q
            total.append(factor * below)
        law = total
        laws += [law] * (count in counts)
    return laws


def build_skellam(variance):
    """Returns the law of the difference of two Poisson variables, as chances of 0, 1, ..."""
    mean, least = variance / 2, min(variance, 1) ** 3 * mpf(10) ** -70
    poisson = [mp.exp(-mean)]
    while len(poisson) < mean + 4 or poisson[-1] > least:
        poisson.append(poisson[-1] * mean / len(poisson))
    law = []
    while len(law) < 3 or law[-1] > least * 10**10:
        law.append(mp.fdot(zip(poisson, poisson[len(law) :], strict=False)))
    return law


def solve_law(law, delta):
    """Returns the smallest epsilon >= 0 at which whole numbers hide a shift by 1."""
    mass = law[:0:-1] + law
    pairs, ratio = list(zip(mass, [*mass[1:], mpf(0)], strict=True)), mpf(1)
    # The divergence is convex and piecewise linear in e^epsilon, so that Newton's method ends.
    while pairs := [pair for pair in pairs if pair[0] > ratio * pair[1]]:
        above, below = (mp.fsum(side) for side in zip(*pairs, strict=True))
        if above - ratio * below <= delta * (1 + mpf(10) ** -40):
            break
        ratio = (above - delta) / below
    return mp.log(ratio)


def solve(function, low, high):
    """Returns where a falling function is 0."""
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return high


def list_laplace(counts):
    """Returns the polynomials of sums of standard Laplace variables, highest powers first."""
    law, laws = [Fraction(1, 2)], []
    for count in range(1, counts[-1] + 1):
        laws += [[mpf(x.numerator) / x.denominator for x in law]] * (count in counts)
        # Of the slope g of the next polynomial, 2 g - g' is this one; at 0 the density is flat.
        slope, slopes = Fraction(0), []
        for late, x in zip(range(len(law), 0, -1), law, strict=True):
            slope = (x + late * slope) / 2
            slopes.append(slope)
        law = [x / late for late, x in zip(range(len(law), 0, -1), slopes, strict=True)]
        law.append(slope)
    return laws


def solve_laplace(law, shift, delta):
    """Returns the smallest epsilon >= 0 at which a sum of Laplace variables hides a shift."""
    late, waits = mpf(0), []
    for power, x in zip(range(len(law), 0, -1), law, strict=True):
        late = x + power * late
        waits.append(late)

    def ratio(x):
        y = x + shift
        return mp.exp(y - abs(x)) * mp.polyval(law, abs(x)) / mp.polyval(law, y)

    def excess(x):
        part, y = mp.exp(-abs(x)) * mp.polyval(waits, abs(x)), x + shift
        above = part if x > 0 else 1 - part
        return above - ratio(x) * mp.exp(-y) * mp.polyval(waits, y) - delta

    return mp.log(ratio(solve(excess, -shift / 2, mpf(1000))))


def gaussian_delta(mu, epsilon):
    """Returns the divergence of a standard normal law from its shift by mu."""
    x = epsilon / mu - mu / 2
    return mp.ncdf(-x) - mp.exp(epsilon) * mp.ncdf(-x - mu)


def solve_gaussian(mu, delta):
    """Returns the smallest epsilon >= 0 at which a standard normal variable hides a shift."""
    return solve(lambda epsilon: gaussian_delta(mu, epsilon) - delta, mpf(0), mu * (mu + 20))


def solve_scale(name, leak):
    """Returns the scale at which one message leaks so much, as a float."""
    delta = mpf(1e-6)
    if name == "gaussian":
        # A falling function of the scale.
        return float(solve(lambda x: gaussian_delta(1 / x, leak) - delta, mpf("0.05"), mpf(10)))
    if name == "skellam":

        def excess(log):
            return solve_law(build_skellam(mp.exp(log)), delta) - leak

        return float(mp.exp(solve(excess, mpf(-leak - 2), mpf(4)) / 2))
    return 1.0 / leak


def build_table(name, scale, counts):
    """Returns epsilons by count and delta."""
    exact = mpf(scale)
    laws = {
        "laplace": lambda: list_laplace(counts),
        "gaussian": lambda: [1 / (exact * mp.sqrt(count)) for count in counts],
        "discrete_laplace": lambda: list_discrete_laplace(exact, counts),
        "skellam": lambda: [build_skellam(exact**2 * count) for count in counts],
    }[name]()
    solvers = {"laplace": lambda law, delta: solve_laplace(law, 1 / exact, delta)}
    solver = solvers.get(name, solve_gaussian if name == "gaussian" else solve_law)
    return [[write(solver(law, mpf(delta))) for delta in DELTAS] for law in laws]


def write(epsilon):
    """Returns 14 digits."""
    return float(mp.nstr(epsilon, 14)) if epsilon > mpf(10) ** -25 else 0.0


def main():
    """Writes the table."""
    mp.dps = 60
    grid, far = [], []
    for name in ("laplace", "gaussian", "discrete_laplace", "skellam"):
        for leak in LEAKS:
            scale = solve_scale(name, leak)
            row = {"name": name, "leak": leak, "scale": scale}
            grid.append({**row, "epsilons": build_table(name, scale, COUNTS)})
    for scale, counts in FAR.items():
        table = build_table("discrete_laplace", scale, counts)
        for count, epsilons in zip(counts, table, strict=True):
            far.append({"scale": scale, "count": count, "epsilons": epsilons})
    head = f'"counts": {json.dumps(COUNTS)}, "deltas": {json.dumps(DELTAS)}'
    tables = (",\n  ".join(map(json.dumps, rows)) for rows in (grid, far))
    text = '{{{},\n "grid": [\n  {}],\n "far": [\n  {}]}}\n'.format(head, *tables)
    PATH.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
