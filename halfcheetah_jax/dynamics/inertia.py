"""The mass matrix by composite bodies, and forces on bodies as forces on degrees of freedom."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from halfcheetah_jax.dynamics.planar import plus
from halfcheetah_jax.dynamics.tree import (
    FOOT,
    PITCH,
    SHIN,
    THIGH,
    Bodies,
    Dofs,
    Limbs,
    Matrix,
    X,
    Z,
    both,
)
from twinenv.stages import stage

__all__ = ["full_matrix", "mass_matrix", "on_dofs"]


@stage
def mass_matrix(inertias: Bodies, hinges: Limbs, armature: Limbs) -> Matrix:
    """`M = sum_b J_b' I_b J_b` and the armature, by composite bodies (`mj_crb`).

    A step never needs the matrix itself, see `articulated`.

    Args:
        inertias: `Rigid` of each body.
        hinges: of the limbs.
        armature: of the limbs.
    """
    whole = _gathered(inertias)
    torso = whole.torso.general()
    rows = ((torso.xx,), (torso.xz, torso.zz), (torso.xw, torso.zw, torso.ww))
    matrix = {(i, j): value for i, row in enumerate(rows) for j, value in enumerate(row)}
    for limb, place in enumerate(hinges):
        force, dof = whole[limb + 1].general().on_hinge(place), limb + THIGH
        matrix |= {(dof, root): component for root, component in enumerate(force)}
        for other in range(limb + 1):
            matrix[dof, other + THIGH] = force.on_hinge(hinges[other])
        matrix[dof, dof] = matrix[dof, dof] + armature[limb]
    return matrix


def full_matrix(matrix: Matrix) -> jax.Array:
    """`[9, 9]` in MuJoCo's order (`mj_fullM`) of the matrix of one state."""

    def entry(row: int, column: int) -> Any:
        (i, leg), (j, other) = sorted((_PLACES[row], _PLACES[column]), reverse=True)
        if j >= THIGH:
            return matrix[i, j][leg] if leg == other else jnp.zeros_like(matrix[i, j][0])
        return matrix[i, j][leg] if i >= THIGH else matrix[i, j]

    return jnp.stack([jnp.stack([entry(i, j) for j in range(9)]) for i in range(9)])


# Place in the chain, and leg, of each of MuJoCo's degrees of freedom.
_PLACES = (
    (X, 0),
    (Z, 0),
    (PITCH, 0),
    *((limb, leg) for leg in (0, 1) for limb in (THIGH, SHIN, FOOT)),
)


@stage
def on_dofs(each: Bodies, hinges: Limbs) -> Dofs:
    """`sum_b J_b' f_b`: what forces on the bodies do to the degrees of freedom."""
    whole = _gathered(each)
    limbs = (force.on_hinge(place) for force, place in zip(whole[1:], hinges, strict=True))
    return Dofs(*whole.torso, *limbs)


def _gathered(each: Bodies) -> Bodies:
    """Each body's with those of all bodies that hang on it."""
    shin = plus(each.shin, each.foot)
    thigh = plus(each.thigh, shin)
    return Bodies(plus(each.torso, both(thigh)), thigh, shin, each.foot)
