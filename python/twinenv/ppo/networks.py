"""Policies: flax modules with a small contract, and the two that come with the trainer.

The contract, for networks of your own. A policy is a `flax.linen.Module` with two methods:

* `initial_carry(num_envs)`: the memory of a policy at the start of an episode, a pytree whose
  leaves have `num_envs` rows; `()` for a policy without memory.
* `__call__(obs, mask, carry, reset) -> Output`: `T` steps of `N` environments. `obs` has leading
  axes `[T, N]`; `mask: bool[T, N, A]` or None says which actions are legal; `carry` is the memory
  before the first step; `reset: bool[T, N]` is true where a step is the first of its episode, so
  that the memory must be forgotten before it. `Output` holds the action distribution and
  `value: float32[T, N]`, and the memory after the last step.

The rollout calls it with `T = 1` and the loss with whole columns, so one definition serves both.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from twinenv.ppo.distributions import Distribution, Gaussian, masked

__all__ = ["ACTIVATIONS", "Actions", "MLPPolicy", "Output"]


ACTIVATIONS = {"relu": nn.relu, "tanh": nn.tanh, "swish": nn.swish, "gelu": nn.gelu}
"""Activations by name."""


@dataclasses.dataclass(frozen=True)
class Actions:
    """What an environment's actions are.

    Attributes:
        discrete: int32 from 0 to `size - 1`, or float32 vectors.
        size: number of discrete actions, or of components.
        shape: shape of one continuous action; () for a discrete one.
    """

    discrete: bool
    size: int
    shape: tuple[int, ...] = ()


class Output(NamedTuple):
    """What a policy says of `T` steps of `N` environments.

    Attributes:
        distribution: of the actions, leading axes `[T, N]`.
        value: `float32[T, N]`.
        carry: memory after the last step.
    """

    distribution: Distribution
    value: jax.Array
    carry: Any


class MLPPolicy(nn.Module):
    """Multilayer perceptrons without memory, for discrete and continuous actions.

    Observations may be arrays or pytrees of arrays; they are flattened and concatenated. The
    standard deviation of continuous actions is a parameter that does not depend on the observation.

    Attributes:
        actions: what the environment's actions are.
        hidden: width of each hidden layer.
        activation: a key of `ACTIVATIONS`.
        shared: one trunk for action and value, or one each.
        initial_std: standard deviation of continuous actions before any training.
    """

    actions: Actions
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    shared: bool = True
    initial_std: float = 1.0

    def initial_carry(self, num_envs: int) -> tuple[()]:
        """No memory."""
        return ()

    @nn.compact
    def __call__(self, obs: Any, mask: jax.Array | None, carry: Any, reset: jax.Array) -> Output:
        """See the contract at the head of this module."""
        x = _flat(obs, reset.ndim)
        size = self.actions.size
        if self.shared:
            trunk = self._trunk(x, "trunk")
            heads = _Heads((size, 1), name="heads")(trunk)
            head, value = heads[:, :size], heads[:, size]
        else:
            head = _Heads((size,), name="policy")(self._trunk(x, "actor"))
            value = _Heads((1,), name="value")(self._trunk(x, "critic"))
        value = value.reshape(reset.shape)
        head = head.reshape(*reset.shape, size)
        if self.actions.discrete:
            return Output(masked(head, mask), value, carry)
        first = nn.initializers.constant(math.log(self.initial_std))
        log_std = self.param("log_std", first, (size,), jnp.float32)
        return Output(Gaussian(head, jnp.broadcast_to(log_std, head.shape)), value, carry)

    def _trunk(self, x: jax.Array, name: str) -> jax.Array:
        for index, width in enumerate(self.hidden):
            x = ACTIVATIONS[self.activation](nn.Dense(width, name=f"{name}_{index}")(x))
        return x


class _Heads(nn.Module):
    """Linear heads side by side.

    The kernel is `[out, in]`: XLA:CPU computes the gradient of a narrow `[in, out]` kernel about
    eight times slower.
    """

    sizes: tuple[int, ...]

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        kernel = self.param(
            "kernel", nn.initializers.normal(0.01), (sum(self.sizes), x.shape[-1]), jnp.float32
        )
        bias = self.param("bias", nn.initializers.zeros, (sum(self.sizes),), jnp.float32)
        return jax.lax.dot_general(x, kernel, (((1,), (1,)), ((), ()))) + bias


def _flat(obs: Any, batch_axes: int) -> jax.Array:
    """All leaves as one `float32[rows, features]`: products of two axes are the fast ones."""
    leaves = [leaf.astype(jnp.float32) for leaf in jax.tree.leaves(obs)]
    rows = [leaf.reshape(-1, *leaf.shape[batch_axes:]) for leaf in leaves]
    return jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in rows], axis=-1)
