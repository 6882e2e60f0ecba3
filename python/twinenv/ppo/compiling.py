"""How much time the compiler takes, and over what."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from twinenv.stages import cpu_compiler_options

__all__ = ["compiler_options"]


def compiler_options(*, quick: bool, level: int = 1) -> dict[str, Any] | None:
    """`compiler_options` for `jax.jit` on this platform.

    On the CPU, level 1 of LLVM gives the same speed as level 3 here and compiles faster, and so
    does generating code in one piece.

    Args:
        quick: also use the older kernel emitters: half the compile time, and a slower program (by
            about a tenth with relu networks, by about half with tanh ones).
        level: LLVM's optimisation level.
    """
    if jax.default_backend() != "cpu":
        return None
    options = dict(cpu_compiler_options() or {})
    options["xla_backend_optimization_level"] = level
    options["xla_cpu_parallel_codegen_split_count"] = 1
    if quick:
        options["xla_cpu_use_fusion_emitters"] = False
    return options if _known(tuple(options.items())) else cpu_compiler_options()


@functools.cache
def _known(options: tuple[tuple[str, Any], ...]) -> bool:
    """Whether this XLA has all of these options: they are no stable interface."""
    try:
        jax.jit(lambda x: x, compiler_options=dict(options)).lower(jnp.float32(0)).compile()
    except (ValueError, RuntimeError):
        return False
    return True
