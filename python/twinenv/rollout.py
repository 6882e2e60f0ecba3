"""Play with a policy: many environments, many steps, one compiled call."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from twinenv import stages
from twinenv.acting import PolicyAct, uniform_legal
from twinenv.env import Environment

__all__ = ["Trajectory", "rollout"]


class Trajectory(NamedTuple):
    """What happened; every array begins with the axes `[num_steps, num_envs]`.

    Attributes:
        obs: what the policy saw.
        mask: `bool[..., num_actions]`, what was legal.
        action: what it did.
        reward: `float32`.
        done: `bool`, whether the step ended an episode.
        info: as from `env.step`.
    """

    obs: Any
    mask: jax.Array
    action: jax.Array
    reward: jax.Array
    done: jax.Array
    info: dict[str, Any]


def rollout(
    env: Environment[Any, Any],
    params: Any,
    policy: Any,
    key: jax.Array,
    num_envs: int,
    num_steps: int,
) -> tuple[Trajectory, Any]:
    """Play `num_envs` new episodes for `num_steps` steps, with automatic reset.

    The environments are spread over all devices of JAX's default backend that divide their number;
    the result does not depend on how many there are. It is compiled once per configuration: equal
    environments, the same function (or policies of one network), `num_envs` and `num_steps`.

    Args:
        env: an environment.
        params: its parameters; None stands for `default_params`.
        policy: None for random legal actions, a traceable function of a batch
            `(obs, mask, key) -> action`, or an object with such a method `act`, such as
            `twinenv.load_policy(run)`.
        key: key.
        num_envs: how many environments.
        num_steps: how many steps of each.

    Returns:
        The trajectory and the states after the last step.

    Raises:
        TypeError: the policy is none of these, or an argument is of a wrong kind.
        ValueError: `num_envs` or `num_steps` is no positive integer, or params are out of range.
    """
    for name, value in (("num_envs", num_envs), ("num_steps", num_steps)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} is {value!r}; accepted is an integer from 1")
    params = env.resolve(params)
    act, weights = _policy(env, policy)
    key_reset, key_play = jax.random.split(key)
    each = jax.sharding.NamedSharding(_mesh(num_envs), jax.sharding.PartitionSpec("env"))
    keys = jax.device_put(jax.random.split(key_reset, num_envs), each)
    # Inside another `jax.jit` the options are those of the outer one.
    play = _play if isinstance(keys, jax.core.Tracer) else _compiled()
    return play(env, act, int(num_steps), (params, weights), keys, key_play)


def _policy(env: Environment[Any, Any], policy: Any) -> tuple[Any, Any]:
    """A hashable function `(weights, obs, mask, key) -> action` and the weights."""
    if policy is None:
        return (_random_discrete if env.is_discrete else _Uniform(env.action_shape)), ()
    if PolicyAct.fits(policy):
        return PolicyAct.split(policy)
    if not callable(getattr(policy, "act", policy)):
        raise TypeError(
            f"policy is {type(policy).__name__}; accepted are None, a function (obs, mask, key) -> "
            "action of a batch, or an object with such a method `act`"
        )
    return _Unweighted(policy), ()


def _random_discrete(weights: Any, obs: Any, mask: jax.Array, key: jax.Array) -> jax.Array:
    return uniform_legal(mask, key)


@dataclasses.dataclass(frozen=True)
class _Uniform:
    shape: tuple[int, ...]

    def __call__(self, weights: Any, obs: Any, mask: jax.Array, key: jax.Array) -> jax.Array:
        return jax.random.uniform(key, (mask.shape[0], *self.shape), jnp.float32, -1.0, 1.0)


@dataclasses.dataclass(frozen=True)
class _Unweighted:
    policy: Any

    def __post_init__(self) -> None:
        try:
            hash(self.policy)
        except TypeError as error:
            raise TypeError(
                f"policy of {type(self.policy).__name__} cannot be hashed, so its compiled rollout "
                "could not be found again; pass its method `act`, which stands for this one object"
            ) from error

    def __call__(self, weights: Any, obs: Any, mask: jax.Array, key: jax.Array) -> jax.Array:
        return getattr(self.policy, "act", self.policy)(obs, mask, key)


def _mesh(num_envs: int) -> jax.sharding.Mesh:
    """As many devices as divide the environments."""
    devices = jax.devices()
    used = max(n for n in range(1, len(devices) + 1) if num_envs % n == 0)
    return jax.sharding.Mesh(np.asarray(devices[:used]), ("env",))


def _over_devices(function: Callable[..., Any], mesh: jax.sharding.Mesh) -> Callable[..., Any]:
    """A function of arrays `[num_envs, ...]` and params, each device doing its own environments.

    XLA's own partitioning would gather what an environment does in loops over its batch.
    """
    if mesh.size == 1:
        return function
    each, whole = jax.sharding.PartitionSpec("env"), jax.sharding.PartitionSpec()

    def mapped(*args: Any) -> Any:
        specs = (*[each] * (len(args) - 1), whole)
        return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=each, check_vma=False)(
            *args
        )

    return mapped


@functools.cache
def _compiled() -> Callable[..., Any]:
    # Made on first use, because the options depend on JAX's backend, which `import` must not start.
    options = stages.cpu_compiler_options()
    return jax.jit(_play, static_argnums=(0, 1, 2), compiler_options=options)


def _play(
    env: Environment[Any, Any],
    act: Callable[..., jax.Array],
    num_steps: int,
    given: tuple[Any, Any],
    keys: jax.Array,
    key_play: jax.Array,
) -> tuple[Trajectory, Any]:
    params, weights = given
    mesh = _mesh(keys.shape[0])
    step = _over_devices(jax.vmap(env.step, (0, 0, 0, None)), mesh)
    masks = jax.vmap(env.action_mask, (0, None))

    def one(carry: tuple[Any, Any], key: jax.Array) -> tuple[tuple[Any, Any], Trajectory]:
        (obs, state), (key_act, key_step) = carry, key
        mask = masks(state, params)
        action = act(weights, obs, mask, key_act)
        keys_step = jax.random.split(key_step, keys.shape[0])
        following, state, reward, done, info = step(keys_step, state, action, params)
        return (following, state), Trajectory(obs, mask, action, reward, done, info)

    begun = _over_devices(jax.vmap(env.reset, (0, None)), mesh)(keys, params)
    (_, state), trajectory = jax.lax.scan(one, begun, jax.random.split(key_play, (num_steps, 2)))
    return trajectory, state
