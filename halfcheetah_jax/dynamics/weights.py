"""What MuJoCo's compiler derives from a mechanism: how easily bodies and limbs are moved."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from halfcheetah_jax.dynamics.shape import COMPILED
from halfcheetah_jax.dynamics.tree import NUM_BODIES, NUM_DOFS

__all__ = ["inverse_weights"]


def inverse_weights(mass: Any, moment: Any, armature: Any) -> tuple[Any, Any]:
    """`body_invweight0` (of translation) `[7]` and `dof_invweight0` of the limbs `[6]`.

    With all positions 0: a third of the trace of `J M^-1 J'` at a body's centre of mass, of whose
    three directions one is out of the plane; and the diagonal of `M^-1` (`mj_setConst`).

    Args:
        mass: `[7]`, of the bodies.
        moment: `[7]`, moments of inertia about their centres of mass.
        armature: `[6]`, of the limbs.
    """
    rows = jnp.asarray(_JACOBIANS, mass.dtype)
    heavy = jnp.stack([mass, mass, moment], axis=1)
    limbs = jnp.concatenate([jnp.zeros(3, mass.dtype), armature])
    matrix = jnp.einsum("bri,br,brj->ij", rows, heavy, rows) + jnp.diag(limbs)
    inverse = jnp.linalg.inv(matrix)
    moved = jnp.einsum("bri,ij,brj->b", rows[:, :2], inverse, rows[:, :2])
    return moved / 3, jnp.diagonal(inverse)[3:]


def _jacobians() -> np.ndarray:
    """`[7, 3, 9]`: x, z and turning of each body's centre of mass by each degree of freedom."""
    parent, offset, centre = (np.asarray(COMPILED[n]) for n in ("parent", "offset", "centre"))
    hinges = np.zeros((NUM_BODIES, 2))
    found = np.zeros((NUM_BODIES, 3, NUM_DOFS))
    found[:, 0, 0] = found[:, 1, 1] = 1.0
    for body in range(NUM_BODIES):
        if body:
            hinges[body] = hinges[parent[body]] + offset[body]
        above = body
        while above >= 0:
            x, z = hinges[body] + centre[body] - hinges[above]
            found[body, :, above + 2] = z, -x, 1.0
            above = parent[above]
    return found


_JACOBIANS = _jacobians()
