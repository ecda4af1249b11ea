"""Runs a grid of configurations, and keeps the results in a folder.

Several values after an option are swept, every configuration with the same
seeds. The same command goes on where it was interrupted, and computes only
what is missing when seeds are added. A study file says the same as options:
what fmab_jax.sweep takes stands at its top and under [parameters], [problem]
and [until].

Examples:
  fmab sweep cdp --epsilon 0.1 0.3 0.5 1 --participation 0.2 1 --out runs/eps
  fmab sweep ddp --graph ring star complete --horizon 1e5 1e6 --seeds 200
  fmab sweep cdp --epsilon 0.1 1 --keep summary --until 0.01 --seeds 200
  fmab sweep study.toml --worker 3/16
  fmab sweep study.toml --scheduler tcp://host:8786
  fmab sweep study.toml --plan
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fmab_jax.cli import study_options
from fmab_jax.cli.options import Call, Command, option, rename_fields
from fmab_jax.cli.printing import Priced, note_stored, print_results
from fmab_jax.errors import format_quantity, refuse
from fmab_jax.files import error_stream
from fmab_jax.parameters import Whole
from fmab_jax.sweeps.progress import Plan, Progress, describe_workers

if TYPE_CHECKING:
    import xarray as xr

    from fmab_jax.sweeps.api import Study

_MOST_ROWS = 40


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """How a sweep is run and where it is kept."""

    out: str | None = option(None, metavar="FOLDER", default_text="runs/NAME")
    """Where the results are kept; what is there already is not computed again."""
    worker: str | None = option(None, metavar="I/N", default_text="alone")
    """This process is the I-th of N that share the folder, such as 3/16."""
    scheduler: str | None = option(None, metavar="ADDRESS", default_text="none")
    """Compute on the workers of a Dask scheduler: tcp://HOST:PORT, or the .json file it wrote."""
    dry_run: bool = option(False)
    """Say what would be done and what it takes, and stop."""
    plan: bool = option(False)
    """Print what would be done as one line of JSON, and stop; nothing is compiled."""
    allow_changes: tuple[str, ...] = option((), metavar="FIELD", default_text="none")
    """Fields in which the study, or the versions, may differ from the folder's."""
    chunk: int | None = option(None, kind=Whole(), default_text="about a second's work")
    """Trials of a chunk: what a kill loses at most."""
    save_study: str | None = option(None, metavar="FILE.toml", default_text="off")
    """Write the study to a file as well; it runs again to the same results."""


@dataclass(frozen=True, kw_only=True)
class FileOptions(SweepOptions):
    """A study file, with the options of how it is run."""

    study: str = option(metavar="STUDY.toml", word=True)
    """The study, a .toml file."""


def command(words: list[str]) -> Command:
    """Builds the command of an algorithm or of a study file."""
    if words and words[0].endswith(".toml"):
        return Command("fmab sweep", FileOptions, str(__doc__), words)
    return study_options.build_command(
        "fmab sweep", words, SweepOptions, str(__doc__), alternatives=["STUDY.toml"], several=True
    )


def execute(call: Call[SweepOptions]) -> None:
    """Runs a sweep, prints its table, and says what can be done with it."""
    from fmab_jax.sweeps import cluster, runner, study_file
    from fmab_jax.sweeps.api import Study

    options = call.options
    is_file = isinstance(options, FileOptions)
    with ExitStack() as stack:
        names = {"store": "out"} if is_file else study_options.FIELD_OPTIONS
        stack.enter_context(rename_fields(**names))
        if isinstance(options, FileOptions):
            document = study_file.read_study(options.study)
            study, label = Study.from_document(document), Path(options.study).stem
        else:
            document, study = study_options.build_study(call.values, call.command.algorithms)
            # The hash gives each study its own folder, so a repeated command resumes.
            label = "-".join([*(x.name for x in call.command.algorithms), study.hash[:8]])
        _ = study.points  # refuses inconsistent values
        worker = _worker(options.worker)
        out = os.path.join("runs", label) if options.out is None else options.out
        if Path(out).suffix in (".nc", ".csv", ".png", ".pdf") and not os.path.isdir(out):
            refuse("out", out, "a folder", "drop the ending; fmab export and fmab plot make files")
        if worker is not None and options.scheduler is not None:
            remedy = "the scheduler's workers share the work by themselves; drop one"
            refuse("worker", options.worker, "left out with a scheduler", remedy)
        if options.save_study is not None:
            call.files.append(study_file.write_study(document, options.save_study))
            # With --plan, standard output holds only JSON.
            stream = error_stream() if options.plan else sys.stdout
            stream.write(f"wrote {call.files[0]}\n")
        plan_recorder, dry = _PlanRecorder(), options.dry_run or options.plan
        call.stores.extend([] if dry else [out])
        client = None
        if options.scheduler is not None:
            client = stack.enter_context(cluster.connect(options.scheduler))
        data = runner.run(
            study,
            store=out,
            worker=worker,
            client=client,
            allow_changes=options.allow_changes,
            chunk=options.chunk,
            progress=plan_recorder if options.plan else True,
            dry=dry,
        )
    if options.plan:
        print(json.dumps({**plan_recorder.plan, "folder": out}))
    if not dry:
        _print(data, study, out)


def _print(data: xr.Dataset, study: Study, out: str) -> None:
    """Prints the table of a sweep, or the number of missing trials."""
    from fmab_jax.run.outputs import is_shipped

    if missing := data.attrs.get("missing_trials"):
        left = format_quantity(missing, "trial")
        print(f"{out}: this worker is done and leaves at least {left} to the others")
        return
    compiled = format_quantity(data.attrs["compilations"], "compilation")
    elapsed = data.attrs["elapsed_s"]
    print(
        f"{out}: {format_quantity(len(study.points), 'configuration')}, {compiled}, {elapsed:.3g} s"
    )
    if data.seeds.size <= _MOST_ROWS and int(data.seeds.min()) > 1:
        print_results(data, Priced())
    note_stored(data, out)
    path = shlex.quote(out) + " --plugin FILE" * (not all(map(is_shipped, study.outputs)))
    print(f"next: fmab show {path}, fmab plot {path} --help")


class _PlanRecorder(Progress):
    """Records the plan."""

    plan: dict[str, int]

    def report_workers(self, number: int, threads: int) -> None:
        if not threads:
            error_stream().write(describe_workers(number, threads) + "\n")

    def report_plan(self, plan: Plan) -> None:
        self.plan = {
            "configurations": plan.cells,
            "trials": plan.trials,
            "missing": plan.missing,
            "chunks": plan.blocks,
            "compilations": plan.layouts,
            "disk_bytes": plan.disk_bytes,
            "memory_bytes": plan.memory_bytes,
        }


def _worker(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        refuse("worker", text, "I/N with I from 1 to N", "such as 3/16")
    return int(match[1]), int(match[2])
