"""Acting: what the environments and the policy do between two updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from twinenv.ppo.config import Outcome
from twinenv.ppo.networks import Output
from twinenv.ppo.views import Step, View

__all__ = ["Actors", "Apply", "Counts", "Rollout", "collect", "count_outcomes", "initial_actors"]

Apply: TypeAlias = Callable[[Any, jax.Array | None, Any, jax.Array], Output]
"""A policy with its parameters and normalisation: `(obs, mask, carry, reset) -> Output`."""

Counts: TypeAlias = dict[str, tuple[jax.Array, jax.Array]]
"""By name: the sum of what counts and the sum of what it is counted among, `float32`."""


class Actors(NamedTuple):
    """Where the environments stand.

    Attributes:
        env_state: batched state.
        obs: `[N, ...]`.
        carry: the policy's memory.
        reset: `bool[N]`, `obs` is the first of its episode.
    """

    env_state: Any
    obs: Any
    carry: Any
    reset: jax.Array


class Rollout(NamedTuple):
    """`T` steps of `N` environments.

    Attributes:
        obs: `[T, N, ...]` in which the actions were chosen.
        mask: `bool[T, N, A]` of those same states, or None.
        action: `int32[T, N]` or `float32[T, N, D]`, as sampled.
        log_prob: `float32[T, N]`.
        value: `float32[T, N]`.
        reward: `float32[T, N]`.
        done: `bool[T, N]`.
        reset: `bool[T, N]`, the observation is the first of its episode.
        bootstrap: `float32[T, N]`, value of the final observation where the episode was cut
            short, else 0.
        last_value: `float32[N]`, of the observation after the last step.
        carry: the policy's memory before the first step.
    """

    obs: Any
    mask: jax.Array | None
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array
    reset: jax.Array
    bootstrap: jax.Array
    last_value: jax.Array
    carry: Any


def initial_actors(view: View, params: Any, carry: Any, key: jax.Array, num_envs: int) -> Actors:
    """Every environment at the start of an episode."""
    keys = jax.random.split(key, num_envs)
    obs, env_state = jax.vmap(view.reset, in_axes=(0, None))(keys, params)
    return Actors(env_state, obs, carry, jnp.ones((num_envs,), jnp.bool_))


def collect(
    view: View,
    params: Any,
    apply: Apply,
    outcomes: Mapping[str, Outcome],
    actors: Actors,
    keys: tuple[jax.Array, jax.Array],
) -> tuple[Actors, Rollout, Counts]:
    """Act for as many steps as there are keys.

    Args:
        view: the environment.
        params: its parameters.
        apply: the policy.
        outcomes: ratios to count, by name.
        actors: where the environments stand.
        keys: of the actions `[T]` and of the environments `[T, N]`.

    Returns:
        Where the environments stand then, what happened, and the outcomes' counts.
    """
    step_env = jax.vmap(view.step, in_axes=(0, 0, 0, None))
    masks = jax.vmap(view.mask, in_axes=(0, None))

    def one(actors: Actors, keys: tuple[jax.Array, jax.Array]) -> tuple[Actors, tuple[Any, ...]]:
        key_action, keys_env = keys
        # The mask belongs to the state in which the action is chosen.
        mask = masks(actors.env_state, params)
        distribution, value, carry = once(apply, actors.obs, mask, actors.carry, actors.reset)
        action = distribution.sample(key_action)
        step = step_env(keys_env, actors.env_state, action, params)
        bootstrap = _bootstrap(apply, step, mask, carry)
        kept = (
            *(actors.obs, mask, action, distribution.log_prob(action), value),
            *(step.reward, step.done, actors.reset, bootstrap),
        )
        following = Actors(step.state, step.obs, carry, step.done)
        return following, (kept, count_outcomes(outcomes, step.info))

    carry = actors.carry
    actors, (kept, counts) = jax.lax.scan(one, actors, keys)
    mask = masks(actors.env_state, params)
    last = once(apply, actors.obs, mask, actors.carry, actors.reset).value
    total = jax.tree.map(lambda count: jnp.sum(count, axis=0), counts)
    return actors, Rollout._make((*kept, last, carry)), total


def once(apply: Apply, obs: Any, mask: Any, carry: Any, reset: Any) -> Output:
    """The policy on one step: `obs[N, ...]` in, leading axes `[N]` out."""
    one_obs, one_mask = jax.tree.map(lambda leaf: leaf[None], (obs, mask))
    output = apply(one_obs, one_mask, carry, reset[None])
    first = jax.tree.map(lambda leaf: leaf[0], (output.distribution, output.value))
    return Output._make((*first, output.carry))


def _bootstrap(apply: Apply, step: Step, mask: jax.Array | None, carry: Any) -> jax.Array:
    """Value of the final observations of episodes that were cut short, else 0."""

    def values() -> jax.Array:
        going_on = jnp.zeros_like(step.truncated)
        value = once(apply, step.final_obs, mask, carry, going_on).value
        return jnp.where(step.truncated, value, jnp.float32(0.0))

    # Most steps cut no episode short, and then the network need not run a second time.
    return jax.lax.cond(jnp.any(step.truncated), values, lambda: jnp.zeros_like(step.reward))


def count_outcomes(outcomes: Mapping[str, Outcome], info: Mapping[str, Any]) -> Counts:
    """What a step's `info` adds to each outcome."""

    def total(part: Any) -> jax.Array:
        return jnp.sum(jnp.asarray(part).astype(jnp.float32))

    parts = {name: outcome(info) for name, outcome in outcomes.items()}
    return {name: (total(part), total(among)) for name, (part, among) in parts.items()}
