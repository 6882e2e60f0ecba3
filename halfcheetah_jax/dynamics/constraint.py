"""Contacts with the floor and joint limits: stiffness, target acceleration, and their rows.

A contact has the rows `n + mu t`, `n - mu t`, `n` and `n` of a pyramid whose second tangent is out
of the plane. The last two are equal, so they are one row here, with twice the stiffness.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from halfcheetah_jax.dynamics.kinematics import Places, twists
from halfcheetah_jax.dynamics.planar import Force, Inertia, Point
from halfcheetah_jax.dynamics.shape import COMPILED, END_BODIES, ENDS_OF, RADIUS
from halfcheetah_jax.dynamics.tree import Vector
from twinenv.stages import stage

__all__ = ["Constraints", "Residuals", "constrain", "forces", "residuals", "stiffness"]

_TIME, _RATIO = COMPILED["solref"]
_LEAST, _MOST, _WIDTH, _, _ = COMPILED["solimp_contact"]
_LIMIT_WIDTH = COMPILED["solimp_limit"][2]
_LEAST = max(_LEAST, 1e-4)  # mjMINIMP
_DAMPING = 2 / (_MOST * _TIME)
_NEVER = -1e30  # a target acceleration that nothing falls short of: the row does not exist
_SPRING = 1 / (_MOST * _TIME * _RATIO) ** 2


class Constraints(NamedTuple):
    """All rows that may push, with a target of -1e30 for those that do not exist in this state.

    Attributes:
        x: `[16, ...]`, where each contact is, relative to the torso's origin.
        z: `[16, ...]`.
        contact_d: `[16, ...]`, stiffness of the sloping rows; a normal row has twice that.
        normal: `[16, ...]`, target acceleration along the normal, `-B v_n - K imp dist`.
        slope: `[16, ...]`, what the sloping rows' target has on top, `-B mu v_t`, with either sign.
        limit_d: `[6, ...]`, stiffness of each limb's limit.
        limit_sign: `[6, ...]`, 1 at the lower limit, -1 at the upper.
        limit: `[6, ...]`, target acceleration away from the limit.
        friction: `mu`.
    """

    x: Any
    z: Any
    contact_d: Any
    normal: Any
    slope: Any
    limit_d: Any
    limit_sign: Any
    limit: Any
    friction: Any


def constrain(
    places: Places,
    qpos: Vector,
    qvel: Vector,
    friction: Any,
    contact_weights: Any,
    limit_weights: Any,
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
    weights = _like(jnp.stack([contact_weights[b] for b in END_BODIES]), places.end_x)
    contacts = _contacts(places, _at_ends(qvel, places.hinges), friction, weights)
    limits = _limits(jnp.stack(qpos[3:]), jnp.stack(qvel[3:]), jnp.stack(limit_weights))
    return Constraints._make((*contacts, *limits, friction))


@stage
def _contacts(places: Places, speeds: Any, friction: Any, weights: Any) -> tuple[Any, ...]:
    gap = places.height + places.end_z - RADIUS
    impedance = _contact_impedance(gap)
    x, z = places.end_x, places.end_z - RADIUS - gap / 2
    along, up = _velocity(speeds, x, z)
    stiff = impedance / (1 - impedance) * weights
    normal = jnp.where(gap <= 0, -_DAMPING * up - _SPRING * impedance * gap, _NEVER)
    return x, z, stiff, normal, -_DAMPING * friction * along


@stage
def _contact_impedance(gap: Any) -> Any:
    return _impedance(gap, _WIDTH)


@stage
def _limits(q: Any, v: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Stiffness, sign and target acceleration of the limit that is nearer."""
    low, high = (
        _like(jnp.asarray(side, q.dtype), q) for side in zip(*COMPILED["range"], strict=True)
    )
    above = q - low > high - q
    sign = jnp.where(above, -1.0, 1.0).astype(q.dtype)
    gap = jnp.where(above, high - q, q - low)
    impedance = _impedance(gap, _LIMIT_WIDTH)
    stiff = impedance / (1 - impedance) * _like(weights, q)
    target = jnp.where(gap < 0, -_DAMPING * sign * v - _SPRING * impedance * gap, _NEVER)
    return stiff, sign, target


