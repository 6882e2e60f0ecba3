"""Distributions against SciPy, and what a mask must never let through."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from twinenv.ppo.distributions import Categorical, Gaussian, masked

LOGITS = np.asarray([[0.3, -1.2, 2.0, 0.1], [5.0, 5.0, -3.0, 0.0]])
MASK = np.asarray([[True, False, True, True], [False, False, True, True]])

sample = jax.jit(lambda logits, mask, key: masked(logits, mask).sample(key))


def softmax(logits, mask):
    weights = np.where(mask, np.exp(logits), 0.0)
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("mask", [MASK, None])
def test_a_categorical_is_what_scipy_says(mask):
    given_mask = None if mask is None else jnp.asarray(mask)
    distribution = masked(jnp.asarray(LOGITS, jnp.float32), given_mask)
    probs = softmax(LOGITS, np.ones_like(MASK) if mask is None else mask)
    entropy = [scipy.stats.entropy(row) for row in probs]
    np.testing.assert_allclose(np.exp(distribution.log_probs), probs, rtol=1e-6)
    np.testing.assert_allclose(distribution.entropy(), entropy, rtol=1e-6)
    np.testing.assert_array_equal(distribution.mode(), probs.argmax(axis=-1))
    for action in (2, 3):
        taken = distribution.log_prob(jnp.full((2,), action, jnp.int32))
        np.testing.assert_allclose(taken, np.log(probs[:, action]), rtol=1e-5)


def test_samples_have_their_probabilities():
    count = 40_000
    logits = jnp.broadcast_to(jnp.asarray(LOGITS, jnp.float32), (count, 2, 4))
    drawn = np.asarray(sample(logits, jnp.asarray(MASK), jax.random.key(3)))
    assert drawn.dtype == np.int32
    for row in range(2):
        seen = np.bincount(drawn[:, row], minlength=4)
        expected = softmax(LOGITS, MASK)[row] * count
        assert (seen[expected == 0] == 0).all()
        allowed = expected > 0
        assert scipy.stats.chisquare(seen[allowed], expected[allowed]).pvalue > 1e-4


@given(
    logits=hnp.arrays(np.float32, (40, 5), elements=st.floats(-80, 80, width=32)),
    mask=hnp.arrays(np.bool_, (40, 5)),
    seed=st.integers(0, 2**32 - 1),
)
def test_only_legal_actions_are_drawn(logits, mask, seed):
    mask[:, 0] |= ~mask.any(axis=1)
    drawn = np.asarray(sample(jnp.asarray(logits), jnp.asarray(mask), jax.random.key(seed)))
    assert mask[np.arange(40), drawn].all()


@pytest.mark.parametrize("u", [0.0, np.nextafter(np.float32(1), np.float32(0))])
def test_the_ends_of_the_unit_interval_draw_legal_actions(monkeypatch, u):
    """The sums that inversion compares are rounded; their ends are where that could show."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2000, 7)).astype(np.float32) * 5
    mask = rng.random((2000, 7)) < 0.4
    mask[:, 3] |= ~mask.any(axis=1)
    distribution = masked(jnp.asarray(logits), jnp.asarray(mask))
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape, dtype: jnp.full(shape, u, dtype))
    drawn = np.asarray(distribution.sample(jax.random.key(0)))
    assert mask[np.arange(2000), drawn].all()
    likely = np.asarray(distribution.log_probs) > -15
    edge = (
        np.argmax
        if u == 0.0
        else lambda rows, axis: rows.shape[1] - 1 - np.argmax(rows[:, ::-1], axis)
    )
    np.testing.assert_array_less(-1, (drawn - edge(likely, axis=1)) * (1 if u else -1))


def test_gradients_through_a_mask_are_finite_and_do_not_reach_what_it_hides():
    def total(logits):
        distribution = masked(logits, jnp.asarray(MASK))
        return jnp.sum(
            distribution.log_prob(jnp.asarray([2, 3], jnp.int32)) + distribution.entropy()
        )

    grads = np.asarray(jax.grad(total)(jnp.asarray(LOGITS, jnp.float32)))
    assert np.isfinite(grads).all()
    assert (grads[~MASK] == 0).all() and (grads[MASK] != 0).all()


def test_a_gaussian_is_what_scipy_says():
    mean, log_std = np.asarray([[0.3, -2.0]]), np.asarray([[-0.5, 0.7]])
    distribution = Gaussian(jnp.asarray(mean, jnp.float32), jnp.asarray(log_std, jnp.float32))
    reference = scipy.stats.norm(mean, np.exp(log_std))
    action = np.asarray([[0.1, 1.5]])
    log_prob = distribution.log_prob(jnp.asarray(action, jnp.float32))
    np.testing.assert_allclose(log_prob, reference.logpdf(action).sum(axis=-1), rtol=1e-5)
    np.testing.assert_allclose(distribution.entropy(), reference.entropy().sum(axis=-1), rtol=1e-6)
    many = Gaussian(*(jnp.broadcast_to(leaf, (20_000, 2)) for leaf in distribution))
    drawn = np.asarray(many.sample(jax.random.key(0)))
    for i in range(2):
        test = scipy.stats.kstest(
            drawn[:, i], scipy.stats.norm(mean[0, i], np.exp(log_std[0, i])).cdf
        )
        assert test.pvalue > 1e-4


def test_a_categorical_is_a_pytree_of_one_leaf():
    assert len(jax.tree.leaves(Categorical(jnp.zeros(3)))) == 1
