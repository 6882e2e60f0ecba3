"""The training loop: chunks of updates, and between them metrics, checkpoints and signals."""

from __future__ import annotations

import collections
import dataclasses
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from flax import linen as nn

from twinenv.ppo import checkpoint
from twinenv.ppo.checkpoint import CheckpointError
from twinenv.ppo.config import Config, Outcome, Target
from twinenv.ppo.metrics import MetricsLog, draw_curve
from twinenv.ppo.policy import Policy
from twinenv.ppo.program import CHUNK, State, metric_names
from twinenv.ppo.runs import Run, Spec, write_json
from twinenv.ppo.versions import versions

__all__ = ["Engine", "Progress", "Result", "Task", "run_training"]

_CHUNK_SECONDS = 1.0


class Progress(NamedTuple):
    """Where a run stands, after a chunk.

    Attributes:
        update: updates done.
        num_updates: updates of the whole run.
        steps: environment steps done (of each seed).
        steps_per_second: in the last chunk, over all seeds.
        values: the last row of metrics, mean over seeds.
    """

    update: int
    num_updates: int
    steps: int
    steps_per_second: float
    values: Mapping[str, float]


class Reporter(Protocol):
    """Who is told how a run goes."""

    def progress(self, progress: Progress) -> None:
        """A chunk is done."""

    def say(self, message: str) -> None:
        """Something that the user should know."""


class Silent:
    """Tells nobody of progress; warnings go to standard error."""

    def progress(self, progress: Progress) -> None:
        """Nothing."""

    def say(self, message: str) -> None:
        """Print the message to standard error."""
        import sys

        print(message, file=sys.stderr)


@dataclasses.dataclass(frozen=True)
class Task:
    """What a run is about, besides environment and hyperparameters.

    Attributes:
        outcomes: ratios to report, by name.
        target: when the environment counts as solved.
        stop: end the run as soon as the target is reached.
        network: a policy of your own instead of the built-in one.
        labels: what to note in the run's files: `env`, `env_options`, `preset`, `command`.
        reporter: who is told how the run goes.
    """

    outcomes: Mapping[str, Outcome] = dataclasses.field(default_factory=dict)
    target: Target | None = None
    stop: bool = False
    network: nn.Module | None = None
    labels: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    reporter: Reporter = dataclasses.field(default_factory=Silent)


class Engine(Protocol):
    """What does the updates: a compiled program, or environments on the host with one."""

    network: nn.Module
    spec: Spec

    def initial(self) -> State:
        """The state before the first update."""

    def adopt(self, arrays: checkpoint.Arrays) -> State:
        """The state of a checkpoint."""

    def advance(self, state: State, most: int) -> tuple[State, np.ndarray]:
        """Up to `most` updates, and the metrics `float32[done, seeds, columns]` of those done."""

    def compile(self, state: State) -> State:
        """The same state, with everything compiled."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run came to.

    Attributes:
        state: parameters, optimiser, environments, keys, statistics.
        policy: ready to act (of the first seed, if there were several).
        metrics: every column of the metrics, `float64[rows]`.
        summary: what `summary.json` says.
        interrupted: a signal ended it early; what was done is saved.
    """

    state: State
    policy: Policy
    metrics: Mapping[str, np.ndarray]
    summary: Mapping[str, Any]
    interrupted: bool


def run_training(
    engine: Engine, config: Config, task: Task, run: Run | None, *, resume: bool = False
) -> Result:
    """Train until the steps are done, the target is reached or a signal comes.

    Args:
        engine: what does the updates.
        config: hyperparameters.
        task: what the run is about.
        run: its folder, which exists; None keeps everything in memory.
        resume: go on from the folder's newest usable checkpoint.

    Raises:
        CheckpointError: nothing to resume from, or the final checkpoint cannot be written.
    """
    loop = _Loop(engine, config, task, run)
    started = time.process_time()
    state = loop.first_state(resume)
    state = engine.compile(state)
    loop.compile_cpu_s = time.process_time() - started
    with _signals() as caught:
        state = loop.train(state, caught)
    return loop.finish(state, interrupted=bool(caught))


