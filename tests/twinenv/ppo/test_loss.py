"""Losses and gradients against straightforward float64 NumPy."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from twinenv.ppo import update
from twinenv.ppo.compiling import compiler_options
from twinenv.ppo.config import Config
from twinenv.ppo.distributions import masked
from twinenv.ppo.networks import Actions, MLPPolicy, Output

T, N, A = 7, 12, 3
QUICK = compiler_options(quick=True, level=0)


def batch_of(rng, mask=None):
    obs = jnp.asarray(rng.normal(size=(N, T, 4)), jnp.float32)
    allowed = np.ones((N, T, A), np.bool_) if mask is None else mask
    action = np.array([[rng.choice(np.flatnonzero(m)) for m in row] for row in allowed], np.int32)
    values = [jnp.asarray(rng.normal(size=(N, T)), jnp.float32) for _ in range(3)]
    return update.Batch(
        obs,
        None if mask is None else jnp.asarray(mask),
        jnp.asarray(action),
        *values,
        jnp.zeros((N, T), jnp.bool_),
        (),
    )


class Linear:
    """A policy whose output is plain to recompute."""

    def __init__(self, rng) -> None:
        self.weights = rng.normal(size=(4, A + 1)) * 0.5

    def __call__(self, obs, mask, carry, reset):
        out = obs @ jnp.asarray(self.weights, jnp.float32)
        return Output(masked(out[..., :A], mask), out[..., A], carry)


def log_softmax(logits, mask):
    logits = np.where(mask, logits, -np.inf)
    top = logits.max(-1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))


@pytest.mark.parametrize("is_masked", [False, True])
def test_loss_is_the_clipped_objective(is_masked):
    rng = np.random.default_rng(1)
    mask = rng.random((N, T, A)) < 0.6
    mask[..., 0] |= ~mask.any(-1)
    policy, batch = Linear(rng), batch_of(rng, mask if is_masked else None)
    config = Config(num_envs=N, num_minibatches=1, clip=0.3, value_clip=0.25)
    function = jax.jit(
        lambda b: update.loss(policy, b, b.advantage, config), compiler_options=QUICK
    )
    total, parts = function(batch)

    out = np.asarray(batch.obs, np.float64) @ policy.weights
    logs = log_softmax(out[..., :A], mask if is_masked else np.ones_like(mask))
    taken = np.take_along_axis(logs, np.asarray(batch.action)[..., None], -1)[..., 0]
    ratio = np.exp(taken - np.asarray(batch.log_prob, np.float64))
    weight, old = (np.asarray(x, np.float64) for x in (batch.advantage, batch.value))
    policy_loss = -np.minimum(ratio * weight, np.clip(ratio, 0.7, 1.3) * weight).mean()
    target, value = old + weight, out[..., A]
    near = old + np.clip(value - old, -0.25, 0.25)
    value_loss = 0.5 * np.maximum((value - target) ** 2, (near - target) ** 2).mean()
    probs = np.exp(logs)
    entropy = -np.where(probs > 0, probs * np.where(probs > 0, logs, 0), 0).sum(-1).mean()
    expected = policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
    got = [float(x) for x in (total, parts.policy_loss, parts.value_loss, parts.entropy)]
    np.testing.assert_allclose(got, [expected, policy_loss, value_loss, entropy], rtol=3e-5)


def test_micro_batches_do_not_change_the_gradient():
    rng = np.random.default_rng(2)
    batch = batch_of(rng)
    network = MLPPolicy(Actions(True, A), (8,))
    first = (batch.obs[:1].swapaxes(0, 1), None, (), jnp.zeros((T, 1), jnp.bool_))
    params = jax.jit(network.init, compiler_options=QUICK)(jax.random.key(0), *first)
    config = Config(num_envs=N, num_minibatches=1)
    rows = jnp.arange(N, dtype=jnp.int32)
    splits = [rows.reshape(count, -1) for count in (1, 2, 6)]

    def gradient(params, rows):
        return update.gradient(network.apply, params, batch, rows, config)[0]

    compiled = jax.jit(gradient, compiler_options=QUICK)
    grads = [compiled(params, split) for split in splits]
    for other in grads[1:]:
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), grads[0], other
        )


def test_learning_rate_falls_by_updates():
    config = Config(learning_rate=0.5)
    rates = [float(update.learning_rate(config, jnp.int32(u), jnp.int32(4))) for u in range(6)]
    assert rates == [0.5, 0.375, 0.25, 0.125, 0.0, 0.0]
    constant = dataclasses.replace(config, anneal=False)
    assert float(update.learning_rate(constant, jnp.int32(3), jnp.int32(4))) == 0.5
