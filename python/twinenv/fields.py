"""Field metadata of environment states: one source for spaces, dumps, schemas and tables.

A state is a flax dataclass whose every field is made with `field(...)`. From that metadata come the
state space, the canonical dump that the verifier compares, the comparison schema and the field
table of the house's README.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import struct

from twinenv import spaces

__all__ = ["Field", "dump", "field", "fields_of", "load", "state_space", "table"]

_KEY = "twinenv"


@dataclasses.dataclass(frozen=True)
class Field:
    """What is known of one state field.

    Attributes:
        doc: one line of what it is.
        dtype: dtype name, or None for the environment's own number type (given when needed).
        shape: shape without batch axes.
        low: smallest value, inclusive.
        high: largest value, inclusive.
        unit: unit in words, "" if there is none.
        reference: the reference's own name of this quantity, "" if it has none.
        labels: a name for each index of a small array, for divergence reports.
        atol: largest absolute difference that counts as equal; 0 compares exactly.
        why: why `atol` is not 0, or why the field is ignored.
        ignored: the verifier does not compare it.
    """

    doc: str
    dtype: str | None
    shape: tuple[int, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    reference: str = ""
    labels: tuple[str, ...] = ()
    atol: float = 0.0
    why: str = ""
    ignored: bool = False

    def __post_init__(self) -> None:
        if (self.atol or self.ignored) and not self.why:
            raise ValueError(f"field {self.doc!r} is not compared exactly: say why in `why`")


def field(doc: str, dtype: str | None, **metadata: Any) -> Any:
    """A flax dataclass field that carries a `Field`; keywords as `Field`'s attributes."""
    return struct.field(metadata={_KEY: Field(doc, dtype, **metadata)})


def fields_of(state: Any) -> dict[str, Field]:
    """Name to `Field` of a state or state class.

    Raises:
        TypeError: a field of the class was not made with `field`.
    """
    found = {}
    for item in dataclasses.fields(state):
        if _KEY not in item.metadata:
            cls = state if isinstance(state, type) else type(state)
            raise TypeError(
                f"{cls.__name__}.{item.name} has no metadata; declare it with twinenv.fields.field"
            )
        found[item.name] = item.metadata[_KEY]
    return found


def state_space(cls: type, number: Any = jnp.float32) -> spaces.Dict:
    """The gymnax `Dict` space of a state class; `number` stands for fields without a dtype."""
    boxes = {}
    for name, info in fields_of(cls).items():
        dtype = jnp.dtype(info.dtype or number)
        boxes[name] = spaces.Box(*_limits(info, dtype), info.shape, dtype)
    return spaces.Dict(boxes)


def _limits(info: Field, dtype: Any) -> tuple[Any, Any]:
    if jnp.issubdtype(dtype, jnp.floating):
        return info.low, info.high
    if dtype == jnp.bool_:
        return np.asarray(False), np.asarray(True)
    limits = jnp.iinfo(dtype)
    # Arrays of the dtype itself: as Python integers the limits of uint32 would not fit an int32.
    low, high = max(info.low, limits.min), min(info.high, limits.max)
    return np.asarray(low, dtype), np.asarray(high, dtype)


def dump(state: Any) -> dict[str, np.ndarray]:
    """The state as host arrays by field name, batch axes kept, ignored fields left out."""
    return {name: np.asarray(getattr(state, name)) for name in _kept(state)}


def load(cls: type, values: Mapping[str, Any], number: Any = jnp.float32) -> Any:
    """The inverse of `dump`; ignored fields are 0.

    Raises:
        ValueError: a field is missing or unknown, its dtype or trailing shape is wrong, or the
            fields' leading batch axes differ.
    """
    expected = _kept(cls)
    if set(values) != set(expected):
        missing, extra = sorted(set(expected) - set(values)), sorted(set(values) - set(expected))
        raise ValueError(
            f"{cls.__name__} needs the fields {sorted(expected)}: "
            f"missing {missing}, unknown {extra}"
        )
    arrays, batches = {}, set()
    for name, info in expected.items():
        array, dtype = np.asarray(values[name]), jnp.dtype(info.dtype or number)
        batch = array.shape[: array.ndim - len(info.shape)]
        if array.dtype != dtype or batch + info.shape != array.shape:
            raise ValueError(
                f"{cls.__name__}.{name} is {array.dtype}{list(array.shape)}; "
                f"needs {dtype}{['...', *info.shape]}"
            )
        batches.add(batch)
        arrays[name] = jnp.asarray(array)
    if len(batches) > 1:
        raise ValueError(f"{cls.__name__} fields have different batch axes: {sorted(batches)}")
    for name, info in fields_of(cls).items():
        if info.ignored:
            dtype = jnp.dtype(info.dtype or number)
            arrays[name] = jnp.zeros(next(iter(batches)) + info.shape, dtype)
    return cls(**arrays)


def _kept(state: Any) -> dict[str, Field]:
    return {name: info for name, info in fields_of(state).items() if not info.ignored}


def table(cls: type, number: str = "number") -> str:
    """The field table of a state class as Markdown."""
    rows = ["| field | dtype | range | unit | reference | meaning |", "|---|---|---|---|---|---|"]
    for name, info in fields_of(cls).items():
        dtype = (info.dtype or number) + (str(list(info.shape)) if info.shape else "")
        limits = "" if math.isinf(info.low) else f"{info.low:g} to {info.high:g}"
        reference = f"`{info.reference}`" if info.reference else "–"
        rows.append(f"| `{name}` | {dtype} | {limits} | {info.unit} | {reference} | {info.doc} |")
    return "\n".join(rows)
