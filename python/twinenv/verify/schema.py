"""What rows must look like: the schema made of field metadata."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from twinenv.fields import Field
from twinenv.verify.pair import Rows

__all__ = ["Schema", "describe", "label_of", "loosened", "num_rows", "take", "tile", "violations"]

Schema = Mapping[str, Field]


def label_of(info: Field, index: Sequence[int]) -> str:
    """The name of an index of a field, "" if it has none."""
    if not info.labels or not index:
        return ""
    flat = int(np.ravel_multi_index(tuple(index), info.shape)) if info.shape else index[0]
    return info.labels[flat] if flat < len(info.labels) else ""


def describe(array: np.ndarray) -> str:
    """Dtype and shape without the leading axis, such as `int16[2]`."""
    return f"{array.dtype}{list(array.shape[1:])}" if array.ndim else f"{array.dtype} scalar"


def loosened(schema: Schema, factor: float) -> Schema:
    """The schema with its absolute tolerances so many times as wide."""
    if factor == 1.0:
        return schema
    return {n: dataclasses.replace(info, atol=info.atol * factor) for n, info in schema.items()}


def num_rows(rows: Rows) -> int:
    """Length of the leading axis; 0 if there is none."""
    return next((len(array) for array in rows.values() if np.ndim(array)), 0)


def take(rows: Rows, index: int | slice | np.ndarray) -> Rows:
    """Some rows; an int gives one row with its leading axis kept."""
    where = slice(index, index + 1) if isinstance(index, int) else index
    return {name: array[where] for name, array in rows.items()}


def tile(rows: Rows, count: int) -> Rows:
    """One row, `count` times."""
    return {name: np.repeat(array[:1], count, axis=0) for name, array in rows.items()}


def violations(schema: Schema, rows: Rows) -> list[str]:
    """Where rows break their own schema: undeclared names, dtype, shape, range, NaN."""
    found = []
    for name, array in rows.items():
        if name not in schema:
            found.append(f"{name} is not declared in the pair's schema")
            continue
        info = schema[name]
        if info.dtype is not None and array.dtype != np.dtype(info.dtype):
            found.append(f"{name} is {array.dtype}, declared {info.dtype}")
        elif array.shape[1:] != tuple(info.shape):
            found.append(f"{name} is {describe(array)}, declared shape {list(info.shape)}")
        elif array.size and array.dtype.kind == "f" and np.isnan(array).any():
            found.append(f"{name} is NaN")
        elif array.size and not _inside(info, array):
            found.append(
                f"{name} is {array.min()} to {array.max()}, declared {info.low} to {info.high}"
            )
    return found


def _inside(info: Field, array: np.ndarray) -> bool:
    if math.isinf(info.low) and math.isinf(info.high):
        return True
    return bool(array.min() >= info.low and array.max() <= info.high)
