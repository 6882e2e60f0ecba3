"""Golden traces: what the reference did, written by the reference alone.

A folder of npz files and one MANIFEST.json. A trace of kind "rows" holds single steps from known
states (teacher forcing); one of kind "sequence" holds whole runs from a reset, for references whose
states can't be set. Arrays are named `state/x`, `action`, `draws/x`, `next/x` and `output/x`;
sequences have a leading step axis, and `first/x`, `first_output/x`, `first_draws/x` of the reset.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from twinenv.verify.pair import Backend, Pair, Rows, Step
from twinenv.verify.schema import take

__all__ = ["Trace", "TraceError", "joined", "load_traces", "record", "rerecorded", "save_traces"]

_FORMAT = "twinenv-golden-1"
_MANIFEST = "MANIFEST.json"
_BATCH, _SEQUENCE_BATCH = 64, 16  # environments recorded at once
_STEPS, _SEQUENCE_STEPS = 4000, 150
_KEPT = 16  # rows with the same set of rule events
_PATIENCE = 400  # steps in which no row was worth keeping


class TraceError(ValueError):
    """A golden trace is damaged, undeclared, or of another reference than the pair's."""


@dataclasses.dataclass(frozen=True, eq=False)
class Trace:
    """Steps of a reference.

    Attributes:
        pair: the house.
        configuration: name.
        reference: name.
        version: of the reference.
        kind: "rows" or "sequence".
        source: name of the policy that played, or "boundary".
        seed: of the recording.
        state: states before each row; for a sequence, dumped states before each step, or empty.
        actions: `[rows, ...]` or `[steps, envs, ...]`.
        draws: random outcomes of each.
        next: states after.
        output: what a user sees after.
        first: state of a sequence's reset.
        first_output: what a user sees after it.
        first_draws: draws of a sequence's reset.
    """

    pair: str
    configuration: str
    reference: str
    version: str
    kind: str
    source: str
    seed: int
    actions: np.ndarray
    state: Rows = dataclasses.field(default_factory=dict)
    draws: Rows = dataclasses.field(default_factory=dict)
    next: Rows = dataclasses.field(default_factory=dict)
    output: Rows = dataclasses.field(default_factory=dict)
    first: Rows = dataclasses.field(default_factory=dict)
    first_output: Rows = dataclasses.field(default_factory=dict)
    first_draws: Rows = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """File name without its suffix."""
        return f"{self.reference}-{self.configuration}-{self.source}".replace(" ", "_")

    @property
    def num_rows(self) -> int:
        """Environment steps in it."""
        return int(np.prod(self.actions.shape[: 1 + (self.kind == "sequence")]))

    @property
    def after(self) -> Step:
        """What its steps came to."""
        return Step(self.next, self.output, self.draws)

    def arrays(self) -> Rows:
        """All arrays by their name in the file."""
        made = {"action": self.actions}
        for group in _GROUPS:
            made |= {f"{group}/{name}": a for name, a in getattr(self, group).items()}
        return made


_GROUPS = ("state", "draws", "next", "output", "first", "first_output", "first_draws")


def record(pair: Pair, reference: str, configuration: str, seed: int) -> list[Trace]:
    """Traces of one reference at one configuration, one per policy and one of boundary states.

    Of a long play, rows are kept so that each rule event and each pair of events is there a few
    times.

    Raises:
        MissingReferenceError: the reference is not installed.
    """
    about = pair.references[reference]
    fixed: dict[str, Any] = {"pair": pair.name, "configuration": configuration}
    fixed |= {"reference": reference, "version": about.version, "seed": seed}
    restartable = _restartable(pair, reference)
    size = _BATCH if restartable else _SEQUENCE_BATCH
    backend = about.open(size, **pair.configurations[configuration])
    try:
        if not restartable:
            return [_sequence(pair, backend, policy, fixed) for policy in pair.policies]
        plays = [_rows(pair, backend, policy, fixed) for policy in pair.policies]
        return [*plays, _boundary(pair, backend, fixed)]
    finally:
        backend.close()


