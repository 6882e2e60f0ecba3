"""The rules of the duel."""

from toy_jax.rules.duel import FULL, play

__all__ = ["FULL", "play"]
