"""The NumPy buffers that PufferLib's Pong reads and writes in place."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from pong_jax.params import EnvParams

__all__ = ["Buffers", "params_of"]

_OTHER = {"frameskip", "continuous", "stale_observation", "number", "small_call"}
_ONLY = {"stale_observation": True, "max_steps_in_episode": math.inf}


@dataclasses.dataclass(frozen=True)
class Buffers:
    """One row per environment.

    Attributes:
        observations: float32[n, 8].
        actions: int32[n], float32[n] for PufferLib 3.
        rewards: float32[n].
        terminals: uint8[n].
    """

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminals: np.ndarray

    @classmethod
    def allocate(cls, num_envs: int, action_dtype: Any = np.int32) -> Buffers:
        """Zeroed buffers for `num_envs` environments."""
        return cls(
            np.zeros((num_envs, 8), np.float32),
            np.zeros(num_envs, action_dtype),
            np.zeros(num_envs, np.float32),
            np.zeros(num_envs, np.uint8),
        )

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Observations, actions, rewards, terminals, in PufferLib's order."""
        return self.observations, self.actions, self.rewards, self.terminals

    def observed(self) -> dict[str, np.ndarray]:
        """Copy of what a reset shows."""
        return {"observation": self.observations.copy()}

    def output(self) -> dict[str, np.ndarray]:
        """Copy of what a step shows; `terminated` is bool."""
        return {
            "observation": self.observations.copy(),
            "reward": self.rewards.copy(),
            "terminated": self.terminals.astype(np.bool_),
        }


def params_of(**options: Any) -> EnvParams:
    """Parameters from the options of an environment that PufferLib can play, frameskip apart.

    Raises:
        ValueError: PufferLib has no such option, or not with this value.
    """
    params = {f.name for f in dataclasses.fields(EnvParams)}
    for name, value in options.items():
        if name not in params | _OTHER:
            raise ValueError(
                f"PufferLib's Pong has no option {name!r}; it has {sorted(params | _OTHER)}"
            )
        if value != _ONLY.get(name, value):
            raise ValueError(f"{name} is {value!r}; PufferLib's Pong only knows {_ONLY[name]!r}")
    return EnvParams(**{name: value for name, value in options.items() if name in params})
