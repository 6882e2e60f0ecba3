"""The commands `train`, `eval` and `play`, from arguments to files."""

import json
import subprocess

import numpy as np
import pytest
from line import Line, moved
from PIL import Image

from twinenv import registry
from twinenv.ppo import Config, Policy, Preset, Target, cli
from twinenv.ppo.config import from_file, replaced
from twinenv.ppo.engine import JaxEngine
from twinenv.ppo.play import write_video


@pytest.fixture(scope="module")
def known(config):
    """Line as an environment of the registry, with two presets."""
    presets = {
        "default": Preset(config=config, outcomes={"moved": moved}, target=Target("moved", 2.0)),
        "other": Preset(config=replaced(config, {"gamma": 0.5})),
    }
    patch = pytest.MonkeyPatch()
    patch.setattr(registry, "_factories", dict(registry._factories))
    registry.register("Line-test", lambda **options: (Line(**options), Line().default_params))
    patch.setattr(cli, "presets_of", lambda env_id: registry.spec(env_id) and presets)
    yield
    patch.undo()


@pytest.fixture(scope="module")
def run(known, tmp_path_factory):
    folder = tmp_path_factory.mktemp("command") / "run"
    assert cli.train_main(["Line-test", "--run", str(folder), "--seed", "0", "--quiet"]) == 0
    return folder


def test_training_writes_its_folder(run, capsys):
    names = {"config.json", "metrics.csv", "learning_curve.png", "summary.json", "checkpoints"}
    assert {path.name for path in run.iterdir()} == names
    summary = json.loads((run / "summary.json").read_text())
    assert summary["command"].startswith("twinenv train Line-test --run")
    assert summary["env"] == "Line-test" and summary["preset"] == "default"
    assert summary["target_reached_at_step"] is None and summary["versions"]["jax"]
    assert summary["params"] == 7 * 8 + 8 + 8 * 4 + 4
    with Image.open(run / "learning_curve.png") as curve:
        assert curve.size[0] > 300


def test_the_command_line_wins_over_file_and_preset(known, tmp_path):
    file = tmp_path / "options.toml"
    file.write_text("gamma = 0.75\nclip = 0.3\n[env]\nspeed = 2\n")
    arguments = ["Line-test", "--preset", "other", "--config", str(file), "--clip", "0.4"]
    given = cli._train_arguments(arguments)
    assert (given.options.gamma, given.options.clip) == (0.75, 0.4)
    assert cli._env_options(given, Preset(env={"speed": 1, "size": 3})) == {"speed": 2, "size": 3}
    assert cli._train_arguments(arguments[:3]).options.gamma == 0.5


def test_a_runs_own_configuration_is_a_file_of_options(run):
    options = from_file(run / "config.json")
    assert options.pop("env") == {}
    assert replaced(Config(), options).hidden == (8,)


def test_every_option_is_on_the_command_line_with_help(known, capsys):
    import dataclasses

    assert cli.train_main(["Line-test", "--help"]) == 0
    shown = capsys.readouterr().out
    for field in dataclasses.fields(Config):
        assert f"--{field.name.replace('_', '-')}" in shown
    assert "Discount per step." in shown


def test_evaluation_is_printed_and_written(run, tmp_path, capsys):
    out = tmp_path / "eval.json"
    base = ["Line-test", "--run", str(run), "--episodes", "12", "--num-envs", "4"]
    assert cli.eval_main([*base, "--greedy", "--json", str(out)]) == 0
    assert "moved" in capsys.readouterr().out
    record = json.loads(out.read_text())
    assert record["episodes"] == 12 and record["greedy"] and record["backend"] == "fast"
    assert record["return"]["low"] <= record["return"]["mean"] <= record["return"]["high"]
    assert set(record["moved"]) == {"mean", "low", "high"}
    assert record["cut"] == 0 and record["length"]["mean"] > 1
    assert cli.eval_main([*base, "--max-steps", "1", "--json", str(out)]) == 0
    record = json.loads(out.read_text())
    assert record["length"]["mean"] == 1 and record["max_steps"] == 1
    assert f"{record['cut']} of 12 episodes were cut after 1 steps" in capsys.readouterr().out
    assert record["cut"] == 12


def test_any_of_several_seeds_is_evaluated_and_played(known, tmp_path):
    run, out = tmp_path / "run", tmp_path / "eval.json"
    options = ["--seeds", "2", "--total-steps", "48", "--quiet"]
    assert cli.train_main(["Line-test", "--run", str(run), *options]) == 0
    found = []
    for seed in ("0", "1"):
        base = ["Line-test", "--run", str(run), "--policy-seed", seed]
        assert cli.eval_main([*base, "--episodes", "9", "--json", str(out)]) == 0
        found.append(json.loads(out.read_text()))
        film = str(tmp_path / f"{seed}.gif")
        assert cli.play_main([*base, "--steps", "3", "--out", film]) == 0
    assert [record["policy_seed"] for record in found] == [0, 1]
    assert found[0]["return"] != found[1]["return"]


def test_play_writes_a_film(run, tmp_path, capsys):
    out = tmp_path / "film.gif"
    arguments = ["Line-test", "--run", str(run), "--steps", "7", "--sampled", "--seed", "2"]
    assert cli.play_main([*arguments, "--out", str(out)]) == 0
    with Image.open(out) as film:
        assert film.size == (48, 8) and 2 <= film.n_frames <= 8
        assert np.asarray(film.convert("RGB")).max() > 200
    assert cli.play_main([*arguments, "--out", str(tmp_path / "film.avi")]) == 2
    assert "accepted endings are .gif and .mp4" in capsys.readouterr().err


