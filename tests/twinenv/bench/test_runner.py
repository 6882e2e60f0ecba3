"""The benchmark protocol: both sides in turn, no speed without equal checks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from twinenv.bench import Benchmark, BenchmarkError, cli, run
from twinenv.bench.hardware import describe

KEYS = {
    *("env", "unit", "batch", "against", "ratio_median", "ratio_min", "ratio_max"),
    *("fast_per_cpu_s", "reference_per_cpu_s", "rounds", "cores", "load_average", "state_bytes"),
    *("compile_cpu_s", "stablehlo_lines", "versions", "checked", "clock", "device"),
}


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """The worker processes find the sides beside this file."""
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)


def benchmark(reference: str, **changes) -> Benchmark:
    values = {"env": "Count-v0", "unit": "count", "batch": 1, "against": "slow"}
    values |= {"fast": "sides:Counter"} | changes
    return Benchmark(**values, reference=f"sides:{reference}")


def test_ratio_is_of_cpu_time_and_the_record_is_complete():
    record = run(benchmark("Slow", target=3.0), rounds=3)
    assert set(record) >= KEYS
    assert json.loads(json.dumps(record)) == record
    # 0.02 against 0.08 CPU seconds for the same work.
    assert 3.0 < record["ratio_median"] < 5.0
    assert record["ratio_min"] <= record["ratio_median"] <= record["ratio_max"]
    assert (record["rounds"], record["cores"], record["target"]) == (3, 1, 3.0)
    assert (record["state_bytes"], record["stablehlo_lines"]) == (8, 3)


def test_no_speed_if_the_sides_disagree():
    with pytest.raises(BenchmarkError, match=r"disagree by 0\.5 \(accepted is 0\)"):
        run(benchmark("Other"), rounds=1)
    record = run(benchmark("Other", tolerance=0.5), rounds=1)
    assert record["ratio_median"] > 0 and record["difference_max"] == 0.5


def test_a_share_of_the_sums_may_disagree():
    """One of the two sums does."""
    assert run(benchmark("Other", outliers=0.5), rounds=1)["difference_max"] == 0.5
    with pytest.raises(BenchmarkError, match=r"\(accepted is 0 in all but 40\.0%\)"):
        run(benchmark("Other", outliers=0.4), rounds=1)


def test_no_speed_if_the_sides_check_different_things():
    with pytest.raises(BenchmarkError, match="checked different things"):
        run(benchmark("OtherShape"), rounds=1)


def test_missing_reference_names_the_command():
    with pytest.raises(BenchmarkError, match="twinenv references install counter"):
        run(benchmark("Missing"), rounds=1)


def test_a_side_that_dies_is_told():
    with pytest.raises(BenchmarkError, match="sides:Dies: it ended"):
        run(benchmark("Dies"), rounds=1)


def test_a_side_that_hangs_is_ended():
    with pytest.raises(BenchmarkError, match="sides:Hangs: no answer to 'facts' within 1 s"):
        run(benchmark("Hangs", fast="sides:Hangs"), rounds=1, timeout_s=1.0)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_time_that_passes_on_several_cores():
    record = run(benchmark("Sleeps", fast="sides:Cores", clock="wall", cores=2), rounds=1)
    # Sleeping takes no CPU time: only by the clock on the wall is it 0.05 s against 0.2 s.
    assert 2.0 < record["ratio_median"] < 6.0
    assert record["fast_per_cpu_s"] > 3 * record["fast_per_wall_s"]
    assert (record["clock"], record["cores"]) == ("wall", 2)
    assert record["versions"] == {"cores": "2", "devices": "2"}
    assert record["load_average_before"] >= 0


def test_cores_that_are_not_there_are_refused():
    usable = os.sched_getaffinity(0)
    for cores, core in ((len(usable) + 1, None), (1, max(usable) + 1), (2, max(usable))):
        with pytest.raises(BenchmarkError, match="usable are"):
            run(benchmark("Slow", cores=cores), core=core)


def test_an_unknown_clock_is_refused():
    with pytest.raises(ValueError, match="clock is 'sun'; accepted is 'cpu' or 'wall'"):
        benchmark("Slow", clock="sun")


def test_command_line_goes_on_after_a_failure(monkeypatch, tmp_path, capsys):
    some = (benchmark("Missing"), benchmark("Slow", checked="all counts", clock="wall"))
    monkeypatch.setattr(cli, "_benchmarks", lambda env: some)
    out = tmp_path / "records.json"
    assert cli.main(["Count-v0", "--rounds", "1", "--json", str(out)]) == 2
    assert len(json.loads(out.read_text())) == 1
    said = capsys.readouterr()
    assert "references install counter" in said.err
    assert "count, against slow: within 0 of each other were all counts" in said.out
    assert "the load before it was" in said.out


def test_command_line_writes_records(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(cli, "_benchmarks", lambda env: (benchmark("Slow"),))
    out = tmp_path / "records.json"
    assert cli.main(["Count-v0", "--rounds", "1", "--json", str(out)]) == 0
    (record,) = json.loads(out.read_text())
    assert set(record) >= {*KEYS, "command"}
    assert record["command"].startswith("twinenv bench Count-v0 --rounds 1")
    assert "3 StableHLO lines (at most 25,000)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["PongJAX-v1"], "did you mean 'PongJAX-v0'"),
        (["pong_jax", "--against", "atari"], "is measured against pufferlib; not 'atari'"),
        (["pong_jax", "--batch", "7"], "is measured with a batch of 1024, 4096"),
        (["pong_jax", "--unit", "hour"], "step of 8 frames, small_call; none has 'hour'"),
    ],
)
def test_bad_requests_are_one_sentence(arguments, words, capsys):
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1


def test_hardware_is_described():
    machine = describe()
    assert machine.cores == os.cpu_count()
    assert machine.processor and machine.memory_gib > 0
