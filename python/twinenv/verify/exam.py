"""What a changed twin is examined with: recorded rows of the reference, and properties.

The reference's answers are recorded once, so that hundreds of faulty twins can be judged without
it, in batches and without compiling, or without optimising what is compiled.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import numpy as np

from twinenv import stages
from twinenv.references import MissingReferenceError
from twinenv.verify import contract, l1, l3
from twinenv.verify.compiling import lightly_compiled
from twinenv.verify.ledger import Ledger
from twinenv.verify.pair import Pair
from twinenv.verify.schema import take
from twinenv.verify.sides import BlindError, guarded
from twinenv.verify.trace import Trace, joined, load_traces, record, save_traces

__all__ = ["Exam", "prepare"]

_LEVEL = {"interaction": 2, "rollout": 3}
"""Level by the source of the exam's traces."""
_BATCH = 1024  # un-jitted, a batch costs the same whatever its size


def prepare(pair: Pair, folder: Path, golden: Path | None, seed: int = 0) -> None:
    """Write the exam's traces into a folder.

    Golden traces are taken where there are any, else the reference records; scenarios need it.

    Raises:
        MissingReferenceError: there are neither golden traces nor a reference.
        TraceError: the golden traces are not what was recorded.
    """
    traces = load_traces(golden, pair) if golden and golden.is_dir() else _recorded(pair, seed)
    with contextlib.suppress(MissingReferenceError):
        traces += _scenarios(pair)
    for place, trace in enumerate(traces):
        source = "interaction" if trace.source in ("boundary", "scenarios") else "rollout"
        traces[place] = dataclasses.replace(trace, source=source)
    save_traces(folder, joined(traces))


class Exam:
    """Asks twins, un-jitted or lightly compiled, and in batches, the quickest questions first.

    Levels 2 and 3 have one question a configuration each. Level 1 is asked of configurations that
    no trace judges, and of the quickest one that a trace does. A survivor may be compiled, for the
    first configuration's API contract and its recorded sequences, which take many steps each.

    Args:
        folder: what `prepare` wrote.
        pair: of the unchanged house.
    """

    def __init__(self, folder: Path, pair: Pair) -> None:
        traces = load_traces(folder, pair)
        self._first = next(iter(pair.configurations))
        rows = [trace for trace in traces if trace.kind == "rows"]
        sequences = [trace for trace in traces if trace.kind != "rows"]
        self._sequences = [trace for trace in sequences if trace.configuration == self._first]
        self._traces = _ordered(pair, rows or sequences)
        judged = list(dict.fromkeys(trace.configuration for trace in self._traces))
        unjudged = [name for name in pair.configurations if name not in judged]
        self._configurations = (*judged[:1], *unjudged)

    def examine(
        self, pair: Pair, *, first: int = 0, every_level: bool = False, deep: bool = False
    ) -> dict[str, str]:
        """Who kills a twin: for each level that does, why.

        Args:
            pair: of the twin to judge.
            first: level to ask first; 0 goes by speed.
            every_level: ask the other levels even when one has killed it.
            deep: compile a survivor, and look at its API contract and indices as well.
        """
        killed: dict[str, str] = {}
        with lightly_compiled() if pair.compiled_exam else _unjitted():
            for level, ask in sorted(self._questions(pair), key=lambda asked: asked[0] != first):
                over = f"L{level}" in killed if every_level else bool(killed)
                if not over and (why := _answer(ask, pair)):
                    killed[f"L{level}"] = why
        with lightly_compiled() if pair.compiled_exam else stages.disabled():
            for level, ask in self._deeper() if deep else ():
                if not killed and (why := _answer(ask, pair)):
                    killed[f"L{level}"] = why
        return killed

    def _deeper(self) -> list[_Question]:
        return [
            (1, functools.partial(_contract, configuration=self._first)),
            *((3, functools.partial(_replayed, trace=t, size=0)) for t in self._sequences),
        ]

    def _questions(self, pair: Pair) -> list[_Question]:
        known = {t.configuration: t for t in self._traces if t.source == "rollout"}
        size = _batch_size(pair)
        asked = [
            (_LEVEL[t.source], functools.partial(_replayed, trace=t, size=size))
            for t in self._traces
        ]
        looks = [
            functools.partial(_looked_at, configuration=c, trace=known.get(c))
            for c in self._configurations
        ]
        return [*asked, *((1, look) for look in looks)]


