"""The verifier graded on the toy: planted faults, mutants, and twins that hang or crash."""

from pathlib import Path

import jax
import numpy as np
import pytest

from twinenv.verify import exam, faults, mutate, patches, variants
from twinenv.verify.variants import Variant, Verdict, judge

PATCHES = Path(__file__).parent / "toy_faults"
MUTANTS = 14
HANG = "rules/__init__.py"
OPTION = "jax_disable_most_optimizations"


@pytest.fixture(scope="module")
def toy(houses):
    from toy_jax.pair import PAIR

    return PAIR


@pytest.fixture(scope="module")
def house(houses):
    return houses / "toy_jax"


@pytest.fixture(scope="module")
def verdicts(toy, house, tmp_path_factory):
    """Everything that these tests want judged, by one process: starting it costs the most."""
    folder = tmp_path_factory.mktemp("exam")
    exam.prepare(toy, folder, None)
    found = faults.load_faults(PATCHES)
    wanted = [Variant(f.name, faults._changed(f, house), first=f.level) for f in found]
    wanted += [Variant(m.name, {m.file: m.text}) for m in mutate.mutants_of(house, MUTANTS, seed=1)]
    init = (house / "rules/__init__.py").read_text()
    wanted += [
        Variant("no python", {"rules/duel.py": "def ("}),
        Variant("dies", {"rules/__init__.py": f"import os\n{init}\nos._exit(7)\n"}),
    ]
    return {v.name: v for v in judge(house, folder, wanted, every_level=True, deep=False)}


@pytest.fixture
def judged(verdicts, monkeypatch):
    def recall(house, exam, wanted, **how):
        return [verdicts[variant.name] for variant in wanted]

    monkeypatch.setattr(faults, "judge", recall)
    monkeypatch.setattr(mutate, "judge", recall)


def test_planted_faults_are_killed_by_their_level(toy, judged):
    graded = faults.run_faults(toy, PATCHES)
    assert (graded["total"], graded["killed"], graded["missed"]) == (5, 5, [])
    by_name = {fault["name"]: fault for fault in graded["faults"]}
    assert "L2" in by_name["burn_ignored"]["killed_by"]
    assert "hp[1] (foe)" in by_name["burn_ignored"]["why"]["L2"]
    assert "one boost at a time" in by_name["two_charges_at_once"]["why"]["L1"]
    assert by_name["burn_ignored"]["rule"] == "a burned attacker does half the damage"
    assert all("MISSED" not in line for line in faults.table(graded))


def test_a_fault_that_its_level_does_not_kill_is_named(toy, judged, tmp_path):
    text = (PATCHES / "burn_ignored.patch").read_text().replace("level: 2", "level: 1")
    (tmp_path / "burn_ignored.patch").write_text(text)
    graded = faults.run_faults(toy, tmp_path)
    assert graded["missed"] == ["burn_ignored"]
    assert "MISSED BY L1" in faults.table(graded)[0]


def test_twins_that_break_or_die_are_killed_and_the_next_is_judged(verdicts):
    assert verdicts["no python"].killed_by == ("import",)
    assert verdicts["dies"].killed_by == ("process",)
    assert "exit status 7" in verdicts["dies"].why["process"]


def test_mutants_are_killed(toy, judged):
    graded = mutate.run_mutants(toy, sample=MUTANTS, seed=1)
    assert graded["total"] == MUTANTS
    survivors = [fault["name"] for fault in graded["faults"] if not fault["killed_by"]]
    assert graded["rate"] >= 0.9, survivors
    assert graded["killed"] == MUTANTS - len(survivors)
    assert graded["by_level"]["L3"] > MUTANTS / 2


def test_an_exam_may_compile_twins(duel_pair, tmp_path):
    """Lightly, and in the order that the pair says."""

    class CompiledPair(duel_pair):
        compiled_exam = ("hard", "normal")

        def fast(self, configuration):
            asked.append((configuration, jax.config.values[OPTION], jax.config.jax_disable_jit))
            return super().fast(configuration)

    def no_charge(before, actions, step):
        step.state["boost"] = np.minimum(step.state["boost"], 1).astype(np.int16)
        return step

    asked, pair = [], CompiledPair()
    exam.prepare(pair, tmp_path, None)
    asked.clear()
    examined = exam.Exam(tmp_path, pair)
    assert examined.examine(pair, every_level=True) == {}
    assert asked == [("hard", True, False), ("normal", True, False)]
    (level, why), *_ = examined.examine(CompiledPair(tamper=no_charge), first=2).items()
    assert level == "L2"
    assert "boost" in why
    assert jax.config.values[OPTION] is False


def test_the_house_is_left_as_it_was(verdicts, house):
    assert "minimum(boost + 1, 3)" in (house / "rules/duel.py").read_text()


def test_a_house_that_fails_its_own_exam_is_no_judge(toy, house, tmp_path, monkeypatch):
    broken = Verdict("the unchanged house", ("L2",), {"L2": "hp differs"})
    monkeypatch.setattr(variants, "_read", lambda *_: iter([broken]))
    monkeypatch.setattr(variants.subprocess, "Popen", _Idle)
    with pytest.raises(RuntimeError, match="does not pass its own exam"):
        judge(house, tmp_path, [Variant("any", {})])


