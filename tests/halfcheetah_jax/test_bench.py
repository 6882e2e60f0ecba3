"""The benchmarks of the HalfCheetah: what they declare, and that the sides step the same."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from halfcheetah_jax.bench import BENCHMARKS
from twinenv import bench, references

pytest.importorskip("mujoco")
SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu_halfcheetah.py"
TARGETS = {
    ("mujoco", "float32, over mj_step"): 15,
    ("mujoco", "float64, over mj_step"): 6,
    ("mujoco", "float32, over mujoco.rollout with 2 threads"): 15,
    ("gymnasium", "float32, over env.step"): 20,
    ("mjx", "float32, over MJX with 100 iterations, its default"): 500,
    ("mjx", "float32, over MJX with iterations=4, ls_iterations=8"): 150,
    ("brax", "float32, over Brax's generalized physics, which are different physics"): 150,
    ("brax", "float32, over Brax's spring physics, which are different physics"): 60,
    ("tiled_steps", "float32, vmap of env.step over the batched call of the physics"): 0.85,
    ("gymnasium", "environment step of the whole training loop"): 5,
}


def side(where, **changes):
    """A side of a benchmark, made in this process."""
    module, factory = where.split(":")
    return getattr(importlib.import_module(module), factory)(**changes)


def one(words):
    """The benchmark of the smallest batch with these words in its unit."""
    return min((b for b in BENCHMARKS if words in b.unit), key=lambda b: b.batch)


@pytest.fixture(scope="module")
def ours():
    return side("halfcheetah_jax.bench:JaxSide", num_envs=256, steps=2)


def test_every_target_is_declared():
    found = {(b.against, b.unit.removeprefix("environment step, ")): b.target for b in BENCHMARKS}
    assert found == TARGETS
    assert len({(b.unit, b.batch) for b in BENCHMARKS}) == len(BENCHMARKS)
    for benchmark in BENCHMARKS:
        assert benchmark.checked
        json.dumps(dataclasses.asdict(benchmark))
        for where in (benchmark.fast, benchmark.reference):
            module, factory = where.split(":")
            assert callable(getattr(importlib.import_module(module), factory))


def test_other_physics_claim_no_equal_states():
    for benchmark in BENCHMARKS:
        named = "different physics" in benchmark.unit
        assert named == (benchmark.against == "brax")
        assert named == (benchmark.notes.get("physics") == "different")
        assert not named or "positions" not in benchmark.checked


@pytest.mark.parametrize("words", ["over mj_step", "over mujoco.rollout", "over env.step"])
def test_ours_steps_as_the_cheap_peers_do(ours, words):
    benchmark = one(f"float32, {words}")
    peer = side(benchmark.reference, **{**benchmark.options, "steps_of_peer": 40})
    answer = peer.check({})
    assert len(answer["sums"]) >= 256 * 18
    want, got = np.asarray(answer["sums"]), np.asarray(ours.check(answer["given"])["sums"])
    np.testing.assert_allclose(got, want, rtol=0, atol=benchmark.tolerance)
    assert peer.work() >= 40
    # Other actions are seen.
    other = answer["given"] | {"ctrl": np.zeros((256, 6)).tolist()}
    assert np.abs(np.asarray(ours.check(other)["sums"]) - want).max() > 100 * benchmark.tolerance


def test_our_rounds_go_on_and_stay_finite(ours):
    before = np.asarray(ours._loop.carry[1].time)
    assert ours.work() == 2 * 256
    np.testing.assert_array_equal(ours._loop.carry[1].time, before + 2)
    assert ours._sizes()["sums"] == [17, 6, 0.05, 1.0]
    assert ours.facts.state_bytes == 112 and ours.facts.stablehlo_lines > 1000
    assert ours.facts.compile_cpu_s > 0


@pytest.mark.skipif("JAX_PLATFORMS" not in os.environ, reason="there may be a GPU")
def test_without_a_gpu_its_script_says_so():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("JAX finds no GPU here; --cpu makes a trial run\n")


def small(benchmark):
    """With few environments and short rounds."""
    changes = {"num_envs": 64, "steps": 2, "steps_of_peer": 2}
    return dataclasses.replace(benchmark, batch=64, options={**benchmark.options, **changes})


@pytest.mark.slow
@pytest.mark.reference
@pytest.mark.parametrize("words", ["100 iterations", "ls_iterations", "generalized", "spring"])
def test_outside_peers_pass_their_checks(words, monkeypatch):
    for name in ("mjx", "brax"):
        if problem := references.status(name).problem:
            pytest.skip(f"{name}: {problem}; run `twinenv references install mjx brax`")
    monkeypatch.setenv("JAX_NUMPY_DTYPE_PROMOTION", "standard")  # not theirs to keep
    record = bench.run(small(one(words)), rounds=1)
    assert record["ratio_median"] > 1
    assert record["versions"]["mujoco-mjx"] == references.status("mjx").version


@pytest.mark.slow
@pytest.mark.parametrize("words", ["batched call", "float64"])
def test_other_sides_of_ours_pass_their_checks(words):
    benchmark = one(words)
    options = {"num_envs": 256, "steps": 2, "steps_of_peer": 100}
    changed = dataclasses.replace(benchmark, batch=256, options={**benchmark.options, **options})
    assert bench.run(changed, rounds=1)["difference_max"] <= benchmark.tolerance


@pytest.mark.slow
@pytest.mark.reference
def test_trial_run_of_the_gpu_script(tmp_path, monkeypatch):
    if problem := references.status("mjx").problem:
        pytest.skip(f"mjx: {problem}; run `twinenv references install mjx`")
    monkeypatch.setenv("JAX_NUMPY_DTYPE_PROMOTION", "standard")
    out = tmp_path / "records.json"
    command = [sys.executable, SCRIPT, "--cpu", "--batches", "64", "--rounds", "1", "--json", out]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    records = json.loads(out.read_text())
    assert len(records) == 2 and not any("error" in record for record in records)
    assert {record["clock"] for record in records} == {"wall"}
