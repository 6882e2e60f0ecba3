"""The acceleration that minimises Gauss's cost under the constraints: exact Newton steps."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from halfcheetah_jax.dynamics.constraint import (
    Constraints,
    Residuals,
    forces,
    residuals,
    stiffness,
)
from halfcheetah_jax.dynamics.inertia import on_dofs, tree_matrix, with_limbs
from halfcheetah_jax.dynamics.linear import factor, multiply, solve
from halfcheetah_jax.dynamics.tree import THIGH, Bodies, Dofs, Limbs, Matrix
from twinenv.stages import stage

__all__ = ["MOST_ITERATIONS", "Problem", "minimise"]

MOST_ITERATIONS = 20
"""Newton steps at most; eleven have been the most that any state took."""


class Problem(NamedTuple):
    """`1/2 (a - a_s)' M (a - a_s) + sum 1/2 D min(0, J a - aref)^2`, to be minimised over `a`.

    Attributes:
        smooth: `M a_s`, all forces but those of constraints.
        mass: `M`.
        inertias: of the bodies, about the torso's origin.
        armature: of the limbs.
        hinges: of the limbs.
        constraints: of `constrain`.
    """

    smooth: Dofs
    mass: Matrix
    inertias: Bodies
    armature: Limbs
    hinges: Limbs
    constraints: Constraints


class _Search(NamedTuple):
    qacc: Dofs
    residual: Residuals
    converged: Any
    iteration: Any


def minimise(problem: Problem, start: Dofs, differentiable: bool = False) -> tuple[Dofs, Any]:
    """The minimum and whether it was reached (`mj_solNewton`).

    The cost is quadratic as long as no row changes sides, so a full Newton step from the right set
    of pushing rows is exact; it is taken until that set stays. No line search is needed here.

    Args:
        problem: what to minimise.
        start: where to begin; it decides how many steps it takes, not where they end.
        differentiable: end with a step that can be differentiated in reverse. At the minimum a
            Newton step does not depend on where it is taken from, so its derivative is that of the
            minimum.
    """
    if differentiable:
        found, converged = minimise(*jax.lax.stop_gradient((problem, start)))
        return _newton(problem, found, _residuals(problem, found)), converged
    residual = _residuals(problem, start)
    never = jnp.zeros_like(start.x, jnp.bool_)
    first = _Search(start, residual, never, jnp.zeros((), jnp.int32))

    def going(s: _Search) -> Any:
        return ~jnp.all(s.converged) & (s.iteration < MOST_ITERATIONS)

    def body(s: _Search) -> _Search:
        qacc = _kept(s.converged, s.qacc, _newton(problem, s.qacc, s.residual))
        residual = _residuals(problem, qacc)
        return _Search(qacc, residual, s.converged | _same(s.residual, residual), s.iteration + 1)

    last = jax.lax.while_loop(going, body, first)
    return last.qacc, last.converged


def _residuals(problem: Problem, qacc: Dofs) -> Residuals:
    return residuals(qacc, problem.hinges, problem.constraints)


def _newton(problem: Problem, qacc: Dofs, residual: Residuals) -> Dofs:
    """`a + H^-1 (M a_s + J' f - M a)` with `H = M + J' D J` over the rows that push.

    In float32 this is an order of magnitude closer than solving for `a` itself.
    """
    pushing, on_limbs = forces(residual, problem.constraints)
    touched, limited = stiffness(residual, problem.constraints)
    pushed = on_dofs(pushing, problem.hinges)
    gradient = _gradient(problem.smooth, pushed, on_limbs, multiply(problem.mass, qacc))
    hessian = tree_matrix(problem.inertias, touched, problem.hinges)
    change = solve(factor(with_limbs(hessian, problem.armature, limited)), gradient)
    return Dofs(*(a + c for a, c in zip(qacc, change, strict=True)))


@stage
def _gradient(smooth: Dofs, pushed: Dofs, on_limbs: Limbs, inertial: Dofs) -> Dofs:
    total = [s + p - i for s, p, i in zip(smooth, pushed, inertial, strict=True)]
    total[THIGH:] = [t + x for t, x in zip(total[THIGH:], on_limbs, strict=True)]
    return Dofs(*total)


@stage
def _kept(converged: Any, before: Dofs, after: Dofs) -> Dofs:
    """What has converged stays as it is, whatever else is in the batch."""
    return Dofs(*(jnp.where(converged, a, b) for a, b in zip(before, after, strict=True)))


@stage
def _same(before: Residuals, after: Residuals) -> Any:
    """Whether the same rows push."""
    own = before.contacts.torso[0].ndim - 1  # axes of the batch, behind those of ends and legs
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    kept = (jnp.all((a < 0) == (b < 0), axis=range(a.ndim - own)) for a, b in pairs)
    return functools.reduce(jnp.logical_and, kept)
