"""Contacts with the floor and joint limits: stiffness, target acceleration, and their rows.

A contact has the rows `n + mu t`, `n - mu t`, `n` and `n` of a pyramid whose second tangent is out
of the plane. The last two are equal, so they are one row here, with twice the stiffness.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from halfcheetah_jax.dynamics.kinematics import Places, twists
from halfcheetah_jax.dynamics.planar import Force, Inertia, Point, Twist
from halfcheetah_jax.dynamics.shape import COMPILED, RADIUS, RANGE, beside
from halfcheetah_jax.dynamics.tree import Bodies, Dofs, Limbs
from twinenv.stages import stage

__all__ = ["Constraints", "Residuals", "constrain", "forces", "residuals", "stiffness"]

_TIME, _RATIO = COMPILED["solref"]
_LEAST, _MOST, _WIDTH, _, _ = COMPILED["solimp_contact"]
_LIMIT_WIDTH = COMPILED["solimp_limit"][2]
_LEAST = max(_LEAST, 1e-4)  # mjMINIMP
_DAMPING = 2 / (_MOST * _TIME)
_NEVER = -1e30  # a target acceleration that nothing falls short of: the row does not exist
_SPRING = 1 / (_MOST * _TIME * _RATIO) ** 2


class Contacts(NamedTuple):
    """All contacts that a body may have, shaped as its ends are in `Places`.

    Attributes:
        x: where each contact is, relative to the torso's origin.
        z: the same.
        d: stiffness of the sloping rows; the normal row has twice that.
        normal: target acceleration along the normal, `-B v_n - K imp dist`; -1e30 if the contact
            does not exist in this state.
        slope: what the sloping rows' target has on top, `-B mu v_t`, with either sign.
    """

    x: Any
    z: Any
    d: Any
    normal: Any
    slope: Any


class Limits(NamedTuple):
    """The nearer limit of one limb of both legs, `[2, ...]` each.

    Attributes:
        d: stiffness.
        sign: 1 at the lower limit, -1 at the upper.
        target: acceleration away from the limit; -1e30 if it is not reached.
    """

    d: Any
    sign: Any
    target: Any


class Constraints(NamedTuple):
    """All rows that may push.

    Attributes:
        contacts: `Contacts` of each body.
        limits: `Limits` of each limb.
        friction: `mu`.
    """

    contacts: Bodies
    limits: Limbs
    friction: Any


def constrain(
    places: Places,
    qpos: Dofs,
    qvel: Dofs,
    friction: Any,
    contact_weights: Bodies,
    limit_weights: Limbs,
) -> Constraints:
    """`efc_D` and `efc_aref` of all rows (`mj_makeConstraint`, `mj_referenceConstraint`).

    Args:
        places: of `place`.
        qpos: positions.
        qvel: speeds.
        friction: `mu`.
        contact_weights: `1 / (2 mu^2 (1 + mu^2) w)` of each body, `w` its inverse weight.
        limit_weights: inverse of the inverse weight of each limb's degree of freedom.
    """
    speeds = twists(qvel, places.hinges)
    bodies = zip(places.ends, speeds, contact_weights, strict=True)
    contacts = (_contacts(places.height, *body, friction) for body in bodies)
    limbs = zip(qpos.limbs, qvel.limbs, limit_weights, map(_range, RANGE), strict=True)
    return Constraints(Bodies(*contacts), Limbs(*(_limits(*limb) for limb in limbs)), friction)


@stage
def _contacts(height: Any, ends: Point, speed: Twist, weight: Any, friction: Any) -> Contacts:
    gap = height + ends[1] - RADIUS
    impedance = _contact_impedance(gap)
    x, z = ends[0], ends[1] - RADIUS - gap / 2
    along, up = _velocity(speed, x, z)
    stiff = impedance / (1 - impedance) * weight
    normal = jnp.where(gap <= 0, -_DAMPING * up - _SPRING * impedance * gap, _NEVER)
    return Contacts(x, z, stiff, normal, -_DAMPING * friction * along)


@stage
def _contact_impedance(gap: Any) -> Any:
    return _impedance(gap, _WIDTH)


@functools.partial(stage, static_argnums=(3,))
def _limits(q: Any, v: Any, weight: Any, limits: tuple[tuple[float, float], ...]) -> Limits:
    """The limit that is nearer."""
    low, high = (beside(side, q[0]) for side in zip(*limits, strict=True))
    above = q - low > high - q
    sign = jnp.where(above, -1.0, 1.0).astype(q.dtype)
    gap = jnp.where(above, high - q, q - low)
    impedance = _impedance(gap, _LIMIT_WIDTH)
    stiff = impedance / (1 - impedance) * weight
    target = jnp.where(gap < 0, -_DAMPING * sign * v - _SPRING * impedance * gap, _NEVER)
    return Limits(stiff, sign, target)


def _range(limits: np.ndarray) -> tuple[tuple[float, float], ...]:
    return tuple(map(tuple, limits.tolist()))


def _impedance(gap: Any, width: float) -> Any:
    """`imp` of solimp, whose power is 2 and whose middle is half."""
    depth = jnp.clip(jnp.abs(gap) * (1 / width), 0.0, 1.0)
    rest = 1 - depth
    curve = jnp.where(depth <= 0.5, 2 * depth * depth, 1 - 2 * rest * rest)
    return _LEAST + curve * (_MOST - _LEAST)


def _velocity(twist: Twist, x: Any, z: Any) -> Point:
    """Velocity of a body's points."""
    return twist.x + twist.w * z, twist.z - twist.w * x


