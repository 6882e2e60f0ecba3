"""Pong's native routine: it compiles inside any program, and changes no result."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pong_jax
from twinenv import stages

PROGRAMS = Path(__file__).with_name("routine_programs.py")
NAMES = (
    "while_loops",
    "conditionals_and_nested_batches",
    "rollouts",
    "trainers",
    "outside_trainers",
    "outside_wrappers",
)


@pytest.mark.parametrize("name", NAMES)
def test_it_compiles_inside(name, monkeypatch):
    if name.startswith("outside"):  # what others wrote is not made for strict promotion
        monkeypatch.setenv("JAX_NUMPY_DTYPE_PROMOTION", "standard")
    command = [sys.executable, str(PROGRAMS), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("number", ["int16", "float32"])
def test_results_are_those_of_the_plain_step(number):
    env, params = pong_jax.make(max_score=2, frameskip=8, number=number, small_call=True)
    keys = jax.random.split(jax.random.key(0), 3)
    _, state = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    actions = np.random.default_rng(1).integers(0, 3, (300, 3)).astype(np.int32)

    def play(state, actions, params):
        def one(state, action):
            outcome = jax.vmap(env.step, in_axes=(0, 0, 0, None))(keys, state, action, params)
            return outcome[1], outcome

        return jax.lax.scan(one, state, actions)[1]

    def lowered():  # of a new function object, which JAX traces anew
        return jax.jit(lambda *args: play(*args)).lower(state, actions, params)

    fast = lowered()
    assert 'xla_cpu_small_call = "true"' in fast.as_text()
    with stages.disabled():
        plain = lowered()
    assert "xla_cpu_small_call" not in plain.as_text()
    ours, theirs = (low.compile()(state, actions, params) for low in (fast, plain))
    assert int(ours[3].sum()) > 10
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def test_an_untested_xla_gets_a_stage(monkeypatch):
    monkeypatch.setattr(stages, "_SMALL_CALLS_TESTED", ("0.0.",))
    routine = stages.small_call(lambda x: x + 1)
    text = jax.jit(lambda x: routine(x)).lower(jnp.int32(1)).as_text()
    assert "xla_cpu_small_call" not in text
    assert 'inlineable = "false"' in text


def test_observations_of_a_batch_are_those_of_each():
    env, params = pong_jax.make()
    keys = jax.random.split(jax.random.key(0), 3)
    _, state = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    batch = jax.vmap(env.get_obs, in_axes=(0, None))(state, params)
    each = [env.get_obs(jax.tree.map(lambda leaf, i=i: leaf[i], state), params) for i in range(3)]
    # XLA multiplies by the reciprocal where single operations divide.
    np.testing.assert_allclose(batch, np.stack(each), rtol=0, atol=6e-8)


def test_continuous_play_can_be_differentiated():
    env, params = pong_jax.make(continuous=True, small_call=True)
    _, state = env.reset(jax.random.key(0), params)

    def height(action):
        obs, *_ = env.step(jax.random.key(1), state, action, params)
        return obs[1]

    slope = jax.grad(height)(jnp.asarray([0.25], jnp.float32))
    np.testing.assert_allclose(slope, [params.paddle_speed / params.height], rtol=1e-6)
