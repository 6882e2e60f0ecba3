"""MuJoCo's own pictures of a trajectory; needs the package `mujoco` and OpenGL."""

from __future__ import annotations

from typing import Any

import numpy as np

from twinenv.references import MissingReferenceError

__all__ = ["render_trajectory"]

_CAMERA = "track"  # the model's own, which Gymnasium looks through


def render_trajectory(qpos: np.ndarray, height: int = 480, width: int = 480) -> np.ndarray:
    """Pictures `uint8[T, height, width, 3]` as Gymnasium's environment shows them.

    Args:
        qpos: positions `[T, 9]`, such as those of the states of a rollout.
        height: in pixels.
        width: in pixels.

    Raises:
        ValueError: positions of another shape, none, or some that are not finite.
        MissingReferenceError: MuJoCo is not installed, or finds no OpenGL to draw with.
    """
    qpos = np.asarray(qpos, np.float64)
    if qpos.shape != (max(len(qpos), 1), 9) or not np.isfinite(qpos).all():
        raise ValueError(
            f"qpos is {list(qpos.shape)}; accepted are finite positions [T, 9], one row a picture"
        )
    simulation, renderer = _renderer(height, width)
    try:
        return np.stack([_picture(simulation, renderer, row) for row in qpos])
    finally:
        renderer.close()


def _renderer(height: int, width: int) -> tuple[Any, Any]:
    try:
        import mujoco

        from halfcheetah_jax.reference.simulation import Simulation

        simulation = Simulation()
    except ImportError as error:
        raise MissingReferenceError(f"{error}; run `pip install mujoco==4.0.0`") from error
    simulation.model.vis.global_.offheight = height
    simulation.model.vis.global_.offwidth = width
    try:
        return simulation, mujoco.Renderer(simulation.model, height, width)
    except Exception as error:  # of many kinds, one for each way to OpenGL
        raise MissingReferenceError(
            f"MuJoCo cannot draw here ({error}); install EGL or OSMesa, and set MUJOCO_GL=egl or "
            "MUJOCO_GL=osmesa before MuJoCo is imported"
        ) from error


def _picture(simulation: Any, renderer: Any, qpos: np.ndarray) -> np.ndarray:
    simulation.load(qpos, np.zeros(9), np.zeros(9), np.zeros(6))
    simulation.forward()
    renderer.update_scene(simulation.data, _CAMERA)
    return np.array(renderer.render())
