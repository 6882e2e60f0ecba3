"""Lengths of the mechanism, which no parameter changes, and the rest of the compiled model."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

__all__ = [
    "CENTRES",
    "COMPILED",
    "ENDPOINTS",
    "ENDS_OF",
    "END_BODIES",
    "OFFSETS",
    "RADIUS",
    "TORSO_HEIGHT",
]

COMPILED: dict[str, Any] = json.loads(
    (resources.files("halfcheetah_jax") / "data" / "half_cheetah.json").read_text()
)
"""MuJoCo's compiled model, as `data/generate.py` wrote it."""

TORSO_HEIGHT: float = COMPILED["offset"][0][1]
"""Height of the torso's origin above the floor where the root's z is 0."""

OFFSETS = tuple(map(tuple, COMPILED["offset"]))
"""Origin of each body in its parent."""

CENTRES = tuple(map(tuple, COMPILED["centre"]))
"""Centre of mass of each body."""

RADIUS: float = COMPILED["radius"]
"""Radius of all capsules."""

ENDPOINTS = tuple(
    (body, tuple(point))
    for body, ends in zip(COMPILED["capsule_body"], COMPILED["endpoints"], strict=True)
    for point in ends
)
"""Body and place of each of the sixteen half-spheres that may touch the floor."""

END_BODIES = tuple(body for body, _ in ENDPOINTS)
"""Body of each of them."""

ENDS_OF = tuple(
    tuple(end for end, body in enumerate(END_BODIES) if body == wanted) for wanted in range(7)
)
"""Those of each body."""
