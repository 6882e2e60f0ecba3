"""One view of the two JAX dialects: twinenv's five-value step and gymnax's six-value one."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from twinenv.env import Environment
from twinenv.ppo.networks import Actions

__all__ = ["Step", "View", "view_of"]


class Step(NamedTuple):
    """One step with automatic reset.

    Attributes:
        obs: of the next state, which belongs to the next episode if this one ended.
        state: the next state.
        reward: `float32`.
        done: the episode ended, for either reason.
        truncated: it was cut short, so its last value must be estimated.
        final_obs: the observation before the reset.
        info: the environment's own outcomes.
    """

    obs: Any
    state: Any
    reward: jax.Array
    done: jax.Array
    truncated: jax.Array
    final_obs: Any
    info: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class View:
    """A single (unbatched) environment as the trainer sees it.

    Attributes:
        env: the environment.
        actions: what its actions are.
        masked: it says which actions are legal.
        foreign: it is not one of ours.
        low: least value of each component of a continuous action; () means -1.
        high: greatest value; () means 1.
    """

    env: Any
    actions: Actions
    masked: bool = False
    foreign: bool = False
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def reset(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        """Observation and state of a new episode."""
        with jax.numpy_dtype_promotion("standard") if self.foreign else nullcontext():
            return self.env.reset(key, params)

    def mask(self, state: Any, params: Any) -> jax.Array | None:
        """`bool[A]` of the actions that are legal in `state`, or None if all always are."""
        return self.env.action_mask(state, params) if self.masked else None

    def step(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> Step:
        """One step; a continuous action is clipped to [-1, 1] and scaled to the limits."""
        # gymnax's own arithmetic relies on implicit promotion.
        with jax.numpy_dtype_promotion("standard") if self.foreign else nullcontext():
            values = self.env.step(key, state, self._scaled(action), params)
        obs, state, reward, *ends, info = values
        done = ends[0] if len(ends) == 1 else ends[0] | ends[1]
        reward = jnp.asarray(reward).astype(jnp.float32)
        return Step(obs, state, reward, done, info["truncated"], info["final_observation"], info)

    def _scaled(self, action: jax.Array) -> jax.Array:
        if self.actions.discrete:
            return action
        action = jnp.clip(action, -1.0, 1.0).reshape(self.actions.shape)
        if not self.low:
            return action
        low, high = (
            jnp.asarray(limit, jnp.float32).reshape(action.shape) for limit in (self.low, self.high)
        )
        return low + 0.5 * (action + 1.0) * (high - low)


def view_of(env: Any, params: Any) -> View:
    """The view of a twinenv environment or of one of gymnax >= 1.0.

    Raises:
        TypeError: it is neither, or has two players.
    """
    if isinstance(env, Environment) and env.num_players == 2:
        raise TypeError(
            f"{env.name} has two players and this trainer trains one; wrap it with "
            "twinenv.wrappers.versus(env, opponent)"
        )
    if isinstance(env, Environment):
        actions = Actions(env.is_discrete, env.num_actions, env.action_shape)
        return View(env, actions, env.masked)
    if not all(hasattr(env, name) for name in ("reset", "step", "action_space")):
        raise TypeError(
            f"cannot train on a {type(env).__name__}; accepted are twinenv environments, "
            "environments of gymnax >= 1.0 and gymnasium.vector.VectorEnv"
        )
    return _view_of_gymnax(env, params)


def _view_of_gymnax(env: Any, params: Any) -> View:
    import numpy as np

    space = env.action_space(params)
    if hasattr(space, "n"):
        return _checked(View(env, Actions(True, int(space.n)), foreign=True), params)
    shape = tuple(space.shape)
    low, high = (
        tuple(np.broadcast_to(np.asarray(limit, np.float32), shape).reshape(-1).tolist())
        for limit in (space.low, space.high)
    )
    if not np.all(np.isfinite(low + high)):
        raise TypeError(f"{env.name} has unbounded actions; rescale them to finite limits first")
    return _checked(
        View(env, Actions(False, len(low), shape), foreign=True, low=low, high=high), params
    )


def _checked(view: View, params: Any) -> View:
    def one_step(key: jax.Array) -> Step:
        state = view.reset(key, params)[1]
        dtype = jnp.int32 if view.actions.discrete else jnp.float32
        return view.step(key, state, jnp.zeros(view.actions.shape, dtype), params)

    try:
        jax.eval_shape(one_step, jax.random.key(0))
    except (KeyError, ValueError) as error:
        raise TypeError(
            f"{type(view.env).__name__}.step does not return what gymnax >= 1.0 does (observation, "
            "state, reward, terminated, truncated, info with final_observation)"
        ) from error
    return view
