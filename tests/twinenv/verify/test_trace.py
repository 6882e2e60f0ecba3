"""Golden traces: written by the reference, replayed by the twin, not to be tampered with."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from twinenv.verify import Budget, run
from twinenv.verify.l3 import check_golden
from twinenv.verify.ledger import Ledger, Setting
from twinenv.verify.trace import TraceError, load_traces, record, save_traces


@pytest.fixture(scope="module")
def golden(houses, tmp_path_factory):
    from toy_jax.pair import DuelPair

    folder = tmp_path_factory.mktemp("golden")
    save_traces(folder, record(DuelPair(), "arena", "normal", seed=3))
    return folder


@pytest.fixture
def copy(golden, tmp_path):
    return shutil.copytree(golden, tmp_path / "golden")


def checked(pair, folder):
    ledger = Ledger()
    check_golden(Setting(pair, Budget(rows=1), 0, ("normal",), folder), ledger)
    return ledger


def test_the_twin_replays_what_the_reference_did(duel_pair, golden):
    ledger = checked(duel_pair(), golden)
    assert ledger.rows > 500
    assert not ledger.divergences
    assert not ledger.skipped


def test_the_kept_rows_cover_the_events(duel_pair, golden):
    pair = duel_pair()
    traces = load_traces(golden, pair)
    assert {t.source for t in traces} == {"random", "careful", "boundary"}
    play = next(t for t in traces if t.source == "random")
    events = pair.events(play.state, play.actions, "normal")
    assert np.sum(events["boosted"] & events["halved"]) >= 3
    assert play.num_rows < 200


def test_no_reference_is_needed_but_its_absence_is_visible(duel_pair, golden):
    result = run(duel_pair(installed=False), 3, golden=golden, configurations=["normal"])
    assert result.status == "partial"
    assert result.rows > 500
    assert any("recording" in reason and "install arena" in reason for reason in result.skipped)


def test_a_faulty_twin_diverges_from_the_traces(duel_pair, golden):
    def tamper(before, actions, step):
        step.state["hp"] = step.state["hp"] + np.int16(1)
        return step

    ledger = checked(duel_pair(installed=False, tamper=tamper), golden)
    assert {d.field for d in ledger.divergences} == {"hp"}
    repro = ledger.divergences[0].repro
    assert repro.kind == "one_step"
    assert repro.expected["hp"].shape == (1, 2)


def test_a_reference_that_does_otherwise_today_is_found(duel_pair, golden):
    ledger = checked(duel_pair(fault="rest"), golden)
    assert all(d.kind == "trace" for d in ledger.divergences)
    assert any("record it again" in d.message for d in ledger.divergences)


def test_another_version_of_the_reference_fails(duel_pair, golden):
    pair = duel_pair()
    pair.references = {"arena": dataclasses.replace(pair.references["arena"], version="2.0")}
    assert (
        "recorded with arena 1.0, the pair pins 2.0" in checked(pair, golden).divergences[0].message
    )


def first_file(folder):
    return sorted(folder.glob("*.npz"))[0]


def change_bytes(folder):
    path = first_file(folder)
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["output/reward"] = arrays["output/reward"] + np.float32(1)
    np.savez_compressed(path, **arrays)


def remove_file(folder):
    first_file(folder).unlink()


def add_file(folder):
    shutil.copy(first_file(folder), folder / "more.npz")


def change_manifest(folder):
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    manifest["files"][0]["rows"] += 1
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))


def break_manifest(folder):
    (folder / "MANIFEST.json").write_text("{")


def lose_manifest(folder):
    (folder / "MANIFEST.json").unlink()


def other_format(folder):
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    (folder / "MANIFEST.json").write_text(json.dumps(manifest | {"format": "golden-0"}))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (change_bytes, "sha256 differs"),
        (remove_file, "disagree on"),
        (add_file, "disagree on more.npz"),
        (change_manifest, "its manifest says"),
        (break_manifest, "cannot be read"),
        (lose_manifest, "cannot be read"),
        (other_format, "format 'golden-0'"),
    ],
)
def test_tampering_is_found(duel_pair, copy, harm, message):
    harm(copy)
    with pytest.raises(TraceError, match=message):
        load_traces(copy, duel_pair())
    result = checked(duel_pair(), copy)
    assert [d.kind for d in result.divergences] == ["trace"]


@pytest.mark.parametrize("able", [{"draws"}, {"draws", "dump"}])
def test_references_without_load_give_sequences(duel_pair, tmp_path, able):
    able = frozenset(able)
    save_traces(tmp_path, record(duel_pair(able=able), "arena", "normal", seed=1))
    trace = load_traces(tmp_path, duel_pair())[0]
    assert (trace.kind, bool(trace.state)) == ("sequence", "dump" in able)
    ledger = checked(duel_pair(able=able), tmp_path)
    assert ledger.rows > 500
    assert not ledger.divergences

    def tamper(before, actions, step):
        step.output["reward"] = np.abs(step.output["reward"])
        return step

    ledger = checked(duel_pair(able=able, tamper=tamper), tmp_path)
    assert {d.field for d in ledger.divergences} == {"reward"}
    assert all(d.expected == -1 for d in ledger.divergences)


def test_recording_is_reproducible(duel_pair, golden, tmp_path):
    save_traces(tmp_path, record(duel_pair(), "arena", "normal", seed=3))
    one, other = (load_traces(folder, duel_pair()) for folder in (golden, tmp_path))
    for a, b in zip(one, other, strict=True):
        assert a.name == b.name
        assert all(np.array_equal(a.arrays()[n], b.arrays()[n]) for n in a.arrays())
