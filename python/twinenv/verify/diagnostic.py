"""A divergence as one JSON object, one terminal line and one file that can be replayed."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from twinenv.verify.compare import Difference
from twinenv.verify.pair import Rows
from twinenv.versions import versions

__all__ = ["Divergence", "Repro", "load_repro", "save_repro"]

_FORMAT = "twinenv-repro-1"


@dataclasses.dataclass(frozen=True, eq=False)
class Repro:
    """How to see a divergence again.

    Attributes:
        kind: "one_step" (a state and one action), "sequence" (from a state or a reset) or "check"
            (a property of level 1: a state and an action).
        actions: one row per step, `[steps, ...]`.
        draws: one row per step, or empty.
        state: the state to start from, one row; empty where the reference cannot load one.
        expected: the reference's last state and output, one row; empty for a check.
        seed: of the reset that a sequence without state starts with.
        num_envs: environments of that reset; any of them may show the divergence.
        needs: what of the state matters, such as "ball_vy = 13".
        tests_used: trials that shrinking took.
    """

    kind: str
    actions: np.ndarray
    draws: Rows = dataclasses.field(default_factory=dict)
    state: Rows = dataclasses.field(default_factory=dict)
    expected: Rows = dataclasses.field(default_factory=dict)
    seed: int = 0
    num_envs: int = 1
    needs: tuple[str, ...] = ()
    tests_used: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Divergence:
    """A place where the fast side is not what it should be.

    Attributes:
        level: 1 to 4.
        pair: the house.
        check: what was compared, such as "live/header" or "scenario: wall bounce".
        configuration: name of the pair's configuration.
        reference: name of the reference, "" for level 1.
        seed: of the run.
        step: in the run, from 0.
        row: environment or row of the first divergence.
        field: the first field that differs, "" for a property.
        kind: as `Difference.kind`, or "property", "error", "coverage", "trace".
        index: inside the field.
        label: name of the index.
        expected: the reference's value.
        got: the fast side's value.
        error: largest absolute difference.
        tolerance: allowed difference.
        rows_affected: rows that differ.
        rows_total: rows compared.
        also: other fields that differ in the same step.
        events: rule events active in that step.
        message: in words, where the fields above do not say it.
        repro: how to see it again.
        timeline: last steps of both sides, for the report.
        file: where the repro was saved.
    """

    level: int
    pair: str
    check: str
    configuration: str = ""
    reference: str = ""
    seed: int = 0
    step: int = 0
    row: int = 0
    field: str = ""
    kind: str = "property"
    index: tuple[int, ...] = ()
    label: str = ""
    expected: Any = None
    got: Any = None
    error: float = float("nan")
    tolerance: float = 0.0
    rows_affected: int = 1
    rows_total: int = 1
    also: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    message: str = ""
    repro: Repro | None = None
    timeline: tuple[Mapping[str, Any], ...] = ()
    file: str = ""

    @classmethod
    def of(cls, differences: list[Difference], **place: Any) -> Divergence:
        """From the differences of one step; the first one leads, the rest are in `also`."""
        lead = differences[0]
        values = {
            f.name: getattr(lead, f.name) for f in dataclasses.fields(lead) if f.name != "rows"
        }
        values |= {"rows_affected": int(lead.rows.sum()), "rows_total": len(lead.rows)}
        values |= {
            "row": int(np.argmax(lead.rows)),
            "also": tuple(d.field for d in differences[1:]),
        }
        return cls(**(values | place))

    @classmethod
    def said(cls, pair: str, level: int, check: str, message: str, **place: Any) -> Divergence:
        """One that only words can tell."""
        return cls(level, pair, check, message=message, **place)

    @property
    def needs(self) -> tuple[str, ...]:
        """What of the state the divergence needs."""
        return self.repro.needs if self.repro else ()

    @property
    def command(self) -> str:
        """The command that shows it again."""
        if self.file:
            return f"twinenv verify replay {self.file}"
        only = f" --configuration {self.configuration}" if self.configuration else ""
        return f"twinenv verify {self.pair} --level {self.level} --seed {self.seed}{only}"

    def line(self) -> str:
        """One line for the terminal."""
        where = "".join(f"[{i}]" for i in self.index) + (f" ({self.label})" if self.label else "")
        what = self.message or f"expected {_plain(self.expected)} got {_plain(self.got)}"
        step = f" step {self.step}" if self.field else ""
        parts = [f"L{self.level} FAIL {self.pair}{step} {self.field or self.check}{where}: {what}"]
        if self.needs:
            parts.append("needs " + ", ".join(self.needs))
        elif self.events:
            parts.append("during " + "+".join(self.events))
        return " · ".join([*parts, self.command])

    def to_json(self) -> dict[str, Any]:
        """Everything but the timeline, as JSON values."""
        values = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if f.name not in ("timeline", "repro")
        }
        values["repro"] = None if self.repro is None else _repro_json(self.repro)
        values |= {"needs": self.needs, "line": self.line(), "command": self.command}
        return to_json(values | {"versions": versions()})


def save_repro(divergence: Divergence, env_id: str, version: str, folder: Path) -> Divergence:
    """Write `folder/<name>.json`; returns the divergence with its `file` set.

    Args:
        divergence: one with a repro.
        env_id: canonical id.
        version: the reference's version, "" without a reference.
        folder: made if missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "-", f"l{divergence.level}-{divergence.check}".lower()).strip("-")
    name = f"{name}-{divergence.field or 'check'}"
    path, count = folder / f"{name}.json", 1
    while path.exists():
        count += 1
        path = folder / f"{name}-{count}.json"
    saved = dataclasses.replace(divergence, file=str(path))
    content = {"format": _FORMAT, "env": env_id, "reference_version": version}
    path.write_text(json.dumps(content | saved.to_json(), indent=1, allow_nan=False) + "\n")
    return saved


def load_repro(path: Path) -> tuple[dict[str, Any], Repro]:
    """A saved file: its header and its repro.

    Raises:
        ValueError: the file is damaged or of another format.
    """
    try:
        content = json.loads(path.read_text())
        if content.get("format") != _FORMAT:
            raise ValueError(f"its format is {content.get('format')!r}, not {_FORMAT!r}")
        values = dict(content["repro"])
        for name in ("draws", "state", "expected"):
            values[name] = {key: _array(value) for key, value in values[name].items()}
        values["needs"] = tuple(values["needs"])
        return content, Repro(**(values | {"actions": _array(values["actions"])}))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is no saved divergence: {error}") from error


def to_json(value: Any) -> Any:
    """JSON values: NumPy scalars and arrays become plain, non-finite numbers words."""
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return to_json(value.tolist())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _repro_json(repro: Repro) -> dict[str, Any]:
    values = {f.name: getattr(repro, f.name) for f in dataclasses.fields(repro)}
    for name in ("draws", "state", "expected"):
        values[name] = {key: _array_json(array) for key, array in values[name].items()}
    return values | {"actions": _array_json(repro.actions)}


def _array_json(array: np.ndarray) -> dict[str, Any]:
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": to_json(array.ravel())}


def _array(value: Mapping[str, Any]) -> np.ndarray:
    return np.array(value["data"], value["dtype"]).reshape(value["shape"])


def _plain(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)
