"""A walk on a line of six cells that shows everything a trainer can get wrong."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from twinenv import Environment, spaces

CELLS = 6


@struct.dataclass
class LineParams:
    max_steps_in_episode: float = 9


@struct.dataclass
class LineState:
    cell: jax.Array
    seen: jax.Array
    time: jax.Array


@dataclasses.dataclass(frozen=True)
class Line(Environment[LineState, LineParams]):
    """0 left, 1 stay, 2 right; there is no left in the first cell. The last cell ends the episode.

    The observation says in which cell the walker is (one-hot) and how long the episode is, so that
    a test can tell from an observation which mask belongs to it and whether an episode has begun.
    """

    name: ClassVar[str] = "Line-test"
    state_class: ClassVar[type] = LineState

    @property
    def default_params(self) -> LineParams:
        return LineParams()

    @property
    def num_actions(self) -> int:
        return 3

    def initial(self, key: jax.Array, params: LineParams) -> tuple[Any, LineState]:
        cell = (jax.random.bits(key, (), jnp.uint32) % jnp.uint32(3)).astype(jnp.int32)
        zero = jnp.zeros((), jnp.int32)
        state = LineState(cell, zero, zero)
        return self.get_obs(state, params), state

    def transition(self, key, state, action, params):
        cell = state.cell + action - 1
        state = state.replace(cell=cell, seen=state.seen + 1)
        goal = cell == CELLS - 1
        reward = jnp.where(goal, jnp.float32(1.0), jnp.float32(-0.1))
        info = {"moved": action != 1, "cell": cell}
        return self.get_obs(state, params), state, reward, goal, info

    def get_obs(self, state: LineState, params: Any = None, key: Any = None) -> jax.Array:
        here = (jnp.arange(CELLS, dtype=jnp.int32) == state.cell).astype(jnp.float32)
        return jnp.append(here, state.seen.astype(jnp.float32))

    def action_mask(self, state: LineState, params: Any = None) -> jax.Array:
        return jnp.stack([state.cell > 0, jnp.bool_(True), jnp.bool_(True)])

    def observation_space(self, params: Any = None) -> spaces.Box:
        return spaces.Box(0.0, 100.0, (CELLS + 1,), jnp.float32)

    def state_space(self, params: Any = None) -> spaces.Dict:
        raise NotImplementedError

    def render(self, state: LineState, params: Any = None) -> np.ndarray:
        picture = np.zeros((8, 8 * CELLS, 3), np.uint8)
        picture[:, 8 * int(state.cell) : 8 * int(state.cell) + 8] = 255
        return picture


@dataclasses.dataclass(frozen=True)
class Glide(Line):
    """The same line walked by a number in [-1, 1]; no masks."""

    name: ClassVar[str] = "Glide-test"

    @property
    def is_discrete(self) -> bool:
        return False

    @property
    def num_actions(self) -> int:
        return 1

    @property
    def action_shape(self) -> tuple[int, ...]:
        return (1,)

    def transition(self, key, state, action, params):
        way = (action[0] > 0.3).astype(jnp.int32) - (action[0] < -0.3).astype(jnp.int32)
        way = jnp.maximum(way, -state.cell)
        return super().transition(key, state, 1 + way, params)

    action_mask = Environment.action_mask


def moved(info: Any) -> tuple[Any, Any]:
    """Moves among all steps."""
    return info["moved"], info["moved"] | True
