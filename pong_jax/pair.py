"""Pong and its references, as the verifier needs them."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from pong_jax import situations
from pong_jax.env import Pong, make
from pong_jax.invariants import INVARIANTS, RELATIONS
from pong_jax.observation import INDEX
from pong_jax.params import EnvParams
from pong_jax.reference import HeaderPong, WheelPong
from pong_jax.reference.narrator import EVENTS, IMPOSSIBLE, narrate
from pong_jax.scenarios import SCENARIOS
from pong_jax.state import EnvState
from twinenv import fields
from twinenv.fields import Field
from twinenv.verify.pair import FastSide, Pair, Policy, Reference, Rows, Scenario, Step

__all__ = ["PAIR", "FastPong", "PongPair"]

_OUTPUT = {
    "observation": Field(
        "what the agent sees",
        "float32",
        shape=(8,),
        labels=INDEX,
        atol=6e-8,
        why="XLA divides by a constant by multiplying with its reciprocal: one unit in the last "
        "place of numbers below 1",
    ),
    "reward": Field("reward of the step", "float32"),
    "terminated": Field("the game ended in this step", "bool"),
}
_STATE = {
    name: dataclasses.replace(info, dtype=info.dtype or "float32")
    for name, info in fields.fields_of(EnvState).items()
    if not info.ignored
}
_FRACTIONS = {
    "paddle_speed": 6.5,
    "ball_initial_speed_x": 9.25,
    "ball_initial_speed_y": 0.75,
    "ball_speed_y_increment": 2.25,
    "ball_max_speed_y": 11.5,
}
# So narrow, with slow paddles and strong spin, that any two rules can meet in one step.
_NARROW_COURT = {
    "width": 80.0,
    "height": 120.0,
    "paddle_height": 30.0,
    "paddle_speed": 4.0,
    "ball_speed_y_increment": 6.0,
    "max_score": 2,
}
_CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "frameskip8": {"frameskip": 8},
    "frameskip1": {"frameskip": 1},
    "frameskip3": {"frameskip": 3, "max_score": 2},
    "one_point": {"frameskip": 8, "max_score": 1},
    "float32": {"frameskip": 8, "number": "float32"},
    "native": {"frameskip": 8, "small_call": True},
    "fractions": {"frameskip": 4, "max_score": 3} | _FRACTIONS,
    "narrow_court": {"frameskip": 16} | _NARROW_COURT,
    "continuous": {"frameskip": 4, "continuous": True},
}
_DISCRETE = tuple(name for name in _CONFIGURATIONS if name != "continuous")


_HEADER_3 = os.environ.get("TWINENV_PUFFER_HEADER", "")


class FastPong(FastSide):
    """The twin at one configuration, through its public `reset` and `step`, with no time limit."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        env, params = make(**options, max_steps_in_episode=math.inf)
        self.options = options
        self.env: Pong = env
        self.params: EnvParams = params
        step = jax.vmap(env.step, in_axes=(0, 0, 0, None))
        self._step = jax.jit(lambda keys, state, actions: step(keys, state, actions, params))
        self._reset = jax.jit(jax.vmap(lambda key: env.reset(key, params)))
        self._observe = jax.jit(jax.vmap(lambda state: env.get_obs(state, params)))

    def reset(self, seed: int, num_envs: int) -> Step:
        """New games from a seed."""
        obs, state = self._reset(jax.random.split(jax.random.key(seed), num_envs))
        return Step(_dump(state), {"observation": np.asarray(obs)})

    def observe(self, state: Rows) -> np.ndarray:
        """Observations of states."""
        return np.asarray(self._observe(self.env_state(state)))

    def env_state(self, state: Rows) -> EnvState:
        """The environment's own batched states."""
        return _load(state, self.env.dtype)

    def start(self, first: Step) -> Rows:
        """The reference's own states, or the first serve that its draws tell."""
        if first.state:
            return first.state
        bits = first.draws["serve_bit"]
        opening = situations.opening(self.params, len(bits))
        vy = np.where(bits == 1, 0, -self.params.ball_initial_speed_y)
        return opening | {"ball_vy": vy.astype(np.float32)}

    def step(self, state: Rows, actions: np.ndarray, draws: Rows) -> Step:
        """One step; serve bits in `draws` take the place of the state's own stream."""
        if "serve_bit" in draws:
            state = state | {"rng": situations.SEED_OF_BIT[draws["serve_bit"]]}
        loaded = self.env_state(state)
        keys = jnp.zeros((len(actions), 2), jnp.uint32)
        obs, after, reward, terminated, _ = self._step(keys, loaded, self._as_action(actions))
        output = {"observation": obs, "reward": reward, "terminated": terminated}
        return Step(_dump(after), {name: np.asarray(value) for name, value in output.items()})

    def _as_action(self, actions: np.ndarray) -> jax.Array:
        if self.env.continuous:
            return jnp.asarray(actions, jnp.float32).reshape(-1, 1)
        return jnp.asarray(actions, jnp.int32)


