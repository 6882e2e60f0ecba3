"""MuJoCo's HalfCheetah in the plane: `step` is one time step, of any batch and floating type."""

from halfcheetah_jax.dynamics.advance import advance
from halfcheetah_jax.dynamics.shape import COMPILED
from halfcheetah_jax.dynamics.step import Body, Model, problem_of, step
from halfcheetah_jax.dynamics.tiles import steps, tiled_steps
from halfcheetah_jax.dynamics.weights import inverse_weights

__all__ = [
    "COMPILED",
    "Body",
    "Model",
    "advance",
    "inverse_weights",
    "problem_of",
    "step",
    "steps",
    "tiled_steps",
]
