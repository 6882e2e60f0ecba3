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
import importlib.metadata
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import jax
from jax.experimental.xla_metadata import set_xla_metadata

__all__ = ["cpu_compiler_options", "disabled", "enabled", "has_avx512", "small_call", "stage"]

F = TypeVar("F", bound=Callable[..., Any])

_SMALL_CALLS_TESTED = ("0.10.",)
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


def stage(function: F, static_argnums: Sequence[int] = ()) -> F:
    """`function` with its outputs materialised on XLA:CPU.

    Hint a function once, where it is defined: every new function object is compiled anew.

    Args:
        function: takes and returns arrays and pytrees of them, all positional.
        static_argnums: positions of arguments that are hashable constants instead.
    """
    return _hinted(function, static_argnums, lambda: {"inlineable": False})


def small_call(function: F, static_argnums: Sequence[int] = ()) -> F:
    """`function` compiled into one native routine on XLA:CPU, without a call per operation.

    Only for elementwise code, loops and table gathers: a scatter, a sort or a floating-point
    reduction inside fails to compile. Multiplications and additions of floats may be contracted, so
    float results can differ by one unit in the last place; integers never do. The routine runs on
    one core, however large the batch. With an XLA on which this was not tested, it is a `stage`.

    Args:
        function: as for `stage`.
        static_argnums: as for `stage`.
    """
    # XLA aborts if a routine has an argument that it does not use. Here it uses all: it passes them
    # on to the stage inside.
    return _hinted(stage(function, static_argnums), static_argnums, _small_call_hints)


def _small_call_hints() -> dict[str, bool]:
    # The hint is no stable interface, and what an XLA cannot compile may end the process.
    tested = _jaxlib_version().startswith(_SMALL_CALLS_TESTED)
    return {"inlineable": False} | ({"xla_cpu_small_call": True} if tested else {})


@functools.cache
def _jaxlib_version() -> str:
    return importlib.metadata.version("jaxlib")


def _hinted(function: F, static_argnums: Sequence[int], hints: Callable[[], dict[str, bool]]) -> F:
    """`function` whose call, but nothing inside it, carries the hints."""

    def inner(*args: Any) -> Any:
        # Functions that are themselves jitted (jnp.where, jnp.clip) would inherit the hints.
        with set_xla_metadata(**{name: str(not on).lower() for name, on in hints().items()}):
            return function(*args)

    inner.__name__ = getattr(function, "__name__", "stage")
    inner = jax.jit(inner, static_argnums=static_argnums)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        if not enabled():
            return function(*args)
        with set_xla_metadata(**{name: str(on).lower() for name, on in hints().items()}):
            return inner(*args)

    return call  # type: ignore[return-value]


def cpu_compiler_options() -> dict[str, Any] | None:
    """`compiler_options` for `jax.jit`: 512-bit vectors where this CPU has AVX-512, else None."""
    if not enabled() or not has_avx512():
        return None
    return {"xla_cpu_prefer_vector_width": 512}


@functools.cache
def has_avx512() -> bool:
    """Whether this processor has AVX-512, on which much of the speed of our kernels rests."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as cpuinfo:
        return any("avx512f" in line for line in cpuinfo if line.startswith("flags"))
    return False
