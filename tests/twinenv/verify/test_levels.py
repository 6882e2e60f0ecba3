"""The levels on a toy: what agrees passes, what differs is found where it is and made small."""

import dataclasses

import numpy as np
import pytest

from twinenv.fields import Field
from twinenv.verify import Budget, contract, exit_code, run
from twinenv.verify import sides as sides_module

ROWS = Budget(rows=1500)


@pytest.fixture
def no_contract(monkeypatch):
    """Leaves the API contract, which compiles much, out of level 1."""
    monkeypatch.setattr(contract, "check", lambda *_: None)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_equal_sides_pass(duel_pair, no_contract, level):
    result = run(duel_pair(), level, budget=ROWS, configurations=["normal"])
    assert result.rows >= 300
    assert not result.divergences
    # Only the golden traces, which the toy has none of, are missing.
    expected = "partial" if level == 3 else "passed"
    assert (result.status, len(result.skipped)) == (expected, int(level == 3)), result.skipped


def test_the_contract_is_checked_once_for_a_program(duel_pair, monkeypatch):
    checked = []
    monkeypatch.setattr(contract, "check", lambda pair, name, *_: checked.append(name))
    pair = duel_pair()
    run(pair, 1, budget=ROWS)
    assert checked == ["normal", "hard"]
    checked.clear()
    pair.same_program = {"hard": "normal"}
    assert run(pair, 1, budget=ROWS).details["contract checked as"] == {"hard": "normal"}
    assert checked == ["normal"]
    # Nobody stands for it where it is checked alone.
    run(pair, 1, budget=ROWS, configurations=["hard"])
    assert checked == ["normal", "hard"]


def test_quotas_are_met_and_reported(duel_pair):
    coverage = run(duel_pair(), 3, budget=ROWS).details["coverage"]
    place = coverage["events"].index
    together = np.array(coverage["together"])
    assert together[place("boosted"), place("halved")] >= 3
    assert together[place("attack"), place("rest")] == 0
    assert np.array_equal(together, together.T)


