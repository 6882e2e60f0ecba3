"""Masks and time limits in a rollout, of an environment whose observation is the time."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from twinenv.env import Environment
from twinenv.ppo.compiling import compiler_options
from twinenv.ppo.config import Config
from twinenv.ppo.distributions import masked
from twinenv.ppo.learn import _advantages
from twinenv.ppo.networks import Output
from twinenv.ppo.rollout import collect, initial_actors
from twinenv.ppo.views import view_of

QUICK = compiler_options(quick=True, level=0)


@struct.dataclass
class ClockParams:
    max_steps_in_episode: int = 3
    ends_at: int = 1_000


@struct.dataclass
class ClockState:
    time: jax.Array


class Clock(Environment):
    """Shows the time; action `time mod 2` alone is legal; reward 1 each step."""

    name: ClassVar[str] = "Clock-v0"
    state_class: ClassVar[type] = ClockState
    default_params = ClockParams()
    num_actions = 2

    def initial(self, key, params):
        state = ClockState(jnp.zeros((), jnp.int32))
        return self.get_obs(state), state

    def transition(self, key, state, action, params):
        after = state.replace(time=state.time + 1)
        info = {"legal": action == state.time % 2}
        over = after.time >= params.ends_at
        return self.get_obs(after), state, jnp.float32(1.0), over, info

    def get_obs(self, state, params=None, key=None):
        return state.time.astype(jnp.float32)[None]

    def action_mask(self, state, params=None):
        return jnp.arange(2, dtype=jnp.int32) == state.time % 2

    def observation_space(self, params=None):
        raise NotImplementedError

    state_space = observation_space


def played(params: ClockParams, steps: int = 7):
    """A rollout of a policy that likes the illegal action and values time t at 10 t."""
    env = Clock()
    view = view_of(env, params)

    def apply(obs, mask, carry, reset):
        time = obs[..., 0].astype(jnp.int32)
        logits = jnp.where(jnp.arange(2, dtype=jnp.int32) == time[..., None] % 2, -9.0, 9.0)
        return Output(masked(logits, mask), 10.0 * obs[..., 0], carry)

    actors = initial_actors(view, params, (), jax.random.key(0), 4)
    keys = (
        jax.random.split(jax.random.key(1), steps),
        jax.random.split(jax.random.key(2), (steps, 4)),
    )
    outcomes = {"legal": lambda info: (info["legal"], jnp.ones_like(info["legal"]))}

    def roll(actors, keys):
        return collect(view, params, apply, outcomes, actors, keys)

    return jax.jit(roll, compiler_options=QUICK)(actors, keys)


def test_masks_are_those_of_the_state_that_is_acted_in():
    """Also in the first step after a reset, where the mask differs from its forerunner's."""
    _, rollout, counts = played(ClockParams(max_steps_in_episode=3))
    assert float(counts["legal"][0]) == float(counts["legal"][1]) == 28
    time = np.asarray(rollout.obs)[..., 0]
    assert (time[:, 0] == [0, 1, 2, 0, 1, 2, 0]).all()
    np.testing.assert_array_equal(np.argmax(rollout.mask, -1), time % 2)
    np.testing.assert_array_equal(rollout.reset[:, 0], time[:, 0] == 0)
    np.testing.assert_allclose(rollout.log_prob, 0.0, atol=1e-6)


@pytest.mark.parametrize("truncated", [True, False])
def test_only_episodes_cut_short_bootstrap_from_their_last_observation(truncated):
    limits = ClockParams(3, 1_000) if truncated else ClockParams(1_000, 3)
    _, rollout, _ = played(limits)
    # The value of the observation before the reset (time 3) and not of the one after it (time 0).
    expected = np.zeros(7)
    expected[[2, 5]] = 30.0 if truncated else 0.0
    np.testing.assert_allclose(rollout.bootstrap[:, 0], expected)
    config = Config(num_envs=4, num_minibatches=1, gamma=0.5, gae_lambda=0.0)
    got = _advantages(rollout, rollout.reward, config)[:, 0]
    value = [0, 10, 20, 0, 10, 20, 0]
    following = [10, 20, expected[2], 10, 20, expected[5], 10]
    np.testing.assert_allclose(
        got, [1 + 0.5 * n - v for n, v in zip(following, value, strict=True)]
    )
