"""The kinematic tree: seven bodies, nine degrees of freedom, and what hangs on what.

Bodies: torso, then thigh, shin and foot of the back leg, then of the front leg. Degrees of freedom:
the torso's x, z and pitch, then one hinge per limb body, so that dof `d >= 3` turns body `d - 2`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ANCESTORS", "NUM_BODIES", "NUM_DOFS", "PARENT", "Matrix", "Vector"]

NUM_BODIES, NUM_DOFS = 7, 9

PARENT = (-1, 0, 1, 2, 0, 4, 5)
"""Parent of each body; -1 is the world."""

_BEFORE = (-1, 0, 1, 2, 3, 4, 2, 6, 7)


def _ancestors(dof: int) -> tuple[int, ...]:
    return () if dof == 0 else (*_ancestors(_BEFORE[dof]), _BEFORE[dof])


ANCESTORS = tuple(_ancestors(dof) for dof in range(NUM_DOFS))
"""Degrees of freedom above each one, from the root on: where a matrix of the tree is not zero."""

Vector = tuple[Any, ...]
"""One array per degree of freedom."""

Matrix = dict[tuple[int, int], Any]
"""Symmetric matrix with the tree's sparsity: `[i, j]` for `j` in `ANCESTORS[i]` and `j = i`."""
