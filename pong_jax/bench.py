"""Pong against PufferLib's Pong: steps per second of CPU time.

Both sides play random actions from one table of 128 rows that is drawn beforehand. Every step's
observations, rewards and ends are written to memory on both sides, into the same buffers at each
step; ours are also added up, with a weight for each number of the observation, so that the compiler
can leave none out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pong_jax.env import make
from pong_jax.pair import FastPong
from pong_jax.reference import WheelPong
from twinenv.bench.benchmark import Benchmark, Facts
from twinenv.stages import cpu_compiler_options
from twinenv.versions import versions

__all__ = ["BENCHMARKS", "JaxSide", "PufferSide"]

_TABLE, _CHECKED_ENVS, _CHECKED_STEPS = 128, 64, 200
_FRAMES_A_ROUND = 60_000_000


def _actions(num_envs: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 3, (_TABLE, num_envs), dtype=np.int32)


def _steps_a_round(num_envs: int, frameskip: int) -> int:
    return max(_FRAMES_A_ROUND // (num_envs * (1 + frameskip)), 1)


def _sums(outputs: list[dict[str, np.ndarray]]) -> list[float]:
    """Per step: sums that weigh every environment's outputs differently."""
    weights = np.arange(1, _CHECKED_ENVS + 1, dtype=np.float64)
    sums: list[float] = []
    for out in outputs:
        parts = (out["observation"].astype(np.float64).T, out["reward"], out["terminated"])
        sums += [float(value) for part in parts for value in np.atleast_1d(part @ weights)]
    return sums


class PufferSide:
    """PufferLib's compiled Pong, through its own Python class."""

    def __init__(self, num_envs: int, frameskip: int, **ours: Any) -> None:
        self._frameskip, self._table = frameskip, _actions(num_envs)
        self._steps = _steps_a_round(num_envs, frameskip)
        self._games = WheelPong(num_envs, frameskip=frameskip)
        self._games.reset(0)
        self.facts = Facts({"pufferlib": "2.0.2", "numpy": np.__version__})

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        games, table = WheelPong(_CHECKED_ENVS, frameskip=self._frameskip), _actions(_CHECKED_ENVS)
        first = games.reset(7)
        steps = [games.step(table[t % _TABLE]) for t in range(_CHECKED_STEPS)]
        moved = any((step.output["reward"] != 0).any() for step in steps)
        if not moved:
            raise RuntimeError("PufferLib's Pong does not move")
        bits = [step.draws["serve_bit"].tolist() for step in (first, *steps)]
        return {"sums": _sums([step.output for step in steps]), "given": {"serve_bits": bits}}

    def work(self) -> int:
        actions, step = self._games.buffers.actions, self._games.raw_step
        for t in range(self._steps):
            actions[:] = self._table[t % _TABLE]
            step()
        return self._steps * len(actions)


class JaxSide:
    """The twin: `jax.vmap(env.step)` in a loop, in one compiled call."""

    def __init__(self, num_envs: int, frameskip: int, **ours: Any) -> None:
        self._num_envs, self._options = num_envs, {"frameskip": frameskip, **ours}
        self._steps = _steps_a_round(num_envs, frameskip)
        self._env, self._params = make(**self._options)
        keys = jax.random.split(jax.random.key(0), num_envs)
        obs, state = jax.jit(jax.vmap(lambda key: self._env.reset(key, self._params)))(keys)
        zero = jnp.zeros(num_envs, jnp.float32)
        self._carry = (state, (obs, zero, zero.astype(jnp.bool_)), jnp.zeros_like(zero))
        self._table = jnp.asarray(_actions(num_envs))
        start = time.process_time()
        play = jax.jit(self._play, donate_argnums=0, compiler_options=cpu_compiler_options())
        self._compiled = play.lower(self._carry, self._table).compile()
        compile_cpu_s = time.process_time() - start
        step = jax.jit(jax.vmap(self._env.step, in_axes=(0, 0, 0, None)))
        lowered = step.lower(keys, state, self._table[0], self._params).as_text()
        size = sum(leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
        self.facts = Facts(
            versions("jax", "jaxlib"), size, compile_cpu_s, len(lowered.splitlines())
        )

    def _play(self, carry: Any, table: jax.Array) -> Any:
        step = jax.vmap(self._env.step, in_axes=(0, 0, 0, None))
        keys = jnp.zeros((self._num_envs, 2), jnp.uint32)  # Pong's chance is in its state

        def one(t: jax.Array, carry: Any) -> Any:
            state, _, total = carry
            action = jax.lax.dynamic_index_in_dim(table, t % _TABLE, keepdims=False)
            obs, state, reward, done, _ = step(keys, state, action, self._params)
            total += reward + done.astype(jnp.float32)
            for index in range(obs.shape[1]):
                total += jnp.float32(index + 1) * obs[:, index]
            return state, (obs, reward, done), total

        return jax.lax.fori_loop(0, self._steps, one, carry)

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        from twinenv.verify.pair import Step

        fast, table = FastPong(self._options), _actions(_CHECKED_ENVS)
        bits = np.asarray(given["serve_bits"], np.uint32)
        state, outputs = fast.start(Step({}, {}, {"serve_bit": bits[0]})), []
        for t in range(_CHECKED_STEPS):
            step = fast.step(state, table[t % _TABLE], {"serve_bit": bits[t + 1]})
            state = step.state
            outputs.append(step.output)
        return {"sums": _sums(outputs)}

    def work(self) -> int:
        self._carry = jax.block_until_ready(self._compiled(self._carry, self._table))
        return self._steps * self._num_envs


# The default, and what other options of ours make of it.
_VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    ", small_call": {"small_call": True},
    ", float32": {"number": "float32"},
}

BENCHMARKS = tuple(
    Benchmark(
        env="PongJAX-v0",
        unit=f"step of {frameskip} frame{'s' * (frameskip > 1)}{variant}",
        batch=batch,
        against="pufferlib",
        fast="pong_jax.bench:JaxSide",
        reference="pong_jax.bench:PufferSide",
        options={"num_envs": batch, "frameskip": frameskip, **ours},
        # One unit in the last place of each observation, weighted and added over 64 environments.
        tolerance=6e-8 * sum(range(1, _CHECKED_ENVS + 1)),
        target=0.0 if variant == ", float32" else 4.0,
    )
    for frameskip in (1, 8)
    for variant, ours in _VARIANTS.items()
    for batch in (1024, 4096)
)
