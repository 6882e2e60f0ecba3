"""Advantages, losses and gradients against straightforward float64 NumPy."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from twinenv.env import Environment
from twinenv.ppo import gae, update
from twinenv.ppo.compiling import compiler_options
from twinenv.ppo.config import Config
from twinenv.ppo.distributions import masked
from twinenv.ppo.learn import _advantages
from twinenv.ppo.networks import Actions, MLPPolicy, Output
from twinenv.ppo.rollout import collect, initial_actors
from twinenv.ppo.views import view_of

T, N, A = 7, 12, 3
QUICK = compiler_options(quick=True, level=0)


def test_advantages_are_the_sums_they_are_defined_by():
    rng = np.random.default_rng(0)
    reward, value, next_value = (rng.normal(size=(T, N)) for _ in range(3))
    done = rng.random((T, N)) < 0.3
    gamma, lam = 0.9, 0.8
    expected = np.zeros((T, N))
    for n in range(N):
        for t in range(T):
            weight = 1.0
            for k in range(t, T):
                expected[t, n] += weight * (reward[k, n] + gamma * next_value[k, n] - value[k, n])
                if done[k, n]:
                    break
                weight *= gamma * lam
    arrays = [jnp.asarray(x, jnp.float32) for x in (reward, value, next_value)]
    got = gae.advantages(*arrays, jnp.asarray(done), gamma, lam)
    np.testing.assert_allclose(got, expected, atol=2e-6)


def batch_of(rng, mask=None):
    obs = jnp.asarray(rng.normal(size=(N, T, 4)), jnp.float32)
    allowed = np.ones((N, T, A), np.bool_) if mask is None else mask
    action = np.array([[rng.choice(np.flatnonzero(m)) for m in row] for row in allowed], np.int32)
    values = [jnp.asarray(rng.normal(size=(N, T)), jnp.float32) for _ in range(3)]
    return update.Batch(
        obs,
        None if mask is None else jnp.asarray(mask),
        jnp.asarray(action),
        *values,
        jnp.zeros((N, T), jnp.bool_),
        (),
    )


class Linear:
    """A policy whose output is plain to recompute."""

    def __init__(self, rng) -> None:
        self.weights = rng.normal(size=(4, A + 1)) * 0.5

    def __call__(self, obs, mask, carry, reset):
        out = obs @ jnp.asarray(self.weights, jnp.float32)
        return Output(masked(out[..., :A], mask), out[..., A], carry)


def log_softmax(logits, mask):
    logits = np.where(mask, logits, -np.inf)
    top = logits.max(-1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))


@pytest.mark.parametrize("is_masked", [False, True])
def test_loss_is_the_clipped_objective(is_masked):
    rng = np.random.default_rng(1)
    mask = rng.random((N, T, A)) < 0.6
    mask[..., 0] |= ~mask.any(-1)
    policy, batch = Linear(rng), batch_of(rng, mask if is_masked else None)
    config = Config(num_envs=N, num_minibatches=1, clip=0.3, value_clip=0.25)
    function = jax.jit(
        lambda b: update.loss(policy, b, b.advantage, config), compiler_options=QUICK
    )
    total, parts = function(batch)

    out = np.asarray(batch.obs, np.float64) @ policy.weights
    logs = log_softmax(out[..., :A], mask if is_masked else np.ones_like(mask))
    taken = np.take_along_axis(logs, np.asarray(batch.action)[..., None], -1)[..., 0]
    ratio = np.exp(taken - np.asarray(batch.log_prob, np.float64))
    weight, old = (np.asarray(x, np.float64) for x in (batch.advantage, batch.value))
    policy_loss = -np.minimum(ratio * weight, np.clip(ratio, 0.7, 1.3) * weight).mean()
    target, value = old + weight, out[..., A]
    near = old + np.clip(value - old, -0.25, 0.25)
    value_loss = 0.5 * np.maximum((value - target) ** 2, (near - target) ** 2).mean()
    probs = np.exp(logs)
    entropy = -np.where(probs > 0, probs * np.where(probs > 0, logs, 0), 0).sum(-1).mean()
    expected = policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
    got = [float(x) for x in (total, parts.policy_loss, parts.value_loss, parts.entropy)]
    np.testing.assert_allclose(got, [expected, policy_loss, value_loss, entropy], rtol=3e-5)


def test_micro_batches_do_not_change_the_gradient():
    rng = np.random.default_rng(2)
    batch = batch_of(rng)
    network = MLPPolicy(Actions(True, A), (8,))
    first = (batch.obs[:1].swapaxes(0, 1), None, (), jnp.zeros((T, 1), jnp.bool_))
    params = jax.jit(network.init, compiler_options=QUICK)(jax.random.key(0), *first)
    config = Config(num_envs=N, num_minibatches=1)
    rows = jnp.arange(N, dtype=jnp.int32)
    splits = [rows.reshape(count, -1) for count in (1, 2, 6)]

    def gradient(params, rows):
        return update.gradient(network.apply, params, batch, rows, config)[0]

    compiled = jax.jit(gradient, compiler_options=QUICK)
    grads = [compiled(params, split) for split in splits]
    for other in grads[1:]:
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), grads[0], other
        )


def test_learning_rate_falls_by_updates():
    config = Config(learning_rate=0.5)
    rates = [float(update.learning_rate(config, jnp.int32(u), jnp.int32(4))) for u in range(6)]
    assert rates == [0.5, 0.375, 0.25, 0.125, 0.0, 0.0]
    constant = dataclasses.replace(config, anneal=False)
    assert float(update.learning_rate(constant, jnp.int32(3), jnp.int32(4))) == 0.5


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
