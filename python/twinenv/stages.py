"""Stage boundaries and vector width for XLA:CPU.

XLA:CPU compiles one kernel per fusion and recomputes a shared chain of operations in each of them.
`stage` keeps a function's outputs materialised, so that they are computed once; `small_call` has a
whole function compiled into one native routine; `cpu_compiler_options` asks for 512-bit vectors.
All are hints through XLA metadata: where they are not honoured (another platform, another XLA) the
results are the same and only the speed differs. `TWINENV_STAGES=off` turns them off.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
from jax.experimental.xla_metadata import set_xla_metadata

__all__ = ["cpu_compiler_options", "disabled", "enabled", "small_call", "stage"]

F = TypeVar("F", bound=Callable[..., Any])

_switch = os.environ.get("TWINENV_STAGES", "on").lower() not in ("off", "0", "false")


def enabled() -> bool:
    """Whether hints are emitted: the switch is on and JAX's default backend is the CPU."""
    return _switch and jax.default_backend() == "cpu"


@contextlib.contextmanager
def disabled() -> Iterator[None]:
    """Traces made inside this block carry no hints.

    JAX caches traces by function object, so trace a new function object inside the block.
    """
    global _switch
    before, _switch = _switch, False
    try:
        yield
    finally:
        _switch = before


def _hinted(function: F, **hints: bool) -> F:
    """`function` whose call, but nothing inside it, carries the hints."""
    outside = {name: str(value).lower() for name, value in hints.items()}
    # Functions that are themselves jitted (jnp.where, jnp.clip) would inherit the hints.
    inside = {name: str(not value).lower() for name, value in hints.items()}

    def inner(*args: Any) -> Any:
        with set_xla_metadata(**inside):
            return function(*args)

    inner.__name__ = getattr(function, "__name__", "stage")
    inner = jax.jit(inner)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        if not enabled():
            return function(*args)
        with set_xla_metadata(**outside):
            return inner(*args)

    return call  # type: ignore[return-value]


def stage(function: F) -> F:
    """`function` (arrays and pytrees in, positional) with its outputs materialised on XLA:CPU."""
    return _hinted(function, inlineable=False)


def small_call(function: F) -> F:
    """`function` compiled into one native routine on XLA:CPU.

    Only for elementwise code and table gathers: a scatter, a sort or a floating-point reduction
    inside fails to compile. Multiplications and additions of floats may be contracted, so float
    results can differ by one unit in the last place; integers never do.
    """
    return _hinted(function, inlineable=False, xla_cpu_small_call=True)


def cpu_compiler_options() -> dict[str, Any] | None:
    """`compiler_options` for `jax.jit`: 512-bit vectors where this CPU has AVX-512, else None."""
    if not enabled() or not _has_avx512():
        return None
    return {"xla_cpu_prefer_vector_width": 512}


@functools.cache
def _has_avx512() -> bool:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as cpuinfo:
        return any("avx512f" in line for line in cpuinfo if line.startswith("flags"))
    return False
