"""Gymnasium's `Env` and `VectorEnv`, and ids for `gymnasium.make`.

Importing this module registers every id under the namespace "twinenv", so that
`gymnasium.make("twinenv.adapters.gymnasium:twinenv/PongJAX-v0")` works without another import.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from twinenv import registry, stages
from twinenv.adapters.convert import to_gymnasium, to_numpy
from twinenv.env import Environment

__all__ = ["GymnasiumEnv", "GymnasiumVectorEnv", "register_gymnasium"]

_METADATA = {"render_modes": ["rgb_array"], "render_fps": 30}


class GymnasiumEnv(gymnasium.Env):
    """One environment; as Gymnasium has it, the user resets it after an episode.

    `info` holds `action_mask` (`int8[num_actions]`, for discrete actions) and, after a step,
    `illegal_action` and the environment's own outcomes.

    Args:
        env: an environment of one player, or an id of `twinenv.list_ids()`.
        params: its parameters; None stands for its own.
        render_mode: None or "rgb_array".
        **options: as for `twinenv.make`, with an id.
    """

    metadata: ClassVar[dict[str, Any]] = _METADATA  # type: ignore[misc]

    def __init__(
        self,
        env: Environment[Any, Any] | str,
        params: Any = None,
        *,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.env, self.params = _made(env, params, options)
        self.render_mode = _render_mode(render_mode)
        self.action_space = to_gymnasium(self.env.action_space(self.params))
        self.observation_space = to_gymnasium(self.env.observation_space(self.params))
        self._key: Any = None
        self._state: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Observation and info of a new episode; without a seed the random stream goes on."""
        super().reset(seed=seed)
        if seed is not None or self._key is None:
            seed = int(self.np_random.integers(2**31)) if seed is None else seed
            self._key = _keys([seed])[0]
        self._key, obs, self._state, mask = _compiled(_reset)(self.env, self._key, self.params)
        return to_numpy(self.observation_space, obs), _scalars(mask)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Observation, reward, terminated, truncated, info.

        Raises:
            gymnasium.error.ResetNeeded: there was no reset.
            TypeError: the action is of a wrong kind, shape or dtype.
        """
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset before the first step")
        outcome = _compiled(_step)(self.env, self._key, self._state, action, self.params)
        self._key, obs, self._state, reward, terminated, truncated, info = outcome
        obs = to_numpy(self.observation_space, obs)
        return obs, float(reward), bool(terminated), bool(truncated), _scalars(info)

    def render(self) -> Any:
        """Picture of the current state, `uint8[height, width, 3]`; None without a render mode."""
        if self.render_mode is None:
            return None
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset before the first picture")
        return self.env.render(self._state, self.params)


class GymnasiumVectorEnv(gymnasium.vector.VectorEnv):
    """Many environments in one compiled step, reset in the step that ends an episode.

    Where an episode ends, observation and `action_mask` are those of the next one, and the old ones
    are in `info["final_obs"]` and `info["final_info"]`, with masks `_final_obs` and `_final_info`.

    Args:
        env: an environment of one player, or an id of `twinenv.list_ids()`.
        num_envs: how many.
        params: their parameters; None stands for the environment's own.
        render_mode: None or "rgb_array".
        **options: as for `twinenv.make`, with an id.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        **_METADATA,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        env: Environment[Any, Any] | str,
        num_envs: int = 1,
        params: Any = None,
        *,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.env, self.params = _made(env, params, options)
        if not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(f"num_envs is {num_envs!r}; accepted is an integer from 1")
        self.num_envs, self.render_mode = num_envs, _render_mode(render_mode)
        self.single_action_space = to_gymnasium(self.env.action_space(self.params))
        self.single_observation_space = to_gymnasium(self.env.observation_space(self.params))
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._keys: Any = None
        self._obs: Any = None
        self._state: Any = None

    def reset(
        self,
        *,
        seed: int | Sequence[int] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Observations and info of new episodes.

        Args:
            seed: environment i is seeded with `seed + i`, or with the i-th of a sequence.
            options: `{"reset_mask": bool[num_envs]}` starts only those episodes afresh.
        """
        seed = int(seed) if isinstance(seed, np.integer) else seed
        super().reset(seed=seed if isinstance(seed, int) else None)
        which = (options or {}).get("reset_mask")
        which = None if which is None else _checked_mask(which, self.num_envs)
        self._seed(seed, which)
        before = self._keys, self._obs, self._state
        keys, obs, state, mask = _compiled(_reset_all)(self.env, self._keys, self.params)
        if which is not None and self._state is not None:
            chosen = jnp.asarray(which)
            keys, obs, state = _compiled(_select)(chosen, (keys, obs, state), before)
            mask = _compiled(_masks)(self.env, state, self.params)
        self._keys, self._obs, self._state = keys, obs, state
        return self._observations(obs), _with_presence(jax.device_get(mask), self._everyone())

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Observations, rewards `float64`, terminations, truncations, info."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset before the first step")
        if not self.env.is_discrete:
            actions = np.asarray(actions, np.float32)
        if len(actions) != self.num_envs:
            raise ValueError(f"got {len(actions)} actions for {self.num_envs} environments")
        args = self._keys, self._state, jnp.asarray(actions), self.params
        outcome = _compiled(_step_all)(self.env, *args)
        self._keys, self._obs, self._state, reward, mask, info = outcome
        mask, info = jax.device_get((mask, info))
        terminated, truncated = info.pop("terminated"), info.pop("truncated")
        infos = self._infos(terminated | truncated, mask, info)
        obs = self._observations(self._obs)
        return obs, np.asarray(reward, np.float64), terminated, truncated, infos

    def render(self) -> Any:
        """A picture of each environment; None without a render mode."""
        if self.render_mode is None:
            return None
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset before the first picture")
        states = jax.device_get(self._state)
        each = (jax.tree.map(lambda x, i=i: x[i], states) for i in range(self.num_envs))
        return tuple(self.env.render(state, self.params) for state in each)

    def _seed(self, seed: int | Sequence[int] | None, which: Any) -> None:
        if seed is None and self._keys is not None:
            return
        if seed is None:
            seed = int(self.np_random.integers(2**31))
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"got {len(seeds)} seeds for {self.num_envs} environments")
        keys = _keys(seeds)
        if which is not None and self._keys is not None:
            keys = _compiled(_select)(jnp.asarray(which), keys, self._keys)
        self._keys = keys

    def _everyone(self) -> np.ndarray:
        return np.ones(self.num_envs, np.bool_)

    def _observations(self, obs: Any) -> Any:
        return to_numpy(self.single_observation_space, obs)

    def _infos(self, done: np.ndarray, mask: dict[str, Any], info: dict[str, Any]) -> Any:
        final = to_numpy(self.single_observation_space, info.pop("final_observation"))
        infos = _with_presence(mask, self._everyone()) | _with_presence(info, ~done)
        if done.any():
            final_obs = np.full(self.num_envs, None, object)
            for i in np.flatnonzero(done):
                final_obs[i] = jax.tree.map(lambda x, i=i: x[i], final)
            infos |= {"final_obs": final_obs, "_final_obs": done}
            infos |= {"final_info": _with_presence(info, done), "_final_info": done}
        return infos


def register_gymnasium() -> None:
    """Register every id with `gymnasium.make` and `make_vec`; calling it again is harmless."""
    for env_id in registry.list_ids():
        name = f"twinenv/{env_id}"
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point=f"{__name__}:GymnasiumEnv",
                vector_entry_point=f"{__name__}:GymnasiumVectorEnv",
                kwargs={"env": env_id},
            )


def _made(env: Any, params: Any, options: dict[str, Any]) -> tuple[Environment[Any, Any], Any]:
    if isinstance(env, str):
        env, made = registry.make(env, **options)
        params = made if params is None else params
    elif options:
        raise TypeError(f"options {sorted(options)} are taken only with an id, not an environment")
    if env.num_players != 1:
        raise TypeError(
            f"{env.name} has two players and Gymnasium knows one; use "
            "twinenv.wrappers.versus(env, opponent) or twinenv.adapters.pettingzoo"
        )
    return env, env.resolve(params)


def _render_mode(mode: str | None) -> str | None:
    if mode not in (None, *_METADATA["render_modes"]):  # type: ignore[misc]
        raise ValueError(f'render_mode is {mode!r}; accepted are None and "rgb_array"')
    return mode


def _keys(seeds: Sequence[int]) -> jax.Array:
    words = np.asarray([seed % 2**32 for seed in seeds], np.uint32)
    return jax.vmap(jax.random.key)(words)


def _checked_mask(mask: Any, num_envs: int) -> np.ndarray:
    mask = np.asarray(mask)
    if mask.dtype != np.bool_ or mask.shape != (num_envs,) or not mask.any():
        raise ValueError(
            f"reset_mask is {mask.dtype}{list(mask.shape)}; accepted is bool[{num_envs}] with at "
            "least one true"
        )
    return mask


def _scalars(info: dict[str, Any]) -> dict[str, Any]:
    """Host values; numbers instead of arrays without axes."""
    arrays = jax.device_get(info)
    return jax.tree.map(lambda x: x.item() if np.ndim(x) == 0 else np.array(x), arrays)


def _with_presence(info: dict[str, Any], present: np.ndarray) -> dict[str, Any]:
    """`info` and, for every key, which environments have it, as Gymnasium's vector infos go."""
    return {
        key: v
        for name, value in info.items()
        for key, v in ((name, value), (f"_{name}", present.copy()))
    }


# Compiled once for all views of equal environments.


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    static = () if function is _select else (0,)
    options = stages.cpu_compiler_options()
    return jax.jit(function, static_argnums=static, compiler_options=options)


def _mask(env: Environment[Any, Any], state: Any, params: Any) -> dict[str, jax.Array]:
    if not env.is_discrete:
        return {}
    return {"action_mask": env.action_mask(state, params).astype(jnp.int8)}


def _reset(env: Environment[Any, Any], key: Any, params: Any) -> tuple[Any, Any, Any, Any]:
    key, key_reset = jax.random.split(key)
    obs, state = env.reset(key_reset, params)
    return key, obs, state, _mask(env, state, params)


def _step(env: Environment[Any, Any], key: Any, state: Any, action: Any, params: Any) -> Any:
    key, key_step = jax.random.split(key)
    obs, state, reward, terminated, info = env.step_env(key_step, state, action, params)
    truncated = ~terminated & env.is_truncated(state, params)
    info = _outcomes(info) | _mask(env, state, params)
    return key, obs, state, reward, terminated, truncated, info


def _outcomes(info: dict[str, Any]) -> dict[str, Any]:
    told = ("terminated", "truncated", "discount", "final_observation")
    return {name: value for name, value in info.items() if name not in told}


def _reset_all(env: Environment[Any, Any], keys: Any, params: Any) -> Any:
    return jax.vmap(_reset, (None, 0, None))(env, keys, params)


def _masks(env: Environment[Any, Any], states: Any, params: Any) -> Any:
    return jax.vmap(_mask, (None, 0, None))(env, states, params)


def _step_all(env: Environment[Any, Any], keys: Any, states: Any, actions: Any, params: Any) -> Any:
    def one(key: Any, state: Any, action: Any) -> Any:
        key, key_step = jax.random.split(key)
        obs, state, reward, _, info = env.step(key_step, state, action, params)
        kept = ("terminated", "truncated", "final_observation")
        info = _outcomes(info) | {name: info[name] for name in kept}
        return key, obs, state, reward, _mask(env, state, params), info

    return jax.vmap(one)(keys, states, actions)


def _select(chosen: Any, new: Any, old: Any) -> Any:
    def one(chosen: Any, new: Any, old: Any) -> Any:
        return jax.tree.map(lambda a, b: jnp.where(chosen, a, b), new, old)

    return jax.vmap(one)(chosen, new, old)


register_gymnasium()
