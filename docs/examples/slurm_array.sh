#!/bin/bash
#SBATCH --job-name=fmab
#SBATCH --cpus-per-task=4
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@60
#SBATCH --requeue
#
# Independent workers that share a folder, which all nodes see, as a Slurm array job.
#
#   bash slurm_array.sh study.toml runs/study 16
#
# asks for the plan of the study, submits this script as an array of at most 16 tasks, fewer where
# fewer have something to compute, and after it one job that computes what is still missing and
# prints the table. A task that dies, or runs out of time, loses at most one chunk: the job after
# the array makes it up, and so does the same command again.
#
# FMAB_ENV names the environment: the file that activates it. Where it is unset, fmab has to be on
# the PATH of a batch job. The words after the number of tasks go to fmab, such as --plugin mine.py,
# and SBATCH_* variables set options of sbatch, such as SBATCH_PARTITION and SBATCH_ACCOUNT.
set -euo pipefail
usage="usage: bash slurm_array.sh STUDY.toml FOLDER [TASKS [words for fmab]]"
study=${1:?$usage}
folder=${2:?$usage}
most=${3:-16}
words=("${@:4}")

# A batch job does not read the files that an interactive shell reads.
if [[ -n ${FMAB_ENV:-} ]]; then
    set +u # activation scripts may use unset variables
    source "$FMAB_ENV"
    set -u
fi
if ! command -v fmab > /dev/null; then
    echo "slurm_array.sh: no fmab on the PATH; set FMAB_ENV=/path/to/.venv/bin/activate" >&2
    exit 2
fi
# Workers of a node share compiled programs.
export JAX_COMPILATION_CACHE_DIR=${JAX_COMPILATION_CACHE_DIR:-${TMPDIR:-/tmp}/fmab-${USER:-$UID}}

sweep=(fmab sweep "$study" --out "$folder" ${words[@]+"${words[@]}"})
if [[ -n ${FMAB_LAST:-} ]]; then
    # After the array: what is missing, and the table; it costs nothing if all is there.
    exec "${sweep[@]}"
elif [[ -n ${SLURM_ARRAY_TASK_ID:-} ]]; then
    # One worker. The number of workers is that of the plan, also where only some are run again.
    exec "${sweep[@]}" --worker "$SLURM_ARRAY_TASK_ID/${FMAB_WORKERS:-$SLURM_ARRAY_TASK_COUNT}"
fi

# On the login node, or in an interactive job: the number of tasks comes from the plan.
plan=$("${sweep[@]}" --plan)
useful=$(sed -n 's/.*"chunks": \([0-9]*\).*/\1/p' <<< "$plan")
if ((useful == 0)); then
    echo "slurm_array.sh: nothing is left to compute; see: fmab show $folder"
    exit
fi
tasks=$((useful < most ? useful : most))
job=$(FMAB_WORKERS=$tasks sbatch --parsable --export=ALL --array="1-$tasks" "$0" "$@")
FMAB_LAST=1 sbatch --parsable --export=ALL --dependency="afterany:${job%%;*}" "$0" "$@"
echo "slurm_array.sh: $tasks tasks in job ${job%%;*}"
