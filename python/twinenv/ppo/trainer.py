"""The training loop: chunks of updates, and between them metrics, checkpoints and signals."""

from __future__ import annotations

import collections
import dataclasses
import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from flax import linen as nn

from twinenv.ppo import checkpoint
from twinenv.ppo.checkpoint import CheckpointError
from twinenv.ppo.config import Config, Outcome, Target
from twinenv.ppo.learn import Learner
from twinenv.ppo.metrics import MetricsLog, draw_curve
from twinenv.ppo.policy import Policy
from twinenv.ppo.program import CHUNK, State, metric_names
from twinenv.ppo.runs import Run, Spec, write_json
from twinenv.versions import versions

__all__ = ["Engine", "Progress", "Reporter", "Result", "Silent", "Task", "run_training"]

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
    """Tells nobody of progress; messages go to standard error."""

    def progress(self, progress: Progress) -> None:
        """Nothing."""

    def say(self, message: str) -> None:
        """Print the message."""
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

    Raises:
        ValueError: the target's metric is neither "return", "length" nor one of the outcomes.
    """

    outcomes: Mapping[str, Outcome] = dataclasses.field(default_factory=dict)
    target: Target | None = None
    stop: bool = False
    network: nn.Module | None = None
    labels: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    reporter: Reporter = dataclasses.field(default_factory=Silent)

    def __post_init__(self) -> None:
        known = ("return", "length", *self.outcomes)
        if self.target is not None and self.target.metric not in known:
            raise ValueError(
                f"the target's metric is {self.target.metric!r}; accepted is one of "
                f"{', '.join(known)}"
            )


class Engine(Protocol):
    """What does the updates: a compiled program, or one with environments on the host."""

    network: nn.Module
    spec: Spec

    def initial(self) -> State:
        """The state before the first update."""

    def adopt(self, arrays: checkpoint.Arrays) -> State:
        """The state of a checkpoint."""

    def compile(self, state: State) -> State:
        """The same state, with everything compiled."""

    def advance(self, state: State, most: int) -> tuple[State, np.ndarray]:
        """Up to `most` updates, and the metrics `float32[done, seeds, columns]` of those done."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run came to.

    Attributes:
        state: parameters, optimiser, environments, keys, statistics.
        policies: ready to act, one of each seed.
        metrics: every column of the metrics, `float64[rows]`.
        summary: what `summary.json` says.
        interrupted: a signal ended it early; what was done is saved.
    """

    state: State
    policies: tuple[Policy, ...]
    metrics: Mapping[str, np.ndarray]
    summary: Mapping[str, Any]
    interrupted: bool

    @property
    def policy(self) -> Policy:
        """That of the first seed."""
        return self.policies[0]


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
        CheckpointError: nothing to resume from, or the results cannot be written.
    """
    loop = _Loop(engine, config, task, run)
    with _signals() as caught:
        state = loop.begin(resume)
        state = loop.train(state, caught)
        return loop.finish(state, interrupted=bool(caught))


