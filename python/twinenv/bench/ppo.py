"""Whole training loops, here our PPO against rejax's on gymnax's CartPole.

Both train the same network with the same batch, passes, minibatches and number of updates, and both
must learn: a loop that is fast and does not learn has no speed.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from twinenv.bench.benchmark import Benchmark, Facts
from twinenv.ppo.config import Config
from twinenv.ppo.engine import JaxEngine
from twinenv.ppo.trainer import Engine, Task
from twinenv.versions import versions

__all__ = ["BENCHMARKS", "RejaxSide", "TrainingSide", "TwinSide"]

_NUM_STEPS, _EPOCHS, _MINIBATCHES, _HIDDEN = 64, 4, 4, (64, 64)
_RATE, _ENTROPY, _LEARNED = 1e-3, 0.01, 60.0
_STEPS_A_ROUND = 1_048_576
_RECENT = 8  # updates whose episodes tell what was learned


def _updates(num_envs: int) -> int:
    return _STEPS_A_ROUND // (num_envs * _NUM_STEPS)


class TrainingSide:
    """A training loop of ours.

    Args:
        engine: makes what does the updates of a configuration.
        config: hyperparameters; the check trains all its steps.
        learned: mean return of the last updates of that run from which on it has learned.
        updates: of a new run, which are a round.
        packages: distributions that do the work.
        shared: find out how much of the time goes into gradients.
    """

    def __init__(
        self,
        engine: Callable[[Config], Engine],
        config: Config,
        *,
        learned: float,
        updates: int,
        packages: tuple[str, ...],
        shared: bool = True,
    ) -> None:
        self._config, self._learned, self._updates = config, learned, updates
        self._engine = engine(config)
        start = time.process_time()
        state = self._engine.compile(self._engine.initial())
        compile_cpu_s = time.process_time() - start
        self._size = _num_params(state.learner.params)
        spent = 0.0
        if shared:
            twice = engine(dataclasses.replace(config, num_epochs=2 * config.num_epochs))
            twice.compile(twice.initial())
            spent = _seconds(twice, updates) / _seconds(self._engine, updates) - 1.0
        self.facts = Facts(versions(*packages), compile_cpu_s=compile_cpu_s, shared=spent)

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        updates = self._config.num_updates
        recent = np.nanmean(_advanced(self._engine, updates)[-_RECENT:, 0, 1])
        steps = updates * self._config.steps_per_update
        return {"sums": [self._size, steps, float(recent >= self._learned)]}

    def work(self) -> int:
        _advanced(self._engine, self._updates)
        return self._updates * self._config.steps_per_update


def _advanced(engine: Engine, updates: int) -> np.ndarray:
    """Metrics of a new run."""
    state, parts, done = engine.initial(), [], 0
    while done < updates:
        state, rows = engine.advance(state, updates - done)
        parts.append(rows)
        done += len(rows)
    return np.concatenate(parts)


def _seconds(engine: Engine, updates: int) -> float:
    start = time.process_time()
    _advanced(engine, updates)
    return time.process_time() - start


class TwinSide(TrainingSide):
    """Our trainer on CartPole."""

    def __init__(self, num_envs: int) -> None:
        import gymnax

        env, params = gymnax.make("CartPole-v1")
        config = Config(
            total_steps=_STEPS_A_ROUND,
            num_envs=num_envs,
            num_steps=_NUM_STEPS,
            num_epochs=_EPOCHS,
            num_minibatches=_MINIBATCHES,
            learning_rate=_RATE,
            anneal=False,
            entropy_coef=_ENTROPY,
            hidden=_HIDDEN,
            shared=False,
        )
        super().__init__(
            lambda config: JaxEngine(env, params, config, Task()),
            config,
            learned=_LEARNED,
            updates=_updates(num_envs),
            packages=("jax", "flax"),
        )


class RejaxSide:
    """rejax's PPO, unedited."""

    def __init__(self, num_envs: int) -> None:
        import gymnax
        import rejax

        env, params = gymnax.make("CartPole-v1")
        self._algorithm = rejax.get_algo("ppo").create(
            env=_FiveValues(env),
            env_params=params,
            total_timesteps=_STEPS_A_ROUND,
            eval_freq=_STEPS_A_ROUND,
            skip_initial_evaluation=True,
            num_envs=num_envs,
            num_steps=_NUM_STEPS,
            num_epochs=_EPOCHS,
            num_minibatches=_MINIBATCHES,
            learning_rate=_RATE,
            ent_coef=_ENTROPY,
            max_grad_norm=0.5,
            agent_kwargs={"hidden_layer_sizes": _HIDDEN, "activation": "tanh"},
        )
        untested = self._algorithm.replace(eval_callback=lambda algorithm, state, key: ())
        start = time.process_time()
        self._train = jax.jit(untested.train).lower(jax.random.key(0)).compile()
        compile_cpu_s = time.process_time() - start
        self._state: Any = None
        self.facts = Facts(versions("rejax", "gymnax"), compile_cpu_s=compile_cpu_s)

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        steps, state = self.work(), self._state
        size = _num_params((state.actor_ts.params, state.critic_ts.params))
        returns = self._algorithm.eval_callback(self._algorithm, state, jax.random.key(1))[1]
        return {"sums": [size, steps, float(jnp.mean(returns) >= _LEARNED)]}

    def work(self) -> int:
        self._state, _ = jax.block_until_ready(self._train(jax.random.key(0)))
        return _STEPS_A_ROUND


class _FiveValues:
    """A gymnax environment with the five-value step that rejax 0.1.3 unpacks."""

    def __init__(self, env: Any) -> None:
        self._env = env

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # so that copies of a half-made object do not recurse
            raise AttributeError(name)
        return getattr(self._env, name)

    def step(self, key: Any, state: Any, action: Any, params: Any) -> tuple[Any, ...]:
        obs, state, reward, terminated, truncated, info = self._env.step(key, state, action, params)
        return obs, state, reward, terminated | truncated, info


def _num_params(params: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(params))


BENCHMARKS = tuple(
    Benchmark(
        env="PPO on CartPole-v1",
        unit="environment step of the whole training loop",
        batch=batch,
        against="rejax",
        fast="twinenv.bench.ppo:TwinSide",
        reference="twinenv.bench.ppo:RejaxSide",
        options={"num_envs": batch},
        target=1.5,
        notes={
            "network": "two MLPs 4-64-64, tanh",
            "epochs": _EPOCHS,
            "minibatches": _MINIBATCHES,
            "updates": _updates(batch),
        },
    )
    for batch in (64, 1024)
)
