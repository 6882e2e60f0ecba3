"""Stoa's gymnax adapter, unedited, on the five-value API."""

import jax
import jax.numpy as jnp
import numpy as np
import stoa
from stoa.env_adapters.gymnax import GymnaxToStoa

import twinenv


def test_it_resets_and_steps():
    env, params = twinenv.make("PongJAX-v0", frameskip=8, max_score=1)
    adapter = GymnaxToStoa(env, params)
    assert isinstance(adapter.action_space(), stoa.DiscreteSpace)
    assert adapter.action_space().num_values == 3
    assert isinstance(adapter.observation_space(), stoa.BoundedArraySpace)
    state, timestep = adapter.reset(jax.random.key(0))
    assert int(timestep.step_type) == stoa.StepType.FIRST
    step = jax.jit(adapter.step)
    kinds = set()
    for _ in range(40):
        state, timestep = step(state, jnp.int32(2))
        kinds.add(int(timestep.step_type))
        assert timestep.observation.shape == (8,)
        assert set(timestep.extras) >= {"terminated", "truncated", "final_observation"}
    assert kinds == {int(stoa.StepType.MID), int(stoa.StepType.TERMINATED)}
    assert adapter.render(state).dtype == np.uint8
