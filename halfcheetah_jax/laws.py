"""Newton's laws for the mechanism, written down in NumPy with whole matrices.

Points are complex numbers `x + i z`; turning by an angle about +y multiplies by `exp(-i angle)`.
All arrays are float64 or complex128 with the states' axis in front. Level 1 holds the twin to this.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from halfcheetah_jax.dynamics import COMPILED
from halfcheetah_jax.params import EnvParams
from twinenv.verify.pair import Rows

__all__ = ["Energy", "Rowwise", "energy", "mass_matrix", "pushes", "rows_of", "touches"]

_PARENT = COMPILED["parent"]
_STEP: float = COMPILED["timestep"]
_RADIUS: float = COMPILED["radius"]
_LIMITS = np.asarray(COMPILED["range"])
_END_BODIES = [body for body in COMPILED["capsule_body"] for _ in range(2)]


def _complex(points: Any) -> np.ndarray:
    x, z = np.moveaxis(np.asarray(points), -1, 0)
    return x + 1j * z


_OFFSETS, _CENTRES = _complex(COMPILED["offset"]), _complex(COMPILED["centre"])
_ENDS = _complex(COMPILED["endpoints"]).ravel()


class _Frames(NamedTuple):
    """Origin and turn of each body, `complex[n, 7]`."""

    origin: np.ndarray
    turn: np.ndarray


def _frames(qpos: np.ndarray) -> _Frames:
    origin, angle = [qpos[:, 0] + 1j * qpos[:, 1] + _OFFSETS[0]], [qpos[:, 2]]
    for body, parent in enumerate(_PARENT[1:], 1):
        origin.append(origin[parent] + _OFFSETS[body] * np.exp(-1j * angle[parent]))
        angle.append(angle[parent] + qpos[:, body + 2])
    return _Frames(np.stack(origin, 1), np.exp(-1j * np.stack(angle, 1)))


def _moves(body: int) -> list[int]:
    """Bodies whose hinges move a body: itself and those it hangs on, from the torso on."""
    return [*(_moves(_PARENT[body]) if body else []), body]


def _jacobian(frames: _Frames, body: int, point: complex | np.ndarray) -> np.ndarray:
    """`complex[n, 9]`: how a point of a body, or one in each state, moves with each degree."""
    found = np.zeros((len(frames.turn), 9), np.complex128)
    place = frames.origin[:, body] + point * frames.turn[:, body]
    found[:, 0], found[:, 1] = 1, 1j
    for other in _moves(body):
        found[:, other + 2] = -1j * (place - frames.origin[:, other])
    return found


def _swing(frames: _Frames, qvel: np.ndarray, body: int, point: complex) -> np.ndarray:
    """`complex[n]`: acceleration of a point of a body under constant speeds, towards the hinges."""
    path, found = _moves(body), np.zeros(len(qvel), np.complex128)
    for place, other in enumerate(path):
        speed = qvel[:, [b + 2 for b in path[: place + 1]]].sum(axis=1)
        link = _OFFSETS[path[place + 1]] if other != body else point
        found -= speed**2 * link * frames.turn[:, other]
    return found


def _turning(body: int) -> np.ndarray:
    found = np.zeros(9)
    found[[other + 2 for other in _moves(body)]] = 1
    return found


def mass_matrix(qpos: np.ndarray, params: EnvParams) -> np.ndarray:
    """`float[n, 9, 9]`: of the kinetic energy `v'Mv / 2`, motors' armature included."""
    frames = _frames(qpos)
    matrix = np.zeros((len(qpos), 9, 9)) + np.diag([0.0] * 3 + COMPILED["armature"])
    for body in range(7):
        row, turning = _jacobian(frames, body, _CENTRES[body]), _turning(body)
        matrix += params.mass[body] * _real(row.conj()[:, :, None] * row[:, None])
        matrix += COMPILED["inertia"][body] * np.outer(turning, turning)
    return matrix


def _bias(qpos: np.ndarray, qvel: np.ndarray, params: EnvParams) -> np.ndarray:
    """`float[n, 9]`: forces that speeds and gravity ask for where nothing accelerates."""
    frames = _frames(qpos)
    found = np.zeros((len(qpos), 9))
    for body in range(7):
        swing = _swing(frames, qvel, body, _CENTRES[body]) + 1j * params.gravity
        row = _jacobian(frames, body, _CENTRES[body])
        found += params.mass[body] * _real(row.conj() * swing[:, None])
    return found


def _real(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array.real)


class Energy(NamedTuple):
    """Joule, `float[n]` each."""

    kinetic: np.ndarray
    potential: np.ndarray


def energy(state: Rows, params: EnvParams) -> Energy:
    """Of motion and of height; springs are left out."""
    qpos, qvel = state["qpos"], state["qvel"]
    frames = _frames(qpos)
    heights = (frames.origin + _CENTRES * frames.turn).imag
    matrix = mass_matrix(qpos, params)
    kinetic = np.einsum("ni,nij,nj->n", qvel, matrix, qvel) / 2
    return Energy(kinetic, params.gravity * heights @ np.asarray(params.mass))


def touches(qpos: np.ndarray) -> np.ndarray:
    """`bool[n, 16]`: which ends of capsules touch the floor."""
    return _gaps(_frames(qpos)) <= 0


def _gaps(frames: _Frames) -> np.ndarray:
    ends = frames.origin[:, _END_BODIES] + _ENDS * frames.turn[:, _END_BODIES]
    return _real(ends.imag) - _RADIUS


