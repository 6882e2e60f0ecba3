"""What holds in every step of the HalfCheetah, and relations between its steps."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from halfcheetah_jax import laws
from halfcheetah_jax.dynamics import COMPILED, Body, Model, problem_of
from halfcheetah_jax.dynamics.inertia import full_matrix, mass_matrix
from halfcheetah_jax.dynamics.tree import Dofs, Limbs
from halfcheetah_jax.params import EnvParams, model_of
from twinenv.verify.compiling import lightly_compiled
from twinenv.verify.pair import Rows, Step

if TYPE_CHECKING:
    from halfcheetah_jax.pair import FastCheetah

__all__ = ["INVARIANTS", "RELATIONS"]

Check = Callable[[Rows, np.ndarray, Step, "FastCheetah"], np.ndarray]
Relation = Callable[["FastCheetah", Rows, np.ndarray], np.ndarray]

_CLOSE = 1e-7  # float64 after a step, computed in another order
_ROUGH = 1e-2  # float32 after a time step, in states with many deep contacts
_TINY = 1e-9  # of the largest force
_UNLIKELY = 1.95  # times the root of the number of draws: a distance that one sample in 500 reaches


def _finite(before: Rows, actions: np.ndarray, step: Step, fast: FastCheetah) -> np.ndarray:
    return np.isfinite(_numbers(step.state)).all(axis=1)


def _endless(before: Rows, actions: np.ndarray, step: Step, fast: FastCheetah) -> np.ndarray:
    return ~step.output["terminated"]


def _reward(before: Rows, actions: np.ndarray, step: Step, fast: FastCheetah) -> np.ndarray:
    p, seconds = fast.params, fast.env.frame_skip * COMPILED["timestep"]
    speed = (step.state["qpos"][:, 0] - before["qpos"][:, 0]) / seconds
    cost = np.square(actions.astype(np.float64)).sum(axis=1)
    due = p.forward_reward_weight * speed - p.ctrl_cost_weight * cost
    return np.abs(step.output["reward"] - due) <= 1e-5 * (1 + np.abs(due))


def _observed(before: Rows, actions: np.ndarray, step: Step, fast: FastCheetah) -> np.ndarray:
    return (step.output["observation"] == _numbers(step.state)[:, 1:]).all(axis=1)


INVARIANTS: dict[str, Check] = {
    "positions and speeds stay finite": _finite,
    "nothing ends an episode": _endless,
    "the reward is the way in its time, less the cost of the action": _reward,
    "the observation is the state but for x": _observed,
}


def _numbers(state: Rows) -> np.ndarray:
    return np.concatenate([state["qpos"], state["qvel"]], axis=1)


def _apart(one: Rows, other: Rows) -> np.ndarray:
    return np.abs(_numbers(one) - _numbers(other)).max(axis=1)


def _moved(index: int, by: float) -> Relation:
    def holds(fast: FastCheetah, state: Rows, actions: np.ndarray) -> np.ndarray:
        way = np.zeros(9)
        way[index] = by
        here = fast.step(state, actions, {}).state
        there = fast.step(state | {"qpos": state["qpos"] + way}, actions, {}).state
        return _apart(here, there | {"qpos": there["qpos"] - way}) < _CLOSE

    return holds


def _clipped(fast: FastCheetah, state: Rows, actions: np.ndarray) -> np.ndarray:
    edge = np.clip(actions, -1, 1)
    return _apart(fast.step(state, actions, {}).state, fast.step(state, edge, {}).state) < _CLOSE


def _from_elsewhere(fast: FastCheetah, state: Rows, actions: np.ndarray) -> np.ndarray:
    far = np.random.default_rng(0).normal(0, 1000, (len(actions), 9))
    begun = fast.step(state | {"qacc_warmstart": far}, actions, {}).state
    return _apart(fast.step(state, actions, {}).state, begun) < _CLOSE


def _alone(fast: FastCheetah, state: Rows, actions: np.ndarray) -> np.ndarray:
    wild = {name: rows.copy() for name, rows in state.items()}
    row = np.arange(len(actions))
    bad = row % 7 == 3
    wild["qvel"][bad] = 1e12
    wild["qpos"][bad & (row % 2 == 1), 4] = np.nan
    rest = {name: np.zeros_like(rows) for name, rows in state.items()}
    after = fast.step(wild, actions, {}).state
    same = _apart(after, fast.step(state, actions, {}).state) < _CLOSE
    begun = _apart(after, fast.step(rest, np.zeros_like(actions), {}).state) < _CLOSE
    return np.where(bad, begun, same) & (fast.info(wild, actions)["blew_up"] == bad)


def _solved(fast: FastCheetah, state: Rows, actions: np.ndarray) -> np.ndarray:
    info = fast.info(state, actions)
    return info["solver_converged"] & ~info["blew_up"]


def _matrix(fast: FastCheetah, state: Rows, actions: np.ndarray) -> np.ndarray:
    found = _mass_matrix(fast.params, state["qpos"])
    gap = np.abs(found - laws.mass_matrix(state["qpos"], fast.params)).max(axis=(1, 2))
    positive = np.linalg.eigvalsh(found).min(axis=1) > 0
    return positive & (gap < _TINY) & (found == found.swapaxes(1, 2)).all(axis=(1, 2))


def _narrow(fast: FastCheetah, state: Rows, actions: np.ndarray) -> np.ndarray:
    wide = _single(fast).step(state, actions, {}).state
    with lightly_compiled():
        narrow = _in_float32(_options(fast)).step(state, actions, {}).state
    speed = np.abs(wide["qvel"]).max(axis=1)
    return _apart(wide, narrow) < _ROUGH * (1 + speed)


def _mass_matrix(params: EnvParams, qpos: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True), lightly_compiled():
        return np.asarray(_own_matrix(jnp.asarray(qpos), model_of(params, jnp.float64)))


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, None))
def _own_matrix(qpos: jax.Array, model: Model) -> jax.Array:
    """The twin's own, which a step never writes down."""
    zero = jnp.zeros_like(qpos)
    problem = problem_of(Body(*map(Dofs.of, (qpos, zero, zero))), Limbs.of(zero[3:]), model)
    return full_matrix(mass_matrix(problem.inertias, problem.hinges, problem.armature))


