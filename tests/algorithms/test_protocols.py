"""DDP-MAB over GIS, plain flooding and gossip: what a protocol changes, and what it must not."""

from __future__ import annotations

import json

import fmab_jax as fmab
from fmab_jax.run import configs

AGENTS, HORIZON = 6, 4000
PROBLEM = fmab.Problem.uniform(AGENTS, 4)


def test_a_tolerance_is_told_and_worked_out_for_gossip_alone():
    """Would catch a caption with a tolerance that has no effect, or a table for each of them."""
    gis, other = (fmab.ddp_mab(1, "ring", tolerance=each) for each in (0.1, 0.2))
    assert configs.build_exchange(gis, 8) is configs.build_exchange(other, 8)
    assert "tolerance" not in gis.settings() and "protocol" not in gis.settings()
    gossip = fmab.ddp_mab(1, "ring", protocol="gossip", tolerance=0.1)
    assert gossip.settings()["tolerance"] == "tolerance = 0.1"
    assert gossip.settings()["protocol"] == "protocol = gossip"
    finer = fmab.ddp_mab(1, "ring", protocol="gossip", tolerance=0.01)
    tables = [configs.build_exchange(each, 8) for each in (gossip, finer)]
    assert tables[0].wait < tables[1].wait
    assert json.dumps(gossip.describe()) != json.dumps(finer.describe())
