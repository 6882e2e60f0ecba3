"""Linear systems of the tree, solved body by body without their matrix.

From the feet up, each limb is replaced by what it is for the body that it hangs on: an inertia less
what its hinge lets go, and a force. These are the eliminations of `mj_factorM` and `mj_solveM`, of
the same pivots, with the bodies' inertias in place of the matrix: fewer numbers.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from halfcheetah_jax.dynamics.planar import Force, Inertia, Point, Twist, hinge, plus
from halfcheetah_jax.dynamics.tree import Bodies, Dofs, Limbs, both
from twinenv.stages import stage

__all__ = ["solve"]


class _Link(NamedTuple):
    """A limb at its hinge.

    Attributes:
        reach: force that turning the hinge at unit acceleration makes.
        inverse: of the inertia about the hinge, 1/D.
        torque: about the hinge.
    """

    reach: Force
    inverse: Any
    torque: Any


def solve(
    inertias: Bodies, joints: Limbs, torques: Dofs, hinges: Limbs, forces: Bodies | None = None
) -> tuple[Dofs, Bodies]:
    """`x` of `(sum_b J_b' I_b J_b + diag(joints)) x = torques + sum_b J_b' f_b`, and each `J_b x`.

    Args:
        inertias: `Inertia` of each body.
        joints: what is added on the diagonal for each limb.
        torques: on the degrees of freedom.
        hinges: of the limbs.
        forces: `Force` on each body; None for none.
    """
    own_forces = forces or Bodies(None, None, None, None)
    inertia, force = inertias.foot, own_forces.foot
    links = []
    for limb in (2, 1, 0):
        reach = _reach(inertia, hinges[limb])
        hinged = _hinged(reach, hinges[limb], joints[limb], torques.limbs[limb], force)
        links.append(_Link(reach, *hinged))
        inertia, force = _loaded(
            (inertias[limb], own_forces[limb]), (inertia, force), links[-1], limb == 0
        )
    x = list(_solved(inertia, Force(*torques[:3]), force))
    moved = [Twist(*x)]
    for link, place in zip(reversed(links), hinges, strict=True):
        x.append(_turned(link, moved[-1]))
        moved.append(_along(moved[-1], place, x[-1]))
    return Dofs(*x), Bodies(*moved)


@stage
def _reach(inertia: Inertia, place: Point) -> Force:
    return inertia.on_hinge(place)


@stage
def _hinged(
    reach: Force, place: Point, joint: Any, torque: Any, force: Force | None
) -> tuple[Any, Any]:
    """1/D and the torque of a link."""
    pushed = torque if force is None else torque + force.on_hinge(place)
    return 1 / (reach.on_hinge(place) + joint), pushed


@functools.partial(stage, static_argnums=(3,))
def _loaded(
    own: tuple[Inertia, Force | None],
    limb: tuple[Inertia, Force | None],
    link: _Link,
    of_torso: bool,
) -> tuple[Inertia, Force]:
    """Inertia of a body and force on it with what hangs on it, of the torso with both legs."""
    (inertia, force), (x, z, w) = limb, link.reach
    freed = Inertia(
        *(a * b * link.inverse for a, b in ((x, x), (x, z), (z, z), (x, w), (z, w), (w, w)))
    )
    pushed = Force(*(-part * link.inverse * link.torque for part in link.reach))
    hung = Inertia(*(a - b for a, b in zip(inertia, freed, strict=True)))
    pushed = pushed if force is None else plus(force, pushed)
    hung, pushed = both((hung, pushed)) if of_torso else (hung, pushed)
    return plus(own[0], hung), pushed if own[1] is None else plus(own[1], pushed)


@stage
def _solved(i: Inertia, torque: Force, force: Force) -> tuple[Any, Any, Any]:
    """The torso's acceleration, by elimination of its pitch, then of z."""
    x, z, w = plus(torque, force)
    by_w = 1 / i.ww
    zz, xz, xx = i.zz - i.zw * by_w * i.zw, i.xz - i.zw * by_w * i.xw, i.xx - i.xw * by_w * i.xw
    z, x = z - i.zw * by_w * w, x - i.xw * by_w * w
    by_z = 1 / zz
    x = (x - xz * by_z * z) / (xx - xz * by_z * xz)
    z = by_z * (z - xz * x)
    return x, z, by_w * (w - i.xw * x - i.zw * z)


@stage
def _turned(link: _Link, carrier: Twist) -> Any:
    """Acceleration of a limb's hinge, from that of the body that it hangs on."""
    x, z, w = (part * rate for part, rate in zip(link.reach, carrier, strict=True))
    return link.inverse * (link.torque - (x + z + w))


@stage
def _along(carrier: Twist, place: Point, turn: Any) -> Twist:
    return plus(carrier, hinge(place, turn))
