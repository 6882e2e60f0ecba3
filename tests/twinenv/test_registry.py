"""Ids, and registration with gymnax."""

import gymnax
import jax
import pytest
from toys import Corridor

import pong_jax
import twinenv
from twinenv import registry
from twinenv.adapters.gymnax import GymnaxEnvironment, make_gymnax


@pytest.fixture
def toy():
    """A factory under an id of its own, taken away afterwards."""
    name = "Corridor-toy"

    def make(bonus=1.0, **params):
        env = Corridor(bonus)
        return env, env.default_params.replace(**params)

    twinenv.register(name, make)
    yield name
    registry._factories.pop(name)
    registry._in_gymnax.discard(name)
    gymnax.registration._registry.pop(name, None)
    if name in gymnax.registered_envs:
        gymnax.registered_envs.remove(name)


def test_ids_are_sorted_and_known():
    assert twinenv.list_ids() == sorted(twinenv.list_ids())
    assert "PongJAX-v0" in twinenv.list_ids()
    for env_id in twinenv.list_ids():
        env, params = twinenv.make(env_id)
        assert env.name == env_id
        assert isinstance(params, type(env.default_params))
        assert registry.house_of(env_id).__name__ in type(env).__module__


def test_make_passes_options_on(toy):
    env, params = twinenv.make(toy, bonus=3.0, slip=0.5)
    assert env == Corridor(3.0)
    assert params.slip == 0.5
    assert toy in twinenv.list_ids()
    pong, values = twinenv.make("PongJAX-v0", frameskip=4, max_score=5)
    assert (pong, values) == pong_jax.make(frameskip=4, max_score=5)


@pytest.mark.parametrize("wrong", ["PongJAX-v1", "pongjax-v0", "Pong", "PongJax", "pong_jax"])
def test_an_unknown_id_suggests_the_nearest(wrong):
    with pytest.raises(ValueError, match=r"did you mean 'PongJAX-v0'\?"):
        twinenv.make(wrong)


def test_an_id_unlike_any_lists_them():
    with pytest.raises(ValueError, match=r"unknown environment 'xyzzy'.*PongJAX-v0"):
        twinenv.make("xyzzy")
    for wrong in (None, 3):
        with pytest.raises(TypeError, match="id is"):
            twinenv.make(wrong)


def test_registering_again_replaces(toy):
    twinenv.register(toy, lambda: (Corridor(7.0), Corridor().default_params))
    assert twinenv.make(toy)[0] == Corridor(7.0)
    assert gymnax.make(toy)[0].env == Corridor(7.0)


def test_gymnax_knows_what_is_registered_later(toy):
    env, params = gymnax.make(toy, slip=0.25)
    assert isinstance(env, GymnaxEnvironment)
    assert params.slip == 0.25
    assert twinenv.list_ids() == [i for i in twinenv.list_ids() if i in gymnax.registered_envs]


def test_registering_with_gymnax_twice_is_harmless():
    before = list(gymnax.registered_envs)
    twinenv.register_gymnax()
    twinenv.register_gymnax()
    assert gymnax.registered_envs == before


def test_options_reach_gymnax():
    env, params = gymnax.make("PongJAX-v0", frameskip=8, max_score=3)
    assert env.env.frameskip == 8
    assert params.max_score == env.default_params.max_score == 3
    assert make_gymnax("PongJAX-v0", frameskip=8, max_score=3) == (env, params)
    with pytest.raises(TypeError, match="unknown parameter 'speed'"):
        gymnax.make("PongJAX-v0", speed=3)
    obs, _ = env.reset(jax.random.key(0))
    assert obs.shape == (8,)
