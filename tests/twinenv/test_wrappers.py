"""What each wrapper adds to the contract."""

import copy
import dataclasses
import functools
import pickle
from typing import Any

import gymnax.environments.spaces as gymnax_spaces
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract_play import assert_equal, assert_inside, choose, noise_for
from toys import Corridor, CorridorParams, Duel, first_legal, linear, trained

from twinenv.acting import PolicyAct, uniform_legal
from twinenv.wrappers import (
    EpisodeStatistics,
    FlattenObservation,
    FrameStack,
    FrozenPolicy,
    LegalActions,
    RandomOpponent,
    ScriptedOpponent,
    SelfPlay,
    merge_seats,
    split_seats,
    versus,
)

KEY = jax.random.key(0)


def weights(bias: float = 0.0) -> Any:
    ramp = jnp.arange(8, dtype=jnp.float32).reshape(2, 4)
    return {"scores": ramp, "bias": jnp.full((4,), bias, jnp.float32)}


def games(env, params=None, steps=60, seed=1):
    """Random play of one environment: lists of what each step took and gave."""
    step = jax.jit(env.step)
    params = env.default_params if params is None else params
    obs, state = env.reset(jax.random.key(seed), params)
    noise = noise_for(env, steps)
    keys = jax.random.split(jax.random.key(seed + 1), steps)
    history = []
    for t in range(steps):
        action = choose(env, env.action_mask(state, params), noise[t])
        outcome = step(keys[t], state, action, params)
        history.append((obs, state, action, *jax.device_get(outcome)))
        obs, state = outcome[:2]
    return history


# Episode statistics.


def test_statistics_add_up():
    ended = returns = length = 0
    for *_, reward, done, info in games(EpisodeStatistics(Corridor())):
        returns, length = returns + reward, length + 1
        assert info["returned_episode"] == done
        if done:
            ended += 1
            np.testing.assert_allclose(info["returned_episode_returns"], returns, rtol=1e-6)
            assert info["returned_episode_lengths"] == length
            last, returns, length = returns, 0, 0
        assert info["returned_episode_valid"] == (ended > 0)
        if ended and not done:
            np.testing.assert_allclose(info["returned_episode_returns"], last, rtol=1e-6)
        if not ended:
            assert info["returned_episode_returns"] == info["returned_episode_lengths"] == 0
    assert ended > 2


def test_statistics_of_two_players_are_their_own():
    env = EpisodeStatistics(Duel())
    total = np.zeros(2, np.float32)
    for *_, reward, done, info in games(env, steps=30):
        total += reward
        if done:
            np.testing.assert_array_equal(info["returned_episode_returns"], total)
            assert info["returned_episode_lengths"].shape == (2,)
            break
    assert done
    assert total.sum() == 0


def test_step_env_does_not_forget():
    env = EpisodeStatistics(Corridor())
    params = CorridorParams(slip=0.0)
    _, state = env.reset(KEY, params)
    for _ in range(8):
        _, state, _, _, info = env.step_env(KEY, state, 2, params)
    assert int(state.episode_lengths) == 8
    assert int(info["returned_episode_lengths"]) >= 5


# Observations.


def test_flat_observation_is_in_the_order_of_the_space():
    env = FlattenObservation(Corridor())
    obs, state = env.reset(KEY)
    position = int(state.position)
    expected = [*np.eye(6)[position], position / 5, position]
    np.testing.assert_allclose(obs, expected, rtol=1e-6)  # "seen" comes before "where"
    space = env.observation_space()
    assert isinstance(space, gymnax_spaces.Box)
    assert space.high.tolist() == [1.0] * 7 + [5.0]
    assert isinstance(env.state_space(), gymnax_spaces.Dict)


def test_flat_observation_of_arrays_and_dataclasses():
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Seen:
        b: jax.Array
        a: jax.Array

    class Board(Corridor):
        def get_obs(self, state, params=None, key=None):
            return Seen(b=jnp.full((2, 2), 7, jnp.int8), a=state.visited)

        def observation_space(self, params=None):
            a = gymnax_spaces.Box(np.False_, np.True_, (6,), jnp.bool_)
            b = gymnax_spaces.Box(0, 9, (2, 2), jnp.int8)
            return gymnax_spaces.Dict({"b": b, "a": a})

    env = FlattenObservation(Board())
    obs, state = env.reset(KEY)
    np.testing.assert_array_equal(obs, [*np.asarray(state.visited, np.float32), 7, 7, 7, 7])
    assert env.observation_space().high.tolist() == [1] * 6 + [9] * 4
    assert_inside(env.observation_space(), obs)


