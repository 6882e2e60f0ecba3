"""The mass matrix by composite bodies, and forces on bodies as forces on degrees of freedom."""

from __future__ import annotations

from typing import Any

from halfcheetah_jax.dynamics.planar import Force, Inertia, Point
from halfcheetah_jax.dynamics.tree import ANCESTORS, NUM_BODIES, PARENT, Matrix, Vector
from twinenv.stages import stage

__all__ = ["on_dofs", "tree_matrix", "with_limbs"]


@stage
def tree_matrix(each: tuple[Inertia, ...], hinges: tuple[Point, ...]) -> Matrix:
    """`sum_b J_b' I_b J_b`, with `J_b` the Jacobian of each body (`mj_crb`).

    Args:
        each: inertia of each body, perhaps with the `D j j'` of what touches it.
        hinges: of each body.
    """
    whole = _gathered(each)
    torso, matrix = whole[0], {}
    matrix[0, 0] = torso.xx
    matrix[1, 0], matrix[1, 1] = torso.xz, torso.zz
    matrix[2, 0], matrix[2, 1], matrix[2, 2] = torso.xw, torso.zw, torso.ww
    for body in range(1, NUM_BODIES):
        dof, force = body + 2, whole[body].on_hinge(hinges[body])
        matrix[dof, dof] = force.on_hinge(hinges[body])
        matrix[dof, 0], matrix[dof, 1], matrix[dof, 2] = force
        for other in ANCESTORS[dof][3:]:
            matrix[dof, other] = force.on_hinge(hinges[other - 2])
    return matrix


def with_limbs(matrix: Matrix, *added: Any) -> Matrix:
    """The matrix with something added for each limb's degree of freedom."""
    out = dict(matrix)
    for limbs in added:
        for limb, value in enumerate(limbs):
            out[limb + 3, limb + 3] = out[limb + 3, limb + 3] + value
    return out


@stage
def on_dofs(each: tuple[Force, ...], hinges: tuple[Point, ...]) -> Vector:
    """`sum_b J_b' f_b`: what forces on the bodies do to the degrees of freedom."""
    whole = _gathered(each)
    limbs = (whole[body].on_hinge(hinges[body]) for body in range(1, NUM_BODIES))
    return (*whole[0], *limbs)


def _gathered(each: tuple[Any, ...]) -> list[Any]:
    """Each body's with those of all bodies that hang on it."""
    whole = list(each)
    for body in range(NUM_BODIES - 1, 0, -1):
        whole[PARENT[body]] = whole[PARENT[body]].plus(whole[body])
    return whole
