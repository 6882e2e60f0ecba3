"""Environments of gymnax, with their six-value step, discrete and continuous."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from line import Glide, Line

from twinenv.ppo import Config, train
from twinenv.ppo.views import view_of
from twinenv.wrappers import EpisodeStatistics

gymnax = pytest.importorskip("gymnax")

SMALL = Config(
    total_steps=3 * 8 * 4,
    num_envs=4,
    num_steps=8,
    num_minibatches=2,
    hidden=(8,),
    shared=False,
    quick_compile=True,
)


def test_gymnax_environments_train(new_task):
    env, params = gymnax.make("CartPole-v1")
    result = train(env, params, SMALL, task=new_task(outcomes={}, target=None))
    assert np.isfinite(result.metrics["policy_loss"]).all()
    assert len(result.metrics["update"]) == 3
    action = result.policy.act(np.zeros((2, 4), np.float32), key=jax.random.key(0))
    assert action.shape == (2,) and action.dtype == jnp.int32


def test_gymnax_episodes_cut_short_are_told_from_those_that_end():
    env, params = gymnax.make("CartPole-v1")
    params = params.replace(max_steps_in_episode=3)
    view = view_of(env, params)
    key = jax.random.key(0)
    _, state = view.reset(key, params)
    for _ in range(3):
        step = view.step(key, state, jnp.int32(0), params)
        state = step.state
    assert step.done and step.truncated
    assert (step.final_obs != step.obs).any()


def test_continuous_actions_reach_gymnax_at_their_limits():
    env, params = gymnax.make("Pendulum-v1")
    view = view_of(env, params)
    assert view.actions.shape == (1,) and not view.actions.discrete
    step = jax.eval_shape(view.step, *_example(view, params))
    assert step.reward.dtype == jnp.float32 and step.final_obs.shape == step.obs.shape
    scaled = [float(view._scaled(jnp.asarray([a], jnp.float32))[0]) for a in (-3.0, -0.5, 1.0)]
    np.testing.assert_allclose(scaled, [-2.0, -1.0, 2.0])


def _example(view, params):
    key = jax.ShapeDtypeStruct((2,), jnp.uint32)
    state = jax.eval_shape(view.reset, key, params)[1]
    return key, state, jax.ShapeDtypeStruct((1,), jnp.float32), params


def test_ours_are_recognised():
    line, glide = (view_of(env, env.default_params) for env in (Line(), Glide()))
    assert line.masked and line.actions.size == 3
    assert not glide.masked and glide.actions.shape == (1,) and not glide.actions.discrete


def test_an_old_step_is_refused():
    env, _ = gymnax.make("CartPole-v1")

    class Old:
        default_params = env.default_params
        action_space = env.action_space
        reset = staticmethod(env.reset)

        @staticmethod
        def step(key, state, action, params):
            obs, state, reward, terminated, _, _ = env.step(key, state, action, params)
            return obs, state, reward, terminated, {}

    with pytest.raises(TypeError, match=r"does not return what gymnax >= 1\.0 does"):
        view_of(Old(), env.default_params)


def test_two_players_need_an_opponent(new_task):
    from toys import Duel

    for env in (Duel(), EpisodeStatistics(Duel())):
        with pytest.raises(TypeError, match="has two players and this trainer trains one"):
            train(env, None, SMALL, task=new_task())
