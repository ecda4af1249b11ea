"""Many seeds of one configuration: a sweep without an axis."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import xarray as xr
from numpy.typing import ArrayLike

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.errors import count
from fmab_jax.parts.outputs import Output
from fmab_jax.records.problem import Problem
from fmab_jax.run.configs import MAX_HORIZON, check_types
from fmab_jax.sweeps.progress import Progress
from fmab_jax.sweeps.runner import run
from fmab_jax.sweeps.study import state


def simulate(
    algorithm: Algorithm,
    problem: Problem,
    horizon: int,
    seeds: int | Sequence[int],
    *,
    root_seed: int = 0,
    times: ArrayLike = 100,
    spacing: str = "linear",
    batch: int | None = None,
    sum_agents: bool = True,
    outputs: Sequence[str | Output] = (),
    devices: Sequence[jax.Device] | None = None,
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """Runs an algorithm on a problem for many seeds.

    Args:
        algorithm: One of the package's, such as ``cdp_mab(1.0)``, or your own.
        problem: The arms' means and the law of rewards.
        horizon: T, in slots, in [1, 10^12]; agents x horizon at most 2^53.
        seeds: How many (0, 1, ..., n - 1), or which; each in [0, 2^32). A seed's results depend on
            nothing but ``root_seed`` and itself.
        root_seed: Selects the whole experiment's randomness, in [0, 2^32).
        times: Number of recorded slots, or the slots themselves; the horizon is always recorded.
        spacing: "linear" or "log", for a number of slots.
        batch: Seeds per batch, rounded up to a power of two per device, at least 8 (2 on very large
            problems), and at most all of them; by default as many as suit the device. What does not
            fit into memory is halved.
        sum_agents: Draw totals over agents where that is exact. False draws agent by agent: the
            same law, other numbers.
        outputs: What comes out besides, such as ``["regret_by_agent"]``; ``fmab list`` shows
            what there is, and an `Output` of one's own does as well. What is not asked for costs
            nothing.
        devices: Devices that share each batch; all that JAX shows by default.
        progress: Show a bar on a terminal, lines elsewhere; by default on a terminal or in a
            notebook, if there is more than one batch. Unless it is False, a line says so if a
            program takes long to compile.

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
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> data.regret.sizes["seed"], data.regret.sizes["time"], int(data.best_arm_lost.sum())
        (20, 100, 0)
        >>> bool((data.links.sel(meter="server")[:, -1] == 5 * data.rounds_made).all())
        True
    """
    check_types(algorithm, problem)
    horizon = count("horizon", horizon, 1, MAX_HORIZON, "give the number of slots T")
    study = state(
        algorithm,
        problem,
        horizon=horizon,
        seeds=seeds,
        root_seed=root_seed,
        times=times,
        spacing=spacing,
        sum_agents=sum_agents,
        outputs=outputs,
    )
    data = run(study, batch=batch, devices=devices, progress=progress).load()
    if not problem.drawn:
        data["means"] = (("row", "arm"), problem.means, {"long_name": "mean reward"})
    return data
