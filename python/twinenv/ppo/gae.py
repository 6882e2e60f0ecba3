"""Generalised advantage estimation."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["advantages"]


def advantages(
    reward: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    done: jax.Array,
    gamma: float,
    gae_lambda: float,
) -> jax.Array:
    """Advantages of `T` steps of `N` environments.

    `A[t] = r[t] + gamma * v'[t] - v[t] + gamma * lambda * (1 - done[t]) * A[t + 1]` and `A[T] = 0`.

    Args:
        reward: `float32[T, N]`.
        value: `float32[T, N]`, of the observation in which step t was taken.
        next_value: `float32[T, N]`, of what step t led to within its own episode: of the next
            observation, of the final one where the episode was cut short, 0 where it ended.
        done: `bool[T, N]`, the episode ended with step t, for either reason.
        gamma: discount per step.
        gae_lambda: weight of longer returns, 0 to 1.

    Returns:
        `float32[T, N]`.
    """
    delta = reward + gamma * next_value - value
    decay = gamma * gae_lambda * (1.0 - done.astype(jnp.float32))

    def back(
        following: jax.Array, step: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        advantage = step[0] + step[1] * following
        return advantage, advantage

    return jax.lax.scan(back, jnp.zeros_like(delta[0]), (delta, decay), reverse=True)[1]
