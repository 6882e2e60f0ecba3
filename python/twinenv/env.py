"""The functional environment API that every twin speaks.

    obs, state = env.reset(key, params)
    obs, state, reward, done, info = env.step(key, state, action, params)

A house writes `initial`, `transition` and `get_obs`; the base classes add argument checks, legal
actions, the time limit, the automatic reset and the fixed keys of `info`.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from twinenv import saving
from twinenv.batching import spread

if TYPE_CHECKING:
    from twinenv import spaces

__all__ = ["Environment", "TwoPlayerEnvironment"]

State = TypeVar("State")
Params = TypeVar("Params")
Info = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Environment(abc.ABC, Generic[State, Params]):
    """A single-agent environment; its dataclass fields are its whole (hashable) configuration.

    Environments of equal configuration compare and hash equal, so a jitted function that takes one
    as a static argument is compiled once for all of them.

    Attributes:
        name: canonical id, such as "PongJAX-v0".
        state_class: the flax dataclass of the state; has an int32 `time`.
        num_players: 1 or 2.
        dear_reset: a reset costs so much that a batch should compute one only in steps in which any
            of its episodes ends.
    """

    name: ClassVar[str]
    state_class: ClassVar[type]
    num_players: ClassVar[int] = 1
    dear_reset: ClassVar[bool] = False

    # What a house writes.

    @property
    @abc.abstractmethod
    def default_params(self) -> Params:
        """The parameters of the reference."""

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """Number of discrete actions, or of components of a continuous action."""

    @abc.abstractmethod
    def initial(self, key: jax.Array, params: Params) -> tuple[Any, State]:
        """Observation and state of a new episode."""

    @abc.abstractmethod
    def transition(
        self, key: jax.Array, state: State, action: jax.Array, params: Params
    ) -> tuple[Any, State, jax.Array, jax.Array, Info]:
        """One step with a legal action: observation, state, reward, terminated, own outcomes."""

    @abc.abstractmethod
    def get_obs(self, state: State, params: Params | None = None, key: Any = None) -> Any:
        """Observation of a state."""

    @abc.abstractmethod
    def observation_space(self, params: Params | None = None) -> spaces.Space:
        """Space of gymnax's for an observation."""

    @abc.abstractmethod
    def state_space(self, params: Params | None = None) -> spaces.Dict:
        """Space of gymnax's for a state, derived from its field metadata."""

    def check_params(self, params: Params) -> None:
        """Raise ValueError for parameters out of range; called only with concrete numbers."""

    def auto_reset(self, key: jax.Array, state: State, params: Params) -> tuple[Any, State]:
        """The episode after the one that ended in `state`; override it where `initial` is dear."""
        return self.initial(key, params)

    # What users call.

    @property
    def unwrapped(self) -> Environment[Any, Any]:
        """The environment itself, without the wrappers around it."""
        return self

    @property
    def is_discrete(self) -> bool:
        """Discrete actions (int32) or continuous ones (float32 in [-1, 1])."""
        return True

    @property
    def action_shape(self) -> tuple[int, ...]:
        """Shape of the action of one step; `()` for a discrete one."""
        return ()

    @property
    def masked(self) -> bool:
        """Whether `action_mask` ever forbids an action."""
        return type(self).action_mask is not Environment.action_mask

    def reset(self, key: jax.Array, params: Params | None = None) -> tuple[Any, State]:
        """Start an episode.

        Args:
            key: a typed key or a legacy `uint32[2]` key.
            params: None stands for `default_params`.

        Raises:
            TypeError: `key` is no key, or `params` is of another environment.
            ValueError: a concrete parameter is out of range.
        """
        return self.reset_env(key, params)

    def reset_env(self, key: jax.Array, params: Params | None = None) -> tuple[Any, State]:
        """The same as `reset`."""
        check_key(key)
        return self.initial(key, self.resolve(params))

    def reset_to(
        self, key: jax.Array, state: State, params: Params | None = None
    ) -> tuple[Any, State]:
        """Observation and state of an episode that goes on from a given state.

        Args:
            key: as in `reset`; for what the state leaves open, such as a wrapper's own draws.
            state: a state of the environment itself, also where wrappers surround it.
            params: None stands for `default_params`.
        """
        check_key(key)
        self._check_one_state(state)
        return self.get_obs(state, params, key), state

    def step(
        self, key: jax.Array, state: State, action: Any, params: Params | None = None
    ) -> tuple[Any, State, jax.Array, jax.Array, Info]:
        """One step; an episode that ends is reset in the same step.

        Returns:
            observation and state (of the next episode if this one ended), reward `float32`, done
            `bool`, and `info`: `terminated`, `truncated`, `final_observation` (before the reset),
            `discount` (0 only on a natural end), `illegal_action`, and the environment's outcomes.

        Raises:
            TypeError: an argument is of the wrong kind, shape or dtype.
            ValueError: a concrete parameter is out of range.
        """
        params = self.resolve(params)
        check_key(key)
        key_step, key_reset = jax.random.split(key)
        obs, state, reward, terminated, info = self.step_env(key_step, state, action, params)
        truncated = ~terminated & self.is_truncated(state, params)
        done = terminated | truncated
        info |= {"truncated": truncated, "final_observation": obs}
        restart = _restart_if_any(self) if self.dear_reset else self._restarted
        obs, state = restart(key_reset, done, (obs, state), params)
        return obs, state, reward, done, info

    def _restarted(
        self, key: jax.Array, done: jax.Array, now: tuple[Any, State], params: Params
    ) -> tuple[Any, State]:
        """Observation and state after a step: of a new episode if it is `done`, else `now`."""
        new = self.auto_reset(key, now[1], params)
        return jax.tree.map(lambda new, old: jnp.where(done, new, old), new, now)

    def step_env(
        self, key: jax.Array, state: State, action: Any, params: Params | None = None
    ) -> tuple[Any, State, jax.Array, jax.Array, Info]:
        """`step` without automatic reset and time limit: the fourth value is `terminated`."""
        params = self.resolve(params)
        check_key(key)
        self._check_one_state(state)
        action, illegal = self.legal_action(state, self._as_action(action), params)
        obs, state, reward, terminated, outcomes = self.transition(key, state, action, params)
        state = state.replace(time=state.time + 1)  # type: ignore[attr-defined]
        info = {
            "terminated": terminated,
            "truncated": jnp.zeros_like(terminated),
            "final_observation": obs,
            "discount": 1.0 - terminated.astype(jnp.float32),
            "illegal_action": illegal,
            **outcomes,
        }
        return obs, state, reward, terminated, info

    def observe(
        self, key: jax.Array, state: State, action: Any, params: Params | None = None
    ) -> Any:
        """`get_obs` in gymnax's argument order."""
        return self.get_obs(state, params, key)

    def is_truncated(self, state: State, params: Params | None = None) -> jax.Array:
        """`bool`: whether a state has reached the time limit."""
        return _reached(state.time, self.resolve(params).max_steps_in_episode)  # type: ignore[attr-defined]

    def action_mask(self, state: State, params: Params | None = None) -> jax.Array:
        """`bool[num_actions]`, never all false: which discrete actions are legal."""
        return jnp.ones((self.num_actions,), jnp.bool_)

    def legal_action(
        self, state: State, action: jax.Array, params: Params
    ) -> tuple[jax.Array, jax.Array]:
        """The action that will be played and whether the one asked for was illegal.

        An illegal discrete action becomes the first legal one; a continuous one is clipped, and
        what is not a number becomes 0 and counts as illegal.
        """
        if not self.is_discrete:
            missing = jnp.isnan(action)
            return jnp.where(missing, 0.0, jnp.clip(action, -1.0, 1.0)), jnp.any(missing)
        if not self.masked:
            legal = (action >= 0) & (action < self.num_actions)
            return jnp.where(legal, action, 0), ~legal
        return _first_legal(self.action_mask(state, params), action)

    def action_space(self, params: Params | None = None) -> spaces.Space:
        """Space of gymnax's for an action: `Discrete` int32 or `Box` float32 in [-1, 1]."""
        from twinenv import spaces

        if self.is_discrete:
            return spaces.Discrete(self.num_actions)
        return spaces.Box(-1.0, 1.0, self.action_shape, jnp.float32)

    def render(self, state: State, params: Params | None = None) -> np.ndarray:
        """Picture of one (unbatched) state, `uint8[height, width, 3]`."""
        raise NotImplementedError(f"{self.name} has no picture")

    def save_state(self, state: State) -> bytes:
        """A state, with or without batch axes, as versioned bytes."""
        self._check_state(state)
        return saving.to_bytes(self.name, state)

    def load_state(self, data: bytes) -> State:
        """The inverse of `save_state`.

        Raises:
            ValueError: the bytes are damaged, or hold a state of another environment or version.
        """
        return saving.from_bytes(self.name, self._state_shapes(), data)

    # Shared checks.

    def resolve(self, params: Params | None) -> Params:
        """`params` or the defaults, checked as far as their numbers are concrete."""
        default = self.default_params
        if params is None:
            return default
        if not isinstance(params, type(default)):
            raise TypeError(
                f"{self.name} takes params of {type(default).__module__}.{type(default).__name__}, "
                f"got {type(params).__name__}; start from env.default_params.replace(...)"
            )
        if type(params) is type(default):  # a wrapper's own parameters have more fields
            _check_like("params", params, default, dtypes=False)
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(params)):
            self.check_params(params)
        return params

    def _check_state(self, state: State) -> None:
        if not isinstance(state, self.state_class):
            raise TypeError(
                f"{self.name} takes a state of {self.state_class.__module__}."
                f"{self.state_class.__name__}, got {type(state).__name__}; take it from env.reset"
            )

    def _check_one_state(self, state: State) -> None:
        self._check_state(state)
        if shape := jnp.shape(state.time):  # type: ignore[attr-defined]
            raise TypeError(
                f"state is a batch {list(shape)} of states of {self.name}; give one state per "
                "environment, and use jax.vmap for a batch"
            )
        _check_like("state", state, self._state_shapes())

    def _state_shapes(self) -> State:
        return _shapes(self, jnp.result_type(float))

    def _as_action(self, action: Any) -> jax.Array:
        """The action as an array of the right shape and dtype."""
        kind, dtype = (jnp.integer, jnp.int32) if self.is_discrete else (jnp.floating, jnp.float32)
        shape = self.action_shape
        try:
            # NumPy keeps integers that JAX would wrap round to other actions.
            plain = isinstance(action, int | np.integer | np.ndarray)
            array = np.asarray(action) if plain else jnp.asarray(action)
            given = f"{array.dtype}{list(array.shape)}"
            # Some outside code squeezes the axis of a single component away.
            fits = array.shape == shape or (array.shape == () and shape == (1,))
            if fits and jnp.issubdtype(array.dtype, kind):
                if self.is_discrete and array.dtype != dtype:
                    limits = np.iinfo(array.dtype)
                    array = array.clip(max(limits.min, -1), min(limits.max, 2**31 - 1))
                return jnp.asarray(array.reshape(shape).astype(dtype))
        except (TypeError, ValueError):  # no array at all, such as None or a string
            given = type(action).__name__
        raise TypeError(
            f"{self.name} takes one {jnp.dtype(dtype).name}{list(shape)} action per "
            f"environment, got {given}; for a batch use jax.vmap"
        )


