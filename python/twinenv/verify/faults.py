"""Planted faults: does the verifier kill what was broken on purpose?"""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any

from twinenv.verify import exam, patches
from twinenv.verify.pair import Pair
from twinenv.verify.variants import Variant, Verdict, judge

__all__ = ["faults_folder", "house_folder", "load_faults", "run_faults", "table"]


def faults_folder(pair: Pair) -> Path:
    """Where planted faults of a house are in a checkout, relative to its root."""
    return Path("tests") / pair.name / "faults"


def house_folder(pair: Pair) -> Path:
    """Folder of the house's package."""
    module = importlib.import_module(pair.name)
    assert module.__file__ is not None
    return Path(module.__file__).parent


def load_faults(folder: Path) -> list[patches.Fault]:
    """All patches of a folder, by name.

    Raises:
        PatchError: one is malformed.
        FileNotFoundError: there are none.
    """
    paths = sorted(folder.glob("*.patch"))
    if not paths:
        raise FileNotFoundError(f"no planted faults: {folder} has no *.patch")
    return [patches.parse(path.stem, path.read_text(encoding="utf-8")) for path in paths]


def run_faults(
    pair: Pair, folder: Path | None = None, golden: Path | None = None
) -> dict[str, Any]:
    """Judge every planted fault.

    Args:
        pair: the house's pair.
        folder: of patches; None takes `tests/<house>/faults`.
        golden: folder of golden traces to examine with; None has the reference record.

    Returns:
        `total`, `killed`, `missed` (names of those that their own level did not kill) and `faults`:
        name, rule, expected level, killers and why.

    Raises:
        PatchError: a patch is malformed or does not fit.
        RuntimeError: the unchanged house does not pass.
    """
    found, house = load_faults(folder or faults_folder(pair)), house_folder(pair)
    variants = [Variant(f.name, _changed(f, house), first=f.level) for f in found]
    with tempfile.TemporaryDirectory() as scratch:
        exam.prepare(pair, Path(scratch), golden)
        verdicts = judge(house, Path(scratch), variants, deep=True)
    missed = [
        fault.name
        for fault, verdict in zip(found, verdicts, strict=True)
        if f"L{fault.level}" not in verdict.killed_by
    ]
    rows = [
        {"rule": fault.rule, "expected": f"L{fault.level}"} | _row(verdict)
        for fault, verdict in zip(found, verdicts, strict=True)
    ]
    killed = sum(bool(verdict.killed_by) for verdict in verdicts)
    return {"total": len(found), "killed": killed, "missed": missed, "faults": rows}


def table(graded: dict[str, Any]) -> list[str]:
    """One line per fault for the terminal, survivors and misses marked."""
    lines = []
    for fault in graded["faults"]:
        killers = ", ".join(fault["killed_by"]) or "SURVIVED"
        note = "" if fault["name"] not in graded["missed"] else f"  MISSED BY {fault['expected']}"
        lines.append(f"{killers:<12} {fault['name']}{note}")
    return lines


def _row(verdict: Verdict) -> dict[str, Any]:
    return {
        "name": verdict.name,
        "killed_by": list(verdict.killed_by),
        "why": dict(verdict.why),
    }


def _changed(fault: patches.Fault, house: Path) -> dict[str, str]:
    prefix = f"{house.name}/"

    def read(path: str) -> str:
        if not path.startswith(prefix) or not (house.parent / path).is_file():
            raise patches.PatchError(f"{fault.name} changes {path}, which is no file of {prefix}")
        return (house.parent / path).read_text(encoding="utf-8")

    try:
        changed = patches.apply(fault.diff, read)
    except patches.PatchError as error:
        raise patches.PatchError(f"{fault.name}: {error}") from error
    return {path.removeprefix(prefix): text for path, text in changed.items()}
