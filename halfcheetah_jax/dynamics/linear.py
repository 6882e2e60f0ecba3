"""Factorisation of matrices with the tree's sparsity, in the order that fills nothing in.

Every elimination is a stage of its own: XLA:CPU would otherwise compute whole chains of them anew
for each number that comes out.
"""

from __future__ import annotations

import functools

import jax

from halfcheetah_jax.dynamics.tree import ANCESTORS, NUM_DOFS, Matrix, Vector
from twinenv.stages import stage

__all__ = ["factor", "multiply", "solve"]


def factor(matrix: Matrix) -> Matrix:
    """`L'DL` of a positive definite matrix (`mj_factorM`): L, and 1/D on the diagonal."""
    for k in range(NUM_DOFS - 1, -1, -1):
        matrix = matrix | _eliminated(matrix, k)
    return matrix


@functools.partial(stage, static_argnums=(1,))
def _eliminated(m: Matrix, k: int) -> Matrix:
    """Row `k` of the factors, and what is left of the rows above it."""
    inverse = 1 / m[k, k]
    found = {(k, k): inverse}
    for i in ANCESTORS[k]:
        scale = m[k, i] * inverse
        found[k, i] = scale
        for j in (*ANCESTORS[i], i):
            found[i, j] = m[i, j] - scale * m[k, j]
    return found


def solve(factors: Matrix, right: Vector) -> Vector:
    """The solution of `L'DL x = right` (`mj_solveM`)."""
    x = list(right)
    for k in range(NUM_DOFS - 1, 0, -1):
        above = ANCESTORS[k]
        for i, value in zip(above, _pulled(factors, tuple(x), k), strict=True):
            x[i] = value
    for k in range(NUM_DOFS):
        x[k] = _pushed(factors, tuple(x), k)
    return tuple(x)


@functools.partial(stage, static_argnums=(2,))
def _pulled(factors: Matrix, x: Vector, k: int) -> Vector:
    return tuple(x[i] - factors[k, i] * x[k] for i in ANCESTORS[k])


@functools.partial(stage, static_argnums=(2,))
def _pushed(factors: Matrix, x: Vector, k: int) -> jax.Array:
    value = x[k] * factors[k, k]
    for i in ANCESTORS[k]:
        value = value - factors[k, i] * x[i]
    return value


@stage
def multiply(matrix: Matrix, right: Vector) -> Vector:
    """`matrix @ right` (`mj_mulM`)."""
    out = [matrix[i, i] * right[i] for i in range(NUM_DOFS)]
    for i in range(NUM_DOFS):
        for j in ANCESTORS[i]:
            out[i] = out[i] + matrix[i, j] * right[j]
            out[j] = out[j] + matrix[i, j] * right[i]
    return tuple(out)
