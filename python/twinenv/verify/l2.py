"""Level 2, interaction: named scenarios and boundary states, from injected states."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from twinenv.verify.compare import Difference
from twinenv.verify.diagnostic import Divergence
from twinenv.verify.ledger import Ledger, Meter, Setting
from twinenv.verify.lockstep import active_events, timeline_entry
from twinenv.verify.pair import Rows, Scenario, Step
from twinenv.verify.schema import take
from twinenv.verify.shrink import Case, shrink
from twinenv.verify.sides import Sides, assert_sees, each_sides, step_differences, step_names

__all__ = ["check", "group_rows", "run_scenarios"]

_MAX_SHRUNK = 3  # groups of divergences that are shrunk, the most frequent first


def check(setting: Setting, ledger: Ledger) -> None:
    """Scenarios first, then boundary states until the budget is spent."""
    usable = list(each_sides(setting, ledger, frozenset({"load", "dump"})))
    for _, _, opened in usable:
        with opened() as sides:
            run_scenarios(sides, ledger)
            meter = Meter(setting.budget.share(len(usable)))
            rng = np.random.default_rng(setting.seed)
            while meter.left and not _boundary_states(sides, rng, setting.seed, meter, ledger):
                pass
    ledger.details["scenarios"] = ledger.details.get("scenarios", 0)
    if usable:
        ledger.demand(name for name, info in setting.pair.schema.items() if not info.ignored)


def run_scenarios(sides: Sides, ledger: Ledger) -> None:
    """Every scenario of the configuration, each in a row of its own."""
    named = [s for s in sides.pair.scenarios() if s.configuration == sides.configuration]
    size = sides.backend.num_envs
    for start in range(0, len(named), size):
        _batch(sides, named[start : start + size], ledger)
    ledger.details["scenarios"] = ledger.details.get("scenarios", 0) + len(named)


def _batch(sides: Sides, scenarios: Sequence[Scenario], ledger: Ledger) -> None:
    size, schema = sides.backend.num_envs, sides.pair.schema
    rows = [scenarios[min(i, len(scenarios) - 1)] for i in range(size)]
    before = {name: np.stack([np.asarray(s.state[name]) for s in rows]) for name in rows[0].state}
    sides.backend.load(before)
    state, met = before, [set[str]() for _ in scenarios]
    # Told only at the end, because shrinking uses the same backend.
    failed: dict[int, Callable[[], Divergence]] = {}
    for step in range(max(len(s.actions) for s in scenarios)):
        # A scenario that is over repeats its last action, unlooked at.
        actions = np.stack([np.asarray(s.actions[min(step, len(s.actions) - 1)]) for s in rows])
        running = [i for i, s in enumerate(scenarios) if step < len(s.actions)]
        events = sides.pair.events(before, actions, sides.configuration)
        want, got = sides.step(state, actions)
        ledger.count(len(running), step_names(schema, want))
        for i in running:
            active = active_events(events, i)
            met[i] |= set(active)
            found = step_differences(schema, _row(want, i), _row(got, i))
            if found and i not in failed:
                place = {"check": f"scenario: {scenarios[i].name}", "step": step, "row": i}
                case = Case(actions[i : i + 1], take(want.draws, i), take(before, i))
                place["events"] = active
                failed[i] = functools.partial(_told, sides, found, want, got, place, case)
        if any(d.kind != "value" for d in step_differences(schema, want, got)):
            break  # states of a wrong form cannot be stepped on
        before, state = want.state, got.state
    ledger.add(tell() for tell in failed.values())
    ledger.add(_broken(sides, *both) for both in zip(scenarios, met, strict=True))


def _broken(sides: Sides, scenario: Scenario, met: set[str]) -> Divergence | None:
    """A scenario whose events do not occur on the reference tests nothing."""
    if missing := sorted(set(scenario.events) - met):
        return Divergence(
            level=2,
            pair=sides.pair.name,
            check=f"scenario: {scenario.name}",
            configuration=sides.configuration,
            reference=sides.reference_name,
            kind="scenario",
            message=f"broken scenario: {'+'.join(missing)} did not occur, only {sorted(met)} did",
        )
    return None


def _boundary_states(
    sides: Sides, rng: np.random.Generator, seed: int, meter: Meter, ledger: Ledger
) -> bool:
    """One step of one batch of boundary states; returns whether it differed."""
    pair, configuration = sides.pair, sides.configuration
    before = pair.states(rng, sides.backend.num_envs, configuration)
    actions = pair.actions(rng, before, configuration)
    sides.backend.load(before)
    want, got = sides.step(before, actions)
    assert_sees(pair.schema, want)
    meter.spend(len(actions))
    ledger.count(len(actions), step_names(pair.schema, want))
    found = step_differences(pair.schema, want, got)
    if not found:
        return False
    events = pair.events(before, actions, configuration)
    for number, (group, differences) in enumerate(group_rows(found, events)):
        row = int(np.argmax(group))
        place = {"check": "boundary states", "seed": seed, "row": row}
        place |= {"rows_affected": int(group.sum()), "rows_total": len(group)}
        place["events"] = active_events(events, row)
        case = Case(actions[row : row + 1], take(want.draws, row), take(before, row))
        told = step_differences(pair.schema, _row(want, row), _row(got, row)) or differences
        shrunk = case if number < _MAX_SHRUNK else None
        ledger.add([_told(sides, told, want, got, place, shrunk)])
    return True


def group_rows(
    found: Sequence[Difference], events: Rows
) -> list[tuple[np.ndarray, list[Difference]]]:
    """Rows that differ in the same first field under the same events, the largest group first.

    Returns:
        For each group `bool[rows]` and the differences that its rows have a part in.
    """
    groups: dict[tuple[int, tuple[str, ...]], list[int]] = collections.defaultdict(list)
    size = len(found[0].rows)
    for row in range(size):
        lead = next((i for i, d in enumerate(found) if d.rows[row]), None)
        if lead is not None:
            groups[lead, active_events(events, row)].append(row)
    made = []
    for rows in sorted(groups.values(), key=len, reverse=True):
        mask = np.zeros(size, np.bool_)
        mask[rows] = True
        made.append((mask, [d for d in found if (d.rows & mask).any()]))
    return made


def _told(
    sides: Sides,
    found: list[Difference],
    want: Step,
    got: Step,
    place: dict[str, Any],
    case: Case | None,
) -> Divergence:
    return Divergence.of(
        found,
        level=2,
        pair=sides.pair.name,
        configuration=sides.configuration,
        reference=sides.reference_name,
        repro=shrink(sides, case, found[0].field, case.state) if case else None,
        timeline=(timeline_entry(place.get("step", 0), want, got, place["row"]),),
        **place,
    )


def _row(step: Step, row: int) -> Step:
    return Step(take(step.state, row), take(step.output, row))
