"""One step of the simulation: `mj_step` with the Euler integrator."""

from __future__ import annotations

from typing import Any, NamedTuple

from halfcheetah_jax.dynamics.constraint import constrain
from halfcheetah_jax.dynamics.inertia import tree_matrix, with_limbs
from halfcheetah_jax.dynamics.kinematics import place
from halfcheetah_jax.dynamics.linear import factor, solve
from halfcheetah_jax.dynamics.planar import Inertia, rigid
from halfcheetah_jax.dynamics.smooth import actuation, bias, passive
from halfcheetah_jax.dynamics.solver import Problem, minimise
from halfcheetah_jax.dynamics.tree import Matrix, Vector
from twinenv.stages import stage

__all__ = ["Body", "Model", "problem_of", "step"]


class Model(NamedTuple):
    """The numbers of the mechanism, and what follows from them when it is built.

    Attributes:
        mass: of each body.
        moment: moment of inertia of each body about its centre of mass.
        stiffness: of each limb's spring.
        damping: of each limb.
        armature: of each limb.
        gear: torque of each limb's motor at full control.
        friction: of the contacts with the floor.
        gravity: downwards.
        timestep: seconds.
        contact_weights: see `constrain`.
        limit_weights: see `constrain`.
    """

    mass: tuple[Any, ...]
    moment: tuple[Any, ...]
    stiffness: tuple[Any, ...]
    damping: tuple[Any, ...]
    armature: tuple[Any, ...]
    gear: tuple[Any, ...]
    friction: Any
    gravity: Any
    timestep: Any
    contact_weights: tuple[Any, ...]
    limit_weights: tuple[Any, ...]


class Body(NamedTuple):
    """The simulated state, one array per degree of freedom.

    Attributes:
        qpos: positions.
        qvel: speeds.
        qacc_warmstart: where the solver begins.
    """

    qpos: Vector
    qvel: Vector
    qacc_warmstart: Vector


def step(
    body: Body, control: Vector, model: Model, differentiable: bool = False
) -> tuple[Body, Any]:
    """One time step.

    Args:
        body: the state before it.
        control: of the six motors, clipped to [-1, 1] here.
        model: the mechanism.
        differentiable: see `minimise`.

    Returns:
        The state after it, and whether the solver converged.
    """
    problem = problem_of(body, control, model)
    qacc, converged = minimise(problem, body.qacc_warmstart, differentiable)
    return euler(body, qacc, problem.mass, model), converged


def problem_of(body: Body, control: Vector, model: Model) -> Problem:
    """What decides the accelerations (`mj_fwdPosition` to `mj_fwdAcceleration`)."""
    places = place(body.qpos)
    inertias = _inertias(model.mass, model.moment, places.centres)
    mass = with_limbs(tree_matrix(inertias, places.hinges), model.armature)
    turning = bias(body.qvel, inertias, places.hinges, model.gravity)
    smooth = _smooth(body, control, turning, model)
    constraints = constrain(
        places, body.qpos, body.qvel, model.friction, model.contact_weights, model.limit_weights
    )
    return Problem(smooth, mass, inertias, model.armature, places.hinges, constraints)


@stage
def _inertias(mass: Vector, moment: Vector, centres: Any) -> tuple[Inertia, ...]:
    """Inertias of the bodies about the torso's origin."""
    return tuple(map(rigid, mass, centres, moment))


@stage
def _smooth(body: Body, control: Vector, turning: Vector, model: Model) -> Vector:
    """`qfrc_smooth`: actuation and passive forces less the bias."""
    passing = passive(body.qpos, body.qvel, model.stiffness, model.damping)
    parts = zip(actuation(control, model.gear), passing, turning, strict=True)
    return tuple(a + p - b for a, p, b in parts)


def euler(body: Body, qacc: Vector, mass: Matrix, model: Model) -> Body:
    """`v += h a'`, `q += h v` with the dampers taken implicitly (`mj_Euler`).

    `(M + h B) a' = M a`, hence `a' = a - (M + h B)^-1 h B a`.
    """
    h = model.timestep
    damped = tuple(h * b for b in model.damping)
    zero = qacc[0] * 0
    right = (zero, zero, zero, *(b * a for b, a in zip(damped, qacc[3:], strict=True)))
    excess = solve(factor(with_limbs(mass, damped)), right)
    return _integrated(body, qacc, excess, h)


@stage
def _integrated(body: Body, qacc: Vector, excess: Vector, h: Any) -> Body:
    qvel = tuple(v + h * (a - e) for v, a, e in zip(body.qvel, qacc, excess, strict=True))
    qpos = tuple(q + h * v for q, v in zip(body.qpos, qvel, strict=True))
    return Body(qpos, qvel, qacc)
