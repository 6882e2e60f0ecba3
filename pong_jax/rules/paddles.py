"""Paddles: the agent's follows its action, the opponent's follows the ball."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from pong_jax.params import Court

__all__ = ["move_opponent", "move_player"]


def move_player(paddle_yr: jax.Array, shift: jax.Array, court: Court) -> jax.Array:
    """Right paddle after moving by `shift`, paddle speed times the action (`pong.h` step)."""
    return jnp.clip(paddle_yr + shift, court.min_paddle_y, court.max_paddle_y)


def move_opponent(paddle_yl: jax.Array, ball_y: jax.Array, court: Court) -> jax.Array:
    """Left paddle after moving its centre towards the ball's lower edge (`pong.h` step)."""
    delta = ball_y - (paddle_yl + court.half_paddle)
    delta = jnp.clip(delta, -court.paddle_speed, court.paddle_speed)
    return jnp.clip(paddle_yl + delta, court.min_paddle_y, court.max_paddle_y)
