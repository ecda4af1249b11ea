"""Arrays in one order: sums that no batch changes, and samplers applied only where needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float


def pairwise_sum(values: Float[Array, "n ..."]) -> Float[Array, ...]:
    """Sums over the first axis pairwise, in one order; a compiler's own depends on the batch."""
    size = values.shape[0]
    while size > 1:
        half = (size + 1) // 2
        pairs = values[: size - half] + values[half:size]
        values = jnp.concatenate([pairs, values[size - half : half]])
        size = half
    return values[0]


def padded_sum(values: Float[Array, "n ..."]) -> Float[Array, ...]:
    return pairwise_sum(values)


def rounded(product: Float[Array, ...]) -> Float[Array, ...]:
    """Rounds a product to 52 bits before it is added to, so that no compiler fuses the two.

    Whether it would depends on the program around them, and a seed's results must not.
    """
    return lax.reduce_precision(product, exponent_bits=11, mantissa_bits=51)


def masked_map(
    sample: Callable[..., Array], need: Bool[Array, ...], *operands: Array
) -> Float[Array, ...]:
    """Applies an elementwise sampler where it is needed, and gives 0 elsewhere.

    Under ``vmap`` the whole batch is one long list: the needed elements are gathered and sampled a
    chunk at a time, so that arms which have left cost next to nothing.

    Args:
        sample: Maps equally long vectors to one float64 vector, element by element.
        need: Which elements to sample.
        *operands: Arguments of ``sample``, each of a shape that broadcasts to that of ``need``.
    """
    shape = need.shape

    @custom_vmap
    def whole(need: Array, *operands: Array) -> Array:
        return fill(sample, need, jnp.zeros_like(need, jnp.float64), *operands)

    @whole.def_vmap
    def rule(size: int, is_batched: list[bool], *operands: Array) -> tuple[Array, bool]:
        flat = [
            x if mapped else jnp.broadcast_to(x, (size, *x.shape))
            for x, mapped in zip(operands, is_batched, strict=True)
        ]
        return whole(*(x.reshape(-1) for x in flat)).reshape(size, -1), True

    flat = [jnp.broadcast_to(x, shape).reshape(-1) for x in operands]
    return whole(need.reshape(-1), *flat).reshape(shape)


def fill(
    sample: Callable[..., Array],
    need: Bool[Array, " lane"],
    value: Float[Array, " lane"],
    *operands: Array,
) -> Float[Array, " lane"]:
    """Replaces ``value`` by ``sample(*operands)`` where needed, a chunk of elements at a time."""
    size = need.shape[0]
    chunk = min(size, max(256, size // 16))
    ranks = jnp.cumsum(need, dtype=jnp.int32)
    total = ranks[-1]

    def one_chunk(state: tuple[Array, Array]) -> tuple[Array, Array]:
        done, found = state
        # Past the last needed element the chunk repeats it.
        wanted = jnp.minimum(done + 1 + jnp.arange(chunk, dtype=jnp.int32), total)
        lane = jnp.searchsorted(ranks, wanted)
        fresh = sample(*(x[lane] for x in operands))
        return done + chunk, lax.dynamic_update_slice(found, fresh, (done,))

    room = -(-size // chunk) * chunk
    start = varying_like((jnp.int32(0), jnp.zeros(room)), need, *operands)
    found = lax.while_loop(lambda s: s[0] < total, one_chunk, start)[1]
    # Back by gathering: accelerators scatter slowly.
    return jnp.where(need, found[jnp.maximum(ranks - 1, 0)], value)


def varying_like(tree: Any, *others: Array) -> Any:
    """Lets a loop's constant start vary over devices as ``others`` do; `jax.shard_map` insists."""
    never = jnp.bool_(False)
    for x in others:
        first = x.reshape(-1)[0]
        never = never | ((first == first) & False)
    # A select takes the axes of its condition; the compiler then removes it.
    return jax.tree.map(lambda x: jnp.where(never, jnp.zeros_like(x), x), tree)
