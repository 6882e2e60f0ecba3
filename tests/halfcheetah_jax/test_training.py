"""Training on the HalfCheetah: the preset learns, and its policies are worth the same in MuJoCo."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import halfcheetah_jax
from halfcheetah_jax import situations
from halfcheetah_jax.pair import PAIR
from halfcheetah_jax.presets import PRESETS
from halfcheetah_jax.reference.batch import MujocoBatch
from halfcheetah_jax.reference.vector import vector_env
from twinenv.ppo import cli
from twinenv.references import MissingReferenceError
from twinenv.verify import run

DATA = Path(halfcheetah_jax.__file__).parent / "data"

needs_reference = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("mujoco", "imageio")),
    reason="MuJoCo or imageio is not installed; pip install mujoco imageio",
)


def evaluated(folder: Path, *extra: str) -> dict[str, float]:
    """The estimate of the return in complete episodes, apart from training."""
    out = folder.parent / "eval.json"
    arguments = ["HalfCheetahJAX-v0", "--run", str(folder), "--json", str(out), *extra]
    assert cli.eval_main(arguments) == 0
    return json.loads(out.read_text())["return"]


@pytest.mark.reference
@needs_reference
def test_the_vector_environment_is_gymnasiums(tmp_path, monkeypatch, capfd):
    """From the same seeds, through the end of an episode, without MuJoCo's log in the folder."""
    import gymnasium

    monkeypatch.chdir(tmp_path)
    envs = vector_env(2, max_steps_in_episode=3)
    assert not [*tmp_path.iterdir()] and "settotalmass" not in capfd.readouterr().err
    singles = [gymnasium.make("HalfCheetah-v5", max_episode_steps=3) for _ in range(2)]
    obs = envs.reset(seed=5)[0]
    assert obs.dtype == np.float32
    for row, (single, seen) in enumerate(zip(singles, obs, strict=True)):
        np.testing.assert_array_equal(seen, single.reset(seed=5 + row)[0].astype(np.float32))
    actions = np.random.default_rng(0).uniform(-1, 1, (3, 2, 6)).astype(np.float32)
    for number, action in enumerate(actions):
        obs, reward, terminated, truncated, info = envs.step(action)
        want = [single.step(row) for single, row in zip(singles, action, strict=True)]
        np.testing.assert_array_equal(reward, [each[1] for each in want])
        assert truncated.all() == (number == 2) and not terminated.any()
        seen = info["final_obs"] if number == 2 else obs
        for mine, each in zip(seen, want, strict=True):
            np.testing.assert_array_equal(mine, each[0].astype(np.float32))
    for single, seen in zip(singles, obs, strict=True):
        np.testing.assert_array_equal(seen, single.reset()[0].astype(np.float32))


@pytest.mark.reference
@needs_reference
def test_options_and_numbers_of_the_mechanism_reach_gymnasium():
    options = PAIR.configurations["changed"]
    batch = MujocoBatch(3, **options)
    envs = vector_env(3, **options, exclude_current_positions_from_observation=False)
    envs.reset(seed=1)
    data = [each.unwrapped.data for each in envs.envs]
    batch.load({name: np.stack([getattr(d, name) for d in data]) for name in ("qpos", "qvel")})
    actions = np.random.default_rng(0).uniform(-1, 1, (3, 6)).astype(np.float32)
    want = batch.step(actions)
    obs, reward, *_ = envs.step(actions)
    state = np.concatenate([want.state["qpos"], want.state["qvel"]], axis=1)
    np.testing.assert_allclose(obs, state, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(reward, want.output["reward"], rtol=1e-5, atol=1e-5)


def test_without_mujoco_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingReferenceError, match=r"pip install mujoco==\S+ imageio"):
        vector_env(1)


