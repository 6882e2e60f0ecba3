"""PufferLib's own compiled Pong, as its wheel ships it."""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pong_jax.reference.buffers import Buffers, params_of
from twinenv import references
from twinenv.verify.pair import Step

__all__ = ["WheelPong"]


class WheelPong:
    """`num_envs` games of `CyPong`, as a verifier backend.

    All games share the C library's `rand`, which this class seeds and whose serve bits it reports
    as draws. States can be neither set nor read.

    Raises:
        MissingReferenceError: PufferLib is not installed.
        RuntimeError: the extension was bound to another library's `step` and does not move.
    """

    def __init__(self, num_envs: int, *, frameskip: int = 1, **options: Any) -> None:
        p = params_of(**options)
        if options.get("continuous"):
            raise ValueError("continuous is True; PufferLib 2.0.2 only knows False")
        self.num_envs = num_envs
        self.buffers = Buffers.allocate(num_envs)
        self._bits = _ServeBits()
        self._games = _extension().CyPong(
            *self.buffers.arrays(),
            num_envs,
            p.width,
            p.height,
            p.paddle_width,
            p.paddle_height,
            p.ball_width,
            p.ball_height,
            p.paddle_speed,
            p.ball_initial_speed_x,
            p.ball_initial_speed_y,
            p.ball_max_speed_y,
            p.ball_speed_y_increment,
            p.max_score,
            frameskip,
        )

    def reset(self, seed: int) -> Step:
        """Seed the shared generator and start all games."""
        self._bits.seed(seed)
        bits = self._bits.take(np.ones(self.num_envs, np.bool_))
        self._games.reset()
        return Step({}, self.buffers.observed(), {"serve_bit": bits})

    def step(self, actions: np.ndarray) -> Step:
        """Step all games; draws hold the serve bit that each used, 0 where it used none."""
        self.buffers.actions[:] = actions
        self._games.step()
        output = self.buffers.output()
        bits = self._bits.take(np.abs(output["reward"]) == 1)
        return Step({}, output, {"serve_bit": bits})

    @property
    def raw_step(self) -> Callable[[], None]:
        """PufferLib's own method: steps all games with the actions in the buffer."""
        return self._games.step

    def load(self, state: Any) -> None:
        """Not possible with the compiled extension."""
        raise RuntimeError("PufferLib's wheel cannot set states; use the header reference")

    def close(self) -> None:
        """Free the games."""
        self._games.close()


class _ServeBits:
    """Foretells the C library's `rand`, of which every serve uses the lowest bit.

    glibc's additive generator is computed here from the same seed, so that the real one, which the
    extension calls, is left alone.
    """

    _LAG, _SHORT, _SKIP = 31, 3, 310

    def seed(self, seed: int) -> None:
        ctypes.CDLL(None).srand(ctypes.c_uint(seed % 2**32))
        value = seed % 2**32 or 1
        words = [value]
        for _ in range(1, self._LAG):
            signed = value - 2**32 if value >= 2**31 else value
            value = _schrage(signed) % 2**32
            words.append(value)
        self._words = np.array(words[self._SHORT :] + words[: self._SHORT], np.uint32)
        self._ready = np.zeros(0, np.uint32)
        self._draw(self._SKIP)

    def take(self, needed: np.ndarray) -> np.ndarray:
        """uint32 serve bits for the games that need one, in order; 0 elsewhere."""
        bits = np.zeros(needed.shape, np.uint32)
        bits[needed] = self._draw(int(needed.sum()))
        return bits

    def _draw(self, count: int) -> np.ndarray:
        while len(self._ready) < count:
            self._ready = np.concatenate([self._ready, self._block()])
        drawn, self._ready = self._ready[:count], self._ready[count:]
        return (drawn >> 1) & 1

    def _block(self) -> np.ndarray:
        # x[i] = x[i - 31] + x[i - 3]: three at a time do not depend on each other.
        made = []
        for _ in range(64):
            head = self._words[: self._SHORT] + self._words[-self._SHORT :]
            self._words = np.concatenate([self._words[self._SHORT :], head])
            made.append(head)
        return np.concatenate(made)


def _schrage(value: int) -> int:
    """16807 * value mod (2**31 - 1) as glibc's srandom computes it, for a signed 32-bit value."""
    high, low = int(value / 127773), value - int(value / 127773) * 127773
    word = 16807 * low - 2836 * high
    return word + 2147483647 if word < 0 else word


@functools.cache
def _extension() -> Any:
    folder = references.locate("pufferlib") / "pufferlib" / "ocean" / "pong"
    path = next(Path(folder).glob("cy_pong.*.so"), None)
    if path is None:
        raise references.MissingReferenceError(
            f"reference pufferlib has no compiled Pong for Python {sys.version_info[:2]} "
            "on this platform"
        )
    # The extension calls its own global function `step`; the C library has one of that name too,
    # and unless the library prefers its own symbols, games silently never move.
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)
    try:
        loader = importlib.machinery.ExtensionFileLoader("cy_pong", str(path))
        spec = importlib.util.spec_from_file_location("cy_pong", path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    finally:
        sys.setdlopenflags(flags)
    _assert_moves(module)
    return module


def _assert_moves(module: Any) -> None:
    buffers = Buffers.allocate(1)
    games = module.CyPong(*buffers.arrays(), 1, 500, 640, 20, 70, 32, 32, 8, 10, 1, 13, 3, 21, 1)
    games.reset()
    before = buffers.observations.copy()
    games.step()
    moved = not np.array_equal(before, buffers.observations)
    games.close()
    if not moved:
        raise RuntimeError(
            "PufferLib's Pong does not move: its extension is bound to another library's `step`; "
            "load it with RTLD_DEEPBIND before anything else loads it"
        )