@dataclasses.dataclass(frozen=True)
class TwoPlayerEnvironment(Environment[State, Params]):
    """Two players who decide at the same time.

    `step(key, state, actions, params)` takes `actions: int32[2]` and returns observations with a
    leading axis of 2, `reward: float32[2]` and one `done`. `info["to_move"]: bool[2]` says who has
    more than a pass to decide next; `action_mask` is `bool[2, num_actions]`, and a player with
    nothing to decide has exactly one legal action. `action_space` and `observation_space` are those
    of one player. `twinenv.wrappers.versus` makes it single-agent.
    """

    num_players: ClassVar[int] = 2

    @property
    def action_shape(self) -> tuple[int, ...]:
        """One discrete action each."""
        return (2,)

    @abc.abstractmethod
    def action_mask(self, state: State, params: Params | None = None) -> jax.Array:
        """`bool[2, num_actions]`, never all false for a player."""

    def to_move(self, state: State, params: Params | None = None) -> jax.Array:
        """`bool[2]`: who has more than one legal action."""
        return jnp.sum(self.action_mask(state, params).astype(jnp.int32), axis=-1) > 1

    def legal_action(
        self, state: State, action: jax.Array, params: Params
    ) -> tuple[jax.Array, jax.Array]:
        """Both players' actions as played and `bool[2]`: whose was illegal."""
        return jax.vmap(_first_legal)(self.action_mask(state, params), action)

    def step(
        self, key: jax.Array, state: State, action: Any, params: Params | None = None
    ) -> tuple[Any, State, jax.Array, jax.Array, Info]:
        """As `Environment.step`; `info["to_move"]` speaks of the returned state."""
        obs, state, reward, done, info = super().step(key, state, action, params)
        return obs, state, reward, done, info | {"to_move": self.to_move(state, params)}

    def step_env(
        self, key: jax.Array, state: State, action: Any, params: Params | None = None
    ) -> tuple[Any, State, jax.Array, jax.Array, Info]:
        """As `Environment.step_env`; `info["to_move"]` speaks of the returned state."""
        obs, state, reward, terminated, info = super().step_env(key, state, action, params)
        info["to_move"] = self.to_move(state, params)
        return obs, state, reward, terminated, info


