"""Runs survive: resumed bit for bit, and nothing saved is lost by damage, full disks or signals."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import twinenv
from twinenv.ppo import (
    Actions,
    CheckpointError,
    Config,
    MLPPolicy,
    Task,
    checkpoint,
    load_policy,
    train,
)
from twinenv.ppo.config import replaced
from twinenv.ppo.runs import identity

CONFIG = Config(
    total_steps=6 * 8 * 16,
    num_envs=16,
    num_steps=8,
    num_minibatches=2,
    hidden=(8,),
    learning_rate=1e-2,
    normalize_observation=True,
    normalize_reward=True,
    quick_compile=True,
)


@pytest.fixture(scope="module")
def pong():
    return twinenv.make("PongJAX-v0", frameskip=8, max_score=1)


@pytest.fixture(scope="module")
def whole(pong, tmp_path_factory):
    """Six updates without interruption, saved after each."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    config = dataclasses.replace(CONFIG, checkpoint_seconds=0)
    return train(*pong, config, run_dir=folder), folder


def same(a, b):
    a, b = checkpoint.arrays_of(a), checkpoint.arrays_of(b)
    assert a.keys() == b.keys()
    for name, value in a.items():
        np.testing.assert_array_equal(value, b[name], err_msg=name)


class Interrupt:
    """A reporter that sends this process a signal after some updates."""

    def __init__(self, after: int, number: int) -> None:
        self.after, self.number, self.said = after, number, []

    def progress(self, progress) -> None:
        if progress.update >= self.after:
            self.after = 1 << 30
            os.kill(os.getpid(), self.number)

    def say(self, message: str) -> None:
        self.said.append(message)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_resumes_bit_for_bit(pong, whole, tmp_path, number):
    told = Interrupt(1, number)
    first = train(*pong, CONFIG, run_dir=tmp_path / "run", task=Task(reporter=told))
    assert first.interrupted and 1 <= int(first.state.update) < 6
    assert any("continue with --resume" in message for message in told.said)
    second = train(*pong, CONFIG, run_dir=tmp_path / "run", resume=True)
    same(second.state, whole[0].state)
    for name, column in whole[0].metrics.items():
        if name != "cpu_s":
            np.testing.assert_array_equal(column, second.metrics[name], err_msg=name)


def test_run_folder_is_complete(whole):
    result, folder = whole
    summary = json.loads((folder / "summary.json").read_text())
    assert set(summary) >= {
        *("env", "preset", "seed", "steps", "updates", "final_return", "target_reached_at_step"),
        *("train_cpu_s", "compile_cpu_s", "params", "versions", "command"),
    }
    assert (summary["steps"], summary["updates"]) == (768, 6)
    lines = (folder / "metrics.csv").read_text().splitlines()
    assert len(lines) == 7 and lines[0].startswith("update,steps,seed,episodes,return")
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    policy = load_policy(folder)
    obs = np.zeros((3, 8), np.float32)
    np.testing.assert_array_equal(policy.act(obs, greedy=True), result.policy.act(obs, greedy=True))
    with pytest.raises(ValueError, match="needs a key"):
        policy.act(obs)


def copied(folder: Path, to: Path) -> Path:
    import shutil

    return Path(shutil.copytree(folder, to / "copy"))


@pytest.mark.parametrize("damage", ["meta.json", "state"])
def test_damaged_checkpoint_is_passed_over(whole, tmp_path, damage, capsys):
    folder = copied(whole[1], tmp_path) / "checkpoints"
    newest = sorted(path for path in folder.iterdir() if path.name.isdecimal())[-1]
    files = [p for p in (newest / damage).rglob("*") if p.is_file()] or [newest / damage]
    for path in files:
        data = bytearray(path.read_bytes())
        data[len(data) // 2 :] = b""
        path.write_bytes(bytes(data))
    told = []
    found, _ = checkpoint.latest(folder, told.append)
    assert found.update < 6
    assert "going back to the one before it" in told[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"number": "float32"}, "number='int16'"),
        ({"frameskip": 4}, "Pong(frameskip=8"),
        ({"max_score": 2}, "params.max_score 1 (not 2)"),
    ],
)
def test_a_run_goes_on_with_the_environment_it_was_started_with(pong, whole, options, words):
    other = twinenv.make("PongJAX-v0", **({"frameskip": 8, "max_score": 1} | options))
    with pytest.raises(ValueError, match=re.escape(words)):
        train(*other, run_dir=whole[1], resume=True)


def test_a_run_goes_on_with_the_options_it_was_started_with(pong, whole):
    config = dataclasses.replace(CONFIG, checkpoint_seconds=0, hidden=(9,))
    with pytest.raises(ValueError, match=r"hidden \(8,\) \(not \(9,\)\)"):
        train(*pong, config, run_dir=whole[1], resume=True)


def test_a_run_goes_on_with_the_network_it_was_started_with(pong, whole):
    task = Task(network=MLPPolicy(Actions(True, 3), (9,)))
    with pytest.raises(CheckpointError, match="of another environment, network or library"):
        train(*pong, run_dir=whole[1], resume=True, task=task)


