"""Running the levels of a pair."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from twinenv import registry
from twinenv.naming import unknown
from twinenv.verify import l1, l2, l3, l4
from twinenv.verify.diagnostic import Divergence
from twinenv.verify.ledger import Budget, Ledger, LevelResult, Setting
from twinenv.verify.pair import Pair
from twinenv.verify.sides import FastSideError

__all__ = ["LEVELS", "find_pair", "golden_folder", "run"]

LEVELS: dict[int, ModuleType] = {1: l1, 2: l2, 3: l3, 4: l4}
"""The modules of the levels; each has `check(setting, ledger)`."""


def find_pair(env: str) -> Pair:
    """The pair of a canonical id or of a house, such as "PongJAX-v0" or "pong_jax".

    Raises:
        ValueError: no such environment; the message suggests the nearest id.
    """
    houses = {env_id: registry.house_of(env_id).__name__ for env_id in registry.list_ids()}
    house = houses.get(env, env)
    if house not in houses.values():
        raise ValueError(unknown("environment", env, (*houses, *houses.values())))
    return importlib.import_module(f"{house}.pair").PAIR


def golden_folder(pair: Pair) -> Path:
    """Where golden traces of a house are in a checkout, relative to its root."""
    return Path("tests") / pair.name / "golden"


def run(
    pair: Pair,
    level: int,
    *,
    budget: Budget | str = "60s",
    seed: int = 0,
    configurations: Iterable[str] = (),
    golden: Path | None = None,
) -> LevelResult:
    """Run one level.

    Args:
        pair: the house's pair.
        level: 1 to 4.
        budget: of this level, a `Budget` or its text, such as "60s" or "20000rows".
        seed: of everything random.
        configurations: names of those to check; none means all.
        golden: folder of golden traces; None takes `tests/<house>/golden` where it exists.

    Raises:
        ValueError: an unknown level or configuration, or a malformed budget.
    """
    if level not in LEVELS:
        raise ValueError(f"level is {level!r}; accepted are {sorted(LEVELS)}")
    chosen = tuple(configurations) or tuple(pair.configurations)
    for name in chosen:
        if name not in pair.configurations:
            known = ", ".join(pair.configurations)
            raise ValueError(f"{pair.name} has no configuration {name!r}; it has {known}")
    folder = golden or golden_folder(pair)
    amount = Budget.parse(budget) if isinstance(budget, str) else budget
    setting = Setting(pair, amount, seed, chosen, folder)
    ledger = Ledger()
    try:
        LEVELS[level].check(setting, ledger)
    except FastSideError as error:
        place = {"seed": seed, "kind": "error"}
        ledger.add([Divergence.said(pair.name, level, "fast side", str(error), **place)])
    return ledger.close(level)
