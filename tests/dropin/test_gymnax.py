"""gymnax's own wrappers, unedited, drive Pong through `gymnax.make`."""

import copy
import functools
import pickle

import gymnasium
import gymnax
import gymnax.experimental
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import environment, spaces
from gymnax.wrappers import (
    FlattenObservationWrapper,
    GymnaxToDmEnvWrapper,
    GymnaxToGymWrapper,
    GymnaxToVectorGymWrapper,
    LegacyStepAPIWrapper,
    LogWrapper,
    StickyActionWrapper,
)

import twinenv

OPTIONS = {"frameskip": 8, "max_score": 1}
KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def made():
    twinenv.register_gymnax()
    return gymnax.make("PongJAX-v0", **OPTIONS)


def test_it_is_an_environment_of_gymnax(made):
    env, params = made
    assert isinstance(env, environment.Environment)
    assert env.name == "PongJAX-v0"
    assert env.num_actions == 3
    assert isinstance(env.action_space(params), spaces.Discrete)
    assert isinstance(env.observation_space(params), spaces.Box)
    assert isinstance(env.state_space(params), spaces.Dict)
    assert params.max_score == env.default_params.max_score == 1


def test_six_values_are_the_five_with_the_end_told_apart(made):
    env, params = made
    inner, own = twinenv.make("PongJAX-v0", **OPTIONS)
    assert own == params
    short = params.replace(max_steps_in_episode=4)
    step = jax.jit(inner.step)
    obs, state = env.reset(KEY, short)
    expected = inner.reset(KEY, short)
    np.testing.assert_allclose(obs, expected[0], atol=1e-6)
    ends = set()
    for i in range(30):
        key = jax.random.key(i)
        five = step(key, state, 1, short)
        obs, state, reward, terminated, truncated, info = env.step(key, state, 1, short)
        assert bool(five[3]) == (bool(terminated) or bool(truncated))
        assert float(reward) == float(five[2])
        assert set(info) >= {"terminated", "truncated", "final_observation", "discount"}
        assert bool(info["terminated"]) == bool(terminated)
        ends.add((bool(terminated), bool(truncated)))
    assert ends >= {(False, False), (False, True)}
    named = env.step(key=key, state=state, action=1, params=short)
    assert len(named) == 6
    assert len(env.step(key, state, 1)) == 6  # params=None
    assert len(env.step_env(key, state, 1, short)) == 5
    assert env.observe(key, state, 1, short).shape == env.get_obs(state).shape == (8,)
    assert env.action_mask(state).all()
    assert env.render(state).dtype == np.uint8
    assert bool(env.is_truncated(state.replace(time=jnp.int32(4)), short))


def test_views_are_equal_by_configuration(made):
    env = made[0]
    again = gymnax.make("PongJAX-v0", **OPTIONS)[0]
    others = (again, copy.copy(env), copy.deepcopy(env), pickle.loads(pickle.dumps(env)))
    traces = []

    @functools.partial(jax.jit, static_argnums=0)
    def reset(env, key):
        traces.append(env)
        return env.reset(key)

    for other in (env, *others):
        assert other == env
        assert hash(other) == hash(env)
        reset(other, KEY)
    assert len(traces) == 1
    assert gymnax.make("PongJAX-v0", frameskip=8, max_score=2)[0] != env
    assert gymnax.make("PongJAX-v0", frameskip=4, max_score=1)[0] != env
    assert env != "PongJAX-v0"


def test_bad_parameters_are_refused_outside_jit(made):
    env, params = made
    with pytest.raises(ValueError, match="max_score is 0"):
        env.reset(KEY, params.replace(max_score=0))
    with pytest.raises(TypeError, match="EnvParams"):
        env.reset(KEY, environment.EnvParams())


def test_gym_wrapper(made):
    gym = GymnaxToGymWrapper(*made, seed=3)
    assert isinstance(gym.action_space, gymnasium.spaces.Discrete)
    first, again = gym.reset(seed=4)[0], gym.reset(seed=4)[0]
    np.testing.assert_array_equal(first, again)
    assert gym.observation_space.contains(np.asarray(first))
    done = False
    for _ in range(200):
        obs, _, terminated, truncated, info = gym.step(gym.action_space.sample())
        assert gym.observation_space.contains(np.asarray(obs))
        assert np.asarray(info["final_observation"]).shape == (8,)
        done |= bool(terminated)
        assert not truncated
    assert done
    assert gym.render().shape[2] == 3


def test_vector_gym_wrapper(made):
    env, params = made
    gym = GymnaxToVectorGymWrapper(env, 4, params, seed=1)
    obs, _ = gym.reset(seed=3)
    assert gym.observation_space.contains(np.asarray(obs))
    obs, reward, terminated, truncated, _ = gym.step(gym.action_space.sample())
    assert obs.shape == (4, 8)
    assert reward.shape == terminated.shape == truncated.shape == (4,)
    assert env.reset is not gym._env.reset  # it patches its own deep copy


def test_log_wrapper(made):
    env, params = made
    logged = LogWrapper(env)
    _, state = logged.reset(KEY, params)
    total, length, ended = 0.0, 0, 0
    for i in range(60):
        _, state, reward, terminated, truncated, info = logged.step(
            jax.random.key(i), state, 0, params
        )
        total, length = total + float(reward), length + 1
        if terminated or truncated:
            ended += 1
            assert bool(info["returned_episode"])
            assert float(info["returned_episode_returns"]) == pytest.approx(total, abs=1e-6)
            assert int(info["returned_episode_lengths"]) == length
            total, length = 0.0, 0
    assert ended
    assert bool(info["returned_episode_valid"])


def test_our_statistics_are_those_of_the_log_wrapper(made):
    from twinenv.wrappers import EpisodeStatistics

    env, params = made
    logged, ours = LogWrapper(env), EpisodeStatistics(env.env)
    state, own = logged.reset(KEY, params)[1], ours.reset(KEY, params)[1]
    step = jax.jit(ours.step)
    for i in range(40):
        key = jax.random.key(i)
        *_, info = outcome = logged.step(key, state, i % 3, params)
        state = outcome[1]
        *_, own_info = own_outcome = step(key, own, i % 3, params)
        own = own_outcome[1]
        for name in info:
            np.testing.assert_allclose(info[name], own_info[name], atol=1e-6, err_msg=name)


def test_other_wrappers(made):
    env, params = made
    obs, state = FlattenObservationWrapper(env).reset(KEY, params)
    assert obs.shape == (8,)
    sticky = StickyActionWrapper(env, 0.25)
    _, state = sticky.reset(KEY)
    assert len(sticky.step(KEY, state, 1)) == 6
    legacy = LegacyStepAPIWrapper(env)
    _, state = legacy.reset(KEY, params)
    assert len(legacy.step(KEY, state, 1, params)) == 5
    dm = GymnaxToDmEnvWrapper(env)
    timestep = dm.step(KEY, dm.reset(KEY, params), 1, params)
    assert float(timestep.discount) == 1.0


def test_rollout_wrapper(made):
    rollout = gymnax.experimental.RolloutWrapper(
        env_name="PongJAX-v0", env_kwargs=OPTIONS, num_env_steps=12
    )
    obs, action, reward, following, done, total = rollout.batch_rollout(
        jax.random.split(KEY, 3), None
    )
    assert obs.shape == following.shape == (3, 12, 8)
    assert action.shape == reward.shape == done.shape == (3, 12)
    assert total.shape == (3, 1)