def pushes(
    state: Rows, actions: np.ndarray, after: Rows, params: EnvParams
) -> tuple[np.ndarray, np.ndarray]:
    """What the floor and the limits must have pushed with for one time step to end where it did.

    Args:
        state: before the time step.
        actions: of the motors.
        after: the state after it.
        params: the mechanism's numbers.

    Returns:
        Forces on the degrees of freedom and, without what the integrator's implicit dampers do, the
        accelerations; `float[n, 9]` each.
    """
    qpos, qvel = state["qpos"], state["qvel"]
    rate = (after["qvel"] - qvel) / _STEP
    matrix, damping = mass_matrix(qpos, params), np.array([0.0] * 3 + list(params.damping))
    inertial = np.einsum("nij,nj->ni", matrix, rate) + _STEP * damping * rate
    spring = np.array([0.0] * 3 + COMPILED["stiffness"])
    motors = np.zeros_like(qpos)
    motors[:, 3:] = np.clip(actions, -1, 1) * np.asarray(params.gear)
    others = motors - spring * qpos - damping * qvel - _bias(qpos, qvel, params)
    return inertial - others, np.linalg.solve(matrix, inertial[..., None])[..., 0]


class Rowwise(NamedTuple):
    """Constraints that exist, and zeros for those that do not.

    Attributes:
        jacobian: `float[n, 54, 9]`: three rows for each end, and one for each limb.
        stiffness: `float[n, 54]`, MuJoCo's `efc_D`.
        target: `float[n, 54]`, its `efc_aref`.
    """

    jacobian: np.ndarray
    stiffness: np.ndarray
    target: np.ndarray

    def forces(self, qacc: np.ndarray) -> np.ndarray:
        """On the degrees of freedom, `float[n, 9]`: rows that fall short of their target push."""
        short = self.target - np.einsum("nri,ni->nr", self.jacobian, qacc)
        return np.einsum("nri,nr->ni", self.jacobian, self.stiffness * np.maximum(short, 0))


def rows_of(state: Rows, params: EnvParams) -> Rowwise:
    """MuJoCo's constraint rows: two slopes and twice the normal for a contact, and the limits."""
    rows, stiffness, gaps = _contacts(state["qpos"], params)
    limit_rows, limit_stiffness, limit_gaps = _limits(state["qpos"], params)
    rows = np.concatenate([rows, limit_rows], axis=1)
    gap = np.concatenate([gaps, limit_gaps], axis=1)
    widths = [COMPILED["solimp_contact"][2]] * 48 + [COMPILED["solimp_limit"][2]] * 6
    impedance = _impedance(gap / np.asarray(widths))
    time, most = COMPILED["solref"][0], COMPILED["solimp_contact"][1]
    speed = np.einsum("nri,ni->nr", rows, state["qvel"])
    target = -2 / (most * time) * speed - impedance * gap / (most * time) ** 2
    stiffness = np.concatenate([stiffness, limit_stiffness], axis=1)
    return Rowwise(rows, stiffness * impedance / (1 - impedance), target)


def _contacts(qpos: np.ndarray, params: EnvParams) -> tuple[np.ndarray, ...]:
    frames = _frames(qpos)
    gaps, mu = _gaps(frames), params.friction
    weight = 1 / (2 * mu**2 * (1 + mu**2) * _inverse_weights(params)[0])
    rows, stiffness = [], []
    for end, body in enumerate(_END_BODIES):
        # Half way between the floor and the lowest point of the half-sphere.
        down = -1j * (_RADIUS + gaps[:, end] / 2) * frames.turn[:, body].conj()
        jacobian = _jacobian(frames, body, _ENDS[end] + down)
        up, along = jacobian.imag, mu * jacobian.real
        rows += [up + along, up - along, up]
        exists = np.where(gaps[:, end] <= 0, weight[body], 0)
        stiffness += [exists, exists, 2 * exists]
    return np.stack(rows, 1), np.stack(stiffness, 1), np.repeat(gaps, 3, axis=1)


def _limits(qpos: np.ndarray, params: EnvParams) -> tuple[np.ndarray, ...]:
    limbs = qpos[:, 3:]
    gaps = np.minimum(limbs - _LIMITS[:, 0], _LIMITS[:, 1] - limbs)
    sign = np.where(limbs < _LIMITS.mean(axis=1), 1.0, -1.0)
    rows = np.zeros((len(qpos), 6, 9))
    rows[:, range(6), range(3, 9)] = sign
    return rows, np.where(gaps < 0, 1 / _inverse_weights(params)[1], 0), gaps


def _impedance(depths: np.ndarray) -> np.ndarray:
    """MuJoCo's `solimp` with its power of 2, by the depth over the width."""
    least, most = 1e-4, COMPILED["solimp_contact"][1]
    depth = np.minimum(np.abs(depths), 1)
    curve = np.where(depth < 0.5, 2 * depth**2, 1 - 2 * (1 - depth) ** 2)
    return least + (most - least) * curve


def _inverse_weights(params: EnvParams) -> tuple[np.ndarray, np.ndarray]:
    """How much bodies `[7]` and limbs `[6]` yield to a force where all positions are 0."""
    zero = np.zeros((1, 9))
    inverse, frames = np.linalg.inv(mass_matrix(zero, params)[0]), _frames(zero)
    rows = [_jacobian(frames, body, _CENTRES[body])[0] for body in range(7)]
    bodies = [(row.conj() @ inverse @ row).real / 3 for row in rows]
    return np.array(bodies), np.diag(inverse)[3:]
