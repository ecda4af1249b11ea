"""Makes accountant.json: epsilons of another library, which the tests compare with ours.

``python tests/analysis/accountant.py`` needs ``pip install dp-accounting`` (0.6), whose pins keep
attrs below 24: run it in an environment of its own, without this package. It takes a minute.

Two kinds of rows, each with the smallest epsilon at delta:

* ``sum``: a number in [0, reach] plus a sum of Laplace variables. The law of the sum is convolved
  on a grid, and the library has its hockey-stick divergence.
* ``share``: the same with some shares of one variable, differences of Gamma variables.
"""

import json
from pathlib import Path

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.signal import fftconvolve
from scipy.stats import gamma, laplace

PATH = Path(__file__).with_suffix(".json")
# Points of the grid in the reach, and how far it goes, in scales.
POINTS, FAR = 4000, 60.0


def epsilon(mass, step, reach, delta):
    """Returns the epsilon of a law on a grid against its shift by the reach."""
    lowest = {place: float(np.log(each)) for place, each in enumerate(mass) if each > 1e-300}
    shift = round(reach / step)
    assert abs(shift * step - reach) < 1e-9
    moved = {place + shift: each for place, each in lowest.items()}
    # Where one law has no mass on the grid, the other has next to none.
    found = pld.from_two_probability_mass_functions(
        lowest, moved, value_discretization_interval=1e-4
    )
    return float(found.get_epsilon_for_delta(delta))


def of_sum(terms, reach, delta):
    """Returns the epsilon of a sum of standard Laplace variables."""
    step = reach / max(50, round(POINTS * reach / (FAR * np.sqrt(terms))))
    edge = np.arange(0.5, FAR / step)
    half = laplace.sf(edge * step) - laplace.sf((edge + 1.0) * step)
    one = np.concatenate([half[::-1], [1.0 - 2.0 * half.sum()], half])
    mass = one
    for _ in range(terms - 1):
        mass = np.convolve(mass, one)
    return epsilon(mass, step, reach, delta)


def of_share(left, shares, reach, delta):
    """Returns the epsilon of a difference of two Gamma(left / shares) variables."""
    step = reach / 2000
    edge = np.arange(0.0, FAR / 2 / step) * step
    one = np.diff(gamma.cdf(edge, left / shares))
    # One variable less another: their cells are equally wide, and their middles cancel.
    mass = np.maximum(fftconvolve(one, one[::-1]), 0.0)
    return epsilon(mass, step, reach, delta)


def main():
    """Writes the table."""
    rows = []
    for terms, reach in ((1, 1.0), (2, 2.0), (5, 1.0), (5, 5.0), (20, 2.0), (49, 1.0), (50, 5.0)):
        for delta in (1e-2, 1e-4, 1e-6):
            found = of_sum(terms, reach, delta)
            rows.append(
                {"kind": "sum", "terms": terms, "reach": reach, "delta": delta, "epsilon": found}
            )
    for left, shares, reach in ((4, 5, 1.0), (49, 50, 1.0), (1, 2, 1.0), (4, 5, 0.2), (2, 3, 2.0)):
        # Half of the shares have no bound without delta: a small one would need a finer grid.
        for delta in (0.1, 1e-2, 1e-3) if 2 * left > shares else (0.1, 1e-2):
            found = of_share(left, shares, reach, delta)
            told = {"left": left, "shares": shares, "reach": reach, "delta": delta}
            rows.append({"kind": "share", **told, "epsilon": found})
    lines = ",\n ".join(json.dumps(row) for row in rows)
    PATH.write_text(f"[{lines}]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
