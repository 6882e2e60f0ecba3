"""What all wrappers share: everything is passed on unless a wrapper says otherwise."""

# ruff: noqa: D102 - what an overridden method does is said in twinenv.env.Environment.

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from twinenv.env import Environment

if TYPE_CHECKING:
    from twinenv import spaces

__all__ = ["Wrapper", "WrapperState", "per_player"]

Outcome = tuple[Any, Any, jax.Array, jax.Array, dict[str, Any]]


@struct.dataclass
class WrapperState:
    """State of a wrapper that remembers something.

    Attributes:
        env_state: state of the environment inside.
    """

    env_state: Any

    @property
    def time(self) -> jax.Array:
        """Steps since the episode began, `int32`."""
        return self.env_state.time


@dataclasses.dataclass(frozen=True)
class Wrapper(Environment[Any, Any]):
    """An environment around an environment, with the same name and the same parameters.

    A wrapper changes what an outcome looks like in `_after`, and what an episode begins with in
    `_begin`. It calls the `step` of the environment inside, so that a batch-level automatic reset
    in there stays in use.

    Attributes:
        env: the environment inside.
        own_state: class of the wrapper's states, None if it remembers nothing.
    """

    own_state: ClassVar[type[WrapperState] | None] = None

    env: Environment[Any, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.env, Environment):
            raise TypeError(
                f"{type(self).__name__} wraps a twinenv Environment, got "
                f"{type(self.env).__name__}; make one with twinenv.make(id)[0]"
            )

    # What a wrapper may change.

    def _inner(self, state: Any) -> Any:
        """State of the environment inside."""
        return state if self.own_state is None else state.env_state

    def _begin(self, key: jax.Array, obs: Any, env_state: Any, params: Any) -> tuple[Any, Any]:
        """Observation and state of an episode of which the environment inside has begun."""
        return obs, env_state

    def _action(self, state: Any, action: Any, params: Any) -> Any:
        """The action for the environment inside."""
        return action

    def _after(self, state: Any, outcome: Outcome, ended: jax.Array) -> Outcome:
        """The outcome of a step, of which the environment inside returned `outcome`.

        Args:
            state: the wrapper's state before the step.
            outcome: what the environment inside returned.
            ended: whether it has begun another episode, so that memory must be cleared.
        """
        return outcome

    # The environment inside, seen through the wrapper.

    @property
    def unwrapped(self) -> Environment[Any, Any]:
        return self.env.unwrapped

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.env.name

    @property
    def state_class(self) -> type:  # type: ignore[override]
        return self.own_state or self.env.state_class

    @property
    def num_players(self) -> int:  # type: ignore[override]
        return self.env.num_players

    @property
    def default_params(self) -> Any:
        return self.env.default_params

    @property
    def num_actions(self) -> int:
        return self.env.num_actions

    @property
    def is_discrete(self) -> bool:
        return self.env.is_discrete

    @property
    def action_shape(self) -> tuple[int, ...]:
        return self.env.action_shape

    @property
    def masked(self) -> bool:
        return self.env.masked

    def check_params(self, params: Any) -> None:
        self.env.check_params(params)

    def reset_env(self, key: jax.Array, params: Any = None) -> tuple[Any, Any]:
        obs, env_state = self.env.reset_env(key, params)
        return self._begin(key, obs, env_state, params)

    def reset_to(self, key: jax.Array, state: Any, params: Any = None) -> tuple[Any, Any]:
        obs, env_state = self.env.reset_to(key, state, params)
        return self._begin(key, obs, env_state, params)

    def step(self, key: jax.Array, state: Any, action: Any, params: Any = None) -> Outcome:
        outcome = self._play(self.env.step, key, state, action, params)
        return self._after(state, outcome, ended=outcome[3])

    def step_env(self, key: jax.Array, state: Any, action: Any, params: Any = None) -> Outcome:
        outcome = self._play(self.env.step_env, key, state, action, params)
        return self._after(state, outcome, ended=jnp.zeros_like(outcome[3]))

    def _play(
        self, step: Callable[..., Outcome], key: jax.Array, state: Any, action: Any, params: Any
    ) -> Outcome:
        self._check_one_state(state)
        return step(key, self._inner(state), self._action(state, action, params), params)

    def initial(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        return self.reset_env(key, params)

    def transition(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> Outcome:
        return self.step_env(key, state, action, params)

    def get_obs(self, state: Any, params: Any = None, key: Any = None) -> Any:
        return self.env.get_obs(self._inner(state), params, key)

    def action_mask(self, state: Any, params: Any = None) -> jax.Array:
        return self.env.action_mask(self._inner(state), params)

    def legal_action(
        self, state: Any, action: jax.Array, params: Any
    ) -> tuple[jax.Array, jax.Array]:
        return self.env.legal_action(self._inner(state), action, params)

    def action_space(self, params: Any = None) -> spaces.Space:
        return self.env.action_space(params)

    def observation_space(self, params: Any = None) -> spaces.Space:
        return self.env.observation_space(params)

    def state_space(self, params: Any = None) -> spaces.Dict:
        return self.env.state_space(params)

    def render(self, state: Any, params: Any = None) -> np.ndarray:
        self._check_state(state)
        return self.env.render(self._inner(state), params)

    def resolve(self, params: Any) -> Any:
        return self.env.resolve(params)


def per_player(env: Environment[Any, Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of one player's arrays, mapped over the leading axis if there are two players."""
    return jax.vmap(function) if env.num_players == 2 else function