class _Idle:
    def __init__(self, *args, **kwargs):
        pass

    def kill(self):
        pass

    def wait(self):
        pass

    def poll(self):
        return None


def test_a_twin_that_hangs_is_killed_by_time(house, tmp_path, monkeypatch):
    monkeypatch.setattr(variants, "_unchanged", lambda *_: 1.0)
    monkeypatch.setattr(variants, "_read", lambda *_: iter(()))
    monkeypatch.setattr(variants.subprocess, "Popen", _Idle)
    made = judge(house, tmp_path, [Variant("one", {}), Variant("two", {})])
    assert [v.killed_by for v in made] == [("time",), ("time",)]


def test_reading_gives_up_on_a_silent_process(tmp_path):
    (tmp_path / "results").write_text('{"name": "one", "killed": {}}\n{"name": "tw')
    assert [v.name for v in variants._read(_Idle(), tmp_path / "results", 2, 0.05)] == ["one"]


def test_mutants_change_programs_and_are_reproducible(house):
    mutants = mutate.mutants_of(house, 40, seed=0)
    assert len({(m.file, m.text) for m in mutants}) == 40
    assert mutants == mutate.mutants_of(house, 40, seed=0)
    assert mutants != mutate.mutants_of(house, 40, seed=1)
    source = (house / "rules/duel.py").read_text()
    for mutant in mutants:
        assert mutant.file == "rules/duel.py"
        assert mutant.text != source
        assert mutate._program(mutant.text) not in (None, mutate._program(source))


def test_annotations_and_docstrings_are_no_program():
    text = 'def f(x: "int | None") -> int:\n    """Twice."""\n    y: int = 2\n    return x * y\n'
    same = 'def f(x: "int & None") -> str:\n    """Thrice."""\n    y: str = 2\n    return x * y\n'
    assert mutate._program(text) == mutate._program(same)
    assert mutate._program(text) != mutate._program(text.replace("= 2", "= 3"))
    assert mutate._program("def (") is None


def test_equivalent_mutants_are_left_out_with_a_reason(toy, judged, verdicts, house, tmp_path):
    mutant = mutate.mutants_of(house, MUTANTS, seed=1)[0]
    path = tmp_path / "equivalent.toml"

    def listed(old, reason="a test"):
        fields = {"file": mutant.file, "old": old, "new": mutant.new, "reason": reason}
        lines = [f"{key} = '''{value}'''" for key, value in fields.items()]
        path.write_text("\n".join(["[[equivalent]]", *lines]))
        return mutate.run_mutants(toy, sample=MUTANTS, seed=1, equivalents=path)

    graded = listed(mutant.old)
    assert (graded["total"], graded["equivalent"]) == (MUTANTS - 1, 1)
    # This one is killed, so the list is wrong.
    assert graded["contradicted"] == [mutant.name]
    with pytest.raises(ValueError, match="has no line"):
        listed("no such line")
    with pytest.raises(ValueError, match="reason is empty"):
        listed(mutant.old, reason=" ")
    path.write_text("[[equivalent]]\nfile = 'rules/duel.py'\n")
    with pytest.raises(ValueError, match="needs file, old, new and reason"):
        mutate.run_mutants(toy, sample=1, equivalents=path)


DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
HEAD = "# level: 2\n# rule: two\n"


def test_patches_are_parsed_and_applied():
    fault = patches.parse("two", HEAD + DIFF)
    assert (fault.level, fault.rule) == (2, "two")
    assert patches.apply(fault.diff, lambda path: "one\ntwo\nthree\n") == {
        "x.py": "one\nTWO\nthree\n"
    }


def test_patches_find_lines_that_moved():
    moved = "zero\n" * 7 + "one\ntwo\nthree\n"
    assert "TWO" in patches.apply(DIFF, lambda path: moved)["x.py"]


def test_patches_of_several_hunks_and_files():
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n-a\n b\n@@ -4,1 +3,2 @@\n d\n+e\n" + DIFF
    texts = {"x": "a\nb\nc\nd\n", "x.py": "one\ntwo\nthree"}
    assert patches.apply(diff, texts.get) == {"x": "b\nc\nd\ne\n", "x.py": "one\nTWO\nthree"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DIFF, "must begin with the lines"),
        (HEAD.replace("2", "4") + DIFF, "must begin with the lines"),
        (HEAD, "no unified diff"),
    ],
)
def test_malformed_patch_files_say_what_is_missing(text, message):
    with pytest.raises(patches.PatchError, match=message):
        patches.parse("two", text)


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        (DIFF, "does not fit x.py"),
        ("--- a/x.py\nno\n", "not followed by"),
        ("--- a/x.py\n+++ b/x.py\n", "has no hunk"),
    ],
)
def test_patches_that_do_not_fit_are_refused(diff, message):
    with pytest.raises(patches.PatchError, match=message):
        patches.apply(diff, lambda path: "another\nfile\n")


def test_faults_of_other_files_and_empty_folders_are_refused(toy, tmp_path):
    with pytest.raises(FileNotFoundError, match="no planted faults"):
        faults.run_faults(toy, tmp_path)
    (tmp_path / "other.patch").write_text(HEAD + DIFF)
    with pytest.raises(patches.PatchError, match="no file of toy_jax/"):
        faults.run_faults(toy, tmp_path)