@functools.lru_cache(maxsize=128)
def _restart_if_any(env: Environment[Any, Any]) -> Any:
    """`env._restarted`, which under `jax.vmap` is skipped if no episode of the batch has ended."""
    restart = jax.custom_batching.custom_vmap(env._restarted)

    @restart.def_vmap
    def rule(size: int, batched: Any, *args: Any) -> tuple[Any, Any]:
        *own, params_axes = jax.tree.map(lambda has_axis: 0 if has_axis else None, list(batched))
        done, now = spread(size, tuple(batched[1:3]), args[1:3])
        fresh = jax.vmap(env._restarted, in_axes=(own[0], 0, 0, params_axes), axis_size=size)
        out = jax.lax.cond(jnp.any(done), lambda: fresh(args[0], done, now, args[3]), lambda: now)
        return out, jax.tree.map(lambda _: True, out)

    return restart


@functools.lru_cache(maxsize=128)
def _shapes(env: Environment[Any, Any], floats: Any) -> Any:
    """Shapes and dtypes of a state, which may depend on the default type of floats."""
    key = jax.ShapeDtypeStruct((2,), jnp.uint32)
    return jax.eval_shape(lambda key: env.reset(key)[1], key)


def _check_like(what: str, given: Any, like: Any, dtypes: bool = True) -> None:
    """Raise TypeError unless leaves have the shapes of `like`, and its dtypes or any number's."""
    structure: Any
    leaves, structure = jax.tree_util.tree_flatten_with_path(given, is_leaf=_is_none)
    wanted, needed = jax.tree.flatten(like, is_leaf=_is_none)
    if structure != needed:
        raise TypeError(f"{what} is made up as {structure}; accepted is {needed}")
    for (path, leaf), want in zip(leaves, wanted, strict=True):
        (kind, shape), (good_kind, good_shape) = _kind(leaf), _kind(want)
        same = kind == good_kind or (not dtypes and np.issubdtype(kind, np.number))
        if shape != good_shape or not same:
            accepted = f"{good_kind}{list(good_shape)}" if dtypes or good_shape else "a number"
            raise TypeError(
                f"{what}{jax.tree_util.keystr(path)} is {kind}{list(shape)}; accepted is {accepted}"
            )


