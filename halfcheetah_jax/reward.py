"""Reward of a step."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["reward_of"]


def reward_of(
    displacement: jax.Array, action: jax.Array, seconds: Any, params: Any
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Reward and its parts, as in Gymnasium's HalfCheetah-v5.

    Args:
        displacement: of the root along x over the step, in metres.
        action: as given: what the motors clip is paid for all the same.
        seconds: that the step took.
        params: weights.
    """
    number = displacement.dtype
    speed = displacement / seconds
    forward = jnp.asarray(params.forward_reward_weight, number) * speed
    cost = jnp.asarray(params.ctrl_cost_weight, number) * jnp.sum(jnp.square(action))
    parts = {"x_velocity": speed, "reward_forward": forward, "reward_ctrl": -cost}
    return forward - cost, parts
