"""MuJoCo's C simulation of Gymnasium's model, one state at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from halfcheetah_jax.data.generate import model_file

__all__ = ["Simulation", "silenced"]


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Without MuJoCo's warnings: the model asks for its total mass in a way that it is losing."""
    import mujoco

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


class Simulation:
    """The compiled model, perhaps with some numbers changed.

    Args:
        tolerance: of the solver; 0 makes it go on until nothing improves, which is the strict
            reference: with its default MuJoCo itself stops early now and then.
        changes: fields of `EnvParams` (`mass`, `damping`, `gear`, `friction`, `gravity`).
    """

    def __init__(self, tolerance: float = 0.0, changes: Mapping[str, Any] | None = None) -> None:
        import mujoco

        self._mujoco = mujoco
        with silenced():
            self.model = mujoco.MjModel.from_xml_path(str(model_file()))
        self.model.opt.tolerance = tolerance
        self.data = mujoco.MjData(self.model)
        self._change(changes or {})

    def _change(self, changes: Mapping[str, Any]) -> None:
        model = self.model
        for name, value in changes.items():
            if name == "mass":
                model.body_mass[1:] = value
            elif name == "damping":
                model.dof_damping[3:] = value
            elif name == "gear":
                model.actuator_gear[:, 0] = value
            elif name == "friction":
                model.geom_friction[:, 0] = value
            elif name == "gravity":
                model.opt.gravity[2] = -value
            else:
                raise ValueError(f"{name} is no number of MuJoCo's model")
        self._mujoco.mj_setConst(model, self.data)

    def load(
        self, qpos: np.ndarray, qvel: np.ndarray, warmstart: np.ndarray, ctrl: np.ndarray
    ) -> None:
        """Put the simulation into a state."""
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel
        self.data.qacc_warmstart[:], self.data.ctrl[:] = warmstart, ctrl

    def forward(self) -> dict[str, np.ndarray]:
        """What `mj_forward` finds: mass matrix, bias, contact rows, accelerations."""
        mujoco, model, data = self._mujoco, self.model, self.data
        mujoco.mj_forward(model, data)
        mass = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, mass)
        return {
            "mass": mass,
            "bias": data.qfrc_bias.copy(),
            "qacc": data.qacc.copy(),
            "efc_D": data.efc_D.copy(),
            "efc_aref": data.efc_aref.copy(),
            "efc_J": data.efc_J.reshape(-1, model.nv).copy(),
        }

    def step(self, steps: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Positions and speeds after some time steps."""
        self._mujoco.mj_step(self.model, self.data, nstep=steps)
        return self.data.qpos.copy(), self.data.qvel.copy()
