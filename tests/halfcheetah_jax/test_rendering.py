"""Pictures and films, ours and MuJoCo's own."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cheetahs import started, states

import halfcheetah_jax
from twinenv.references import MissingReferenceError


def test_pictures_are_those_of_the_pose_and_follow_the_torso():
    env, params = halfcheetah_jax.make()
    state = jax.tree.map(lambda leaf: leaf[0], states(np.zeros((1, 9)), np.zeros((1, 9))))
    picture = env.render(state, params)
    assert picture.shape == (240, 480, 3) and picture.dtype == np.uint8
    legs = np.argwhere((picture == (153, 94, 51)).all(-1) | (picture == (179, 115, 66)).all(-1))
    # The feet hang 7.6 cm above the floor, which is at row 200, at 130 rows a metre.
    assert abs(legs[:, 0].max() - (200 - 0.0764 * 130)) < 1.5
    far = env.render(state.replace(qpos=state.qpos.at[0].set(2.0)), params)  # two tiles on
    np.testing.assert_array_equal(far, picture)
    half = env.render(state.replace(qpos=state.qpos.at[0].set(0.5)), params)
    assert (half[:200] == picture[:200]).all() and (half[201:] != picture[201:]).any()
    turned = env.render(state.replace(qpos=state.qpos.at[2].set(math.pi)), params)
    assert (turned[:200] != picture[:200]).any()


def test_what_cannot_be_drawn_is_refused():
    env, _ = halfcheetah_jax.make()
    batch = started(0)
    with pytest.raises(TypeError, match=r"state.qpos is \[6, 9\]"):
        env.render(batch)
    one = jax.tree.map(lambda leaf: leaf[0], batch)
    with pytest.raises(ValueError, match="accepted are finite numbers"):
        env.render(one.replace(qpos=one.qpos.at[3].set(jnp.nan)))


FILM = """
import sys
sys.modules["mujoco"] = None  # not to be imported
from pathlib import Path
import jax.numpy as jnp
import halfcheetah_jax
from twinenv.ppo.play import frames, write_video

class Still:
    def initial_carry(self, num_envs):
        return ()
    def step(self, obs, mask, carry, begins, key, *, greedy):
        return jnp.zeros((len(obs), 6), jnp.float32), carry

env, params = halfcheetah_jax.make(frame_skip=1)
shown = list(frames(env, params, Still(), steps=3, seed=0, greedy=True))
for name in sys.argv[1:]:
    print(write_video(Path(name), iter(shown), 20))
"""


def test_films_are_made_without_mujoco(tmp_path):
    pytest.importorskip("imageio_ffmpeg", reason="MP4 needs twinenv[video]")
    from PIL import Image

    names = [str(tmp_path / name) for name in ("film.gif", "film.mp4")]
    done = python(FILM, *names)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4", "4"]
    with Image.open(names[0]) as film:
        assert (film.n_frames, film.size) == (4, (480, 240))
    with open(names[1], "rb") as film:
        assert film.read(12)[4:8] == b"ftyp"


EXACT = """
import gymnasium, mujoco
import numpy as np
from halfcheetah_jax.reference.rendering import render_trajectory
from twinenv.references import MissingReferenceError

mujoco.set_mju_user_warning(lambda text: None)
qpos = np.random.default_rng(0).uniform(-0.3, 0.3, (3, 9))
qpos[:, 0] = 0, 2, 30
try:
    pictures = render_trajectory(qpos, 120, 160)
except MissingReferenceError as error:
    raise SystemExit(f"no OpenGL: {error}")
other = gymnasium.make("HalfCheetah-v5", render_mode="rgb_array", width=160, height=120)
other.reset(seed=0)
assert pictures.shape == (3, 120, 160, 3) and pictures.dtype == np.uint8
assert pictures.std() > 10 and (pictures[0] != pictures[1]).any()
for row, picture in zip(qpos, pictures, strict=True):
    other.unwrapped.set_state(row, np.zeros(9))
    np.testing.assert_array_equal(picture, other.render())
"""


def test_exact_pictures_are_those_of_gymnasium():
    pytest.importorskip("mujoco", reason="MuJoCo is not installed; pip install mujoco")
    done = python(EXACT, MUJOCO_GL=os.environ.get("MUJOCO_GL") or "egl")
    if "no OpenGL" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr


def python(code, *args, **environment):
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_exact_pictures_say_what_is_missing(monkeypatch):
    from halfcheetah_jax.reference.rendering import render_trajectory

    for bad in (np.zeros(9), np.zeros((2, 8)), np.zeros((0, 9)), np.full((1, 9), np.nan)):
        with pytest.raises(ValueError, match=r"accepted are finite positions \[T, 9\]"):
            render_trajectory(bad)
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed; pip install mujoco")

    def no_context(*_):
        raise RuntimeError("no context")

    monkeypatch.setattr(mujoco, "Renderer", no_context)
    with pytest.raises(MissingReferenceError, match=r"no context.*MUJOCO_GL=egl"):
        render_trajectory(np.zeros((1, 9)))
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingReferenceError, match="pip install mujoco"):
        render_trajectory(np.zeros((1, 9)))
