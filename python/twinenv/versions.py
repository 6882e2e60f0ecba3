"""Which software made a result."""

from __future__ import annotations

import importlib.metadata
import platform

__all__ = ["versions"]

_OURS = ("twinenv", "jax", "jaxlib", "flax", "optax", "numpy")


def versions(*names: str) -> dict[str, str]:
    """Versions of the distributions named; without any, of the system and what twinenv uses.

    The tree can be used without being installed, hence "not installed".
    """
    found = {}
    if not names:
        found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in names or _OURS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
