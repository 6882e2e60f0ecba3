"""Returns and lengths of episodes."""

# ruff: noqa: D102 - what an overridden method does is said in twinenv.env.Environment.

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from twinenv import spaces
from twinenv.wrappers.base import Outcome, Wrapper, WrapperState

if TYPE_CHECKING:
    from gymnax.environments.spaces import Dict

__all__ = ["EpisodeStatistics", "EpisodeStatisticsState"]


@struct.dataclass
class EpisodeStatisticsState(WrapperState):
    """Each a scalar, or with an axis of 2 for two players.

    Attributes:
        episode_returns: float32, sum of the rewards of the episode that is going on.
        episode_lengths: int32, its steps.
        returned_episode_returns: float32, return of the last episode that ended, 0 before.
        returned_episode_lengths: int32, its length, 0 before.
        returned_episode_valid: bool, whether any episode has ended.
    """

    episode_returns: jax.Array
    episode_lengths: jax.Array
    returned_episode_returns: jax.Array
    returned_episode_lengths: jax.Array
    returned_episode_valid: jax.Array


@dataclasses.dataclass(frozen=True)
class EpisodeStatistics(Wrapper):
    """Adds to `info`, under the names of gymnax's LogWrapper, how episodes went.

    `returned_episode` (this step ended an episode), `returned_episode_returns`,
    `returned_episode_lengths` (of the last episode that ended) and `returned_episode_valid`
    (there was one).
    """

    own_state: ClassVar[type[WrapperState] | None] = EpisodeStatisticsState

    def _begin(self, key: jax.Array, obs: Any, env_state: Any, params: Any) -> tuple[Any, Any]:
        shape = (2,) if self.num_players == 2 else ()
        returns, lengths = jnp.zeros(shape, jnp.float32), jnp.zeros(shape, jnp.int32)
        valid = jnp.zeros(shape, jnp.bool_)
        return obs, EpisodeStatisticsState(env_state, returns, lengths, returns, lengths, valid)

    def _after(self, state: Any, outcome: Outcome, ended: jax.Array) -> Outcome:
        obs, env_state, reward, done, info = outcome
        returns, lengths = state.episode_returns + reward, state.episode_lengths + 1
        state = EpisodeStatisticsState(
            env_state=env_state,
            episode_returns=jnp.where(ended, jnp.float32(0), returns),
            episode_lengths=jnp.where(ended, jnp.int32(0), lengths),
            returned_episode_returns=jnp.where(done, returns, state.returned_episode_returns),
            returned_episode_lengths=jnp.where(done, lengths, state.returned_episode_lengths),
            returned_episode_valid=state.returned_episode_valid | done,
        )
        added = ("returns", "lengths", "valid")
        info = info | {
            f"returned_episode_{n}": getattr(state, f"returned_episode_{n}") for n in added
        }
        return obs, state, reward, done, info | {"returned_episode": done}

    def state_space(self, params: Any = None) -> Dict:
        shape = (2,) if self.num_players == 2 else ()
        total = spaces.Box(-jnp.inf, jnp.inf, shape, jnp.float32)
        length = spaces.Box(0, jnp.iinfo(jnp.int32).max, shape, jnp.int32)
        return spaces.Dict(
            {
                "env_state": self.env.state_space(params),
                "episode_returns": total,
                "episode_lengths": length,
                "returned_episode_returns": total,
                "returned_episode_lengths": length,
                "returned_episode_valid": spaces.Box(np.False_, np.True_, shape, jnp.bool_),
            }
        )
