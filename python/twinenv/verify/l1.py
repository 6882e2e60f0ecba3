"""Level 1, property: what must hold of the twin alone, driven by hypothesis."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from twinenv.verify import contract
from twinenv.verify.diagnostic import Divergence, Repro
from twinenv.verify.ledger import Ledger, Meter, Setting
from twinenv.verify.pair import FastSide, Pair, Rows, Step
from twinenv.verify.schema import num_rows, take, tile, violations
from twinenv.verify.shrink import plain_state
from twinenv.verify.sides import guarded

__all__ = ["Example", "check", "examine", "properties", "property_check"]

_MAX_STEPS = 48  # of play before a row is looked at
_MOST_EXAMPLES = 5000
_BOUNDARY = "boundary"

Property = Callable[[Rows, np.ndarray, Rows, Step], np.ndarray]
"""State before, actions, draws and step -> bool per row."""


@dataclasses.dataclass(frozen=True)
class Example:
    """One batch to look at.

    Attributes:
        configuration: name.
        source: a policy of the pair's that plays, or "boundary" states.
        seed: of play or states.
        steps: played.
    """

    configuration: str
    source: str
    seed: int
    steps: int


class _Case(NamedTuple):
    """A batch and the row in it that is looked at."""

    state: Rows
    actions: np.ndarray
    draws: Rows
    row: int

    def one(self) -> tuple[Rows, np.ndarray, Rows]:
        row = self.row
        return take(self.state, row), self.actions[row : row + 1], take(self.draws, row)


class _Stop(Exception):  # noqa: N818 (a signal to hypothesis, not an error)
    """The budget is spent, or an example has a property that does not hold."""


def check(setting: Setting, ledger: Ledger) -> None:
    """The API contract of each configuration, then properties of as many batches as budgeted."""
    pair = setting.pair
    for configuration in _programs(setting, ledger):
        contract.check(pair, configuration, setting.seed, ledger)
    if not pair.invariants():
        ledger.skip("invariants: the pair declares none")
    sources = (_BOUNDARY, *pair.policies)
    examples = [
        Example(configuration, source, setting.seed, 4)
        for configuration in setting.configurations
        for source in sources[:2]
    ]
    for example in examples:
        examine(pair, example, ledger)
    if not ledger.divergences:
        ledger.details["examples"] = _drive(setting, ledger, sources)


def _programs(setting: Setting, ledger: Ledger) -> Iterator[str]:
    """Configurations of different programs; which stands for which goes to the details."""
    for configuration in setting.configurations:
        other = setting.pair.same_program.get(configuration)
        if other in setting.configurations:
            ledger.details.setdefault("contract checked as", {})[configuration] = other
        else:
            yield configuration


def examine(pair: Pair, example: Example, ledger: Ledger) -> None:
    """Look at every step of an example; what does not hold goes to the ledger."""
    fast = guarded(pair, example.configuration)
    rng = np.random.default_rng(example.seed)
    for last in _batches(pair, fast, example, rng):
        before, size = last.state, num_rows(last.state)
        draws = pair.draws(rng, size, example.configuration)
        actions = (
            pair.policies[example.source](rng, last)
            if last.output
            else pair.actions(rng, before, example.configuration)
        )
        step = fast.step(before, actions, draws)
        looks = properties(pair, example.configuration)
        ledger.count(size, looks)
        for name, holds in looks.items():
            if not (rows := holds(before, actions, draws, step)).all():
                case = _Case(before, actions, draws, int(np.argmin(rows)))
                ledger.add([_told(pair, example, name, case, rows)])


def property_check(pair: Pair, configuration: str, name: str) -> Property:
    """A property by the name that a divergence carries.

    Raises:
        ValueError: the pair has no such property.
    """
    known = properties(pair, configuration)
    if name not in known:
        raise ValueError(f"{pair.name} has no property {name!r}; it has {', '.join(known)}")
    return known[name]


def properties(pair: Pair, configuration: str) -> dict[str, Property]:
    """Every property of a configuration by name: its schema, invariants and symmetries."""
    fast = guarded(pair, configuration)

    def fits(before: Rows, actions: np.ndarray, draws: Rows, step: Step) -> np.ndarray:
        fits = not violations(pair.schema, {**step.state, **step.output})
        return np.full(len(actions), fits, np.bool_)

    found: dict[str, Property] = {"rows fit their schema": fits}
    for name, invariant in pair.invariants().items():
        found[f"invariant: {name}"] = _invariant(name, invariant, configuration)
    for name, symmetry in pair.symmetries().items():
        found[f"symmetry: {name}"] = _symmetry(name, symmetry, fast, configuration)
    return found


def _invariant(name: str, check: Callable[..., np.ndarray], configuration: str) -> Property:
    return lambda before, actions, draws, step: _bools(
        name, check(before, actions, step, configuration), len(actions)
    )


def _symmetry(
    name: str, check: Callable[..., np.ndarray], fast: FastSide, configuration: str
) -> Property:
    return lambda before, actions, draws, step: _bools(
        name, check(fast, before, actions, configuration), len(actions)
    )


def _bools(name: str, holds: np.ndarray, size: int) -> np.ndarray:
    if not isinstance(holds, np.ndarray) or holds.dtype != np.bool_ or holds.shape != (size,):
        given = f"{getattr(holds, 'dtype', type(holds))}{list(np.shape(holds))}"
        raise ValueError(f"property {name!r} returned {given}; it must return bool[{size}]")
    return holds


def _batches(
    pair: Pair, fast: FastSide, example: Example, rng: np.random.Generator
) -> Iterator[Step]:
    """States to step from; after play also the outputs that its policy looks at."""
    if example.source == _BOUNDARY:
        for _ in range(max(example.steps // 4, 1)):
            yield Step(pair.states(rng, pair.num_envs, example.configuration), {})
        return
    last = fast.reset(example.seed, pair.num_envs)
    yield last
    for _ in range(example.steps):
        actions = pair.policies[example.source](rng, last)
        draws = pair.draws(rng, pair.num_envs, example.configuration)
        last = fast.step(last.state, actions, draws)
        yield last


def _told(pair: Pair, example: Example, name: str, case: _Case, holds: np.ndarray) -> Divergence:
    """The divergence, with the state's fields made plain as far as it still shows."""
    fast, size = guarded(pair, example.configuration), pair.num_envs
    state, action, draws = case.one()
    actions, drawn = np.repeat(action, size, axis=0), tile(draws, size)
    look = properties(pair, example.configuration)[name]

    def fails(state: Rows) -> bool:
        rows = tile(state, size)
        return not look(rows, actions, drawn, fast.step(rows, actions, drawn)).all()

    state, needs = plain_state(state, take(fast.reset(0, size).state, 0), fails)
    step = fast.step(tile(state, size), actions, drawn)
    words = "; ".join(violations(pair.schema, {**step.state, **step.output})) or "does not hold"
    return Divergence(
        level=1,
        pair=pair.name,
        check=name,
        configuration=example.configuration,
        seed=example.seed,
        row=case.row,
        rows_affected=int((~holds).sum()),
        rows_total=len(holds),
        message=words,
        repro=Repro("check", action, draws, state, needs=needs),
    )


def _drive(setting: Setting, ledger: Ledger, sources: tuple[str, ...]) -> int:
    """Have hypothesis choose examples until one has a property that does not hold.

    Returns:
        How many were looked at.
    """
    import hypothesis
    from hypothesis import strategies

    looked, meter = 0, Meter(setting.budget)
    examples = strategies.builds(
        Example,
        configuration=strategies.sampled_from(setting.configurations),
        source=strategies.sampled_from(sources),
        seed=strategies.integers(0, 2**31 - 1),
        steps=strategies.integers(0, _MAX_STEPS),
    )

    @hypothesis.seed(setting.seed)
    @hypothesis.settings(
        max_examples=_MOST_EXAMPLES,
        database=None,
        deadline=None,
        # States are shrunk field by field afterwards; shrinking seeds would mean nothing.
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(example=examples)
    def drive(example: Any) -> None:
        nonlocal looked
        before = ledger.rows
        if ledger.divergences or not meter.left:
            raise _Stop
        examine(setting.pair, example, ledger)
        meter.spend(ledger.rows - before)
        looked += 1

    with contextlib.suppress(_Stop):
        drive()
    return looked
