"""MuJoCo's simulations side by side, as the verifier drives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from halfcheetah_jax.reference.simulation import Simulation
from twinenv.references import MissingReferenceError
from twinenv.verify.pair import Rows, Step

__all__ = ["MujocoBatch"]

_OPTIONS = ("forward_reward_weight", "ctrl_cost_weight")
_CHANGES = ("mass", "damping", "gear", "friction", "gravity")


class MujocoBatch:
    """Gymnasium's HalfCheetah-v5 on MuJoCo, without its time limit.

    Args:
        num_envs: simulations, which share one compiled model.
        frame_skip: time steps in a step.
        options: fields of `EnvParams`.
    """

    def __init__(self, num_envs: int, *, frame_skip: int = 5, **options: Any) -> None:
        self.num_envs, self._frame_skip = num_envs, frame_skip
        self._weights = {"forward_reward_weight": 1.0, "ctrl_cost_weight": 0.1}
        self._weights |= {name: options[name] for name in _OPTIONS if name in options}
        self._simulation = _simulation({n: options[n] for n in _CHANGES if n in options})
        self._state: Rows = {}

    def reset(self, seed: int) -> Step:
        """Episodes begun as Gymnasium begins them."""
        rng = np.random.default_rng(seed)
        self._state = {
            "qpos": rng.uniform(-0.1, 0.1, (self.num_envs, 9)),
            "qvel": 0.1 * rng.standard_normal((self.num_envs, 9)),
        }
        return Step(self._copy(), {"observation": self._observation()})

    def load(self, state: Rows) -> None:
        """Set positions and speeds."""
        self._state = {name: np.array(state[name], np.float64) for name in ("qpos", "qvel")}

    def step(self, actions: np.ndarray) -> Step:
        """Step all environments."""
        before = self._state["qpos"][:, 0].copy()
        simulation, zeros = self._simulation, np.zeros(9)
        for row, action in enumerate(np.asarray(actions, np.float64)):
            qpos, qvel = self._state["qpos"][row], self._state["qvel"][row]
            simulation.load(qpos, qvel, zeros, action)
            self._state["qpos"][row], self._state["qvel"][row] = simulation.step(self._frame_skip)
        seconds = self._frame_skip * simulation.model.opt.timestep
        forward = (self._state["qpos"][:, 0] - before) / seconds
        cost = np.sum(np.square(np.asarray(actions, np.float64)), axis=1)
        weights = self._weights
        reward = weights["forward_reward_weight"] * forward - weights["ctrl_cost_weight"] * cost
        output = {
            "observation": self._observation(),
            "reward": reward.astype(np.float32),
            "terminated": np.zeros(self.num_envs, np.bool_),
        }
        return Step(self._copy(), output)

    def close(self) -> None:
        """Nothing is held."""

    def _copy(self) -> Rows:
        return {name: rows.copy() for name, rows in self._state.items()}

    def _observation(self) -> np.ndarray:
        return np.concatenate([self._state["qpos"][:, 1:], self._state["qvel"]], axis=1)


def _simulation(changes: Mapping[str, Any]) -> Simulation:
    try:
        return Simulation(changes=changes)
    except ImportError as error:
        raise MissingReferenceError(f"{error}; run `pip install mujoco==4.0.0`") from error