def _impedance(gap: Any, width: float) -> Any:
    """`imp` of solimp, whose power is 2 and whose middle is half."""
    depth = jnp.clip(jnp.abs(gap) * (1 / width), 0.0, 1.0)
    rest = 1 - depth
    curve = jnp.where(depth <= 0.5, 2 * depth * depth, 1 - 2 * rest * rest)
    return _LEAST + curve * (_MOST - _LEAST)


def _at_ends(qdot: Vector, hinges: tuple[Point, ...]) -> tuple[Any, Any, Any]:
    """Twist of the body that each end is on, `[16, ...]` each."""
    each = twists(qdot, hinges)
    return tuple(jnp.stack([each[b][i] for b in END_BODIES]) for i in range(3))  # type: ignore[return-value]


def _velocity(twist: tuple[Any, Any, Any], x: Any, z: Any) -> tuple[Any, Any]:
    """Velocity of bodies' points."""
    return twist[0] + twist[2] * z, twist[1] - twist[2] * x


def _like(values: Any, array: Any) -> Any:
    """`[n]` numbers as `[n, 1, ...]`, to go with an array `[n, ...]`."""
    return values.reshape(values.shape[0], *[1] * (array.ndim - 1)) if values.ndim == 1 else values


class Residuals(NamedTuple):
    """`J a - aref` of all rows: where negative, a row pushes.

    Attributes:
        up: `[16, ...]`, rows `n + mu t`.
        down: `[16, ...]`, rows `n - mu t`.
        normal: `[16, ...]`, rows `n`.
        limit: `[6, ...]`.
    """

    up: Any
    down: Any
    normal: Any
    limit: Any


def residuals(qacc: Vector, hinges: tuple[Point, ...], c: Constraints) -> Residuals:
    """Residuals under an acceleration."""
    return _residuals(_at_ends(qacc, hinges), jnp.stack(qacc[3:]), c)


@stage
def _residuals(rates: Any, limbs: Any, c: Constraints) -> Residuals:
    along, up = _velocity(rates, c.x, c.z)
    normal, slope = up - c.normal, c.friction * along - c.slope
    return Residuals(normal + slope, normal - slope, normal, c.limit_sign * limbs - c.limit)


def forces(r: Residuals, c: Constraints) -> tuple[tuple[Force, ...], Any]:
    """`-D min(0, r)` of all rows, as forces on the bodies and, `[6, ...]`, on the limbs."""
    *parts, limbs = _forces(r, c)
    return _per_body(Force, parts), limbs


@stage
def _forces(r: Residuals, c: Constraints) -> tuple[Any, ...]:
    up = -c.contact_d * jnp.minimum(r.up, 0.0)
    down = -c.contact_d * jnp.minimum(r.down, 0.0)
    normal = -2 * c.contact_d * jnp.minimum(r.normal, 0.0)
    along, pressing = c.friction * (up - down), up + down + normal
    limbs = -c.limit_sign * c.limit_d * jnp.minimum(r.limit, 0.0)
    return along, pressing, along * c.z - pressing * c.x, limbs


def stiffness(r: Residuals, c: Constraints) -> tuple[tuple[Inertia, ...], Any]:
    """`sum D j j'` of the rows that push, per body, and the stiffness on each limb, `[6, ...]`."""
    *parts, limbs = _stiffness(r, c)
    return _per_body(Inertia, parts), limbs


@stage
def _stiffness(r: Residuals, c: Constraints) -> tuple[Any, ...]:
    d, x, z = c.contact_d, c.x, c.z
    up, down = jnp.where(r.up < 0, d, 0.0), jnp.where(r.down < 0, d, 0.0)
    nn = up + down + jnp.where(r.normal < 0, 2 * d, 0.0)
    nt, tt = c.friction * (up - down), c.friction * c.friction * (up + down)
    turning = z * z * tt - 2 * x * z * nt + x * x * nn
    limbs = jnp.where(r.limit < 0, c.limit_d, 0.0)
    return tt, nt, nn, z * tt - x * nt, z * nt - x * nn, turning, limbs


def _per_body(kind: Any, parts: Any) -> tuple[Any, ...]:
    """Sums over the ends of each body."""
    return tuple(kind(*(sum(part[e] for e in ends) for part in parts)) for ends in ENDS_OF)
