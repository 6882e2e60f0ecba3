"""What the agent sees."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from halfcheetah_jax.dynamics import COMPILED

__all__ = ["index", "observe"]


def observe(qpos: jax.Array, qvel: jax.Array, with_x: bool) -> jax.Array:
    """`[17]` positions but for x, then speeds; `[18]` with x in front."""
    return jnp.concatenate([qpos if with_x else qpos[1:], qvel])


def index(with_x: bool) -> tuple[str, ...]:
    """Name of each component of the observation."""
    joints = COMPILED["joints"]
    return (*(joints if with_x else joints[1:]), *(f"{joint}_speed" for joint in joints))
