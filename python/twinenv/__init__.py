"""Verified, high-performance twins of reinforcement-learning environments."""

import sys

from twinenv.env import Environment, TwoPlayerEnvironment
from twinenv.registry import list_ids, make, register, register_gymnax
from twinenv.rollout import Trajectory, rollout

__all__ = [
    "Environment",
    "Trajectory",
    "TwoPlayerEnvironment",
    "__version__",
    "list_ids",
    "make",
    "register",
    "register_gymnax",
    "rollout",
]

__version__ = "0.1.0"

if "gymnax" in sys.modules:
    register_gymnax()
