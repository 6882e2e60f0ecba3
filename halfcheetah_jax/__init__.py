"""HalfCheetah in JAX, equal to MuJoCo's physics of Gymnasium's HalfCheetah-v5."""

from halfcheetah_jax.env import HalfCheetah, make
from halfcheetah_jax.params import EnvParams
from halfcheetah_jax.state import EnvState
from twinenv.registry import register

__all__ = ["EnvParams", "EnvState", "HalfCheetah", "make"]

register(HalfCheetah.name, make)
