"""MuJoCo's own simulation of the model; needs the package `mujoco`."""

from halfcheetah_jax.reference.simulation import Simulation

__all__ = ["Simulation"]
