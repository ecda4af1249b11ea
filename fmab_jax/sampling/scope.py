"""The package's settings of JAX, independent of the caller's settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import jax
import numpy as np
from jax.sharding import Mesh


@contextmanager
def package_settings(mesh: Mesh | None = None) -> Iterator[None]:
    """Runs a block in float64, compiled, on arrays from the host; in this thread only.

    A caller's ``jax.set_mesh``, transfer guard or ``jax.disable_jit`` neither stops a simulation
    nor changes its bits, and is in effect again after the block.

    Args:
        mesh: Mesh of ``jax.shard_map``; by default the default device.
    """
    with ExitStack() as scope:
        scope.enter_context(jax.enable_x64(True))
        scope.enter_context(jax.transfer_guard("allow"))
        scope.enter_context(jax.disable_jit(False))
        # The caller's mesh would refuse another one, and JAX cannot unset it: ours replaces it.
        scope.enter_context(jax.set_mesh(mesh or Mesh(np.array(jax.local_devices()[:1]), ("own",))))
        yield
