"""The ball: walls, paddles, spin."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pong_jax.params import Court

__all__ = ["Ball", "bounce_left", "bounce_right", "bounce_walls", "move"]


class Ball(NamedTuple):
    """Position (lower left corner) and speed, each of the number type."""

    x: jax.Array
    y: jax.Array
    vx: jax.Array
    vy: jax.Array


def move(ball: Ball) -> Ball:
    """The ball one frame later."""
    return ball._replace(x=ball.x + ball.vx, y=ball.y + ball.vy)


def bounce_walls(ball: Ball, court: Court) -> Ball:
    """Reverse the vertical speed outside the court; the position stays outside for now."""
    outside = (ball.y < 0) | (ball.y + court.ball_height > court.height)
    return ball._replace(vy=jnp.where(outside, -ball.vy, ball.vy))


def bounce_left(ball: Ball, paddle_yl: jax.Array, court: Court) -> tuple[Ball, jax.Array]:
    """Meet the left side: no spin and no clipping there.

    Returns:
        The ball, and whether it passed the opponent's paddle (a point for the agent).
    """
    reached = ball.x < 0
    hit = reached & _overlaps(ball, paddle_yl, court)
    return ball._replace(vx=jnp.where(hit, -ball.vx, ball.vx)), reached & ~hit


def bounce_right(
    ball: Ball, paddle_yr: jax.Array, spin: jax.Array, court: Court
) -> tuple[Ball, jax.Array, jax.Array]:
    """Meet the right side: spin, then clip the ball into the court.

    Args:
        ball: the ball.
        paddle_yr: lower edge of the agent's paddle.
        spin: what the moving paddle adds to the vertical speed.
        court: constants.

    Returns:
        The ball, whether the agent's paddle hit it, and whether it passed (a point against).
    """
    reached = ball.x + court.ball_width > court.width
    hit = reached & _overlaps(ball, paddle_yr, court)
    vy = jnp.clip(ball.vy + spin, -court.ball_max_speed_y, court.ball_max_speed_y)
    vy = jnp.where(_is_horizontal(vy), court.ball_speed_y_increment, vy)
    bounced = Ball(
        x=jnp.clip(ball.x, 0, court.width - court.ball_width),
        y=jnp.clip(ball.y, 0, court.height - court.ball_height),
        vx=-ball.vx,
        vy=vy,
    )
    return select(hit, bounced, ball), hit, reached & ~hit


def select(condition: jax.Array, yes: Any, no: Any) -> Any:
    """`jnp.where` over the leaves of two equal pytrees."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _overlaps(ball: Ball, paddle_y: jax.Array, court: Court) -> jax.Array:
    above = ball.y + court.ball_height > paddle_y
    return above & (ball.y < paddle_y + court.paddle_height)


def _is_horizontal(vy: jax.Array) -> jax.Array:
    # |vy| < 0.01 in the reference, which for integers is vy = 0.
    return vy == 0 if jnp.issubdtype(vy.dtype, jnp.integer) else jnp.abs(vy) < jnp.float32(0.01)
