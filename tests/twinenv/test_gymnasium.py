"""Gymnasium's own checker, seeds, automatic reset and registration."""

import copy
import pickle
import warnings

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from toys import Corridor, CorridorParams, Duel

import twinenv
from twinenv.adapters.gymnasium import GymnasiumEnv, GymnasiumVectorEnv, register_gymnasium
from twinenv.wrappers import versus

PONG = {"frameskip": 8, "max_score": 1}


def quiet_check(env):
    """Gymnasium's checker; its warnings are raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)


def test_checker_passes_for_a_made_environment():
    env = gymnasium.make("twinenv/PongJAX-v0", **PONG)
    quiet_check(env.unwrapped)
    assert env.unwrapped.spec.kwargs["frameskip"] == 8


def test_checker_passes_for_structured_observations_and_opponents():
    for env in (Corridor(), versus(Duel(), "random", 1)):
        shown = GymnasiumEnv(env, render_mode="rgb_array")
        with pytest.warns(UserWarning, match="does not have a spec|not having a spec"):
            check_env(shown)  # the only complaint: it was not made by gymnasium.make


def test_continuous_pong_passes():
    quiet_check(gymnasium.make("twinenv/PongJAX-v0", continuous=True, **PONG).unwrapped)


def test_an_episode_ends_as_the_functional_one():
    env = GymnasiumEnv("PongJAX-v0", render_mode="rgb_array", max_steps_in_episode=5)
    obs, info = env.reset(seed=7)
    assert env.observation_space.contains(obs)
    assert info["action_mask"].tolist() == [1, 1, 1]
    for t in range(5):
        obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert (terminated, truncated) == (False, t == 4)
        assert type(reward) is float
        assert type(info["point"]) is int
    assert env.render().dtype == np.uint8
    assert int(env._state.time) == 5  # not reset: that is for the user to do
    first, again = env.reset(seed=7)[0], env.reset(seed=7)[0]
    np.testing.assert_array_equal(first, again)


def test_views_can_be_copied_and_go_on_alike():
    env = GymnasiumEnv(Corridor())
    env.reset(seed=3)
    others = (copy.deepcopy(env), pickle.loads(pickle.dumps(env)))
    expected = [env.reset()[0]["where"] for _ in range(4)]
    for other in others:
        assert [other.reset()[0]["where"] for _ in range(4)] == expected


# Without slips no draw is left but where an episode begins.
SURE = CorridorParams(slip=0.0)


@pytest.fixture(scope="module")
def vector():
    return GymnasiumVectorEnv(Corridor(), 4, SURE, render_mode="rgb_array")


def test_vector_is_as_many_single_ones(vector):
    assert vector.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    singles = [GymnasiumEnv(Corridor(), SURE) for _ in range(4)]
    obs, info = vector.reset(seed=11)
    assert vector.observation_space.contains(obs)
    for i, single in enumerate(singles):
        own, own_info = single.reset(seed=11 + i)
        np.testing.assert_array_equal(obs["seen"][0][i], own["seen"][0])
        np.testing.assert_array_equal(info["action_mask"][i], own_info["action_mask"])
    actions, ended = np.full(4, 2), np.zeros(4, np.bool_)
    for _ in range(12):
        obs, reward, terminated, truncated, info = vector.step(actions)
        for i in np.flatnonzero(~ended):
            own, own_reward, own_end, own_cut, _ = singles[i].step(2)
            assert (reward[i], terminated[i], truncated[i]) == (own_reward, own_end, own_cut)
            shown = info["final_obs"][i]["where"] if own_end else obs["where"][i]
            assert shown == own["where"]
        ended |= terminated
    assert ended.all()
    assert vector.observation_space.contains(obs)
    assert reward.dtype == np.float64


def test_final_info_is_that_of_the_episode_that_ended(vector):
    vector.reset(seed=1)
    while True:
        _, _, terminated, truncated, info = vector.step(np.full(4, 2))
        if 0 < terminated.sum() < 4:
            break
        assert ("final_obs" in info) == bool(terminated.any())
    np.testing.assert_array_equal(info["_final_obs"], terminated)
    np.testing.assert_array_equal(info["_final_info"], terminated | truncated)
    assert [item is not None for item in info["final_obs"]] == terminated.tolist()
    np.testing.assert_array_equal(info["final_info"]["_slipped"], terminated)
    np.testing.assert_array_equal(info["_slipped"], ~terminated)
    assert info["_action_mask"].all()


def test_some_environments_can_be_reset(vector):
    vector.reset(seed=5)
    for _ in range(2):
        before = vector.step(np.full(4, 1))[0]
    mask = np.asarray([True, False, False, True])
    obs, _ = vector.reset(seed=99, options={"reset_mask": mask})
    np.testing.assert_array_equal(obs["where"][1:3], before["where"][1:3])
    assert np.asarray(vector._state.time).tolist() == [0, 2, 2, 0]
    with pytest.raises(ValueError, match=r"bool\[4\]"):
        vector.reset(options={"reset_mask": np.zeros(4, np.bool_)})


def test_pictures(vector):
    vector.reset(seed=0)
    pictures = vector.render()
    assert len(pictures) == 4
    assert pictures[0].shape == (4, 24, 3)
    assert GymnasiumEnv(Corridor()).render() is None


def test_make_vec():
    envs = gymnasium.make_vec("twinenv/PongJAX-v0", num_envs=2, **PONG)
    obs, _ = envs.reset(seed=[4, 8])
    assert obs.shape == (2, 8)
    assert obs.dtype == np.float32
    outcome = envs.step(envs.action_space.sample())
    assert outcome[2].dtype == outcome[3].dtype == np.bool_


def test_registration_is_harmless_twice_and_covers_every_id():
    register_gymnasium()
    register_gymnasium()
    assert {f"twinenv/{name}" for name in twinenv.list_ids()} <= set(gymnasium.registry)


def test_views_of_equal_environments_share_one_program():
    from twinenv.adapters import gymnasium as adapter

    GymnasiumEnv(Corridor()).reset(seed=0)
    compiled = adapter._compiled(adapter._reset)
    size = compiled._cache_size()
    GymnasiumEnv(Corridor()).reset(seed=1)
    assert compiled._cache_size() == size


def test_bad_arguments():
    with pytest.raises(TypeError, match="versus"):
        GymnasiumEnv(Duel())
    with pytest.raises(ValueError, match="rgb_array"):
        GymnasiumEnv(Corridor(), render_mode="human")
    with pytest.raises(TypeError, match="only with an id"):
        GymnasiumEnv(Corridor(), frameskip=3)
    with pytest.raises(ValueError, match="PongJAX-v0"):
        GymnasiumEnv("PongJAX-v1")
    env = GymnasiumEnv(Corridor(), render_mode="rgb_array")
    for early in (env.render, lambda: env.step(0)):
        with pytest.raises(gymnasium.error.ResetNeeded):
            early()
    env.reset(seed=0)
    with pytest.raises(TypeError, match=r"int32\[\] action"):
        env.step(0.5)
    envs = GymnasiumVectorEnv(Corridor(), 4)
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step(np.zeros(4, np.int32))
    with pytest.raises(ValueError, match="3 seeds for 4"):
        envs.reset(seed=[1, 2, 3])
    envs.reset()
    with pytest.raises(ValueError, match="3 actions for 4"):
        envs.step(np.zeros(3, np.int32))


def test_conversion_of_spaces():
    from gymnax.environments import spaces as gymnax_spaces

    from twinenv.adapters.convert import to_gymnasium

    space = to_gymnasium(gymnax_spaces.Box(0.0, np.asarray([0.0, 2.0], np.float32), (2,)))
    np.testing.assert_array_equal(space.high, np.asarray([1.0, 2.0], np.float32))
    assert to_gymnasium(gymnax_spaces.Discrete(5)) == gymnasium.spaces.Discrete(5)
    with pytest.raises(TypeError, match="Discrete, Dict and Tuple"):
        to_gymnasium(jax.numpy.zeros(3))
