"""What the verifier needs to compare the HalfCheetah with MuJoCo."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from halfcheetah_jax import situations
from halfcheetah_jax.env import HalfCheetah, make
from halfcheetah_jax.narrator import EVENTS, IMPOSSIBLE, narrate
from halfcheetah_jax.observation import index
from halfcheetah_jax.reference.batch import MujocoBatch
from halfcheetah_jax.scenarios import SCENARIOS
from halfcheetah_jax.state import EnvState
from twinenv import fields
from twinenv.fields import Field
from twinenv.verify.pair import FastSide, Pair, Policy, Reference, Rows, Scenario, Step

__all__ = ["PAIR", "FastCheetah", "HalfCheetahPair"]

_ORDER = "sums in another order, in float64"
_STATE = {
    name: Field(info.doc, "float64", info.shape, atol=info.atol, why=_ORDER, labels=info.labels)
    for name, info in fields.fields_of(EnvState).items()
    if not info.ignored
}
_OUTPUT = {
    "observation": Field(
        "what the agent sees", "float64", (17,), atol=1e-9, why=_ORDER, labels=index(False)
    ),
    "reward": Field(
        "reward of the step", "float32", atol=2e-5, why="both sides round it to float32"
    ),
    "terminated": Field("the episode ended in this step", "bool"),
}
_CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "v5": {},
    "one_time_step": {"frame_skip": 1},
    "changed": {
        "frame_skip": 2,
        "mass": (5.0, 2.0, 1.0, 1.5, 1.2, 1.4, 0.7),
        "damping": (1.0, 0.0, 8.0, 4.0, 2.5, 0.5),
        "gear": (90.0, 100.0, 10.0, 200.0, 30.0, 60.0),
        "friction": 0.9,
        "gravity": 3.7,
        "ctrl_cost_weight": 0.3,
    },
}


class FastCheetah(FastSide):
    """The twin at one configuration in float64, through its public `reset` and `step`."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.env, self.params = make(**options, max_steps_in_episode=math.inf)
        step = jax.vmap(self.env.step, in_axes=(0, 0, 0, None))
        self._step = jax.jit(lambda keys, state, actions: step(keys, state, actions, self.params))
        self._reset = jax.jit(jax.vmap(lambda key: self.env.reset(key, self.params)))

    def reset(self, seed: int, num_envs: int) -> Step:
        """New episodes from a seed."""
        with jax.enable_x64(True):
            obs, state = self._reset(jax.random.split(jax.random.key(seed), num_envs))
            return Step(_dump(state), {"observation": np.asarray(obs)})

    def observe(self, state: Rows) -> np.ndarray:
        """Observations of states."""
        return np.concatenate([state["qpos"][:, 1:], state["qvel"]], axis=1)

    def env_state(self, state: Rows) -> EnvState:
        """The environment's own batched states, of JAX's present floating type."""
        number = jnp.result_type(float)
        count = len(state["qpos"])
        return EnvState(
            jnp.asarray(state["qpos"], number),
            jnp.asarray(state["qvel"], number),
            jnp.zeros((count, 9), number),
            jnp.zeros(count, jnp.int32),
        )

    def start(self, first: Step) -> Rows:
        """The reference's own states."""
        return first.state

    def step(self, state: Rows, actions: np.ndarray, draws: Rows) -> Step:
        """One step of every row."""
        with jax.enable_x64(True):
            keys = jnp.zeros((len(actions), 2), jnp.uint32)
            controls = jnp.asarray(actions, jnp.float32)
            obs, after, reward, terminated, _ = self._step(keys, self.env_state(state), controls)
            output = {"observation": obs, "reward": reward, "terminated": terminated}
            return Step(_dump(after), {name: np.asarray(value) for name, value in output.items()})


def _dump(state: EnvState) -> Rows:
    return {name: np.asarray(getattr(state, name)) for name in _STATE}


class HalfCheetahPair(Pair):
    """HalfCheetah against MuJoCo."""

    name = "halfcheetah_jax"
    env_id = HalfCheetah.name
    schema = _STATE | _OUTPUT
    configurations: ClassVar[Mapping[str, dict[str, Any]]] = _CONFIGURATIONS
    references: ClassVar[Mapping[str, Reference]] = {
        "mujoco": Reference(MujocoBatch, "mujoco 4.0.0", frozenset({"load", "dump"}))
    }
    policies: ClassVar[Mapping[str, Policy]] = situations.POLICIES
    event_names = EVENTS
    quota = 5
    excluded_pairs = IMPOSSIBLE
    num_envs = 128
    horizon = 5

    @functools.cache  # noqa: B019 (one pair lives as long as the process)
    def fast(self, configuration: str) -> FastCheetah:
        return FastCheetah(self.configurations[configuration])

    def states(self, rng: np.random.Generator, num_rows: int, configuration: str) -> Rows:
        found = situations.near_states(rng, num_rows)
        return {"qpos": found.qpos, "qvel": found.qvel}

    def actions(self, rng: np.random.Generator, state: Rows, configuration: str) -> np.ndarray:
        return rng.uniform(-1.2, 1.2, (len(state["qpos"]), 6)).astype(np.float32)

    def scenarios(self) -> tuple[Scenario, ...]:
        return SCENARIOS

    def events(self, state: Rows, actions: np.ndarray, configuration: str) -> Rows:
        return narrate(state, actions)

    def invariants(self) -> Mapping[str, Callable[[Rows, np.ndarray, Step, str], np.ndarray]]:
        def finite(before: Rows, actions: np.ndarray, step: Step, _: str) -> np.ndarray:
            parts = [step.state["qpos"], step.state["qvel"]]
            return np.isfinite(np.concatenate(parts, axis=1)).all(axis=1)

        return {"positions and speeds stay finite": finite}

    def symmetries(self) -> Mapping[str, Callable[[FastSide, Rows, np.ndarray, str], np.ndarray]]:
        def moved(index: int, by: float) -> Callable[..., np.ndarray]:
            def holds(fast: FastSide, state: Rows, actions: np.ndarray, _: str) -> np.ndarray:
                other = state["qpos"].copy()
                other[:, index] += by
                here = fast.step(state, actions, {}).state
                there = fast.step(state | {"qpos": other}, actions, {}).state
                shifted = there["qpos"].copy()
                shifted[:, index] -= by
                gaps = [shifted - here["qpos"], there["qvel"] - here["qvel"]]
                return np.abs(np.concatenate(gaps, axis=1)).max(axis=1) < 1e-7

            return holds

        return {
            "the place along x does not matter": moved(0, 17.0),
            "a full turn does not matter": moved(2, 2 * math.pi),
        }


PAIR = HalfCheetahPair()
