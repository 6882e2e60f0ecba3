"""Level 3, rollout: golden traces, live lock-step, and play until every rule was met."""

from __future__ import annotations

import collections
import itertools
from typing import Any

import numpy as np

from twinenv.references import MissingReferenceError
from twinenv.verify.compare import Difference, compare
from twinenv.verify.coverage import Tally
from twinenv.verify.diagnostic import Divergence, Repro
from twinenv.verify.ledger import Ledger, Meter, Setting
from twinenv.verify.lockstep import Run, play, timeline_entry
from twinenv.verify.pair import Pair, Rows, Step
from twinenv.verify.schema import num_rows, take
from twinenv.verify.sides import (
    assert_sees,
    each_sides,
    guarded,
    padded_step,
    step_differences,
    step_names,
)
from twinenv.verify.trace import Trace, TraceError, load_traces, rerecorded

__all__ = ["check", "check_golden", "replay_trace"]

_SAMPLE = 32  # golden rows, or steps of a sequence, that the reference records again
_STINT = 32  # steps under one policy before the next has its turn


def check(setting: Setting, ledger: Ledger) -> None:
    """Golden traces, then live play of every reference, configuration and policy, then quotas.

    Live play spends the budget; quotas still missed then may take as much again.
    """
    check_golden(setting, ledger)
    pair, tally = setting.pair, Tally(setting.pair)
    usable = list(each_sides(setting, ledger))
    live: collections.Counter[str] = collections.Counter()
    for number, (reference, _, opened) in enumerate(usable):
        before = ledger.rows
        with opened() as sides:
            for policy in pair.policies:
                meter = Meter(setting.budget.share(len(usable) * len(pair.policies)))
                play(Run(sides, policy, setting.seed + number), meter, ledger, tally)
        live[reference] += ledger.rows - before
    ledger.details["live rows"] = dict(live)
    if usable and not ledger.divergences:
        _chase_quotas(setting, ledger, tally, usable)
    _report_coverage(pair, ledger, tally, bool(usable))
    if ledger.rows:
        ledger.demand(name for name, info in pair.schema.items() if not info.ignored)


def _chase_quotas(setting: Setting, ledger: Ledger, tally: Tally, usable: list[Any]) -> None:
    """More play under every policy until the quotas are met, from boundary states if possible."""
    pair, meter = setting.pair, Meter(setting.budget)
    able = {name for name, r in pair.references.items() if {"load", "dump"} <= r.capabilities}
    chosen = [opened for name, _, opened in usable if name in able]
    for turn in itertools.count(1):
        for opened in chosen or [opened for _, _, opened in usable]:
            with opened() as sides:
                for policy in pair.policies:
                    if tally.complete or not meter.left or ledger.divergences:
                        return
                    run = Run(sides, policy, setting.seed + 1000 * turn, boundary=bool(chosen))
                    play(run, meter, ledger, tally, stint=_STINT)


def _report_coverage(pair: Pair, ledger: Ledger, tally: Tally, played: bool) -> None:
    if not played:
        ledger.skip("event quotas: no reference to play with")
        return
    ledger.details["coverage"] = tally.to_json()
    for miss in tally.missed():
        ledger.skip(f"event quota: {miss}")
    for wrong in tally.contradicted():
        ledger.add([Divergence.said(pair.name, 3, "excluded pairs", wrong, kind="coverage")])


def check_golden(setting: Setting, ledger: Ledger) -> None:
    """Replay golden traces on the fast side, and have the reference record a sample again."""
    pair = setting.pair
    if setting.golden is None or not setting.golden.is_dir():
        folder = setting.golden or f"tests/{pair.name}/golden"
        ledger.skip(f"golden traces: no folder {folder}; run it in a checkout, or give --golden")
        return
    try:
        traces = load_traces(setting.golden, pair)
    except TraceError as error:
        ledger.add([Divergence.said(pair.name, 3, "golden traces", str(error), kind="trace")])
        return
    wanted = [trace for trace in traces if trace.configuration in setting.configurations]
    for trace in wanted:
        replay_trace(pair, trace, ledger)
        _record_again(pair, trace, ledger)
    ledger.details["golden rows"] = sum(trace.num_rows for trace in wanted)


def replay_trace(
    pair: Pair, trace: Trace, ledger: Ledger, *, level: int = 3, size: int = 0
) -> None:
    """Every step of a trace on the fast side, from the recorded state where there is one.

    Args:
        pair: the house's pair.
        trace: what the reference did.
        ledger: takes rows and divergences.
        level: that divergences are reported under.
        size: of the batches; 0 takes the pair's own, for which the fast side is compiled anyway.
    """
    fast, size = guarded(pair, trace.configuration), size or pair.num_envs
    if trace.kind == "rows":
        got = padded_step(fast, trace.state, trace.actions, trace.draws, size)
        _judge(pair, trace, trace.after, got, ledger, level=level)
        return
    state = fast.start(Step(trace.first, trace.first_output, trace.first_draws))
    for step, actions in enumerate(trace.actions):
        want = Step(*(_at(rows, step) for rows in (trace.next, trace.output, trace.draws)))
        got = padded_step(fast, _at(trace.state, step) or state, actions, want.draws, size)
        if _judge(pair, trace, want, got, ledger, step=step, level=level):
            return
        state = got.state


def _judge(
    pair: Pair, trace: Trace, want: Step, got: Step, ledger: Ledger, **place: int
) -> list[Difference]:
    if not place.get("step"):
        assert_sees(pair.schema, want)
    found = step_differences(pair.schema, want, got)
    ledger.count(num_rows(want.output), step_names(pair.schema, want))
    if found:
        row = int(np.argmax(found[0].rows))
        repro = None
        if trace.kind == "rows":
            repro = Repro(
                "one_step",
                trace.actions[row : row + 1],
                take(trace.draws, row),
                take(trace.state, row),
                take({**want.state, **want.output}, row),
            )
        told = Divergence.of(
            found,
            pair=pair.name,
            check=f"golden/{trace.name}",
            configuration=trace.configuration,
            reference=trace.reference,
            seed=trace.seed,
            repro=repro,
            timeline=(timeline_entry(place.get("step", row), want, got, row),),
            **place,
        )
        ledger.add([told])
    return found


def _record_again(pair: Pair, trace: Trace, ledger: Ledger) -> None:
    """A recording that the installed reference does not make again is not its own."""
    try:
        kept, again = rerecorded(pair, trace, _SAMPLE)
    except MissingReferenceError as error:
        ledger.skip(f"recording {trace.name} again: {error}")
        return
    expected, got = {**again.state, **again.output}, {**kept.state, **kept.output}
    if found := compare(pair.schema, expected, got):
        lead = found[0]
        message = (
            f"the reference now says {lead.field} {lead.expected}, recorded was {lead.got}; "
            f"record it again with `twinenv verify record {pair.env_id}`"
        )
        check = f"golden/{trace.name}"
        place = {"kind": "trace", "field": lead.field}
        ledger.add([Divergence.said(pair.name, 3, check, message, **place)])


def _at(rows: Rows, step: int) -> Rows:
    return {name: array[step] for name, array in rows.items()}
