#!/bin/bash
#SBATCH --job-name=fmab
#SBATCH --array=1-16
#SBATCH --cpus-per-task=4
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@60
#SBATCH --requeue
#
# 16 independent workers; the study and runs/ lie in a folder that all nodes see.
#   sbatch docs/examples/slurm_array.sh study.toml runs/study
# A worker that dies, or runs out of time, loses at most one chunk: submit the script again, whole or
# the array indices that failed (sbatch --array=3,7 ...). When all are done, one more call without
# --worker computes whatever is still missing, prints the table, and costs nothing if all is there:
#   fmab sweep study.toml --out runs/study
set -euo pipefail
study=${1:?usage: sbatch slurm_array.sh STUDY.toml FOLDER}
folder=${2:?usage: sbatch slurm_array.sh STUDY.toml FOLDER}
# Compiled programs are shared by the workers of a node.
export JAX_COMPILATION_CACHE_DIR=${JAX_COMPILATION_CACHE_DIR:-${TMPDIR:-/tmp}/fmab-$USER}
exec fmab sweep "$study" --out "$folder" --worker "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