FAULTS = {
    "burn": ("hp", (1,), "foe", {"burned", "boost"}),
    "cap": ("boost", (), "", {"boost"}),
    "rest": ("hp", (0,), "me", {"hp[0]"}),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("level", [2, 3])
def test_faults_are_found_and_shrunk_to_one_step(duel_pair, fault, level):
    result = run(duel_pair(fault=fault), level, budget=ROWS, configurations=["normal"])
    assert result.status == "failed"
    found = next(d for d in result.divergences if d.check != "excluded pairs")
    field, index, label, needs = FAULTS[fault]
    assert (found.field, found.index, found.label) == (field, index, label)
    assert found.repro.kind == "one_step"
    assert len(found.repro.actions) == 1
    assert {need.split(" = ")[0] for need in found.needs} == needs


def test_the_step_of_the_first_divergence_is_told(duel_pair):
    result = run(duel_pair(fault="cap"), 3, budget=ROWS, configurations=["normal"])
    found = result.divergences[0]
    first = next(e for e in found.timeline if e["expected"]["boost"] != e["got"]["boost"])
    assert first["step"] == found.step == found.timeline[-1]["step"]
    assert (found.expected, found.got) == (2, 3)
    assert found.line().startswith(f"L3 FAIL toy_jax step {found.step} boost: expected 2 got 3")
    assert "charge" in found.events


@pytest.mark.parametrize("able", [{"draws", "dump"}, {"draws", "feed"}, {"draws"}])
def test_without_load_the_story_is_shrunk(duel_pair, able):
    pair = duel_pair(fault="cap", able=frozenset(able))
    result = run(pair, 3, budget=ROWS, configurations=["normal"])
    repro = result.divergences[0].repro
    assert repro.kind == "sequence"
    # Three charges, and no other step, lead past the cap of two.
    assert np.array_equal(repro.actions, [1, 1, 1])
    if "feed" in able:
        assert not repro.draws["roll"].any()


def test_without_load_level_2_does_not_run(duel_pair):
    result = run(duel_pair(able=frozenset({"draws"})), 2, budget=ROWS)
    assert result.status == "not run"
    assert exit_code([result]) == 2
    assert "no reference that can dump and load" in " ".join(result.skipped)


def test_without_dump_the_states_are_reported_as_never_compared(duel_pair):
    result = run(duel_pair(able=frozenset({"draws"})), 3, budget=ROWS)
    assert "never compared: hp, boost, burned" in result.skipped


def test_a_missing_reference_is_visible(duel_pair):
    results = [run(duel_pair(installed=False), level, budget=ROWS) for level in (2, 3)]
    assert [r.status for r in results] == ["not run", "not run"]
    assert "install arena" in " ".join(results[0].skipped)
    assert exit_code(results) == 2
    passed = dataclasses.replace(results[0], status="passed", skipped=())
    assert exit_code([passed, *results]) == 3


def test_missed_quotas_are_visible(duel_pair):
    pair = duel_pair()
    pair.quota = 10**9
    result = run(pair, 3, budget=Budget(rows=200))
    assert any("boosted+halved met" in reason for reason in result.skipped)
    assert result.status == "partial"


def test_an_exclusion_that_occurs_fails(duel_pair):
    pair = duel_pair()
    pair.excluded_pairs = pair.excluded_pairs | {("attack", "boosted"): "never"}
    result = run(pair, 3, budget=ROWS)
    assert [d.check for d in result.divergences] == ["excluded pairs"]
    assert "because never" in result.divergences[0].message


def test_a_scenario_without_its_events_fails(duel_pair):
    pair = duel_pair()
    broken = dataclasses.replace(pair.scenarios()[0], events=("halved",))
    pair.scenarios = lambda: (broken,)
    result = run(pair, 2, budget=ROWS, configurations=["normal"])
    assert "broken scenario: halved did not occur" in result.divergences[0].message


def spoil(name, change):
    def tamper(before, actions, step):
        group = step.state if name in step.state else step.output
        group[name] = change(group[name])
        return step

    return tamper


@pytest.mark.parametrize(
    ("name", "change", "kind"),
    [
        ("reward", lambda a: a.astype(np.float64), "dtype"),
        ("boost", lambda a: a[:, None], "shape"),
        ("hp", lambda a: a[:, :1], "shape"),
        ("observation", lambda a: a * np.float32(1.000001), "value"),
        ("observation", lambda a: np.where(a == 1, np.float32("nan"), a), "value"),
    ],
)
def test_spoilt_outputs_are_found(duel_pair, name, change, kind):
    result = run(duel_pair(tamper=spoil(name, change)), 2, budget=ROWS)
    assert {(d.field, d.kind) for d in result.divergences if d.field} == {(name, kind)}


def test_missing_extra_and_undeclared_fields_are_found(duel_pair):
    def tamper(before, actions, step):
        del step.output["reward"]
        step.output["mood"] = step.output["terminated"]
        return step

    result = run(duel_pair(tamper=tamper), 2, budget=ROWS, configurations=["normal"])
    lead = result.divergences[0]
    assert (lead.field, lead.kind) == ("reward", "missing")
    assert "mood" in lead.also


def test_an_error_of_the_fast_side_is_a_divergence(duel_pair, no_contract):
    def tamper(before, actions, step):
        raise IndexError("off the board")

    for level in (1, 2, 3):
        result = run(duel_pair(tamper=tamper), level, budget=ROWS, configurations=["normal"])
        assert result.status == "failed"
        assert "off the board" in result.divergences[0].line()


def test_level_1_finds_and_shrinks_a_broken_invariant(duel_pair, no_contract):
    def tamper(before, actions, step):
        doubled = (actions == 1) & before["burned"] & (before["boost"] == 0)
        step.state["boost"] = np.where(doubled, 2, step.state["boost"]).astype(np.int16)
        return step

    result = run(duel_pair(tamper=tamper), 1, budget=ROWS, configurations=["normal"])
    found = next(d for d in result.divergences if d.check == "invariant: one boost at a time")
    assert found.needs == ("burned = True",)
    assert found.repro.kind == "check"


def test_level_1_finds_values_out_of_their_range(duel_pair, no_contract):
    result = run(duel_pair(tamper=spoil("boost", lambda a: a + np.int16(4))), 1, budget=ROWS)
    assert any("boost is 4 to" in d.message for d in result.divergences)


def test_level_1_demands_properties_of_bools(duel_pair, no_contract):
    pair = duel_pair()
    pair.invariants = lambda: {"always": lambda *_: True}
    with pytest.raises(ValueError, match="must return bool"):
        run(pair, 1, budget=ROWS, configurations=["normal"])


def test_a_blind_comparison_never_passes(duel_pair, monkeypatch):
    monkeypatch.setattr(sides_module, "compare", lambda *_: [])
    for level in (2, 3):
        with pytest.raises(sides_module.BlindError):
            run(duel_pair(), level, budget=ROWS)


def test_a_comparator_that_ignores_a_field_is_noticed(duel_pair, monkeypatch):
    seeing = sides_module.compare

    def forgetful(schema, expected, got):
        return [d for d in seeing(schema, expected, got) if d.field != "reward"]

    monkeypatch.setattr(sides_module, "compare", forgetful)
    with pytest.raises(sides_module.BlindError, match="reward"):
        run(duel_pair(), 3, budget=ROWS)


def test_fields_that_the_reference_never_gives_are_reported(duel_pair):
    pair = duel_pair()
    pair.schema = {**pair.schema, "score": Field("never given", "int16")}
    assert "never compared: score" in run(pair, 2, budget=ROWS).skipped


def test_unjudged_configurations_are_a_note_and_not_a_gap(duel_pair):
    pair = duel_pair()
    arena = dataclasses.replace(pair.references["arena"], configurations=("normal",))
    pair.references = {"arena": arena}
    assert run(pair, 2, budget=ROWS).status == "partial"
    pair.unjudged = {"hard": "the arena has no such mode"}
    result = run(pair, 2, budget=ROWS)
    assert result.status == "passed"
    assert result.details["unjudged"] == {"hard": "the arena has no such mode"}


@pytest.mark.parametrize("text", ["60s", "5m", "2h", "1.5m", "30"])
def test_budgets_of_time(text):
    assert Budget.parse(text).seconds in (60, 300, 7200, 90, 30)


@pytest.mark.parametrize(("text", "rows"), [("20rows", 20), ("3krows", 3000), ("10Mrows", 10**7)])
def test_budgets_of_rows(text, rows):
    assert Budget.parse(text).rows == rows
    assert Budget.parse(text).share(4).rows == -(-rows // 4)


@pytest.mark.parametrize("text", ["", "soon", "5 m", "10M", "-3s"])
def test_malformed_budgets_say_what_is_accepted(text):
    with pytest.raises(ValueError, match="none of the forms 60s"):
        Budget.parse(text)


def test_unknown_levels_and_configurations_are_named(duel_pair):
    with pytest.raises(ValueError, match="level is 7"):
        run(duel_pair(), 7)
    with pytest.raises(ValueError, match="no configuration 'easy'; it has normal, hard"):
        run(duel_pair(), 2, configurations=["easy"])
