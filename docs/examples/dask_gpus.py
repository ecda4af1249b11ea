"""A sweep on one machine with several GPUs: a worker process for each.

    pip install "fmab_jax[dask,cuda12]"
    python dask_gpus.py 0 1 2 3

`dask_cuda.LocalCUDACluster(threads_per_worker=1)` does the same where RAPIDS is installed.
"""

import logging
import sys
from collections.abc import Sequence

from dask.distributed import Client, Nanny, Scheduler, SpecCluster

import fmab_jax as fmab


def one_worker_per_gpu(gpus: Sequence[str]) -> SpecCluster:
    """Starts a worker of one thread for each GPU; it sees no other."""
    # Nobody else's machine gets to the scheduler or the workers.
    both = {"host": "127.0.0.1"}
    workers = {
        gpu: {
            "cls": Nanny,
            "options": both
            | {
                "nthreads": 1,
                "env": {"CUDA_VISIBLE_DEVICES": gpu},
                "silence_logs": logging.WARNING,
            },
        }
        for gpu in gpus
    }
    scheduler = {"cls": Scheduler, "options": both | {"dashboard_address": None}}
    return SpecCluster(workers=workers, scheduler=scheduler, silence_logs=logging.WARNING)


def main() -> None:
    """Runs the sweep; this process uses no GPU."""
    with one_worker_per_gpu(sys.argv[1:] or ["0"]) as cluster, Client(cluster) as client:
        data = fmab.sweep(
            fmab.dec_ucb,
            fmab.Problem(agents=50, arms=100),
            graph=["ring", "star", "complete"],
            horizon=10**5,
            seeds=1000,
            store="runs/gpus",
            client=client,
            progress=True,
        )
    print(fmab.show(fmab.table(data)))


if __name__ == "__main__":
    main()