def rerecorded(pair: Pair, trace: Trace, limit: int) -> tuple[Step, Step]:
    """The recorded and the newly made first steps of a trace, by the installed reference.

    Args:
        pair: the house's pair.
        trace: a golden trace.
        limit: rows, or steps of a sequence, to make again.

    Returns:
        Rows as recorded and as made again; of a sequence, all its steps in one batch.

    Raises:
        MissingReferenceError: the reference is not installed.
    """
    count = min(limit, len(trace.actions))
    num_envs = count if trace.kind == "rows" else trace.actions.shape[1]
    about = pair.references[trace.reference]
    backend = about.open(num_envs, **pair.configurations[trace.configuration])
    try:
        if trace.kind == "rows":
            backend.load(take(trace.state, slice(0, count)))
            if "feed" in about.capabilities and trace.draws:
                backend.feed(take(trace.draws, slice(0, count)))  # type: ignore[attr-defined]
            again = [backend.step(trace.actions[:count])]
        else:
            backend.reset(trace.seed)
            again = [backend.step(actions) for actions in trace.actions[:count]]
    finally:
        backend.close()
    kept = Step(take(trace.next, slice(0, count)), take(trace.output, slice(0, count)))
    if trace.kind == "sequence":
        kept = Step(_flat(kept.state), _flat(kept.output))
    return kept, Step(_joined([s.state for s in again]), _joined([s.output for s in again]))


def joined(traces: list[Trace]) -> list[Trace]:
    """Rows of the same configuration and source in one trace each; sequences stay as they are."""
    groups: dict[tuple[str, ...], list[Trace]] = collections.defaultdict(list)
    for number, trace in enumerate(traces):
        alone = str(number) if trace.kind == "sequence" else ""
        groups[trace.configuration, trace.source, alone].append(trace)
    return [_joined_traces(group) for group in groups.values()]


