"""Run-time numbers of the HalfCheetah and the checks on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from halfcheetah_jax.dynamics import COMPILED, Model, inverse_weights

__all__ = ["EnvParams", "check", "check_form", "model_of"]


def _numbers(name: str) -> tuple[float, ...]:
    return tuple(COMPILED[name])


@struct.dataclass
class EnvParams:
    """Gymnasium's numeric options and the numbers of MuJoCo's model, with their defaults.

    Attributes:
        forward_reward_weight: weight of the speed in the reward.
        ctrl_cost_weight: weight of the squared actions in the reward.
        reset_noise_scale: spread of the first positions and speeds.
        mass: kg, of torso and thigh, shin and foot of the back and of the front leg; moments of
            inertia stay as they are.
        damping: N m s/rad, of the six limbs in that order.
        gear: N m, torque of each limb's motor at full action.
        friction: of the contacts with the floor.
        gravity: m/s2, downwards.
        max_steps_in_episode: steps after which an episode is cut; `math.inf` for no limit.
    """

    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 0.1
    reset_noise_scale: float = 0.1
    mass: tuple[float, ...] = _numbers("mass")
    damping: tuple[float, ...] = _numbers("damping")
    gear: tuple[float, ...] = _numbers("gear")
    friction: float = COMPILED["friction"]
    gravity: float = COMPILED["gravity"]
    max_steps_in_episode: float = 1_000


def model_of(params: EnvParams, number: Any) -> Model:
    """The mechanism, in a floating type, with what MuJoCo's compiler would derive from it."""

    def cast(values: Any) -> jax.Array:
        return jnp.stack([jnp.asarray(value, number) for value in values])

    mass, moment, armature = map(cast, (params.mass, COMPILED["inertia"], COMPILED["armature"]))
    friction = jnp.asarray(params.friction, number)
    bodies, limbs = inverse_weights(mass, moment, armature)
    slope = 2 * friction * friction * (1 + friction * friction)
    return Model(
        mass=mass,
        moment=moment,
        stiffness=cast(COMPILED["stiffness"]),
        damping=cast(params.damping),
        armature=armature,
        gear=cast(params.gear),
        friction=friction,
        gravity=jnp.asarray(params.gravity, number),
        timestep=jnp.asarray(COMPILED["timestep"], number),
        contact_weights=1 / (slope * bodies),
        limit_weights=1 / limbs,
    )


def check_form(params: EnvParams) -> None:
    """Raise TypeError unless each body or limb has one number, and all have one of the rest."""
    for name, default in vars(EnvParams()).items():
        given, many = getattr(params, name), isinstance(default, tuple)
        if many and not (isinstance(given, tuple) and len(given) == len(default)):
            raise TypeError(f"{name} is {given!r}; accepted is a tuple of {len(default)} numbers")
        if not many and isinstance(given, tuple | list):
            raise TypeError(f"{name} is {given!r}; accepted is one number")


def check(params: EnvParams) -> None:
    """Raise ValueError, or TypeError for complex numbers, for what no mechanism can have.

    Args:
        params: concrete numbers.
    """
    for name, accepted, holds in _ACCEPTED:
        given = getattr(params, name)
        for value in given if isinstance(given, tuple) else (given,):
            if np.iscomplexobj(value):
                raise TypeError(f"{name} has {value!r}; accepted is {accepted}")
            if not holds(float(value)):
                raise ValueError(f"{name} has {value}; accepted is {accepted}")


def _positive(value: float) -> bool:
    return 0 < value < math.inf


def _from_zero(value: float) -> bool:
    return 0 <= value < math.inf


_ACCEPTED: tuple[tuple[str, str, Callable[[float], bool]], ...] = (
    ("forward_reward_weight", "a finite number", math.isfinite),
    ("ctrl_cost_weight", "a finite number", math.isfinite),
    ("reset_noise_scale", "a finite number from 0", _from_zero),
    ("mass", "finite positive numbers", _positive),
    ("damping", "finite numbers from 0", _from_zero),
    ("gear", "finite numbers", math.isfinite),
    # Less than mjMINMU MuJoCo itself does not take.
    ("friction", "a finite number from 1e-5", lambda mu: 1e-5 <= mu < math.inf),
    ("gravity", "a finite number", math.isfinite),
    ("max_steps_in_episode", "at least 1 (math.inf for no limit)", lambda steps: steps >= 1),
)
