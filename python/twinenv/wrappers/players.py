"""Two-player games as single-agent environments, or as one policy's self-play."""

# ruff: noqa: D102 - what an overridden method does is said in twinenv.env.Environment.

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from twinenv import spaces
from twinenv.env import Environment, check_key
from twinenv.wrappers.base import Outcome, Wrapper, WrapperState
from twinenv.wrappers.opponents import Opponent, as_opponent, with_opponent

if TYPE_CHECKING:
    from gymnax.environments.spaces import Dict

__all__ = ["SelfPlay", "Versus", "VersusState", "merge_seats", "split_seats", "versus"]


def versus(env: Environment[Any, Any], opponent: Any = "random", seat: int | str = 0) -> Versus:
    """A two-player environment as a single-agent one, against an opponent inside it.

    Args:
        env: a two-player environment, wrapped or not.
        opponent: "random" (legal actions), a function `(obs, mask, key) -> action`, a policy of
            `twinenv.load_policy`, or an `Opponent` such as `FrozenPolicy(apply, weights)`.
        seat: the agent's seat, 0 or 1, or "random" for a new one every episode.

    Raises:
        TypeError: the environment has one player, or the opponent is none of these.
        ValueError: there is no such seat.
    """
    return Versus(env, as_opponent(opponent), seat)


@struct.dataclass
class VersusState(WrapperState):
    """State of `Versus`.

    Attributes:
        seat: int32, the agent's seat in this episode.
        opponent_obs: what the opponent sees.
    """

    seat: jax.Array
    opponent_obs: Any


@dataclasses.dataclass(frozen=True)
class Versus(Wrapper):
    """See `versus`.

    `info["seat"]` is the seat that the agent had in the step, `info["illegal_action"]` and
    `info["to_move"]` are the agent's own; the other outcomes are those of the game.
    """

    own_state: ClassVar[type[WrapperState] | None] = VersusState

    opponent: Opponent
    seat: int | str = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.env.num_players != 2:
            raise TypeError(f"{self.env.name} has one player; versus needs a game of two")
        fixed = isinstance(self.seat, int) and self.seat in (0, 1)
        if not fixed and self.seat != "random":
            raise ValueError(f'seat is {self.seat!r}; accepted are 0, 1 and "random"')

    @property
    def num_players(self) -> int:  # type: ignore[override]
        return 1

    @property
    def action_shape(self) -> tuple[int, ...]:
        return self.env.action_shape[1:]

    @property
    def default_params(self) -> Any:
        params, weights = self.env.default_params, self.opponent.weights
        if not jax.tree.leaves(weights):
            return params
        return with_opponent(params, weights)

    def resolve(self, params: Any) -> Any:
        return Environment.resolve(self, params)

    def reset_env(self, key: jax.Array, params: Any = None) -> tuple[Any, Any]:
        return super().reset_env(key, self.resolve(params))

    def _begin(self, key: jax.Array, obs: Any, env_state: Any, params: Any) -> tuple[Any, Any]:
        # Only a random seat needs a draw; without one the game is that of the key itself.
        seat = self._new_seat(jax.random.fold_in(key, 1) if self.seat == "random" else key)
        return _of(seat, obs), self._state(env_state, seat, obs)

    def _state(self, env_state: Any, seat: Any, obs: Any) -> VersusState:
        return VersusState(env_state, jnp.asarray(seat, jnp.int32), _of(1 - seat, obs))

    def _new_seat(self, key: jax.Array) -> Any:
        if isinstance(self.seat, int):
            return self.seat
        return jax.random.bernoulli(key).astype(jnp.int32)

    def _seat(self, state: Any) -> Any:
        return self.seat if isinstance(self.seat, int) else state.seat

    def step(self, key: jax.Array, state: Any, action: Any, params: Any = None) -> Outcome:
        return self._game(self.env.step, key, state, action, params)

    def step_env(self, key: jax.Array, state: Any, action: Any, params: Any = None) -> Outcome:
        return self._game(self.env.step_env, key, state, action, params)

    def _game(
        self, step: Callable[..., Outcome], key: jax.Array, state: Any, action: Any, params: Any
    ) -> Outcome:
        check_key(key)
        self._check_one_state(state)
        params, action, seat = self.resolve(params), self._as_action(action), self._seat(state)
        key_step, key_opponent, key_seat = jax.random.split(key, 3)
        theirs = self._opponent_action(key_opponent, state, seat, params)
        first = jnp.equal(seat, 0)
        actions = jnp.where(first, jnp.stack([action, theirs]), jnp.stack([theirs, action]))
        obs, env_state, reward, done, info = step(key_step, state.env_state, actions, params)
        following = seat
        if self.seat == "random" and step == self.env.step:
            following = jnp.where(done, self._new_seat(key_seat), seat)
        info = info | {
            "seat": jnp.asarray(seat, jnp.int32),
            "final_observation": _of(seat, info["final_observation"]),
            "illegal_action": _of(seat, info["illegal_action"]),
            "to_move": _of(following, info["to_move"]),
        }
        state = self._state(env_state, following, obs)
        return _of(following, obs), state, _of(seat, reward), done, info

    def _opponent_action(self, key: jax.Array, state: Any, seat: Any, params: Any) -> jax.Array:
        mask = _of(1 - seat, self.env.action_mask(state.env_state, params))
        weights = getattr(params, "opponent", ())
        action = self.opponent.act(weights, state.opponent_obs, mask, key)
        return jnp.asarray(action).astype(jnp.int32)

    def legal_action(
        self, state: Any, action: jax.Array, params: Any
    ) -> tuple[jax.Array, jax.Array]:
        return Environment.legal_action(self, state, action, params)

    def get_obs(self, state: Any, params: Any = None, key: Any = None) -> Any:
        return _of(self._seat(state), self.env.get_obs(state.env_state, params, key))

    def action_mask(self, state: Any, params: Any = None) -> jax.Array:
        return _of(self._seat(state), self.env.action_mask(state.env_state, params))

    def state_space(self, params: Any = None) -> Dict:
        return spaces.Dict(
            {
                "env_state": self.env.state_space(params),
                "seat": spaces.Box(0, 1, (), jnp.int32),
                "opponent_obs": self.env.observation_space(params),
            }
        )


