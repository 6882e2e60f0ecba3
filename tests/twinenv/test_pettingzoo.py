"""The two shapes of a two-player game for multi-agent code."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import Corridor, Duel

from twinenv.adapters.pettingzoo import AGENTS, MultiAgentView, ParallelView


@pytest.fixture(scope="module")
def view():
    env = Duel()
    return MultiAgentView(env, env.default_params.replace(max_steps_in_episode=6))


def test_functional_view_is_the_game_by_agent(view):
    env, params, key = view.env, view.params, jax.random.key(0)
    obs, state = view.reset(key)
    joint_obs, joint_state = env.reset(key, params)
    step, joint_step = jax.jit(view.step), jax.jit(env.step)
    for t in range(6):
        avail = view.get_avail_actions(state)
        actions = {agent: jnp.argmax(avail[agent] * (1 + t)) for agent in AGENTS}
        obs, state, rewards, dones, info = step(key, state, actions)
        both = jnp.stack([actions[agent] for agent in AGENTS]).astype(jnp.int32)
        joint_obs, joint_state, reward, done, _ = joint_step(key, joint_state, both, params)
        for seat, agent in enumerate(AGENTS):
            assert float(rewards[agent]) == float(reward[seat])
            np.testing.assert_array_equal(obs[agent]["scores"], joint_obs["scores"][seat])
        assert bool(dones["__all__"]) == bool(done) == (t == 5)
        assert set(dones) == {*AGENTS, "__all__"}
    assert bool(info["truncated"])
    assert view.get_obs(state).keys() == set(AGENTS)


def test_functional_view_can_be_mapped_and_copied(view):
    keys = jax.random.split(jax.random.key(1), 3)
    obs, state = jax.vmap(view.reset)(keys)
    assert obs["player_0"]["scores"].shape == (3, 2)
    avail = jax.vmap(view.get_avail_actions)(state)["player_1"]
    assert (avail.dtype, avail.shape) == (jnp.uint8, (3, 4))
    assert copy.deepcopy(view) == view
    assert hash(copy.copy(view)) == hash(view)


def test_a_given_state_can_follow_the_end(view):
    other = view.reset(jax.random.key(8))[1].replace(scores=jnp.asarray([2, 1], jnp.int32))
    state = view.reset(jax.random.key(2))[1].replace(time=jnp.int32(5))
    actions = {agent: jnp.int32(0) for agent in AGENTS}
    obs, state, _, dones, _ = view.step(jax.random.key(0), state, actions, other)
    assert bool(dones["__all__"])
    assert state.scores.tolist() == [2, 1]
    assert obs["player_1"]["scores"].tolist() == [1.0, 2.0]


def test_parallel_view_plays_a_game():
    game = ParallelView(Duel())
    assert game.num_agents == 0
    obs, infos = game.reset(seed=4)
    again = game.reset(seed=4)
    np.testing.assert_array_equal(again[0]["player_0"]["scores"], obs["player_0"]["scores"])
    total = dict.fromkeys(AGENTS, 0.0)
    for seed in range(40):
        actions = {}
        for agent in game.agents:
            assert game.observation_space(agent).contains(obs[agent])
            space = game.action_space(agent)
            space.seed(seed)
            actions[agent] = int(space.sample(infos[agent]["action_mask"]))
        obs, rewards, ends, cuts, infos = game.step(actions)
        assert not infos["player_0"]["illegal_action"]
        total = {agent: total[agent] + rewards[agent] for agent in AGENTS}
        if ends["player_0"] or cuts["player_1"]:
            break
    assert game.agents == []
    assert total["player_0"] == -total["player_1"]
    assert game.render().shape == (8, 16, 3)
    assert game.state().dtype == np.float32
    with pytest.raises(RuntimeError, match="reset"):
        game.step({agent: 0 for agent in AGENTS})
    game.close()


def test_bad_arguments(view):
    with pytest.raises(TypeError, match="one player"):
        MultiAgentView(Corridor())
    with pytest.raises(ValueError, match="player_0"):
        view.action_space("left")
    with pytest.raises(ValueError, match="one of each"):
        view.step(jax.random.key(0), view.reset(jax.random.key(0))[1], {"player_0": 1})
