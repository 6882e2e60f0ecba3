"""The compiled program: initial state, and chunks of updates in one call."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from twinenv.ppo.compiling import compiler_options
from twinenv.ppo.config import Config, Outcome
from twinenv.ppo.learn import (
    Learner,
    Tally,
    initial_learner,
    initial_tally,
    learn,
    policy_of,
)
from twinenv.ppo.rollout import Actors, Counts, collect, initial_actors
from twinenv.ppo.views import View

__all__ = ["CHUNK", "Program", "Score", "State", "metric_names", "program", "row", "scored"]

CHUNK = 256
"""Most updates in one call."""

_BLOCK = 100.0
_DIAGNOSTICS = (
    "policy_loss",
    "value_loss",
    "entropy",
    "approx_kl",
    "clip_fraction",
    "explained_variance",
    "grad_norm",
    "learning_rate",
)


class Score(NamedTuple):
    """How good the policy is by the target's metric, over blocks of at least 100 counts.

    Attributes:
        total: `float32`, sum over the block so far.
        counted: `float32`, counts of the block so far.
        value: `float32`, mean of the last complete block; NaN before the first.
        reached_at: `int32`, the update after which `value` first reached the target; 0 if not yet.
    """

    total: jax.Array
    counted: jax.Array
    value: jax.Array
    reached_at: jax.Array


class State(NamedTuple):
    """Everything a run consists of; with several seeds every leaf has a leading axis for them.

    Attributes:
        learner: what is learned.
        actors: where the environments stand; None if they are on the host.
        tally: sums over the episodes under way.
        score: how good the policy is.
        update: `int32`, updates done.
        key: of all that is random from here on.
    """

    learner: Learner
    actors: Actors | None
    tally: Tally
    score: Score
    update: jax.Array
    key: jax.Array


@dataclasses.dataclass(frozen=True)
class Program:
    """The functions of a run, compiled when first called.

    Attributes:
        init: `(seed or seeds: uint32, params) -> State`.
        chunk: `(state, params, limits, target) -> (state, rows)`. `limits: int32[3]` are the most
            updates to do now, the updates of the whole run and whether to stop at the target;
            `rows: float32[CHUNK, ...]` holds the metrics of each update done. The state given is
            consumed.
    """

    init: Callable[..., State]
    chunk: Callable[..., tuple[State, jax.Array]]


def metric_names(outcomes: Mapping[str, Outcome]) -> tuple[str, ...]:
    """Names of the columns of a row of metrics."""
    return ("episodes", "return", "length", *outcomes, *_DIAGNOSTICS)


def initial_score() -> Score:
    """The score before the first update."""
    zero = jnp.zeros((), jnp.float32)
    return Score(zero, zero, jnp.full((), jnp.nan, jnp.float32), jnp.zeros((), jnp.int32))


def scored(
    score: Score, new: tuple[jax.Array, jax.Array], target: jax.Array, done: jax.Array
) -> Score:
    """The score after an update that added `(sum, count)`; `done` updates are done by then."""
    total, counted = score.total + new[0], score.counted + new[1]
    full = counted >= _BLOCK
    value = jnp.where(full, total / jnp.maximum(counted, 1.0), score.value)
    first = full & (value >= target) & (score.reached_at == 0)
    reached_at = jnp.where(first, done, score.reached_at)
    zero = jnp.zeros_like(total)
    return Score(jnp.where(full, zero, total), jnp.where(full, zero, counted), value, reached_at)


def row(counts: Counts, diagnostics: Mapping[str, jax.Array]) -> jax.Array:
    """Metrics of an update in the order of `metric_names`; NaN where nothing was counted."""
    means = {name: total / count for name, (total, count) in counts.items()}
    episodes = {"episodes": counts["return"][1]}
    values = episodes | means | {name: diagnostics[name] for name in _DIAGNOSTICS}
    return jnp.stack(list(values.values()))


@functools.lru_cache(maxsize=16)
def program(
    view: View,
    network: nn.Module,
    config: Config,
    outcomes: tuple[tuple[str, Outcome], ...],
    metric: str,
) -> Program:
    """The program of an environment, a policy and a configuration, made once for equal ones.

    Args:
        view: the environment.
        network: the policy.
        config: hyperparameters; see `Config.compiled`.
        outcomes: ratios to count, by name.
        metric: "return", "length" or the outcome that the score is about.
    """
    ratios = dict(outcomes)

    def init(seed: jax.Array, params: Any) -> State:
        key, key_net, key_env = jax.random.split(jax.random.key(seed), 3)
        carry = network.initial_carry(config.num_envs)
        actors = initial_actors(view, params, carry, key_env, config.num_envs)
        mask = jax.vmap(view.mask, in_axes=(0, None))(actors.env_state, params)
        one = jax.tree.map(lambda leaf: leaf[None], (actors.obs, mask, actors.reset))
        learner = initial_learner(network, config, (*one[:2], carry, one[2]), key_net)
        tally = initial_tally(config.num_envs)
        return State(learner, actors, tally, initial_score(), jnp.zeros((), jnp.int32), key)

    def one(state: State, params: Any, num_updates: jax.Array, target: jax.Array) -> Any:
        actors = state.actors
        assert actors is not None
        key, key_act, key_learn = jax.random.split(state.key, 3)
        apply = policy_of(network, state.learner.params, state.learner.obs_moments)
        # All keys of the rollout at once: one call of the generator instead of two in every step.
        key_action, key_env = jax.random.split(key_act)
        size = (config.num_steps, config.num_envs)
        keys = jax.random.split(key_action, size[0]), jax.random.split(key_env, size)
        actors, rollout, counts = collect(view, params, apply, ratios, actors, keys)
        schedule = (key_learn, state.update, num_updates)
        learner, tally, finished, diagnostics = learn(
            network, config, state.learner, state.tally, rollout, schedule
        )
        counts = finished | counts
        score = scored(state.score, counts[metric], target, state.update + 1)
        state = State(learner, actors, tally, score, state.update + 1, key)
        return state, row(counts, diagnostics)

    if config.seeds > 1:
        init = jax.vmap(init, in_axes=(0, None))
        one = jax.vmap(one, in_axes=(0, None, None, None))
    return _compiled(init, one, config, len(metric_names(ratios)))


def _compiled(init: Any, one: Any, config: Config, width: int) -> Program:
    shape = (CHUNK, config.seeds, width) if config.seeds > 1 else (CHUNK, width)

    def chunk(state: State, params: Any, limits: jax.Array, target: jax.Array) -> Any:
        most, num_updates, stops = limits

        def going(loop: tuple[jax.Array, State, jax.Array]) -> jax.Array:
            reached = jnp.all(loop[1].score.reached_at > 0)
            return (loop[0] < most) & ~(reached & (stops > 0))

        def body(loop: tuple[jax.Array, State, jax.Array]) -> tuple[jax.Array, State, jax.Array]:
            done, state, rows = loop
            state, new = one(state, params, num_updates, target)
            return done + 1, state, rows.at[done].set(new)

        start = (jnp.zeros((), jnp.int32), state, jnp.zeros(shape, jnp.float32))
        return jax.lax.while_loop(going, body, start)[1:]

    options = compiler_options(quick=config.quick_compile)
    # Building the first state is little work: compile it as fast as can be.
    once = compiler_options(quick=True, level=0)
    return Program(
        jax.jit(init, compiler_options=once),
        jax.jit(chunk, donate_argnums=0, compiler_options=options),
    )
