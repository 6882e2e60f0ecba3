"""Ways to choose actions that are shared by rollouts and opponents."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["PolicyAct", "uniform_legal"]


def uniform_legal(mask: jax.Array, key: jax.Array) -> jax.Array:
    """A legal action `int32`, each as likely as the others.

    Args:
        mask: `bool[..., num_actions]`; leading axes draw independently.
        key: key.
    """
    logits = jnp.where(mask, jnp.float32(0), -jnp.inf)
    return jax.random.categorical(key, logits).astype(jnp.int32)


@dataclasses.dataclass(frozen=True)
class PolicyAct:
    """`act` of a trained policy as a function of its weights too, for a batch.

    Policies of one network are equal as functions, so that their weights can be exchanged without
    compiling again.
    """

    network: Any
    policy: Any = dataclasses.field(compare=False)

    @staticmethod
    def fits(policy: Any) -> bool:
        """Whether `policy` is one of `twinenv.load_policy`, or of the same shape."""
        names = {"network", "params", "obs_moments"}
        return dataclasses.is_dataclass(policy) and names <= set(vars(policy))

    @staticmethod
    def split(policy: Any) -> tuple[PolicyAct, dict[str, Any]]:
        """The function and the weights of a policy."""
        weights = {"params": policy.params, "obs_moments": policy.obs_moments}
        return PolicyAct(policy.network, policy), weights

    def __call__(self, weights: Any, obs: Any, mask: jax.Array, key: jax.Array) -> jax.Array:
        """Actions of a batch under the given weights."""
        return dataclasses.replace(self.policy, **weights).act(obs, mask, key)
