"""Live play of both sides with the same actions, never re-synchronised."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np

from twinenv.verify.compare import compare, compared_names
from twinenv.verify.coverage import Tally
from twinenv.verify.diagnostic import Divergence, Repro
from twinenv.verify.ledger import Ledger, Meter
from twinenv.verify.pair import Rows, Step
from twinenv.verify.schema import loosened, num_rows, take
from twinenv.verify.shrink import Case, shrink
from twinenv.verify.sides import Sides, assert_sees, step_differences, step_names

__all__ = ["Run", "active_events", "play", "timeline_entry"]

_TIMELINE = 6  # steps kept for the report
_STRETCH = 8  # steps between two fresh starts from boundary states
_LONGEST = 50_000  # steps of one rollout, whose whole story is kept to be told and shrunk


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of lock-step play.

    Attributes:
        sides: both sides.
        policy: name of one of the pair's policies.
        seed: of the reset and the policy.
        boundary: start again and again from the pair's boundary-biased states instead of playing
            on from one reset; needs a reference that loads and dumps.
    """

    sides: Sides
    policy: str
    seed: int
    boundary: bool = False

    @property
    def check(self) -> str:
        """What the report calls it."""
        start = " from boundary states" if self.boundary else ""
        return f"live/{self.sides.reference_name}: {self.policy}{start}"


def play(run: Run, meter: Meter, ledger: Ledger, tally: Tally, stint: int = 0) -> None:
    """Play until the budget is spent or the sides differ.

    Args:
        run: what to play.
        meter: the budget.
        ledger: takes the rows and the divergence.
        tally: counts rule events.
        stint: if given, play at most so many steps, and only until the tally is complete.
    """
    sides, pair = run.sides, run.sides.pair
    rng = np.random.default_rng(run.seed)
    played = 0
    while meter.left:
        begun = _begin(run, rng, ledger)
        if begun is None:
            return
        log, want, state = begun
        longest = pair.horizon or _LONGEST
        for step in range(min(_STRETCH, longest) if run.boundary else longest):
            if not meter.left or (stint and (played >= stint or tally.complete)):
                return
            actions = _actions(run, rng, want)
            before = want.state or state
            want, got = sides.step(state, actions)
            if not played:
                assert_sees(pair.schema, want)
            log.add(actions, want, got)
            events = pair.events(before, actions, sides.configuration)
            tally.add(events)
            meter.spend(len(actions))
            ledger.count(len(actions), step_names(pair.schema, want))
            if found := step_differences(loosened(pair.schema, pair.growth**step), want, got):
                active = active_events(events, int(np.argmax(found[0].rows)))
                ledger.add([log.divergence(found, step=step, events=active)])
                return
            state, played = got.state, played + 1


def active_events(events: Rows, row: int) -> tuple[str, ...]:
    """Names of the events in one row."""
    return tuple(name for name, met in events.items() if met[row])


def timeline_entry(step: int, want: Step, got: Step, row: int) -> dict[str, Any]:
    """Both sides of one row of one step, for the report."""
    both = ({**take(side.state, row), **take(side.output, row)} for side in (want, got))
    expected, found = ({name: array[0].tolist() for name, array in rows.items()} for rows in both)
    return {"step": step, "expected": expected, "got": found}


def _begin(run: Run, rng: np.random.Generator, ledger: Ledger) -> tuple[_Log, Step, Rows] | None:
    """Start both sides; None if states or, where it can tell, observations differ at the reset."""
    sides, pair = run.sides, run.sides.pair
    if run.boundary:
        state = pair.states(rng, sides.backend.num_envs, sides.configuration)
        sides.backend.load(state)
        return _Log(run, state), Step(state, {}), state
    want = sides.backend.reset(int(rng.integers(2**31)) if pair.horizon else run.seed)
    state = sides.fast.start(want)
    seen = Step(state if want.state else {}, _observed(run, state, ledger))
    expected = {**want.state, **{name: want.output[name] for name in seen.output}}
    ledger.count(num_rows(expected), compared_names(pair.schema, expected))
    log = _Log(run, {})
    if found := compare(pair.schema, expected, {**seen.state, **seen.output}):
        ledger.add([log.divergence(found, message="already at the reset")])
        return None
    return log, want, state


def _observed(run: Run, state: Rows, ledger: Ledger) -> Rows:
    observe = getattr(run.sides.fast, "observe", None)
    if observe is None:
        ledger.skip("outputs of a reset: the fast side has no `observe`")
        return {}
    return {"observation": observe(state)}


def _actions(run: Run, rng: np.random.Generator, last: Step) -> np.ndarray:
    pair = run.sides.pair
    if last.output:
        return pair.policies[run.policy](rng, last)
    return pair.actions(rng, last.state, run.sides.configuration)


class _Log:
    """What a run did, so that a divergence can be told and shrunk."""

    def __init__(self, run: Run, start: Rows) -> None:
        self._run, self._start = run, start
        self._actions: list[np.ndarray] = []
        self._draws: list[Rows] = []
        self._last: collections.deque[tuple[Step, Step]] = collections.deque(maxlen=_TIMELINE)

    def add(self, actions: np.ndarray, want: Step, got: Step) -> None:
        self._actions.append(actions)
        self._draws.append(want.draws)
        self._last.append((want, got))

    def divergence(self, found: list[Any], **place: Any) -> Divergence:
        run, lead = self._run, found[0]
        row = int(np.argmax(lead.rows))
        step = place.get("step", 0)
        first = step - len(self._last) + 1
        return Divergence.of(
            found,
            level=3,
            pair=run.sides.pair.name,
            check=run.check,
            configuration=run.sides.configuration,
            reference=run.sides.reference_name,
            seed=run.seed,
            repro=self._shrunk(row, lead.field) if self._actions else None,
            timeline=tuple(
                timeline_entry(first + i, want, got, row)
                for i, (want, got) in enumerate(self._last)
            ),
            **place,
        )

    def _shrunk(self, row: int, field: str) -> Repro:
        """From the row's own story, or its last known state where the reference takes it."""
        sides = self._run.sides
        actions = np.stack([a[row] for a in self._actions])
        draws = {n: np.stack([d[n][row] for d in self._draws]) for n in self._draws[0]}
        start = take(self._start, row) if self._start else {}
        before = start if len(self._actions) == 1 else {}
        if len(self._last) > 1 and sides.can("load", "dump"):
            before = take(self._last[-2][0].state, row)
        return shrink(sides, Case(actions, draws, start, self._run.seed), field, before)
