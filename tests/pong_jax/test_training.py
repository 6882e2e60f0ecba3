"""Training on Pong: the preset learns, and the command reaches its target."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import twinenv
from pong_jax.presets import PRESETS, point_win_rate
from twinenv.ppo import Task, cli, train

PRESET = PRESETS["default"]


def test_points_are_counted_by_who_won_them():
    won, played = point_win_rate({"point": np.asarray([1, 0, -1, -1])})
    assert won.tolist() == [True, False, False, False] and played.sum() == 3


def test_a_short_run_learns(tmp_path):
    """From no point in a thousand to most of them, within a few seconds of training."""
    env, params = twinenv.make("PongJAX-v0", **PRESET.env)
    config = dataclasses.replace(PRESET.config, total_steps=3_000_000, seed=11)
    result = train(env, params, config, task=Task(outcomes=PRESET.outcomes))
    rates = result.metrics["point_win_rate"]
    assert rates[0] < 0.05 and rates[-5:].mean() > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(101, 106))
def test_every_seed_reaches_95_percent(seed, tmp_path):
    """Stopped as soon as training has seen 97 % of the points won, and judged by complete games."""
    run = tmp_path / "run"
    arguments = ["PongJAX-v0", "--until", "0.97", "--seed", str(seed), "--run", str(run)]
    assert cli.train_main([*arguments, "--quiet"]) == 0
    assert json.loads((run / "summary.json").read_text())["target_reached_at_step"]
    assert evaluated(run, tmp_path / "eval.json") >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("greedy", [False, True])
def test_the_default_budget_ends_above_95_percent(tmp_path, greedy):
    run = tmp_path / "run"
    assert cli.train_main(["PongJAX-v0", "--seed", "7", "--run", str(run), "--quiet"]) == 0
    extra = ["--greedy"] if greedy else []
    assert evaluated(run, tmp_path / "eval.json", *extra) >= 0.97


def evaluated(run: Path, out: Path, *extra: str) -> float:
    """Point win rate over 256 complete games, apart from training."""
    arguments = ["PongJAX-v0", "--run", str(run), "--json", str(out), "--seed", "5", *extra]
    assert cli.eval_main(arguments) == 0
    return json.loads(out.read_text())["point_win_rate"]["mean"]
