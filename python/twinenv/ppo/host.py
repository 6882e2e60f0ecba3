"""Training on environments outside JAX: steps on the host, the same compiled update."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from twinenv.ppo import checkpoint
from twinenv.ppo.compiling import compiler_options
from twinenv.ppo.config import Config, Outcome, Target
from twinenv.ppo.learn import initial_learner, initial_tally, learn, policy_of
from twinenv.ppo.policy import example_of, network_of
from twinenv.ppo.program import State, initial_score, row, scored
from twinenv.ppo.rollout import Rollout, once
from twinenv.ppo.steppers import Seen, VectorStepper
from twinenv.ppo.trainer import Task

__all__ = ["HostEngine"]


class HostEngine:
    """Updates of a `gymnasium.vector.VectorEnv`.

    A checkpoint holds what is learned, not the environments: a resumed run starts new episodes.

    Args:
        env: the environments; `config.num_envs` must be how many they are.
        config: hyperparameters.
        task: what the run is about.

    Raises:
        ValueError: the configuration does not fit the environments.
    """

    def __init__(self, env: Any, config: Config, task: Task) -> None:
        if config.num_envs != env.num_envs:
            raise ValueError(
                f"num_envs is {config.num_envs}; this {type(env).__name__} has {env.num_envs}"
            )
        if config.seeds != 1:
            raise ValueError(f"seeds is {config.seeds}; environments on the host train one seed")
        self._stepper = VectorStepper(env)
        self.spec = self._stepper.spec
        self.network = task.network or network_of(self.spec, config)
        target = task.target or Target()
        self._config, self._task = config, task
        self._target = np.float32(target.value)
        names = tuple(task.outcomes)
        self._init, self._act, self._values, self._learn = _functions(
            self.network, config.compiled(), names, target.metric
        )
        self._begin(config.seed)

    def initial(self) -> State:
        """The state before the first update."""
        self._begin(self._config.seed)
        return self._init(np.uint32(self._config.seed), self._example())

    def adopt(self, arrays: checkpoint.Arrays) -> State:
        """The state of a checkpoint; the environments begin anew."""
        like = jax.eval_shape(self._init, np.uint32(0), self._example())
        state = checkpoint.restored(like, arrays)
        # Not the episodes that the run began with.
        self._begin(self._config.seed + int(state.update))
        zero = initial_tally(self._config.num_envs)
        return jax.device_put(state._replace(tally=zero))

    def compile(self, state: State) -> State:
        """The same state; compilation happens with the first update."""
        return state

    def advance(self, state: State, most: int) -> tuple[State, np.ndarray]:
        """Up to `most` updates, and the metrics of those done."""
        rows = []
        for _ in range(most):
            rollout, counts = self._collect(state)
            num_updates = np.int32(self._config.num_updates)
            state, new = self._learn(state, rollout, counts, num_updates, self._target)
            rows.append(np.asarray(new)[None])
            if self._task.stop and int(state.score.reached_at):
                break
        return state, np.stack(rows)

    def _begin(self, seed: int) -> None:
        self._obs, self._mask = self._stepper.reset(seed)
        self._reset = np.ones(self._config.num_envs, np.bool_)
        self._carry = self.network.initial_carry(self._config.num_envs)

    def _example(self) -> Any:
        return example_of(self.spec, self.network, self._config.num_envs)

    def _collect(self, state: State) -> tuple[Rollout, Mapping[str, Any]]:
        start, kept = self._carry, []
        totals = {name: np.zeros(2, np.float32) for name in self._task.outcomes}
        for t in range(self._config.num_steps):
            inputs = (self._obs, self._mask, self._carry, self._reset)
            action, played, log_prob, value, carry = self._act(state, inputs, np.int32(t))
            seen = self._stepper.step(np.asarray(played))
            bootstrap = self._bootstrap(state, seen, carry)
            kept.append(
                (
                    *inputs[:2],
                    action,
                    log_prob,
                    value,
                    seen.reward,
                    seen.done,
                    self._reset,
                    bootstrap,
                )
            )
            for name, outcome in self._task.outcomes.items():
                totals[name] += [
                    np.sum(np.asarray(part), dtype=np.float32) for part in outcome(seen.info)
                ]
            self._obs, self._mask, self._carry, self._reset = seen.obs, seen.mask, carry, seen.done
        last = self._values(state, (self._obs, self._mask, self._carry, self._reset))
        stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(l) for l in leaves]), *kept)
        return Rollout(*stacked, last, start), {n: (t[0], t[1]) for n, t in totals.items()}

    def _bootstrap(self, state: State, seen: Seen, carry: Any) -> np.ndarray:
        if not seen.truncated.any():
            return np.zeros(self._config.num_envs, np.float32)
        going_on = np.zeros(self._config.num_envs, np.bool_)
        values = self._values(state, (seen.final_obs, self._mask, carry, going_on))
        return np.where(seen.truncated, np.asarray(values), np.float32(0.0))


@functools.lru_cache(maxsize=8)
def _functions(network: nn.Module, config: Config, names: tuple[str, ...], metric: str) -> Any:
    """The compiled parts: initial state, acting, values, one update."""

    def init(seed: jax.Array, example: Any) -> State:
        key, key_net = jax.random.split(jax.random.key(seed))
        learner = initial_learner(network, config, example, key_net)
        tally = initial_tally(config.num_envs)
        return State(learner, None, tally, initial_score(), jnp.zeros((), jnp.int32), key)

    def output_of(state: State, inputs: Any) -> Any:
        learner = state.learner
        return once(policy_of(network, learner.params, learner.obs_moments), *inputs)

    def act(state: State, inputs: Any, step: jax.Array) -> Any:
        key_act = jax.random.split(state.key, 3)[1]
        distribution, value, carry = output_of(state, inputs)
        action = distribution.sample(jax.random.fold_in(key_act, step))
        played = action
        if jnp.issubdtype(action.dtype, jnp.floating):
            played = jnp.clip(action, -1.0, 1.0)
        return action, played, distribution.log_prob(action), value, carry

    def update(
        state: State, rollout: Rollout, counts: Any, num_updates: jax.Array, target: jax.Array
    ) -> tuple[State, jax.Array]:
        key, _, key_learn = jax.random.split(state.key, 3)
        learner, tally, finished, diagnostics = learn(
            network,
            config,
            state.learner,
            state.tally,
            rollout,
            (key_learn, state.update, num_updates),
        )
        counts = finished | {name: counts[name] for name in names}
        score = scored(state.score, counts[metric], target, state.update + 1)
        state = State(learner, None, tally, score, state.update + 1, key)
        return state, row(counts, diagnostics)

    options = compiler_options(quick=config.quick_compile)
    return (
        jax.jit(init, compiler_options=compiler_options(quick=True, level=0)),
        jax.jit(act, compiler_options=options),
        jax.jit(lambda state, inputs: output_of(state, inputs).value, compiler_options=options),
        jax.jit(update, compiler_options=options),
    )
