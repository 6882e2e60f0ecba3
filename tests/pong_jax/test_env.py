"""Pong's own options, parameters and picture; the API contract is tested for all houses at once."""

from __future__ import annotations

import math
from importlib import resources

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pong_jax
from pong_jax import observation
from pong_jax.params import EnvParams, court_of, is_integral
from pong_jax.rules import rand_r_bit
from pong_jax.situations import SEED_OF_BIT, opening
from twinenv import fields


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ({}, "int16"),
        ({"frameskip": 8, "max_score": 5}, "int16"),
        ({"number": "float32"}, "float32"),
        ({"continuous": True}, "float32"),
        ({"paddle_speed": 7.5}, "float32"),
        ({"paddle_height": 71.0}, "float32"),
        ({"width": 501.0}, "float32"),
    ],
)
def test_number_type_is_the_exact_one(options, number):
    env, params = pong_jax.make(**options)
    assert env.number == number
    _, state = env.reset(jax.random.key(0), params)
    assert state.ball_x.dtype == jnp.dtype(number)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"frameskip": 0}, "frameskip is 0; accepted is an integer from 1"),
        ({"frameskip": 2.0}, "frameskip is 2.0"),
        ({"number": "int8"}, 'number is \'int8\'; accepted is "int16" or "float32"'),
        ({"continuous": True, "number": "int16"}, 'use number="float32"'),
        ({"paddle_speed": 7.5, "number": "int16"}, 'use make(..., number="float32")'),
        ({"width": -1.0}, "width is -1.0; accepted is a finite positive number"),
        ({"height": math.nan}, "height is nan"),
        ({"ball_height": math.inf}, "ball_height is inf"),
        ({"max_score": 0}, "max_score is 0; accepted is an integer from 1"),
        ({"max_score": 40_000}, "max_score is 40000"),
        ({"max_steps_in_episode": 0}, "max_steps_in_episode is 0"),
        ({"width": 50.0}, "the ball leaves the court in the first frame"),
        ({"height": 30.0}, "the ball leaves the court in the first frame"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(options, words):
    with pytest.raises(ValueError, match=r".") as caught:
        pong_jax.make(**options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_parameter_names_the_known_ones():
    with pytest.raises(TypeError, match=r"unknown parameter 'paddle_sped'.*paddle_speed"):
        pong_jax.make(paddle_sped=9.0)


def test_fractional_params_are_refused_by_an_int16_environment():
    env, params = pong_jax.make()
    with pytest.raises(ValueError, match="not all integers"):
        env.reset(jax.random.key(0), params.replace(ball_speed_y_increment=2.5))


def test_traced_params_give_the_same_game():
    env, params = pong_jax.make(frameskip=4)
    key = jax.random.key(3)
    obs, state = jax.jit(env.reset)(key, params)
    wider = params.replace(width=600.0)
    for chosen in (params, wider):
        traced = jax.jit(env.step)(key, state, jnp.int32(1), chosen)
        closed = jax.jit(lambda s, p=chosen: env.step(key, s, jnp.int32(1), p))(state)
        jax.tree.map(np.testing.assert_array_equal, traced[1:3], closed[1:3])
        np.testing.assert_allclose(traced[0], closed[0], atol=6e-8)
    assert obs.shape == (8,)


def test_derived_positions():
    court = court_of(EnvParams(), jnp.int16)
    found = (court.min_paddle_y, court.max_paddle_y, court.serve_paddle_y)
    assert [int(v) for v in (*found, court.serve_ball_x, court.serve_ball_y)] == [
        *(-35, 605, 285),
        *(100, 304),
    ]
    assert is_integral(EnvParams())


def test_serve_bits_are_those_of_the_c_library():
    """The bit of glibc's rand_r, from its definition: three steps of a 32-bit generator."""

    def rand_r(seed: int) -> tuple[int, int]:
        result = 0
        for shift, bits in ((0, 11), (10, 10), (10, 10)):
            seed = (seed * 1103515245 + 12345) % 2**32
            result = (result << shift) ^ (seed // 65536 % 2**bits)
        return seed, result % 2

    seeds = np.random.default_rng(0).integers(2**32, size=200, dtype=np.uint32)
    after, bits = rand_r_bit(jnp.asarray(seeds))
    expected = [rand_r(int(seed)) for seed in seeds]
    assert list(zip(map(int, after), map(int, bits), strict=True)) == expected
    assert [rand_r(int(seed))[1] for seed in SEED_OF_BIT] == [0, 1]


def _at(env, **values):
    rows = {name: value[0] for name, value in opening(EnvParams(), 1).items()} | values
    dtypes = {n: f.dtype or env.dtype for n, f in fields.fields_of(pong_jax.EnvState).items()}
    rows["time"] = 0
    return pong_jax.EnvState(**{name: jnp.asarray(rows[name], dtypes[name]) for name in dtypes})


@pytest.mark.parametrize("stale", [True, False])
def test_stale_observation_is_an_option(stale):
    env, params = pong_jax.make(stale_observation=stale)
    before = _at(env, ball_x=460, ball_y=300, paddle_yr=0)
    obs, after, reward, done, info = env.step(jax.random.key(0), before, 0, params)
    assert (float(reward), bool(done), int(info["point"])) == (-1.0, False, -1)
    shown = before if stale else after
    np.testing.assert_array_equal(obs, env.get_obs(shown, params))
    assert int(after.ball_x) == 100


def test_a_game_ends_with_the_first_observation_of_the_next():
    env, params = pong_jax.make(frameskip=8)
    before = _at(env, ball_x=440, ball_y=300, paddle_yr=0, score_l=20, score_r=7)
    key = jax.random.key(0)
    obs, after, reward, done, info = env.step(key, before, 0, params)
    assert (float(reward), bool(done), float(info["discount"])) == (-1.0, True, 0.0)
    assert (int(info["score_l"]), int(info["score_r"])) == (21, 7)
    assert (int(after.score_l), int(after.score_r), int(after.time)) == (0, 0, 0)
    np.testing.assert_array_equal(obs, env.get_obs(after, params))
    last, end, _, over, _ = env.step_env(key, before, 0, params)
    assert bool(over) and (int(end.score_l), int(end.score_r)) == (21, 7)
    np.testing.assert_array_equal(info["final_observation"], last)


def test_time_limit_truncates_and_goes_on_with_the_same_stream():
    env, params = pong_jax.make(max_steps_in_episode=2)
    key = jax.random.key(1)
    _, state = env.reset(key, params)
    _, state, _, done, _ = env.step(key, state, 0, params)
    assert not done
    _, after, _, done, info = env.step(key, state, 0, params)
    assert bool(done) and bool(info["truncated"]) and not info["terminated"]
    assert float(info["discount"]) == 1.0
    assert int(after.rng) == int(rand_r_bit(state.rng)[0])


def test_continuous_actions_are_clipped():
    env, params = pong_jax.make(continuous=True)
    key = jax.random.key(0)
    _, state = env.reset(key, params)
    one, far = (env.step(key, state, jnp.full((1,), a), params) for a in (1.0, 9.0))
    jax.tree.map(np.testing.assert_array_equal, one[:4], far[:4])
    half = env.step(key, state, jnp.full((1,), 0.5), params)[1]
    assert float(half.paddle_yr) == 285 + 4


def test_picture_shows_paddles_ball_and_scores():
    env, params = pong_jax.make()
    state = _at(env, paddle_yl=-35, paddle_yr=605, ball_x=200, ball_y=100, score_l=3, score_r=12)
    picture = env.render(state, params)
    assert picture.shape == (640, 620, 3) and picture.dtype == np.uint8
    red, cyan, white = (
        np.argwhere((picture == colour).all(-1))
        for colour in ((255, 0, 0), (0, 255, 255), (255,) * 3)
    )
    # The upper half of one paddle and the lower half of the other are outside the court.
    assert red.min(0).tolist() == [605, 40] and red.max(0).tolist() == [639, 59]
    assert cyan.min(0).tolist() == [0, 560] and cyan.max(0).tolist() == [34, 579]
    assert white.min(0).tolist() == [508, 260] and white.max(0).tolist() == [539, 291]
    empty = env.render(state.replace(score_l=jnp.int16(0), score_r=jnp.int16(0)), params)
    assert not np.array_equal(picture[:50], empty[:50])


def test_steps_outside_of_a_program_are_compiled_once():
    env, params = pong_jax.make(frameskip=8)
    key, action = jax.random.key(0), jnp.int32(1)
    _, state = env.reset(key, params)
    env.step(key, state, action, params)
    compiled = []

    def listen(event, *_, **__):
        compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        env.step(key, state, action, params)
        assert compiled == []
        jax.jit(lambda x: x + 1)(1)
        assert compiled != []  # the events are still reported
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def test_observation_index_names_state_fields():
    assert set(observation.INDEX) <= set(fields.fields_of(pong_jax.EnvState))
    env, params = pong_jax.make()
    assert env.observation_space(params).shape == (len(observation.INDEX),)


def test_observation_limits_follow_traced_parameters():
    env, params = pong_jax.make(width=900.0, ball_speed_y_increment=30.0)

    def limits(params):
        space = env.observation_space(params)
        return space.low, space.high

    for traced, given in zip(jax.jit(limits)(params), limits(params), strict=True):
        np.testing.assert_allclose(traced, given, rtol=1e-6)
    assert limits(params)[0][5] < 0  # a spin of 30 leaves the speeds of 13


def test_readme_has_the_field_table():
    readme = (resources.files("pong_jax") / "README.md").read_text()
    assert fields.table(pong_jax.EnvState) in readme
