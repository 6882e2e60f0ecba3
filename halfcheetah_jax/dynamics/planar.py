"""Twists, forces and inertias of bodies in a plane, all about one common point.

A twist is the velocity `(x, z)` of the point of a body that is at the common point, and its turning
speed `w` about +y, which takes z to x; a force has the components that work on these. A hinge at
`(x, z)` away from the common point turns its body with the twist `(-z, x, 1)`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Force", "Inertia", "Point", "Twist", "cross_force", "cross_motion", "hinge", "rigid"]

Point = tuple[Any, Any]


class Twist(NamedTuple):
    """Velocity or acceleration of a body."""

    x: Any
    z: Any
    w: Any

    def plus(self, other: Twist) -> Twist:
        """The sum."""
        return Twist(self.x + other.x, self.z + other.z, self.w + other.w)


class Force(NamedTuple):
    """Force and torque."""

    x: Any
    z: Any
    w: Any

    def plus(self, other: Force) -> Force:
        """The sum."""
        return Force(self.x + other.x, self.z + other.z, self.w + other.w)

    def on_hinge(self, place: Point) -> Any:
        """Its torque about a hinge."""
        return self.w - place[1] * self.x + place[0] * self.z


class Inertia(NamedTuple):
    """Symmetric matrix from twists to forces: an inertia, or a sum of `D j j'` of contact rows."""

    xx: Any
    xz: Any
    zz: Any
    xw: Any
    zw: Any
    ww: Any

    def plus(self, other: Inertia) -> Inertia:
        """The sum."""
        return Inertia(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, v: Twist) -> Force:
        """The force that it makes of a twist."""
        return Force(
            self.xx * v.x + self.xz * v.z + self.xw * v.w,
            self.xz * v.x + self.zz * v.z + self.zw * v.w,
            self.xw * v.x + self.zw * v.z + self.ww * v.w,
        )

    def on_hinge(self, place: Point) -> Force:
        """The force that it makes of turning about a hinge at unit speed."""
        x, z = place
        return Force(
            self.xw - self.xx * z + self.xz * x,
            self.zw - self.xz * z + self.zz * x,
            self.ww - self.xw * z + self.zw * x,
        )


def hinge(place: Point, speed: Any) -> Twist:
    """Twist of turning about a hinge."""
    return Twist(-place[1] * speed, place[0] * speed, speed)


def rigid(mass: Any, centre: Point, moment: Any) -> Inertia:
    """Inertia of a body whose centre of mass is `centre` away from the common point."""
    x, z = centre
    return Inertia(mass, 0.0, mass, mass * z, -mass * x, moment + mass * (x * x + z * z))


def cross_motion(v: Twist, s: Twist) -> Twist:
    """Rate of change of a twist `s` that moves with `v`."""
    return Twist(v.w * s.z - s.w * v.z, s.w * v.x - v.w * s.x, 0.0)


def cross_force(v: Twist, f: Force) -> Force:
    """Rate of change of a momentum `f` that moves with `v`."""
    return Force(v.w * f.z, -v.w * f.x, v.z * f.x - v.x * f.z)