def _time_steps(fast: FastCheetah, state: Rows, actions: np.ndarray) -> np.ndarray:
    one, now = _single(fast), state
    for _ in range(fast.env.frame_skip):
        now = one.step(now, actions, {}).state
    return _apart(fast.step(state, actions, {}).state, now) < _CLOSE


def _gauss(fast: FastCheetah, state: Rows, actions: np.ndarray) -> np.ndarray:
    push, qacc = _pushes(fast, state, actions)
    due = laws.rows_of(state, fast.params).forces(qacc)
    return np.abs(push - due).max(axis=1) <= _TINY * (1 + np.abs(push).max(axis=1))


def _floor(fast: FastCheetah, state: Rows, actions: np.ndarray) -> np.ndarray:
    push, _ = _pushes(fast, state, actions)
    along, up = push[:, 0], push[:, 1]
    least = _TINY * (1 + np.abs(push).max(axis=1))
    pressed = np.where(laws.touches(state["qpos"]).any(axis=1), np.maximum(up, 0), 0)
    return (np.abs(up - pressed) <= least) & (
        np.abs(along) <= fast.params.friction * pressed + least
    )


def _pushes(fast: FastCheetah, state: Rows, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    after = _single(fast).step(state, actions, {}).state
    return laws.pushes(state, actions, after, fast.params)


def _beginnings(fast: FastCheetah, state: Rows, actions: np.ndarray) -> np.ndarray:
    first, scale = fast.reset(0, len(actions)), fast.params.reset_noise_scale
    even = first.state["qpos"] / (2 * scale) + 0.5
    bell = 0.5 + np.vectorize(math.erf)(first.state["qvel"] / scale / math.sqrt(2)) / 2
    seen = first.output["observation"] == _numbers(first.state)[:, 1:]
    drawn = all(_is_even(part) for part in (even, bell, *even.T, *bell.T))
    return np.full(len(actions), drawn and bool(seen.all()), np.bool_)


def _is_even(draws: np.ndarray) -> bool:
    """Whether numbers may be draws from [0, 1] (Kolmogorov and Smirnov)."""
    values = np.sort(draws, axis=None)
    steps = np.arange(values.size + 1) / values.size
    far = max(np.abs(values - steps[1:]).max(), np.abs(values - steps[:-1]).max())
    return bool(values[0] >= 0 and values[-1] <= 1 and far * math.sqrt(values.size) < _UNLIKELY)


@functools.cache
def _made(options: tuple[tuple[str, Any], ...]) -> FastCheetah:
    from halfcheetah_jax.pair import PAIR, FastCheetah

    for name, known in PAIR.configurations.items():
        if dict(options) == known:
            return PAIR.fast(name)
    return FastCheetah(dict(options))


@functools.cache
def _in_float32(options: tuple[tuple[str, Any], ...]) -> FastCheetah:
    from halfcheetah_jax.pair import FastCheetah

    return FastCheetah(dict(options), x64=False)


def _options(fast: FastCheetah) -> tuple[tuple[str, Any], ...]:
    """Of the same mechanism, a time step at a time."""
    return tuple(sorted((dict(fast.options) | {"frame_skip": 1}).items()))


def _single(fast: FastCheetah) -> FastCheetah:
    return fast if fast.env.frame_skip == 1 else _made(_options(fast))


RELATIONS: dict[str, Relation] = {
    "the place along x does not matter": _moved(0, 17.0),
    "a full turn does not matter": _moved(2, 2 * math.pi),
    "controls beyond the range act as its ends": _clipped,
    "where the solver begins does not matter": _from_elsewhere,
    "a state that blew up begins again at rest and touches no neighbour": _alone,
    "the solver converges": _solved,
    "a step is its time steps": _time_steps,
    "the acceleration is the one of Gauss's principle": _gauss,
    "the floor only pushes, within its friction, and only who touches it": _floor,
    "an episode begins with uniform positions and normal speeds": _beginnings,
    "the mass matrix is symmetric, positive definite and that of the bodies": _matrix,
    "float32 stays near float64": _narrow,
}
