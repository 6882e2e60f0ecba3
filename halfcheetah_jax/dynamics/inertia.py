"""The mass matrix by composite bodies, and forces on bodies as forces on degrees of freedom."""

from __future__ import annotations

from halfcheetah_jax.dynamics.planar import plus
from halfcheetah_jax.dynamics.tree import THIGH, Bodies, Dofs, Limbs, Matrix, both
from twinenv.stages import stage

__all__ = ["mass_matrix", "on_dofs"]


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
