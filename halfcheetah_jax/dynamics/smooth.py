"""Forces that do not depend on contacts and limits."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from halfcheetah_jax.dynamics.inertia import on_dofs
from halfcheetah_jax.dynamics.planar import (
    Force,
    Twist,
    cross_force,
    cross_motion,
    hinge,
    plus,
)
from halfcheetah_jax.dynamics.tree import Bodies, Dofs, Limbs
from twinenv.stages import stage

__all__ = ["bias", "smooth"]


def bias(qvel: Dofs, inertias: Bodies, hinges: Limbs, gravity: Any) -> Dofs:
    """`c(q, v)`: Coriolis, centrifugal and gravity forces (`mj_rne` without acceleration)."""
    return on_dofs(_inertial(qvel, inertias, hinges, gravity), hinges)


@stage
def _inertial(qvel: Dofs, inertias: Bodies, hinges: Limbs, gravity: Any) -> Bodies:
    """Forces that keep each body on its way if no degree of freedom accelerates.

    The torso's origin may be taken to be at rest at this moment: a frame that moves at constant
    velocity changes no force.
    """
    torso, w = inertias.torso, qvel.pitch
    forces = [Force(w * w * torso.zw, gravity * torso.mass - w * w * torso.xw, gravity * torso.zw)]
    speed, rate = Twist(0.0, 0.0, w), Twist(0.0, gravity, 0.0)  # as if the floor were pushed up
    for body, place, turn in zip(inertias[1:], hinges, qvel.limbs, strict=True):
        turning = hinge(place, turn)
        rate = plus(rate, cross_motion(speed, turning))
        speed = plus(speed, turning)
        forces.append(plus(body.times(rate), cross_force(speed, body.times(speed))))
    return Bodies(*forces)


@stage
def smooth(
    limbs: tuple[Limbs, Limbs], control: Limbs, turning: Dofs, model: tuple[Limbs, Limbs, Limbs]
) -> Dofs:
    """`qfrc_smooth`: actuation and passive forces less the bias.

    `gear * clip(control, -1, 1) - k q - b v` on the limbs (`mj_fwdActuation`, `mj_passive`).

    Args:
        limbs: positions and speeds of the limbs.
        control: of their motors.
        turning: of `bias`.
        model: gear, stiffness and damping of the limbs.
    """
    rows = zip(control, *limbs, *model, turning.limbs, strict=True)
    forces = (g * jnp.clip(u, -1.0, 1.0) - k * q - b * v - c for u, q, v, g, k, b, c in rows)
    return Dofs(-turning.x, -turning.z, -turning.pitch, *forces)
