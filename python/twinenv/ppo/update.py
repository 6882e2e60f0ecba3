"""Learning: losses, minibatches, gradient steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from twinenv.ppo.config import Config
from twinenv.ppo.networks import Output
from twinenv.ppo.rollout import Apply

__all__ = ["Batch", "Losses", "epochs", "learning_rate", "loss", "micro_columns", "optimizer"]


_FLAT = 1_000_000


class Batch(NamedTuple):
    """What the loss needs, columns first: `N` environments of `T` steps.

    Attributes:
        obs: `[N, T, ...]`.
        mask: `bool[N, T, A]` or None.
        action: `[N, T]` or `[N, T, D]`.
        log_prob: `float32[N, T]`, when acting.
        value: `float32[N, T]`, when acting.
        advantage: `float32[N, T]`.
        reset: `bool[N, T]`, first observation of its episode.
        carry: the policy's memory before the first step, `[N, ...]`.
    """

    obs: Any
    mask: jax.Array | None
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    advantage: jax.Array
    reset: jax.Array
    carry: Any


class Losses(NamedTuple):
    """Means over samples, `float32` each."""

    policy_loss: jax.Array
    value_loss: jax.Array
    entropy: jax.Array
    approx_kl: jax.Array
    clip_fraction: jax.Array


def loss(apply: Apply, batch: Batch, scaled: jax.Array, config: Config) -> tuple[jax.Array, Losses]:
    """The clipped loss of whole columns.

    Args:
        apply: the policy.
        batch: the columns.
        scaled: `float32[N, T]`, advantages as the policy loss uses them.
        config: clipping ranges and weights.
    """
    steps = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), batch._replace(carry=()))
    output: Output = apply(steps.obs, steps.mask, batch.carry, steps.reset)
    log_ratio = output.distribution.log_prob(steps.action) - steps.log_prob
    ratio = jnp.exp(log_ratio)
    scaled = jnp.swapaxes(scaled, 0, 1)
    clipped = jnp.clip(ratio, 1.0 - config.clip, 1.0 + config.clip)
    policy_loss = -jnp.mean(jnp.minimum(ratio * scaled, clipped * scaled))
    value_loss = _value_loss(output.value, steps.value, steps.value + steps.advantage, config)
    entropy = jnp.mean(output.distribution.entropy())
    total = policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
    outside = (jnp.abs(ratio - 1.0) > config.clip).astype(jnp.float32)
    kl = jnp.mean(ratio - 1.0 - log_ratio)
    return total, Losses(policy_loss, value_loss, entropy, kl, jnp.mean(outside))


def _value_loss(value: jax.Array, old: jax.Array, target: jax.Array, config: Config) -> jax.Array:
    error = jnp.square(value - target)
    if config.value_clip:
        near = old + jnp.clip(value - old, -config.value_clip, config.value_clip)
        error = jnp.maximum(error, jnp.square(near - target))
    return 0.5 * jnp.mean(error)


def optimizer(config: Config, params: Any) -> optax.GradientTransformation:
    """Clipping by global norm, then Adam, without the learning rate."""
    rule = optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),
        optax.scale_by_adam(eps=config.adam_eps),
    )
    # Few parameters go into one vector: fewer kernels to compile and to start.
    size = sum(leaf.size for leaf in jax.tree.leaves(params))
    return optax.flatten(rule) if size <= _FLAT else rule


def learning_rate(config: Config, update: jax.Array, num_updates: jax.Array) -> jax.Array:
    """Step size of an update (not of a gradient step): the first has the full one, the last little.

    Args:
        config: the initial rate and whether it is annealed.
        update: `int32`, updates done.
        num_updates: `int32`, updates of the whole run.
    """
    rate = jnp.float32(config.learning_rate)
    if not config.anneal:
        return rate
    left = 1.0 - update.astype(jnp.float32) / num_updates.astype(jnp.float32)
    return rate * jnp.maximum(left, 0.0)


def micro_columns(config: Config, platform: str) -> int:
    """Columns whose gradient is computed at once: a divisor of a minibatch's columns.

    On the CPU some 500 samples keep a small network's activations in the cache.
    """
    columns = config.num_envs // config.num_minibatches
    samples = config.micro_batch or (512 if platform == "cpu" else columns * config.num_steps)
    most = max(1, min(columns, samples // config.num_steps))
    return next(size for size in range(most, 0, -1) if columns % size == 0)


def epochs(
    apply: Any,
    learned: tuple[Any, Any],
    batch: Batch,
    rate: jax.Array,
    key: jax.Array,
    config: Config,
) -> tuple[tuple[Any, Any], tuple[Losses, jax.Array]]:
    """All gradient steps of an update.

    Args:
        apply: the policy, with its parameters as a first argument.
        learned: parameters and the optimiser's state.
        batch: the rollout with its advantages.
        rate: step size.
        key: of the shuffles.
        config: hyperparameters.

    Returns:
        New parameters and optimiser state; means of the losses and of the gradient's norm.
    """
    columns = micro_columns(config, jax.default_backend())
    shape = (config.num_minibatches, -1, columns)

    def minibatch(learned: tuple[Any, Any], rows: jax.Array) -> tuple[Any, Any]:
        params, opt_state = learned
        grads, losses = gradient(apply, params, batch, rows, config)
        norm = optax.tree.norm(grads)
        # optax raises its decay rates to an integer power, which strict promotion forbids.
        with jax.numpy_dtype_promotion("standard"):
            updates, opt_state = optimizer(config, params).update(grads, opt_state)
        params = jax.tree.map(lambda p, u: p - rate * u, params, updates)
        return (params, opt_state), (losses, norm)

    def epoch(learned: tuple[Any, Any], key: jax.Array) -> tuple[Any, Any]:
        order = jax.random.permutation(key, jnp.arange(config.num_envs, dtype=jnp.int32))
        return jax.lax.scan(minibatch, learned, order.reshape(shape))

    learned, measured = jax.lax.scan(epoch, learned, jax.random.split(key, config.num_epochs))
    return learned, jax.tree.map(jnp.mean, measured)


def gradient(
    apply: Any, params: Any, batch: Batch, rows: jax.Array, config: Config
) -> tuple[Any, Losses]:
    """Gradient and losses of one minibatch, accumulated over its micro-batches.

    Args:
        apply: the policy, with its parameters as a first argument.
        params: its parameters.
        batch: the rollout with its advantages.
        rows: `int32[micro-batches, columns]`, the environments of the minibatch.
        config: hyperparameters.
    """
    scaled = batch.advantage
    if config.normalize_advantage:
        # Over the minibatch, not the micro-batch: only so is the gradient the same for every split.
        mine = scaled[rows.reshape(-1)]
        scaled = (scaled - jnp.mean(mine)) / (jnp.std(mine) + 1e-8)

    def micro(params: Any, columns: jax.Array) -> tuple[jax.Array, Losses]:
        part, part_scaled = jax.tree.map(lambda leaf: leaf[columns], (batch, scaled))
        return loss(lambda *args: apply(params, *args), part, part_scaled, config)

    def add(total: Any, columns: jax.Array) -> tuple[Any, None]:
        grads, losses = jax.grad(micro, has_aux=True)(params, columns)
        return jax.tree.map(jnp.add, total, (grads, losses)), None

    if rows.shape[0] == 1:
        return jax.grad(micro, has_aux=True)(params, rows[0])
    zero = jax.tree.map(jnp.zeros_like, params), Losses(*[jnp.zeros((), jnp.float32)] * 5)
    total = jax.lax.scan(add, zero, rows)[0]
    return jax.tree.map(lambda leaf: leaf / rows.shape[0], total)
