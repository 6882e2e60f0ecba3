"""Lengths of the mechanism, which no parameter changes, and the rest of the compiled model."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from halfcheetah_jax.dynamics.tree import Bodies, Limbs

__all__ = [
    "CENTRES",
    "COMPILED",
    "ENDS",
    "OFFSETS",
    "RADIUS",
    "RANGE",
    "TORSO_HEIGHT",
    "beside",
]

COMPILED: dict[str, Any] = json.loads(
    (resources.files("halfcheetah_jax") / "data" / "half_cheetah.json").read_text()
)
"""MuJoCo's compiled model, as `data/generate.py` wrote it."""

TORSO_HEIGHT: float = COMPILED["offset"][0][1]
"""Height of the torso's origin above the floor where the root's z is 0."""

RADIUS: float = COMPILED["radius"]
"""Radius of all capsules."""

OFFSETS = Limbs.of(np.asarray(COMPILED["offset"])[1:])
"""Origin of each limb in its parent, `[2 legs, (x, z)]`."""

CENTRES = Bodies.of(np.asarray(COMPILED["centre"]))
"""Centre of mass of each body, `[(x, z)]` of the torso and `[2 legs, (x, z)]` of the limbs."""

RANGE = Limbs.of(np.asarray(COMPILED["range"]))
"""Limits of each limb, `[2 legs, (lower, upper)]`."""

_CAPSULES = ([0, 1], [2, 5], [3, 6], [4, 7])  # of the torso, thighs, shins and feet
_TORSO, *_LIMBS = (np.asarray(COMPILED["endpoints"])[pair].swapaxes(0, 1) for pair in _CAPSULES)

ENDS = Bodies(_TORSO.reshape(4, 2), *_LIMBS)
"""Centres of the half-spheres that may touch the floor, `[4, (x, z)]` of the torso and
`[2 ends, 2 legs, (x, z)]` of limbs."""


def beside(values: Any, like: jax.Array) -> jax.Array:
    """Constants `[...]` with as many more axes as an array of the torso has."""
    values = np.asarray(values)
    return jnp.asarray(values, like.dtype).reshape(*values.shape, *[1] * like.ndim)
