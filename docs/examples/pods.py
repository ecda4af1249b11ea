"""One program over many hosts: every process runs this file, all devices share each batch.

On Slurm:              srun --ntasks=4 --gpus-per-task=1 python pods.py
On Cloud TPU:          python pods.py    on every host of the slice
Two processes here:    python pods.py 127.0.0.1:12345 2 0 & python pods.py 127.0.0.1:12345 2 1

Process 0 alone reads and writes the store; only its host needs the folder.
"""

import sys

import jax

if len(sys.argv) == 4:
    address, processes, index = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    jax.distributed.initialize(address, processes, index)
else:
    jax.distributed.initialize()  # Slurm, Open MPI and Cloud TPU are recognised

import fmab_jax as fmab

data = fmab.sweep(
    fmab.cdp_mab,
    fmab.Problem.uniform(agents=50, arms=100),
    epsilon=[0.1, 1],
    rounds=[None, 3],
    horizon=10**5,
    seeds=1000,
    store="runs/pods",
    progress=True,
)
if jax.process_index() == 0:
    print(fmab.final_table(data).regret)
