"""The mass matrix by composite bodies, and forces on bodies as forces on degrees of freedom."""

from __future__ import annotations

from typing import Any

from halfcheetah_jax.dynamics.planar import plus
from halfcheetah_jax.dynamics.tree import THIGH, Bodies, Dofs, Limbs, Matrix, both
from twinenv.stages import stage

__all__ = ["mass_matrix", "on_dofs", "tree_matrix", "with_limbs"]


@stage
def mass_matrix(inertias: Bodies, hinges: Limbs, armature: Limbs) -> Matrix:
    """`M` (`mj_crb`).

    Args:
        inertias: of the rigid bodies.
        hinges: of the limbs.
        armature: of the limbs.
    """
    whole = Bodies(*(body.general() for body in _gathered(inertias)))
    return with_limbs(_matrix(whole, hinges), armature)


@stage
def tree_matrix(inertias: Bodies, touched: Bodies, hinges: Limbs) -> Matrix:
    """`sum_b J_b' (I_b + T_b) J_b`, with `J_b` the Jacobian of each body.

    Args:
        inertias: of the rigid bodies.
        touched: `D j j'` of what touches each of them.
        hinges: of the limbs.
    """
    each = zip(inertias, touched, strict=True)
    return _matrix(_gathered(Bodies(*(plus(body.general(), t) for body, t in each))), hinges)


def _matrix(whole: Bodies, hinges: Limbs) -> Matrix:
    """From the inertia of each body with all that hangs on it."""
    torso = whole.torso
    rows = ((torso.xx,), (torso.xz, torso.zz), (torso.xw, torso.zw, torso.ww))
    matrix = {(i, j): value for i, row in enumerate(rows) for j, value in enumerate(row)}
    for limb, place in enumerate(hinges):
        force, dof = whole[limb + 1].on_hinge(place), limb + THIGH
        matrix |= {(dof, root): component for root, component in enumerate(force)}
        matrix |= {(dof, other + THIGH): force.on_hinge(hinges[other]) for other in range(limb + 1)}
    return matrix


def with_limbs(matrix: Matrix, *added: Any) -> Matrix:
    """The matrix with something added for each limb's degree of freedom."""
    out = dict(matrix)
    for limbs in added:
        for dof, value in enumerate(limbs, THIGH):
            out[dof, dof] = out[dof, dof] + value
    return out


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