def _is_none(leaf: Any) -> bool:
    return leaf is None


def _kind(leaf: Any) -> tuple[Any, tuple[int, ...]]:
    """Dtype and shape of an array or a number."""
    leaf = leaf if hasattr(leaf, "dtype") else np.asarray(leaf)
    return leaf.dtype, leaf.shape


def _first_legal(mask: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
    # A one-hot comparison instead of a gather: it also covers actions out of range.
    legal = jnp.any(mask & (jnp.arange(mask.shape[-1], dtype=jnp.int32) == action))
    return jnp.where(legal, action, jnp.argmax(mask).astype(jnp.int32)), ~legal


def _reached(time: jax.Array, limit: Any) -> jax.Array:
    """Whether `time: int32` has reached a limit that may be an int or a float (such as inf)."""
    if jnp.issubdtype(jnp.result_type(limit), jnp.floating):
        return time.astype(jnp.float32) >= limit
    return time >= limit


def check_key(key: Any) -> None:
    """Raise TypeError unless `key` is one key, typed or legacy."""
    dtype, shape = getattr(key, "dtype", None), getattr(key, "shape", None)
    typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key) and shape == ()
    legacy = dtype == jnp.uint32 and shape == (2,)
    if not typed and not legacy:
        given = f"{dtype}{list(shape)}" if shape is not None else type(key).__name__
        raise TypeError(
            f"key is {given}; give one jax.random.key(seed) (or legacy uint32[2]) per environment, "
            "and use jax.vmap for a batch"
        )
