"""Writes results.zip, with version 0.3 of the package (commit 77e1c81b).

cd CHECKOUT_OF_0.3 && PYTHONPATH=. python .../tests/sweeps/data/make.py
"""

import shutil
import tempfile
from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from fmab_jax.algorithms.base import load_plugin

FOLDER = Path(__file__).parent
DRAWN = {"agents": 4, "arms": 3, "horizon": 100, "seeds": 2, "times": 3, "progress": False}
GAUSSIAN = {"mechanism": "gaussian", "epsilon_message": 1}
RUN = {"horizon": 100, "seeds": 2, "times": 3}


def save(data, path):
    """Saves a result without what differs from machine to machine."""
    for name in ("elapsed_s", "compile_s", "compilations", "device", "platform_version"):
        data.attrs.pop(name, None)
    fmab.save(data.load(), path)


def write(folder):
    """Writes all of them into a folder."""
    swept = fmab.sweep("cdp", delta=[1e-6, 1e-3], **GAUSSIAN, **DRAWN)
    save(swept, folder / "deltas.nc")
    fixed = fmab.Problem([0.9, 0.5, 0.1], agents=4)
    save(fmab.simulate(fmab.kl_se(0.5), fixed, **RUN), folder / "means.nc")
    few, many = (fmab.simulate(fmab.cdp_mab(epsilon), fixed, **RUN) for epsilon in (0.5, 2.0))
    joined = xr.concat([few, many], xr.DataArray(["a", "b"], dims="who", name="who"))
    save(joined, folder / "joined.nc")
    later = many.assign_coords(seed=[2, 3])
    save(xr.concat([few, later], "seed", data_vars="all"), folder / "seeds.nc")
    # The delta had no effect, and is refused today.
    save(fmab.simulate(fmab.kl_se(0.5, delta=1e-3), fixed, **RUN), folder / "pure.nc")
    load_plugin(FOLDER / "mine.py")
    kept = fmab.sweep("mine", epsilon=[0.5, None], keep="summary", **DRAWN)
    save(kept, folder / "mine.nc")
    laws = {"mechanism": ["laplace", "gaussian"], "epsilon": 0.5, "delta": 1e-3}
    fmab.sweep("kl_se", store=str(folder / "laws"), **laws, **DRAWN)


def main():
    """Writes the archive."""
    assert fmab.__version__.startswith("0.3"), fmab.__file__
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        shutil.make_archive(str(FOLDER / "results"), "zip", folder)


if __name__ == "__main__":
    main()
