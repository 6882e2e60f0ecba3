"""The outside references of Pong: PufferLib's wheel, and its `pong.h` compiled here."""

from pong_jax.reference.header import HeaderPong
from pong_jax.reference.vector import vector_env
from pong_jax.reference.wheel import WheelPong

__all__ = ["HeaderPong", "WheelPong", "vector_env"]
