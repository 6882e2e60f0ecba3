"""The duel behind the functional API."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from toy_jax.rules.duel import FULL, play
from twinenv import fields, spaces
from twinenv.env import Environment
from twinenv.fields import field


@struct.dataclass
class DuelParams:
    max_steps_in_episode: int = 100


@struct.dataclass
class DuelState:
    hp: jax.Array = field(
        "hit points", "int16", shape=(2,), low=-13, high=FULL, labels=("me", "foe")
    )
    boost: jax.Array = field("charges", "int16", low=0, high=3)
    burned: jax.Array = field("my attacks are halved", "bool", low=0, high=1)
    time: jax.Array = field(
        "rounds", "int32", low=0, ignored=True, why="only the time limit reads it"
    )


@dataclasses.dataclass(frozen=True)
class Duel(Environment):
    name: ClassVar[str] = "ToyDuel-v0"
    state_class: ClassVar[type] = DuelState
    hard: bool = False

    @property
    def default_params(self):
        return DuelParams()

    @property
    def num_actions(self):
        return 3

    def initial(self, key, params):
        boost = jnp.zeros((), jnp.int16)
        hp = jnp.full((2,), FULL, jnp.int16)
        if self.hard:
            hp = hp - jnp.array([8, 0], jnp.int16)
        state = DuelState(hp, boost, jnp.zeros((), jnp.bool_), jnp.zeros((), jnp.int32))
        return observe(state), state

    def transition(self, key, state, action, params):
        roll = jax.random.bits(key, (), jnp.uint32) & jnp.uint32(3)
        hp, boost, burned, reward, over = play(state.hp, state.boost, state.burned, action, roll)
        state = state.replace(hp=hp, boost=boost, burned=burned)
        return observe(state), state, reward, over, {}

    def get_obs(self, state, params=None, key=None):
        return observe(state)

    def observation_space(self, params=None):
        return spaces.Box(-1.0, 3.0, (4,), jnp.float32)

    def state_space(self, params=None):
        return fields.state_space(DuelState)


def observe(state) -> jax.Array:
    values = [state.hp[0], state.hp[1], state.boost, state.burned]
    return jnp.stack([v.astype(jnp.float32) for v in values]) / jnp.float32(16)


def make(hard: bool = False, **params: Any):
    return Duel(hard), DuelParams(**params)
