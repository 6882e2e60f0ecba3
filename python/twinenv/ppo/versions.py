"""Which software made a result."""

from __future__ import annotations

import importlib.metadata
import platform

__all__ = ["versions"]


def versions() -> dict[str, str]:
    """Versions of Python, this library and what it computes with."""
    found = {"python": platform.python_version()}
    for name in ("twinenv", "jax", "jaxlib", "flax", "optax", "numpy"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            # The tree can be used without being installed.
            found[name] = "not installed"
    return found
