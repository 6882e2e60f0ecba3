"""The base classes: how a step is put together, and what they say of wrong arguments."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract_play import assert_equal
from toys import Corridor, CorridorParams, CorridorState, Duel

from twinenv import Environment, TwoPlayerEnvironment

KEY = jax.random.key(0)


def corridor(position: int, time: int = 0) -> CorridorState:
    visited = jnp.zeros((6,), jnp.bool_)
    return CorridorState(jnp.int32(position), visited, jnp.int32(time))


def test_step_is_step_env_then_a_reset_where_the_episode_ended():
    env, params = Corridor(), CorridorParams(max_steps_in_episode=9)
    key_step, key_reset = jax.random.split(KEY)
    for state, ends in ((corridor(2), False), (corridor(2, 8), True), (corridor(4), True)):
        obs, following, reward, terminated, info = env.step_env(key_step, state, 2, params)
        outcome = env.step(KEY, state, 2, params)
        assert_equal(outcome[2], reward)
        assert bool(outcome[3]) is ends
        assert_equal(outcome[4]["final_observation"], obs)
        assert_equal(outcome[4]["terminated"], terminated)
        assert_equal(outcome[4]["discount"], info["discount"])
        expected = env.reset(key_reset, params) if ends else (obs, following)
        assert_equal(outcome[:2], expected)


def test_a_natural_end_at_the_limit_is_no_truncation():
    params = CorridorParams(slip=0.0, max_steps_in_episode=9)
    *_, done, info = Corridor().step(KEY, corridor(4, 8), 2, params)
    assert bool(done)
    assert bool(info["terminated"])
    assert not bool(info["truncated"])
    assert float(info["discount"]) == 0.0
    *_, done, info = Corridor().step(KEY, corridor(3, 8), 2, params)
    assert bool(done)
    assert bool(info["truncated"])
    assert float(info["discount"]) == 1.0


@pytest.mark.parametrize("limit", [2**24 + 1, float(2**24), np.inf, 3])
def test_limits_may_be_integers_or_floats(limit):
    params = CorridorParams(max_steps_in_episode=limit)
    for time in (2, 3, 2**24 - 1, 2**24, 2**24 + 1):
        state = corridor(0, time)
        assert bool(Corridor().is_truncated(state, params)) is (time >= limit)


def test_a_house_may_reset_more_cheaply():
    class Pooled(Corridor):
        def auto_reset(self, key, state, params):
            state = corridor(1)
            return self.get_obs(state, params), state.replace(visited=~state.visited)

    state = Pooled().step(KEY, corridor(4), 2, CorridorParams(slip=0.0))[1]
    assert int(state.position) == 1
    assert state.visited.all()


def test_a_dear_reset_is_left_out_where_no_episode_ends_and_changes_no_result():
    class Dear(Corridor):
        dear_reset = True

    def lowered(env):
        def play(keys, params):
            def one(state, key):
                each = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, key)
                actions = jax.vmap(lambda key: jax.random.randint(key, (), 0, 3, jnp.int32))(each)
                out = jax.vmap(env.step, in_axes=(0, 0, 0, None))(each, state, actions, params)
                return out[1], out

            begun = jax.vmap(env.reset, in_axes=(0, None))(keys, params)[1]
            return jax.lax.scan(one, begun, jnp.arange(40, dtype=jnp.int32))

        return jax.jit(play).lower(jax.random.split(KEY, 5), CorridorParams())

    dear, plain = lowered(Dear()), lowered(Corridor())
    assert "stablehlo.case" in dear.as_text() and "stablehlo.case" not in plain.as_text()
    arguments = jax.random.split(KEY, 5), CorridorParams()
    assert_equal(dear.compile()(*arguments), plain.compile()(*arguments))
    assert plain.compile()(*arguments)[1][3].any()


def test_actions_of_any_integer_type_are_taken():
    env, params = Corridor(), CorridorParams(slip=0.0)
    expected = env.step(KEY, corridor(2), jnp.int32(2), params)
    for action in (2, np.int64(2), np.uint8(2), jnp.int8(2), np.asarray(2)):
        assert_equal(env.step(KEY, corridor(2), action, params), expected)


def test_a_single_component_may_lack_its_axis():
    from pong_jax import make

    env, params = make(continuous=True)
    state = env.reset(KEY, params)[1]
    expected = env.step(KEY, state, jnp.full((1,), 0.5, jnp.float32), params)
    for action in (0.5, np.float32(0.5), jnp.float32(0.5)):
        assert_equal(env.step(KEY, state, action, params), expected)
    with pytest.raises(TypeError, match=r"one float32\[1\] action.*got float32\[2\]"):
        env.step(KEY, state, jnp.zeros(2, jnp.float32), params)


def test_messages_say_what_is_accepted():
    env = Corridor()
    with pytest.raises(TypeError, match=r"one int32\[\] action.*got float32\[\].*jax.vmap"):
        env.step(KEY, corridor(2), jnp.float32(1))
    with pytest.raises(TypeError, match=r"got int32\[2\]"):
        env.step(KEY, corridor(2), jnp.zeros(2, jnp.int32))
    with pytest.raises(TypeError, match="got str"):
        env.step(KEY, corridor(2), "left")
    with pytest.raises(TypeError, match=r"one int32\[2\] action"):
        Duel().step(KEY, Duel().reset(KEY)[1], 1)
    with pytest.raises(TypeError, match=r"toys.CorridorState, got DuelState.*env.reset"):
        env.step(KEY, Duel().reset(KEY)[1], 1)
    with pytest.raises(TypeError, match=r"toys.CorridorParams, got DuelParams.*replace"):
        env.reset(KEY, Duel().default_params)
    with pytest.raises(ValueError, match=r"slip is 1\.5; accepted is a probability"):
        env.reset(KEY, CorridorParams(slip=1.5))
    with pytest.raises(TypeError, match=r"key is int; give one jax.random.key"):
        env.reset(3)
    with pytest.raises(NotImplementedError, match="no picture"):
        Environment.render(env, corridor(2))


@pytest.mark.parametrize("action", [2**40, -(2**40), np.int64(2**32 + 1), np.uint32(2**32 - 1)])
def test_large_integers_are_no_other_action(action):
    info = Corridor().step(KEY, corridor(2), action)[4]
    assert bool(info["illegal_action"])


def test_states_and_parameters_of_other_kinds_are_named():
    env, state, params = Corridor(), corridor(2), CorridorParams()
    with pytest.raises(TypeError, match=r"state.position is float32\[\]; accepted is int"):
        env.step(KEY, state.replace(position=jnp.float32(1)), 1)
    with pytest.raises(TypeError, match=r"state.position is int32\[3\]; accepted is int32\[\]"):
        env.step(KEY, state.replace(position=jnp.zeros(3, jnp.int32)), 1)
    with pytest.raises(TypeError, match=r"state\.position is object"):
        env.step(KEY, state.replace(position=None), 1)
    with pytest.raises(TypeError, match=r"params.slip is float32\[3\]; accepted is a number"):
        env.reset(KEY, params.replace(slip=jnp.zeros(3)))
    with pytest.raises(TypeError, match=r"params\.slip is <U3.*accepted is a number"):
        env.reset(KEY, params.replace(slip="0.1"))
    many = jax.tree.map(lambda value: jnp.full(3, value), params)
    assert jax.vmap(env.reset, (None, 0))(KEY, many)[1].position.shape == (3,)


def test_traced_parameters_are_not_checked():
    reset = jax.jit(Corridor().reset)
    reset(KEY, CorridorParams(slip=1.5))


def test_actions_without_a_mask_and_out_of_range_become_the_first():
    class Free(Corridor):
        def action_mask(self, state, params=None):
            return Environment.action_mask(self, state, params)

    plain = dataclasses.replace(Corridor())
    for action, played in ((0, 0), (2, 2), (3, 0), (-1, 0)):
        free, illegal = Environment.legal_action(Free(), corridor(3), jnp.int32(action), None)
        assert int(free) == played
        assert bool(illegal) is (action not in (0, 1, 2))
    first, illegal = plain.legal_action(corridor(0), jnp.int32(0), None)
    assert int(first) == 1
    assert bool(illegal)


def test_each_player_is_checked_alone():
    state = Duel().reset(KEY)[1].replace(resting=jnp.asarray([True, False]))
    played, illegal = Duel().legal_action(state, jnp.asarray([1, 3], jnp.int32), None)
    assert played.tolist() == [3, 0]
    assert illegal.tolist() == [True, True]
    assert Duel().to_move(state).tolist() == [False, True]
    assert issubclass(Duel, TwoPlayerEnvironment)
