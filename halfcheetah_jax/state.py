"""The state of one HalfCheetah."""

from __future__ import annotations

import jax
from flax import struct

from halfcheetah_jax.dynamics import COMPILED
from twinenv.fields import field

__all__ = ["EnvState"]

_JOINTS = tuple(COMPILED["joints"])


@struct.dataclass
class EnvState:
    """What MuJoCo carries from one step to the next, in its own names.

    Numbers are float32, or float64 where JAX's x64 is enabled.
    """

    qpos: jax.Array = field(
        "positions: m for rootx and rootz, where 0 is 0.7 m above the floor, else rad",
        None,
        shape=(9,),
        unit="m, rad",
        reference="qpos",
        labels=_JOINTS,
        atol=1e-11,
        why="sums in another order; float64 (float32 has its own thresholds)",
    )
    qvel: jax.Array = field(
        "speeds",
        None,
        shape=(9,),
        unit="m/s, rad/s",
        reference="qvel",
        labels=_JOINTS,
        atol=1e-9,
        why="sums in another order; float64 (float32 has its own thresholds)",
    )
    qacc_warmstart: jax.Array = field(
        "accelerations of the last step",
        None,
        shape=(9,),
        unit="m/s2, rad/s2",
        reference="qacc_warmstart",
        labels=_JOINTS,
        ignored=True,
        why="where the solver begins; it does not change where it ends",
    )
    time: jax.Array = field(
        "steps since the episode began",
        "int32",
        low=0,
        unit="steps",
        ignored=True,
        why="only the time limit reads it",
    )
