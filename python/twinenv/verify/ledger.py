"""What a level may spend and what it came to."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from twinenv.verify.diagnostic import Divergence
from twinenv.verify.pair import Pair

__all__ = ["Budget", "Ledger", "LevelResult", "Meter", "Setting", "exit_code"]

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_MULTIPLES = {"": 1, "k": 1_000, "M": 1_000_000}


@dataclasses.dataclass(frozen=True)
class Budget:
    """Seconds or rows (environment steps) to spend; exactly one of them is set."""

    seconds: float | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.rows is None):
            raise ValueError("a budget is either seconds or rows; give exactly one of them")

    @classmethod
    def parse(cls, text: str) -> Budget:
        """From "60s", "5m", "2h" or, in rows, "20000rows", "500krows", "10Mrows"."""
        if found := re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text):
            return cls(seconds=float(found[1]) * _UNITS[found[2]])
        if found := re.fullmatch(r"(\d+)([kM]?)rows", text):
            return cls(rows=int(found[1]) * _MULTIPLES[found[2]])
        raise ValueError(f"budget {text!r} is none of the forms 60s, 5m, 2h, 20000rows, 10Mrows")

    def share(self, parts: int) -> Budget:
        """An equal part of it; rows are rounded up."""
        parts = max(parts, 1)
        if self.rows is not None:
            return Budget(rows=-(-self.rows // parts))
        assert self.seconds is not None
        return Budget(seconds=self.seconds / parts)


class Meter:
    """Runs down a budget; at least one batch is always allowed."""

    def __init__(self, budget: Budget) -> None:
        self._budget, self._start, self.rows = budget, time.monotonic(), 0

    @property
    def left(self) -> bool:
        """Whether there is budget for another batch."""
        if not self.rows:
            return True
        if self._budget.rows is not None:
            return self.rows < self._budget.rows
        assert self._budget.seconds is not None
        return time.monotonic() - self._start < self._budget.seconds

    def spend(self, rows: int) -> None:
        """Count a batch."""
        self.rows += rows


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a level is run with.

    Attributes:
        pair: the house's pair.
        budget: for the whole level.
        seed: of everything random.
        configurations: names of those to check.
        golden: folder of golden traces, or None.
    """

    pair: Pair
    budget: Budget
    seed: int
    configurations: tuple[str, ...]
    golden: Path | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class LevelResult:
    """What a level came to.

    Attributes:
        level: 1 to 4.
        status: "passed", "failed", "partial" (passed, but parts were skipped) or "not run" (nothing
            was compared).
        rows: rows compared.
        divergences: the most frequent first.
        skipped: what was not checked, and why.
        seconds: wall time.
        details: figures of the level's own, such as event counts.
    """

    level: int
    status: str
    rows: int
    divergences: tuple[Divergence, ...]
    skipped: tuple[str, ...]
    seconds: float
    details: dict[str, Any]


class Ledger:
    """Collects what a level finds."""

    def __init__(self) -> None:
        self.rows = 0
        self.divergences: list[Divergence] = []
        self.skipped: list[str] = []
        self.details: dict[str, Any] = {}
        self._compared: set[str] = set()
        self._start = time.monotonic()

    def count(self, rows: int, names: Iterable[str]) -> None:
        """Rows were compared in these fields; without fields nothing was compared."""
        self._compared |= set(names)
        self.rows += rows if names else 0

    def add(self, divergences: Iterable[Divergence | None]) -> None:
        """Keep divergences."""
        self.divergences += [d for d in divergences if d is not None]

    def skip(self, reason: str) -> None:
        """Something was not checked."""
        if reason not in self.skipped:
            self.skipped.append(reason)

    def demand(self, names: Iterable[str]) -> None:
        """Fields that were never compared count as skipped."""
        missing = [name for name in names if name not in self._compared]
        if missing and self.rows:
            self.skip(f"never compared: {', '.join(missing)}")

    def close(self, level: int) -> LevelResult:
        """The result; a level that compared no rows has not run, and so never passes."""
        found = tuple(sorted(self.divergences, key=lambda d: -d.rows_affected))
        status = "partial" if self.skipped else "passed"
        if not self.rows:
            status = "not run"
        if found:
            status = "failed"
        seconds = time.monotonic() - self._start
        skipped = tuple(self.skipped)
        return LevelResult(level, status, self.rows, found, skipped, seconds, self.details)


def exit_code(results: Sequence[LevelResult]) -> int:
    """0 passed, 1 divergence, 2 nothing could run, 3 passed with parts skipped."""
    statuses = {result.status for result in results}
    if "failed" in statuses:
        return 1
    if statuses <= {"not run"}:
        return 2
    return 0 if statuses == {"passed"} else 3
