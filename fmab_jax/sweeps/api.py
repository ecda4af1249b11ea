"""The public doors to studies: `Study`, and `sweep` and `simulate`, which run one at once."""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import jax
import xarray as xr

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.errors import PlainText, Refusal, count, format_quantity, refuse
from fmab_jax.parameters import UNSET, parameters_of
from fmab_jax.parts.plugins import plugin_sources
from fmab_jax.records.problem import Problem
from fmab_jax.run.configs import MAX_HORIZON, check_types
from fmab_jax.run.outputs import to_study
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps import study_file
from fmab_jax.sweeps.fields import FIELDS
from fmab_jax.sweeps.progress import Progress
from fmab_jax.sweeps.runner import run
from fmab_jax.sweeps.study import Design
from fmab_jax.sweeps.subjects import RANDOM_PROBLEM, RandomProblem

if TYPE_CHECKING:
    from distributed import Client

# Values of these packages need no plug-in.
_OTHERS = ("builtins", "fmab_jax", "networkx", "numpy")
Owner = TypeVar("Owner", bound=Callable[..., object])


def _with_fields(owner: Owner) -> Owner:
    """Shows the fields of a study in a signature, in place of ``**study``."""
    signature = inspect.signature(owner)
    known = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    fields = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if p.default is UNSET else p.default,
        )
        for name, p in FIELDS.items()
        if name not in signature.parameters
    ]
    rest = [p for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD]
    owner.__signature__ = signature.replace(parameters=[*known, *fields, *rest])  # type: ignore[attr-defined]
    return owner


