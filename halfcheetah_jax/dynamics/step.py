"""One step of the simulation: `mj_step` with the Euler integrator."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from halfcheetah_jax.dynamics.articulated import factor, solve
from halfcheetah_jax.dynamics.constraint import constrain
from halfcheetah_jax.dynamics.kinematics import place
from halfcheetah_jax.dynamics.planar import rigid
from halfcheetah_jax.dynamics.smooth import bias, smooth
from halfcheetah_jax.dynamics.solver import Problem, minimise
from halfcheetah_jax.dynamics.tree import Bodies, Dofs, Limbs
from twinenv.stages import stage

__all__ = ["OWN_AXES", "Body", "Model", "problem_of", "step"]


class Model(NamedTuple):
    """The numbers of the mechanism, and what follows from them when it is built.

    They go with the trailing axes of the state: `[7]` with one state, `[7, 1]` or `[7, N]` with a
    state of `[9, N]`.

    Attributes:
        mass: `[7, ...]`, of the bodies.
        moment: `[7, ...]`, of inertia, about the bodies' centres of mass.
        stiffness: `[6, ...]`, of the limbs' springs.
        damping: `[6, ...]`, of the limbs.
        armature: `[6, ...]`, of the limbs.
        gear: `[6, ...]`, torque of each limb's motor at full control.
        friction: of the contacts with the floor.
        gravity: downwards.
        timestep: seconds.
        contact_weights: `[7, ...]`, see `constrain`.
        limit_weights: `[6, ...]`, see `constrain`.
    """

    mass: Any
    moment: Any
    stiffness: Any
    damping: Any
    armature: Any
    gear: Any
    friction: Any
    gravity: Any
    timestep: Any
    contact_weights: Any
    limit_weights: Any


OWN_AXES = Model(*[1] * 6, *[0] * 3, *[1] * 2)
"""How many axes each number of one mechanism has."""


class Body(NamedTuple):
    """The simulated state: rows `[9, ...]` in MuJoCo's order, or `Dofs`.

    Attributes:
        qpos: positions.
        qvel: speeds.
        qacc_warmstart: where the solver begins.
    """

    qpos: Any
    qvel: Any
    qacc_warmstart: Any


def step(
    body: Body, control: Limbs, model: Model, differentiable: bool = False
) -> tuple[Body, jax.Array]:
    """One time step.

    Args:
        body: the state before it, of `Dofs`.
        control: of the motors, clipped to [-1, 1] here.
        model: the mechanism.
        differentiable: see `minimise`.

    Returns:
        The state after it, and whether the solver converged.
    """
    problem = problem_of(body, control, model)
    qacc, converged = minimise(problem, body.qacc_warmstart, differentiable)
    return euler(body, qacc, problem, model), converged


def problem_of(body: Body, control: Limbs, model: Model) -> Problem:
    """What decides the accelerations (`mj_fwdPosition` to `mj_fwdAcceleration`)."""
    qpos, qvel = body.qpos, body.qvel
    places, armature = place(qpos), Limbs.of(model.armature)
    inertias = _inertias(Bodies.of(model.mass), Bodies.of(model.moment), places.centres)
    turning = bias(qvel, inertias, places.hinges, model.gravity)
    limbs = Limbs.of(model.gear), Limbs.of(model.stiffness), Limbs.of(model.damping)
    forces = smooth((qpos.limbs, qvel.limbs), control, turning, limbs)
    weights = Bodies.of(model.contact_weights), Limbs.of(model.limit_weights)
    constraints = constrain(places, qpos, qvel, model.friction, *weights)
    return Problem(forces, inertias, armature, places.hinges, constraints)


@stage
def _inertias(mass: Bodies, moment: Bodies, centres: Bodies) -> Bodies:
    """Inertias of the bodies about the torso's origin."""
    return Bodies(*map(rigid, mass, centres, moment))


def euler(body: Body, qacc: Dofs, problem: Problem, model: Model) -> Body:
    """`v += h a'`, `q += h v` with the dampers taken implicitly (`mj_Euler`).

    `(M + h B) a' = M a`, hence `a' = a - (M + h B)^-1 h B a`.
    """
    inertias = Bodies(*(inertia.general() for inertia in problem.inertias))
    damping = Limbs.of(model.damping)
    joints, torques = _damped(model.timestep, damping, problem.armature, qacc)
    factors = factor(inertias, joints, problem.hinges)
    excess, _ = solve(factors, torques, problem.hinges)
    return _integrated(body, qacc, excess, model.timestep)


@stage
def _damped(h: Any, damping: Limbs, armature: Limbs, qacc: Dofs) -> tuple[Limbs, Dofs]:
    rest = jnp.zeros_like(qacc.x)
    joints = Limbs(*(i + h * b for i, b in zip(armature, damping, strict=True)))
    torques = (h * b * a for b, a in zip(damping, qacc.limbs, strict=True))
    return joints, Dofs(rest, rest, rest, *torques)


@stage
def _integrated(body: Body, qacc: Dofs, excess: Dofs, h: Any) -> Body:
    rows = zip(body.qpos, body.qvel, qacc, excess, strict=True)
    after = [(q + h * (v + h * (a - e)), v + h * (a - e)) for q, v, a, e in rows]
    qpos, qvel = (Dofs(*part) for part in zip(*after, strict=True))
    return Body(qpos, qvel, qacc)
