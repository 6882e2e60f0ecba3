"""One update from a rollout: returns, advantages, gradient steps, statistics.

It knows nothing of the environment, so it serves JAX environments and those on the host alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from twinenv.ppo import gae, update
from twinenv.ppo.config import Config
from twinenv.ppo.networks import Output
from twinenv.ppo.normalizers import Moments, initial_moments, merged, standardized
from twinenv.ppo.rollout import Apply, Counts, Rollout

__all__ = ["Learner", "Tally", "initial_learner", "initial_tally", "learn", "policy_of"]

_EPSILON = 1e-8


class Learner(NamedTuple):
    """What is learned.

    Attributes:
        params: the policy's parameters.
        opt_state: the optimiser's state.
        obs_moments: running statistics of observations; None without their normalisation.
        return_moments: likewise of discounted returns.
    """

    params: Any
    opt_state: Any
    obs_moments: Moments | None
    return_moments: Moments | None


class Tally(NamedTuple):
    """Sums over the episodes under way, `[N]` each.

    Attributes:
        episode_return: `float32`, undiscounted.
        episode_length: `int32`.
        discounted: `float32`, the discounted return whose spread scales rewards.
    """

    episode_return: jax.Array
    episode_length: jax.Array
    discounted: jax.Array


def initial_learner(network: nn.Module, config: Config, example: Any, key: jax.Array) -> Learner:
    """A policy that has learned nothing.

    Args:
        network: the policy.
        config: hyperparameters.
        example: `(obs, mask, carry, reset)` of one step, leading axes `[1, N]`.
        key: of the initial parameters.
    """
    params = network.init(key, *example)
    one = jax.tree.map(lambda leaf: leaf[0, 0], example[0])
    obs_moments = initial_moments(one) if config.normalize_observation else None
    scalar = jnp.zeros((), jnp.float32)
    return_moments = initial_moments(scalar) if config.normalize_reward else None
    return Learner(
        params, update.optimizer(config, params).init(params), obs_moments, return_moments
    )


def initial_tally(num_envs: int) -> Tally:
    """The tally before the first step."""
    zero = jnp.zeros((num_envs,), jnp.float32)
    return Tally(zero, jnp.zeros((num_envs,), jnp.int32), jnp.zeros_like(zero))


def policy_of(network: nn.Module, params: Any, obs_moments: Moments | None) -> Apply:
    """The policy with its parameters and the statistics that its observations are scaled by."""

    def apply(obs: Any, mask: jax.Array | None, carry: Any, reset: jax.Array) -> Output:
        if obs_moments is not None:
            obs = standardized(obs_moments, obs)
        return network.apply(params, obs, mask, carry, reset)  # type: ignore[return-value]

    return apply


def learn(
    network: nn.Module,
    config: Config,
    learner: Learner,
    tally: Tally,
    rollout: Rollout,
    schedule: tuple[jax.Array, jax.Array, jax.Array],
) -> tuple[Learner, Tally, Counts, dict[str, jax.Array]]:
    """One update.

    Args:
        network: the policy.
        config: hyperparameters.
        learner: what was learned so far; its statistics are those the rollout was made with.
        tally: the episodes that were under way when the rollout began.
        rollout: what happened.
        schedule: key of the shuffles; updates done and updates of the whole run, `int32`.

    Returns:
        The next learner and tally, counts of the finished episodes' returns and lengths, and the
        update's diagnostics, `float32` scalars.
    """
    key, done_updates, num_updates = schedule
    tally, counts, discounted = _tallied(tally, rollout, config.gamma)
    obs_moments, return_moments = learner.obs_moments, learner.return_moments
    reward = rollout.reward
    if return_moments is not None:
        return_moments = merged(return_moments, discounted)
        reward = reward * jax.lax.rsqrt(return_moments.var[0] + _EPSILON)
    advantage = _advantages(rollout, reward, config)
    rate = update.learning_rate(config, done_updates, num_updates)

    def apply(params: Any, *step: Any) -> Output:
        return policy_of(network, params, obs_moments)(*step)

    (params, opt_state), (losses, grad_norm) = update.epochs(
        apply,
        (learner.params, learner.opt_state),
        _columns(rollout, advantage),
        rate,
        key,
        config,
    )
    if obs_moments is not None:
        obs_moments = merged(obs_moments, rollout.obs)
    diagnostics = losses._asdict() | {"grad_norm": grad_norm, "learning_rate": rate}
    diagnostics["explained_variance"] = _explained(rollout.value, advantage)
    return Learner(params, opt_state, obs_moments, return_moments), tally, counts, diagnostics


def _advantages(rollout: Rollout, reward: jax.Array, config: Config) -> jax.Array:
    following = jnp.concatenate([rollout.value[1:], rollout.last_value[None]])
    next_value = jnp.where(rollout.done, rollout.bootstrap, following)
    return gae.advantages(
        reward, rollout.value, next_value, rollout.done, config.gamma, config.gae_lambda
    )


def _columns(rollout: Rollout, advantage: jax.Array) -> update.Batch:
    """The rollout with one contiguous row per environment, which shuffling then copies whole."""
    kept = (rollout.obs, rollout.mask, rollout.action, rollout.log_prob, rollout.value)
    columns = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), (*kept, advantage, rollout.reset))
    return update.Batch._make((*columns, rollout.carry))


def _tallied(tally: Tally, rollout: Rollout, gamma: float) -> tuple[Tally, Counts, jax.Array]:
    """The tally after the rollout, counts of finished episodes, discounted returns `[T, N]`."""

    def one(tally: Tally, step: tuple[jax.Array, jax.Array]) -> tuple[Tally, tuple[Any, ...]]:
        reward, done = step
        total = tally.episode_return + reward
        length = tally.episode_length + 1
        discounted = gamma * tally.discounted + reward
        ended = (_sum(done), _sum(jnp.where(done, total, 0.0)), _sum(jnp.where(done, length, 0)))
        after = jax.tree.map(
            lambda leaf: jnp.where(done, jnp.zeros_like(leaf), leaf), (total, length, discounted)
        )
        return Tally(*after), (ended, discounted)

    tally, (ended, discounted) = jax.lax.scan(one, tally, (rollout.reward, rollout.done))
    episodes, returns, lengths = (jnp.sum(part) for part in ended)
    return tally, {"return": (returns, episodes), "length": (lengths, episodes)}, discounted


def _sum(values: jax.Array) -> jax.Array:
    return jnp.sum(values.astype(jnp.float32))


def _explained(value: jax.Array, advantage: jax.Array) -> jax.Array:
    """Share of the returns' variance that the values explain, at most 1."""
    return 1.0 - jnp.var(advantage) / (jnp.var(value + advantage) + _EPSILON)
