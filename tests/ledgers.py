"""Ledgers of results that are made up, and what their messages leak."""

import numpy as np

from fmab_jax.analysis.accountant import leak
from fmab_jax.parameters import ViewKind
from fmab_jax.parts.exchanges import Viewer
from fmab_jax.parts.mechanisms.gaussian_noise import GaussianNoise
from fmab_jax.records.ledger import Disclosure, Noise
from fmab_jax.run.facts import Ledger, write_ledger

KINDS = {"sums": ViewKind.SUM, "actions": ViewKind.ACTIONS}
# Gaussian noise at which a message leaks (1.448, 1e-6).
SCALE = 3.0


def make_row(observation, epsilon, viewer=Viewer.SERVER, **fields):
    """Returns a row about sums or actions, if its words begin so, else about messages."""
    view = KINDS.get(observation.partition(" ")[0], ViewKind.MESSAGES)
    return Disclosure(viewer, view, epsilon, "", observation=observation, **fields)


def make_gaussian_row(observation="single messages", scale=SCALE):
    """Returns a row that holds only up to a delta."""
    return make_row(observation, np.inf, noises=(Noise(GaussianNoise(), scale),))


def add_ledgers(data, ledgers, dims=(), title="CDP-MAB"):
    """Adds ledgers over some parameters, the last varying first, and the leaks of messages."""
    shape = [data.sizes[name] for name in dims]
    texts = [write_ledger(Ledger(title, tuple(rows))) for rows in ledgers]
    pairs = np.reshape([leak(rows, ViewKind.MESSAGES)[:2] for rows in ledgers], (*shape, 2))
    leaks = {"leak_messages": pairs[..., 0], "leak_messages_delta": pairs[..., 1]}
    data = data.assign({name: (dims, values) for name, values in leaks.items()})
    return data.assign_coords(ledger=(dims, np.reshape(texts, shape)))
