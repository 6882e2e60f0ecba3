"""The outside references of the HalfCheetah: MuJoCo's simulation and Gymnasium's environment."""

from halfcheetah_jax.reference.simulation import Simulation
from halfcheetah_jax.reference.vector import vector_env

__all__ = ["Simulation", "vector_env"]
