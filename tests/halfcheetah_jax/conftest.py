"""Compiled steps that several tests share, and modules that borrow from one another."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import pytest

import halfcheetah_jax

_HERE = str(Path(__file__).resolve().parent)
if _HERE not in sys.path:
    sys.path.append(_HERE)


@pytest.fixture(scope="session")
def steps():
    """Steps of batches as the environment is by default, compiled once for each floating type.

    The parameters are arguments: other numbers are not compiled anew.
    """
    env, params = halfcheetah_jax.make()
    return env, params, jax.jit(jax.vmap(env.step, (0, 0, 0, None)))
