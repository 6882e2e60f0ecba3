"""Batches of states and actions that several tests use."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from halfcheetah_jax import EnvState

NUM_ENVS = 6
KEYS = jax.random.split(jax.random.key(0), NUM_ENVS)


def states(qpos, qvel, time=0):
    """Batched states of JAX's present floating type."""
    number = jnp.result_type(float)
    return EnvState(
        qpos=jnp.asarray(qpos, number),
        qvel=jnp.asarray(qvel, number),
        qacc_warmstart=jnp.zeros(np.shape(qpos), number),
        time=jnp.full(np.shape(qpos)[:-1], time, jnp.int32),
    )


def started(seed):
    rng = np.random.default_rng(seed)
    qpos = rng.uniform(-0.1, 0.1, (NUM_ENVS, 9))
    return states(qpos, 0.1 * rng.standard_normal((NUM_ENVS, 9)))


def random_actions(seed, *shape, most=1.3):
    """Actions that leave [-1, 1] now and then."""
    return np.random.default_rng(seed).uniform(-most, most, (*shape, 6)).astype(np.float32)
