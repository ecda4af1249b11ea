"""Results that say all of themselves, though nothing was computed: no program is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from fmab_jax import Study
from fmab_jax.parts.trials import Outcome
from fmab_jax.run import batches, compilation
from fmab_jax.sweeps import chunks, grid, results
from fmab_jax.sweeps.store import Store


@pytest.fixture
def uncomputed(monkeypatch):
    """Has `simulate` compute nothing for 2 seeds; returns what does the same for `sweep`."""

    def nothing(*_: Any, **__: Any) -> Any:
        flat, curves = np.zeros(2), np.zeros((2, 200))
        series = dict.fromkeys(("regret", "rounds_by", "messages_by"), curves)
        fields = dict.fromkeys(Outcome._fields, flat) | series
        yield 0, Outcome(**(fields | {"waiting_regret": None, "accumulator_values": None}))

    monkeypatch.setattr(compilation, "fit_sizes", lambda program, sizes, *_: sizes)
    monkeypatch.setattr(batches, "run_trials", nothing)

    def swept(*given: Any, **options: Any) -> xr.Dataset:
        store: Any = options.pop("store", None)
        header = grid.build_header(Study(*given, **options), {"jax": "1"})
        if store is not None:
            Store(store, create=True).write_header(header)
        return results.dataset(chunks.Results(header, chunks.Memory(), []), "", partial=True)

    return swept
