"""Making a divergence small: one step if possible, then only what it needs."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from twinenv.verify.compare import Difference
from twinenv.verify.diagnostic import Repro
from twinenv.verify.pair import Rows, Step
from twinenv.verify.schema import take, tile
from twinenv.verify.sides import Sides, step_differences

__all__ = ["Case", "Mismatch", "ddmin", "first_mismatch", "plain_state", "shrink"]

T = TypeVar("T")

_MAX_TESTS, _MAX_SECONDS = 500, 60.0
_MAX_ELEMENTS = 64  # of one field, each tried alone


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """Something to try on both sides.

    Attributes:
        actions: one per step.
        draws: one row per step, fed to a reference that takes them; or empty.
        state: one row to start from; empty starts from a reset.
        seed: of that reset.
    """

    actions: np.ndarray
    draws: Rows = dataclasses.field(default_factory=dict)
    state: Rows = dataclasses.field(default_factory=dict)
    seed: int = 0

    def only(self, steps: list[int]) -> Case:
        """The case with some of its steps, each with its own draws."""
        where = np.array(steps, np.intp)
        return dataclasses.replace(self, actions=self.actions[where], draws=take(self.draws, where))


@dataclasses.dataclass(frozen=True, eq=False)
class Mismatch:
    """The first step of a case that differs.

    Attributes:
        step: its number.
        differences: what differs.
        want: the reference's step.
        got: the fast side's.
    """

    step: int
    differences: list[Difference]
    want: Step
    got: Step

    @property
    def row(self) -> int:
        """The first row that differs."""
        return int(np.argmax(self.differences[0].rows))


def first_mismatch(sides: Sides, case: Case) -> Mismatch | None:
    """Run a case in every row of the batch, and stop where any row differs.

    All rows do the same; they differ only where the reference draws chance of its own, and then
    each is a try of its own.
    """
    count = sides.backend.num_envs
    if case.state:
        sides.backend.load(tile(case.state, count))
        state = tile(case.state, count)
    else:
        state = sides.fast.start(sides.backend.reset(case.seed))
    for step, action in enumerate(case.actions):
        fed = tile(take(case.draws, step), count) if sides.can("feed") else None
        want, got = sides.step(state, np.repeat(action[None], count, axis=0), fed)
        if found := step_differences(sides.pair.schema, want, got):
            return Mismatch(step, found, want, got)
        state = got.state
    return None


def shrink(sides: Sides, case: Case, field: str, before: Rows | None = None) -> Repro:
    """The smallest case found that still differs first in `field`.

    A reference that loads and dumps states gets one step from the state before; any other gets the
    fewest steps from a reset. Then the state's fields, draws and actions become plain one by one.
    A case that does not differ when run again is returned as it came, with a note in `needs`.

    Args:
        sides: both sides.
        case: the story up to the divergence.
        field: the first field that differs.
        before: the reference's state before the last step, one row, if it can be loaded.
    """
    trials = _Trials(sides, field)
    last = dataclasses.replace(case.only([len(case.actions) - 1]), state=before or {})
    if before and trials.fails(last):
        case = last
    elif mismatch := trials.run(case):
        case = case.only(list(range(mismatch.step + 1)))
    else:
        note = "the whole run: it does not happen again from its recorded start"
        return _repro(case, {}, sides.backend.num_envs, (note,), trials.used)
    steps = ddmin(list(range(len(case.actions))), lambda steps: trials.fails(case.only(steps)))
    case = _plain_steps(trials, case.only(steps))
    needs: tuple[str, ...] = ()
    if case.state:
        plain = take(sides.backend.reset(0).state, 0)
        state, needs = plain_state(
            case.state, plain, lambda state: trials.fails(dataclasses.replace(case, state=state))
        )
        case = dataclasses.replace(case, state=state)
    mismatch = first_mismatch(sides, case)
    want = mismatch.want if mismatch else Step({}, {})
    expected = take({**want.state, **want.output}, mismatch.row if mismatch else 0)
    return _repro(case, expected, sides.backend.num_envs, needs, trials.used)


def ddmin(items: list[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """A subset that still fails and of which no single part can be left out (Zeller's ddmin)."""
    parts = 2
    while len(items) >= 2:
        size = -(-len(items) // parts)
        for start in range(0, len(items), size):
            rest = items[:start] + items[start + size :]
            if fails(rest):
                items, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(len(items), 2 * parts)
    return items


class _Trials:
    """Counts trials; beyond the limits every candidate counts as not failing."""

    def __init__(self, sides: Sides, field: str) -> None:
        self.sides, self.field = sides, field
        self.used, self._until = 0, time.monotonic() + _MAX_SECONDS

    def run(self, case: Case) -> Mismatch | None:
        self.used += 1
        mismatch = first_mismatch(self.sides, case)
        same = mismatch is not None and mismatch.differences[0].field == self.field
        return mismatch if same else None

    def fails(self, case: Case) -> bool:
        if self.used >= _MAX_TESTS or time.monotonic() > self._until or not len(case.actions):
            return False
        return self.run(case) is not None


def _plain_steps(trials: _Trials, case: Case) -> Case:
    """Actions, and draws where they can be fed, become zero where that changes nothing."""
    for step in range(len(case.actions)):
        actions = case.actions.copy()
        actions[step] = 0
        candidate = dataclasses.replace(case, actions=actions)
        if actions[step].tolist() != case.actions[step].tolist() and trials.fails(candidate):
            case = candidate
    if trials.sides.can("feed"):
        for name, values in case.draws.items():
            for place in zip(*np.nonzero(values), strict=True):
                candidate = dataclasses.replace(
                    case, draws=case.draws | {name: _zero(values, place)}
                )
                if trials.fails(candidate):
                    case, values = candidate, candidate.draws[name]
    return case


def plain_state(
    state: Rows, plain: Rows, fails: Callable[[Rows], bool]
) -> tuple[Rows, tuple[str, ...]]:
    """Put fields, then elements, of one row back to their plain value while it still fails.

    Returns:
        The state, and what could not be put back, such as "ball_vy = 13".
    """
    plain = {name: value for name, value in plain.items() if name in state}
    for name, default in plain.items():
        for part in _parts(state[name] != default):
            values = np.where(part, default, state[name])
            changed = not np.array_equal(values, state[name])
            if changed and fails(state | {name: values}):
                state = state | {name: values}
    needs = []
    for name, default in plain.items():
        for place in np.argwhere(state[name] != default)[:_MAX_ELEMENTS]:
            index = "".join(f"[{i}]" for i in place[1:])
            needs.append(f"{name}{index} = {state[name][tuple(place)].item()}")
    return state, tuple(needs)


def _parts(differs: np.ndarray) -> Iterator[np.ndarray]:
    """The whole, then each single element of a small array."""
    yield differs
    places = np.argwhere(differs)
    if 1 < len(places) <= _MAX_ELEMENTS:
        for place in places:
            part = np.zeros_like(differs)
            part[tuple(place)] = True
            yield part


def _zero(values: np.ndarray, place: tuple[Any, ...]) -> np.ndarray:
    changed = values.copy()
    changed[place] = 0
    return changed


def _repro(
    case: Case, expected: Rows, num_envs: int, needs: tuple[str, ...], tests_used: int
) -> Repro:
    one = case.state and len(case.actions) == 1
    return Repro(
        kind="one_step" if one else "sequence",
        actions=case.actions,
        draws=case.draws,
        state=case.state,
        expected=expected,
        seed=case.seed,
        num_envs=num_envs,
        needs=needs,
        tests_used=tests_used,
    )
