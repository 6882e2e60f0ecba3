"""One step of Pong: `frameskip` frames, then the score, then perhaps a new round."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pong_jax.params import Court
from pong_jax.rules.ball import bounce_left, bounce_right, bounce_walls, move, select
from pong_jax.rules.paddles import move_opponent, move_player
from pong_jax.rules.serve import Rally, serve
from twinenv.stages import stage

__all__ = ["Frames", "Outcome", "step"]


class Frames(NamedTuple):
    """What a step's frames have come to.

    `point` (of the number type) is 1 once the agent has scored, -1 once the opponent has, and from
    then on nothing moves: the rally stays as it was before the frame of the point.
    `bounced` says that the agent's paddle has hit the ball.
    """

    rally: Rally
    point: jax.Array
    bounced: jax.Array


class Outcome(NamedTuple):
    """What a step came to.

    Attributes:
        rally: where the next step begins; at the end of the game, as the last frame left it.
        seen: the rally that the reference shows: before the point, if there was one.
        point: of the number type: 1 agent scored, -1 opponent scored, 0 neither.
        bounced: bool, the agent's paddle hit the ball.
        score_l: int16, opponent's points.
        score_r: int16, agent's points.
        game_over: bool.
        served: bool, whether the serve bit was used.
    """

    rally: Rally
    seen: Rally
    point: jax.Array
    bounced: jax.Array
    score_l: jax.Array
    score_r: jax.Array
    game_over: jax.Array
    served: jax.Array


def step(  # noqa: PLR0913 - all that the rules read
    rally: Rally,
    scores: tuple[jax.Array, jax.Array],
    direction: jax.Array,
    serve_bit: jax.Array,
    court: Court,
    max_score: Any,
    frameskip: int,
) -> Outcome:
    """One step without the reset after a game (`pong.h` step).

    Args:
        rally: paddles and ball.
        scores: opponent's and agent's points, int16.
        direction: of the number type; 1 up, 0 still, -1 down, or between for continuous play.
        serve_bit: `uint32` 0 or 1, used only if a new round begins.
        court: constants.
        max_score: points that end the game.
        frameskip: frames in a step.
    """
    shift, spin = court.paddle_speed * direction, court.ball_speed_y_increment * direction
    frames = play(rally, shift, spin, court, frameskip)
    score_l, score_r, game_over, served = settle(frames.point, *scores, max_score)
    return Outcome(
        rally=select(served, serve(serve_bit, court), frames.rally),
        seen=frames.rally,
        point=frames.point,
        bounced=frames.bounced,
        score_l=score_l,
        score_r=score_r,
        game_over=game_over,
        served=served,
    )


# A stage, so that steps outside of a program do not compile the loop anew each time.
@functools.partial(stage, static_argnums=(4,))
def play(rally: Rally, shift: jax.Array, spin: jax.Array, court: Court, frameskip: int) -> Frames:
    """`frameskip` frames, fewer if a point is scored."""
    still = jnp.zeros_like(rally.ball.x)
    frames = Frames(rally, still, jnp.zeros_like(still, jnp.bool_))
    if frameskip == 1:
        return frame(frames, shift, spin, court)
    return jax.lax.fori_loop(0, frameskip, lambda _, f: frame(f, shift, spin, court), frames)


@stage
def frame(frames: Frames, shift: jax.Array, spin: jax.Array, court: Court) -> Frames:
    """One frame of the rally."""
    paddle_yl, paddle_yr, ball = frames.rally
    paddle_yr = move_player(paddle_yr, shift, court)
    paddle_yl = move_opponent(paddle_yl, ball.y, court)
    ball = bounce_walls(move(ball), court)
    ball, won = bounce_left(ball, paddle_yl, court)
    ball, hit, lost = bounce_right(ball, paddle_yr, spin, court)
    return commit(frames, Rally(paddle_yl, paddle_yr, ball), won, hit, lost)


def commit(frames: Frames, rally: Rally, won: jax.Array, hit: jax.Array, lost: jax.Array) -> Frames:
    """Keep a frame unless a point ended the round, in it or before it."""
    running = frames.point == 0
    one = jnp.ones_like(frames.point)
    point = jnp.where(won, one, jnp.where(lost, -one, jnp.zeros_like(one)))
    point = jnp.where(running, point, frames.point)
    kept = running & (point == 0)
    return Frames(select(kept, rally, frames.rally), point, frames.bounced | (kept & hit))


@stage
def settle(
    point: jax.Array, score_l: jax.Array, score_r: jax.Array, max_score: Any
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Both scores after a step, whether the game is over, and if not, whether a round begins."""
    won, lost = point > 0, point < 0
    score_l = score_l + lost.astype(jnp.int16)
    score_r = score_r + won.astype(jnp.int16)
    scored = won | lost
    game_over = scored & (jnp.where(won, score_r, score_l) == jnp.asarray(max_score, jnp.int16))
    return score_l, score_r, game_over, scored & ~game_over
