"""Running a saved divergence again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twinenv.references import MissingReferenceError
from twinenv.verify.compare import compare, compared_names
from twinenv.verify.diagnostic import Divergence, Repro, load_repro
from twinenv.verify.l1 import property_check
from twinenv.verify.ledger import Ledger, LevelResult
from twinenv.verify.levels import find_pair
from twinenv.verify.pair import Pair
from twinenv.verify.shrink import Case, first_mismatch
from twinenv.verify.sides import FastSideError, guarded, open_sides

__all__ = ["replay"]


def replay(path: Path) -> LevelResult:
    """Run a saved divergence on both sides; without its reference, against what was recorded.

    Returns:
        A result of the level that found it: "failed" if the sides still differ, "passed" if they no
        longer do, "partial" if only the recorded expectation could be asked.

    Raises:
        ValueError: the file is damaged, or its environment is unknown.
    """
    content, repro = load_repro(path)
    pair, ledger = find_pair(content["env"]), Ledger()
    place = {name: content[name] for name in ("level", "check", "configuration", "reference")}
    place |= {"pair": pair.name, "repro": repro, "file": str(path)}
    try:
        if repro.kind == "check":
            _look(pair, repro, place, ledger)
        else:
            _run(pair, repro, place, ledger)
    except FastSideError as error:
        ledger.add([Divergence(**place, kind="error", message=str(error))])
    return ledger.close(content["level"])


def _look(pair: Pair, repro: Repro, place: dict[str, Any], ledger: Ledger) -> None:
    fast = guarded(pair, place["configuration"])
    holds = property_check(pair, place["configuration"], place["check"])
    step = fast.step(repro.state, repro.actions, repro.draws)
    ledger.count(1, (place["check"],))
    if not holds(repro.state, repro.actions, repro.draws, step).all():
        ledger.add([Divergence(**place, message="does not hold")])


def _run(pair: Pair, repro: Repro, place: dict[str, Any], ledger: Ledger) -> None:
    case = Case(repro.actions, repro.draws, repro.state, repro.seed)
    num_envs = 1 if repro.state else repro.num_envs
    try:
        with open_sides(pair, place["reference"], place["configuration"], num_envs) as sides:
            mismatch = first_mismatch(sides, case)
            ledger.count(len(repro.actions), ("steps",))
    except MissingReferenceError as error:
        ledger.skip(f"{place['reference']}: {error}")
        _against_recorded(pair, repro, place, ledger)
        return
    if mismatch:
        ledger.add([Divergence.of(mismatch.differences, **place, step=mismatch.step)])


def _against_recorded(pair: Pair, repro: Repro, place: dict[str, Any], ledger: Ledger) -> None:
    if repro.kind != "one_step" or not repro.expected:
        return
    fast = guarded(pair, place["configuration"])
    step = fast.step(repro.state, repro.actions, repro.draws)
    got = {**step.state, **step.output}
    got = {name: array for name, array in got.items() if name in repro.expected}
    ledger.count(1, compared_names(pair.schema, repro.expected))
    if found := compare(pair.schema, repro.expected, got):
        ledger.add([Divergence.of(found, **place)])
