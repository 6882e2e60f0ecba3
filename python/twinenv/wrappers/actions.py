"""Actions for algorithms that know no masks."""

# ruff: noqa: D102 - what an overridden method does is said in twinenv.env.Environment.

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from twinenv.wrappers.base import Wrapper, per_player

__all__ = ["LegalActions"]


@dataclasses.dataclass(frozen=True)
class LegalActions(Wrapper):
    """Action i means the (i mod k)-th of the k legal actions, so that every action is legal.

    The action space stays `Discrete(num_actions)`; an action outside it is left to the environment
    inside, which plays its first legal one and flags it.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.env.is_discrete:
            raise ValueError(f"{self.env.name} has continuous actions; all of them are legal")

    @property
    def masked(self) -> bool:
        return False

    def action_mask(self, state: Any, params: Any = None) -> jax.Array:
        return jnp.ones_like(self.env.action_mask(self._inner(state), params))

    def legal_action(
        self, state: Any, action: jax.Array, params: Any
    ) -> tuple[jax.Array, jax.Array]:
        return self.env.legal_action(state, self._action(state, action, params), params)

    def _action(self, state: Any, action: Any, params: Any) -> jax.Array:
        mask = self.env.action_mask(state, params)
        return per_player(self.env, _nth_legal)(mask, self._as_action(action))


def _nth_legal(mask: jax.Array, action: jax.Array) -> jax.Array:
    rank = jnp.cumsum(mask, dtype=jnp.int32) - 1
    wanted = jnp.mod(action, rank[-1] + 1)
    chosen = jnp.argmax(mask & (rank == wanted)).astype(jnp.int32)
    return jnp.where((action >= 0) & (action < mask.shape[0]), chosen, action)
