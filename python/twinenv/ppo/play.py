"""Pictures of a policy at play."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import math
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from twinenv.ppo.policy import Policy
from twinenv.ppo.views import view_of

__all__ = ["check_video", "frames", "write_video"]


def frames(
    env: Any, params: Any, policy: Policy, *, steps: int, seed: int, greedy: bool
) -> Iterator[np.ndarray]:
    """One picture `uint8[H, W, 3]` for the first state and each that follows.

    Args:
        env: a twinenv environment that has `render`.
        params: its parameters.
        policy: who plays.
        steps: steps to play; an episode that ends is followed by the next.
        seed: of environment and policy.
        greedy: likeliest actions instead of samples.
    """
    view = view_of(env, params)
    reset = jax.jit(jax.vmap(view.reset, in_axes=(0, None)))
    step = jax.jit(jax.vmap(view.step, in_axes=(0, 0, 0, None)))
    masks = jax.jit(jax.vmap(view.mask, in_axes=(0, None)))
    key, first = jax.random.split(jax.random.key(seed))
    obs, state = reset(first[None], params)
    carry, begins = policy.initial_carry(1), np.ones(1, np.bool_)
    yield _picture(env, state, params)
    for _ in range(steps):
        key, key_act, key_step = jax.random.split(key, 3)
        mask = masks(state, params)
        action, carry = policy.step(obs, mask, carry, begins, key_act, greedy=greedy)
        seen = step(key_step[None], state, action, params)
        obs, state, begins = seen.obs, seen.state, seen.done
        yield _picture(env, state, params)


def _picture(env: Any, state: Any, params: Any) -> np.ndarray:
    one = jax.tree.map(lambda leaf: np.asarray(leaf[0]), state)
    return np.asarray(env.render(one, params))


def write_video(path: Path, pictures: Iterator[np.ndarray], fps: float) -> int:
    """Write a GIF or an MP4, by the ending of the name; returns the number of pictures.

    Raises:
        ValueError: see `check_video`.
        OSError: writing failed.
    """
    check_video(path, fps)
    return (_write_gif if path.suffix == ".gif" else _write_mp4)(path, pictures, fps)


def check_video(path: Path, fps: float) -> None:
    """Refuse another ending, MP4 without the `video` extra, and impossible speeds.

    Raises:
        ValueError: one of these.
    """
    if path.suffix not in (".gif", ".mp4"):
        raise ValueError(f"cannot write {path}: accepted endings are .gif and .mp4")
    if path.suffix == ".mp4" and importlib.util.find_spec("imageio_ffmpeg") is None:
        raise ValueError(
            f"writing {path} needs the package imageio-ffmpeg; install twinenv[video], or choose "
            "a name that ends in .gif"
        )
    if not 0 < fps < math.inf:
        raise ValueError(f"fps is {fps}; accepted is a positive number")


def _write_gif(path: Path, pictures: Iterator[np.ndarray], fps: float) -> int:
    from PIL import Image

    # One palette for all: the first picture's; computing one for each takes most of the time.
    first = Image.fromarray(next(pictures)).quantize(256)
    plain = Image.Dither.NONE
    rest = [Image.fromarray(p).quantize(palette=first, dither=plain) for p in pictures]
    duration = round(1000 / fps)
    first.save(path, save_all=True, append_images=rest, duration=duration, loop=0)
    return 1 + len(rest)


def _write_mp4(path: Path, pictures: Iterator[np.ndarray], fps: float) -> int:
    import imageio_ffmpeg

    first = next(pictures)
    height, width = first.shape[:2]
    # The codec needs an even size.
    even, rate = "pad=ceil(iw/2)*2:ceil(ih/2)*2", str(fps)
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", rate, "-i", "-"]
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error", *raw]
    command += ["-vf", even, "-pix_fmt", "yuv420p", str(path)]
    count = 0
    # imageio_ffmpeg's own writer forks, which may hang a process that runs JAX.
    ffmpeg = subprocess.Popen(command, stdin=subprocess.PIPE)
    with contextlib.suppress(BrokenPipeError), ffmpeg:
        assert ffmpeg.stdin is not None
        for picture in itertools.chain([first], pictures):
            ffmpeg.stdin.write(np.ascontiguousarray(picture).data)
            count += 1
    if ffmpeg.returncode:
        raise OSError(f"cannot write {path}: ffmpeg ended with status {ffmpeg.returncode}")
    return count
