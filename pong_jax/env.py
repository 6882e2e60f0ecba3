"""Pong behind the functional API."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from pong_jax import params as parameters
from pong_jax import rules
from pong_jax.limits import observation_limits
from pong_jax.observation import observe
from pong_jax.params import EnvParams, court_of
from pong_jax.render import render_frame
from pong_jax.reward import reward_of
from pong_jax.state import EnvState
from twinenv import fields, spaces
from twinenv.env import Environment, check_key
from twinenv.stages import small_call

__all__ = ["Pong", "make"]


@dataclasses.dataclass(frozen=True)
class Pong(Environment[EnvState, EnvParams]):
    """PufferLib's Ocean Pong.

    Attributes:
        frameskip: frames in a step.
        continuous: the action is a paddle speed in [-1, 1] instead of 0 still, 1 up, 2 down.
        stale_observation: as in PufferLib, the step of a point that does not end the game returns
            the observation of the frame before it; False returns that of the new round.
        number: "int16" or "float32", type of positions and speeds.
        small_call: compile a step into one native routine on the CPU, which runs on one core: up to
            twice as fast in a loop of steps alone. The results are the same.
    """

    name: ClassVar[str] = "PongJAX-v0"
    state_class: ClassVar[type] = EnvState

    frameskip: int = 1
    continuous: bool = False
    stale_observation: bool = True
    number: str = "int16"
    small_call: bool = False

    def __post_init__(self) -> None:
        if type(self.frameskip) is not int or self.frameskip < 1:
            raise ValueError(f"frameskip is {self.frameskip!r}; accepted is an integer from 1")
        for name in ("continuous", "stale_observation", "small_call"):
            if type(value := getattr(self, name)) is not bool:
                raise ValueError(f"{name} is {value!r}; accepted is True or False")
        if self.number not in ("int16", "float32"):
            raise ValueError(f'number is {self.number!r}; accepted is "int16" or "float32"')
        if self.continuous and self.number == "int16":
            raise ValueError('continuous actions leave the integers; use number="float32"')

    @property
    def dtype(self) -> Any:
        """Type of positions and speeds."""
        return jnp.dtype(self.number)

    @property
    def default_params(self) -> EnvParams:
        return EnvParams()

    def check_params(self, params: EnvParams) -> None:
        parameters.check(params, self.dtype)

    @property
    def num_actions(self) -> int:
        return 1 if self.continuous else 3

    @property
    def is_discrete(self) -> bool:
        return not self.continuous

    @property
    def action_shape(self) -> tuple[int, ...]:
        return (1,) if self.continuous else ()

    def step(
        self, key: jax.Array, state: EnvState, action: Any, params: EnvParams | None = None
    ) -> tuple[jax.Array, EnvState, jax.Array, jax.Array, dict[str, Any]]:
        """As `Environment.step`; in one native routine on the CPU if `small_call` says so."""
        if not self.small_call:
            return super().step(key, state, action, params)
        # The checks come first, where their errors can speak of what was given.
        params = self.resolve(params)
        check_key(key)
        self._check_one_state(state)
        return _step(self, state, self._as_action(action), params)

    def initial(self, key: jax.Array, params: EnvParams) -> tuple[jax.Array, EnvState]:
        """A new game whose serves come from a `rand_r` stream seeded by the key."""
        return self._new_game(jax.random.bits(key, (), jnp.uint32), params)

    def auto_reset(
        self, key: jax.Array, state: EnvState, params: EnvParams
    ) -> tuple[jax.Array, EnvState]:
        """A new game that goes on with the same `rand_r` stream, as the reference does."""
        return self._new_game(state.rng, params)

    def _new_game(self, rng: jax.Array, params: EnvParams) -> tuple[jax.Array, EnvState]:
        rng, serve_bit = rules.rand_r_bit(rng)
        rally = rules.serve(serve_bit, court_of(params, self.dtype))
        zero = jnp.zeros((), jnp.int16)
        state = _state(rally, score_l=zero, score_r=zero, rng=rng, time=jnp.zeros((), jnp.int32))
        return observe(rally, params), state

    def transition(
        self, key: jax.Array, state: EnvState, action: jax.Array, params: EnvParams
    ) -> tuple[jax.Array, EnvState, jax.Array, jax.Array, dict[str, Any]]:
        rng, serve_bit = rules.rand_r_bit(state.rng)
        outcome = rules.step(
            _rally(state),
            (state.score_l, state.score_r),
            self._direction(action),
            serve_bit,
            court_of(params, self.dtype),
            params.max_score,
            self.frameskip,
        )
        seen = outcome.seen if self.stale_observation else outcome.rally
        following = _state(
            outcome.rally,
            score_l=outcome.score_l,
            score_r=outcome.score_r,
            rng=jnp.where(outcome.served, rng, state.rng),
            time=state.time,
        )
        info = {"point": outcome.point.astype(jnp.int32), "bounced": outcome.bounced}
        info |= {"score_l": outcome.score_l, "score_r": outcome.score_r}
        return observe(seen, params), following, reward_of(outcome), outcome.game_over, info

    def _direction(self, action: jax.Array) -> jax.Array:
        if self.continuous:
            return action[0]
        up, down = (action == 1).astype(self.dtype), (action == 2).astype(self.dtype)
        return up - down

    def get_obs(
        self, state: EnvState, params: EnvParams | None = None, key: Any = None
    ) -> jax.Array:
        """Observation `float32[8]` of a state (never stale)."""
        return observe(_rally(state), self.resolve(params))

    def observation_space(self, params: EnvParams | None = None) -> spaces.Box:
        low, high = observation_limits(self.resolve(params))
        return spaces.Box(low, high, (8,), jnp.float32)

    def state_space(self, params: EnvParams | None = None) -> spaces.Dict:
        return fields.state_space(EnvState, self.dtype)

    def render(self, state: EnvState, params: EnvParams | None = None) -> np.ndarray:
        self._check_state(state)
        return render_frame(state, self.resolve(params))


@functools.partial(small_call, static_argnums=(0,))
def _step(env: Pong, state: EnvState, action: jax.Array, params: EnvParams) -> Any:
    """`Environment.step` without the caller's key: Pong's chance is in its state.

    What nothing reads would still be computed for a routine of its own, here a key per game.
    """
    return Environment.step(env, jax.random.key(0), state, action, params)


def make(
    *,
    frameskip: int = 1,
    continuous: bool = False,
    stale_observation: bool = True,
    number: str = "",
    small_call: bool = False,
    **params: Any,
) -> tuple[Pong, EnvParams]:
    """Pong and its parameters.

    Args:
        frameskip: frames in a step; PufferLib's default is 1, its training preset 8.
        continuous: paddle speed in [-1, 1] instead of three actions.
        stale_observation: reproduce PufferLib's observation at a point; see `Pong`.
        number: "int16", "float32" or "" for the faster one that is exact for these parameters.
        small_call: see `Pong`; for loops that do nothing but step.
        **params: fields of `EnvParams`, such as `max_score=21`.

    Raises:
        TypeError: an unknown parameter.
        ValueError: a parameter out of range.
    """
    known = {f.name for f in dataclasses.fields(EnvParams)}
    if unknown := sorted(set(params) - known):
        raise TypeError(f"unknown parameter {unknown[0]!r}; PongJAX-v0 takes {sorted(known)}")
    values = EnvParams(**params)
    exact = not continuous and parameters.is_integral(values)
    number = number or ("int16" if exact else "float32")
    env = Pong(frameskip, continuous, stale_observation, number, small_call)
    env.check_params(values)
    return env, values


def _rally(state: EnvState) -> rules.Rally:
    ball = rules.Ball(state.ball_x, state.ball_y, state.ball_vx, state.ball_vy)
    return rules.Rally(state.paddle_yl, state.paddle_yr, ball)


def _state(rally: rules.Rally, **rest: jax.Array) -> EnvState:
    ball = rally.ball
    return EnvState(
        paddle_yl=rally.paddle_yl,
        paddle_yr=rally.paddle_yr,
        ball_x=ball.x,
        ball_y=ball.y,
        ball_vx=ball.vx,
        ball_vy=ball.vy,
        **rest,
    )
