"""Training on JAX environments: everything between two chunks is one compiled program."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from twinenv.ppo import checkpoint
from twinenv.ppo.config import Config, Target
from twinenv.ppo.policy import network_of
from twinenv.ppo.program import State, program
from twinenv.ppo.runs import Run, Spec, identity, leaf_shapes
from twinenv.ppo.steppers import is_vector_env
from twinenv.ppo.trainer import Engine, Result, Task, run_training
from twinenv.ppo.views import View, view_of

__all__ = ["JaxEngine", "prepared", "spec_of", "train"]


class JaxEngine:
    """Updates of a JAX environment.

    Args:
        env: a twinenv environment or one of gymnax >= 1.0.
        params: its parameters; None stands for its defaults.
        config: hyperparameters.
        task: what the run is about.
    """

    def __init__(self, env: Any, params: Any, config: Config, task: Task) -> None:
        params = getattr(env, "default_params", None) if params is None else params
        view = view_of(env, params)
        self.spec = spec_of(view, params)
        self.network = task.network or network_of(self.spec, config)
        target = task.target or Target()
        self._params, self._config = params, config
        self._target = np.float32(target.value)
        self._stop = int(task.stop)
        outcomes = tuple(task.outcomes.items())
        self._program = program(view, self.network, config.compiled(), outcomes, target.metric)

    def initial(self) -> State:
        """The state before the first update."""
        return self._program.init(self._seeds(), self._params)

    def adopt(self, arrays: checkpoint.Arrays) -> State:
        """The state of a checkpoint."""
        like = jax.eval_shape(self._program.init, self._seeds(), self._params)
        return jax.device_put(checkpoint.restored(like, arrays))

    def compile(self, state: State) -> State:
        """The same state, with everything compiled."""
        return self.advance(state, 0)[0]

    def advance(self, state: State, most: int) -> tuple[State, np.ndarray]:
        """Up to `most` updates, and the metrics of those done."""
        before = int(np.max(np.asarray(state.update)))
        limits = np.asarray([most, self._config.num_updates, self._stop], np.int32)
        state, rows = self._program.chunk(state, self._params, limits, self._target)
        done = int(np.max(np.asarray(state.update))) - before
        host = np.asarray(rows)[:done]
        return state, host.reshape(done, self._config.seeds, host.shape[-1])

    def _seeds(self) -> Any:
        first, count = self._config.seed, self._config.seeds
        return np.uint32(first) if count == 1 else np.arange(first, first + count, dtype=np.uint32)


def spec_of(view: View, params: Any) -> Spec:
    """What a policy needs to know of an environment."""
    reset = functools.partial(view.reset, params=params)
    obs = jax.eval_shape(reset, jax.ShapeDtypeStruct((2,), np.uint32))[0]
    return Spec(leaf_shapes(obs), view.actions, view.masked)


def engine_of(env: Any, params: Any, config: Config, task: Task) -> Engine:
    """What does the updates of this kind of environment."""
    if is_vector_env(env):
        from twinenv.ppo.host import HostEngine

        return HostEngine(env, config, task)
    return JaxEngine(env, params, config, task)


def train(
    env: Any,
    params: Any = None,
    config: Config | None = None,
    *,
    run_dir: str | Path | None = None,
    resume: bool = False,
    task: Task | None = None,
) -> Result:
    """Train a policy with PPO.

    Args:
        env: a twinenv environment, one of gymnax >= 1.0, or a `gymnasium.vector.VectorEnv` that
            resets in the same step.
        params: parameters of a JAX environment; None stands for its defaults.
        config: hyperparameters.
        run_dir: folder for configuration, metrics, curve, summary and checkpoints; None keeps
            everything in memory.
        resume: go on with the run in `run_dir`.
        task: outcomes to report, target, own network, labels.

    Raises:
        TypeError: this environment cannot be trained on.
        FileExistsError: `run_dir` is not empty.
        ValueError: nothing to resume, an option that does not fit, or a run that was started with
            another environment or other options.
        CheckpointError: no usable checkpoint, or the final one cannot be written.
    """
    task = task or Task()
    engine, config, run = prepared(env, params, config, run_dir, resume, task)
    return run_training(engine, config, task, run, resume=resume)


def prepared(
    env: Any,
    params: Any,
    config: Config | None,
    run_dir: str | Path | None,
    resume: bool,
    task: Task,
) -> tuple[Engine, Config, Run | None]:
    """What `run_training` needs; all that can be wrong with what `train` was given is said here."""
    if resume:
        if run_dir is None:
            raise ValueError("resume=True needs the run_dir of the run to go on with")
        run = Run.open(run_dir)
        _demand_same(run, dataclasses.asdict(run.config), dataclasses.asdict(config or run.config))
        engine = engine_of(env, params, run.config, task)
        _demand_same(run, run.environment, identity(env, params))
        _demand_same(run, run.spec.to_json(), engine.spec.to_json())
        return engine, run.config, run
    config = config or Config()
    engine = engine_of(env, params, config, task)
    if run_dir is None:
        return engine, config, None
    labels = {"env": getattr(env, "name", type(env).__name__), **task.labels}
    run = Run(Path(run_dir), config, engine.spec, labels, identity(env, params))
    run.create()
    return engine, config, run


def _demand_same(run: Run, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    different = [
        f"{name} {then.get(name)} (not {now.get(name)})"
        for name in {**then, **now}
        if then.get(name) != now.get(name)
    ]
    if different:
        raise ValueError(
            f"{run.path} was started with {', '.join(different)}; a run goes on with the "
            "environment and the options it was started with"
        )
