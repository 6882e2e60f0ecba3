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

__all__ = ["Factors", "factor", "solve"]


class Factors(NamedTuple):
    """What stays the same for every right-hand side.

    Attributes:
        reach: of each limb, the force that turning its hinge at unit acceleration makes.
        inverse: of each limb, of the inertia about its hinge: 1/D.
        torso: inertia of the torso with all that hangs on it.
    """

    reach: Limbs
    inverse: Limbs
    torso: Inertia


def factor(inertias: Bodies, joints: Limbs, hinges: Limbs) -> Factors:
    """Factors of `sum_b J_b' I_b J_b + diag(joints)`.

    Args:
        inertias: `Inertia` of each body.
        joints: what is added on the diagonal for each limb.
        hinges: of the limbs.
    """
    inertia = inertias.foot
    links: list[tuple[Force, Any]] = []
    for limb in (2, 1, 0):
        reach = _reach(inertia, hinges[limb])
        inverse = _inverse(reach, hinges[limb], joints[limb])
        inertia = _loaded(inertias[limb], inertia, reach, inverse, limb == 0)
        links.append((reach, inverse))
    reaches, inverses = zip(*reversed(links), strict=True)
    return Factors(Limbs(*reaches), Limbs(*inverses), inertia)


def solve(
    factors: Factors, torques: Dofs, hinges: Limbs, forces: Bodies | None = None
) -> tuple[Dofs, Bodies]:
    """`x` of `(sum_b J_b' I_b J_b + diag(joints)) x = torques + sum_b J_b' f_b`, and each `J_b x`.

    Args:
        factors: of the matrix.
        torques: on the degrees of freedom.
        hinges: of the limbs.
        forces: `Force` on each body; None for none.
    """
    own = forces or Bodies(None, None, None, None)
    links = list(zip(factors.reach, factors.inverse, strict=True))
    force, on_limbs = own.foot, list(torques.limbs)
    for limb in (2, 1, 0):
        on_limbs[limb] = _torque(on_limbs[limb], hinges[limb], force)
        force = _pushed(own[limb], force, links[limb], on_limbs[limb], limb == 0)
    x = list(_solved(factors.torso, Force(*torques[:3]), force))
    moved = [Twist(*x)]
    for place, link, torque in zip(hinges, links, on_limbs, strict=True):
        x.append(_turned(link, torque, moved[-1]))
        moved.append(_along(moved[-1], place, x[-1]))
    return Dofs(*x), Bodies(*moved)


@stage
def _reach(inertia: Inertia, place: Point) -> Force:
    return inertia.on_hinge(place)


@stage
def _inverse(reach: Force, place: Point, joint: Any) -> Any:
    return 1 / (reach.on_hinge(place) + joint)


@functools.partial(stage, static_argnums=(4,))
def _loaded(own: Inertia, limb: Inertia, reach: Force, inverse: Any, of_torso: bool) -> Inertia:
    """Inertia of a body with what hangs on it; both legs hang on the torso."""
    x, z, w = reach
    pairs = ((x, x), (x, z), (z, z), (x, w), (z, w), (w, w))
    hung = Inertia(*(i - a * b * inverse for i, (a, b) in zip(limb, pairs, strict=True)))
    return plus(own, both(hung) if of_torso else hung)


@stage
def _torque(torque: Any, place: Point, force: Force | None) -> Any:
    """About a limb's hinge, with what pushes the limb."""
    return torque if force is None else torque + force.on_hinge(place)


@functools.partial(stage, static_argnums=(4,))
def _pushed(
    own: Force | None, limb: Force | None, link: tuple[Force, Any], torque: Any, of_torso: bool
) -> Force:
    """Force on a body with what hangs on it."""
    reach, inverse = link
    hung = Force(*(-part * inverse * torque for part in reach))
    hung = hung if limb is None else plus(limb, hung)
    hung = both(hung) if of_torso else hung
    return hung if own is None else plus(own, hung)


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
def _turned(link: tuple[Force, Any], torque: Any, carrier: Twist) -> Any:
    """Acceleration of a limb's hinge, from that of the body that it hangs on."""
    reach, inverse = link
    x, z, w = (part * rate for part, rate in zip(reach, carrier, strict=True))
    return inverse * (torque - (x + z + w))


@stage
def _along(carrier: Twist, place: Point, turn: Any) -> Twist:
    return plus(carrier, hinge(place, turn))
