"""What a house's pytest files call, so that they and the command line run the same checks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from twinenv.verify import faults, mutate
from twinenv.verify.diagnostic import save_repro
from twinenv.verify.ledger import Budget, LevelResult
from twinenv.verify.levels import run
from twinenv.verify.pair import Pair
from twinenv.verify.replay import replay

__all__ = ["check_faults", "check_level", "check_mutants", "check_regression"]


def check_level(
    pair: Pair, level: int, budget: str | Budget, *, complete: bool = True, **options: Any
) -> LevelResult:
    """Run a level and raise AssertionError for a divergence.

    Args:
        pair: the house's pair.
        level: 1 to 4.
        budget: for example "20krows".
        complete: parts that were skipped fail, too.
        **options: as `run` has them.
    """
    result = run(pair, level, budget=budget, **options)
    lines = [_line(pair, divergence) for divergence in result.divergences]
    if complete or result.status == "not run":
        lines += [f"L{level} skipped: {reason}" for reason in result.skipped]
    accepted = ("passed",) if complete else ("passed", "partial")
    assert result.status in accepted, "\n".join([f"level {level} {result.status}", *lines])
    return result


def check_faults(pair: Pair, folder: Path, golden: Path | None = None) -> dict[str, Any]:
    """Raise AssertionError if a planted fault is not killed by its level."""
    graded = faults.run_faults(pair, folder, golden)
    assert not graded["missed"], "\n".join(faults.table(graded))
    return graded


def check_mutants(pair: Pair, **options: Any) -> dict[str, Any]:
    """Raise AssertionError if too many mutants survive; options as `run_mutants` has them."""
    graded = mutate.run_mutants(pair, **options)
    survivors = [f["name"] for f in graded["faults"] if not f["killed_by"] and not f["expected"]]
    assert graded["rate"] >= mutate.LEAST_RATE, "\n".join(survivors)
    assert not graded["contradicted"], "\n".join(graded["contradicted"])
    return graded


def check_regression(file: Path) -> None:
    """Raise AssertionError if a divergence that was saved once is back."""
    result = replay(file)
    assert result.status in ("passed", "partial"), "\n".join(d.line() for d in result.divergences)


def _line(pair: Pair, divergence: Any) -> str:
    """The divergence's line, its repro saved where the line says."""
    if divergence.repro:
        reference = pair.references.get(divergence.reference)
        version = reference.version if reference else ""
        folder = Path(tempfile.mkdtemp(prefix=f"verify-{pair.name}-"))
        divergence = save_repro(divergence, pair.env_id, version, folder)
    return divergence.line()
