"""Where everything is: hinges, centres of mass and ends of capsules, relative to the torso."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from halfcheetah_jax.dynamics.planar import Point, Twist, hinge
from halfcheetah_jax.dynamics.shape import CENTRES, ENDPOINTS, OFFSETS, TORSO_HEIGHT
from halfcheetah_jax.dynamics.tree import NUM_BODIES, PARENT, Vector
from halfcheetah_jax.dynamics.trigonometry import sin_cos
from twinenv.stages import stage

__all__ = ["Places", "place", "twists"]


class Places(NamedTuple):
    """Places `(x, z)` relative to the torso's origin, which moves with the x and z of the root.

    Attributes:
        height: of the torso's origin above the floor.
        hinges: of each body; the torso turns about its own origin.
        centres: centre of mass of each body.
        end_x: `[16, ...]`, centres of the half-spheres at the ends of each capsule.
        end_z: `[16, ...]`.
    """

    height: Any
    hinges: tuple[Point, ...]
    centres: tuple[Point, ...]
    end_x: Any
    end_z: Any


def place(qpos: Vector) -> Places:
    """Forward kinematics (`mj_kinematics`, `mj_comPos`)."""
    angles = [qpos[2]]
    for body in range(1, NUM_BODIES):
        angles.append(angles[PARENT[body]] + qpos[body + 2])
    sin, cos = _turns(jnp.stack(angles))
    hinges = _hinges(sin, cos)
    centres = _points(hinges, sin, cos, tuple(enumerate(CENTRES)))
    end_x, end_z = _points(hinges, sin, cos, ENDPOINTS)
    return Places(qpos[1] + TORSO_HEIGHT, hinges, tuple(zip(*centres, strict=True)), end_x, end_z)


_turns = stage(sin_cos)


@stage
def _hinges(sin: Any, cos: Any) -> tuple[Point, ...]:
    zero = jnp.zeros_like(sin[0])
    found = [(zero, zero)]
    for body in range(1, NUM_BODIES):
        parent = PARENT[body]
        found.append(_moved(found[parent], (sin[parent], cos[parent]), OFFSETS[body]))
    return tuple(found)


def _points(hinges: tuple[Point, ...], sin: Any, cos: Any, points: Any) -> tuple[Any, Any]:
    """`(x, z)`, `[len(points), ...]` each, of points `(body, (x, z))` of bodies."""
    bodies = [body for body, _ in points]
    shape = (len(points), *[1] * (sin.ndim - 1))

    def local(axis: int) -> Any:
        return jnp.asarray([point[axis] for _, point in points], sin.dtype).reshape(shape)

    origin = jnp.stack([hinges[b][0] for b in bodies]), jnp.stack([hinges[b][1] for b in bodies])
    turn = jnp.stack([sin[b] for b in bodies]), jnp.stack([cos[b] for b in bodies])
    return _moved_stage(origin, turn, (local(0), local(1)))


def _moved(origin: Point, turn: Point, point: Point) -> Point:
    """A point of a body that is turned by an angle about +y."""
    (x, z), (sin, cos) = point, turn
    return origin[0] + cos * x + sin * z, origin[1] - sin * x + cos * z


_moved_stage = stage(_moved)


def twists(qdot: Vector, hinges: tuple[Point, ...]) -> tuple[Twist, ...]:
    """Twist of each body under speeds, or accelerations, of the degrees of freedom: `J qdot`."""
    found = [Twist(qdot[0], qdot[1], qdot[2])]
    for body in range(1, NUM_BODIES):
        found.append(found[PARENT[body]].plus(hinge(hinges[body], qdot[body + 2])))
    return tuple(found)