class _Loop:
    """The bookkeeping between chunks."""

    def __init__(self, engine: Engine, config: Config, task: Task, run: Run | None) -> None:
        self.engine, self.config, self.task, self.run = engine, config, task, run
        self.names = metric_names(task.outcomes)
        columns = ("update", "steps", "seed", *self.names, "cpu_s")
        self.log = MetricsLog(run.metrics if run else None, columns, task.reporter.say)
        self.recent: collections.deque[np.ndarray] = collections.deque(maxlen=10)
        self.compile_cpu_s = 0.0
        self.train_cpu_s = 0.0
        self.saved = -1
        self.failure: CheckpointError | None = None

    def first_state(self, resume: bool) -> State:
        if not resume or self.run is None:
            return self.engine.initial()
        found, arrays = checkpoint.latest(self.run.checkpoints, self.task.reporter.say)
        self.log.keep_until(found.update)
        table = self.log.table()
        self.train_cpu_s = float(table["cpu_s"][-1]) if len(table["cpu_s"]) else 0.0
        self.saved = found.update
        return self.engine.adopt(arrays)

    def train(self, state: State, caught: list[int]) -> State:
        update, most, last_saved = _update(state), 1, time.monotonic()
        while update < self.config.num_updates and not caught and not self._solved(state):
            wall, cpu = time.monotonic(), time.process_time()
            state, rows = self.engine.advance(state, min(most, self.config.num_updates - update))
            seconds = max(time.monotonic() - wall, 1e-9)
            self.train_cpu_s += time.process_time() - cpu
            self._log(update, rows, seconds)
            update += len(rows)
            most = max(1, min(CHUNK, round(len(rows) * _CHUNK_SECONDS / seconds)))
            if time.monotonic() - last_saved >= self.config.checkpoint_seconds:
                self.save(state)
                last_saved = time.monotonic()
        return state

    def save(self, state: State) -> None:
        """Write a checkpoint; a failure is reported, and training goes on."""
        if self.run is None or self.saved == _update(state):
            return
        try:
            arrays = checkpoint.arrays_of(state)
            checkpoint.save(self.run.checkpoints, arrays, _update(state), _score(state))
        except CheckpointError as error:
            self.failure = error
            self.task.reporter.say(str(error))
        else:
            self.failure, self.saved = None, _update(state)

    def finish(self, state: State, *, interrupted: bool) -> Result:
        self.save(state)
        table = self.log.table()
        summary = self._summary(state)
        if self.run is not None:
            self._write_results(self.run, table, summary)
        if self.failure is not None:
            raise self.failure
        if interrupted and self.run is not None:
            self.task.reporter.say(
                f"interrupted after update {_update(state)} of {self.config.num_updates}; everything "
                f"is saved, continue with --resume {self.run.path}"
            )
        one = state if self.config.seeds == 1 else _first_seed(state)
        learner = one.learner
        policy = Policy(self.engine.network, learner.params, learner.obs_moments, self.engine.spec)
        return Result(state, policy, table, summary, interrupted)

    def _solved(self, state: State) -> bool:
        return self.task.stop and bool(np.all(np.asarray(state.score.reached_at) > 0))

    def _log(self, update: int, rows: np.ndarray, seconds: float) -> None:
        done, seeds, _ = rows.shape
        updates = np.repeat(np.arange(update + 1, update + done + 1), seeds)
        which = np.tile(np.arange(seeds) + self.config.seed, done)
        cpu = np.full(done * seeds, self.train_cpu_s)
        table = np.column_stack(
            [
                updates,
                updates * self.config.steps_per_update,
                which,
                rows.reshape(done * seeds, -1).astype(np.float64),
                cpu,
            ]
        )
        self.log.append(table)
        self.recent.extend(rows)
        steps = done * seeds * self.config.steps_per_update
        values = dict(zip(self.names, _mean(rows[-1]), strict=True))
        if math.isnan(values["return"]):
            values["return"] = self._recent_return()
        update += done
        self.task.reporter.progress(
            Progress(
                update,
                self.config.num_updates,
                update * self.config.steps_per_update,
                steps / seconds,
                values,
            )
        )

    def _recent_return(self) -> float:
        """Mean return of the episodes that ended in the last updates; NaN if none did."""
        rows = np.concatenate([*self.recent, np.empty((0, len(self.names)))]).astype(np.float64)
        episodes, returns = rows[:, 0], rows[:, 1]
        total = float(episodes.sum())
        return (
            float(np.where(episodes > 0, episodes * returns, 0.0).sum() / total)
            if total
            else math.nan
        )

    def _summary(self, state: State) -> dict[str, Any]:
        reached = np.asarray(state.score.reached_at).reshape(-1)
        steps = int(reached.max()) * self.config.steps_per_update if reached.all() else None
        final = self._recent_return()
        return {
            **{name: self.task.labels.get(name) for name in ("env", "preset")},
            "seed": self.config.seed,
            "seeds": self.config.seeds,
            "steps": _update(state) * self.config.steps_per_update,
            "updates": _update(state),
            "final_return": None if math.isnan(final) else final,
            "target": dataclasses.asdict(self.task.target) if self.task.target else None,
            "target_reached_at_step": steps,
            "train_cpu_s": round(self.train_cpu_s, 3),
            "compile_cpu_s": round(self.compile_cpu_s, 3),
            "params": _size(state.learner.params) // self.config.seeds,
            "versions": versions(),
            "command": self.task.labels.get("command"),
        }

    def _write_results(self, run: Run, table: Mapping[str, np.ndarray], summary: Any) -> None:
        drawn = ["return", *self.task.outcomes]
        try:
            write_json(run.summary, summary)
            draw_curve(run.curve, dict(table), drawn)
        except OSError as error:
            self.task.reporter.say(f"cannot write the results of {run.path}: {error}")


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM instead of dying; a second SIGINT dies at once."""
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    def catch(number: int, frame: Any) -> None:
        caught.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, catch) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _update(state: State) -> int:
    return int(np.asarray(state.update).reshape(-1)[0])


def _score(state: State) -> float:
    return float(np.mean(np.asarray(state.score.value)))


def _first_seed(state: State) -> State:
    import jax

    return jax.tree.map(lambda leaf: leaf[0], state)


def _size(params: Any) -> int:
    import jax

    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(params))


def _mean(values: np.ndarray) -> list[float]:
    """Mean over seeds of each column, of those that are not NaN."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=0, dtype=np.float64)
    count = known.sum(axis=0)
    return [float(t / c) if c else math.nan for t, c in zip(total, count, strict=True)]
