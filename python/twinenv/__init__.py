"""Verified, high-performance twins of reinforcement-learning environments."""

import sys

from twinenv.env import Environment, TwoPlayerEnvironment
from twinenv.registry import list_ids, make, register, register_gymnax

__all__ = [
    "Environment",
    "TwoPlayerEnvironment",
    "__version__",
    "list_ids",
    "make",
    "register",
    "register_gymnax",
]

__version__ = "0.1.0"

if "gymnax" in sys.modules:
    register_gymnax()
