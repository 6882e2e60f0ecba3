"""Run-time numbers of Pong and the checks on them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from flax import struct

__all__ = ["Court", "EnvParams", "check", "court_of", "is_integral", "lengths_of"]


@struct.dataclass
class EnvParams:
    """PufferLib's constructor arguments, with its defaults; lengths in pixels, speeds per frame.

    `max_steps_in_episode` is ours: PufferLib has no limit, and two good players can rally for ever.
    `math.inf` turns it off.
    """

    width: float = 500.0
    height: float = 640.0
    paddle_width: float = 20.0
    paddle_height: float = 70.0
    ball_width: float = 32.0
    ball_height: float = 32.0
    paddle_speed: float = 8.0
    ball_initial_speed_x: float = 10.0
    ball_initial_speed_y: float = 1.0
    ball_speed_y_increment: float = 3.0
    ball_max_speed_y: float = 13.0
    max_score: int = 21
    max_steps_in_episode: float = 10_000


class Court(NamedTuple):
    """The constants that the rules use, as scalars of the state's number type."""

    width: Any
    height: Any
    paddle_height: Any
    half_paddle: Any
    ball_width: Any
    ball_height: Any
    paddle_speed: Any
    ball_initial_speed_x: Any
    ball_initial_speed_y: Any
    ball_speed_y_increment: Any
    ball_max_speed_y: Any
    min_paddle_y: Any
    max_paddle_y: Any
    serve_paddle_y: Any
    serve_ball_x: Any
    serve_ball_y: Any


def court_of(params: EnvParams, number: Any) -> Court:
    """Constants and derived positions, computed in float32 as `pong.h` does, then `number`."""
    as_float: Any = {f: jnp.asarray(v, jnp.float32) for f, v in lengths_of(params).items()}
    p = dataclasses.replace(params, **as_float)
    half = p.paddle_height / 2
    court = Court(
        p.width,
        p.height,
        p.paddle_height,
        half,
        p.ball_width,
        p.ball_height,
        p.paddle_speed,
        p.ball_initial_speed_x,
        p.ball_initial_speed_y,
        p.ball_speed_y_increment,
        p.ball_max_speed_y,
        min_paddle_y=-half,
        max_paddle_y=p.height - half,
        serve_paddle_y=p.height / 2 - half,
        serve_ball_x=p.width / 5,
        serve_ball_y=p.height / 2 - p.ball_height / 2,
    )
    return Court(*(value.astype(number) for value in court))


def is_integral(params: EnvParams) -> bool:
    """Whether discrete play never leaves the integers (concrete params only)."""
    p = params
    derived = (p.paddle_height / 2, p.height / 2 - p.paddle_height / 2, p.width / 5)
    values = (*lengths_of(p).values(), *derived, p.height / 2 - p.ball_height / 2)
    return all(float(value).is_integer() for value in values)


def check(params: EnvParams, number: Any) -> None:
    """Raise ValueError for parameters that no game of Pong can have.

    Args:
        params: concrete parameters.
        number: the state's number type; int16 needs integral parameters.
    """
    for name, value in lengths_of(params).items():
        _demand(name, value, "a finite positive number up to 8000", 0 < value <= 8000)
    score, steps = params.max_score, params.max_steps_in_episode
    whole = 1 <= score <= 32767 and float(score).is_integer()
    _demand("max_score", score, "an integer from 1 to 32767", whole)
    _demand("max_steps_in_episode", steps, "at least 1 (math.inf for no limit)", steps >= 1)
    reach = params.width / 5 + params.ball_initial_speed_x + params.ball_width
    if reach > params.width or params.ball_height > params.height:
        raise ValueError(
            f"the ball leaves the court in the first frame: width {params.width} must be at least "
            f"width/5 + ball_initial_speed_x + ball_width = {reach}, and height {params.height} at "
            f"least ball_height {params.ball_height}"
        )
    if jnp.issubdtype(number, jnp.integer) and not is_integral(params):
        raise ValueError(
            "these parameters (or half the paddle's height, a fifth of the width, half of height "
            "less paddle or ball) are not all integers, which int16 play needs; "
            'use make(..., number="float32")'
        )


def _demand(name: str, value: Any, accepted: str, holds: bool) -> None:
    if math.isnan(value) or not holds:
        raise ValueError(f"{name} is {value}; accepted is {accepted}")


def lengths_of(params: EnvParams) -> dict[str, Any]:
    """Lengths and speeds by name, in the order of the fields."""
    names = [f.name for f in dataclasses.fields(params) if not f.name.startswith("max_s")]
    return {name: getattr(params, name) for name in names}
