"""Small environments that use every part of the API: masks, draws, dictionaries, two players."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from twinenv import Environment, TwoPlayerEnvironment, fields, spaces
from twinenv.fields import field


def one_of_three(key: jax.Array) -> jax.Array:
    """0, 1 or 2; compiles faster than `jax.random.randint`."""
    return (jax.random.bits(key, (), jnp.uint32) % jnp.uint32(3)).astype(jnp.int32)


def _check_steps(params: Any) -> None:
    steps = params.max_steps_in_episode
    if not steps >= 1:
        raise ValueError(f"max_steps_in_episode is {steps}; accepted is at least 1")


@struct.dataclass
class CorridorParams:
    slip: float = 0.2
    max_steps_in_episode: float = 30


@struct.dataclass
class CorridorState:
    position: jax.Array = field("cell, the goal is the last one", "int32", low=0, high=5)
    visited: jax.Array = field("cells seen", "bool", shape=(6,), low=0, high=1)
    time: jax.Array = field("steps", "int32", low=0, unit="steps")


@dataclasses.dataclass(frozen=True)
class Corridor(Environment[CorridorState, CorridorParams]):
    """Walk to the last of six cells: 0 left, 1 stay, 2 right; the walls forbid left or right."""

    name: ClassVar[str] = "Corridor-toy"
    state_class: ClassVar[type] = CorridorState

    bonus: float = 1.0

    @property
    def default_params(self) -> CorridorParams:
        return CorridorParams()

    @property
    def num_actions(self) -> int:
        return 3

    def check_params(self, params: CorridorParams) -> None:
        _check_steps(params)
        if not 0 <= params.slip <= 1:
            raise ValueError(f"slip is {params.slip}; accepted is a probability from 0 to 1")

    def initial(self, key: jax.Array, params: CorridorParams) -> tuple[Any, CorridorState]:
        position = one_of_three(key)
        visited = jnp.arange(6, dtype=jnp.int32) == position
        state = CorridorState(position, visited, jnp.zeros((), jnp.int32))
        return self.get_obs(state, params), state

    def transition(
        self, key: jax.Array, state: CorridorState, action: jax.Array, params: CorridorParams
    ) -> tuple[Any, CorridorState, jax.Array, jax.Array, dict[str, Any]]:
        slipped = jax.random.uniform(key, dtype=jnp.float32) < params.slip
        position = state.position + jnp.where(slipped, 0, action - 1)
        visited = state.visited | (jnp.arange(6, dtype=jnp.int32) == position)
        goal = position == 5
        reward = jnp.where(goal, jnp.float32(self.bonus), jnp.float32(-0.01))
        state = state.replace(position=position, visited=visited)
        return self.get_obs(state, params), state, reward, goal, {"slipped": slipped}

    def get_obs(self, state: CorridorState, params: Any = None, key: Any = None) -> Any:
        return {
            "where": state.position,
            "seen": (state.visited.astype(jnp.float32), state.position.astype(jnp.float32) / 5.0),
        }

    def action_mask(self, state: CorridorState, params: Any = None) -> jax.Array:
        return jnp.stack([state.position > 0, state.position >= 0, state.position < 5])

    def observation_space(self, params: Any = None) -> spaces.Dict:
        seen = spaces.Tuple(
            [spaces.Box(0.0, 1.0, (6,), jnp.float32), spaces.Box(0.0, 1.0, (), jnp.float32)]
        )
        return spaces.Dict({"where": spaces.Discrete(6), "seen": seen})

    def state_space(self, params: Any = None) -> spaces.Dict:
        return fields.state_space(CorridorState)

    def render(self, state: CorridorState, params: Any = None) -> np.ndarray:
        picture = np.zeros((4, 24, 3), np.uint8)
        column = 4 * int(state.position)
        picture[:, column : column + 4] = 255
        return picture


@struct.dataclass
class DuelParams:
    max_score: int = 3
    max_steps_in_episode: float = 20


@struct.dataclass
class DuelState:
    scores: jax.Array = field("rounds won", "int32", shape=(2,), low=0, high=100)
    resting: jax.Array = field("lost the last round", "bool", shape=(2,), low=0, high=1)
    last: jax.Array = field("what each played last", "int32", shape=(2,), low=0, high=3)
    time: jax.Array = field("steps", "int32", low=0, unit="steps")


@dataclasses.dataclass(frozen=True)
class Duel(TwoPlayerEnvironment[DuelState, DuelParams]):
    """Rock 0, paper 1, scissors 2, pass 3: who loses a round must pass in the next.

    Nobody may pass otherwise; a pass loses nothing and wins nothing.
    """

    name: ClassVar[str] = "Duel-toy"
    state_class: ClassVar[type] = DuelState

    @property
    def default_params(self) -> DuelParams:
        return DuelParams()

    @property
    def num_actions(self) -> int:
        return 4

    def check_params(self, params: DuelParams) -> None:
        _check_steps(params)

    def initial(self, key: jax.Array, params: DuelParams) -> tuple[Any, DuelState]:
        state = DuelState(
            scores=jnp.zeros((2,), jnp.int32),
            # One of three games begins with a rest, so that episodes differ.
            resting=one_of_three(key) == jnp.arange(2, dtype=jnp.int32),
            last=jnp.full((2,), 3, jnp.int32),
            time=jnp.zeros((), jnp.int32),
        )
        return self.get_obs(state, params), state

    def transition(
        self, key: jax.Array, state: DuelState, action: jax.Array, params: DuelParams
    ) -> tuple[Any, DuelState, jax.Array, jax.Array, dict[str, Any]]:
        both = jnp.all(action < 3)
        won = both & (jnp.mod(action - action[::-1], 3) == 1)
        state = state.replace(
            scores=state.scores + won.astype(jnp.int32), resting=won[::-1], last=action
        )
        reward = won.astype(jnp.float32) - won[::-1].astype(jnp.float32)
        over = jnp.any(state.scores >= params.max_score)
        return self.get_obs(state, params), state, reward, over, {"won": won}

    def get_obs(self, state: DuelState, params: Any = None, key: Any = None) -> Any:
        scores = state.scores.astype(jnp.float32)
        return {
            "scores": jnp.stack([scores, scores[::-1]]),
            "theirs": state.last[::-1],
        }

    def action_mask(self, state: DuelState, params: Any = None) -> jax.Array:
        return state.resting[:, None] == jnp.asarray([False, False, False, True])

    def observation_space(self, params: Any = None) -> spaces.Dict:
        scores = spaces.Box(0.0, 100.0, (2,), jnp.float32)
        return spaces.Dict({"scores": scores, "theirs": spaces.Discrete(4)})

    def state_space(self, params: Any = None) -> spaces.Dict:
        return fields.state_space(DuelState)

    def render(self, state: DuelState, params: Any = None) -> np.ndarray:
        picture = np.full((8, 16, 3), 32, np.uint8)
        for seat, score in enumerate(np.asarray(state.scores)):
            picture[: min(int(score), 8), 8 * seat : 8 * seat + 8, seat] = 255
        return picture


def first_legal(obs: Any, mask: jax.Array, key: jax.Array) -> jax.Array:
    """A scripted player."""
    return jnp.argmax(mask).astype(jnp.int32)


def linear(weights: Any, obs: Any, mask: jax.Array, key: jax.Array) -> jax.Array:
    """A policy with weights `{"scores": float32[2, 4], "bias": float32[4]}`."""
    logits = obs["scores"] @ weights["scores"] + weights["bias"]
    return jnp.argmax(jnp.where(mask, logits, -jnp.inf)).astype(jnp.int32)


def trained(env, seed: int, hidden=(8,)):
    """An untrained policy of the trainer's for one seat of a game."""
    from twinenv.ppo.networks import Actions, MLPPolicy
    from twinenv.ppo.policy import Policy
    from twinenv.ppo.runs import Spec, leaf_shapes

    obs = jnp.zeros(env.observation_space().shape, jnp.float32)
    actions = Actions(True, env.num_actions)
    network = MLPPolicy(actions, hidden)
    mask, reset = jnp.ones((1, 1, env.num_actions), jnp.bool_), jnp.ones((1, 1), jnp.bool_)
    weights = network.init(jax.random.key(seed), obs[None, None], mask, (), reset)
    return Policy(network, weights, None, Spec(leaf_shapes(obs), actions, True))
