"""Ways to choose actions that rollouts and opponents share."""

from __future__ import annotations

import dataclasses
import sys
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
    """Samples from a trained policy, as a traceable function of its weights too.

    Policies of one network are equal as functions, so that their weights can be exchanged without
    compiling again.
    """

    network: Any
    policy: Any = dataclasses.field(compare=False)

    @staticmethod
    def fits(policy: Any) -> bool:
        """Whether `policy` is one of `twinenv.load_policy`."""
        module = sys.modules.get("twinenv.ppo.policy")
        return module is not None and isinstance(policy, module.Policy)

    @staticmethod
    def split(policy: Any) -> tuple[PolicyAct, dict[str, Any]]:
        """The function and the weights of a policy.

        Raises:
            ValueError: the policy has a memory.
        """
        if jax.tree.leaves(policy.initial_carry(1)):
            raise ValueError(
                "this policy has a memory, for which neither rollouts nor opponents "
                "have a place; play it with twinenv.ppo"
            )
        weights = {"params": policy.params, "obs_moments": policy.obs_moments}
        return PolicyAct(policy.network, policy), weights

    def __call__(self, weights: Any, obs: Any, mask: jax.Array, key: jax.Array) -> jax.Array:
        """Actions for `obs: [N, ...]` and `mask: bool[N, A]` under the given weights."""
        from twinenv.ppo.policy import step_function

        spec, num_envs = self.policy.spec, mask.shape[0]
        carry, reset = self.policy.initial_carry(num_envs), jnp.zeros(num_envs, jnp.bool_)
        inputs = (obs, mask if spec.masked else None, carry, reset)
        step = step_function(self.network, spec.actions.shape)
        return step(weights["params"], weights["obs_moments"], inputs, key, False)[0]
