"""What happens in a state, told by kinematics alone."""

from __future__ import annotations

import numpy as np

from halfcheetah_jax.dynamics import COMPILED
from twinenv.verify.pair import Rows

__all__ = ["EVENTS", "IMPOSSIBLE", "narrate"]

_TOUCHING = ("torso_touches", "back_leg_touches", "front_leg_touches", "feet_touch")
_LIMITS = ("at_lower_limit", "at_upper_limit", "clipped_control")
EVENTS = ("airborne", *_TOUCHING, *_LIMITS, "upside_down")
"""Events of a step, in the state that it begins in."""

IMPOSSIBLE = {("airborne", name): "who touches the floor is not in the air" for name in _TOUCHING}
"""Pairs of events that cannot be in one step."""


def narrate(state: Rows, actions: np.ndarray) -> Rows:
    """`bool[n]` by event name."""
    qpos = state["qpos"]
    touches = _heights(qpos) <= COMPILED["radius"]
    body = np.repeat(COMPILED["capsule_body"], 2)

    def any_of(*bodies: int) -> np.ndarray:
        return touches[:, np.isin(body, bodies)].any(axis=1)

    low, high = np.asarray(COMPILED["range"]).T
    return {
        "airborne": ~touches.any(axis=1),
        "torso_touches": any_of(0),
        "back_leg_touches": any_of(1, 2),
        "front_leg_touches": any_of(4, 5),
        "feet_touch": any_of(3) | any_of(6),
        "at_lower_limit": (qpos[:, 3:] < low).any(axis=1),
        "at_upper_limit": (qpos[:, 3:] > high).any(axis=1),
        "clipped_control": (np.abs(actions) > 1).any(axis=1),
        "upside_down": np.cos(qpos[:, 2]) < 0,
    }


def _heights(qpos: np.ndarray) -> np.ndarray:
    """Height `[n, 16]` of every end of a capsule."""
    heights, angles = [qpos[:, 1] + COMPILED["offset"][0][1]], [qpos[:, 2]]

    def above(body: int, point: list[float]) -> np.ndarray:
        return heights[body] - np.sin(angles[body]) * point[0] + np.cos(angles[body]) * point[1]

    for body in range(1, 7):
        parent = COMPILED["parent"][body]
        heights.append(above(parent, COMPILED["offset"][body]))
        angles.append(angles[parent] + qpos[:, body + 2])
    capsules = zip(COMPILED["capsule_body"], COMPILED["endpoints"], strict=True)
    return np.stack([above(body, end) for body, ends in capsules for end in ends], 1)
