"""HalfCheetah behind the functional API."""

from __future__ import annotations

import dataclasses
import functools
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
from twinenv import fields, spaces, stages
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
    def dear_reset(self) -> bool:  # type: ignore[override]
        """Whether a batch computes resets only where it needs any; no derivative goes through."""
        return not self.differentiable

    @property
    def dtype(self) -> Any:
        """Type of positions and speeds."""
        return jnp.result_type(float)

    @property
    def default_params(self) -> EnvParams:
        return EnvParams()

    def resolve(self, params: EnvParams | None) -> EnvParams:
        if isinstance(params, EnvParams):
            parameters.check_form(params)
        return super().resolve(params)

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
        """The action as it is, which the motors clip and the reward does not.

        One component that is no number stops all motors, as in MuJoCo, and one beyond 1e10 is
        clipped for the reward too; both count as illegal.
        """
        missing = jnp.any(jnp.isnan(action))
        far = jnp.abs(action) > _LARGEST
        played = jnp.where(missing, 0.0, jnp.where(far, jnp.sign(action), action))
        return played, missing | jnp.any(far)

    def initial(self, key: jax.Array, params: EnvParams) -> tuple[jax.Array, EnvState]:
        """Uniform positions, then normal speeds, of all nine degrees of freedom."""
        key_pos, key_vel = jax.random.split(key)
        scale = jnp.asarray(params.reset_noise_scale, self.dtype)
        qpos = scale * jax.random.uniform(key_pos, (9,), self.dtype, -1.0, 1.0)
        qvel = scale * jax.random.normal(key_vel, (9,), self.dtype)
        time = jnp.zeros((), jnp.int32)
        state = EnvState(qpos=qpos, qvel=qvel, qacc_warmstart=jnp.zeros_like(qpos), time=time)
        return self.get_obs(state, params), state

    def transition(
        self, key: jax.Array, state: EnvState, action: jax.Array, params: EnvParams
    ) -> tuple[jax.Array, EnvState, jax.Array, jax.Array, dict[str, Any]]:
        return _transition(self, stages.enabled(), state, action, params)

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
        if np.shape(state.qpos) != (9,):
            raise TypeError(
                f"state.qpos is {list(np.shape(state.qpos))}; accepted is the state of one "
                "environment, [9]"
            )
        return render_frame(np.asarray(state.qpos))


# Compiled by itself, so that a step outside of a program is compiled once. The hints of stages are
# in what is traced, so the switch is part of what a trace is found by.
@functools.partial(jax.jit, static_argnums=(0, 1))
def _transition(
    env: HalfCheetah, hinted: bool, state: EnvState, action: jax.Array, params: EnvParams
) -> tuple[jax.Array, EnvState, jax.Array, jax.Array, dict[str, Any]]:
    action = action.astype(env.dtype)
    model = model_of(params, env.dtype)
    (qpos, qvel, qacc), fit = _fit(state.qpos, state.qvel, state.qacc_warmstart)
    # From x = 0: far from it, float32 could not resolve a step's way.
    start, control = Body(qpos.at[0].set(0.0), qvel, qacc), jnp.where(fit, action, 0.0)
    body, converged = advance(start, control, model, env.frame_skip, env.differentiable)
    (moved, qvel, qacc), sound = _fit(*body)
    qpos = moved.at[0].add(jnp.where(sound, qpos[0], 0.0))
    following = EnvState(qpos=qpos, qvel=qvel, qacc_warmstart=qacc, time=state.time)
    reward, parts = reward_of(moved[0], action, env.frame_skip * model.timestep, params)
    info = {"x_position": qpos[0], "solver_converged": converged, "blew_up": ~(fit & sound)}
    never = jnp.zeros((), jnp.bool_)
    obs = env.get_obs(following, params)
    return obs, following, reward.astype(jnp.float32), never, info | parts


def _fit(*numbers: jax.Array) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """Positions, speeds and accelerations, and whether they were fit; else MuJoCo's first state."""
    fit = jnp.all(jnp.abs(jnp.stack(numbers)) <= _LARGEST)
    return tuple(jnp.where(fit, part, 0.0) for part in numbers), fit


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
        **params: fields of `EnvParams`, such as `ctrl_cost_weight=0.05`; several numbers as a
            tuple, list or array.

    Raises:
        TypeError: an unknown parameter, or one that is no number or not as many as there are
            bodies or limbs.
        ValueError: a parameter out of range.
    """
    known = {f.name for f in dataclasses.fields(EnvParams)}
    if unknown := sorted(set(params) - known):
        raise TypeError(
            f"unknown parameter {unknown[0]!r}; {HalfCheetah.name} takes {sorted(known)}"
        )
    given: dict[str, Any] = {name: _as_given(value) for name, value in params.items()}
    env = HalfCheetah(frame_skip, exclude_current_positions_from_observation, differentiable)
    return env, env.resolve(EnvParams(**given))


def _as_given(value: Any) -> Any:
    """A list or array of numbers as a tuple, which is what may stand in hashable parameters."""
    many = isinstance(value, list | np.ndarray | jax.Array) and np.ndim(value) == 1
    return tuple(value) if many else value
