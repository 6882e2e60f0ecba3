"""What the verifier needs to compare the HalfCheetah with MuJoCo."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from halfcheetah_jax import situations
from halfcheetah_jax.env import HalfCheetah, make
from halfcheetah_jax.invariants import INVARIANTS, RELATIONS
from halfcheetah_jax.narrator import EVENTS, IMPOSSIBLE, narrate
from halfcheetah_jax.observation import index
from halfcheetah_jax.params import EnvParams
from halfcheetah_jax.reference.batch import MujocoBatch
from halfcheetah_jax.scenarios import SCENARIOS
from halfcheetah_jax.state import EnvState
from twinenv import fields
from twinenv.fields import Field
from twinenv.verify.pair import (
    Actor,
    FastSide,
    Margin,
    Pair,
    Policy,
    Reference,
    Rows,
    Scenario,
    Step,
)

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

_ON_REFERENCE = 400_000  # steps of training, which MuJoCo takes about a minute for


class FastCheetah(FastSide):
    """The twin at one configuration, through its public `reset` and `step`.

    Args:
        options: of `make`.
        x64: in float64; else as JAX is set up, which is float32 by default.
    """

    def __init__(self, options: Mapping[str, Any], x64: bool = True) -> None:
        env, params = make(**options, max_steps_in_episode=math.inf)
        self.options = options
        self._number = jax.enable_x64 if x64 else contextlib.nullcontext
        self.env: HalfCheetah = env
        self.params: EnvParams = params
        step = jax.vmap(self.env.step, in_axes=(0, 0, 0, None))
        self._step = jax.jit(lambda keys, state, actions: step(keys, state, actions, self.params))
        self._reset = jax.jit(jax.vmap(lambda key: self.env.reset(key, self.params)))

    def reset(self, seed: int, num_envs: int) -> Step:
        """New episodes from a seed."""
        with self._number(True):
            obs, state = self._reset(jax.random.split(jax.random.key(seed), num_envs))
            return Step(_dump(state), {"observation": np.asarray(obs)})

    def observe(self, state: Rows) -> np.ndarray:
        """Observations of states."""
        return np.concatenate([state["qpos"][:, 1:], state["qvel"]], axis=1)

    def env_state(self, state: Rows) -> EnvState:
        """The environment's own batched states, of JAX's present floating type.

        `state` may say where the solver begins (`qacc_warmstart`); else that is at zero.
        """
        number, zeros = jnp.result_type(float), np.zeros_like(state["qpos"])
        names = ("qpos", "qvel", "qacc_warmstart")
        parts = {name: jnp.asarray(state.get(name, zeros), number) for name in names}
        return EnvState(**parts, time=jnp.zeros(len(zeros), jnp.int32))

    def start(self, first: Step) -> Rows:
        """The reference's own states."""
        return first.state

    def step(self, state: Rows, actions: np.ndarray, draws: Rows) -> Step:
        """One step of every row."""
        obs, after, reward, terminated, _ = self._stepped(state, actions)
        output = {"observation": obs, "reward": reward, "terminated": terminated}
        return Step(_dump(after), {name: np.asarray(value) for name, value in output.items()})

    def info(self, state: Rows, actions: np.ndarray) -> Rows:
        """What `env.step` says besides."""
        return {name: np.asarray(rows) for name, rows in self._stepped(state, actions)[4].items()}

    def _stepped(self, state: Rows, actions: np.ndarray) -> tuple[Any, ...]:
        with self._number(True):
            keys = jnp.zeros((len(actions), 2), jnp.uint32)
            controls = jnp.asarray(actions, jnp.float32)
            return self._step(keys, self.env_state(state), controls)


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
    growth = 2.0
    rounding = 0.05
    margin = Margin(
        240.0,
        "a twentieth of the 4,800 at which Gymnasium calls the environment solved; fixed with the "
        "spread of returns on the twin alone in view, about 1,000 among the episodes of a policy",
        seeds=8,
        steps=1_000,
    )
    same_program: ClassVar[Mapping[str, str]] = {"one_time_step": "v5", "changed": "v5"}
    compiled_exam = ("one_time_step", "changed", "v5")

    @functools.cache  # noqa: B019 (one pair lives as long as the process)
    def fast(self, configuration: str) -> FastCheetah:
        return FastCheetah(self.configurations[configuration])

    def as_trained(self, configuration: str) -> FastCheetah:
        return FastCheetah(self.configurations[configuration], x64=False)

    def train(
        self, configuration: str, side: str, seeds: Sequence[int], max_steps: int | None
    ) -> Sequence[Actor]:
        if side != "fast":
            max_steps = min(max_steps or _ON_REFERENCE, _ON_REFERENCE)
        return super().train(configuration, side, seeds, max_steps)

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
        def at(check: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
            return lambda before, actions, step, configuration: check(
                before, actions, step, self.fast(configuration)
            )

        return {name: at(check) for name, check in INVARIANTS.items()}

    def symmetries(self) -> Mapping[str, Callable[[FastSide, Rows, np.ndarray, str], np.ndarray]]:
        def on(relation: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
            return lambda fast, state, actions, configuration: relation(fast, state, actions)

        return {name: on(relation) for name, relation in RELATIONS.items()}


PAIR = HalfCheetahPair()
