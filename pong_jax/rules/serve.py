"""The start of a round and of a game."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from pong_jax.params import Court
from pong_jax.rules.ball import Ball

__all__ = ["Rally", "serve"]


class Rally(NamedTuple):
    """What moves: both paddles' lower edges and the ball."""

    paddle_yl: jax.Array
    paddle_yr: jax.Array
    ball: Ball


def serve(serve_bit: jax.Array, court: Court) -> Rally:
    """A new round (`pong.h` reset_round).

    Args:
        serve_bit: `uint32`, lowest bit of the C library's random number: 0 serves one unit of
            `ball_initial_speed_y` downwards, 1 serves flat.
        court: constants, of the number type of the result.
    """
    flat = serve_bit == jnp.uint32(1)
    vy = jnp.where(flat, jnp.zeros_like(court.ball_initial_speed_y), -court.ball_initial_speed_y)
    ball = Ball(court.serve_ball_x, court.serve_ball_y, court.ball_initial_speed_x, vy)
    return Rally(court.serve_paddle_y, court.serve_paddle_y, ball)
