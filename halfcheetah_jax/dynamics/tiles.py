"""Many environments: tiles of them, batch last, each tile's steps in one native routine."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from halfcheetah_jax.dynamics.step import OWN_AXES, Body, Model, step
from halfcheetah_jax.dynamics.tree import Dofs, Limbs
from twinenv.stages import small_call

__all__ = ["TILE", "steps", "tiled_steps"]

TILE = 64
"""Environments in a tile: their numbers stay in the processor's first caches."""


def steps(
    body: Body, control: jax.Array, model: Model, frame_skip: int, differentiable: bool = False
) -> tuple[Body, jax.Array]:
    """`frame_skip` time steps under one control, and whether the solver always converged.

    Args:
        body: rows `[9, ...]`.
        control: rows `[6, ...]`.
        model: the mechanism.
        frame_skip: time steps.
        differentiable: see `minimise`.
    """
    motors = Limbs.of(control)

    def one(carry: tuple[Body, jax.Array], _: Any) -> tuple[tuple[Body, jax.Array], None]:
        body, converged = carry
        body, now = step(body, motors, model, differentiable)
        return (body, converged & now), None

    always = jnp.ones_like(body.qpos[0], jnp.bool_)
    start = Body(*map(Dofs.of, body)), always
    (body, converged), _ = jax.lax.scan(one, start, None, frame_skip)
    return Body(*(dofs.rows() for dofs in body)), converged


def tiled_steps(
    body: Body, control: jax.Array, model: Model, frame_skip: int
) -> tuple[Body, jax.Array]:
    """`steps` of a batch.

    Args:
        body: `[N, 9]` each.
        control: `[N, 6]`.
        model: numbers that all share, or `[N, ...]` where each environment has its own.
        frame_skip: time steps.
    """
    num_envs = body.qpos.shape[0]
    tiles = -(-num_envs // TILE)

    def split(x: jax.Array) -> jax.Array:
        """`[tiles, ..., TILE]`."""
        # What fills the last tile up is a copy of a real environment, which converges as it does.
        x = jnp.pad(x, [(0, tiles * TILE - num_envs), *[(0, 0)] * (x.ndim - 1)], mode="edge")
        return jnp.moveaxis(x.reshape(tiles, TILE, *x.shape[1:]), 1, -1)

    def merged(x: jax.Array) -> jax.Array:
        x = jnp.moveaxis(x, -1, 1)
        return x.reshape(tiles * TILE, *x.shape[2:])[:num_envs]

    is_own = [x.ndim > axes for x, axes in zip(model, OWN_AXES, strict=True)]
    shared = [x[..., None] for x, own in zip(model, is_own, strict=True) if not own]

    def one(mine: Any) -> tuple[Body, jax.Array]:
        body, control, numbers = mine
        sources = {True: iter(numbers), False: iter(shared)}
        return _tile(body, control, Model(*(next(sources[own]) for own in is_own)), frame_skip)

    each = body, control, [x for x, own in zip(model, is_own, strict=True) if own]
    return jax.tree.map(merged, jax.lax.map(one, jax.tree.map(split, each)))


@functools.partial(small_call, static_argnums=(3,))
def _tile(body: Body, control: jax.Array, model: Model, frame_skip: int) -> tuple[Body, jax.Array]:
    return steps(body, control, model, frame_skip)
