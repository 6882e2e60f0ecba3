"""Play for the contract: cases, recorded steps, comparisons of pytrees."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import gymnax.environments.spaces as gymnax_spaces
import jax
import jax.numpy as jnp
import numpy as np

from twinenv import Environment

ENVS, STEPS, LIMIT = 8, 40, 7
# The limit is a run-time number, so each environment of a batch can have its own.
LIMITS = np.asarray([LIMIT] * (ENVS - 2) + [3, np.inf], np.float32)


@dataclasses.dataclass(frozen=True)
class Record:
    """Random legal play of `ENVS` environments for `STEPS` steps; axes [step, env].

    All but the keys are host arrays.
    """

    key: Any
    before: Any
    mask: Any
    action: Any
    obs: Any
    state: Any
    reward: Any
    done: Any
    info: Any


@dataclasses.dataclass(frozen=True)
class Case:
    """One configuration under test.

    Attributes:
        build: makes `(env, params)`; each call a new instance.
        ends: whether random play comes to a natural end within `LIMIT` steps now and then.
        rtol: how far apart two programs' floats of one step may be, relatively and absolutely.
        pays_excess: whether the reward sees by how much a continuous action leaves [-1, 1].
        wide: whether floats are float64 where JAX's x64 is enabled.
    """

    build: Callable[[], tuple[Environment, Any]]
    ends: bool = True
    rtol: float = 1e-6
    pays_excess: bool = False
    wide: bool = False

    @functools.cached_property
    def env(self) -> Environment:
        return self.build()[0]

    @functools.cached_property
    def params(self) -> Any:
        return self.build()[1]

    @functools.cached_property
    def short(self) -> Any:
        return self.params.replace(max_steps_in_episode=LIMIT)

    @functools.cached_property
    def reset(self) -> Callable[..., Any]:
        return jax.jit(self.env.reset)

    @functools.cached_property
    def step(self) -> Callable[..., Any]:
        return jax.jit(self.env.step)

    @functools.cached_property
    def start(self) -> tuple[Any, Any]:
        """Observation and state of one new episode."""
        return self.reset(jax.random.key(3), self.params)

    @functools.cached_property
    def action(self) -> Any:
        """A legal action in `start`."""
        mask = self.env.action_mask(self.start[1], self.params)
        return choose(self.env, mask, noise_for(self.env))

    @functools.cached_property
    def record(self) -> Record:
        return play(self.env, self.short)


def choose(env: Environment, mask: jax.Array, noise: Any) -> jax.Array:
    """A random legal action, given uniform numbers of the mask's shape."""
    if env.is_discrete:
        return jnp.argmax(jnp.where(mask, noise, -1.0), axis=-1).astype(jnp.int32)
    return noise.reshape(env.action_shape) * 2.0 - 1.0


def noise_for(env: Environment, *batch: int) -> np.ndarray:
    players = (2,) if env.num_players == 2 else ()
    shape = (*batch, *players, env.num_actions)
    return np.random.default_rng(1).random(shape, np.float32)


def play(env: Environment, params: Any) -> Record:
    """Random legal play under `LIMITS`."""

    def one(state, limit, key, noise):
        own = params.replace(max_steps_in_episode=limit)
        mask = env.action_mask(state, own)
        action = choose(env, mask, noise)
        obs, following, reward, done, info = env.step(key, state, action, own)
        return following, (state, mask, action, obs, following, reward, done, info)

    @jax.jit
    def steps(states, keys, noise):
        batch = jax.vmap(one)
        return jax.lax.scan(lambda s, x: batch(s, LIMITS + 0, *x), states, (keys, noise))[1]

    states = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(0), ENVS), params)[1]
    keys = jax.random.split(jax.random.key(1), (STEPS, ENVS))
    return Record(keys, *jax.device_get(steps(states, keys, noise_for(env, STEPS, ENVS))))


def assert_equal(one: Any, other: Any, *, rtol: float = 0.0) -> None:
    """Same structure, shapes, dtypes and values (floats within `rtol`)."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for (path, a), b in zip(
        jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(other), strict=True
    ):
        a, b = np.asarray(a), np.asarray(b)
        where = jax.tree_util.keystr(path)
        assert (a.shape, a.dtype) == (b.shape, b.dtype), where
        if rtol and np.issubdtype(a.dtype, np.floating):
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=where)
        else:
            np.testing.assert_array_equal(a, b, err_msg=where)


def layout(tree: Any) -> Any:
    """Structure and, for each leaf, shape, dtype and weakness."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(x.shape, x.dtype, x.weak_type) for x in leaves]


def assert_inside(space: Any, value: Any, path: str = "") -> None:
    """`value`, with any batch axes, lies in the space and is of its dtype."""
    if isinstance(space, gymnax_spaces.Dict):
        get = value.__getitem__ if isinstance(value, dict) else functools.partial(getattr, value)
        for name, item in space.spaces.items():
            assert_inside(item, get(name), f"{path}.{name}")
    elif isinstance(space, gymnax_spaces.Tuple):
        for i, item in enumerate(space.spaces):
            assert_inside(item, value[i], f"{path}[{i}]")
    else:
        assert isinstance(space, gymnax_spaces.Box | gymnax_spaces.Discrete), path
        value = np.asarray(value)
        assert value.dtype == space.dtype, path
        assert value.shape[value.ndim - len(space.shape) :] == tuple(space.shape), path
        discrete = isinstance(space, gymnax_spaces.Discrete)
        low, high = (0, space.n - 1) if discrete else (space.low, space.high)
        assert np.all((value >= np.asarray(low)) & (value <= np.asarray(high))), path
        if value.shape == tuple(space.shape):
            assert bool(space.contains(value)), path


def index(tree: Any, *at: int) -> Any:
    return jax.tree.map(lambda x: x[at], tree)


class Unknown:
    """Something that no environment takes."""


BAD_ARGUMENTS = {
    "key None": ({"key": None}, "key"),
    "key int": ({"key": 3}, "key"),
    "key float array": ({"key": jnp.zeros((2,), jnp.float32)}, "key"),
    "key batch": ({"key": jax.random.split(jax.random.key(0), 4)}, "vmap"),
    "key of three words": ({"key": jnp.zeros((3,), jnp.uint32)}, "key"),
    "state None": ({"state": None}, "state"),
    "state of another environment": ({"state": Unknown()}, "Unknown"),
    "action str": ({"action": "up"}, "action"),
    "action None": ({"action": None}, "action"),
    "action object": ({"action": Unknown()}, "action"),
    "action bool": ({"action": True}, "action"),
    "action complex": ({"action": jnp.complex64(1)}, "action"),
    "action of a wrong shape": ({"action": jnp.zeros((3, 5), jnp.int32)}, "action"),
    "params dict": ({"params": {"max_steps_in_episode": 3}}, "params"),
    "params object": ({"params": Unknown()}, "params"),
}
