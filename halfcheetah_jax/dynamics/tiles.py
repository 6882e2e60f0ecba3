"""Many environments: tiles of them, batch last, each tile's steps in one native routine."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from halfcheetah_jax.dynamics.step import Body, Model, step
from halfcheetah_jax.dynamics.tree import Vector
from twinenv.stages import small_call

__all__ = ["TILE", "steps", "tiled_steps"]

TILE = 64
"""Environments in a tile: their numbers stay in the processor's first cache."""


def steps(
    body: Body, control: Vector, model: Model, frame_skip: int, differentiable: bool = False
) -> tuple[Body, Any]:
    """`frame_skip` time steps under one control, and whether the solver always converged."""

    def one(carry: tuple[Body, Any], _: Any) -> tuple[tuple[Body, Any], None]:
        body, converged = carry
        body, now = step(body, control, model, differentiable)
        return (body, converged & now), None

    always = jnp.ones_like(body.qpos[0], jnp.bool_)
    return jax.lax.scan(one, (body, always), None, frame_skip)[0]


def tiled_steps(body: Body, control: Vector, model: Model, frame_skip: int) -> tuple[Body, Any]:
    """`steps` of a batch `[N]`; a number of the model is shared, or `[N]` too."""
    num_envs = body.qpos[0].shape[0]
    tiles = -(-num_envs // TILE)
    leaves, structure = jax.tree.flatten((body, control, model))

    def split(x: jax.Array) -> jax.Array:
        # What fills the last tile up is a copy of a real environment, which converges as it does.
        return jnp.pad(x, (0, tiles * TILE - num_envs), mode="edge").reshape(tiles, TILE)

    def one(mine: list[jax.Array]) -> tuple[Body, Any]:
        parts = iter(mine)
        whole = [next(parts) if leaf.ndim else leaf for leaf in leaves]
        body, control, model = jax.tree.unflatten(structure, whole)
        return _tile(body, control, model, frame_skip)

    done = jax.lax.map(one, [split(leaf) for leaf in leaves if leaf.ndim])
    return jax.tree.map(lambda x: x.reshape(-1)[:num_envs], done)


@functools.partial(small_call, static_argnums=(3,))
def _tile(body: Body, control: Vector, model: Model, frame_skip: int) -> tuple[Body, Any]:
    return steps(body, control, model, frame_skip)
