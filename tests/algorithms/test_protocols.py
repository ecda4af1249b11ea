"""DDP-MAB over GIS, plain flooding and gossip: what a protocol changes, and what it must not."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fmab_jax as fmab
from fmab_jax.core import exchanges, graphs
from fmab_jax.run import batches

AGENTS, HORIZON = 6, 4000
PROBLEM = fmab.Problem.uniform(AGENTS, 4)


def on_a_ring(protocol: str, **more):
    algorithm = fmab.ddp_mab(0.5, "ring", protocol=protocol, **more)
    return fmab.simulate(algorithm, PROBLEM, HORIZON, 12, times=10)


@pytest.mark.slow
def test_protocols_differ_in_what_they_send_and_how_long_it_takes():
    """Would catch a protocol that draws other rewards, waits or links than its table says."""
    ring = graphs.make("ring", AGENTS)
    gis, plain, gossip = (on_a_ring(name) for name in ("gis", "flooding", "gossip"))
    tables = exchanges.flooding(ring), exchanges.plain_flooding(ring), exchanges.gossip(ring)
    assert [table.wait for table in tables] == [each.attrs["wait"] for each in (gis, plain, gossip)]
    # Whoever waits as long draws and decides the same.
    np.testing.assert_array_equal(plain.regret, gis.regret)
    np.testing.assert_array_equal(plain.waiting_regret, gis.waiting_regret)
    assert int(gis.rounds_made.max()) > 1
    told = gis.numbers_sent // tables[0].vectors
    for table, data in zip(tables[:2], (gis, plain), strict=True):
        np.testing.assert_array_equal(data.numbers_sent, told * table.vectors)
        np.testing.assert_array_equal(
            data.links.sel(meter="used")[:, -1], data.rounds_made * table.on("used")
        )
    assert tables[1].vectors > tables[0].vectors
    assert (plain.numbers_sent > gis.numbers_sent).all()
    # Gossip waits longer, in which agents play their own best arm.
    assert gossip.attrs["wait"] > gis.attrs["wait"]
    links = gossip.rounds_made * tables[2].on("pairs")
    np.testing.assert_array_equal(gossip.links.sel(meter="pairs")[:, -1], links)
    # The pairs are what is paid for.
    np.testing.assert_array_equal(fmab.communication_cost(gossip, 0, 1)[:, -1], links)
    same = gossip.rounds_made.values == gis.rounds_made.values
    assert same.any()
    waited = gossip.waiting_regret[:, -1].values, gis.waiting_regret[:, -1].values
    assert waited[0][same].sum() > waited[1][same].sum()


def test_a_tolerance_is_told_and_worked_out_for_gossip_alone():
    """Would catch a caption with a tolerance that has no effect, or a table for each of them."""
    gis, other = (fmab.ddp_mab(1, "ring", tolerance=each) for each in (0.1, 0.2))
    assert batches.exchange_of(gis, 8) is batches.exchange_of(other, 8)
    assert "tolerance" not in gis.settings() and "protocol" not in gis.settings()
    gossip = fmab.ddp_mab(1, "ring", protocol="gossip", tolerance=0.1)
    assert gossip.settings()["tolerance"] == "tolerance = 0.1"
    assert gossip.settings()["protocol"] == "protocol = gossip"
    finer = fmab.ddp_mab(1, "ring", protocol="gossip", tolerance=0.01)
    tables = [batches.exchange_of(each, 8) for each in (gossip, finer)]
    assert tables[0].wait < tables[1].wait
    assert json.dumps(gossip.describe()) != json.dumps(finer.describe())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"protocol": "gissip"}, "protocol='gissip': must be 'gis' or 'flooding' or 'gossip'"),
        ({"tolerance": 1}, "tolerance=1: must be a number in (0, 1); give a part of the messages'"),
    ],
)
def test_refusals(given, message):
    """Would catch a protocol that does not exist, or a tolerance that nothing meets or needs."""
    with pytest.raises(ValueError) as caught:
        fmab.ddp_mab(1, "ring", **given)
    assert str(caught.value).startswith(message)
