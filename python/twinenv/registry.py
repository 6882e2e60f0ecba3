"""Environment ids: `make`, `list_ids`, registration with gymnax."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from twinenv.env import Environment
from twinenv.naming import unknown

__all__ = ["house_of", "list_ids", "make", "register", "register_gymnax", "spec"]

Factory = Callable[..., tuple[Environment, Any]]

# Ids of the bundled houses, known before their package is imported.
_HOUSES = {"HalfCheetahJAX-v0": "halfcheetah_jax", "PongJAX-v0": "pong_jax"}
_factories: dict[str, Factory] = {}
_in_gymnax: set[str] = set()


def register(env_id: str, factory: Factory) -> None:
    """Make `make(env_id, **options)` call `factory(**options)`, which returns `(env, params)`.

    Registering an id again replaces its factory. If gymnax is imported already, the id is
    registered there too, in its six-value dialect.
    """
    _factories[env_id] = factory
    if "gymnax" in sys.modules:
        register_gymnax()


def make(env_id: str, **options: Any) -> tuple[Environment, Any]:
    """An environment and its default parameters.

    Args:
        env_id: an id of `list_ids()`.
        **options: the environment's own options.

    Raises:
        TypeError: the id is no text.
        ValueError: no such id; the message suggests the nearest.
    """
    return spec(env_id)(**options)


def spec(env_id: str) -> Factory:
    """The factory registered under an id; imports its house if needed."""
    if not isinstance(env_id, str):
        raise TypeError(f"id is {env_id!r}; accepted is one of {', '.join(list_ids())}")
    if env_id not in _factories and env_id in _HOUSES:
        importlib.import_module(_HOUSES[env_id])
    if env_id not in _factories:
        raise ValueError(unknown("environment", env_id, list_ids()))
    return _factories[env_id]


def house_of(env_id: str) -> Any:
    """The imported package that provides an id, such as `pong_jax`."""
    factory = spec(env_id)
    factory = getattr(factory, "func", factory)  # of a functools.partial
    return importlib.import_module(factory.__module__.split(".")[0])


def list_ids() -> list[str]:
    """All ids, sorted."""
    return sorted({*_HOUSES, *_factories})


def register_gymnax() -> None:
    """Register every id with `gymnax.make`; calling it again is harmless."""
    import gymnax

    from twinenv.adapters.gymnax import make_gymnax

    for env_id in list_ids():
        if env_id not in _in_gymnax and env_id not in gymnax.registered_envs:
            gymnax.register(env_id, _GymnaxFactory(env_id, make_gymnax))
            _in_gymnax.add(env_id)


class _GymnaxFactory:
    def __init__(self, env_id: str, make_gymnax: Factory) -> None:
        self._env_id, self._make = env_id, make_gymnax

    def __call__(self, **options: Any) -> Any:
        return self._make(self._env_id, **options)[0]
