"""Factorisation of matrices with the tree's sparsity, in the order that fills nothing in.

Every elimination is a stage of its own: XLA:CPU would otherwise compute whole chains of them anew
for each number that comes out.
"""

from __future__ import annotations

import functools
from typing import Any

from halfcheetah_jax.dynamics.tree import FOOT, PITCH, SHIN, THIGH, Dofs, Matrix, X, Z, both
from twinenv.stages import stage

__all__ = ["factor", "multiply", "solve"]

_LIMBS, _TORSO = (FOOT, SHIN, THIGH), (PITCH, Z, X)


def factor(matrix: Matrix) -> Matrix:
    """`L'DL` of a positive definite matrix (`mj_factorM`): `DL`, with 1/D on the diagonal."""
    for k in _LIMBS:
        matrix = matrix | _eliminated(_rows(matrix, THIGH, k), k)
    matrix = matrix | _left_by_legs(matrix)
    for k in _TORSO:
        matrix = matrix | _eliminated(_rows(matrix, X, k), k)
    return matrix


def _rows(m: Matrix, first: int, last: int) -> Matrix:
    return {(i, j): m[i, j] for i in range(first, last + 1) for j in range(i + 1)}


@functools.partial(stage, static_argnums=(1,))
def _eliminated(m: Matrix, k: int) -> Matrix:
    """1/D of the last row `k`, and what is left of the rows before it."""
    inverse = 1 / m[k, k]
    left = {(i, j): m[i, j] - m[k, i] * inverse * m[k, j] for i, j in m if i < k}
    return left | {(k, k): inverse}


@stage
def _left_by_legs(m: Matrix) -> Matrix:
    """What both legs leave of the torso's rows."""
    return {
        (i, j): m[i, j] - both(sum(m[k, i] * m[k, k] * m[k, j] for k in _LIMBS))
        for i, j in m
        if i < THIGH
    }


def solve(factors: Matrix, right: Dofs) -> Dofs:
    """The solution of `L'DL x = right` (`mj_solveM`)."""
    x = list(right)
    for k in _LIMBS:
        x[THIGH : k + 1] = _pulled(_rows(factors, k, k), x[THIGH : k + 1], k)
    x[:THIGH] = _solved_torso(factors, x)
    for k in reversed(_LIMBS):
        x[k] = _pushed(_rows(factors, k, k), x[: k + 1], k)
    return Dofs(*x)


@functools.partial(stage, static_argnums=(2,))
def _pulled(row: Matrix, x: list[Any], k: int) -> list[Any]:
    """The limbs' part up to `k`, with `k` divided by D and taken from those above it."""
    scaled = x[-1] * row[k, k]
    return [*(value - row[k, i] * scaled for i, value in enumerate(x[:-1], THIGH)), scaled]


@stage
def _solved_torso(m: Matrix, x: list[Any]) -> list[Any]:
    """The torso's part of the solution, with the legs' parts divided by D."""
    x0, z0, w0 = (x[i] - both(sum(m[k, i] * x[k] for k in _LIMBS)) for i in range(THIGH))
    w = w0 * m[PITCH, PITCH]
    z = (z0 - m[PITCH, Z] * w) * m[Z, Z]
    x_ = (x0 - m[PITCH, X] * w - m[Z, X] * z) * m[X, X]
    z = z - m[Z, X] * x_ * m[Z, Z]
    return [x_, z, w - (m[PITCH, X] * x_ + m[PITCH, Z] * z) * m[PITCH, PITCH]]


@functools.partial(stage, static_argnums=(2,))
def _pushed(row: Matrix, x: list[Any], k: int) -> Any:
    """The solution at `k`, with that above it known."""
    return x[k] - row[k, k] * sum(row[k, i] * x[i] for i in range(k))


@stage
def multiply(matrix: Matrix, right: Dofs) -> Dofs:
    """`matrix @ right` (`mj_mulM`)."""
    out: list[Any] = [matrix[i, i] * right[i] for i in range(FOOT + 1)]
    for i, j in matrix:
        if j < i:
            crossing = matrix[i, j] * right[i]
            out[i] = out[i] + matrix[i, j] * right[j]
            out[j] = out[j] + (both(crossing) if i >= THIGH > j else crossing)
    return Dofs(*out)
