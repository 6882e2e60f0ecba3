"""Gymnasium's own HalfCheetah-v5 as a vector environment."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from halfcheetah_jax.env import make
from halfcheetah_jax.params import EnvParams
from halfcheetah_jax.reference.simulation import Simulation, silenced
from twinenv.references import MissingReferenceError

if TYPE_CHECKING:
    import gymnasium

__all__ = ["vector_env"]

_OPTIONS = ("forward_reward_weight", "ctrl_cost_weight", "reset_noise_scale")
_ENV_OPTIONS = ("frame_skip", "exclude_current_positions_from_observation")
_NUMBERS = ("mass", "damping", "gear", "friction", "gravity")
_TOLERANCE = 1e-8  # MuJoCo's default


def vector_env(num_envs: int, **options: Any) -> gymnasium.vector.VectorEnv:
    """Gymnasium's environments, unedited, with the reset in the step that ends an episode.

    Observations are rounded to float32, which is what policies of the twin see. Numbers of the
    mechanism that differ from the model's are set in the compiled model, which `render` does not
    know of.

    Args:
        num_envs: number of environments.
        **options: those of `halfcheetah_jax.make`; `differentiable` has no meaning here.

    Raises:
        MissingReferenceError: MuJoCo, or what Gymnasium needs beside it, is not installed.
        TypeError: an unknown option.
        ValueError: an option out of range.
    """
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    env, params = make(**options)
    given: dict[str, Any] = {name: getattr(params, name) for name in _OPTIONS}
    given |= {name: getattr(env, name) for name in _ENV_OPTIONS}
    with _installed(), silenced():
        one = functools.partial(_single, given, params, _changed_model(params))
        return SyncVectorEnv([one] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)


def _single(options: dict[str, Any], params: EnvParams, model: Any) -> gymnasium.Env:
    import gymnasium
    from gymnasium.wrappers import TransformObservation

    limit = params.max_steps_in_episode
    steps = -1 if math.isinf(limit) else int(limit)  # -1 is no limit
    # The checker would look at every step anew.
    one = gymnasium.make(
        "HalfCheetah-v5", max_episode_steps=steps, disable_env_checker=True, **options
    )
    if model is not None:
        one.unwrapped.model = model  # type: ignore[attr-defined]
    shape = one.observation_space.shape
    seen = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)
    return TransformObservation(one, lambda obs: obs.astype(np.float32), seen)


def _changed_model(params: EnvParams) -> Any:
    """The compiled model with the numbers of `params`; None if they are Gymnasium's."""
    usual = EnvParams()
    changes = {name: getattr(params, name) for name in _NUMBERS}
    changes = {name: new for name, new in changes.items() if new != getattr(usual, name)}
    return Simulation(_TOLERANCE, changes).model if changes else None


@contextlib.contextmanager
def _installed() -> Iterator[None]:
    from gymnasium.error import DependencyNotInstalled

    try:
        yield
    except (ImportError, DependencyNotInstalled) as error:
        raise MissingReferenceError(f"{error}; run `pip install mujoco==4.0.0 imageio`") from error
