"""Rollouts: what is acted on is what is learned from, for policies with and without memory."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from line import CELLS, Glide, Line, LineParams

from twinenv.ppo.compiling import compiler_options
from twinenv.ppo.config import Config
from twinenv.ppo.distributions import masked
from twinenv.ppo.learn import _columns, initial_learner, policy_of
from twinenv.ppo.networks import Actions, MLPPolicy, Output
from twinenv.ppo.normalizers import merged
from twinenv.ppo.policy import network_of
from twinenv.ppo.rollout import collect, initial_actors
from twinenv.ppo.runs import Spec, leaf_shapes
from twinenv.ppo.update import loss
from twinenv.ppo.views import view_of

T, N = 25, 5
QUICK = compiler_options(quick=True, level=0)


class Remembering(nn.Module):
    """A policy whose memory is a decaying sum of observations, forgotten between episodes."""

    @nn.compact
    def __call__(self, obs, mask, carry, reset):
        embed, head = nn.Dense(4, name="embed"), nn.Dense(4, name="head")

        def step(memory, inputs):
            x, fresh = inputs
            memory = jnp.where(fresh[:, None], 0.0, memory) * 0.5 + x
            return memory, memory

        carry, memory = jax.lax.scan(step, carry, (embed(obs), reset))
        out = head(jnp.tanh(memory))
        return Output(masked(out[..., :3], mask), out[..., 3], carry)

    def initial_carry(self, num_envs):
        return jnp.zeros((num_envs, 4), jnp.float32)


def rolled(network, config, env=None, limit=9):
    """Two rollouts, the second of which begins amid episodes; returns it and the policy."""
    view, params = view_of(env or Line(), None), LineParams(max_steps_in_episode=limit)

    def play(key):
        key_net, key_env, key_one, key_two = jax.random.split(key, 4)
        carry = network.initial_carry(N)
        actors = initial_actors(view, params, carry, key_env, N)
        mask = jax.vmap(view.mask, in_axes=(0, None))(actors.env_state, params)
        example = jax.tree.map(lambda leaf: leaf[None], (actors.obs, mask))
        first = (*example, carry, actors.reset[None])
        learner = initial_learner(network, config, first, key_net)
        if learner.obs_moments is not None:
            seen = merged(learner.obs_moments, 3.0 + actors.obs[None])
            learner = learner._replace(obs_moments=seen)
        apply = policy_of(network, learner.params, learner.obs_moments)
        for key in (key_one, key_two):
            key_action, key_env = jax.random.split(key)
            keys = jax.random.split(key_action, T), jax.random.split(key_env, (T, N))
            actors, rollout, _ = collect(view, params, apply, {}, actors, keys)
        return learner, actors, rollout

    return jax.jit(play, compiler_options=QUICK)(jax.random.key(5))


@pytest.fixture(scope="module", params=["mlp", "memory", "continuous"])
def played(request, config):
    network, env = MLPPolicy(Actions(True, 3), (8,)), Line()
    if request.param == "memory":
        network = Remembering()
    if request.param == "continuous":
        network, env = MLPPolicy(Actions(False, 1, (1,)), (8,), shared=False), Glide()
    return network, *rolled(network, config, env)


def test_the_loss_sees_what_was_acted_on(played, config):
    """Before the first gradient step every probability ratio is 1 and no value has moved.

    That holds only if observations, masks, normalisation and memory are those of acting.
    """
    network, learner, _, rollout = played
    apply = policy_of(network, learner.params, learner.obs_moments)
    batch = _columns(rollout, rollout.reward)
    function = jax.jit(lambda b: loss(apply, b, b.advantage, config), compiler_options=QUICK)
    total, losses = function(batch)
    assert abs(losses.approx_kl) < 1e-6 and losses.clip_fraction == 0
    np.testing.assert_allclose(losses.policy_loss, -np.mean(batch.advantage), rtol=1e-4, atol=1e-6)
    half_square = 0.5 * np.mean(np.square(batch.advantage))
    np.testing.assert_allclose(losses.value_loss, half_square, rtol=1e-4)
    output = jax.jit(apply, compiler_options=QUICK)(
        rollout.obs, rollout.mask, rollout.carry, rollout.reset
    )
    np.testing.assert_allclose(
        output.distribution.log_prob(rollout.action), rollout.log_prob, rtol=1e-5, atol=1e-5
    )
    assert rollout.done.any() and not rollout.done.all() and np.isfinite(total)


def test_continuous_actions_begin_with_the_spread_that_is_asked_for():
    """Through the configuration, as a run does it."""
    spec = Spec(leaf_shapes(np.zeros(2, np.float32)), Actions(False, 3, (3,)), False)
    network = network_of(spec, Config(hidden=(4,), initial_std=0.25))
    obs, reset = jnp.ones((1, 7, 2), jnp.float32), jnp.zeros((1, 7), jnp.bool_)
    output, _ = network.init_with_output(jax.random.key(0), obs, None, (), reset)
    np.testing.assert_allclose(np.exp(output.distribution.log_std), 0.25, rtol=1e-6)


def test_episodes_begin_where_the_one_before_ended(played):
    _, _, actors, rollout = played
    np.testing.assert_array_equal(rollout.reset[1:], rollout.done[:-1])
    np.testing.assert_array_equal(actors.reset, rollout.done[-1])
    steps_seen = np.asarray(rollout.obs)[..., CELLS]
    np.testing.assert_array_equal(np.asarray(rollout.reset), steps_seen == 0)


def test_only_episodes_cut_short_have_a_bootstrap(played):
    rollout = played[-1]
    reached = np.asarray(rollout.reward) == 1.0
    done, bootstrap = np.asarray(rollout.done), np.asarray(rollout.bootstrap)
    assert (reached & done).any() and (done & ~reached).any()
    assert (bootstrap[reached | ~done] == 0).all()
    assert (bootstrap[done & ~reached] != 0).all()


def test_a_bootstrap_is_the_value_of_the_last_observation(config):
    """Standing still is told from moving by the observation, so the final one can be rebuilt."""
    network = MLPPolicy(Actions(True, 3), (8,))
    learner, _, rollout = rolled(network, dataclasses.replace(config, normalize_observation=False))
    obs, action = np.asarray(rollout.obs), np.asarray(rollout.action)
    cut = np.asarray(rollout.done) & (np.asarray(rollout.reward) != 1.0)
    cell = obs[..., :CELLS].argmax(axis=-1) + action - 1
    final = np.concatenate(
        [np.eye(CELLS)[np.clip(cell, 0, CELLS - 1)], obs[..., CELLS:] + 1], axis=-1
    )
    apply = policy_of(network, learner.params, None)
    value = apply(jnp.asarray(final, jnp.float32), rollout.mask, (), rollout.reset).value
    np.testing.assert_allclose(rollout.bootstrap[cut], value[cut], rtol=1e-5, atol=1e-6)


def test_a_loss_of_columns_is_that_of_each_column(played, config):
    """Columns do not mix: the loss of a batch is the mean of its columns' losses."""
    network, learner, _, rollout = played
    config = dataclasses.replace(config, normalize_advantage=False)
    batch = _columns(rollout, rollout.reward)
    apply = policy_of(network, learner.params, learner.obs_moments)
    value = jax.jit(lambda b: loss(apply, b, b.advantage, config)[0], compiler_options=QUICK)
    single = [value(jax.tree.map(lambda leaf, n=n: leaf[n : n + 1], batch)) for n in range(N)]
    np.testing.assert_allclose(value(batch), np.mean(single), rtol=1e-5)
