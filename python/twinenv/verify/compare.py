"""Comparing rows: shape and dtype first, then values, never by broadcasting."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from twinenv.fields import Field
from twinenv.verify.pair import Rows
from twinenv.verify.schema import Schema, describe, label_of, num_rows

__all__ = ["Difference", "compare", "compared_names"]


@dataclasses.dataclass(frozen=True, eq=False)
class Difference:
    """One field that differs, with its first differing element.

    Attributes:
        field: name of the field.
        kind: "value", "dtype", "shape", "missing" (the fast side lacks it), "extra" (only the fast
            side has it) or "undeclared" (not in the schema).
        rows: `bool[rows]`, where it differs.
        index: index inside the row of the first differing element.
        label: name of that index, "" if it has none.
        expected: the reference's value there, or its dtype and shape.
        got: the fast side's.
        error: largest absolute difference over all rows; nan where that means nothing.
        tolerance: what the schema allows.
    """

    field: str
    kind: str
    rows: np.ndarray
    index: tuple[int, ...] = ()
    label: str = ""
    expected: Any = None
    got: Any = None
    error: float = float("nan")
    tolerance: float = 0.0


def compare(schema: Schema, expected: Rows, got: Rows) -> list[Difference]:
    """Every field that differs, in the schema's order.

    NaN equals NaN, zeros of either sign are equal, and infinities equal themselves.

    Args:
        schema: how each field is compared.
        expected: the reference's rows.
        got: the fast side's rows.
    """
    every = np.ones(max(num_rows(expected), num_rows(got)), np.bool_)
    order = {name: place for place, name in enumerate(schema)}
    found = []
    for name in sorted({*expected, *got}, key=lambda name: (order.get(name, len(order)), name)):
        if name not in schema:
            found.append(Difference(name, "undeclared", every))
        elif schema[name].ignored:
            continue
        elif name not in got:
            found.append(Difference(name, "missing", every, expected=describe(expected[name])))
        elif name not in expected:
            found.append(Difference(name, "extra", every, got=describe(got[name])))
        else:
            pair = np.asarray(expected[name]), np.asarray(got[name])
            found += _compare_field(name, schema[name], *pair)
    return found


def compared_names(schema: Schema, rows: Rows) -> set[str]:
    """Names of rows that `compare` looks at."""
    return {name for name in rows if name in schema and not schema[name].ignored}


def _compare_field(
    name: str, info: Field, expected: np.ndarray, got: np.ndarray
) -> list[Difference]:
    for kind, same in (
        ("shape", expected.shape == got.shape and expected.ndim > 0),
        ("dtype", expected.dtype == got.dtype),
    ):
        if not same:
            rows = np.ones(max(expected.shape[:1] + got.shape[:1] + (1,)), np.bool_)
            what = (describe, lambda a: str(a.shape))[kind == "shape"]
            return [Difference(name, kind, rows, expected=what(expected), got=what(got))]
    unequal = ~_equal(expected, got, info.atol)
    if not unequal.any():
        return []
    where = tuple(int(i) for i in np.argwhere(unequal)[0])
    rows = unequal.reshape(len(unequal), -1).any(axis=1)
    return [
        Difference(
            name,
            "value",
            rows,
            index=where[1:],
            label=label_of(info, where[1:]),
            expected=expected[where].item(),
            got=got[where].item(),
            error=_largest(_distance(expected, got)),
            tolerance=info.atol,
        )
    ]


def _equal(expected: np.ndarray, got: np.ndarray, atol: float) -> Any:
    equal = expected == got
    if expected.dtype.kind == "f":
        equal |= np.isnan(expected) & np.isnan(got)
    if atol:
        equal |= _distance(expected, got) <= atol
    return equal


def _distance(expected: np.ndarray, got: np.ndarray) -> np.ndarray:
    # float64 throughout: differences of unsigned or narrow integers would wrap.
    with np.errstate(invalid="ignore", over="ignore"):
        return np.abs(expected.astype(np.float64) - got.astype(np.float64))


def _largest(distance: np.ndarray) -> float:
    finite = distance[~np.isnan(distance)]
    return float(finite.max()) if finite.size else float("nan")