def test_a_film_may_be_an_mp4(tmp_path):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    pictures = (np.full((9, 15, 3), 20 * i, np.uint8) for i in range(6))
    assert write_video(tmp_path / "film.mp4", pictures, 5.0) == 6
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(tmp_path / "film.mp4"), "-f", "rawvideo"]
    command += ["-pix_fmt", "gray", "-loglevel", "error", "-"]
    shown = subprocess.run(command, check=True, capture_output=True).stdout
    frames = np.frombuffer(shown, np.uint8).reshape(6, 10, 16)[:, :9, :15]
    np.testing.assert_allclose(frames.mean(axis=(1, 2)), 20 * np.arange(6), atol=4)
    with pytest.raises(OSError, match="cannot write"):
        write_video(
            tmp_path / "nowhere" / "film.mp4", iter([np.zeros((800, 800, 3), np.uint8)] * 9), 5.0
        )


def test_a_film_needs_its_extra(run, tmp_path, capsys, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    out = str(tmp_path / "film.mp4")
    assert cli.play_main(["Line-test", "--run", str(run), "--steps", "1", "--out", out]) == 2
    assert "install twinenv[video]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Line-tset"], "did you mean 'Line-test'"),
        (["Line-test", "--preset", "best"], "has no preset 'best'; it has default, other"),
        (["Line-test", "--num-minibatches", "3"], "accepted is a divisor of num_envs = 8"),
        (["Line-test", "--env-option", "fast"], "accepted is NAME=VALUE"),
        (["Line-test", "--config", "nowhere.toml"], "cannot read options from nowhere.toml"),
        (["Line-test", "--resume", "nowhere"], "holds no run"),
        (["--seed", "3", "Line-test"], "before the options: twinenv train ENV --seed"),
        (
            ["Line-test", "--total-steps=9", "--resume", "nowhere", "--quiet", "--gamma", "0.9"],
            "--gamma, --total-steps cannot be given with --resume",
        ),
    ],
)
def test_wrong_arguments_are_one_sentence(known, capsys, arguments, words):
    assert cli.train_main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        ("eval", ["--num-envs", "0"], "num_envs is 0; accepted is an integer from 1"),
        ("eval", ["--num-envs", "0", "--backend", "reference"], "num_envs is 0"),
        ("eval", ["--episodes", "0"], "episodes is 0"),
        ("eval", ["--max-steps", "-3"], "max_steps is -3"),
        ("eval", ["--seed", "-1"], "seed is -1; accepted is an integer from 0"),
        ("eval", ["--policy-seed", "1"], "seed is 1; this run has 1, counted from 0"),
        ("eval", ["--backend", "slow"], "accepted is fast or reference"),
        ("play", ["--fps", "0"], "fps is 0.0; accepted is a positive number"),
        ("play", ["--steps", "-1"], "steps is -1; accepted is an integer from 0"),
        ("play", ["--policy-seed", "-1"], "seed is -1; this run has 1"),
    ],
)
def test_wrong_numbers_are_one_sentence(run, tmp_path, capsys, command, arguments, words):
    main, given = cli.eval_main, ["Line-test", "--run", str(run), *arguments]
    if command == "play":
        main, given = cli.play_main, [*given, "--out", str(tmp_path / "film.gif")]
    assert main(given) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


@pytest.mark.parametrize("command", ["train", "eval", "play"])
def test_faults_of_our_own_keep_their_trace(run, tmp_path, monkeypatch, command):
    """Only what the user gave is answered with a sentence."""

    def broken(*args, **more):
        raise ValueError("a fault of ours")

    monkeypatch.setattr(JaxEngine, "advance", broken)
    monkeypatch.setattr(Policy, "step", broken)
    main, given = {
        "train": (cli.train_main, ["--run", str(tmp_path / "run"), "--quiet"]),
        "eval": (cli.eval_main, ["--run", str(run)]),
        "play": (cli.play_main, ["--run", str(run), "--out", str(tmp_path / "film.gif")]),
    }[command]
    with pytest.raises(ValueError, match="a fault of ours"):
        main(["Line-test", *given])


def test_a_run_is_neither_overwritten_nor_mistaken(run, capsys):
    before = (run / "metrics.csv").read_text()
    assert cli.train_main(["Line-test", "--run", str(run)]) == 2
    assert f"continue that run with --resume {run}" in capsys.readouterr().err
    assert cli.eval_main(["PongJAX-v0", "--run", str(run)]) == 2
    assert "is a run of Line-test, not of PongJAX-v0" in capsys.readouterr().err
    assert cli.train_main(["Line-test", "--resume", str(run), "--quiet"]) == 0
    assert (run / "metrics.csv").read_text() == before


def test_a_run_made_in_python_says_what_it_lacks(known, finished, capsys):
    assert cli.eval_main(["Line-test", "--run", str(finished[1])]) == 2
    error = capsys.readouterr().err
    assert "does not say its env_options, preset, until" in error
    assert "twinenv.ppo.evaluate" in error


def test_a_run_can_stop_at_a_target(known, tmp_path):
    folder = tmp_path / "early"
    arguments = ["Line-test", "--run", str(folder), "--until", "0.01", "--quiet"]
    assert cli.train_main(arguments) == 0
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["target_reached_at_step"] == summary["steps"] < 576
