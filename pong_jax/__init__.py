"""Pong in JAX, equal to PufferLib's Ocean Pong step by step."""

from pong_jax.env import Pong, make
from pong_jax.params import EnvParams
from pong_jax.state import EnvState
from twinenv.registry import register

__all__ = ["EnvParams", "EnvState", "Pong", "make"]

register(Pong.name, make)