def test_an_environment_is_known_by_what_does_not_change_between_processes():
    class Foreign:
        default_params = {"deck": np.zeros(1000), "speed": 2.0}  # noqa: RUF012

    one, two = (identity(Foreign(), None) for _ in range(2))
    assert one == two and one["params.speed"] == "2.0"
    assert "0x" not in one["environment"] and max(map(len, one.values())) < 400
    changed = {"deck": np.arange(1000) == 7, "speed": 2.0}
    assert identity(Foreign(), changed)["params.deck"] != one["params.deck"]


def test_full_disk_keeps_what_was_saved(pong, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    half = dataclasses.replace(CONFIG, checkpoint_seconds=0)
    write, calls = checkpoint._write_arrays, []

    def full(path, arrays):
        calls.append(path)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        write(path, arrays)

    monkeypatch.setattr(checkpoint, "_write_arrays", full)
    with pytest.raises(CheckpointError, match="No space left on device; the last complete one is"):
        train(*pong, half, run_dir=folder, task=Task(reporter=Interrupt(99, 0)))
    monkeypatch.undo()
    assert not list((folder / "checkpoints").glob(".tmp-*"))
    resumed = train(*pong, half, run_dir=folder, resume=True)
    assert int(resumed.state.update) == 6


def test_existing_run_is_not_overwritten(pong, whole):
    with pytest.raises(FileExistsError):
        train(*pong, CONFIG, run_dir=whole[1])


def test_gymnasium_vector_environment_trains_on_the_host():
    import gymnasium

    envs = gymnasium.make_vec(
        "CartPole-v1",
        16,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP},
    )
    config = Config(
        total_steps=12_288,
        num_envs=16,
        num_steps=64,
        num_epochs=4,
        num_minibatches=4,
        learning_rate=5e-3,
        hidden=(32,),
        quick_compile=True,
    )
    result = train(envs, None, config)
    envs.close()
    returns = result.metrics["return"]
    assert np.nanmean(returns[-2:]) > 1.5 * np.nanmean(returns[:2])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_envs": 10, "num_minibatches": 3}, "accepted is a divisor of num_envs"),
        ({"gamma": 1.5}, "gamma is 1.5; accepted is a number from 0 to 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; accepted is a positive number"),
        ({"initial_std": 0.0}, "initial_std is 0.0; accepted is a positive number"),
        ({"learning_rte": 0.1}, "did you mean 'learning_rate'?"),
        ({"hidden": [8, "x"]}, "accepted is a list of integers"),
        ({"activation": "sine"}, "activation is 'sine'; accepted is one of"),
        ({"activation": ["relu"]}, "activation is ['relu']; accepted is a text"),
        ({"learning_rate": "1e-3"}, "learning_rate is '1e-3'; accepted is a number"),
        ({"total_steps": 1.5}, "total_steps is 1.5; accepted is an integer"),
        ({"num_envs": True}, "num_envs is True; accepted is an integer"),
        ({"anneal": 1}, "anneal is 1; accepted is true or false"),
        ({"hidden": 64}, "hidden is 64; accepted is a list of integers"),
        ({"seed": 1 << 32}, "accepted is an integer from 0 to 4294967295"),
    ],
)
def test_bad_options_are_one_sentence(changes, words):
    with pytest.raises(ValueError, match=r".") as caught:
        replaced(Config(), changes)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    if changes.keys() <= vars(Config()).keys():
        with pytest.raises(ValueError, match=re.escape(words)):
            Config(**changes)


def test_numbers_of_numpy_whole_floats_and_lists_are_options_too():
    """They hash, they can be written and read again, and they equal the plain ones."""
    given = Config(
        total_steps=1e6,
        num_envs=np.int64(32),
        learning_rate=np.float32(0.5),
        gamma=1,
        anneal=np.bool_(True),
        hidden=[np.int32(16), 8.0],
        seed=np.asarray(3),
    )
    plain = Config(
        total_steps=1_000_000, num_envs=32, learning_rate=0.5, gamma=1.0, hidden=(16, 8), seed=3
    )
    assert given == plain and hash(given) == hash(plain)
    assert replaced(Config(), json.loads(json.dumps(dataclasses.asdict(given)))) == plain
    kinds = {name: type(value) for name, value in vars(plain).items()}
    assert {name: type(value) for name, value in vars(given).items()} == kinds


@pytest.mark.slow
def test_killed_process_resumes_bit_for_bit(tmp_path):
    """SIGKILL at random moments, then to the end: the same metrics as without."""
    options = [
        *("PongJAX-v0", "--total-steps", "1000000", "--num-envs", "64", "--num-minibatches", "2"),
        *("--checkpoint-seconds", "0.2", "--hidden", "16", "--quiet"),
    ]
    command = [sys.executable, "-m", "twinenv", "train"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*command, *options, "--run", str(whole)], check=True)
    rng = np.random.default_rng(0)
    arguments = [*options, "--run", str(killed)]
    for _ in range(5):
        process = subprocess.Popen([*command, *arguments])
        while not list(killed.glob("checkpoints/0*")) and process.poll() is None:
            time.sleep(0.1)
        time.sleep(rng.uniform(0, 3))
        process.kill()
        process.wait()
        arguments = ["PongJAX-v0", "--resume", str(killed), "--quiet"]
    subprocess.run([*command, *arguments], check=True)

    def rows(folder):
        return [
            line.rsplit(",", 1)[0] for line in (folder / "metrics.csv").read_text().splitlines()
        ]

    assert rows(killed) == rows(whole)
