"""Running statistics of observations and returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["Moments", "initial_moments", "merged", "standardized"]

_EPSILON = 1e-8
_LIMIT = 10.0


class Moments(NamedTuple):
    """Mean and variance of what was seen so far.

    Attributes:
        seen: `float32`, how many values.
        mean: pytree of `float32[...]`, shaped as one value.
        var: pytree of `float32[...]`, likewise; 1 before the first value.
    """

    seen: jax.Array
    mean: Any
    var: Any


def initial_moments(one: Any) -> Moments:
    """The moments of nothing: standardising with them changes nothing but the limits.

    Args:
        one: pytree of arrays or shapes like one value.
    """
    mean = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, jnp.float32), one)
    return Moments(jnp.zeros((), jnp.float32), mean, jax.tree.map(jnp.ones_like, mean))


def merged(moments: Moments, batch: Any) -> Moments:
    """The moments after `batch`, a pytree of `[T, N, ...]` (Chan's parallel formula)."""
    rows = jax.tree.leaves(batch)[0]
    new = jnp.asarray(rows.shape[0] * rows.shape[1], jnp.float32)
    seen = moments.seen + new
    weight = new / seen
    batch = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), batch)
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

    return jax.tree.map(one, values, moments.mean, moments.var)