def save_traces(folder: Path, traces: list[Trace]) -> None:
    """Write traces and their manifest; files of an earlier recording are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.npz"):
        old.unlink()
    entries = []
    for trace in traces:
        path = folder / f"{trace.name}.npz"
        np.savez_compressed(path, **trace.arrays())  # type: ignore[arg-type]
        entries.append(_entry(trace, path))
    from twinenv import __version__

    content = {"format": _FORMAT, "twinenv": __version__, "files": entries}
    (folder / _MANIFEST).write_text(json.dumps(content, indent=1) + "\n")


def load_traces(folder: Path, pair: Pair) -> list[Trace]:
    """All traces of a folder, checked against its manifest and the pair.

    Raises:
        TraceError: a file's hash, the reference's version or the list of files does not agree.
    """
    try:
        content = json.loads((folder / _MANIFEST).read_text())
        entries = {entry["file"]: entry for entry in content["files"]}
        known = content["format"] == _FORMAT
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{folder / _MANIFEST} cannot be read: {error}") from error
    if not known:
        raise TraceError(f"{folder / _MANIFEST} has format {content['format']!r}, not {_FORMAT!r}")
    present = {path.name for path in folder.glob("*.npz")}
    if odd := sorted(present ^ set(entries)):
        raise TraceError(f"{folder}: files and manifest disagree on {', '.join(odd)}")
    return [_read(folder / name, entry, pair) for name, entry in entries.items()]


def _entry(trace: Trace, path: Path) -> dict[str, Any]:
    names = ("pair", "configuration", "reference", "version", "kind", "source", "seed")
    entry = {"file": path.name} | {name: getattr(trace, name) for name in names}
    return entry | {
        "rows": trace.num_rows,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def _read(path: Path, entry: dict[str, Any], pair: Pair) -> Trace:
    if hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
        raise TraceError(f"{path} is not the file that was recorded: its sha256 differs")
    if entry["pair"] != pair.name or entry["reference"] not in pair.references:
        raise TraceError(f"{path} is of {entry['pair']}/{entry['reference']}, not of {pair.name}")
    pinned = pair.references[entry["reference"]].version
    if entry["version"] != pinned:
        raise TraceError(
            f"{path} was recorded with {entry['reference']} {entry['version']}, the pair pins "
            f"{pinned}; record it again with `twinenv verify record {pair.env_id}`"
        )
    groups: dict[str, Any] = {group: {} for group in _GROUPS}
    with np.load(path, allow_pickle=False) as archive:
        actions = archive["action"]
        for name in archive.files:
            group, _, key = name.partition("/")
            if key:
                groups[group][key] = archive[name]
    names = ("pair", "configuration", "reference", "version", "kind", "source", "seed")
    trace = Trace(**{name: entry[name] for name in names}, actions=actions, **groups)
    if trace.num_rows != entry["rows"] or not trace.num_rows:
        raise TraceError(f"{path} has {trace.num_rows} rows, its manifest says {entry['rows']}")
    return trace


def _restartable(pair: Pair, reference: str) -> bool:
    """Whether a state, an action and draws that can be fed decide a step of this reference."""
    able = pair.references[reference].capabilities
    return able >= {"load", "dump"} and ("draws" not in able or "feed" in able)


def _plays(
    pair: Pair, backend: Backend, policy: str, seed: int, steps: int
) -> Iterator[tuple[Step, np.ndarray, Step]]:
    rng = np.random.default_rng(seed)
    last = backend.reset(seed)
    for _ in range(steps):
        actions = pair.policies[policy](rng, last)
        step = backend.step(actions)
        yield last, actions, step
        last = step


def _rows(pair: Pair, backend: Backend, policy: str, fixed: dict[str, Any]) -> Trace:
    parts, counts, idle = [], collections.Counter[bytes](), 0
    for last, actions, step in _plays(pair, backend, policy, fixed["seed"], _STEPS):
        events = pair.events(last.state, actions, fixed["configuration"])
        kept = _worth_keeping(events, counts)
        idle = 0 if kept else idle + 1
        if kept:
            parts.append(_cut(last, actions, step, np.array(kept)))
        elif idle > _PATIENCE:
            break
    return _joined_trace(parts, fixed | {"kind": "rows", "source": policy})


def _worth_keeping(events: Rows, counts: collections.Counter[bytes]) -> list[int]:
    """Rows with a set of events of which there are not enough yet; counts them."""
    kept = []
    for row, met in enumerate(np.packbits(np.stack([*events.values()], axis=1), axis=1)):
        key = met.tobytes()
        if counts[key] < _KEPT:
            counts[key] += 1
            kept.append(row)
    return kept


def _boundary(pair: Pair, backend: Backend, fixed: dict[str, Any]) -> Trace:
    rng, parts = np.random.default_rng(fixed["seed"]), []
    for _ in range(16):
        state = pair.states(rng, backend.num_envs, fixed["configuration"])
        actions = pair.actions(rng, state, fixed["configuration"])
        backend.load(state)
        step = backend.step(actions)
        parts.append(_cut(Step(state, {}), actions, step, np.arange(backend.num_envs)))
    return _joined_trace(parts, fixed | {"kind": "rows", "source": "boundary"})


def _sequence(pair: Pair, backend: Backend, policy: str, fixed: dict[str, Any]) -> Trace:
    made = list(_plays(pair, backend, policy, fixed["seed"], _SEQUENCE_STEPS))
    first = made[0][0]
    return Trace(
        **fixed,
        kind="sequence",
        source=policy,
        actions=np.stack([actions for _, actions, _ in made]),
        state=_stacked([last.state for last, _, _ in made]),
        draws=_stacked([step.draws for _, _, step in made]),
        next=_stacked([step.state for _, _, step in made]),
        output=_stacked([step.output for _, _, step in made]),
        first=first.state,
        first_output=first.output,
        first_draws=first.draws,
    )


def _cut(last: Step, actions: np.ndarray, step: Step, rows: np.ndarray) -> dict[str, Any]:
    return {
        "state": take(last.state, rows),
        "actions": actions[rows],
        "draws": take(step.draws, rows),
        "next": take(step.state, rows),
        "output": take(step.output, rows),
    }


def _joined_trace(parts: list[dict[str, Any]], fixed: dict[str, Any]) -> Trace:
    actions = np.concatenate([part.pop("actions") for part in parts])
    groups: dict[str, Any] = {group: _joined([part[group] for part in parts]) for group in parts[0]}
    return Trace(**fixed, actions=actions, **groups)


def _joined_traces(traces: list[Trace]) -> Trace:
    if len(traces) == 1:
        return traces[0]
    groups: dict[str, Any] = {
        group: _joined([getattr(trace, group) for trace in traces]) for group in _GROUPS
    }
    actions = np.concatenate([trace.actions for trace in traces])
    return dataclasses.replace(traces[0], actions=actions, **groups)


def _joined(parts: list[Rows]) -> Rows:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _stacked(parts: list[Rows]) -> Rows:
    return {name: np.stack([part[name] for part in parts]) for name in parts[0]}


def _flat(rows: Rows) -> Rows:
    return {name: array.reshape(-1, *array.shape[2:]) for name, array in rows.items()}
