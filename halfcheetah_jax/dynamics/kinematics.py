"""Where everything is: hinges, centres of mass and ends of capsules, relative to the torso."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from halfcheetah_jax.dynamics.planar import Point, Twist, hinge, plus
from halfcheetah_jax.dynamics.shape import CENTRES, ENDS, OFFSETS, TORSO_HEIGHT, beside
from halfcheetah_jax.dynamics.tree import Bodies, Dofs, Limbs
from halfcheetah_jax.dynamics.trigonometry import sin_cos
from twinenv.stages import stage

__all__ = ["Places", "place", "twists"]


class Places(NamedTuple):
    """Places `(x, z)` relative to the torso's origin, which moves with the x and z of the root.

    Attributes:
        height: of the torso's origin above the floor.
        hinges: of the limbs; the torso turns about its own origin.
        centres: centre of mass of each body.
        ends: of each body, centres of the half-spheres at the ends of its capsules: `[4, ...]` of
            the torso and `[2 ends, 2 legs, ...]` of limbs.
    """

    height: Any
    hinges: Limbs
    centres: Bodies
    ends: Bodies


def place(qpos: Dofs) -> Places:
    """Forward kinematics (`mj_kinematics`, `mj_comPos`)."""
    turns = _turns(qpos)
    hinges = _hinges(turns)
    height = qpos.z + TORSO_HEIGHT
    return Places(height, hinges, _centres(hinges, turns), _ends(hinges, turns))


def _turns(qpos: Dofs) -> Bodies:
    """Sine and cosine of each body's pitch."""
    return Bodies(*map(_turn, _pitches(qpos)))


@stage
def _pitches(qpos: Dofs) -> Bodies:
    found = [qpos.pitch]
    for limb in qpos.limbs:
        found.append(found[-1] + limb)
    return Bodies(*found)


_turn = stage(sin_cos)


@stage
def _hinges(turns: Bodies) -> Limbs:
    found: list[Point] = [(0.0, 0.0)]
    for parent, offset in zip(turns[:3], OFFSETS, strict=True):
        found.append(_moved(found[-1], parent, _local(offset, turns)))
    return Limbs(*found[1:])


@stage
def _centres(hinges: Limbs, turns: Bodies) -> Bodies:
    return _points(CENTRES, hinges, turns)


@stage
def _ends(hinges: Limbs, turns: Bodies) -> Bodies:
    return _points(ENDS, hinges, turns)


def _points(points: Bodies, hinges: Limbs, turns: Bodies) -> Bodies:
    rows = zip(((0.0, 0.0), *hinges), turns, points, strict=True)
    return Bodies(*(_moved(origin, turn, _local(at, turns)) for origin, turn, at in rows))


def _local(points: np.ndarray, turns: Bodies) -> Point:
    """Both coordinates of `[..., 2]` points of bodies."""
    return beside(points[..., 0], turns.torso[0]), beside(points[..., 1], turns.torso[0])


def _moved(origin: Point, turn: Point, point: Point) -> Point:
    """A point of a body that is turned by an angle about +y."""
    (sin, cos), (x, z) = turn, point
    return origin[0] + cos * x + sin * z, origin[1] - sin * x + cos * z


@stage
def twists(qdot: Dofs, hinges: Limbs) -> Bodies:
    """Twist of each body under speeds, or accelerations, of the degrees of freedom: `J qdot`."""
    found = [Twist(qdot.x, qdot.z, qdot.pitch)]
    for place, speed in zip(hinges, qdot.limbs, strict=True):
        found.append(plus(found[-1], hinge(place, speed)))
    return Bodies(*found)
