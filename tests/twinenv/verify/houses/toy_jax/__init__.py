"""A duel of two rules that meet, small enough to verify the verifier with."""

from toy_jax.env import Duel, make
from twinenv.registry import register

__all__ = ["Duel", "make"]

register(Duel.name, make)
