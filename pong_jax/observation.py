"""What the agent sees: eight numbers, about 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from pong_jax.params import Court, EnvParams, court_of
from pong_jax.rules import Rally

__all__ = ["INDEX", "observe"]

INDEX = (
    "paddle_yl",
    "paddle_yr",
    "ball_x",
    "ball_y",
    "ball_vx",
    "ball_vy",
    "score_l",
    "score_r",
)
"""Name of each component of the observation."""


def observe(rally: Rally, params: EnvParams) -> jax.Array:
    """Observation `float32[8]` in the order of `INDEX` (`pong.h` compute_observations).

    The reference divides the scores by `max_score` in unsigned integers, and a score that reaches
    it ends the game, so the last two are always 0.
    """
    court = court_of(params, jnp.float32)
    paddle_yl, paddle_yr, ball = jax.tree.map(lambda value: value.astype(jnp.float32), rally)
    zero = jnp.zeros_like(ball.x)
    parts = (
        _paddle(paddle_yl, court),
        _paddle(paddle_yr, court),
        ball.x / court.width,
        ball.y / court.height,
        (ball.vx + court.ball_initial_speed_x) / (2 * court.ball_initial_speed_x),
        (ball.vy + court.ball_max_speed_y) / (2 * court.ball_max_speed_y),
        zero,
        zero,
    )
    # A custom batching rule cannot be differentiated, which only continuous play may ask for.
    discrete = jnp.issubdtype(rally.ball.x.dtype, jnp.integer)
    return _stack(*parts) if discrete else jnp.stack(parts)


@jax.custom_batching.custom_vmap
def _stack(*parts: jax.Array) -> jax.Array:
    return jnp.stack(parts)


@_stack.def_vmap
def _stack_batch(size: int, batched: Sequence[bool], *parts: jax.Array) -> tuple[jax.Array, bool]:
    """The first component of all environments, then the second and so on, seen as `[size, 8]`.

    XLA keeps that layout in memory; to write each environment's eight numbers side by side takes
    several times as long.
    """
    full = [
        part if has_axis else jnp.broadcast_to(part, (size, *part.shape))
        for part, has_axis in zip(parts, batched, strict=True)
    ]
    return jnp.stack(full).swapaxes(0, 1), True


def _paddle(paddle_y: jax.Array, court: Court) -> jax.Array:
    return (paddle_y - court.min_paddle_y) / (court.max_paddle_y - court.min_paddle_y)
