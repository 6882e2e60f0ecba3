"""MuJoCo's physics of Gymnasium's HalfCheetah in JAX, equal to it step by step."""

from halfcheetah_jax.dynamics import Body, Model, advance
from halfcheetah_jax.params import EnvParams, model_of

__all__ = ["Body", "EnvParams", "Model", "advance", "model_of"]
