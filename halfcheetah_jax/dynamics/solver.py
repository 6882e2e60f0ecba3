"""The acceleration that minimises Gauss's cost under the constraints: exact Newton steps."""

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from halfcheetah_jax.dynamics.articulated import Factors, factor, solve
from halfcheetah_jax.dynamics.constraint import (
    Constraints,
    Residuals,
    forces,
    residuals,
    stiffness,
)
from halfcheetah_jax.dynamics.kinematics import twists
from halfcheetah_jax.dynamics.planar import Force, Inertia, Rigid, Twist
from halfcheetah_jax.dynamics.tree import Bodies, Dofs, Limbs, both
from twinenv.stages import stage

__all__ = ["MOST_ITERATIONS", "Problem", "minimise"]

MOST_ITERATIONS = 20
"""Newton steps at most; eleven have been the most that any state took."""

_WHOLE_STEPS = 8


class Problem(NamedTuple):
    """`1/2 (a - a_s)' M (a - a_s) + sum 1/2 D min(0, J a - aref)^2`, to be minimised over `a`.

    Attributes:
        smooth: `M a_s`, all forces but those of constraints.
        inertias: `Rigid` of each body, about the torso's origin.
        armature: of the limbs.
        hinges: of the limbs.
        constraints: of `constrain`.
    """

    smooth: Dofs
    inertias: Bodies
    armature: Limbs
    hinges: Limbs
    constraints: Constraints


class _Point(NamedTuple):
    """Where the search is.

    Attributes:
        qacc: acceleration.
        rates: `J qacc` of the bodies.
        residual: of the rows.
    """

    qacc: Dofs
    rates: Bodies
    residual: Residuals


class _Search(NamedTuple):
    """A point, the factors that led to it, whether it is the minimum, and the steps so far."""

    at: _Point
    factors: Factors
    converged: Any
    iteration: Any


def minimise(problem: Problem, start: Dofs, differentiable: bool = False) -> tuple[Dofs, Any]:
    """The minimum and whether it was reached (`mj_solNewton`).

    The cost is quadratic as long as no row changes sides, so a full Newton step from the right set
    of pushing rows is exact; it is taken until that set stays. In rare states full steps go round
    in a circle, so after some of them every other step is a half one.

    Args:
        problem: what to minimise.
        start: where to begin; it decides how many steps it takes, not where they end.
        differentiable: end with a step that can be differentiated in reverse. At the minimum a
            Newton step does not depend on where it is taken from, so its derivative is that of the
            minimum.
    """
    if differentiable:
        found, converged = minimise(*jax.lax.stop_gradient((problem, start)))
        at = _at(problem, found)
        return _step(problem, at, _factors(problem, at.residual), 1.0)[0], converged

    def going(search: _Search) -> Any:
        return ~jnp.all(search.converged) & (search.iteration < MOST_ITERATIONS)

    def body(search: _Search) -> _Search:
        before, _, converged, iteration = search
        whole = (iteration < _WHOLE_STEPS) | (iteration % 2 == 1)
        factors = _factors(problem, before.residual)
        share = _share(converged, whole, start.x.dtype)
        qacc, rates = _step(problem, before, factors, share)
        after = _Point(qacc, rates, residuals(qacc, rates, problem.constraints))
        same = whole & _same(before.residual, after.residual)
        return _Search(after, factors, converged | same, iteration + 1)

    at = _at(problem, start)
    shapes = jax.eval_shape(_factors, problem, at.residual)
    none = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    never = jnp.zeros_like(start.x, jnp.bool_)
    first = _Search(at, none, never, jnp.zeros((), jnp.int32))
    last = jax.lax.while_loop(going, body, first)
    # Once more with the same factors: what rounding has left of a large change goes with it.
    return _step(problem, last.at, last.factors, 1.0)[0], last.converged


def _at(problem: Problem, qacc: Dofs) -> _Point:
    rates = twists(qacc, problem.hinges)
    return _Point(qacc, rates, residuals(qacc, rates, problem.constraints))


def _factors(problem: Problem, residual: Residuals) -> Factors:
    """Of `H = M + J' D J` over the rows that push."""
    touched, limited = stiffness(residual, problem.constraints)
    whole = Bodies(*map(_touched, problem.inertias, touched))
    return factor(whole, _joints(problem.armature, limited), problem.hinges)


def _step(problem: Problem, at: _Point, factors: Factors, share: Any) -> tuple[Dofs, Bodies]:
    """`a + share H^-1 (M a_s + J' f - M a)`, and the bodies' rates.

    In float32 this is an order of magnitude closer than solving for `a` itself.
    """
    pushing, on_limbs = forces(at.residual, problem.constraints)
    left = Bodies(*map(_left, pushing, problem.inertias, at.rates))
    torques = _torques(problem.smooth, on_limbs, problem.armature, at.qacc.limbs)
    changes = solve(factors, torques, problem.hinges, left)
    return _changed(share, (at.qacc, at.rates), changes)


@stage
def _left(pushing: Force, inertia: Rigid, rate: Twist) -> Force:
    """Force on a body that its acceleration does not use up: `sum f - I a` over its ends."""
    return Force(*(_sum(f) - used for f, used in zip(pushing, inertia.times(rate), strict=True)))


@stage
def _touched(inertia: Rigid, touched: Inertia) -> Inertia:
    """Inertia of a body with the stiffness at its ends."""
    return Inertia(*(own + _sum(t) for own, t in zip(inertia.general(), touched, strict=True)))


def _sum(ends: Any) -> Any:
    return functools.reduce(operator.add, ends)


@stage
def _torques(smooth: Dofs, on_limbs: Limbs, armature: Limbs, qacc: Limbs) -> Dofs:
    rows = zip(smooth.limbs, on_limbs, armature, qacc, strict=True)
    return Dofs(*smooth[:3], *(s + t - i * a for s, t, i, a in rows))


@stage
def _joints(armature: Limbs, added: Limbs) -> Limbs:
    return Limbs(*map(operator.add, armature, added))


@functools.partial(stage, static_argnums=(2,))
def _share(converged: Any, whole: Any, number: Any) -> Any:
    """How much of a step is taken: what has converged stays, whatever else is in the batch."""
    return jnp.where(converged, 0.0, jnp.where(whole, 1.0, 0.5)).astype(number)


@stage
def _changed(share: Any, before: Any, change: Any) -> Any:
    # A product, because XLA:CPU would store what is selected lane by lane.
    return jax.tree.map(lambda a, b: a + share * b, before, change)


def _same(before: Residuals, after: Residuals) -> Any:
    """Whether the same rows push."""
    bodies = map(_turned, before.contacts, after.contacts)
    return _none(Bodies(*bodies), _limits_turned(before.limits, after.limits))


@stage
def _turned(before: tuple[Any, ...], after: tuple[Any, ...]) -> Any:
    """How many rows of a body's contacts have changed sides."""
    return _sum(sum(map(_changes, before, after)))


@stage
def _limits_turned(before: Limbs, after: Limbs) -> Any:
    return sum(map(_changes, before, after))


def _changes(before: Any, after: Any) -> Any:
    # Counted as floats: XLA:CPU reduces arrays of bools lane by lane.
    return jnp.where((before < 0) != (after < 0), 1.0, 0.0).astype(after.dtype)


@stage
def _none(contacts: Bodies, limits: Any) -> Any:
    return contacts.torso + both(sum(contacts[1:], limits)) == 0
