"""PufferLib's Pong as a Gymnasium vector environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pong_jax.reference.buffers import params_of
from pong_jax.reference.wheel import WheelPong

if TYPE_CHECKING:
    import gymnasium

__all__ = ["vector_env"]


def vector_env(num_envs: int, **options: Any) -> gymnasium.vector.VectorEnv:
    """The wheel's games with the reset in the step that ends one, as PufferLib does it.

    Args:
        num_envs: number of games.
        **options: `frameskip` and fields of `EnvParams`.

    Raises:
        MissingReferenceError: PufferLib is not installed.
        ValueError: PufferLib has no such option, or not with this value.
    """
    import gymnasium
    from gymnasium.vector import AutoresetMode, VectorEnv

    from pong_jax.limits import observation_limits

    low, high = map(np.asarray, observation_limits(params_of(**options)))

    class PufferPong(VectorEnv):
        metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 (Gymnasium's own form)

        def __init__(self) -> None:
            self.num_envs = num_envs
            self.single_observation_space = gymnasium.spaces.Box(low, high, (8,), np.float32)
            self.single_action_space = gymnasium.spaces.Discrete(3)
            batch = gymnasium.vector.utils.batch_space
            self.observation_space = batch(self.single_observation_space, num_envs)
            self.action_space = batch(self.single_action_space, num_envs)
            self._games = WheelPong(num_envs, **options)

        def reset(self, *, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict]:
            super().reset(seed=seed)
            seed = int(self.np_random.integers(2**31)) if seed is None else seed
            return self._games.reset(seed).output["observation"], {}

        def step(self, actions: np.ndarray) -> tuple[Any, ...]:
            out = self._games.step(actions).output
            point = np.where(np.abs(out["reward"]) == 1, out["reward"], 0).astype(np.int32)
            never = np.zeros(num_envs, np.bool_)
            # PufferLib keeps no observation of the game that ended; nothing is cut short, so none
            # is needed.
            info = {"point": point, "final_obs": out["observation"]}
            return out["observation"], out["reward"], out["terminated"], never, info

        def close_extras(self, **kwargs: Any) -> None:
            self._games.close()

    return PufferPong()