def _header_3() -> dict[str, Reference]:
    """The header of PufferLib 3 that the user points to: it alone judges continuous play."""
    if not _HEADER_3:
        return {}
    opened = functools.partial(HeaderPong, header=_HEADER_3)
    return {"header3": Reference(opened, "pong.h of the user", frozenset({"load", "dump"}))}


class PongPair(Pair):
    """Pong against PufferLib 2.0.2: its wheel, and its header with states that can be set."""

    name = "pong_jax"
    env_id = Pong.name
    schema = _STATE | _OUTPUT
    configurations: ClassVar[Mapping[str, dict[str, Any]]] = _CONFIGURATIONS
    references: ClassVar[Mapping[str, Reference]] = {
        "wheel": Reference(WheelPong, "pufferlib 2.0.2", frozenset({"draws"}), _DISCRETE),
        "header": Reference(HeaderPong, "pufferlib 2.0.2", frozenset({"load", "dump"}), _DISCRETE),
        **_header_3(),
    }
    policies: ClassVar[Mapping[str, Policy]] = situations.POLICIES
    event_names = EVENTS
    quota = 5
    excluded_pairs = IMPOSSIBLE
    unjudged: ClassVar[Mapping[str, str]] = {
        "continuous": "PufferLib 2.0.2 has no continuous play; TWINENV_PUFFER_HEADER may name the "
        "pong.h of a version that has"
    }

    @functools.cache  # noqa: B019 (one pair lives as long as the process)
    def fast(self, configuration: str) -> FastPong:
        return FastPong(self.configurations[configuration])

    def states(self, rng: np.random.Generator, num_rows: int, configuration: str) -> Rows:
        return situations.random_states(rng, num_rows, self.fast(configuration).params)

    def actions(self, rng: np.random.Generator, state: Rows, configuration: str) -> np.ndarray:
        if self.fast(configuration).env.continuous:
            return rng.uniform(-1, 1, len(state["rng"])).astype(np.float32)
        return rng.integers(0, 3, len(state["rng"]), dtype=np.int32)

    def scenarios(self) -> tuple[Scenario, ...]:
        return SCENARIOS

    def events(self, state: Rows, actions: np.ndarray, configuration: str) -> Rows:
        options = self.configurations[configuration]
        header = {"header": _HEADER_3} if options.get("continuous") else {}
        return narrate(state, actions, options | header)

    def invariants(self) -> Mapping[str, Callable[[Rows, np.ndarray, Step, str], np.ndarray]]:
        def at(check: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
            return lambda before, actions, step, configuration: check(
                before, actions, step, self.fast(configuration)
            )

        return {name: at(check) for name, check in INVARIANTS.items()}

    def symmetries(self) -> Mapping[str, Callable[[FastSide, Rows, np.ndarray, str], np.ndarray]]:
        def on(relation: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
            return lambda fast, state, actions, configuration: relation(fast, state, actions)

        return {name: on(relation) for name, relation in RELATIONS.items()}


def _dump(state: EnvState) -> Rows:
    return {name: value.astype(_STATE[name].dtype) for name, value in fields.dump(state).items()}


def _load(state: Rows, number: Any) -> EnvState:
    dtypes = {name: info.dtype or number for name, info in fields.fields_of(EnvState).items()}
    values = {name: state[name].astype(dtypes[name]) for name in _STATE}
    return fields.load(EnvState, values, number)


PAIR = PongPair()
