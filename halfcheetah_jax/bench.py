"""The HalfCheetah against MuJoCo, Gymnasium, MJX and Brax: steps per second.

A step is one of the environment: five time steps of physics under random actions from a table,
with observation, reward, and reset at the time limit, each written to memory and added up, so that
the compiler can leave none out. The peers in `peers.py` do less where they have less.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from halfcheetah_jax.dynamics import Body, tiled_steps
from halfcheetah_jax.env import make
from halfcheetah_jax.params import model_of
from halfcheetah_jax.peers import CHECKED, Loop, checked_states, given_of, numbers
from halfcheetah_jax.presets import PRESETS
from halfcheetah_jax.state import EnvState
from twinenv.bench.benchmark import Benchmark, Facts
from twinenv.bench.ppo import TrainingSide
from twinenv.ppo.engine import JaxEngine
from twinenv.ppo.host import HostEngine
from twinenv.ppo.trainer import Task
from twinenv.versions import versions

__all__ = ["BENCHMARKS", "GymnasiumPpoSide", "JaxSide", "TiledSide", "TwinPpoSide"]


class JaxSide:
    """The twin: `jax.vmap(env.step)` in a loop, in one compiled call.

    Args:
        num_envs: environments.
        number: "float32" or "float64", for which JAX's x64 is enabled.
        steps: of each environment in a round.
        devices: over which the environments are spread.
    """

    def __init__(
        self,
        num_envs: int,
        number: str = "float32",
        steps: int = 1_000,
        devices: int = 1,
        **peer: Any,
    ) -> None:
        jax.config.update("jax_enable_x64", number == "float64")
        self._num_envs, self._steps = num_envs, steps
        self._env, self._params = make()
        keys = jax.random.split(jax.random.key(0), num_envs)
        state = jax.jit(jax.vmap(lambda key: self._env.reset(key, self._params)))(keys)[1]
        self._loop = Loop(self._advance, self._carry(state), devices)
        self.facts = self._facts(keys, state)

    def _facts(self, keys: jax.Array, state: EnvState) -> Facts:
        step = jax.jit(jax.vmap(self._env.step, (0, 0, 0, None)))
        actions = jnp.zeros((self._num_envs, 6), jnp.float32)
        lowered = step.lower(keys, state, actions, self._params).as_text()
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(state)) // self._num_envs
        return Facts(
            versions("jax", "jaxlib"),
            size,
            self._loop.compile_cpu_s,
            len(lowered.splitlines()),
            device=jax.devices()[0].device_kind,
        )

    def _carry(self, state: EnvState) -> Any:
        """Keys, state, the last step's outputs, and what is added up."""
        keys = jax.random.split(jax.random.key(1), self._num_envs)
        obs = jax.vmap(lambda state: self._env.get_obs(state, self._params))(state)
        reward, total = (jnp.zeros(self._num_envs, jnp.float32) for _ in range(2))
        return keys, state, (obs, reward, reward > 0), total

    def _advance(self, carry: Any, actions: jax.Array) -> Any:
        keys, state, _, total = carry
        step = jax.vmap(self._env.step, (0, 0, 0, None))
        obs, state, reward, done, _ = step(keys, state, actions, self._params)
        weights = jnp.arange(1, obs.shape[1] + 1, dtype=obs.dtype)
        total += reward + done.astype(jnp.float32) + (obs @ weights).astype(jnp.float32)
        return keys, state, (obs, reward, done), total

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        if "sizes" in given:
            return self._sizes()
        places = (np.resize(given[name], (self._num_envs, 9)) for name in ("qpos", "qvel"))
        qpos, qvel = (jnp.asarray(place, self._env.dtype) for place in places)
        time = jnp.zeros(self._num_envs, jnp.int32)
        state = EnvState(qpos, qvel, jnp.zeros_like(qpos), time)
        _, state, (_, reward, _), _ = self._loop.once(self._carry(state), given["ctrl"])
        return {"sums": numbers(state.qpos, state.qvel, reward if "rewards" in given else ())}

    def _sizes(self) -> dict[str, Any]:
        self.work()
        obs, seconds = self._loop.carry[2][0], self._env.frame_skip * 0.01
        finite = float(jnp.isfinite(obs).all())
        return {"sums": [obs.shape[-1], self._env.num_actions, seconds, finite]}

    def work(self) -> int:
        return self._loop.play(self._steps)


class TiledSide:
    """The twin's physics alone: the call of a whole batch that `jax.vmap` leads to."""

    def __init__(self, num_envs: int, steps: int = 1_000, **ours: Any) -> None:
        self._steps, self._num_envs = steps, num_envs
        env, params = make()
        model = model_of(params, env.dtype)

        def advance(body: Body, actions: jax.Array) -> Body:
            return tiled_steps(body, actions, model, env.frame_skip)[0]

        states = checked_states()
        self._loop = Loop(advance, self._body(states.qpos, states.qvel))
        self.facts = Facts(versions("jax", "jaxlib"), compile_cpu_s=self._loop.compile_cpu_s)

    def _body(self, qpos: np.ndarray, qvel: np.ndarray) -> Body:
        def filled(rows: np.ndarray) -> jax.Array:
            return jnp.asarray(np.resize(rows, (self._num_envs, 9)), jnp.float32)

        return Body(filled(qpos), filled(qvel), filled(np.zeros((1, 9))))

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        states = checked_states()
        body = self._loop.once(self._body(states.qpos, states.qvel), states.ctrl)
        rows = (np.asarray(part) for part in (body.qpos, body.qvel))
        return {"sums": numbers(*rows), "given": given_of(states)}

    def work(self) -> int:
        return self._loop.play(self._steps)


