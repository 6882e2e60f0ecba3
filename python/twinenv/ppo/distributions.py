"""Action distributions: a masked categorical and a diagonal Gaussian."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

__all__ = ["Categorical", "Distribution", "Gaussian", "masked"]

_LOG_2PI = math.log(2.0 * math.pi)


class Categorical(NamedTuple):
    """Integers from 0 to `A - 1`.

    Attributes:
        log_probs: `float32[..., A]`, normalised; `-inf` where an action is impossible.
    """

    log_probs: jax.Array

    def sample(self, key: jax.Array) -> jax.Array:
        """`int32[...]`, by inverting the distribution function (one uniform number each).

        An impossible action is never drawn, whatever the rounding of the sums.
        """
        probs = jnp.exp(self.log_probs)
        cumulative = jnp.cumsum(probs, axis=-1)
        # u < 1, so u * max < max in float32 too: at least one possible action lies above.
        top = jnp.max(cumulative, axis=-1, keepdims=True)
        u = jax.random.uniform(key, top.shape, jnp.float32) * top
        above = (cumulative > u) & (probs > 0)
        index = jnp.arange(probs.shape[-1], dtype=jnp.int32)
        return jnp.min(jnp.where(above, index, jnp.int32(probs.shape[-1] - 1)), axis=-1)

    def log_prob(self, action: jax.Array) -> jax.Array:
        """`float32[...]` of `action: int32[...]`."""
        # A comparison and a sum instead of a gather, whose gradient is a slow scatter.
        index = jnp.arange(self.log_probs.shape[-1], dtype=jnp.int32)
        taken = index == action[..., None]
        return jnp.sum(jnp.where(taken, self.log_probs, 0.0), axis=-1)

    def entropy(self) -> jax.Array:
        """`float32[...]`, in nats."""
        possible = self.log_probs > -jnp.inf
        log_probs = jnp.where(possible, self.log_probs, 0.0)
        return -jnp.sum(jnp.where(possible, jnp.exp(log_probs) * log_probs, 0.0), axis=-1)

    def mode(self) -> jax.Array:
        """`int32[...]`, the likeliest action."""
        return jnp.argmax(self.log_probs, axis=-1).astype(jnp.int32)


def masked(logits: jax.Array, mask: jax.Array | None) -> Categorical:
    """The categorical of `logits: float32[..., A]` over what `mask: bool[..., A]` allows.

    Gradients stay finite: what is masked out does not enter them.
    """
    if mask is None:
        return Categorical(jax.nn.log_softmax(logits, axis=-1))
    low = jnp.finfo(logits.dtype).min
    log_probs = jax.nn.log_softmax(jnp.where(mask, logits, low), axis=-1)
    return Categorical(jnp.where(mask, log_probs, -jnp.inf))


class Gaussian(NamedTuple):
    """Independent normal components; the environment gets them clipped to [-1, 1].

    Log-probabilities are those of the sample before clipping, which is what training stores.

    Attributes:
        mean: `float32[..., D]`.
        log_std: `float32[..., D]`.
    """

    mean: jax.Array
    log_std: jax.Array

    def sample(self, key: jax.Array) -> jax.Array:
        """`float32[..., D]`, not clipped."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + jnp.exp(self.log_std) * noise

    def log_prob(self, action: jax.Array) -> jax.Array:
        """`float32[...]` of `action: float32[..., D]`."""
        z = (action - self.mean) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * (z * z + _LOG_2PI) - self.log_std, axis=-1)

    def entropy(self) -> jax.Array:
        """`float32[...]`, in nats."""
        return jnp.sum(self.log_std + 0.5 * (1.0 + _LOG_2PI), axis=-1)

    def mode(self) -> jax.Array:
        """`float32[..., D]`, the mean."""
        return self.mean


Distribution: TypeAlias = Categorical | Gaussian
