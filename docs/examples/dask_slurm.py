"""A sweep on workers that Dask submits to Slurm; they come and go, this process keeps the store.

    pip install "fmab_jax[dask]" dask-jobqueue
    python dask_slurm.py            on a node that stays up: a login node, or a job of its own

Where this process ends, start it again: it goes on. Partition and account go to the calls below.
"""

import sys
from typing import Any

from dask.distributed import Client
from dask_jobqueue import SLURMCluster

import fmab_jax as fmab

CPUS: dict[str, Any] = {
    # Of a job: 4 worker processes of one thread and 4 GB each.
    "cores": 4,
    "processes": 4,
    "memory": "16GB",
    "walltime": "04:00:00",
    # A worker hands over its work and leaves before the job's time is up.
    "worker_extra_args": ["--lifetime", "230m", "--lifetime-stagger", "4m"],
    # The environment: workers run the Python of this process; the prologue prepares their shell.
    "python": sys.executable,
    "job_script_prologue": ["export JAX_COMPILATION_CACHE_DIR=${TMPDIR:-/tmp}/fmab-$USER"],
}
# One worker, and one GPU, to a job: Slurm shows it no other.
GPUS: dict[str, Any] = CPUS | {
    "cores": 1,
    "processes": 1,
    "job_cpu": 4,
    "job_extra_directives": ["--gpus=1"],
}


def main() -> None:
    """Runs the sweep; more workers are asked for while there is work for them."""
    with SLURMCluster(**CPUS) as cluster, Client(cluster) as client:
        cluster.adapt(minimum_jobs=1, maximum_jobs=16)
        data = fmab.sweep(
            fmab.cdp_mab,
            fmab.Problem(agents=50, arms=100),
            epsilon=[0.1, 0.3, 0.5, 1],
            rounds=[None, 2, 3],
            horizon=10**6,
            seeds=10**5,
            keep="summary",
            store="runs/slurm",
            client=client,
            progress=True,
        )
    print(fmab.show(fmab.table(data)))


if __name__ == "__main__":
    main()
