"""Spaces and values of gymnax as those of Gymnasium."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from gymnasium import spaces as gym_spaces

from twinenv import spaces

__all__ = ["to_gymnasium", "to_numpy"]


def to_gymnasium(space: Any) -> gym_spaces.Space:
    """The Gymnasium space that holds the same values.

    Gymnasium has no number that is always the same; the upper limit of such a component becomes 1
    more than the lower one.

    Raises:
        TypeError: it is none of gymnax's `Box`, `Discrete`, `Dict` and `Tuple`.
    """
    if isinstance(space, spaces.Discrete):
        return gym_spaces.Discrete(space.n)
    if isinstance(space, spaces.Dict):
        return gym_spaces.Dict({k: to_gymnasium(item) for k, item in space.spaces.items()})
    if isinstance(space, spaces.Tuple):
        return gym_spaces.Tuple([to_gymnasium(item) for item in space.spaces])
    if not isinstance(space, spaces.Box):
        raise TypeError(
            f"got a {type(space).__name__}; accepted are gymnax's Box, Discrete, Dict and Tuple"
        )
    dtype = np.dtype(space.dtype)
    low = np.broadcast_to(np.asarray(space.low, dtype), space.shape)
    high = np.broadcast_to(np.asarray(space.high, dtype), space.shape)
    high = np.where(high > low, high, low + np.ones((), dtype))
    return gym_spaces.Box(low, high, tuple(space.shape), dtype.type)


def to_numpy(space: gym_spaces.Space, value: Any) -> Any:
    """A value of the space (or a batch of them) as writable host arrays, `Discrete` as int64."""
    value = jax.device_get(value)
    if isinstance(space, gym_spaces.Dict):
        get = value.__getitem__ if isinstance(value, dict) else lambda name: getattr(value, name)
        return {name: to_numpy(item, get(name)) for name, item in space.spaces.items()}
    if isinstance(space, gym_spaces.Tuple):
        return tuple(to_numpy(item, part) for item, part in zip(space.spaces, value, strict=True))
    if isinstance(space, gym_spaces.Discrete):
        return np.asarray(value, np.int64)[()]
    return np.array(value)