def test_kept_states_are_those_of_the_manifest_and_of_a_run():
    manifest = json.loads((DATA / "MANIFEST.json").read_text())
    digest = hashlib.sha256((DATA / "trained_states.npz").read_bytes()).hexdigest()
    assert manifest["sha256"]["trained_states.npz"] == digest
    states = situations.trained_states(np.random.default_rng(0), 500)
    assert [part.shape for part in states] == [(500, 9)] * 3 + [(500, 6)]
    assert len(np.unique(states.qpos, axis=0)) == 500
    assert states.qvel[:, 0].mean() > 5 and (np.cos(states.qpos[:, 2]) > 0).mean() > 0.95
    for part in states:
        np.testing.assert_array_equal(part, part.astype(np.float32))


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    """One update of the preset."""
    folder = tmp_path_factory.mktemp("runs") / "short"
    steps = str(PRESETS["default"].config.steps_per_update)
    arguments = ["HalfCheetahJAX-v0", "--total-steps", steps, "--run", str(folder), "--quiet"]
    assert cli.train_main(arguments) == 0
    return folder


@pytest.mark.reference
@needs_reference
def test_a_run_is_evaluated_on_both_sides(short_run):
    """As little as that: no policy has learned anything yet, and episodes are cut short."""
    few = ["--episodes", "4", "--num-envs", "4", "--max-steps", "20"]
    for backend in ("fast", "reference"):
        found = evaluated(short_run, *few, "--backend", backend)
        assert -60 < found["mean"] < 30


@pytest.mark.l4
@pytest.mark.reference
@needs_reference
def test_level_4_plays_policies_trained_in_mujoco_for_few_steps(monkeypatch):
    """Its parts in small; the whole of it takes minutes and is below."""
    steps = PRESETS["default"].config.steps_per_update
    train = PAIR.train
    asked = []

    def small(configuration, side, seeds, max_steps):
        asked.append((configuration, side, len(seeds)))
        return train(configuration, "mujoco", seeds, steps)

    monkeypatch.setattr(type(PAIR), "margin", dataclasses.replace(PAIR.margin, seeds=2, steps=5))
    monkeypatch.setattr(PAIR, "train", small, raising=False)
    result = run(PAIR, 4, configurations=["v5"])
    assert asked == [("v5", "fast", 2), ("v5", "mujoco", 2)]
    assert not result.divergences and result.rows == 2 * 2 * PAIR.num_envs
    for told in result.details["transfer"]:
        # So few steps apart, both sides are still the same to the rounding of float32.
        here, there = np.transpose(told["returns on twin and reference"])
        np.testing.assert_allclose(here, there, atol=0.11)  # they are told to a tenth


@pytest.mark.l4
@pytest.mark.reference
@pytest.mark.slow
@needs_reference
def test_trained_policies_are_worth_the_same_on_both_sides():
    result = run(PAIR, 4, configurations=["v5"])
    assert not result.divergences, [found.message for found in result.divergences]
    assert (result.status, result.skipped) == ("passed", ())
    here, there = result.details["transfer"]
    assert (here["trained on"], there["trained on"]) == ("fast", "mujoco")
    assert np.min(here["returns on twin and reference"]) > 4_000
    assert np.mean(there["returns on twin and reference"]) > 1_500


@pytest.mark.reference
@pytest.mark.slow
@needs_reference
@pytest.mark.parametrize("seed", [101, 102, 103])
def test_every_seed_is_solved_and_is_so_in_gymnasium(seed, tmp_path):
    folder = tmp_path / "run"
    arguments = ["HalfCheetahJAX-v0", "--seed", str(seed), "--run", str(folder), "--quiet"]
    assert cli.train_main(arguments) == 0
    assert json.loads((folder / "summary.json").read_text())["target_reached_at_step"]
    here = evaluated(folder)
    there = evaluated(folder, "--backend", "reference", "--episodes", "64", "--num-envs", "64")
    assert min(here["mean"], there["mean"]) > 4_800
    spread = np.hypot(here["high"] - here["mean"], there["high"] - there["mean"])
    assert abs(here["mean"] - there["mean"]) < 2 * spread
