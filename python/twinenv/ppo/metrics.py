"""Metrics of a run: streamed to a CSV file, drawn as a curve at the end."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from twinenv.ppo.checkpoint import CheckpointError

__all__ = ["MetricsLog", "draw_curve"]

Table = dict[str, np.ndarray]


class MetricsLog:
    """Rows of numbers, appended chunk by chunk; in a file if there is a path, else in memory.

    A failed write (such as a full disk) keeps the rows for the next attempt.

    Args:
        path: the CSV file, or None.
        columns: names of the columns; the first is the update.
    """

    def __init__(self, path: Path | None, columns: Sequence[str]) -> None:
        self._path, self._columns = path, tuple(columns)
        self._waiting: list[np.ndarray] = []
        self._good = path.stat().st_size if path is not None and path.exists() else 0

    def append(self, rows: np.ndarray) -> None:
        """Add rows `float64[k, columns]`.

        Raises:
            CheckpointError: they could not be written, and wait.
        """
        self._waiting.append(rows)
        self.flush()

    def flush(self) -> None:
        """Write what waits.

        Raises:
            CheckpointError: that failed again.
        """
        if self._path is None or not self._waiting:
            return
        try:
            with self._path.open("r+b" if self._path.exists() else "w+b") as file:
                # After a failed write the file may end in the middle of a line.
                file.truncate(self._good)
                file.seek(self._good)
                if not self._good:
                    file.write((",".join(self._columns) + "\n").encode())
                file.write("".join(map(_lines, self._waiting)).encode())
                file.flush()
                os.fsync(file.fileno())
                self._good = file.tell()
        except OSError as error:
            raise CheckpointError(f"cannot write {self._path}: {error}") from error
        self._waiting.clear()

    def keep_until(self, update: int) -> None:
        """Drop the rows of later updates, and whatever half a line an interruption left."""
        if self._path is None or not self._path.exists():
            return
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        whole = [line for line in lines[1:] if line.endswith("\n")]
        kept = [line for line in whole if int(line.split(",", 1)[0]) <= update]
        temporary = self._path.with_suffix(".tmp")
        temporary.write_text("".join(lines[:1] + kept), encoding="utf-8")
        temporary.replace(self._path)
        self._good = self._path.stat().st_size

    def table(self) -> Table:
        """All rows, by column: `float64[rows]`, NaN where there was nothing to measure."""
        written = _read(self._path, self._columns) if self._path else []
        rows = np.concatenate([np.empty((0, len(self._columns))), *written, *self._waiting])
        return {name: rows[:, i] for i, name in enumerate(self._columns)}


def _lines(rows: np.ndarray) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_cell(float(value)) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: float) -> str:
    if math.isnan(value):
        return ""
    # Nine digits tell every float32 from its neighbours.
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.9g}"


def _read(path: Path, columns: Sequence[str]) -> list[np.ndarray]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    cells = [[float(line[name] or "nan") for name in columns] for line in lines]
    return [np.asarray(cells, np.float64).reshape(len(lines), len(columns))]


def draw_curve(path: Path, table: Table, metrics: Sequence[str]) -> None:
    """Draw metrics over steps as a PNG: the mean over seeds, and its 95 % interval if several.

    Args:
        path: file to write.
        table: columns `update`, `steps`, `seed` and the metrics.
        metrics: columns to draw, one panel each.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 2.6 * len(metrics)), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, name in zip(figure.subplots(len(metrics), squeeze=False)[:, 0], metrics, strict=True):
        steps, curves = _curves(table, name)
        known = np.isfinite(curves)
        count = np.maximum(known.sum(axis=1), 1)
        mean = np.where(known, curves, 0.0).sum(axis=1) / count
        spread = np.sqrt(np.where(known, (curves - mean[:, None]) ** 2, 0.0).sum(axis=1))
        half = 1.96 * spread / np.sqrt(np.maximum(count - 1, 1) * count)
        drawn = known.any(axis=1)
        axes.plot(steps[drawn], mean[drawn])
        if curves.shape[1] > 1:
            axes.fill_between(steps[drawn], (mean - half)[drawn], (mean + half)[drawn], alpha=0.3)
        axes.set(xlabel="steps", ylabel=name)
        axes.grid(alpha=0.3)
    temporary = path.with_suffix(".tmp.png")
    figure.savefig(temporary, dpi=120)
    temporary.replace(path)


def _curves(table: Table, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps `[rows]` and the metric `[rows, seeds]`."""
    seeds = np.unique(table["seed"])
    count = min(int((table["seed"] == seed).sum()) for seed in seeds) if len(seeds) else 0
    columns = [table[name][table["seed"] == seed][:count] for seed in seeds]
    steps = table["steps"][table["seed"] == seeds[0]][:count] if len(seeds) else np.empty(0)
    return steps, np.stack(columns, axis=1) if columns else np.empty((0, 1))
