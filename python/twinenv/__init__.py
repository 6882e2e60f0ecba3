"""Verified, high-performance twins of reinforcement-learning environments."""

import sys
from typing import Any

from twinenv.env import Environment, TwoPlayerEnvironment
from twinenv.registry import list_ids, make, register, register_gymnax
from twinenv.rollout import Trajectory, rollout

__all__ = [
    "Environment",
    "Trajectory",
    "TwoPlayerEnvironment",
    "__version__",
    "list_ids",
    "load_policy",
    "make",
    "register",
    "register_gymnax",
    "rollout",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "load_policy":  # the trainer brings flax and optax, which stepping does not need
        from twinenv.ppo import load_policy

        return load_policy
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if "gymnax" in sys.modules:
    register_gymnax()
