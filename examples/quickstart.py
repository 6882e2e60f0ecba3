"""Ten lines: make an environment, step a thousand of them, play with a policy."""

import jax
import jax.numpy as jnp

import twinenv

env, params = twinenv.make("PongJAX-v0", frameskip=8)
keys = jax.random.split(jax.random.key(0), 1000)
reset = jax.jit(jax.vmap(env.reset, (0, None)))
step = jax.jit(jax.vmap(env.step, (0, 0, 0, None)))
obs, state = reset(keys, params)
actions = jnp.zeros(1000, jnp.int32)
obs, state, reward, done, info = step(keys, state, actions, params)
print("observations", obs.shape, "points", int(jnp.sum(info["point"])))

trajectory, state = twinenv.rollout(env, params, None, jax.random.key(1), 64, 100)
print("random play, reward per step", float(jnp.mean(trajectory.reward)))
