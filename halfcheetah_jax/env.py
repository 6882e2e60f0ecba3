"""HalfCheetah behind the functional API."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from halfcheetah_jax import params as parameters
from halfcheetah_jax.dynamics import Body, advance
from halfcheetah_jax.observation import observe
from halfcheetah_jax.params import EnvParams, model_of
from halfcheetah_jax.render import render_frame
from halfcheetah_jax.reward import reward_of
from halfcheetah_jax.state import EnvState
from twinenv import fields, spaces
from twinenv.env import Environment

__all__ = ["HalfCheetah", "make"]

_LARGEST = 1e10  # mjMAXVAL


@dataclasses.dataclass(frozen=True)
class HalfCheetah(Environment[EnvState, EnvParams]):
    """Gymnasium's HalfCheetah-v5 on MuJoCo's physics.

    Positions and speeds are float32, or float64 where JAX's x64 is enabled.

    Attributes:
        frame_skip: time steps of 0.01 s in a step.
        exclude_current_positions_from_observation: leave x out of the observation.
        differentiable: step in a way that can be differentiated, and more slowly.
    """

    name: ClassVar[str] = "HalfCheetahJAX-v0"
    state_class: ClassVar[type] = EnvState
    dear_reset: ClassVar[bool] = True

    frame_skip: int = 5
    exclude_current_positions_from_observation: bool = True
    differentiable: bool = False

    def __post_init__(self) -> None:
        if type(self.frame_skip) is not int or self.frame_skip < 1:
            raise ValueError(f"frame_skip is {self.frame_skip!r}; accepted is an integer from 1")
        for name in ("exclude_current_positions_from_observation", "differentiable"):
            if type(value := getattr(self, name)) is not bool:
                raise ValueError(f"{name} is {value!r}; accepted is True or False")

    @property
    def dtype(self) -> Any:
        """Type of positions and speeds."""
        return jnp.result_type(float)

    @property
    def default_params(self) -> EnvParams:
        return EnvParams()

    def check_params(self, params: EnvParams) -> None:
        parameters.check(params)

    @property
    def num_actions(self) -> int:
        return 6

    @property
    def is_discrete(self) -> bool:
        return False

    @property
    def action_shape(self) -> tuple[int, ...]:
        return (6,)

    def legal_action(
        self, state: EnvState, action: jax.Array, params: EnvParams
    ) -> tuple[jax.Array, jax.Array]:
        """The action as it is: the motors clip it, the reward does not; what is no number is 0."""
        odd = ~jnp.isfinite(action)
        return jnp.where(odd, 0.0, action), jnp.any(odd)

    def initial(self, key: jax.Array, params: EnvParams) -> tuple[jax.Array, EnvState]:
        """Uniform positions, then normal speeds, of all nine degrees of freedom."""
        key_pos, key_vel = jax.random.split(key)
        scale = jnp.asarray(params.reset_noise_scale, self.dtype)
        qpos = scale * jax.random.uniform(key_pos, (9,), self.dtype, -1.0, 1.0)
        qvel = scale * jax.random.normal(key_vel, (9,), self.dtype)
        state = EnvState(qpos, qvel, jnp.zeros_like(qpos), jnp.zeros((), jnp.int32))
        return self.get_obs(state, params), state

    def transition(
        self, key: jax.Array, state: EnvState, action: jax.Array, params: EnvParams
    ) -> tuple[jax.Array, EnvState, jax.Array, jax.Array, dict[str, Any]]:
        action = action.astype(self.dtype)
        model = model_of(params, self.dtype)
        # From x = 0: far from it, float32 could not resolve a step's way.
        start = Body(state.qpos.at[0].set(0.0), state.qvel, state.qacc_warmstart)
        body, converged = advance(start, action, model, self.frame_skip, self.differentiable)
        qpos, qvel, qacc = body
        sound = jnp.all(jnp.abs(jnp.concatenate([qpos, qvel, qacc])) <= _LARGEST)
        qpos, qvel, qacc = (jnp.where(sound, part, 0.0) for part in (qpos, qvel, qacc))
        way = qpos[0]
        qpos = qpos.at[0].add(jnp.where(sound, state.qpos[0], 0.0))
        following = EnvState(qpos, qvel, qacc, state.time)
        seconds = self.frame_skip * model.timestep
        reward, parts = reward_of(way, action, seconds, params)
        info = {"x_position": qpos[0], "solver_converged": converged, "blew_up": ~sound}
        obs = self.get_obs(following, params)
        never = jnp.zeros((), jnp.bool_)
        return obs, following, reward.astype(jnp.float32), never, info | parts

    def get_obs(
        self, state: EnvState, params: EnvParams | None = None, key: Any = None
    ) -> jax.Array:
        """Observation `[17]`, or `[18]` with x in front."""
        with_x = not self.exclude_current_positions_from_observation
        return observe(state.qpos, state.qvel, with_x)

    def observation_space(self, params: EnvParams | None = None) -> spaces.Box:
        size = 17 + (not self.exclude_current_positions_from_observation)
        return spaces.Box(-jnp.inf, jnp.inf, (size,), self.dtype)

    def state_space(self, params: EnvParams | None = None) -> spaces.Dict:
        return fields.state_space(EnvState, self.dtype)

    def render(self, state: EnvState, params: EnvParams | None = None) -> np.ndarray:
        self._check_state(state)
        return render_frame(np.asarray(state.qpos))


def make(
    *,
    frame_skip: int = 5,
    exclude_current_positions_from_observation: bool = True,
    differentiable: bool = False,
    **params: Any,
) -> tuple[HalfCheetah, EnvParams]:
    """HalfCheetah and its parameters.

    Args:
        frame_skip: time steps of 0.01 s in a step.
        exclude_current_positions_from_observation: leave x out of the observation.
        differentiable: see `HalfCheetah`.
        **params: fields of `EnvParams`, such as `ctrl_cost_weight=0.05`.

    Raises:
        TypeError: an unknown parameter.
        ValueError: a parameter out of range.
    """
    known = {f.name for f in dataclasses.fields(EnvParams)}
    if unknown := sorted(set(params) - known):
        raise TypeError(
            f"unknown parameter {unknown[0]!r}; {HalfCheetah.name} takes {sorted(known)}"
        )
    values = EnvParams(**params)
    env = HalfCheetah(frame_skip, exclude_current_positions_from_observation, differentiable)
    env.check_params(values)
    return env, values
