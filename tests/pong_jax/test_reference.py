"""The reference adapters themselves: they move, they draw what they say, they hold states."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from pong_jax.pair import PAIR
from pong_jax.reference import HeaderPong, WheelPong, vector_env
from pong_jax.reference.narrator import EVENTS, narrate
from pong_jax.reference.wheel import _ServeBits
from twinenv import references

pytestmark = pytest.mark.reference


@pytest.fixture(autouse=True)
def installed():
    if problem := references.status("pufferlib").problem:
        pytest.skip(f"PufferLib: {problem}; run `twinenv references install pufferlib`")


@pytest.mark.parametrize("backend", [WheelPong, HeaderPong])
@pytest.mark.parametrize("frameskip", [1, 8])
def test_the_reference_moves(backend, frameskip):
    games = backend(3, frameskip=frameskip)
    first = games.reset(0).output["observation"]
    then = games.step(np.array([0, 1, 2])).output["observation"]
    games.close()
    np.testing.assert_allclose(then[:, 2] - first[:, 2], 10 * frameskip / 500, atol=1e-6)
    np.testing.assert_allclose(
        then[:, 1] - first[:, 1], np.array([0, 8, -8]) * frameskip / 640, atol=1e-6
    )


@pytest.mark.parametrize("seed", [0, 1, 42, 2**31 + 5, 2**32 - 1])
def test_serve_bits_are_foretold(seed):
    bits, library = _ServeBits(), ctypes.CDLL(None)
    bits.seed(seed)
    drawn = [library.rand() & 1 for _ in range(700)]
    np.testing.assert_array_equal(bits.take(np.ones(700, np.bool_)), drawn)


def test_serve_bits_go_to_the_games_that_serve():
    games = WheelPong(64, frameskip=8)
    assert set(np.unique(games.reset(3).draws["serve_bit"])) == {0, 1}
    served = 0
    for _ in range(200):
        step = games.step(np.zeros(64, np.int32))
        scored = np.abs(step.output["reward"]) == 1
        assert not step.draws["serve_bit"][~scored].any()
        served += scored.sum()
    games.close()
    assert served > 100


def test_loaded_states_are_dumped_again():
    state = PAIR.states(np.random.default_rng(0), 50, "frameskip1")
    games = HeaderPong(50)
    games.load(state)
    dumped = games._dump()
    games.close()
    assert {name: rows.dtype for name, rows in dumped.items()} == {
        name: rows.dtype for name, rows in state.items()
    }
    for name, rows in state.items():
        np.testing.assert_array_equal(dumped[name], rows)


def test_header_without_continuous_play_refuses_it():
    with pytest.raises(ValueError, match="has no continuous mode"):
        HeaderPong(1, continuous=True)


def test_missing_header_says_so(tmp_path):
    with pytest.raises(references.MissingReferenceError, match=r"give the path of a pong\.h"):
        HeaderPong(1, header=str(tmp_path / "pong.h"))


def test_missing_wheel_names_the_command(monkeypatch, tmp_path):
    monkeypatch.setenv("TWINENV_CACHE", str(tmp_path))
    with pytest.raises(
        references.MissingReferenceError, match="run `twinenv references install pufferlib`"
    ):
        references.locate("pufferlib")


def test_changed_header_is_not_the_pinned_version(monkeypatch, tmp_path):
    monkeypatch.setenv("TWINENV_CACHE", str(tmp_path))
    header = references.status("pufferlib").path / "pufferlib/ocean/pong/pong.h"
    header.parent.mkdir(parents=True)
    header.write_text("changed")
    assert "is not that of the pinned version" in references.status("pufferlib").problem


def test_narrator_stops_at_the_point():
    """After a point with frames left, the next round's frames are not this step's."""
    state = {name: rows[:1] for name, rows in PAIR.fast("frameskip8").reset(0, 1).state.items()}
    state |= {"ball_x": np.float32([460]), "paddle_yr": np.float32([0])}
    met = narrate(state, np.zeros(1, np.int32), {"frameskip": 200})
    found = {name for name in EVENTS if met[name][0]}
    assert found >= {"point_lost", "frames_lost"}
    assert not found & {"left_bounce", "right_bounce", "wall_low", "wall_high", "point_won"}


def test_vector_environment_resets_in_the_same_step():
    games = vector_env(32, frameskip=8, max_score=1)
    obs, _ = games.reset(seed=1)
    assert games.observation_space.contains(obs)
    ended = np.zeros(32, np.bool_)
    for _ in range(40):
        obs, reward, terminated, truncated, info = games.step(np.zeros(32, np.int32))
        assert not truncated.any()
        np.testing.assert_array_equal(terminated, np.abs(reward) == 1)
        np.testing.assert_array_equal(info["point"], np.where(terminated, reward, 0))
        np.testing.assert_allclose(obs[terminated][:, 2], 0.2, atol=1e-6)
        ended |= terminated
    games.close()
    assert ended.all()
