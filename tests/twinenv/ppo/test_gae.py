"""Advantages against a direct float64 calculation from the definition."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from twinenv.ppo import gae
from twinenv.ppo.learn import _advantages
from twinenv.ppo.rollout import Rollout

GAMMA, LAMBDA, T, N = 0.93, 0.8, 23, 7


@pytest.fixture(scope="module")
def steps():
    rng = np.random.default_rng(1)
    ended = rng.random((T, N)) < 0.2
    truncated = ended & (rng.random((T, N)) < 0.5)
    return {
        "reward": rng.normal(size=(T, N)),
        "value": rng.normal(size=(T, N)),
        "done": ended,
        "bootstrap": np.where(truncated, rng.normal(size=(T, N)), 0.0),
        "last_value": rng.normal(size=N),
    }


def by_definition(steps):
    """Each advantage as the weighted sum of the temporal differences up to its episode's end."""
    out = np.zeros((T, N))
    for n in range(N):
        for t in range(T):
            total, weight = 0.0, 1.0
            for s in range(t, T):
                following = steps["value"][s + 1, n] if s + 1 < T else steps["last_value"][n]
                if steps["done"][s, n]:
                    following = steps["bootstrap"][s, n]
                total += weight * (steps["reward"][s, n] + GAMMA * following - steps["value"][s, n])
                weight *= GAMMA * LAMBDA
                if steps["done"][s, n]:
                    break
            out[t, n] = total
    return out


def as_rollout(steps):
    leaves = {
        name: jnp.asarray(leaf, jnp.bool_ if name == "done" else jnp.float32)
        for name, leaf in steps.items()
    }
    blank = dict.fromkeys(Rollout._fields)
    return Rollout(**(blank | leaves))


def test_advantages_of_a_rollout_are_those_of_the_definition(steps, config):
    rollout = as_rollout(steps)
    config = dataclasses.replace(config, gamma=GAMMA, gae_lambda=LAMBDA)
    ours = jax.jit(lambda r: _advantages(r, r.reward, config))(rollout)
    assert ours.dtype == jnp.float32
    np.testing.assert_allclose(ours, by_definition(steps), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("gae_lambda", [0.0, 1.0])
def test_the_extremes_are_one_step_and_whole_returns(gae_lambda):
    reward, value = jnp.asarray([[1.0], [2.0], [4.0]]), jnp.asarray([[0.5], [0.25], [0.125]])
    next_value = jnp.asarray([[0.25], [0.125], [8.0]])
    done = jnp.zeros((3, 1), jnp.bool_)
    found = gae.advantages(reward, value, next_value, done, 0.5, gae_lambda)[:, 0]
    one_step = [1 + 0.5 * 0.25 - 0.5, 2 + 0.5 * 0.125 - 0.25, 4 + 0.5 * 8 - 0.125]
    whole = [1 + 0.5 * (2 + 0.5 * (4 + 4)) - 0.5, 2 + 0.5 * (4 + 4) - 0.25, 4 + 4 - 0.125]
    np.testing.assert_allclose(found, one_step if gae_lambda == 0.0 else whole)


def test_nothing_leaks_from_the_next_episode(steps, config):
    """What follows an episode's end does not change the advantages before it."""
    other = {name: leaf.copy() for name, leaf in steps.items()}
    n = int(np.argmax(steps["done"][2:-4].any(axis=0)))
    end = 2 + int(np.argmax(steps["done"][2:, n]))
    other["reward"][end + 1 :, n] += 100.0
    other["value"][end + 1 :, n] -= 50.0
    other["last_value"][n] += 1000.0
    found = [
        np.asarray(_advantages(as_rollout(s), as_rollout(s).reward, config))[: end + 1, n]
        for s in (steps, other)
    ]
    np.testing.assert_array_equal(*found)
