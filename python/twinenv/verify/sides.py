"""Both sides of a pair at one configuration, stepped together."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from twinenv.references import MissingReferenceError
from twinenv.verify.compare import Difference, compare, compared_names
from twinenv.verify.ledger import Ledger, Setting
from twinenv.verify.pair import Backend, FastSide, Pair, Reference, Rows, Step
from twinenv.verify.schema import Schema, num_rows, take

__all__ = [
    "BlindError",
    "FastSideError",
    "Sides",
    "assert_sees",
    "each_sides",
    "guarded",
    "open_sides",
    "padded_step",
    "step_differences",
    "step_names",
]


class BlindError(RuntimeError):
    """The comparison does not see what it should: nothing can be verified."""


class FastSideError(RuntimeError):
    """The fast side raised an error, which counts as a divergence."""


class _Guarded:
    """A fast side whose errors are marked as its own."""

    def __init__(self, fast: FastSide) -> None:
        self._fast = fast

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._fast, name)

        def call(*args: Any) -> Any:
            try:
                return method(*args)
            except Exception as error:
                raise FastSideError(f"{name} raised {type(error).__name__}: {error}") from error

        return call if callable(method) else method


@functools.lru_cache(maxsize=16)
def guarded(pair: Pair, configuration: str, *, as_trained: bool = False) -> FastSide:
    """The pair's fast side, made (and compiled) once; its errors become `FastSideError`."""
    try:
        return _Guarded((pair.as_trained if as_trained else pair.fast)(configuration))
    except Exception as error:
        raise FastSideError(f"making it raised {type(error).__name__}: {error}") from error


@dataclasses.dataclass(frozen=True)
class Sides:
    """A running reference and the fast side at the same configuration.

    Attributes:
        pair: the house's pair.
        configuration: name.
        reference_name: name in `pair.references`.
        backend: the running reference.
        fast: the twin.
    """

    pair: Pair
    configuration: str
    reference_name: str
    backend: Backend
    fast: FastSide

    @property
    def reference(self) -> Reference:
        """What the pair says of the reference."""
        return self.pair.references[self.reference_name]

    def can(self, *capabilities: str) -> bool:
        """Whether the reference has all these capabilities."""
        return self.reference.capabilities.issuperset(capabilities)

    def step(
        self, state: Rows, actions: np.ndarray, draws: Rows | None = None
    ) -> tuple[Step, Step]:
        """The reference's step, then the fast side's from `state` with the same draws.

        Args:
            state: the fast side's states.
            actions: one per row.
            draws: random outcomes to feed to the reference, which needs the capability "feed".
        """
        if draws:
            self.backend.feed(draws)  # type: ignore[attr-defined]
        want = self.backend.step(actions)
        return want, self.fast.step(state, actions, want.draws)


@contextlib.contextmanager
def open_sides(
    pair: Pair, reference: str, configuration: str, num_envs: int | None = None
) -> Iterator[Sides]:
    """Start a reference beside the twin.

    Raises:
        MissingReferenceError: the reference is not installed.
    """
    options = pair.configurations[configuration]
    backend = pair.references[reference].open(num_envs or pair.num_envs, **options)
    try:
        fast = guarded(pair, configuration)
        yield Sides(pair, configuration, reference, backend, fast)
    finally:
        backend.close()


def each_sides(
    setting: Setting, ledger: Ledger, needs: frozenset[str] = frozenset()
) -> Iterator[tuple[str, str, Callable[[], contextlib.AbstractContextManager[Sides]]]]:
    """Every reference and configuration that can run; what cannot is recorded as skipped.

    Yields:
        reference, configuration, and a function that opens both sides.
    """
    pair, served = setting.pair, set()
    for name, reference in pair.references.items():
        if lacking := sorted(needs - reference.capabilities):
            ledger.details.setdefault("not used", []).append(f"{name}: cannot {', '.join(lacking)}")
            continue
        for configuration in filter(reference.judges, setting.configurations):
            served.add(configuration)
            try:
                reference.open(1, **pair.configurations[configuration]).close()
            except MissingReferenceError as error:
                ledger.skip(f"{name}: {error}")
                continue
            yield name, configuration, _opener(pair, name, configuration)
    for configuration in setting.configurations:
        if configuration in served:
            continue
        if reason := pair.unjudged.get(configuration):
            ledger.details.setdefault("unjudged", {})[configuration] = reason
        else:
            wanted = f" that can {' and '.join(sorted(needs))}" if needs else ""
            ledger.skip(f"{configuration}: no reference{wanted}")


def _opener(
    pair: Pair, name: str, configuration: str
) -> Callable[[], contextlib.AbstractContextManager[Sides]]:
    return lambda: open_sides(pair, name, configuration)


def step_differences(schema: Schema, want: Step, got: Step) -> list[Difference]:
    """Differences of states, where the reference dumps them, and of outputs."""
    state = got.state if want.state else {}
    return compare(schema, {**want.state, **want.output}, {**state, **got.output})


def step_names(schema: Schema, want: Step) -> set[str]:
    """Names that `step_differences` compares."""
    return compared_names(schema, {**want.state, **want.output})


def assert_sees(schema: Schema, want: Step) -> None:
    """Check that `step_differences` finds a spoilt last element in each field that it looks at.

    Every run asks this of its own first step, so that a comparison that has gone blind is never
    taken for agreement.

    Raises:
        BlindError: it does not.
    """
    for name in sorted(step_names(schema, want)):
        state, output = dict(want.state), dict(want.output)
        group = state if name in state else output
        if group[name].size:
            group[name] = _spoilt(group[name], schema[name].atol)
            found = step_differences(schema, want, Step(state, output))
            if [d.field for d in found] != [name] or not found[0].rows[-1]:
                raise BlindError(f"the comparison does not see a wrong {name}")


def _spoilt(array: np.ndarray, atol: float) -> np.ndarray:
    spoilt, last = array.copy(), tuple(size - 1 for size in array.shape)
    if array.dtype == np.bool_:
        spoilt[last] = ~array[last]
    elif array.dtype.kind == "f":
        spoilt[last] = 2 * abs(array[last]) + 1 + 2 * atol if np.isfinite(array[last]) else 0
    else:
        spoilt[last] = array[last] ^ 1
    return spoilt


def padded_step(fast: FastSide, state: Rows, actions: np.ndarray, draws: Rows, size: int) -> Step:
    """The fast side's step of any number of rows, in batches of one size: nothing recompiles."""
    parts = []
    for start in range(0, len(actions), size):
        where = np.minimum(np.arange(start, start + size), len(actions) - 1)
        step = fast.step(take(state, where), actions[where], take(draws, where))
        kept = slice(0, min(size, len(actions) - start))
        parts.append(Step(take(step.state, kept), take(step.output, kept)))
    return Step(_join([p.state for p in parts]), _join([p.output for p in parts]))


def _join(parts: list[Rows]) -> Rows:
    if len({num_rows(part) for part in parts}) == 1 and len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