def test_frames_are_the_last_observations():
    env = FrameStack(Corridor(), 3)
    recent = None
    for obs, state, _, following, _, _, done, info in games(env, steps=40):
        shown = np.asarray(obs["where"])
        recent = [shown[-1]] * 3 if recent is None else recent
        np.testing.assert_array_equal(shown, recent)
        last = info["final_observation"]["where"]
        np.testing.assert_array_equal(last[:-1], recent[1:])
        new = int(following["where"][-1])
        recent = [new] * 3 if done else [*recent[1:], new]
        assert_equal(env.get_obs(state), obs)
    np.testing.assert_array_equal(following["where"], recent)


def test_frames_of_two_players():
    env = FrameStack(Duel(), 3)
    obs, state = env.reset(KEY)
    assert obs["scores"].shape == (2, 3, 2)
    awake = state.env_state.replace(resting=jnp.asarray([False, False]))
    _, state = env.reset_to(KEY, awake)
    obs, *_ = env.step(KEY, state, jnp.asarray([0, 1], jnp.int32))
    assert obs["theirs"].tolist() == [[3, 3, 1], [3, 3, 0]]
    assert_inside(env.observation_space(), obs)


def test_number_of_frames_is_checked():
    for wrong in (0, 2.0):
        with pytest.raises(ValueError, match="num_frames"):
            FrameStack(Corridor(), wrong)


# Legal actions.


@pytest.mark.parametrize("position", [0, 3, 5])
def test_every_action_means_a_legal_one(position):
    env = LegalActions(Corridor())
    params = CorridorParams(slip=0.0)
    state = env.reset(KEY, params)[1].replace(position=jnp.int32(position))
    legal = np.flatnonzero(env.env.action_mask(state, params))
    assert env.action_mask(state, params).tolist() == [True] * 3
    for action in range(3):
        played = legal[action % len(legal)]
        expected = Corridor().step_env(KEY, state, int(played), params)
        assert_equal(env.step_env(KEY, state, action, params), expected)
        assert int(env.legal_action(state, jnp.int32(action), params)[0]) == played


def test_every_action_of_two_players_means_a_legal_one():
    env = LegalActions(Duel())
    state = env.reset(KEY)[1].replace(resting=jnp.asarray([True, False]))
    for i in range(4):
        actions, illegal = env.legal_action(state, jnp.asarray([i, i], jnp.int32), None)
        assert actions.tolist() == [3, i % 3]
        assert not illegal.any()


def test_legal_actions_are_for_discrete_ones():
    from pong_jax import make

    with pytest.raises(ValueError, match="continuous"):
        LegalActions(make(continuous=True)[0])


# Two players.


def test_versus_is_the_game_with_the_opponent_inside():
    for seat in (0, 1):
        env, game = versus(Duel(), first_legal, seat), Duel()
        for obs, state, action, _, _, reward, done, info in games(env, steps=25):
            inner = state.env_state
            theirs = jnp.argmax(game.action_mask(inner)[1 - seat]).astype(jnp.int32)
            pair = [action, theirs] if seat == 0 else [theirs, action]
            both = game.step(KEY, inner, jnp.stack(pair))
            assert reward == both[2][seat]
            assert done == both[3]
            assert info["seat"] == seat
            assert_equal(info["won"], both[4]["won"])
            final = jax.tree.map(lambda x: x[seat], both[4]["final_observation"])  # noqa: B023
            assert_equal(info["final_observation"], final)
            own = jax.tree.map(lambda x: x[seat], game.get_obs(inner))  # noqa: B023
            assert_equal(obs, own)
            assert_equal(env.get_obs(state), own)


