"""Facts of the functional API that hold of every environment, checked on batches of own play."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

from twinenv import registry, spaces
from twinenv.env import Environment
from twinenv.verify.compiling import lightly_compiled
from twinenv.verify.diagnostic import Divergence
from twinenv.verify.ledger import Ledger
from twinenv.verify.pair import Pair
from twinenv.verify.sides import guarded

__all__ = ["FACTS", "check"]

_ENVS, _LIMIT, _LOOPED = 64, 5, 3


class Play:
    """A short play of one environment with random, sometimes illegal, actions.

    The time limit is so short that every episode ends and is reset on the way.

    Attributes:
        env: the environment.
        params: its parameters, with a time limit of a few steps.
        keys: keys of each step, `[steps, envs]`.
        states: batched states before each step.
        actions: actions of each step.
        results: what `jit(vmap(env.step))` returned.
        first: what `reset` returned.
        boundary: batched states to step from once.
        further: what `step` returned from these.
        rounding: as `Pair` has it.
    """

    def __init__(
        self,
        env: Environment[Any, Any],
        params: Any,
        seed: int,
        boundary: Sequence[Any] = (),
        rounding: float = 0.0,
    ) -> None:
        self.env, self.rounding = env, rounding
        self.params = params.replace(max_steps_in_episode=_LIMIT)
        self.step = jax.jit(jax.vmap(functools.partial(_step, env, self.params)))
        key = jax.random.key(seed)
        reset = jax.jit(jax.vmap(lambda key: env.reset(key, self.params)))
        self.first = reset(jax.random.split(key, _ENVS))
        self.keys, self.states, self.actions, self.results = [], [], [], []
        state = self.first[1]
        keys = jax.random.split(key, (2 * _LIMIT, _ENVS))
        for number in range(2 * _LIMIT):
            self.keys.append(keys[number])
            self.states.append(state)
            self.actions.append(_actions(env, seed + number))
            self.results.append(self.step(keys[number], state, self.actions[-1]))
            state = self.results[-1][1]
        self.boundary = list(boundary)
        moves = zip(self.keys, self.boundary, self.actions, strict=False)
        self.further = [self.step(*move) for move in moves]

    def each(self) -> Iterator[tuple[Any, ...]]:
        """State before, action, and what `step` returned, of each step."""
        yield from zip(self.states, self.actions, self.results, strict=True)


Fact = Callable[[Play], bool | str]
"""True, or False or words that say what does not hold."""


def check(pair: Pair, configuration: str, seed: int, ledger: Ledger) -> None:
    """Every fact on one configuration, and `env.step` under index and NaN checks."""
    place = {"configuration": configuration, "seed": seed}
    try:
        env, params = registry.make(pair.env_id, **pair.configurations[configuration])
        boundary = _boundary_states(pair, configuration, ledger)
        play = Play(env, params, seed, boundary, pair.rounding)
    except Exception as error:
        message = f"playing raised {type(error).__name__}: {error}"
        ledger.add([Divergence.said(pair.name, 1, "contract", message, kind="error", **place)])
        return
    for name, fact in FACTS.items():
        try:
            holds = fact(play)
            message = "" if holds is True else holds or "does not hold"
        except Exception as error:
            message = f"raised {type(error).__name__}: {error}"
        ledger.count(2 * _LIMIT * _ENVS, (name,))
        if message:
            ledger.add([Divergence.said(pair.name, 1, f"contract: {name}", message, **place)])
    if message := _checked(play, ledger):
        ledger.add([Divergence.said(pair.name, 1, "index and NaN checks", message, **place)])


def _step(env: Environment[Any, Any], params: Any, key: Any, state: Any, action: Any) -> Any:
    return env.step(key, state, action, params)


def _actions(env: Environment[Any, Any], seed: int) -> jax.Array:
    """Random actions, about one in ten of them out of range."""
    rng, shape = np.random.default_rng(seed), (_ENVS, *env.action_shape)
    if not env.is_discrete:
        return jnp.asarray(rng.uniform(-1.1, 1.1, shape), jnp.float32)
    actions = rng.integers(0, env.num_actions, shape)
    wild = rng.choice([-1, env.num_actions, 2**31 - 1], shape)
    return jnp.asarray(np.where(rng.random(shape) < 0.1, wild, actions), jnp.int32)


def _boundary_states(pair: Pair, configuration: str, ledger: Ledger) -> list[Any]:
    """The pair's boundary states as the environment's own, one batch for each step of a play."""
    env_state = getattr(guarded(pair, configuration), "env_state", None)
    if env_state is None:
        ledger.skip("contract from boundary states: the fast side has no `env_state`")
        return []
    rng = np.random.default_rng(0)
    return [env_state(pair.states(rng, _ENVS, configuration)) for _ in range(2 * _LIMIT)]


def _checked(play: Play, ledger: Ledger) -> str:
    """What checkify has to say of own play and of boundary states, "" if nothing."""
    step = jax.vmap(functools.partial(_step, play.env, play.params))
    # vmap inside: rules for whole batches are not those of checkify.
    checked = jax.jit(checkify.checkify(step, errors=checkify.index_checks | checkify.nan_checks))
    for states in (play.states, play.boundary):
        for keys, state, actions in zip(play.keys, states, play.actions, strict=False):
            with lightly_compiled():
                error, _ = checked(keys, state, actions)
            if message := error.get():
                return message.splitlines()[0]
            ledger.count(_ENVS, ("index checks",))
    return ""


def _same(one: Any, other: Any, rounding: float = 0.0) -> bool:
    """Equal structure, shapes, dtypes and values, floats as far as they are rounded alike."""
    if str(jax.tree.structure(one)) != str(jax.tree.structure(other)):
        return False
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(
        a.shape == b.shape and a.dtype == b.dtype and _equal(np.asarray(a), np.asarray(b), rounding)
        for a, b in pairs
    )


def _equal(one: np.ndarray, other: np.ndarray, rounding: float) -> bool:
    if not jnp.issubdtype(one.dtype, jnp.floating):
        return np.array_equal(one, other)
    return np.allclose(one, other, rtol=rounding, atol=rounding, equal_nan=True)


def _form(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), tree)


def _row(tree: Any, row: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[row], tree)


def _spaces_contain(play: Play) -> bool | str:
    env, params = play.env, play.params
    results = [play.first, *play.results, *play.further]
    for place, space in enumerate((env.observation_space(params), env.state_space(params))):
        values = jax.tree.map(lambda *x: np.concatenate(x), *(result[place] for result in results))
        inside = np.asarray(jax.jit(jax.vmap(space.contains))(values))
        if not inside.all():
            row = int(np.argmin(inside))
            return f"{('observation', 'state')[place]}{_outside(space, _row(values, row))}"
    return True


def _outside(space: Any, value: Any) -> str:
    """Which part of a value is outside its space."""
    if isinstance(space, spaces.Dict):
        names = [n for n, s in space.spaces.items() if not bool(s.contains(getattr(value, n)))]
        return f".{names[0]}{_outside(space.spaces[names[0]], getattr(value, names[0]))}"
    if not isinstance(space, spaces.Box):
        return f" {value} is outside {space}"
    low, high = (np.broadcast_to(limit, value.shape) for limit in (space.low, space.high))
    place = tuple(np.argwhere((value < low) | (value > high))[0])
    index = "".join(f"[{i}]" for i in place)
    return f"{index} is {value[place]:.9g}, declared {low[place]:.9g} to {high[place]:.9g}"


def _forms_stay(play: Play) -> bool:
    return all(_form(result[:2]) == _form(play.first) for result in play.results) and all(
        _form(result) == _form(play.results[0]) for result in play.results
    )


def _jit_is_eager(play: Play) -> bool:
    eager = jax.vmap(functools.partial(_step, play.env, play.params))
    with lightly_compiled():
        stepped = eager(play.keys[0], play.states[0], play.actions[0])
    return _same(stepped, play.results[0], play.rounding)


def _vmap_is_loop(play: Play) -> bool:
    single = jax.jit(functools.partial(_step, play.env, play.params))
    rounding = play.rounding
    return all(
        _same(single(*(_row(x, row) for x in (keys, state, action))), _row(result, row), rounding)
        for keys, (state, action, result) in zip(play.keys, play.each(), strict=True)
        for row in range(_LOOPED)
    )


def _same_key_same_step(play: Play) -> bool:
    again = [play.step(*x) for x in zip(play.keys, play.states, play.actions, strict=True)]
    return _same(again, play.results)


def _some_action_is_legal(play: Play) -> bool:
    if not play.env.is_discrete:
        return True
    mask = jax.vmap(lambda state: play.env.action_mask(state, play.params))
    return all(bool(jnp.all(jnp.any(mask(state), axis=-1))) for state in play.states)


def _illegal_is_first_legal(play: Play) -> bool:
    if not play.env.is_discrete:
        return True
    mask = jax.vmap(lambda state: play.env.action_mask(state, play.params))
    for keys, (state, action, result) in zip(play.keys, play.each(), strict=True):
        legal, asked = np.asarray(mask(state)), np.asarray(action)
        known = np.arange(legal.shape[-1]) == asked[..., None]
        illegal = ~(legal & known).any(axis=-1)
        played = np.where(illegal, legal.argmax(axis=-1), asked).astype(np.int32)
        obs, after, reward, done, info = play.step(keys, state, jnp.asarray(played))
        if not _same((obs, after, reward, done, info | {"illegal_action": illegal}), result):
            return False
    return True


def _ends_reset(play: Play) -> bool:
    for state, _, (obs, after, _, done, info) in jax.tree.map(np.asarray, list(play.each())):
        terminated, truncated = info["terminated"], info["truncated"]
        holds = [
            np.array_equal(after.time, np.where(done, 0, state.time + 1)),
            np.array_equal(done, terminated ^ truncated),
            np.array_equal(info["discount"], 1.0 - terminated),
            _same(
                *(
                    jax.tree.map(lambda x, d=done: x[~d], o)
                    for o in (obs, info["final_observation"])
                )
            ),
        ]
        if not all(holds):
            return False
    return True


def _limit_truncates(play: Play) -> bool:
    return all(
        np.array_equal(info["truncated"], (state.time + 1 >= _LIMIT) & ~info["terminated"])
        for state, _, (_, _, _, _, info) in jax.tree.map(np.asarray, list(play.each()))
    ) and any(np.any(result[4]["truncated"]) for result in play.results)


FACTS: dict[str, Fact] = {
    "spaces contain what reset and step return": _spaces_contain,
    "structure, shapes and dtypes stay the same": _forms_stay,
    "jit equals eager": _jit_is_eager,
    "vmap equals a loop": _vmap_is_loop,
    "the same key gives the same step": _same_key_same_step,
    "some action is legal": _some_action_is_legal,
    "an illegal action acts as the first legal one": _illegal_is_first_legal,
    "an episode that ends is reset in the same step": _ends_reset,
    "the time limit truncates": _limit_truncates,
}
"""By name; each holds or does not hold of a play."""
