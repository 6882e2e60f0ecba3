"""The dialect of gymnax 1.x, whose `step` returns six values."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
from gymnax.environments import environment

from twinenv import registry
from twinenv.env import Environment

__all__ = ["GymnaxEnvironment", "make_gymnax"]


def make_gymnax(env_id: str, **options: Any) -> tuple[GymnaxEnvironment, Any]:
    """An environment in gymnax's dialect and its parameters.

    Args:
        env_id: an id of `twinenv.list_ids()`.
        **options: as for `twinenv.make`.

    Raises:
        ValueError: no such id; the message suggests the nearest.
    """
    env, params = registry.make(env_id, **options)
    return GymnaxEnvironment(env, params), params


class GymnaxEnvironment(environment.Environment):
    """An environment as gymnax knows it.

    `step` returns observation, state, reward, terminated, truncated and info; `step_env` five
    values, of which the fourth is `terminated`. Views of equal environments with equal parameters
    are equal, so that nothing is compiled twice.

    Attributes:
        env: the environment inside.
    """

    def __init__(self, env: Environment[Any, Any], params: Any = None) -> None:
        if not isinstance(env, Environment):
            raise TypeError(
                f"GymnaxEnvironment shows a twinenv Environment, got {type(env).__name__}; "
                "make one with twinenv.make(id)[0]"
            )
        self.env = env
        self._params = env.resolve(params)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GymnaxEnvironment)
            and self.env == other.env
            and _equal(self._params, other._params)
        )

    def __hash__(self) -> int:
        return hash((GymnaxEnvironment, self.env))

    def __repr__(self) -> str:
        return f"GymnaxEnvironment({self.env!r}, {self._params!r})"

    @property
    def default_params(self) -> Any:
        """The parameters that the environment was made with."""
        return self._params

    @property
    def name(self) -> str:
        """Canonical id."""
        return self.env.name

    @property
    def num_actions(self) -> int:
        """Number of discrete actions, or of components of a continuous action."""
        return self.env.num_actions

    def _resolve(self, params: Any) -> Any:
        return self._params if params is None else self.env.resolve(params)

    # The checks of numbers are made here, before they become traced.

    def reset(self, key: jax.Array, params: Any = None) -> tuple[Any, Any]:
        """Observation and state of a new episode."""
        return _reset(self.env, key, self._resolve(params))

    def step(self, key: jax.Array, state: Any, action: Any, params: Any = None) -> tuple[Any, ...]:
        """Observation, state, reward, terminated, truncated, info; with automatic reset."""
        obs, state, reward, _, info = _step(self.env, key, state, action, self._resolve(params))
        return obs, state, reward, info["terminated"], info["truncated"], info

    def reset_env(self, key: jax.Array, params: Any = None) -> tuple[Any, Any]:
        """The same as `reset`."""
        return self.env.reset_env(key, self._resolve(params))

    def step_env(
        self, key: jax.Array, state: Any, action: Any, params: Any = None
    ) -> tuple[Any, Any, jax.Array, jax.Array, dict[Any, Any]]:
        """Observation, state, reward, terminated, info; no automatic reset, no time limit."""
        return self.env.step_env(key, state, action, self._resolve(params))

    def observe(self, key: jax.Array, state: Any, action: Any, params: Any = None) -> Any:
        """Observation of a state."""
        return self.env.observe(key, state, action, self._resolve(params))

    def get_obs(self, state: Any, params: Any = None, key: Any = None) -> Any:
        """Observation of a state."""
        return self.env.get_obs(state, self._resolve(params), key)

    def is_truncated(self, state: Any, params: Any = None) -> jax.Array:
        """Whether a state has reached the time limit."""
        return self.env.is_truncated(state, self._resolve(params))

    def action_mask(self, state: Any, params: Any = None) -> jax.Array:
        """Which discrete actions are legal."""
        return self.env.action_mask(state, self._resolve(params))

    def render(self, state: Any, params: Any = None) -> Any:
        """Picture of a state, `uint8[height, width, 3]`."""
        return self.env.render(state, self._resolve(params))

    def action_space(self, params: Any = None) -> Any:
        """Space of an action."""
        return self.env.action_space(self._resolve(params))

    def observation_space(self, params: Any = None) -> Any:
        """Space of an observation."""
        return self.env.observation_space(self._resolve(params))

    def state_space(self, params: Any = None) -> Any:
        """Space of a state."""
        return self.env.state_space(self._resolve(params))


# Compiled, as gymnax's own environments are, because its Gym wrappers call them step by step.


@functools.partial(jax.jit, static_argnums=0)
def _reset(env: Environment[Any, Any], key: jax.Array, params: Any) -> tuple[Any, Any]:
    return env.reset(key, params)


@functools.partial(jax.jit, static_argnums=0)
def _step(
    env: Environment[Any, Any], key: jax.Array, state: Any, action: Any, params: Any
) -> tuple[Any, ...]:
    return env.step(key, state, action, params)


def _equal(one: Any, other: Any) -> bool:
    structures: list[Any] = [jax.tree.structure(one), jax.tree.structure(other)]
    if structures[0] != structures[1]:
        return False
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)
