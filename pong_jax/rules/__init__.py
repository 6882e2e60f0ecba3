"""The rules of Pong: pure functions that take the serve bit as an argument."""

from pong_jax.rules.ball import Ball
from pong_jax.rules.chance import rand_r_bit
from pong_jax.rules.serve import Rally, serve
from pong_jax.rules.step import Outcome, step

__all__ = ["Ball", "Outcome", "Rally", "rand_r_bit", "serve", "step"]
