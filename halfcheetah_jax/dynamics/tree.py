"""The kinematic tree: a torso with two legs of the same make, each a chain of thigh, shin and foot.

What belongs to the torso is an array `[...]`; what belongs to legs is one array `[2, ...]`, of the
back and the front leg. So everything is written once for both legs. Outside this package rows are
in MuJoCo's order: the torso's first, then the back leg's, then the front leg's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

__all__ = [
    "FOOT",
    "NUM_BODIES",
    "NUM_DOFS",
    "PITCH",
    "SHIN",
    "THIGH",
    "Bodies",
    "Dofs",
    "Limbs",
    "Matrix",
    "X",
    "Z",
    "both",
]

NUM_BODIES, NUM_DOFS = 7, 9

X, Z, PITCH, THIGH, SHIN, FOOT = range(6)
"""Places of the degrees of freedom in the chain from the root to a foot."""

Matrix = dict[tuple[int, int], Any]
"""Symmetric matrix with the tree's sparsity: `[i, j]` for places `j <= i` of the chain.

Rows of the legs, from `THIGH` on, are `[2, ...]`; between the two legs all is zero.
"""


class Limbs(NamedTuple):
    """One array `[2, ...]` per limb of the legs."""

    thigh: Any
    shin: Any
    foot: Any

    @classmethod
    def of(cls, rows: Any) -> Limbs:
        """From rows `[6, ...]` in MuJoCo's order."""
        legs = rows.reshape(2, 3, *rows.shape[1:])
        return cls(*(legs[:, limb] for limb in range(3)))


class Dofs(NamedTuple):
    """One number per degree of freedom, in the order of the chain."""

    x: Any
    z: Any
    pitch: Any
    thigh: Any
    shin: Any
    foot: Any

    @classmethod
    def of(cls, rows: jax.Array) -> Dofs:
        """From rows `[9, ...]` in MuJoCo's order."""
        return cls(rows[0], rows[1], rows[2], *Limbs.of(rows[3:]))

    @property
    def limbs(self) -> Limbs:
        """Those of the legs."""
        return Limbs(*self[3:])

    def rows(self) -> jax.Array:
        """Rows `[9, ...]` in MuJoCo's order."""
        legs = jnp.stack(self.limbs, axis=1)
        return jnp.concatenate([jnp.stack(self[:3]), legs.reshape(6, *legs.shape[2:])])


class Bodies(NamedTuple):
    """Something of each body; the legs' is of arrays `[2, ...]`."""

    torso: Any
    thigh: Any
    shin: Any
    foot: Any

    @classmethod
    def of(cls, rows: Any) -> Bodies:
        """From rows `[7, ...]` in MuJoCo's order."""
        return cls(rows[0], *Limbs.of(rows[1:]))


def both(legs: Any) -> Any:
    """What both legs do to the torso: the sum over the leading axis of every leaf."""
    return jax.tree.map(lambda leg: leg[0] + leg[1], legs)
