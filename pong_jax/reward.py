"""Reward of a step."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from pong_jax.rules import Outcome

__all__ = ["reward_of"]


def reward_of(outcome: Outcome) -> jax.Array:
    """`float32`: 1 for a point, -1 for a point lost, else 0.1 if the agent's paddle hit the ball.

    A point overwrites the 0.1 of a bounce earlier in the same step (`pong.h` step).
    """
    bounce = jnp.where(outcome.bounced, jnp.float32(0.1), jnp.float32(0.0))
    return jnp.where(outcome.point == 0, bounce, outcome.point.astype(jnp.float32))
