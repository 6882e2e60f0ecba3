"""Statistics of an update: running moments, reward scaling, episode sums, learning rate."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from twinenv.ppo.compiling import compiler_options
from twinenv.ppo.learn import _tallied, initial_tally, learn
from twinenv.ppo.normalizers import initial_moments, merged, standardized
from twinenv.ppo.rollout import Rollout

T, N = 11, 4


def test_running_moments_are_those_of_all_that_was_seen():
    rng = np.random.default_rng(0)
    batches = [rng.normal(3 * i, 1 + i, size=(5, 4, 3)) for i in range(4)]
    moments = initial_moments(jnp.zeros(3))
    for batch in batches:
        moments = jax.jit(merged)(moments, jnp.asarray(batch, jnp.float32))
    every = np.concatenate([batch.reshape(-1, 3) for batch in batches])
    assert moments.seen == len(every)
    np.testing.assert_allclose(moments.mean[0], every.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(moments.var[0], every.var(axis=0), rtol=1e-5)
    scaled = standardized(moments, jnp.asarray(every, jnp.float32))
    np.testing.assert_allclose(np.mean(scaled, axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(np.std(scaled, axis=0), 1.0, rtol=1e-4)


def test_moments_of_nothing_change_nothing_but_the_limits():
    values = jnp.asarray([[-20.0, 0.5, 3.0]])
    np.testing.assert_allclose(
        standardized(initial_moments(jnp.zeros(3)), values), [[-10.0, 0.5, 3.0]], rtol=1e-6
    )


def rollout_of(rng):
    def normal():
        return jnp.asarray(rng.normal(size=(T, N)), jnp.float32)

    flags = jnp.asarray(rng.random((T, N)) < 0.25)
    zeros = jnp.zeros((T, N), jnp.float32)
    obs = jnp.asarray(rng.normal(size=(T, N, 7)), jnp.float32)
    action = jnp.asarray(rng.integers(0, 3, (T, N)), jnp.int32)
    last = jnp.zeros((N,), jnp.float32)
    return Rollout(obs, None, action, zeros - 1, normal(), normal(), flags, flags, zeros, last, ())


def test_episodes_are_summed_across_rollouts():
    rng = np.random.default_rng(2)
    rollouts = [rollout_of(rng) for _ in range(3)]
    tally, returns, lengths, spread = initial_tally(N), 0.0, 0.0, []
    episodes = 0.0
    for rollout in rollouts:
        tally, counts, discounted = jax.jit(_tallied, static_argnums=2)(tally, rollout, 0.9)
        returns, episodes = returns + counts["return"][0], episodes + counts["return"][1]
        lengths += counts["length"][0]
        spread.append(np.asarray(discounted))
    reward = np.concatenate([r.reward for r in rollouts]).astype(np.float64)
    done = np.concatenate([r.done for r in rollouts])
    expected, finished = np.zeros_like(reward), []
    for n in range(N):
        total, discounted, length = 0.0, 0.0, 0
        for t in range(len(reward)):
            total, length = total + reward[t, n], length + 1
            discounted = 0.9 * discounted + reward[t, n]
            expected[t, n] = discounted
            if done[t, n]:
                finished.append((total, length))
                total, discounted, length = 0.0, 0.0, 0
    np.testing.assert_allclose(np.concatenate(spread), expected, rtol=1e-4, atol=1e-5)
    assert episodes == len(finished)
    np.testing.assert_allclose(returns, sum(f[0] for f in finished), rtol=1e-4)
    assert lengths == sum(f[1] for f in finished)


@pytest.fixture(scope="module")
def updated(config, network):
    """One update of a fixed rollout at a given place in the schedule and scale of rewards."""
    from twinenv.ppo.learn import initial_learner

    config = dataclasses.replace(config, num_envs=N, num_steps=T)
    rollout = rollout_of(np.random.default_rng(3))
    example = (rollout.obs[:1], None, (), rollout.reset[:1])
    learner = jax.jit(lambda key: initial_learner(network, config, example, key))(jax.random.key(0))

    @functools.partial(jax.jit, compiler_options=compiler_options(quick=True, level=0))
    def run(done, scale):
        schedule = (jax.random.key(1), done, jnp.int32(10))
        scaled = rollout._replace(reward=rollout.reward * scale)
        return learn(network, config, learner, initial_tally(N), scaled, schedule)

    return learner, rollout, run


def test_the_learning_rate_falls_update_by_update(updated, config):
    _, _, run = updated
    rates = [float(run(jnp.int32(i), jnp.float32(1))[3]["learning_rate"]) for i in range(11)]
    np.testing.assert_allclose(rates, config.learning_rate * np.linspace(1, 0, 11), atol=1e-9)


def test_a_rate_of_nothing_moves_nothing(updated):
    learner, _, run = updated
    last = run(jnp.int32(10), jnp.float32(1))[0]
    jax.tree.map(np.testing.assert_array_equal, last.params, learner.params)


def test_scaled_rewards_do_not_depend_on_their_unit(updated):
    """Ten times the rewards, the same scaled rewards, hence the same step."""
    _, _, run = updated
    once, ten = (run(jnp.int32(0), jnp.float32(scale))[0] for scale in (1, 10))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), once.params, ten.params
    )
    ours, theirs = once.return_moments.var[0], ten.return_moments.var[0]
    np.testing.assert_allclose(theirs, 100 * ours, rtol=1e-4)


def test_observations_of_an_update_enter_the_statistics_after_it(updated):
    learner, rollout, run = updated
    after = run(jnp.int32(0), jnp.float32(1))[0].obs_moments
    assert learner.obs_moments.seen == 0 and after.seen == T * N
    expected = np.mean(rollout.obs, axis=(0, 1))
    np.testing.assert_allclose(after.mean[0], expected, rtol=1e-4, atol=1e-5)
