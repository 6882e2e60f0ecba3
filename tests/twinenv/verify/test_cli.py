"""The command line, the reports and the replay of saved divergences."""

import html.parser
import json

import numpy as np
import pytest

from twinenv.verify import cli, contract, levels, replay
from twinenv.verify import report as reports
from twinenv.verify.diagnostic import load_repro
from twinenv.verify.testing import check_level, check_regression

FAST = ["--budget", "600rows", "--configuration", "normal"]


@pytest.fixture(autouse=True)
def quiet(monkeypatch, tmp_path):
    """Nothing is written beside the tests, and the costly API contract has tests of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(contract, "check", lambda *_: None)


@pytest.fixture
def house(duel_pair, monkeypatch):
    """Makes the command line see a spoilt pair."""

    def use(**options):
        pair = duel_pair(**options)
        monkeypatch.setattr(cli, "find_pair", lambda env: pair)
        monkeypatch.setattr(replay, "find_pair", lambda env: pair)
        return pair

    return use


def test_a_pass_is_0_and_writes_only_what_was_asked(house, tmp_path, capsys):
    house()
    assert cli.main(["toy_jax", "--level", "2", *FAST, "--json", "out/summary.json"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert list(summary) == ["env", "levels", "versions", "command"]
    level = summary["levels"][0]
    assert list(level) == ["level", "status", "rows", "divergences", "skipped", "seconds"]
    assert (level["level"], level["status"], level["divergences"]) == (2, "passed", 0)
    assert level["rows"] > 600
    assert level["skipped"] == []
    assert summary["command"].startswith("twinenv verify toy_jax --level 2")
    assert summary["versions"]["arena"] == "1.0"
    assert "L2 interaction" in capsys.readouterr().out


def test_all_levels_run_and_missing_traces_are_3(house, capsys):
    pair = house()
    pair.train = lambda *_: [lambda obs, mask, number: np.zeros(len(obs), np.int32)]
    assert cli.main(["toy_jax", *FAST]) == 3
    out = capsys.readouterr().out
    assert all(f"L{level} " in out for level in (1, 2, 3, 4))
    assert "L3 skipped: golden traces: no folder tests/toy_jax/golden" in out


def test_a_missing_reference_is_2(house, capsys):
    house(installed=False)
    assert cli.main(["toy_jax", "--level", "2", *FAST]) == 2
    assert "install arena" in capsys.readouterr().out


def test_a_divergence_is_1_and_can_be_replayed(house, tmp_path, capsys):
    house(fault="cap")
    assert cli.main(["toy_jax", "--level", "3", *FAST, "--report", "report"]) == 1
    report = json.loads((tmp_path / "report/report.json").read_text())
    found = report["diagnostics"][0]
    assert (found["field"], found["expected"], found["got"]) == ("boost", 2, 3)
    assert found["needs"] == ["boost = 2"]
    assert found["repro"]["kind"] == "one_step"
    assert {"level", "check", "seed", "step", "index", "label", "events", "versions"} <= set(found)
    assert found["command"] == f"twinenv verify replay {found['file']}"
    assert found["line"] in capsys.readouterr().out

    assert cli.main(["replay", found["file"]]) == 1
    assert "boost: expected 2 got 3" in capsys.readouterr().out
    house()
    assert cli.main(["replay", found["file"]]) == 0
    assert "the sides agree now" in capsys.readouterr().out
    check_regression(tmp_path / found["file"])


def test_a_report_is_written_unasked_where_something_diverged(house, tmp_path):
    house(fault="cap")
    assert cli.main(["toy_jax", "--level", "2", *FAST]) == 1
    assert (tmp_path / "verify-toy_jax/report.html").is_file()


def test_replay_without_the_reference_asks_the_recorded_expectation(house, tmp_path, capsys):
    house(fault="cap")
    cli.main(["toy_jax", "--level", "2", *FAST, "--report", "report"])
    file = str(next((tmp_path / "report/divergences").glob("*boost*.json")))
    house(installed=False)
    # The twin is right, and what the faulty reference recorded is not what it does.
    assert cli.main(["replay", file]) == 1

    def tamper(before, actions, step):
        step.state["boost"] = np.minimum(step.state["boost"], np.int16(2))
        seen = step.state["boost"].astype(np.float32) / np.float32(16)
        step.output["observation"] = step.output["observation"].copy()
        step.output["observation"][:, 2] = seen
        return step

    house(installed=False, tamper=tamper)
    assert cli.main(["replay", file]) == 3
    assert "install arena" in capsys.readouterr().out


def test_stories_without_states_are_replayed_from_the_reset(house, tmp_path):
    able = frozenset({"draws", "feed"})
    house(fault="cap", able=able)
    cli.main(["toy_jax", "--level", "3", *FAST, "--report", "report"])
    file = next((tmp_path / "report/divergences").glob("*.json"))
    content, repro = load_repro(file)
    assert (content["configuration"], repro.kind) == ("normal", "sequence")
    assert np.array_equal(repro.actions, [1, 1, 1])
    assert cli.main(["replay", str(file)]) == 1
    house(able=able)
    assert cli.main(["replay", str(file)]) == 0
    house(able=able, installed=False)
    assert cli.main(["replay", str(file)]) == 2


def test_properties_are_replayed(house, tmp_path):
    def tamper(before, actions, step):
        step.state["boost"] = np.where(before["burned"], 3, step.state["boost"]).astype(np.int16)
        return step

    house(tamper=tamper)
    assert cli.main(["toy_jax", "--level", "1", *FAST, "--report", "report"]) == 1
    file = str(next((tmp_path / "report/divergences").glob("*one-boost*.json")))
    assert cli.main(["replay", file]) == 1
    house()
    assert cli.main(["replay", file]) == 0


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"format": "twinenv-repro-1"}', '{"format": "other"}']
)
def test_damaged_files_are_2_with_one_sentence(content, tmp_path, capsys):
    (tmp_path / "file.json").write_text(content)
    assert cli.main(["replay", "file.json"]) == 2
    assert "file.json is no saved divergence" in capsys.readouterr().err
    assert cli.main(["replay", "nowhere.json"]) == 2


def test_unknown_environments_suggest_the_nearest(capsys):
    assert cli.main(["ToyDuel-v1"]) == 2
    assert "did you mean 'ToyDuel-v0'" in capsys.readouterr().err
    assert cli.main(["toy_jacks"]) == 2
    assert "did you mean 'toy_jax'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [["toy_jax", "--budget", "soon"], ["toy_jax", "--configuration", "easy"]],
)
def test_bad_options_are_2(argv, capsys):
    assert cli.main(argv) == 2
    assert capsys.readouterr().err.startswith("twinenv verify: ")


def test_an_error_of_the_pair_is_2(house, capsys):
    pair = house()
    pair.events = lambda *_: {}
    assert cli.main(["toy_jax", "--level", "3", *FAST]) == 2
    assert "disagree on" in capsys.readouterr().err
    pair.states = lambda *_: 1 / 0
    assert cli.main(["toy_jax", "--level", "2", *FAST]) == 2
    assert "could not run" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["", "replay", "record", "faults", "mutate"])
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as exit:
        cli.main([*command.split(), "--help"])
    assert exit.value.code == 0
    assert "exit status" in capsys.readouterr().out


def test_the_same_pair_is_found_by_id_and_by_house(houses):
    from toy_jax.pair import PAIR

    assert levels.find_pair("ToyDuel-v0") is levels.find_pair("toy_jax") is PAIR


def test_recording_writes_a_golden_folder(house, tmp_path, capsys):
    house()
    assert cli.main(["record", "toy_jax", "--seed", "4"]) == 0
    assert (tmp_path / "tests/toy_jax/golden/MANIFEST.json").is_file()
    assert "files in tests/toy_jax/golden" in capsys.readouterr().out
    # Now level 3 has nothing to skip.
    assert cli.main(["toy_jax", "--level", "3", "--budget", "2krows"]) == 0
    house(installed=False)
    assert cli.main(["record", "toy_jax"]) == 2
    assert "install arena" in capsys.readouterr().err


GRADED = {
    "total": 2,
    "killed": 1,
    "missed": ["b"],
    "rate": 0.5,
    "by_level": {"L2": 1},
    "equivalent": 0,
    "contradicted": [],
    "faults": [
        {"name": "a", "rule": "x", "expected": "", "killed_by": ["L2"], "why": {"L2": "hp"}},
        {"name": "b", "rule": "y", "expected": "", "killed_by": [], "why": {}},
    ],
}


@pytest.mark.parametrize(
    ("command", "function", "output"),
    [
        ("faults", "faults.run_faults", "1 of 2 planted faults killed"),
        ("mutate", "mutate.run_mutants", "1 of 2 mutants killed (50.0%)"),
    ],
)
def test_survivors_are_1_and_none_is_0(command, function, output, house, monkeypatch, capsys):
    house()
    target = f"twinenv.verify.{function}"
    monkeypatch.setattr(target, lambda *_, **__: GRADED)
    assert cli.main([command, "toy_jax", "--json", "graded.json"]) == 1
    out = capsys.readouterr().out
    assert output in out
    assert "SURVIVED" in out
    monkeypatch.setattr(target, lambda *_, **__: GRADED | {"missed": [], "rate": 1.0})
    assert cli.main([command, "toy_jax"]) == 0


class Page(html.parser.HTMLParser):
    """Collects what a page would load, and whether its tags are balanced."""

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.cells = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)
        values = dict(attrs)
        self.loads += [values[name] for name in ("src", "href") if name in values]
        if tag == "td":
            self.cells.append(values.get("class", ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing(duel_pair, tmp_path):
    pair = duel_pair(fault="burn")
    results = [levels.run(pair, level, budget="1krows") for level in (2, 3)]
    results += [levels.run(duel_pair(), 3, budget="1krows")]
    reports.write_report(tmp_path, pair, results, "twinenv verify <toy>")
    text = (tmp_path / "report.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.loads == []
    # Differing cells of the timeline, and the coverage grid.
    assert page.cells.count("bad") >= 2
    assert any("met" in cell for cell in page.cells)
    assert any("excluded" in cell for cell in page.cells)
    assert "twinenv verify &lt;toy&gt;" in text
    assert "hp" in text


def test_values_that_are_no_number_are_written_as_words(duel_pair, tmp_path):
    def tamper(before, actions, step):
        step.output["reward"] = np.full_like(step.output["reward"], np.nan)
        return step

    pair = duel_pair(tamper=tamper)
    results = [levels.run(pair, 2, budget="100rows", configurations=["normal"])]
    reports.write_report(tmp_path, pair, results, "")
    report = json.loads((tmp_path / "report.json").read_text(), parse_constant=pytest.fail)
    assert report["diagnostics"][0]["got"] == "nan"


def test_pytest_helpers_fail_where_the_command_line_does(duel_pair):
    check_level(duel_pair(), 2, "500rows", configurations=["normal"])
    check_level(duel_pair(), 3, "500rows", complete=False)
    with pytest.raises(AssertionError, match="golden traces"):
        check_level(duel_pair(), 3, "500rows")
    with pytest.raises(AssertionError, match=r"L2 FAIL toy_jax step 0 boost.*verify replay"):
        check_level(duel_pair(fault="cap"), 2, "500rows")
    with pytest.raises(AssertionError, match="not run"):
        check_level(duel_pair(installed=False), 2, "500rows", complete=False)
