"""How far Pong's observations reach."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from pong_jax.params import EnvParams

__all__ = ["observation_limits"]

_ROUNDING = 1e-6


def observation_limits(params: EnvParams) -> tuple[jax.Array, jax.Array]:
    """Least and greatest observation, each `float32[8]`.

    The reference declares 0 to 1; the ball is outside the court for a frame when it bounces.
    """
    p = params
    fastest = jnp.maximum(p.ball_max_speed_y, p.ball_initial_speed_y)
    fastest = jnp.maximum(fastest, p.ball_speed_y_increment)
    over_x, over_y = p.ball_initial_speed_x / p.width + _ROUNDING, fastest / p.height + _ROUNDING
    over_v = (fastest - p.ball_max_speed_y) / (2 * p.ball_max_speed_y) + _ROUNDING
    most = 1.0 + _ROUNDING
    low = [0.0, 0.0, -over_x, -over_y, 0.0, -over_v, 0.0, 0.0]
    high = [most, most, most, 1.0 + over_y, most, 1.0 + over_v, 0.0, 0.0]
    return jnp.asarray(low, jnp.float32), jnp.asarray(high, jnp.float32)
