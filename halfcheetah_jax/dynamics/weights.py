"""What MuJoCo's compiler derives from a mechanism: how easily bodies and limbs are moved."""

from __future__ import annotations

from typing import Any

from halfcheetah_jax.dynamics.inertia import tree_matrix, with_limbs
from halfcheetah_jax.dynamics.kinematics import place
from halfcheetah_jax.dynamics.linear import factor, solve
from halfcheetah_jax.dynamics.planar import rigid
from halfcheetah_jax.dynamics.tree import NUM_BODIES, NUM_DOFS, PARENT

__all__ = ["inverse_weights"]


def inverse_weights(
    mass: tuple[Any, ...], moment: tuple[Any, ...], armature: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """`body_invweight0` (of translation) of each body and `dof_invweight0` of each limb.

    With all positions 0: a third of the trace of `J M^-1 J'` at a body's centre of mass, of whose
    three directions one is out of the plane; and the diagonal of `M^-1` (`mj_setConst`).
    """
    zero = mass[0] * 0
    places = place((zero,) * NUM_DOFS)
    inertias = tuple(map(rigid, mass, places.centres, moment))
    factors = factor(with_limbs(tree_matrix(inertias, places.hinges), armature))

    def quadratic(row: list[Any]) -> Any:
        moved = solve(factors, tuple(row))
        return sum(a * b for a, b in zip(row, moved, strict=True))

    bodies = []
    for body, (x, z) in enumerate(places.centres):
        along, up = [zero] * NUM_DOFS, [zero] * NUM_DOFS
        along[0], up[1] = zero + 1, zero + 1
        above = body
        while above >= 0:
            hinge = places.hinges[above]
            along[above + 2], up[above + 2] = z - hinge[1], hinge[0] - x
            above = PARENT[above]
        bodies.append((quadratic(along) + quadratic(up)) / 3)
    limbs = []
    for limb in range(NUM_BODIES - 1):
        row = [zero] * NUM_DOFS
        row[limb + 3] = zero + 1
        limbs.append(quadratic(row))
    return tuple(bodies), tuple(limbs)
