"""Training on environments outside JAX: steps on the host, the same compiled update."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from twinenv.ppo import checkpoint
from twinenv.ppo.compiling import compiler_options
from twinenv.ppo.config import Config, Target
from twinenv.ppo.learn import initial_learner, initial_tally, learn, policy_of
from twinenv.ppo.networks import Output
from twinenv.ppo.policy import example_of, network_of
from twinenv.ppo.program import State, initial_score, row, scored
from twinenv.ppo.rollout import Rollout, once
from twinenv.ppo.steppers import Seen, VectorStepper
from twinenv.ppo.trainer import Task

__all__ = ["HostEngine"]


class _Inputs(NamedTuple):
    """What the policy sees of one step, `[N]` each."""

    obs: Any
    mask: Any
    carry: Any
    reset: np.ndarray


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
        self._do = _functions(self.network, config.compiled(), names, target.metric)

    def initial(self) -> State:
        """The state before the first update."""
        self._begin(self._config.seed)
        return self._do.init(np.uint32(self._config.seed), self._example())

    def adopt(self, arrays: checkpoint.Arrays) -> State:
        """The state of a checkpoint; the environments begin anew."""
        like = jax.eval_shape(self._do.init, np.uint32(0), self._example())
        state = checkpoint.restored(like, arrays)
        # A seed that the run has not begun with, or it would see the same episodes again.
        self._begin(self._config.seed + int(state.update))
        return jax.device_put(state._replace(tally=initial_tally(self._config.num_envs)))

    def compile(self, state: State) -> State:
        """The same state: everything is compiled in the first update, and counted there."""
        return state

    def advance(self, state: State, most: int) -> tuple[State, np.ndarray]:
        """Up to `most` updates, and the metrics of those done."""
        rows: list[np.ndarray] = []
        num_updates = np.int32(self._config.num_updates)
        while len(rows) < most and not (self._task.stop and int(state.score.reached_at)):
            rollout, counts = self._collect(state)
            state, new = self._do.update(state, rollout, counts, num_updates, self._target)
            rows.append(np.asarray(new)[None])
        return state, np.stack(rows)

    def _begin(self, seed: int) -> None:
        obs, mask = self._stepper.reset(seed)
        carry = self.network.initial_carry(self._config.num_envs)
        self._now = _Inputs(obs, mask, carry, np.ones(self._config.num_envs, np.bool_))

    def _example(self) -> Any:
        return example_of(self.spec, self.network, self._config.num_envs)

    def _collect(self, state: State) -> tuple[Rollout, dict[str, Any]]:
        policy = (state.learner.params, state.learner.obs_moments)
        carry, steps = self._now.carry, []
        counts = {name: np.zeros(2, np.float32) for name in self._task.outcomes}
        for step in range(self._config.num_steps):
            now = self._now
            acted = self._do.act(policy, now, state.key, np.int32(step))
            seen = self._stepper.step(np.asarray(acted.played))
            self._now = _Inputs(seen.obs, seen.mask, acted.carry, seen.done)
            bootstrap = self._bootstrap(policy, seen)
            sampled = (acted.action, acted.log_prob, acted.value)
            ended = (seen.reward, seen.done, now.reset, bootstrap)
            steps.append(jax.tree.map(np.asarray, (now.obs, now.mask, *sampled, *ended)))
            for name, outcome in self._task.outcomes.items():
                counts[name] += [np.sum(part, dtype=np.float32) for part in outcome(seen.info)]
        last = self._do.value(policy, self._now)
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *steps)
        totals = {name: (count[0], count[1]) for name, count in counts.items()}
        return Rollout._make((*stacked, last, carry)), totals

    def _bootstrap(self, policy: Any, seen: Seen) -> np.ndarray:
        """Value of the final observations of episodes that were cut short, else 0."""
        if not seen.truncated.any():
            return np.zeros(self._config.num_envs, np.float32)
        going_on = np.zeros(self._config.num_envs, np.bool_)
        value = self._do.value(policy, self._now._replace(obs=seen.final_obs, reset=going_on))
        return np.where(seen.truncated, np.asarray(value), np.float32(0.0))


class _Acted(NamedTuple):
    action: jax.Array
    played: jax.Array
    log_prob: jax.Array
    value: jax.Array
    carry: Any


class _Functions(NamedTuple):
    init: Any
    act: Any
    value: Any
    update: Any


@functools.lru_cache(maxsize=8)
def _functions(
    network: nn.Module, config: Config, names: tuple[str, ...], metric: str
) -> _Functions:
    """The compiled parts of a run."""

    def init(seed: jax.Array, example: Any) -> State:
        key, key_net = jax.random.split(jax.random.key(seed))
        learner = initial_learner(network, config, example, key_net)
        tally = initial_tally(config.num_envs)
        return State(learner, None, tally, initial_score(), jnp.zeros((), jnp.int32), key)

    def output_of(policy: Any, now: _Inputs) -> Output:
        return once(policy_of(network, *policy), now.obs, now.mask, now.carry, now.reset)

    def act(policy: Any, now: _Inputs, key: jax.Array, step: jax.Array) -> _Acted:
        output = output_of(policy, now)
        distribution = output.distribution
        key_act = jax.random.fold_in(jax.random.split(key, 3)[1], step)
        action = played = distribution.sample(key_act)
        if jnp.issubdtype(action.dtype, jnp.floating):
            played = jnp.clip(action, -1.0, 1.0)
        return _Acted(action, played, distribution.log_prob(action), output.value, output.carry)

    def update(
        state: State, rollout: Rollout, counts: Any, num_updates: jax.Array, target: jax.Array
    ) -> tuple[State, jax.Array]:
        key, _, key_learn = jax.random.split(state.key, 3)
        schedule = (key_learn, state.update, num_updates)
        learner, tally, finished, diagnostics = learn(
            network, config, state.learner, state.tally, rollout, schedule
        )
        counts = finished | {name: counts[name] for name in names}
        score = scored(state.score, counts[metric], target, state.update + 1)
        state = State(learner, None, tally, score, state.update + 1, key)
        return state, row(counts, diagnostics)

    options = compiler_options(quick=config.quick_compile)
    return _Functions(
        jax.jit(init, compiler_options=compiler_options(quick=True, level=0)),
        jax.jit(act, compiler_options=options),
        jax.jit(lambda policy, now: output_of(policy, now).value, compiler_options=options),
        jax.jit(update, donate_argnums=0, compiler_options=options),
    )
