"""Makes accountant.json: epsilons of another library, which the tests compare with ours.

``python tests/analysis/accountant.py`` needs ``pip install dp-accounting`` (0.6), whose pins keep
attrs below 24: run it in an environment of its own, without this package. It takes a minute.

Four kinds of rows, each with the smallest epsilon at delta:

* ``sum``: a number in [0, reach] plus a sum of Laplace variables. The law of the sum is convolved
  on a grid, and the library has its hockey-stick divergence.
* ``share``: the same with some shares of one variable, differences of Gamma variables.
* ``mechanism``: a number in [0, 1] plus a sum of noises of one of our mechanisms. The library has
  Gaussian and discrete Laplace noise; sums of the latter, and Skellam noise, are laws on a grid.
* ``composition``: several such messages together, by the library's composition.
"""

import json
from pathlib import Path

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.signal import fftconvolve
from scipy.stats import dlaplace, gamma, laplace, skellam

PATH = Path(__file__).with_suffix(".json")
# Points of the grid in the reach, and how far it goes, in scales.
POINTS, FAR = 4000, 60.0
# Width of the library's cells of privacy loss.
STEP = 1e-4


def epsilon(mass, step, reach, delta):
    """Returns the epsilon of a law on a grid against its shift by the reach."""
    lower = {i: float(np.log(x)) for i, x in enumerate(mass) if x > 1e-300}
    shift = round(reach / step)
    assert abs(shift * step - reach) < 1e-9
    upper = {i + shift: x for i, x in lower.items()}
    # Where one law has no mass on the grid, the other has next to none.
    loss = pld.from_two_probability_mass_functions(lower, upper, value_discretization_interval=STEP)
    return float(loss.get_epsilon_for_delta(delta))


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


def of_mechanism(name, scale, count):
    """Returns the privacy loss of a number in [0, 1] behind a sum of noises."""
    if name == "gaussian":
        return pld.from_gaussian_mechanism(
            scale * np.sqrt(count), value_discretization_interval=STEP
        )
    if name == "laplace":
        return pld.from_laplace_mechanism(scale, value_discretization_interval=STEP)
    if name == "discrete_laplace" and count == 1:
        return pld.from_discrete_laplace_mechanism(1.0 / scale, value_discretization_interval=STEP)
    variance = scale**2 * count
    reach = round(60 + 40 * scale * np.sqrt(count))
    k = np.arange(-reach, reach + 1)
    if name == "skellam":
        mass = skellam.pmf(k, variance / 2, variance / 2)
    else:
        one = mass = dlaplace.pmf(k, 1.0 / scale)
        for _ in range(count - 1):
            mass = np.convolve(mass, one, "same")
    lower = {i: float(np.log(x)) for i, x in enumerate(mass) if x > 1e-300}
    upper = {i + 1: x for i, x in lower.items()}
    return pld.from_two_probability_mass_functions(lower, upper, value_discretization_interval=STEP)


def list_mechanisms():
    """Returns rows of sums of noises, and of several messages."""
    rows = []
    for name in ("gaussian", "discrete_laplace", "skellam"):
        for scale, count in ((1.0, 1), (4.0, 1), (2.0, 5), (3.0, 40)):
            loss = of_mechanism(name, scale, count)
            for delta in (1e-2, 1e-4, 1e-6):
                row = {"name": name, "scale": scale, "count": count, "delta": delta}
                epsilon = float(loss.get_epsilon_for_delta(delta))
                rows.append({"kind": "mechanism", **row, "epsilon": epsilon})
    for name in ("laplace", "gaussian", "discrete_laplace", "skellam"):
        for scale, messages in ((2.0, 4), (10.0, 20), (30.0, 100)):
            loss = of_mechanism(name, scale, 1).self_compose(messages)
            row = {"name": name, "scale": scale, "messages": messages, "delta": 1e-6}
            epsilon = float(loss.get_epsilon_for_delta(1e-6))
            rows.append({"kind": "composition", **row, "epsilon": epsilon})
    return rows


def main():
    """Writes the table."""
    rows = list_mechanisms()
    for terms, reach in ((1, 1.0), (2, 2.0), (5, 1.0), (5, 5.0), (20, 2.0), (49, 1.0), (50, 5.0)):
        for delta in (1e-2, 1e-4, 1e-6):
            row = {"terms": terms, "reach": reach, "delta": delta}
            rows.append({"kind": "sum", **row, "epsilon": of_sum(**row)})
    for left, shares, reach in ((4, 5, 1.0), (49, 50, 1.0), (1, 2, 1.0), (4, 5, 0.2), (2, 3, 2.0)):
        # Half of the shares have no bound without delta: a small one would need a finer grid.
        for delta in (0.1, 1e-2, 1e-3) if 2 * left > shares else (0.1, 1e-2):
            row = {"left": left, "shares": shares, "reach": reach, "delta": delta}
            rows.append({"kind": "share", **row, "epsilon": of_share(**row)})
    lines = ",\n ".join(json.dumps(row) for row in rows)
    PATH.write_text(f"[{lines}]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
