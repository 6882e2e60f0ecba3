"""Named situations of the HalfCheetah."""

from __future__ import annotations

from typing import Any

import numpy as np

from twinenv.verify.pair import Scenario

__all__ = ["SCENARIOS"]

_JOINTS = ("rootx", "rootz", "rooty", "bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot")
_STILL, _FULL, _MORE = (0.0,) * 6, (1.0,) * 6, (1.5, -1.5) * 3


def _on(name: str, *events: str, controls: tuple[float, ...] = _STILL, **joints: Any) -> Scenario:
    """A scenario at rest but for the joints named; `speed_NAME` sets a speed."""
    qpos, qvel = np.zeros(9), np.zeros(9)
    for joint, value in joints.items():
        rows = qvel if joint.startswith("speed_") else qpos
        rows[_JOINTS.index(joint.removeprefix("speed_"))] = value
    action = np.asarray(controls, np.float32)
    return Scenario(name, "v5", {"qpos": qpos, "qvel": qvel}, (action,), events)


SCENARIOS: tuple[Scenario, ...] = (
    _on("falling freely", "airborne", rootz=1.0),
    _on("falling and turning", "airborne", rootz=1.0, speed_rooty=6.0, speed_bthigh=-4.0),
    _on("standing", "feet_touch", rootz=-0.1),
    _on("pushing off", "feet_touch", rootz=-0.1, controls=_FULL),
    _on("sliding", "feet_touch", rootz=-0.1, speed_rootx=5.0),
    _on("controls beyond their range", "clipped_control", rootz=-0.1, controls=_MORE),
    _on("limb below its range", "at_lower_limit", "airborne", rootz=1.0, bthigh=-0.6),
    _on("limb above its range", "at_upper_limit", "airborne", rootz=1.0, fshin=1.0),
    _on(
        "limits on both sides", "at_lower_limit", "at_upper_limit", rootz=1.0, bfoot=-0.5, ffoot=0.6
    ),
    _on("on its back", "upside_down", "torso_touches", rootz=-0.6, rooty=3.1),
    _on("nose dive", "torso_touches", rootz=-0.2, rooty=1.4, speed_rootz=-4.0),
    _on("flat in the floor", "torso_touches", "feet_touch", rootz=-0.68, bthigh=0.9, fthigh=-0.9),
    _on("rolling fast", "upside_down", rootz=-0.4, rooty=2.5, speed_rooty=15.0),
    _on("landing at speed", "feet_touch", rootz=-0.12, speed_rootz=-8.0, speed_rootx=6.0),
    _on(
        "landing with a full turn behind",
        "feet_touch",
        rootz=-0.12,
        rooty=6.2831853,
        speed_rootz=-3,
    ),
)
