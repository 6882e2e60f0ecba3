"""The state of one game of Pong."""

from __future__ import annotations

import jax
from flax import struct

from twinenv.fields import field

__all__ = ["EnvState"]


@struct.dataclass
class EnvState:
    """Everything that `pong.h` reads from one step to the next, in its own names.

    Positions and speeds are of the environment's number type: int16 where discrete play never
    leaves the integers, else float32. y grows upwards on the screen.
    """

    paddle_yl: jax.Array = field(
        "lower edge of the left paddle (the opponent)",
        None,
        low=-4000,
        high=8000,
        unit="px",
        reference="paddle_yl",
    )
    paddle_yr: jax.Array = field(
        "lower edge of the right paddle (the agent)",
        None,
        low=-4000,
        high=8000,
        unit="px",
        reference="paddle_yr",
    )
    ball_x: jax.Array = field(
        "left edge of the ball", None, low=-8000, high=8000, unit="px", reference="ball_x"
    )
    ball_y: jax.Array = field(
        "lower edge of the ball", None, low=-16000, high=16000, unit="px", reference="ball_y"
    )
    ball_vx: jax.Array = field(
        "ball speed to the right", None, low=-8000, high=8000, unit="px/frame", reference="ball_vx"
    )
    ball_vy: jax.Array = field(
        "ball speed upwards", None, low=-8000, high=8000, unit="px/frame", reference="ball_vy"
    )
    score_l: jax.Array = field(
        "points of the opponent", "int16", low=0, high=32767, unit="points", reference="score_l"
    )
    score_r: jax.Array = field(
        "points of the agent", "int16", low=0, high=32767, unit="points", reference="score_r"
    )
    rng: jax.Array = field("state of the C library's `rand_r`", "uint32", reference="rng")
    time: jax.Array = field(
        "steps since the game began",
        "int32",
        low=0,
        unit="steps",
        ignored=True,
        why="only our time limit reads it",
    )