class _Loop:
    """The bookkeeping between chunks."""

    def __init__(self, engine: Engine, config: Config, task: Task, run: Run | None) -> None:
        self.engine, self.config, self.task, self.run = engine, config, task, run
        self.names = metric_names(task.outcomes)
        columns = ("update", "steps", "seed", *self.names, "cpu_s")
        self.log = MetricsLog(run.metrics if run else None, columns)
        self.recent: collections.deque[np.ndarray] = collections.deque(maxlen=10)
        self.compile_cpu_s = 0.0
        self.train_cpu_s = 0.0
        self.saved = -1

    def begin(self, resume: bool) -> State:
        """The first state, new or from a checkpoint, with everything compiled."""
        started = time.process_time()
        state = self._resumed(self.run) if resume and self.run else self.engine.initial()
        state = self.engine.compile(state)
        self.compile_cpu_s = time.process_time() - started
        return state

    def train(self, state: State, caught: list[int]) -> State:
        """Chunks of about a second, until there is a reason to end."""
        update, most, last_saved = _update(state), 1, time.monotonic()
        while update < self.config.num_updates and not caught and not self._solved(state):
            wall, cpu = time.monotonic(), time.process_time()
            state, rows = self.engine.advance(state, min(most, self.config.num_updates - update))
            seconds = max(time.monotonic() - wall, 1e-9)
            self.train_cpu_s += time.process_time() - cpu
            self._note(update, rows, seconds)
            update += len(rows)
            most = max(1, min(CHUNK, round(len(rows) * _CHUNK_SECONDS / seconds)))
            if time.monotonic() - last_saved >= self.config.checkpoint_seconds:
                self._try_to_save(state)
                last_saved = time.monotonic()
        return state

    def finish(self, state: State, *, interrupted: bool) -> Result:
        """Save, sum up, and say how to go on if the run was interrupted."""
        summary = self._summary(state)
        if self.run is not None:
            self._save(self.run, state)
            _write_results(self.run, self.log, summary, ("return", *self.task.outcomes))
            if interrupted:
                self.task.reporter.say(
                    f"interrupted after update {_update(state)} of {self.config.num_updates}; "
                    f"everything is saved, continue with --resume {self.run.path}"
                )
        policies = tuple(map(self._policy, _learners(state, self.config.seeds)))
        return Result(state, policies, self.log.table(), summary, interrupted)

    def _policy(self, learner: Learner) -> Policy:
        spec = self.engine.spec
        return Policy(self.engine.network, learner.params, learner.obs_moments, spec)

    def _resumed(self, run: Run) -> State:
        found, arrays = checkpoint.latest(run.checkpoints, self.task.reporter.say)
        try:
            state = self.engine.adopt(arrays)
        except CheckpointError as error:
            raise CheckpointError(
                f"checkpoint {found.path} is of another environment, network or library: {error}"
            ) from error
        self.log.keep_until(found.update)
        table = self.log.table()
        self.train_cpu_s = float(table["cpu_s"][-1]) if len(table["cpu_s"]) else 0.0
        rows = np.column_stack([table[name] for name in self.names])
        self.recent.extend(rows.reshape(-1, self.config.seeds, len(self.names))[-10:])
        self.saved = found.update
        return state

    def _try_to_save(self, state: State) -> None:
        if self.run is not None:
            try:
                self._save(self.run, state)
            except CheckpointError as error:
                self.task.reporter.say(f"{error}; training goes on, and the next attempt follows")

    def _save(self, run: Run, state: State) -> None:
        # Metrics first: a checkpoint whose metrics are missing could not be resumed exactly.
        self.log.flush()
        if self.saved != _update(state):
            arrays = checkpoint.arrays_of(state)
            checkpoint.save(run.checkpoints, arrays, _update(state), _score(state))
            self.saved = _update(state)

    def _solved(self, state: State) -> bool:
        return self.task.stop and bool(np.all(np.asarray(state.score.reached_at) > 0))

    def _note(self, update: int, rows: np.ndarray, seconds: float) -> None:
        """Log the metrics of a chunk that began after `update`, and show progress."""
        done, seeds, width = rows.shape
        updates = np.repeat(np.arange(update + 1, update + done + 1), seeds)
        which = np.tile(np.arange(seeds) + self.config.seed, done)
        flat = rows.reshape(done * seeds, width).astype(np.float64)
        steps = updates * self.config.steps_per_update
        cpu = np.full(done * seeds, self.train_cpu_s)
        try:
            self.log.append(np.column_stack([updates, steps, which, flat, cpu]))
        except CheckpointError as error:
            self.task.reporter.say(f"{error}; the rows are kept, and the next attempt follows")
        self.recent.extend(rows)
        values = dict(zip(self.names, _mean(rows[-1]), strict=True)) if done else {}
        if math.isnan(values.get("return", 0.0)):
            values["return"] = self._recent_return()
        per_second = done * seeds * self.config.steps_per_update / seconds
        update += done
        at = update, self.config.num_updates, update * self.config.steps_per_update
        self.task.reporter.progress(Progress(*at, per_second, values))

    def _recent_return(self) -> float:
        """Mean return of the episodes that ended in the last updates; NaN if none did."""
        rows = np.concatenate([*self.recent, np.empty((0, len(self.names)))]).astype(np.float64)
        episodes, returns = rows[:, 0], rows[:, 1]
        total = float(episodes.sum())
        earned = float(np.where(episodes > 0, episodes * returns, 0.0).sum())
        return earned / total if total else math.nan

    def _summary(self, state: State) -> dict[str, Any]:
        reached = np.asarray(state.score.reached_at).reshape(-1)
        steps = int(reached.max()) * self.config.steps_per_update if reached.all() else None
        final = self._recent_return()
        size = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(state.learner.params))
        return {
            "env": self.task.labels.get("env"),
            "preset": self.task.labels.get("preset"),
            "seed": self.config.seed,
            "seeds": self.config.seeds,
            "steps": _update(state) * self.config.steps_per_update,
            "updates": _update(state),
            "final_return": None if math.isnan(final) else final,
            "target": dataclasses.asdict(self.task.target) if self.task.target else None,
            "target_reached_at_step": steps,
            "train_cpu_s": round(self.train_cpu_s, 3),
            "compile_cpu_s": round(self.compile_cpu_s, 3),
            "params": size // self.config.seeds,
            "versions": versions(),
            "command": self.task.labels.get("command"),
        }


def _write_results(
    run: Run, log: MetricsLog, summary: Mapping[str, Any], metrics: tuple[str, ...]
) -> None:
    try:
        write_json(run.summary, summary)
        draw_curve(run.curve, log.table(), metrics)
    except OSError as error:
        raise CheckpointError(
            f"cannot write the results of {run.path}: {error}; the last checkpoint holds the whole "
            f"run, make room and continue with --resume {run.path}"
        ) from error


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


def _learners(state: State, seeds: int) -> list[Learner]:
    """What each seed learned."""
    if seeds == 1:
        return [state.learner]
    return [jax.tree.map(lambda leaf, i=i: leaf[i], state.learner) for i in range(seeds)]


def _update(state: State) -> int:
    return int(np.asarray(state.update).reshape(-1)[0])


def _score(state: State) -> float:
    """The target metric, mean over the seeds that have one; NaN if none has."""
    values = np.asarray(state.score.value, np.float64).reshape(-1)
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan


def _mean(values: np.ndarray) -> list[float]:
    """Mean over seeds of each column, of those that are not NaN."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=0, dtype=np.float64)
    count = known.sum(axis=0)
    return [float(t / c) if c else math.nan for t, c in zip(total, count, strict=True)]
