"""Compiles every algorithm for a TPU v5e on a machine without one.

    pip install "jax[tpu]"
    JAX_PLATFORMS=cpu TPU_SKIP_MDS_QUERY=1 python -m benchmarks tpu --compile-only

It shows that a TPU's compiler takes the programs. It says nothing of numbers or of speed. Each is
compiled by a process of its own: the compiler takes gigabytes. All of them make the page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

import fmab_jax as fmab
from benchmarks import report
from experiments import runs
from fmab_jax.run import compilation, configs

RESULTS = Path(__file__).with_name("tpu.json")
PAGE = Path(__file__).parent.parent / "docs" / "gpu.md"
KIND = "v5e:2x2"
BEGIN = "<!-- written by python -m benchmarks tpu -->"
CASES = {
    "cdp": fmab.cdp_mab(1.0),
    "cdp, p = 0.4": fmab.cdp_mab(1.0, participation=0.4),
    "ddp": fmab.ddp_mab(1.0, "ring"),
    "hdp": fmab.hdp_mab(1.0, "4x2:star"),
    "single": fmab.single_mab(1.0),
    "kl_se": fmab.kl_se(1.0),
    "kl_se, split": fmab.kl_se(1.0, split=True),
    "kl_se_graph": fmab.kl_se_graph(1.0, "ring"),
    "kl_se_components": fmab.kl_se_components(1.0, "4x2:star"),
    "dist_dp_se": fmab.dist_dp_se(1.0),
    "dp_se": fmab.dp_se(1.0),
    "dp_imed": fmab.dp_imed(1.0),
    "dp_klucb": fmab.dp_klucb(1.0, secure=True),
    "adap_ucb": fmab.adap_ucb(1.0),
    "lazy_dp_ts": fmab.lazy_dp_ts(1.0),
    "tree_ucb": fmab.tree_ucb(1.0),
    "ldp_ucb": fmab.ldp_ucb(1.0),
    "fed1_ucb": fmab.fed1_ucb(),
    "ucb1": fmab.ucb1(),
    "kl_ucb": fmab.kl_ucb(),
    "thompson": fmab.thompson(),
    "gosine": fmab.gosine(graph="ring"),
    "lcc_ucb": fmab.lcc_ucb(),
    "dec_ucb": fmab.dec_ucb("ring"),
    "gossip_ucb": fmab.gossip_ucb("ring"),
    "fed_ucb": fmab.fed_ucb(1.0, "ring"),
    "dducb": fmab.dducb("ring"),
    "ces": fmab.ces("ring"),
    "uniform_play": fmab.uniform_play(),
}


def compile_case(name: str) -> float:
    """Returns the seconds that compiling an algorithm takes."""
    from jax.experimental import topologies

    try:
        device = topologies.get_topology_desc(KIND, "tpu").devices[0]
    except Exception as error:
        sys.exit(f'no compiler for TPUs ({error}): pip install "jax[tpu]"')
    config = configs.bind(CASES[name], fmab.Problem.uniform(8, 10), 10**4, times=10)
    start = time.perf_counter()
    compilation.compile_program(config.program, 64, (device,))
    return round(time.perf_counter() - start, 1)


def page(results: dict[str, Any]) -> str:
    """Returns the part of docs/gpu.md that comes from figures."""
    took = results["compile_s"]
    slowest = max(took, key=took.__getitem__)
    return (
        f"The programs of all {len({name.partition(',')[0] for name in took})} algorithms compile"
        f" for a TPU v5e (`python -m benchmarks tpu --compile-only`, {results['date']}, jax"
        f" {results['jax']}, {results['cores']} cores): `cdp` takes {took['cdp']:.0f} s,"
        f" `{slowest}`, the slowest, {took[slowest]:.0f} s. "
        + runs.write_runs({"": (results["version"], results["date"])})
    )


def main(given: Sequence[str] | None = None) -> None:
    """Compiles the cases that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks tpu", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--compile-only", action="store_true", required=True)
    parser.add_argument("--only", metavar="NAME", choices=list(CASES), help="one of them")
    asked = parser.parse_args(given)
    if asked.only:
        print(compile_case(asked.only))
        return
    took = {}
    for name in CASES:
        command = [sys.executable, "-m", "benchmarks", "tpu", "--compile-only", "--only", name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"{name} does not compile")
        took[name] = float(done.stdout.split()[-1])
        print(f"{name:16s} {took[name]:6.1f} s", flush=True)
    results = {
        "date": time.strftime("%Y-%m-%d"),
        "jax": jax.__version__,
        "version": fmab.__version__,
        "cores": os.cpu_count(),
        "compile_s": took,
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    report.replace(PAGE, page(results), BEGIN)
