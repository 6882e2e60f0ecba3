"""Programs that compile Pong's native routine, each to be run in a process of its own.

    python routine_programs.py NAME

What XLA cannot compile in such a routine may end the process, so that a test must survive it.
"""

import dataclasses
import sys

import jax
import jax.numpy as jnp

import pong_jax
import twinenv

NUM_ENVS = 4


def start(**options):
    env, params = pong_jax.make(max_score=2, small_call=True, **options)
    keys = jax.random.split(jax.random.key(0), NUM_ENVS)
    _, state = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    return env, params, keys, state


def while_loops():
    """Loops from which nothing is pruned: unused keys, parameters and outputs stay."""
    readers = (lambda out: out[0], lambda out: out[2], lambda out: out[4]["truncated"])
    for frameskip, read in zip((1, 8, 8), readers, strict=True):
        env, params, keys, state = start(frameskip=frameskip)
        step = jax.vmap(env.step, in_axes=(0, 0, 0, None))

        def run(keys, state, action, params, step=step, read=read):
            def body(loop):
                count, state, _ = loop
                fresh = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, count)
                outcome = step(fresh, state, action, params)
                return count + 1, outcome[1], read(outcome)

            first = (0, state, read(step(keys, state, action, params)))
            return jax.lax.while_loop(lambda loop: loop[0] < 5, body, first)

        jax.block_until_ready(jax.jit(run)(keys, state, jnp.ones(NUM_ENVS, jnp.int32), params))


def conditionals_and_nested_batches():
    env, params, keys, state = start(number="float32")
    step = jax.vmap(env.step, in_axes=(0, 0, 0, None))

    def run(keys, state, action, params):
        moved = jax.lax.cond(
            state.time[0] < 3, lambda: step(keys, state, action, params)[1], lambda: state
        )
        twice = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), (keys, moved, action))
        return jax.vmap(step, in_axes=(0, 0, 0, None))(*twice, params)[:3]

    jax.block_until_ready(jax.jit(run)(keys, state, jnp.ones(NUM_ENVS, jnp.int32), params))


def rollouts():
    for options in ({"frameskip": 8}, {"continuous": True}):
        env, params = pong_jax.make(small_call=True, **options)
        trajectory, _ = twinenv.rollout(env, params, None, jax.random.key(0), NUM_ENVS, 20)
        assert jnp.isfinite(trajectory.reward).all()


def trainers():
    from pong_jax.presets import PRESETS
    from twinenv.ppo.engine import train
    from twinenv.ppo.trainer import Task

    preset = PRESETS["default"]
    small = {"total_steps": 1024, "num_envs": 16, "num_steps": 16, "num_minibatches": 4}
    for seeds in (1, 2):
        config = dataclasses.replace(preset.config, **small, seeds=seeds)
        env, params = pong_jax.make(small_call=True, frameskip=8)
        train(env, params, config, task=Task(outcomes=preset.outcomes, target=preset.target))


def outside_trainers():
    import rejax

    env, params = pong_jax.make(small_call=True, frameskip=8)
    ppo = rejax.PPO.create(
        env=env,
        env_params=params.replace(max_steps_in_episode=30),
        total_timesteps=2048,
        eval_freq=1024,
        num_envs=16,
        num_steps=16,
    )
    _, (lengths, _) = jax.jit(ppo.train)(jax.random.key(0))
    assert (lengths <= 30).all()


def outside_wrappers():
    import gymnax
    from gymnax.wrappers import LogWrapper

    twinenv.register_gymnax()
    env, params = gymnax.make("PongJAX-v0", small_call=True, frameskip=8)
    logged = LogWrapper(env)
    _, state = logged.reset(jax.random.key(0), params)
    jax.block_until_ready(jax.jit(logged.step)(jax.random.key(1), state, jnp.int32(1), params))


PROGRAMS = (
    while_loops,
    conditionals_and_nested_batches,
    rollouts,
    trainers,
    outside_trainers,
    outside_wrappers,
)

if __name__ == "__main__":
    next(program for program in PROGRAMS if program.__name__ == sys.argv[1])()