def _of(seat: Any, pair: Any) -> Any:
    """One player's part of arrays that have the players along their first axis."""
    if isinstance(seat, int):
        return jax.tree.map(lambda x: x[seat], pair)
    return jax.tree.map(lambda x: jnp.where(seat == 0, x[0], x[1]), pair)


@dataclasses.dataclass(frozen=True)
class SelfPlay(Wrapper):
    """Both seats of a two-player game as a batch of two agents that one policy plays.

    Whatever an agent has gets an axis of 2: besides observation, reward, action and mask also done
    (both seats of a game end together) and, in `info`, `terminated`, `truncated` and `discount`.
    Under `jax.vmap` over games, `merge_seats` makes the two axes `[games, 2]` one batch axis.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.env.num_players != 2:
            raise TypeError(f"{self.env.name} has one player; SelfPlay needs a game of two")

    def _after(self, state: Any, outcome: Outcome, ended: jax.Array) -> Outcome:
        obs, state, reward, done, info = outcome
        both = {name: _both(info[name]) for name in ("terminated", "truncated", "discount")}
        return obs, state, reward, _both(done), info | both


def _both(value: jax.Array) -> jax.Array:
    return jnp.broadcast_to(value, (2,))


def merge_seats(tree: Any) -> Any:
    """Arrays `[games, 2, ...]` as `[2 * games, ...]`, the seats of a game side by side."""
    return jax.tree.map(lambda x: x.reshape(2 * x.shape[0], *x.shape[2:]), tree)


def split_seats(tree: Any) -> Any:
    """The inverse of `merge_seats`."""
    return jax.tree.map(lambda x: x.reshape(x.shape[0] // 2, 2, *x.shape[1:]), tree)
