"""Sine and cosine as polynomials: XLA:CPU computes calls of its library anew in every fusion."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["sin_cos"]

# Half pi in parts whose products with whole numbers below 2**20 are exact in float64.
_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
# The same in parts for float32.
_PARTS_32 = (1.5703125, 4.837512969970703e-4, 7.549789954891882e-8)


def sin_cos(angle: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Sine and cosine to the last place or so, for angles up to some thousands."""
    wide = angle.dtype == jnp.float64
    quarters = jnp.round(angle * (2 / math.pi))
    x = angle
    for part in _PARTS if wide else _PARTS_32:
        x = x - quarters * part
    sin, cos = _series(x, 15 if wide else 9)
    turn = quarters.astype(jnp.int32) & 3
    odd = (turn & 1) == 1
    sin, cos = jnp.where(odd, cos, sin), jnp.where(odd, sin, cos)
    return jnp.where(turn >= 2, -sin, sin), jnp.where((turn == 1) | (turn == 2), -cos, cos)


def _series(x: jax.Array, degree: int) -> tuple[Any, Any]:
    """Taylor's sums up to `x**degree` and one further; |x| is at most a quarter of pi."""
    square = x * x
    sin: Any = jnp.zeros_like(x)
    cos: Any = jnp.zeros_like(x)
    for n in range(degree, 1, -2):
        sin = (sin + (-1) ** (n // 2) / math.factorial(n)) * square
        cos = (cos + (-1) ** ((n + 1) // 2) / math.factorial(n + 1)) * square
    return x + x * sin, 1 + (cos - 0.5) * square