@_with_fields
class Study(Design):
    """What is to be simulated: algorithms, a problem and how many seeds; it holds no results.

    A list (tuple, range, array) given for any parameter sweeps it: it becomes a labelled dimension
    of the results; a dict gives the labels. Equal studies have an equal ``hash``, which names all
    that their numbers depend on, and compare equal.

    Args:
        algorithm: A class such as `cdp_mab`, its name (``cdp``), a configured algorithm, or a list
            or dict of these.
        problem: A `Problem`, or a list or dict of Problems; left out, each seed draws its means,
            with agents=50, arms=100, spread=0, instance_gap and fixed_instance, or files hold them:
            ``means="means.csv"``, with ``means_error``.
        horizon: T, in slots, in [1, 10^12]; agents x horizon at most 2^53.
        seeds: How many of each configuration (0, 1, ..., n - 1), or which; each in [0, 2^32). A
            seed's results depend on nothing but ``root_seed`` and itself. With ``until``, how many
            at the first look.
        root_seed: Selects all randomness, in [0, 2^32).
        times: Number of recorded slots, or the slots themselves; the horizon is always recorded.
        spacing: "linear" or "log", for a number of slots.
        sum_agents: Draw totals over agents where that is exact. False draws agent by agent: the
            same law, other numbers.
        keep: "curves" keeps every seed, "summary" moments, a histogram of the regret at T and
            counts: for very many seeds.
        until: `until_precise(...)`: add seeds until each configuration's band is narrow; needs
            "summary".
        outputs: What comes out besides, such as ``["regret_by_agent"]``; ``fmab list`` shows
            what there is, and an `Output` of one's own does as well.
        dims: Order of the dimensions, such as ``["epsilon", "agents"]``; by default that of the
            arguments.
        fast_compile: Prefer fast compilation to fast runs, with equal bits; by default for few
            trials.
        values: The algorithm's (epsilon, participation, schedule_gap, graph ...) and the
            problem's (agents, arms, spread, instance_gap ...); ``leak`` sets epsilon.

    Raises:
        ValueError: If a value is refused. What does not go together is refused once the study is
            run, saved or hashed.

    Example:
        >>> import fmab_jax as fmab
        >>> study = fmab.Study("cdp", epsilon=[0.1, 1], agents=5, arms=10, horizon=10**4, seeds=20)
        >>> study.words()[:4]
        ['cdp', '--horizon', '10000', '--seeds']
        >>> study == fmab.Study.read(study.save("study.toml"))
        True
        >>> study.run().regret.dims
        ('epsilon', 'seed', 'time')
    """

    run = run

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a study file (.toml).

        Raises:
            ValueError: If it is no study, has an unknown key, or a value is refused.
        """
        return cls.from_document(study_file.read_study(path))

    @classmethod
    def from_document(cls, document: Record) -> Self:
        """Builds the study that a parsed study file states."""
        return cls(**study_file.build_arguments(document))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a study file, from which `read` makes an equal study.

        Returns:
            The path.

        Raises:
            ValueError: If the path does not end in .toml, or if no file says the study: it has
                means, graphs or classes that are objects of Python, and not names or files.
            OSError: If it cannot be written.
        """
        return study_file.write_study(self.document, path)

    def words(self) -> list[str]:
        """Returns the words that say the study to ``fmab run`` and ``fmab sweep``.

        Raises:
            ValueError: If no words say it; they have no labels and no axis of one value.
        """
        words = study_file.write_words(self.document)
        problems = [point.config.problem for point in self.points]
        algorithms = [point.config.algorithm for point in self.points]
        parts = [x for algorithm in algorithms for x in (algorithm, *vars(algorithm).values())]
        parts += [x for p in problems for x in (p.rewards, p.world, p.presence)]
        modules = [type(x).__module__ for x in parts] + [x.of.__module__ for x in self.outputs]
        paths = {source.name: source.path for source in plugin_sources()}
        # What is no file is a module that was loaded by its name.
        plugins = [x for x in dict.fromkeys(modules) if x.partition(".")[0] not in _OTHERS]
        return words + [word for name in plugins for word in ("--plugin", paths.get(name, name))]

    @property
    def document(self) -> Record:
        """What a study file states, as its parser returns it.

        Raises:
            ValueError: If no study file says the study.
        """
        try:
            document = self._build_document()
            text = study_file.format_document(document)
            if self.from_document(tomllib.loads(text)).hash == self.hash:
                return document
        except (Refusal, AttributeError, KeyError, TypeError, ValueError):
            _ = self.points  # what does not go together has a line of its own
        remedy = "load plug-ins by their files, and give means='FILE.npz' and graphs as files"
        refuse("study", PlainText(f"{self}"), "made of names, numbers and files", remedy)

    def _build_document(self) -> Record:
        description = self.describe()
        description.pop("outputs", None)
        description |= to_study(self.extra_outputs)
        if self.files:
            description["problem"] = RANDOM_PROBLEM
        seeds = () if self.seed_list is None else self.seed_list
        document = study_file.build_document(description, seeds)
        if self.files:
            document["problem"] = {name: self._plain_file(name) for name in self.files}
        tables = [document, document["problem"], document["parameters"]]
        for axis in self.axes:
            kind = self.parameters[axis.name].kind
            if [*axis.labels] != [kind.label(value) for value in axis.values]:
                for table in [table for table in tables if isinstance(table.get(axis.name), list)]:
                    table[axis.name] = dict(zip(axis.labels, table[axis.name], strict=True))
        return document

    def _plain_file(self, name: str) -> object:
        """Returns an argument beside a file of means as a study file writes it."""
        value = self.files[name]
        if name == "means":
            return os.fspath(value)
        parameter = {**parameters_of(Problem), **parameters_of(RandomProblem)}[name]
        return study_file.write_plain(parameter, parameter.kind.plain(parameter.check(value)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Design) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        algorithms = self.parameters["algorithm"].kind
        axes = {axis.name: axis.values for axis in self.axes}
        owners = axes.get("algorithm") or [self.settings["algorithm"]]
        sizes = "".join(f" x {len(axis.values)} {axis.name}" for axis in self.axes)
        names = ", ".join(str(algorithms.label(owner)) for owner in owners)
        return f"<Study of {names}{sizes}, {format_quantity(self.seeds, 'seed')}>"


@_with_fields
def sweep(
    algorithm: object,
    problem: object = None,
    *,
    horizon: object,
    seeds: int | Sequence[int],
    store: str | os.PathLike[str] | None = None,
    worker: object = None,
    client: Client | None = None,
    allow_changes: Collection[str] = (),
    chunk: int | None = None,
    batch: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    progress: Progress | bool | None = None,
    **study: Any,
) -> xr.Dataset:
    """Runs a grid of configurations, for the same seeds each, and keeps what it has computed.

    Every parameter given as a list (tuple, range, array) is swept and becomes a labelled dimension;
    a dict gives the labels. Seeds are shared over cells (common random numbers, see
    `paired_difference`). Equal cells are computed once. Cells that differ in epsilon, p, R, gap, T
    or, as far as they do not shape an array, agents, graphs and means, share one compilation and
    run together, cells x seeds in one program.

    Args:
        algorithm: As in `Study`.
        problem: As in `Study`.
        horizon: As in `Study`.
        seeds: As in `Study`.
        store: Folder to keep the results in, made if missing. What is there already is not computed
            again: an interrupted sweep goes on, a sweep with more seeds computes the difference.
            Without a store results stay in memory.
        worker: (i, n): this process is the i-th of n, i from 1, that share the store and have
            nothing else to do with each other. Each computes its part; start a dead one again.
        client: A `dask.distributed.Client`: its workers compute the chunks, whichever come and go;
            this process keeps the results. Bytes are the same as without, for the same ``chunk``.
        allow_changes: Fields in which the study, or what it is run with, may differ from the one in
            the store; its chunks are used where their configuration is the same.
        chunk: Trials of a chunk, what a kill loses at most; about a second's work by default.
        batch: As in `simulate`.
        devices: As in `simulate`.
        progress: A `Progress`, True for a bar or lines on standard error, False for silence; by
            default a bar on a terminal, and elsewhere one line if a program takes long to compile.
        study: Further arguments of `Study`, such as ``keep`` and ``epsilon``. With a store, outputs
            of one's own come from a plug-in that is loaded: whoever opens the store has to find
            them.

    Returns:
        A Dataset over the swept parameters, then ``seed`` and ``time``, with the variables of
        `simulate` (completed rounds are ``rounds_made``) and ``seeds``; or, for
        ``keep="summary"``, ``regret_mean``, ``regret_covariance``, means of the other series,
        ``regret_quantile``, ``regret_histogram``, ``seeds`` and ``best_arm_lost``. With a store,
        curves are read when they are used; if it holds more seeds of a configuration, the attribute
        ``stored_seeds`` says how many. A worker whose colleagues are not done gets an empty
        Dataset whose attribute ``missing_trials`` says how much is left.

    Raises:
        ValueError: If a value is refused, the study does not fit memory or disk, the store holds
            another study or is a folder that cannot be written, or somebody else is writing.
        OSError: If a chunk cannot be written; what was written stays.
        ConnectionError: If the client's scheduler is lost; what was written stays.
        ChildProcessError: If a client's workers died again and again over one chunk.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.sweep(fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20)
        >>> data.regret.dims, data.epsilon.values.tolist()
        (('epsilon', 'seed', 'time'), [0.1, 1.0])
    """
    return run(
        Study(algorithm, problem, horizon=horizon, seeds=seeds, **study),
        store,
        worker=worker,
        client=client,
        allow_changes=allow_changes,
        chunk=chunk,
        batch=batch,
        devices=devices,
        progress=progress,
    )


@_with_fields
def simulate(
    algorithm: Algorithm,
    problem: Problem,
    horizon: int,
    seeds: int | Sequence[int],
    *,
    batch: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    progress: Progress | bool | None = None,
    **study: Any,
) -> xr.Dataset:
    """Runs an algorithm on a problem for many seeds.

    Args:
        algorithm: One of the package's, such as ``cdp_mab(1.0)``, or your own.
        problem: The arms' means and the law of rewards.
        horizon: T, as in `Study`.
        seeds: As in `Study`.
        batch: Seeds per batch, rounded up to a power of two per device, at least 8 (2 on very large
            problems), and at most all of them; by default as many as suit the device. What does not
            fit into memory is halved.
        devices: Devices that share each batch; all that JAX shows by default.
        progress: Show a bar on a terminal, lines elsewhere; by default on a terminal, if there is
            more than one batch. Unless it is False, a line says so if a program takes long to
            compile.
        study: Further arguments of `Study`, such as ``times``.

    Returns:
        A Dataset over ``seed`` and ``time`` (slots). Series, cumulative and summed over agents:
        ``regret`` (pseudo-regret; exact at every recorded slot), ``waiting_regret`` (the part
        collected while waiting) and, over ``meter`` too, ``links`` (charged at the end of each
        completed round). Per seed: ``rounds_made``, ``numbers_sent`` (by all links of these rounds
        together), ``active_arms``, ``chosen_arm`` (-1 while still exploring at T), ``agents_lost``
        (agents whose active set holds no best arm at T), ``agents_worse`` (agents that play one arm
        at T, and not a best one), ``final_gap`` (gap of what is played at T) and the coordinates
        ``best_arm_lost`` and ``worse_arm_played``. Where agents run alone, ``rounds_made`` and
        ``active_arms`` are the largest of any agent and ``chosen_arm`` is what most agents play.
        It is what `sweep` returns for a single configuration, read into memory: ``seeds`` is their
        number, and ``attrs["study"]`` states all that was asked for. Fixed means come along as
        ``means``.

    Raises:
        ValueError: If an argument is out of range or results do not fit into memory; on a
            processor, also if trials do not.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> data.regret.sizes["seed"], data.regret.sizes["time"], int(data.best_arm_lost.sum())
        (20, 100, 0)
        >>> bool((data.links.sel(meter="server")[:, -1] == 5 * data.rounds_made).all())
        True
    """
    check_types(algorithm, problem)
    horizon = count("horizon", horizon, 1, MAX_HORIZON, "give the number of slots T")
    design = Study(algorithm, problem, horizon=horizon, seeds=seeds, **study)
    data = design.run(batch=batch, devices=devices, progress=progress).load()
    if not problem.drawn:
        data["means"] = (("row", "arm"), problem.means, {"long_name": "mean reward"})
    return data
