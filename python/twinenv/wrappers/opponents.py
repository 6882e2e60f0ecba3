"""Opponents for `versus`."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from flax import struct

from twinenv.acting import PolicyAct, uniform_legal

__all__ = [
    "FrozenPolicy",
    "Opponent",
    "RandomOpponent",
    "ScriptedOpponent",
    "as_opponent",
    "params_with_opponent",
    "with_opponent",
]


@runtime_checkable
class Opponent(Protocol):
    """Who plays the other seat; hashable, as it is part of an environment's configuration.

    Attributes:
        weights: arrays that may change during a run, `()` if there are none.
    """

    @property
    def weights(self) -> Any: ...  # noqa: D102

    def act(self, weights: Any, obs: Any, mask: jax.Array, key: jax.Array) -> jax.Array:
        """Action `int32` given its own observation and legal actions `bool[num_actions]`."""
        ...


@dataclasses.dataclass(frozen=True)
class RandomOpponent:
    """Plays a legal action at random."""

    @property
    def weights(self) -> tuple[()]:
        """None."""
        return ()

    def act(self, weights: Any, obs: Any, mask: jax.Array, key: jax.Array) -> jax.Array:
        """A legal action, each as likely as the others."""
        return uniform_legal(mask, key)


@dataclasses.dataclass(frozen=True)
class ScriptedOpponent:
    """Plays by a fixed rule.

    Attributes:
        function: `(obs, mask, key) -> action`, traceable; a module-level function can be pickled.
    """

    function: Callable[[Any, jax.Array, jax.Array], jax.Array]

    @property
    def weights(self) -> tuple[()]:
        """None."""
        return ()

    def act(self, weights: Any, obs: Any, mask: jax.Array, key: jax.Array) -> jax.Array:
        """What the function returns."""
        return self.function(obs, mask, key)


@dataclasses.dataclass(frozen=True, eq=False)
class FrozenPolicy:
    """Plays a policy whose weights are run-time arrays.

    The weights given here become the field `opponent` of the environment's default params. To play
    another policy of the same shape pass `params.replace(opponent=other_weights)`: nothing is
    compiled again.

    Attributes:
        apply: `(weights, obs, mask, key) -> action`, traceable.
        weights: pytree of arrays.
    """

    apply: Callable[[Any, Any, jax.Array, jax.Array], jax.Array]
    weights: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", jax.tree.map(np.asarray, self.weights))

    def act(self, weights: Any, obs: Any, mask: jax.Array, key: jax.Array) -> jax.Array:
        """The policy's action under `weights`."""
        return self.apply(weights, obs, mask, key)

    # The default weights are part of the configuration: they are what params=None stands for.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenPolicy) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @functools.cached_property
    def _identity(self) -> tuple[Any, ...]:
        leaves, structure = jax.tree.flatten(self.weights)
        digest = hashlib.sha256()
        for leaf in leaves:
            digest.update(f"{leaf.dtype}{leaf.shape}".encode() + leaf.tobytes())
        return self.apply, structure, digest.hexdigest()


@dataclasses.dataclass(frozen=True)
class _One:
    """A function of a batch for a single environment."""

    act: PolicyAct

    def __call__(self, weights: Any, obs: Any, mask: jax.Array, key: jax.Array) -> jax.Array:
        obs, mask = jax.tree.map(lambda x: x[None], (obs, mask))
        return self.act(weights, obs, mask, key)[0]


def as_opponent(opponent: Any) -> Opponent:
    """An `Opponent` from what `versus` accepts.

    Raises:
        TypeError: it is none of them.
    """
    if isinstance(opponent, str) and opponent == "random":
        return RandomOpponent()
    if PolicyAct.fits(opponent):
        act, weights = PolicyAct.split(opponent)
        return FrozenPolicy(_One(act), weights)
    is_class = isinstance(opponent, type)
    if isinstance(opponent, Opponent) and not is_class:
        return opponent
    if callable(opponent) and not is_class:
        return ScriptedOpponent(opponent)
    raise TypeError(
        f'opponent is {opponent!r}; accepted are "random", a function (obs, mask, key) -> action, '
        "a policy of twinenv.load_policy, or an Opponent such as FrozenPolicy(apply, weights)"
    )


@functools.cache
def params_with_opponent(params_class: type) -> type:
    """Subclass of an environment's params with one more field, `opponent`: a pytree of arrays.

    The environment itself takes such params as its own. They cannot be hashed, as arrays cannot.
    """
    namespace = {
        "__annotations__": {"opponent": Any},
        "__doc__": f"{params_class.__name__} with the opponent's weights in `opponent`.",
        "__module__": params_class.__module__,
        # The class is made at run time, so that pickle cannot find it by its name.
        "__reduce__": lambda self: (_rebuild, (params_class, vars(self))),
        "opponent": (),
    }
    return struct.dataclass(
        type(f"{params_class.__name__}WithOpponent", (params_class,), namespace)
    )


def with_opponent(params: Any, weights: Any) -> Any:
    """`params` as `params_with_opponent` with the given weights."""
    values = {item.name: getattr(params, item.name) for item in dataclasses.fields(params)}
    return _rebuild(type(params), values | {"opponent": weights})


def _rebuild(params_class: type, values: dict[str, Any]) -> Any:
    return params_with_opponent(params_class)(**values)