def test_a_fixed_seat_begins_the_game_of_the_key():
    for seat in (0, 1):
        assert_equal(versus(Duel(), "random", seat).reset(KEY)[1].env_state, Duel().reset(KEY)[1])


def test_random_seats_are_drawn_anew_every_episode():
    env = versus(Duel(), first_legal, "random")
    seats, step_env = set(), jax.jit(env.step_env)
    for _, state, action, _, following, _, done, info in games(env, steps=120):
        assert int(state.seat) == info["seat"]
        # What was seen last belongs to the seat of the episode that ended.
        assert_equal(info["final_observation"], step_env(KEY, state, action)[0])
        if not done:
            assert following.seat == info["seat"]
        elif following.seat != info["seat"]:
            seats.add(int(following.seat))
    assert seats == {0, 1}


def test_an_opponent_sees_its_own_observation_and_mask():
    def check(obs, mask, key):
        rests = mask[3]
        return jnp.where(rests, 3, jnp.where(obs["scores"][0] > obs["scores"][1], 2, 0))

    env = versus(Duel(), check, 0)
    _, state = env.reset(KEY)
    inner = state.env_state.replace(
        resting=jnp.asarray([False, False]), scores=jnp.asarray([0, 2], jnp.int32)
    )
    _, state = env.reset_to(KEY, inner)
    assert_equal(state.opponent_obs["scores"], jnp.asarray([2.0, 0.0], jnp.float32))
    _, state, reward, done, _ = env.step(KEY, state, 1)  # paper against scissors
    assert float(reward) == -1.0
    assert bool(done)


def test_a_new_opponent_of_the_same_shape_does_not_compile_again():
    env = versus(Duel(), FrozenPolicy(linear, weights()))
    traces = []

    @functools.partial(jax.jit, static_argnums=0)
    def step(env, key, state, action, params):
        traces.append(env)
        return env.step(key, state, action, params)

    params = env.default_params
    assert isinstance(params, type(Duel().default_params))
    _, state = env.reset(KEY, params)
    state = env.reset_to(KEY, state.env_state.replace(resting=jnp.asarray([False, False])))[1]
    played = []
    for favourite in range(3):
        bias = 100.0 * (jnp.arange(4, dtype=jnp.int32) == favourite).astype(jnp.float32)
        other = params.replace(opponent={"scores": jnp.zeros((2, 4)), "bias": bias})
        following = step(env, KEY, state, jnp.int32(0), other)[1]
        played.append(int(following.env_state.last[1]))
    assert played == [0, 1, 2]
    assert len(traces) == 1
    text = step.lower(env, KEY, state, jnp.int32(0), params).as_text()
    assert text.count("tensor<2x4xf32>") > 0  # an argument of the program, not a constant in it
    assert "dense<[[0.000000e+00, 1.000000e+00" not in text


def test_params_with_an_opponent():
    env = versus(Duel(), FrozenPolicy(linear, weights(2.0)))
    params = env.default_params.replace(max_score=5)
    for other in (copy.deepcopy(params), pickle.loads(pickle.dumps(params))):
        assert other.max_score == 5
        assert other.max_steps_in_episode == Duel().default_params.max_steps_in_episode
        assert_equal(other.opponent, params.opponent)
        assert type(other) is type(params)
    with pytest.raises(TypeError, match="unhashable"):
        hash(params)
    with pytest.raises(TypeError, match="WithOpponent"):
        env.reset(KEY, Duel().default_params)
    assert hash(versus(Duel(), "random").default_params) == hash(Duel().default_params)


def test_opponents_with_other_weights_are_other_configurations():
    def env(bias):
        return versus(Duel(), FrozenPolicy(linear, weights(bias)))

    assert env(1.0) == env(1.0)
    assert hash(env(1.0)) == hash(env(1.0))
    assert env(1.0) != env(2.0)
    assert copy.deepcopy(env(1.0)) == pickle.loads(pickle.dumps(env(1.0))) == env(1.0)
    assert versus(Duel(), "random") == versus(Duel(), RandomOpponent())
    assert versus(Duel(), first_legal) == versus(Duel(), ScriptedOpponent(first_legal))
    assert versus(Duel(), first_legal) != versus(Duel(), "random")