_PPO_ENVS, _PPO_STEPS, _PPO_UPDATES, _PPO_LEARNED = 64, 256, 24, 0.0
_PPO = dataclasses.replace(
    PRESETS["default"].config,
    num_envs=_PPO_ENVS,
    num_steps=_PPO_STEPS,
    total_steps=_PPO_ENVS * _PPO_STEPS * _PPO_UPDATES,
)


class TwinPpoSide(TrainingSide):
    """The bundled PPO on the twin."""

    def __init__(self, updates: int) -> None:
        env, params = make()
        super().__init__(
            lambda config: JaxEngine(env, params, config, Task()),
            _PPO,
            learned=_PPO_LEARNED,
            updates=updates,
            packages=("jax", "flax"),
        )


class GymnasiumPpoSide(TrainingSide):
    """The same PPO, stepping MuJoCo through Gymnasium's vector environment."""

    def __init__(self, updates: int) -> None:
        from halfcheetah_jax.reference import vector_env

        envs = vector_env(_PPO_ENVS)
        super().__init__(
            lambda config: HostEngine(envs, config, Task()),
            _PPO,
            learned=_PPO_LEARNED,
            updates=updates,
            packages=("gymnasium", "mujoco"),
            shared=False,
        )


_HOUSE, _STEP, _STEPS_A_ROUND = "halfcheetah_jax", "environment step", 1_024_000
_STATES = f"positions and speeds after a step of {CHECKED} states in mid-episode"
# A float32 step from such states is this close to MuJoCo's, and MJX's to it as well.
_CLOSE, _BOTH_CLOSE = 2e-3, 4e-3


def _step(against: str, peer: str, variant: str, target: float, **others: Any) -> Benchmark:
    """One comparison of environment steps; other keywords are fields, or options of the sides."""
    fields = {field.name for field in dataclasses.fields(Benchmark)}
    batch = others.pop("batch", 1024)
    options = {name: others.pop(name) for name in others.keys() - fields}
    values: dict[str, Any] = {
        "batch": batch,
        "fast": f"{_HOUSE}.bench:JaxSide",
        "options": {"num_envs": batch, "steps": _STEPS_A_ROUND // batch, **options},
        "checked": _STATES,
        "tolerance": _CLOSE,
        "most_compile_s": 20.0,
    }
    return Benchmark(
        env="HalfCheetahJAX-v0",
        unit=f"{_STEP}, {variant}",
        against=against,
        reference=f"{_HOUSE}.{peer}",
        target=target,
        **(values | others),
    )


def _mujoco(batch: int) -> tuple[Benchmark, ...]:
    side, options = "peers:MujocoSide", {"batch": batch, "steps_of_peer": 40_000}
    exact = {"number": "float64", "tolerance": 1e-9}
    return (
        _step("mujoco", side, "float32, over mj_step", 15.0, **options),
        _step("mujoco", side, "float64, over mj_step", 6.0, **options, **exact),
    )


def _rollout() -> Benchmark:
    threads: dict[str, Any] = {"threads": 2, "devices": 2, "cores": 2, "clock": "wall"}
    variant = "float32, over mujoco.rollout with 2 threads"
    side = "peers:RolloutSide"
    return _step("mujoco", side, variant, 15.0, batch=4096, steps_of_peer=64_000, **threads)


def _gymnasium() -> Benchmark:
    checked = f"{_STATES}, and rewards"
    side, variant = "peers:GymnasiumSide", "float32, over env.step"
    return _step("gymnasium", side, variant, 20.0, checked=checked, steps_of_peer=30_000)


def _mjx(variant: str, target: float, **options: Any) -> Benchmark:
    variant = f"float32, over MJX with {variant}"
    return _step("mjx", "peers:MjxSide", variant, target, tolerance=_BOTH_CLOSE, **options)


def _brax(backend: str, steps: int, target: float) -> Benchmark:
    return _step(
        "brax",
        "peers:BraxSide",
        f"float32, over Brax's {backend} physics, which are different physics",
        target,
        backend=backend,
        steps_of_peer=steps,
        checked="sizes of observation and action, seconds of a step, and that all stays finite",
        tolerance=1e-6,
        notes={"physics": "different"},
    )


def _vmap() -> Benchmark:
    variant = "float32, vmap of env.step over the batched call of the physics"
    return _step("tiled_steps", "bench:TiledSide", variant, 0.85, tolerance=_BOTH_CLOSE)


def _ppo() -> Benchmark:
    return Benchmark(
        env="PPO on HalfCheetahJAX-v0",
        unit=f"{_STEP} of the whole training loop",
        batch=_PPO_ENVS,
        against="gymnasium",
        fast=f"{_HOUSE}.bench:TwinPpoSide",
        reference=f"{_HOUSE}.bench:GymnasiumPpoSide",
        options={"updates": 3},
        checked=f"parameters, {_PPO.total_steps} steps, and that both learned to run forward",
        target=5.0,
        notes={
            "network": "two MLPs 17-64-64, tanh",
            "epochs": _PPO.num_epochs,
            "minibatches": _PPO.num_minibatches,
            "steps between updates": _PPO_STEPS,
        },
    )


BENCHMARKS = (
    *_mujoco(1024),
    *_mujoco(4096),
    _rollout(),
    _gymnasium(),
    _mjx("100 iterations, its default", 500.0, steps_of_peer=3),
    # So few do not solve every problem.
    _mjx(
        "iterations=4, ls_iterations=8",
        150.0,
        iterations=4,
        ls_iterations=8,
        steps_of_peer=10,
        outliers=0.01,
    ),
    _brax("generalized", 8, 150.0),
    _brax("spring", 24, 60.0),
    _vmap(),
    _ppo(),
)