@contextlib.contextmanager
def _unjitted() -> Iterator[None]:
    with jax.disable_jit(), stages.disabled():
        yield


def _batch_size(pair: Pair) -> int:
    """Rows of a batch; 0 takes the pair's own number, so that nothing is compiled twice."""
    return 0 if pair.compiled_exam else _BATCH


def _ordered(pair: Pair, traces: list[Trace]) -> list[Trace]:
    """Traces in the order in which to ask them: as the pair says, else the quickest first."""
    if order := pair.compiled_exam:
        return sorted(traces, key=lambda trace: order.index(trace.configuration))
    timed = sorted(_timed(pair, traces), key=lambda both: both[0])
    return [trace for _, trace in timed]


def _timed(pair: Pair, traces: list[Trace]) -> Iterator[tuple[float, Trace]]:
    with _unjitted():
        for trace in traces:
            _replayed(pair, trace)  # compiles every primitive
            start = time.perf_counter()
            _replayed(pair, trace)
            yield time.perf_counter() - start, trace


_Question = tuple[int, Callable[[Pair], str]]
"""Level, and what answers "" or why it kills."""


def _answer(ask: Callable[[Pair], str], pair: Pair) -> str:
    try:
        return ask(pair)
    except BlindError:
        raise
    except Exception as error:  # of a faulty twin: anything
        return f"{type(error).__name__}: {error}"


def _recorded(pair: Pair, seed: int) -> list[Trace]:
    """From the references that can load, or else from all."""
    able = [name for name, r in pair.references.items() if {"load", "dump"} <= r.capabilities]
    return [
        trace
        for name in able or pair.references
        for configuration in filter(pair.references[name].judges, pair.configurations)
        for trace in record(pair, name, configuration, seed)
    ]


def _scenarios(pair: Pair) -> Iterator[Trace]:
    """Each step of each scenario, as the first reference that can load does it."""
    for name, reference in pair.references.items():
        if not {"load", "dump"} <= reference.capabilities:
            continue
        for scenario in filter(lambda s: reference.judges(s.configuration), pair.scenarios()):
            backend = reference.open(1, **pair.configurations[scenario.configuration])
            state = {key: np.asarray(value)[None] for key, value in scenario.state.items()}
            backend.load(state)
            for action in scenario.actions:
                actions = np.asarray(action)[None]
                step = backend.step(actions)
                yield Trace(
                    pair=pair.name,
                    configuration=scenario.configuration,
                    reference=name,
                    version=reference.version,
                    kind="rows",
                    source="scenarios",
                    seed=0,
                    actions=actions,
                    state=state,
                    draws=step.draws,
                    next=step.state,
                    output=step.output,
                )
                state = step.state
            backend.close()
        return


def _contract(pair: Pair, configuration: str) -> str:
    ledger = Ledger()
    contract.check(pair, configuration, 0, ledger)
    return ledger.divergences[0].line() if ledger.divergences else ""


def _replayed(pair: Pair, trace: Trace, size: int = _BATCH) -> str:
    """Levels 2 and 3: the recorded steps."""
    ledger = Ledger()
    l3.replay_trace(pair, trace, ledger, level=_LEVEL[trace.source], size=size)
    return ledger.divergences[0].line() if ledger.divergences else ""


def _looked_at(pair: Pair, configuration: str, trace: Trace | None) -> str:
    """Level 1: properties of steps from the twin's own reset, boundary and recorded states."""
    fast, size = guarded(pair, configuration), pair.num_envs
    starts = [fast.reset(0, size).state]
    starts.append(pair.states(np.random.default_rng(0), size, configuration))
    if trace and trace.state:
        where = np.linspace(0, len(trace.actions) - 1, size).astype(np.intp)
        starts.append(take(trace.state, where))
    for state in starts:
        rng = np.random.default_rng(0)
        actions = pair.actions(rng, state, configuration)
        draws = pair.draws(rng, size, configuration)
        step = fast.step(state, actions, draws)
        for name, holds in l1.properties(pair, configuration).items():
            if not holds(state, actions, draws, step).all():
                return f"{configuration}: {name} does not hold"
    return ""
