"""The environment's step of the simulation: fast for a batch, under whatever `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from halfcheetah_jax.dynamics.step import OWN_AXES, Body, Model
from halfcheetah_jax.dynamics.tiles import steps, tiled_steps
from twinenv.batching import spread

__all__ = ["advance"]

_AXES = (Body(1, 1, 1), 1, OWN_AXES)  # of what belongs to one environment


def advance(
    body: Body, control: jax.Array, model: Model, frame_skip: int, differentiable: bool = False
) -> tuple[Body, jax.Array]:
    """`frame_skip` time steps of one environment, and whether the solver always converged.

    Under `jax.vmap`, also under several, all environments are stepped as tiles.

    Args:
        body: positions, speeds and the solver's start, `[9]` each.
        control: `[6]`, of the motors.
        model: the mechanism.
        frame_skip: time steps.
        differentiable: take a plain path that can be differentiated; tiles cannot.
    """
    if differentiable:
        return steps(body, control, model, frame_skip, differentiable=True)
    return _single(frame_skip)(body, control, model)


@functools.cache
def _single(frame_skip: int) -> Callable[..., Any]:
    @jax.custom_batching.custom_vmap
    def single(body: Body, control: jax.Array, model: Model) -> tuple[Body, jax.Array]:
        return steps(body, control, model, frame_skip)

    @single.def_vmap
    def rule(size: int, batched: Any, *args: Any) -> tuple[Any, Any]:
        body, control = spread(size, tuple(batched[:2]), args[:2])
        out = _batch(frame_skip)(body, control, args[2])
        return out, jax.tree.map(lambda _: True, out)

    return single


@functools.cache
def _batch(frame_skip: int) -> Callable[..., Any]:
    @jax.custom_batching.custom_vmap
    def batch(body: Body, control: jax.Array, model: Model) -> tuple[Body, jax.Array]:
        return tiled_steps(body, control, model, frame_skip)

    @batch.def_vmap
    def rule(size: int, batched: Any, *args: Any) -> tuple[Any, Any]:
        """A batch of batches is one larger batch."""
        inner = args[1].shape[batched[1]]

        def whole(leaf: jax.Array, has_outer: bool, axes: int) -> jax.Array:
            has_inner = leaf.ndim - has_outer > axes
            if not (has_outer or has_inner):  # a number of the model that all share
                return leaf
            leaf = leaf if has_outer else leaf[None]
            leaf = leaf if has_inner else leaf[:, None]
            own = leaf.shape[2:]
            return jnp.broadcast_to(leaf, (size, inner, *own)).reshape(size * inner, *own)

        out = batch(*jax.tree.map(whole, args, tuple(batched), _AXES))
        out = jax.tree.map(lambda leaf: leaf.reshape(size, inner, *leaf.shape[1:]), out)
        return out, jax.tree.map(lambda _: True, out)

    return batch
