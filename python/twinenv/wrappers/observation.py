"""Other views of the observation: flat, or the last few together."""

# ruff: noqa: D102 - what an overridden method does is said in twinenv.env.Environment.

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from twinenv import spaces
from twinenv.wrappers.base import Outcome, Wrapper, WrapperState, per_player

if TYPE_CHECKING:
    from gymnax.environments.spaces import Box, Dict, Space

__all__ = ["FlattenObservation", "FrameStack", "FrameStackState"]


@dataclasses.dataclass(frozen=True)
class FlattenObservation(Wrapper):
    """One flat `float32` vector instead of an array, dictionary or tuple of arrays.

    The parts follow one another in the order of the space: tuples as they are, dictionaries by
    sorted key; a `Discrete` part is one number.
    """

    def observation_space(self, params: Any = None) -> Box:
        parts = _leaves(self.env.observation_space(params))
        limits = [_limits(part) for part in parts]
        low = np.concatenate([low.ravel() for low, _ in limits])
        high = np.concatenate([high.ravel() for _, high in limits])
        return spaces.Box(jnp.asarray(low), jnp.asarray(high), low.shape, jnp.float32)

    def get_obs(self, state: Any, params: Any = None, key: Any = None) -> jax.Array:
        return per_player(self.env, _flatten)(self.env.get_obs(state, params, key))

    def _begin(self, key: jax.Array, obs: Any, env_state: Any, params: Any) -> tuple[Any, Any]:
        return per_player(self.env, _flatten)(obs), env_state

    def _after(self, state: Any, outcome: Outcome, ended: jax.Array) -> Outcome:
        obs, state, reward, done, info = outcome
        flatten = per_player(self.env, _flatten)
        info = info | {"final_observation": flatten(info["final_observation"])}
        return flatten(obs), state, reward, done, info


def _flatten(obs: Any) -> jax.Array:
    return jnp.concatenate([jnp.ravel(part).astype(jnp.float32) for part in _parts(obs)])


def _parts(obs: Any) -> list[jax.Array]:
    """Arrays of an observation in the order of `_leaves`; a dataclass goes by sorted names too."""
    if dataclasses.is_dataclass(obs):
        obs = {item.name: getattr(obs, item.name) for item in dataclasses.fields(obs)}
    if isinstance(obs, Mapping):
        return [part for name in sorted(obs) for part in _parts(obs[name])]
    if isinstance(obs, tuple | list):
        return [part for item in obs for part in _parts(item)]
    return [obs]


def _leaves(space: Space) -> list[Space]:
    if isinstance(space, spaces.Dict):
        return [leaf for name in sorted(space.spaces) for leaf in _leaves(space.spaces[name])]
    if isinstance(space, spaces.Tuple):
        return [leaf for item in space.spaces for leaf in _leaves(item)]
    return [space]


def _limits(space: Any) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest value of a `Box` or `Discrete`, float32 of the space's shape."""
    if isinstance(space, spaces.Discrete):
        return np.zeros((), np.float32), np.full((), space.n - 1, np.float32)
    low, high = np.asarray(space.low, np.float32), np.asarray(space.high, np.float32)
    return np.broadcast_to(low, space.shape), np.broadcast_to(high, space.shape)


@struct.dataclass
class FrameStackState(WrapperState):
    """State of `FrameStack`.

    Attributes:
        frames: the observation, oldest frame first.
    """

    frames: Any


@dataclasses.dataclass(frozen=True)
class FrameStack(Wrapper):
    """The last few observations along a new first axis, oldest first.

    An episode begins with its first observation repeated. With two players the new axis comes
    after the players'.

    Attributes:
        num_frames: how many observations.
    """

    own_state: ClassVar[type[WrapperState] | None] = FrameStackState

    num_frames: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.num_frames, int) or self.num_frames < 1:
            raise ValueError(f"num_frames is {self.num_frames!r}; accepted is an integer from 1")

    def observation_space(self, params: Any = None) -> Space:
        return _stacked(self.env.observation_space(params), self.num_frames)

    def state_space(self, params: Any = None) -> Dict:
        frames = self.observation_space(params)
        if self.num_players == 2:
            frames = _stacked(frames, 2)
        return spaces.Dict({"env_state": self.env.state_space(params), "frames": frames})

    def get_obs(self, state: Any, params: Any = None, key: Any = None) -> Any:
        return state.frames

    def _begin(self, key: jax.Array, obs: Any, env_state: Any, params: Any) -> tuple[Any, Any]:
        frames = self._repeat(obs)
        return frames, FrameStackState(env_state, frames)

    def _after(self, state: Any, outcome: Outcome, ended: jax.Array) -> Outcome:
        obs, env_state, reward, done, info = outcome
        final = self._push(state.frames, info["final_observation"])
        pushed = self._push(state.frames, obs)
        ended = jnp.any(ended)
        frames = jax.tree.map(
            lambda new, old: jnp.where(ended, new, old), self._repeat(obs), pushed
        )
        info = info | {"final_observation": final}
        return frames, FrameStackState(env_state, frames), reward, done, info

    @property
    def _axis(self) -> int:
        return self.num_players - 1

    def _repeat(self, obs: Any) -> Any:
        axis, times = self._axis, self.num_frames
        return jax.tree.map(lambda x: jnp.stack([x] * times, axis), obs)

    def _push(self, frames: Any, obs: Any) -> Any:
        def push(old: jax.Array, new: jax.Array) -> jax.Array:
            kept = jax.lax.slice_in_dim(old, 1, None, axis=self._axis)
            return jnp.concatenate([kept, jnp.expand_dims(new, self._axis)], self._axis)

        return jax.tree.map(push, frames, obs)


def _stacked(space: Any, times: int) -> Space:
    """The space of `times` samples along a new first axis."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict({k: _stacked(item, times) for k, item in space.spaces.items()})
    if isinstance(space, spaces.Tuple):
        return spaces.Tuple([_stacked(item, times) for item in space.spaces])
    low, high = _limits(space)
    shape = (times, *space.shape)
    low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
    return spaces.Box(
        jnp.asarray(low, space.dtype), jnp.asarray(high, space.dtype), shape, space.dtype
    )
