"""States as versioned bytes."""

from __future__ import annotations

import io
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["from_bytes", "to_bytes"]

_FORMAT = "twinenv-state-1"


def to_bytes(name: str, state: Any) -> bytes:
    """The leaves of a pytree as an npz archive with a header that names environment and format."""
    header = json.dumps({"format": _FORMAT, "environment": name})
    arrays: dict[str, Any] = {
        f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, header=np.array(header), **arrays)
    return buffer.getvalue()


def from_bytes(name: str, like: Any, data: bytes) -> Any:
    """The inverse of `to_bytes`.

    Args:
        name: the environment that asks.
        like: a pytree of the structure, dtypes and unbatched shapes to expect.
        data: what `to_bytes` returned.

    Raises:
        TypeError: `data` is not of bytes.
        ValueError: the bytes are damaged or do not fit `name` and `like`.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"got {type(data).__name__}; accepted are the bytes of save_state")
    header, leaves = _read(data)
    if header != {"format": _FORMAT, "environment": name}:
        raise ValueError(
            f"these bytes hold {header}; {name} needs a state that its own save_state wrote "
            f"in format {_FORMAT}"
        )
    expected, structure = jax.tree.flatten(like)
    if not _fits(leaves, expected):
        raise ValueError(
            f"the saved state does not fit this configuration of {name}: saved "
            f"{[f'{leaf.dtype}{list(leaf.shape)}' for leaf in leaves]}, needed "
            f"{[f'{want.dtype}{list(want.shape)}' for want in expected]}; "
            "make the environment with the options it was saved under"
        )
    return jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves])


def _fits(leaves: list[np.ndarray], expected: list[Any]) -> bool:
    """Whether dtypes and shapes are those expected, after batch axes that all leaves share."""
    if len(leaves) != len(expected):
        return False
    batches = set()
    for leaf, want in zip(leaves, expected, strict=True):
        batch = leaf.ndim - len(want.shape)
        if batch < 0 or leaf.dtype != want.dtype or leaf.shape[batch:] != want.shape:
            return False
        batches.add(leaf.shape[:batch])
    return len(batches) <= 1


def _read(data: bytes) -> tuple[dict[str, Any], list[np.ndarray]]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            header = json.loads(str(archive["header"]))
            return header, [archive[f"leaf{i}"] for i in range(len(archive.files) - 1)]
    except Exception as error:  # numpy, zipfile, zlib and json each have errors of their own
        raise ValueError(f"these bytes are no saved state or are damaged: {error}") from error
