"""The settings of JAX under which everything here runs, whatever the caller's are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import jax
import numpy as np
from jax.sharding import Mesh

from fmab_jax.resources import local_devices


@contextmanager
def own_settings(mesh: Mesh | None = None) -> Iterator[None]:
    """Runs what is inside in float64, compiled, on arrays from the host; in this thread only.

    A caller's ``jax.set_mesh``, transfer guard or ``jax.disable_jit`` is about the caller's own
    arrays; it neither stops a simulation nor changes its bits, and is as it was afterwards.

    Args:
        mesh: What ``jax.shard_map`` is going to use; the default device where nothing is mapped.
    """
    with ExitStack() as scope:
        scope.enter_context(jax.enable_x64(True))
        scope.enter_context(jax.transfer_guard("allow"))
        scope.enter_context(jax.disable_jit(False))
        # The caller's mesh would refuse another one, and JAX cannot unset it: ours replaces it.
        scope.enter_context(jax.set_mesh(mesh or Mesh(np.array(local_devices()[:1]), ("own",))))
        yield
