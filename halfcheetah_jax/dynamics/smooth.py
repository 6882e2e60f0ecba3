"""Forces that do not depend on contacts and limits."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from halfcheetah_jax.dynamics.inertia import on_dofs
from halfcheetah_jax.dynamics.planar import Inertia, Point, Twist, cross_force, cross_motion, hinge
from halfcheetah_jax.dynamics.tree import NUM_BODIES, PARENT, Vector
from twinenv.stages import stage

__all__ = ["actuation", "bias", "passive"]


@stage
def bias(
    qvel: Vector, inertias: tuple[Inertia, ...], hinges: tuple[Point, ...], gravity: Any
) -> Vector:
    """`c(q, v)`: Coriolis, centrifugal and gravity forces (`mj_rne` without acceleration).

    The torso's origin may be taken to be at rest at this moment: a frame that moves at constant
    velocity changes no force.
    """
    zero = qvel[2] * 0
    speeds = [Twist(zero, zero, qvel[2])]
    rates = [Twist(zero, zero + gravity, zero)]  # as if the floor were pushed up
    for body in range(1, NUM_BODIES):
        turning, parent = hinge(hinges[body], qvel[body + 2]), PARENT[body]
        rates.append(rates[parent].plus(cross_motion(speeds[parent], turning)))
        speeds.append(speeds[parent].plus(turning))
    forces = (
        i.times(a).plus(cross_force(v, i.times(v)))
        for i, v, a in zip(inertias, speeds, rates, strict=True)
    )
    return on_dofs(tuple(forces), hinges)


def passive(qpos: Vector, qvel: Vector, stiffness: Vector, damping: Vector) -> Vector:
    """`-k q - b v` of the limbs' springs and dampers (`mj_passive`)."""
    limbs = zip(stiffness, qpos[3:], damping, qvel[3:], strict=True)
    zero = qpos[2] * 0
    return (zero, zero, zero, *(-k * q - b * v for k, q, b, v in limbs))


def actuation(control: Vector, gear: Vector) -> Vector:
    """`gear * clip(control, -1, 1)` on the limbs (`mj_fwdActuation`)."""
    zero = control[0] * 0
    torques = (g * jnp.clip(c, -1.0, 1.0) for g, c in zip(gear, control, strict=True))
    return (zero, zero, zero, *torques)
