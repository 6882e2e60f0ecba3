"""Compiling what runs only a few times."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax

__all__ = ["lightly_compiled"]

_OPTION = "jax_disable_most_optimizations"


@contextlib.contextmanager
def lightly_compiled() -> Iterator[None]:
    """What is compiled in this block is compiled sooner, and runs more slowly.

    Not for several threads at once: JAX has one such option for the whole process.
    """
    before = jax.config.values.get(_OPTION, False)
    jax.config.update(_OPTION, True)
    try:
        yield
    finally:
        jax.config.update(_OPTION, before)
