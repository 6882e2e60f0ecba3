"""Batches of environments stepped from Python: the same face for JAX and for Gymnasium."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from twinenv.ppo.compiling import compiler_options
from twinenv.ppo.networks import Actions
from twinenv.ppo.runs import Spec, leaf_shapes
from twinenv.ppo.views import View

__all__ = ["JaxStepper", "Seen", "Stepper", "VectorStepper", "is_vector_env"]


class Seen(NamedTuple):
    """What a step of `N` environments gave; every environment that ended has been reset.

    Attributes:
        obs: `[N, ...]`, of the next episode where one ended.
        mask: `bool[N, A]` of the legal actions in that state, or None.
        reward: `float32[N]`.
        done: `bool[N]`, for either reason.
        truncated: `bool[N]`.
        final_obs: `[N, ...]`, before the reset.
        info: the environment's own outcomes in this step, arrays `[N]`.
    """

    obs: Any
    mask: Any
    reward: np.ndarray
    done: np.ndarray
    truncated: np.ndarray
    final_obs: Any
    info: dict[str, Any]


class Stepper(Protocol):
    """Environments that are stepped together."""

    num_envs: int
    spec: Spec

    def reset(self, seed: int) -> tuple[Any, Any]:
        """Observations and masks of new episodes."""

    def step(self, action: np.ndarray) -> Seen:
        """One step of each; continuous actions are within [-1, 1]."""


class JaxStepper:
    """A JAX environment, batched.

    Args:
        view: the environment.
        spec: what its policies see.
        params: its parameters.
        num_envs: how many.
    """

    def __init__(self, view: View, spec: Spec, params: Any, num_envs: int) -> None:
        self.num_envs, self.spec = num_envs, spec
        masks = jax.vmap(view.mask, in_axes=(0, None))

        def reset(seed: jax.Array) -> Any:
            key, key_reset = jax.random.split(jax.random.key(seed))
            keys = jax.random.split(key_reset, num_envs)
            obs, state = jax.vmap(view.reset, in_axes=(0, None))(keys, params)
            return (state, key), (obs, masks(state, params))

        def step(carry: Any, action: jax.Array) -> Any:
            state, key = carry
            key, key_step = jax.random.split(key)
            keys = jax.random.split(key_step, num_envs)
            seen = jax.vmap(view.step, in_axes=(0, 0, 0, None))(keys, state, action, params)
            ends = (seen.reward, seen.done, seen.truncated, seen.final_obs)
            mask = masks(seen.state, params)
            return (seen.state, key), Seen._make((seen.obs, mask, *ends, seen.info))

        options = compiler_options(quick=True)
        self._reset = jax.jit(reset, compiler_options=options)
        self._step = jax.jit(step, compiler_options=options)
        self._carry: Any = None

    def reset(self, seed: int) -> tuple[Any, Any]:
        """Observations and masks of new episodes."""
        self._carry, first = self._reset(np.uint32(seed))
        return jax.device_get(first)

    def step(self, action: np.ndarray) -> Seen:
        """One step of each."""
        self._carry, seen = self._step(self._carry, action)
        return jax.device_get(seen)


class VectorStepper:
    """A `gymnasium.vector.VectorEnv` that resets in the same step.

    A mask of legal actions is taken from `info["action_mask"]`, which must belong to the
    observation it comes with.

    Args:
        env: the environments.

    Raises:
        TypeError: another kind of reset, or of actions.
    """

    def __init__(self, env: Any) -> None:
        # Gymnasium's own vector environments share `metadata` with others of the same class.
        mode = getattr(env, "autoreset_mode", env.metadata.get("autoreset_mode"))
        if getattr(mode, "name", mode) != "SAME_STEP":
            raise TypeError(
                f"this {type(env).__name__} resets in mode {getattr(mode, 'name', mode)}, and "
                "training needs SAME_STEP: gymnasium.make_vec(..., vector_kwargs="
                '{"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP})'
            )
        self._env, self.num_envs = env, env.num_envs
        self._space = env.single_action_space
        obs, info = env.reset(seed=0)
        self._masked = "action_mask" in info
        one = jax.tree.map(lambda leaf: np.asarray(leaf)[0], obs)
        self.spec = Spec(leaf_shapes(one), _actions_of(self._space), self._masked)

    def reset(self, seed: int) -> tuple[Any, Any]:
        """Observations and masks of new episodes."""
        obs, info = self._env.reset(seed=seed)
        return _copied(obs), self._mask(info)

    def step(self, action: np.ndarray) -> Seen:
        """One step of each."""
        obs, reward, terminated, truncated, info = self._env.step(self._scaled(action))
        obs, done = _copied(obs), np.asarray(terminated) | np.asarray(truncated)
        final_obs = _final_obs(obs, info, done)
        rest = (np.array(truncated, np.bool_), final_obs, _outcomes(info, done))
        return Seen(obs, self._mask(info), np.array(reward, np.float32), done, *rest)

    def _mask(self, info: dict[str, Any]) -> np.ndarray | None:
        return np.array(info["action_mask"], np.bool_) if self._masked else None

    def _scaled(self, action: np.ndarray) -> np.ndarray:
        space = self._space
        if self.spec.actions.discrete:
            return (action + space.start).astype(space.dtype)
        action = action.reshape(-1, *space.shape)
        return (space.low + 0.5 * (action + 1.0) * (space.high - space.low)).astype(space.dtype)


def is_vector_env(env: Any) -> bool:
    """Whether `env` looks like a `gymnasium.vector.VectorEnv` (without importing gymnasium)."""
    return hasattr(env, "single_action_space") and hasattr(env, "num_envs")


def _actions_of(space: Any) -> Actions:
    if hasattr(space, "n") and hasattr(space, "start"):
        return Actions(True, int(space.n))
    if hasattr(space, "low") and np.all(np.isfinite(space.low) & np.isfinite(space.high)):
        return Actions(False, int(np.prod(space.shape)), tuple(space.shape))
    raise TypeError(f"actions are {space}; accepted are Discrete and finite Box spaces")


def _copied(obs: Any) -> Any:
    # Vector environments may reuse their buffers; what is kept must not change afterwards.
    return jax.tree.map(np.array, obs)


def _final_obs(obs: Any, info: dict[str, Any], done: np.ndarray) -> Any:
    """The observations before the reset, where there was one; elsewhere just the observations."""
    if not done.any():
        return obs
    given = info["final_obs"]
    if not (isinstance(given, np.ndarray) and given.dtype == object):
        return _copied(given)
    final = _copied(obs)
    for index in np.flatnonzero(done):
        for leaf, value in zip(jax.tree.leaves(final), jax.tree.leaves(given[index]), strict=True):
            leaf[index] = value
    return final


def _outcomes(info: dict[str, Any], done: np.ndarray) -> dict[str, Any]:
    """The step's own outcomes: where an episode ended, `info` itself speaks of the reset."""
    final = info.get("final_info")
    if not isinstance(final, dict):
        return info
    merged = dict(info)
    for name, value in final.items():
        if isinstance(value, np.ndarray) and not name.startswith("_"):
            old = info.get(name, np.zeros_like(value))
            merged[name] = np.where(done.reshape(-1, *[1] * (value.ndim - 1)), value, old)
    return merged
