"""Checkpoints: complete, verified when read, and written so that a failure loses nothing saved.

A checkpoint is a folder `checkpoints/<update>` with the arrays (`state/`, written by orbax) and
`meta.json` with their digest. It is prepared under another name and renamed when complete.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

__all__ = ["Checkpoint", "CheckpointError", "arrays_of", "latest", "read", "restored", "save"]

_FORMAT = "twinenv-ppo-1"
_RECENT = 2

Arrays = dict[str, np.ndarray]


class CheckpointError(Exception):
    """A checkpoint could not be written or read; the message says what that means for the run."""


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """What `meta.json` says of a checkpoint.

    Attributes:
        path: its folder.
        update: updates done.
        score: the target metric then; NaN if there was none yet.
        digest: of the arrays.
    """

    path: Path
    update: int
    score: float
    digest: str


def arrays_of(tree: Any) -> Arrays:
    """The leaves of a pytree on the host, by their path; keys of random numbers as their words."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    plain = [jax.random.key_data(leaf) if _is_key(leaf) else leaf for _, leaf in leaves]
    # Copied, because the arrays may be donated to the next call while they are being written.
    return {name: np.array(leaf) for name, leaf in zip(names, plain, strict=True)}


def restored(like: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The inverse of `arrays_of`.

    Args:
        like: a pytree of arrays or shapes to fill.
        arrays: the leaves by path.

    Raises:
        CheckpointError: a leaf is missing, unknown, or of another shape or dtype.
    """
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]
    if unknown := sorted(arrays.keys() - {*names}):
        raise CheckpointError(f"it holds {unknown[0]}, for which there is no place")
    leaves = []
    for name, (_, want) in zip(names, paths, strict=True):
        shape = jax.eval_shape(jax.random.key_data, want) if _is_key(want) else want
        leaf = arrays.get(name)
        if leaf is None or leaf.shape != shape.shape or leaf.dtype != shape.dtype:
            held = "nothing" if leaf is None else f"{leaf.dtype}{list(leaf.shape)}"
            raise CheckpointError(
                f"it holds {held} for {name}, where this run needs {shape.dtype}{list(shape.shape)}"
            )
        leaves.append(jax.random.wrap_key_data(jax.numpy.asarray(leaf)) if _is_key(want) else leaf)
    return jax.tree_util.tree_unflatten(structure, leaves)


def save(folder: Path, arrays: Arrays, update: int, score: float) -> Checkpoint:
    """Write a checkpoint, then remove those that are neither recent nor the best.

    Args:
        folder: the run's `checkpoints` folder.
        arrays: from `arrays_of`.
        update: updates done.
        score: the target metric, by which the best is chosen; may be NaN.

    Raises:
        CheckpointError: writing failed; the checkpoints there are remain.
    """
    temporary, final = folder / f".tmp-{update:08d}", folder / f"{update:08d}"
    digest = _digest(arrays)
    plain = None if math.isnan(score) else score
    meta = {"format": _FORMAT, "update": update, "score": plain, "digest": digest}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _discard_unfinished(folder)
        _write_arrays(temporary / "state", arrays)
        _write_text(temporary / "meta.json", json.dumps(meta))
        if final.exists():
            shutil.rmtree(final)
        temporary.rename(final)
        _prune(folder)
    except Exception as error:  # orbax and tensorstore report a full disk in ways of their own
        shutil.rmtree(temporary, ignore_errors=True)
        kept = _newest_name(folder)
        rest = f"the last complete one is {kept}" if kept else "there is no complete one yet"
        raise CheckpointError(
            f"cannot write checkpoint {final}: {_first_line(error)}; {rest}"
        ) from error
    return Checkpoint(final, update, score, digest)


def latest(folder: Path, warn: Callable[[str], None]) -> tuple[Checkpoint, Arrays]:
    """The newest checkpoint that is whole; `warn` is told of every one that is not.

    Raises:
        CheckpointError: there is none.
    """
    found = sorted(_complete(folder), reverse=True)
    for path in found:
        try:
            return read(path)
        except CheckpointError as error:
            warn(f"checkpoint {path} cannot be used ({error}); going back to the one before it")
    have = f"none of {[path.name for path in found]} can be used" if found else "it holds none"
    raise CheckpointError(f"no usable checkpoint in {folder}: {have}; start a new run")


def best(folder: Path) -> Path | None:
    """The checkpoint of the highest score, the newest of equals; None if there is none."""
    scored = [(_score(path), path.name, path) for path in _complete(folder)]
    return max(scored)[2] if scored else None


def read(path: Path) -> tuple[Checkpoint, Arrays]:
    """One checkpoint and its arrays, checked against their digest.

    Raises:
        CheckpointError: it is damaged or no checkpoint of this library.
    """
    try:
        meta = json.loads((path / "meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"no readable meta.json: {_first_line(error)}") from error
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
        raise CheckpointError(f"meta.json is not of format {_FORMAT}")
    try:
        arrays = _read_arrays(path / "state")
    except Exception as error:  # orbax, tensorstore and zarr each have errors of their own
        raise CheckpointError(f"its arrays cannot be read: {_first_line(error)}") from error
    if _digest(arrays) != meta["digest"]:
        raise CheckpointError("its arrays do not match their digest")
    score = math.nan if meta["score"] is None else meta["score"]
    return Checkpoint(path, meta["update"], score, meta["digest"]), arrays


def _write_arrays(path: Path, arrays: Arrays) -> None:
    with _checkpointer() as checkpointer:
        checkpointer.save(path.absolute(), arrays)


def _read_arrays(path: Path) -> Arrays:
    with _checkpointer() as checkpointer:
        return {
            name: np.asarray(leaf) for name, leaf in checkpointer.restore(path.absolute()).items()
        }


def _checkpointer() -> Any:
    import orbax.checkpoint as ocp  # type: ignore[import-untyped]

    # Its own log is about progress and layouts, of no use to whoever trains.
    logging.getLogger("absl").setLevel(logging.ERROR)
    return ocp.Checkpointer(ocp.PyTreeCheckpointHandler())


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _digest(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        leaf = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {leaf.dtype} {leaf.shape} ".encode())
        digest.update(leaf.tobytes())
    return digest.hexdigest()


def _complete(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if path.name.isdecimal() and path.is_dir()]


def _newest_name(folder: Path) -> str:
    return max((path.name for path in _complete(folder)), default="")


def _discard_unfinished(folder: Path) -> None:
    for path in folder.glob(".tmp-*"):
        shutil.rmtree(path, ignore_errors=True)


def _prune(folder: Path) -> None:
    found = sorted(_complete(folder))
    keep = {*found[-_RECENT:], best(folder)}
    for path in found:
        if path not in keep:
            shutil.rmtree(path, ignore_errors=True)


def _score(path: Path) -> float:
    try:
        score = json.loads((path / "meta.json").read_text(encoding="utf-8"))["score"]
    except (OSError, ValueError, KeyError, TypeError):
        return -math.inf
    return -math.inf if score is None else score


def _is_key(leaf: Any) -> bool:
    return jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