class Residuals(NamedTuple):
    """`J a - aref` of all rows: where negative, a row pushes.

    Attributes:
        contacts: rows `(n + mu t, n - mu t, n)` of each body's contacts.
        limits: of each limb.
    """

    contacts: Bodies
    limits: Limbs


def residuals(qacc: Dofs, rates: Bodies, c: Constraints) -> Residuals:
    """Residuals under an acceleration, with the bodies' rates `J qacc`."""
    bodies = zip(rates, c.contacts, strict=True)
    contacts = (_contact_residuals(rate, contacts, c.friction) for rate, contacts in bodies)
    return Residuals(Bodies(*contacts), _limit_residuals(qacc.limbs, c.limits))


@stage
def _contact_residuals(rate: Twist, c: Contacts, friction: Any) -> tuple[Any, Any, Any]:
    along, up = _velocity(rate, c.x, c.z)
    normal, slope = up - c.normal, friction * along - c.slope
    return normal + slope, normal - slope, normal


@stage
def _limit_residuals(qacc: Limbs, limits: Limbs) -> Limbs:
    return Limbs(*(c.sign * a - c.target for a, c in zip(qacc, limits, strict=True)))


def forces(r: Residuals, c: Constraints) -> tuple[Bodies, Limbs]:
    """`-D min(0, r)` of all rows: forces at the ends of bodies, and torques on the limbs."""
    bodies = zip(r.contacts, c.contacts, strict=True)
    pushing = Bodies(*(_contact_forces(*body, c.friction) for body in bodies))
    return pushing, _limit_forces(r.limits, c.limits)


@stage
def _contact_forces(rows: tuple[Any, Any, Any], c: Contacts, friction: Any) -> Force:
    up, down, normal = (-d * jnp.minimum(r, 0.0) for d, r in zip(_stiff(c), rows, strict=True))
    along, pressing = friction * (up - down), up + down + normal
    return Force(along, pressing, along * c.z - pressing * c.x)


def _stiff(c: Contacts) -> tuple[Any, Any, Any]:
    """Stiffness of the rows `n + mu t`, `n - mu t` and `n`."""
    return c.d, c.d, 2 * c.d


@stage
def _limit_forces(r: Limbs, limits: Limbs) -> Limbs:
    return Limbs(*(-c.sign * c.d * jnp.minimum(a, 0.0) for a, c in zip(r, limits, strict=True)))


def stiffness(r: Residuals, c: Constraints) -> tuple[Bodies, Limbs]:
    """`D j j'` of the rows that push: inertias at the ends of bodies, and numbers of the limbs."""
    bodies = zip(r.contacts, c.contacts, strict=True)
    touched = Bodies(*(_contact_stiffness(*body, c.friction) for body in bodies))
    return touched, _limit_stiffness(r.limits, c.limits)


@stage
def _contact_stiffness(rows: tuple[Any, Any, Any], c: Contacts, friction: Any) -> Inertia:
    x, z = c.x, c.z
    up, down, normal = (jnp.where(r < 0, d, 0.0) for d, r in zip(_stiff(c), rows, strict=True))
    nn, nt, tt = up + down + normal, friction * (up - down), friction * friction * (up + down)
    turning = z * z * tt - 2 * x * z * nt + x * x * nn
    return Inertia(tt, nt, nn, z * tt - x * nt, z * nt - x * nn, turning)


@stage
def _limit_stiffness(r: Limbs, limits: Limbs) -> Limbs:
    return Limbs(*(jnp.where(a < 0, c.d, 0.0) for a, c in zip(r, limits, strict=True)))
