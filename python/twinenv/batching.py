"""What the rules of `jax.custom_batching.custom_vmap` share."""

from __future__ import annotations

from typing import TypeVar

import jax
import jax.numpy as jnp

__all__ = ["spread"]

T = TypeVar("T")


def spread(size: int, batched: T, values: T) -> T:
    """`values` with a leading axis of `size` in every leaf, added where `batched` says it lacks."""

    def one(has_axis: bool, leaf: jax.Array) -> jax.Array:
        return leaf if has_axis else jnp.broadcast_to(leaf, (size, *leaf.shape))

    return jax.tree.map(one, batched, values)