def test_a_trained_policy_is_an_opponent():
    game = FlattenObservation(Duel())
    env = versus(game, trained(game, 1))
    assert env == versus(game, trained(game, 1))
    assert env != versus(game, trained(game, 2))
    traces, actions = [], set()

    @jax.jit
    def step(key, state, params):
        traces.append(key)
        return env.step(key, state, jnp.int32(0), params)

    _, state = env.reset(KEY)
    other = env.default_params.replace(
        opponent=versus(game, trained(game, 2)).default_params.opponent
    )
    for i in range(12):
        for params in (env.default_params, other):
            _, state, _, _, info = step(jax.random.key(i), state, params)
            assert info["illegal_action"].shape == ()
            actions.add(int(state.env_state.last[1]))
    assert len(traces) == 1
    assert len(actions) > 2


def test_policies_of_one_network_are_one_function():
    game = FlattenObservation(Duel())
    one, two, wide = (
        PolicyAct.split(p)[0] for p in (trained(game, 1), trained(game, 2), trained(game, 1, (9,)))
    )
    assert one == two
    assert hash(one) == hash(two)
    assert one != wide
    assert not PolicyAct.fits(first_legal)
    assert PolicyAct.fits(trained(game, 1))


def test_bad_opponents_and_seats():
    with pytest.raises(TypeError, match="one player"):
        versus(Corridor())
    with pytest.raises(TypeError, match="one player"):
        SelfPlay(Corridor())
    for wrong in (None, 3, "strong", RandomOpponent):
        with pytest.raises(TypeError, match="opponent is"):
            versus(Duel(), wrong)
    for wrong in (2, "left", None, 1.0):
        with pytest.raises(ValueError, match="seat is"):
            versus(Duel(), "random", wrong)
    with pytest.raises(TypeError, match=r"twinenv\.make"):
        EpisodeStatistics("PongJAX-v0")


def test_self_play_is_a_batch_of_two():
    env, game = SelfPlay(Duel()), Duel()
    for _, state, action, obs, following, reward, done, info in games(env, steps=30):
        for value in (reward, done, info["terminated"], info["truncated"], info["discount"]):
            assert value.shape == (2,)
        assert done[0] == done[1]
        expected = jax.device_get(game.step(KEY, state, action))
        assert_equal(reward, expected[2])
        if not done[0]:
            assert_equal((obs, following), expected[:2])
    stats = EpisodeStatistics(FrameStack(SelfPlay(Duel()), 2))
    assert games(stats, steps=3)[-1][-1]["returned_episode"].shape == (2,)
    batch = jax.vmap(env.reset)(jax.random.split(KEY, 3))[0]
    merged = merge_seats(batch)
    assert merged["scores"].shape == (6, 2)
    assert_equal(merged["scores"][3], batch["scores"][1, 1])
    assert_equal(split_seats(merged), batch)


# All of them.


def test_wrappers_show_what_is_inside():
    env = EpisodeStatistics(FrameStack(FlattenObservation(LegalActions(Corridor(2.0))), 2))
    assert env.unwrapped == Corridor(2.0)
    assert env.name == "Corridor-toy"
    assert (env.num_actions, env.num_players, env.is_discrete) == (3, 1, True)
    assert not env.masked
    assert EpisodeStatistics(Corridor()).masked
    assert env != EpisodeStatistics(FrameStack(FlattenObservation(LegalActions(Corridor())), 2))
    _, state = env.reset(KEY)
    assert int(state.time) == 0
    with pytest.raises(ValueError, match="configuration"):
        env.load_state(Corridor(2.0).save_state(state.env_state.env_state))


def test_uniform_legal_actions_are_legal_and_uniform():
    mask = jnp.asarray([[True, False, True, True], [False, True, False, False]])
    draws = jax.vmap(functools.partial(uniform_legal, mask))(jax.random.split(KEY, 3000))
    assert draws.dtype == jnp.int32
    counts = np.bincount(np.asarray(draws[:, 0]), minlength=4)
    assert counts[1] == 0
    np.testing.assert_allclose(counts[[0, 2, 3]], 1000, atol=130)  # five standard deviations
    assert (np.asarray(draws[:, 1]) == 1).all()
