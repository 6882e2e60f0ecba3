"""The environment's step of the simulation: fast for a batch, under whatever `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from halfcheetah_jax.dynamics.step import Body, Model
from halfcheetah_jax.dynamics.tiles import steps, tiled_steps
from halfcheetah_jax.dynamics.tree import Vector

__all__ = ["advance"]


def advance(
    body: Body, control: Vector, model: Model, frame_skip: int, differentiable: bool = False
) -> tuple[Body, Any]:
    """`frame_skip` time steps of one environment, and whether the solver always converged.

    Under `jax.vmap`, also under several, all environments are stepped as tiles.

    Args:
        body: positions, speeds and the solver's start, scalars.
        control: of the six motors, scalars.
        model: the mechanism, scalars.
        frame_skip: time steps.
        differentiable: take a plain path that can be differentiated; tiles cannot.
    """
    if differentiable:
        return steps(body, control, model, frame_skip, differentiable=True)
    return _single(frame_skip)(body, control, model)


@functools.cache
def _single(frame_skip: int) -> Callable[..., Any]:
    @jax.custom_batching.custom_vmap
    def single(body: Body, control: Vector, model: Model) -> tuple[Body, Any]:
        return steps(body, control, model, frame_skip)

    @single.def_vmap
    def rule(size: int, batched: Any, *args: Any) -> tuple[Any, Any]:
        out = _batch(frame_skip)(*_spread(size, batched, args))
        return out, jax.tree.map(lambda _: True, out)

    return single


@functools.cache
def _batch(frame_skip: int) -> Callable[..., Any]:
    @jax.custom_batching.custom_vmap
    def batch(body: Body, control: Vector, model: Model) -> tuple[Body, Any]:
        return tiled_steps(body, control, model, frame_skip)

    @batch.def_vmap
    def rule(size: int, batched: Any, *args: Any) -> tuple[Any, Any]:
        """A batch of batches is one larger batch."""
        args = _spread(size, batched, args)
        inner = args[0].qpos[0].shape[1]

        def whole(leaf: jax.Array) -> jax.Array:
            if leaf.ndim == 1:  # a number of the model that each outer batch has its own of
                leaf = jnp.broadcast_to(leaf[:, None], (size, inner))
            return leaf.reshape(size * inner) if leaf.ndim else leaf

        out = batch(*jax.tree.map(whole, args))
        out = jax.tree.map(lambda leaf: leaf.reshape(size, inner), out)
        return out, jax.tree.map(lambda _: True, out)

    return batch


def _spread(size: int, batched: Any, args: Any) -> Any:
    """State and control with the batch's axis in front; the model's numbers as they are."""
    body, control, model = args

    def spread(leaf: jax.Array, has_axis: bool) -> jax.Array:
        return leaf if has_axis else jnp.broadcast_to(leaf, (size, *leaf.shape))

    return (*jax.tree.map(spread, (body, control), tuple(batched[:2])), model)
