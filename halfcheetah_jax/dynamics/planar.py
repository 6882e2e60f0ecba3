"""Twists, forces and inertias of bodies in a plane, all about one common point.

A twist is the velocity `(x, z)` of the point of a body that is at the common point, and its turning
speed `w` about +y, which takes z to x; a force has the components that work on these. A hinge at
`(x, z)` away from the common point turns its body with the twist `(-z, x, 1)`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

__all__ = [
    "Force",
    "Inertia",
    "Point",
    "Rigid",
    "Twist",
    "cross_force",
    "cross_motion",
    "hinge",
    "plus",
    "rigid",
]

Point = tuple[Any, Any]
T = TypeVar("T", bound=tuple[Any, ...])


def plus(a: T, b: T) -> T:
    """The sum of two twists, forces or inertias."""
    return type(a)(*(x + y for x, y in zip(a, b, strict=True)))


class Twist(NamedTuple):
    """Velocity or acceleration of a body."""

    x: Any
    z: Any
    w: Any


class Force(NamedTuple):
    """Force and torque."""

    x: Any
    z: Any
    w: Any

    def on_hinge(self, place: Point) -> Any:
        """Its torque about a hinge."""
        return self.w - place[1] * self.x + place[0] * self.z


class Rigid(NamedTuple):
    """Inertia of a rigid body: `mass` along x and z, with the rest named as in `Inertia`."""

    mass: Any
    xw: Any
    zw: Any
    ww: Any

    def times(self, v: Twist) -> Force:
        """The momentum, or the force, that goes with a velocity or an acceleration."""
        return Force(
            self.mass * v.x + self.xw * v.w,
            self.mass * v.z + self.zw * v.w,
            self.xw * v.x + self.zw * v.z + self.ww * v.w,
        )

    def general(self) -> Inertia:
        """The same as an `Inertia`."""
        return Inertia(self.mass, 0.0, self.mass, self.xw, self.zw, self.ww)


class Inertia(NamedTuple):
    """Symmetric matrix from twists to forces: an inertia, or a sum of `D j j'` of contact rows."""

    xx: Any
    xz: Any
    zz: Any
    xw: Any
    zw: Any
    ww: Any

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


def rigid(mass: Any, centre: Point, moment: Any) -> Rigid:
    """Inertia of a body whose centre of mass is `centre` away from the common point."""
    x, z = centre
    return Rigid(mass, mass * z, -mass * x, moment + mass * (x * x + z * z))


def cross_motion(v: Twist, s: Twist) -> Twist:
    """Rate of change of a twist `s` that moves with `v`."""
    return Twist(v.w * s.z - s.w * v.z, s.w * v.x - v.w * s.x, 0.0)


def cross_force(v: Twist, f: Force) -> Force:
    """Rate of change of a momentum `f` that moves with `v`."""
    return Force(v.w * f.z, -v.w * f.x, v.z * f.x - v.x * f.z)
