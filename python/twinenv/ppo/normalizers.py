"""Running statistics of observations and returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["Moments", "initial_moments", "merged", "standardized"]

_EPSILON = 1e-8
_LIMIT = 10.0


class Moments(NamedTuple):
    """Mean and variance of what was seen so far, of each leaf of a pytree in the order of leaves.

    Attributes:
        seen: `float32`, how many values.
        mean: `float32[...]`, shaped as that leaf of one value.
        var: `float32[...]`, likewise; 1 before the first value.
    """

    seen: jax.Array
    mean: list[jax.Array]
    var: list[jax.Array]


def initial_moments(one: Any) -> Moments:
    """The moments of nothing: standardising with them changes nothing but the limits.

    Args:
        one: pytree of arrays or shapes like one value.
    """
    mean = [jnp.zeros(leaf.shape, jnp.float32) for leaf in jax.tree.leaves(one)]
    return Moments(jnp.zeros((), jnp.float32), mean, [jnp.ones_like(leaf) for leaf in mean])


def merged(moments: Moments, batch: Any) -> Moments:
    """The moments after `batch`, a pytree of `[T, N, ...]` (Chan's parallel formula)."""
    batch = [leaf.astype(jnp.float32) for leaf in jax.tree.leaves(batch)]
    new = jnp.asarray(batch[0].shape[0] * batch[0].shape[1], jnp.float32)
    seen = moments.seen + new
    weight = new / seen
    batch_mean = jax.tree.map(lambda leaf: jnp.mean(leaf, axis=(0, 1)), batch)
    batch_var = jax.tree.map(lambda leaf: jnp.var(leaf, axis=(0, 1)), batch)

    def variance(old: jax.Array, now: jax.Array, gap: jax.Array) -> jax.Array:
        return old + weight * (now - old) + weight * (1.0 - weight) * gap * gap

    gap = jax.tree.map(jnp.subtract, batch_mean, moments.mean)
    mean = jax.tree.map(lambda old, step: old + weight * step, moments.mean, gap)
    return Moments(seen, mean, jax.tree.map(variance, moments.var, batch_var, gap))


def standardized(moments: Moments, values: Any) -> Any:
    """`values` less their mean, over their standard deviation, within ±10."""

    def one(value: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        value = (value.astype(jnp.float32) - mean) * jax.lax.rsqrt(var + _EPSILON)
        return jnp.clip(value, -_LIMIT, _LIMIT)

    leaves, structure = jax.tree.flatten(values)
    return jax.tree.unflatten(structure, map(one, leaves, moments.mean, moments.var))
