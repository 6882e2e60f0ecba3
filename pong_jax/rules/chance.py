"""The C library's `rand_r`, of which Pong uses one bit per serve."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["rand_r_bit"]

_A, _C, _MOD = 1103515245, 12345, 1 << 32
# One call of rand_r makes three steps of x -> A x + C; their composition is one such step.
_A3 = _A**3 % _MOD
_C3 = _C * (_A * _A + _A + 1) % _MOD


def rand_r_bit(rng: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The seed after one `rand_r(&rng)` and the lowest bit of what that call returned.

    Args:
        rng: `uint32` seed.

    Returns:
        The next seed `uint32` and the bit, `uint32` 0 or 1: bit 16 of the third step's seed
        (glibc `stdlib/rand_r.c`).
    """
    rng = rng * jnp.uint32(_A3) + jnp.uint32(_C3)
    return rng, (rng >> jnp.uint32(16)) & jnp.uint32(1)
