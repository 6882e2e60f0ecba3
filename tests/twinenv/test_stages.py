"""Stage hints: present where they are honoured, without effect on results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract_play import assert_equal

import twinenv
from twinenv import stages
from twinenv.stages import cpu_compiler_options, disabled, enabled, small_call, stage
from twinenv.verify.levels import find_pair


@stage
def polynomial(x, y):
    """A chain that two outputs share."""
    z = jnp.where(x > 0, x * y, x - y)
    return z * z + x, z - y


@small_call
def table_walk(x):
    return jnp.clip(x * 3 + 1, 0, 99)


def lowered(function, *args):
    return jax.jit(lambda *a: function(*a)).lower(*args)


X = jnp.arange(8, dtype=jnp.int32) - 4


def test_hints_are_on_by_default_on_the_cpu():
    assert enabled() is (jax.default_backend() == "cpu")


def test_a_stage_is_marked_once_and_only_outside():
    text = lowered(polynomial, X, X + 1).as_text()
    assert text.count('inlineable = "false"') == 1
    assert "call @polynomial" in text
    compiled = lowered(polynomial, X, X + 1).compile().as_text()
    assert 'inlineable="false"' in compiled


def test_a_small_call_is_marked():
    text = lowered(table_walk, X).as_text()
    assert 'xla_cpu_small_call = "true"' in text
    assert 'inlineable = "false"' in text


def test_switched_off_nothing_is_marked():
    with disabled():
        assert not enabled()
        with disabled():
            pass
        assert not enabled()
        for low in (lowered(polynomial, X, X + 1), lowered(table_walk, X)):
            assert "inlineable" not in low.as_text()
            assert "xla_cpu_small_call" not in low.as_text()
    assert enabled()
    with pytest.raises(KeyError), disabled():
        raise KeyError
    assert enabled()


def test_results_are_those_of_the_plain_function():
    y = jnp.arange(8, dtype=jnp.int32)
    assert_equal(jax.jit(polynomial)(X, y), polynomial.__wrapped__(X, y))
    assert_equal(jax.jit(table_walk)(X), table_walk.__wrapped__(X))
    assert_equal(jax.vmap(table_walk)(X[:, None]), table_walk.__wrapped__(X)[:, None])


def test_gradients_and_scans_go_through():
    def total(x):
        return jax.lax.scan(lambda c, _: (polynomial(c, c)[1] + c, None), x, None, 3)[0].sum()

    x = jnp.asarray([0.5, -0.25], jnp.float32)
    with disabled():
        plain = jax.grad(lambda x: total(x))(x)
    np.testing.assert_allclose(jax.grad(total)(x), plain, rtol=1e-6)


CONTINUOUS = ("PongJAX-v0", {"continuous": True, "frameskip": 4})


@pytest.mark.parametrize(
    ("env_id", "options"), [*((env_id, {}) for env_id in twinenv.list_ids()), CONTINUOUS]
)
def test_an_environment_is_the_same_with_and_without(env_id, options):
    env, params = twinenv.make(env_id, **options)
    rounding = find_pair(env_id).rounding
    steps = 2 if rounding else 60  # what is rounded otherwise soon is far apart
    key = jax.random.key(0)
    state = env.reset(key, params)[1]

    def play(state, params):
        def one(state, key):
            action = env.action_space(params).sample(key)
            obs, state, reward, done, info = env.step(key, state, action, params)
            return state, (obs, reward, done, info)

        return jax.lax.scan(one, state, jax.random.split(key, steps))

    on = lowered(play, state, params)
    with disabled():
        off = lowered(play, state, params)
    assert "inlineable" not in off.as_text()
    assert 'inlineable="false"' in on.compile().as_text()
    assert_equal(on.compile()(state, params), off.compile()(state, params), rtol=rounding)


def test_compiler_options_follow_switch_and_machine(monkeypatch):
    monkeypatch.setattr(stages, "has_avx512", lambda: True)
    assert cpu_compiler_options() == {"xla_cpu_prefer_vector_width": 512}
    with disabled():
        assert cpu_compiler_options() is None
    assert cpu_compiler_options() is not None
    monkeypatch.setattr(stages, "has_avx512", lambda: False)
    assert cpu_compiler_options() is None


def test_compiler_options_are_known_to_xla(monkeypatch):
    monkeypatch.setattr(stages, "has_avx512", lambda: True)
    jax.jit(lambda x: x + 1, compiler_options=cpu_compiler_options())(X)
