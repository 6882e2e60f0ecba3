"""PufferLib's `pong.h`, compiled on this machine with states that can be set and read."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from pong_jax.params import lengths_of
from pong_jax.reference.buffers import Buffers, params_of
from twinenv import references
from twinenv.verify.pair import Rows, Step

__all__ = ["HeaderPong"]

_FLOATS = ("paddle_yl", "paddle_yr", "ball_x", "ball_y", "ball_vx", "ball_vy")
_SCORES = ("score_l", "score_r")


class HeaderPong:
    """`num_envs` games of `pong.h`, each with a `rand_r` stream of its own, as a verifier backend.

    Args:
        num_envs: number of games.
        frameskip: frames in a step.
        continuous: needs a header of PufferLib 3 or later.
        header: a `pong.h` of the user's; "" takes the installed wheel's.
        **options: fields of `EnvParams`.

    Raises:
        MissingReferenceError: no header, or no C compiler.
        ValueError: continuous play with a header that has none.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        frameskip: int = 1,
        continuous: bool = False,
        header: str = "",
        **options: Any,
    ) -> None:
        path = Path(header) if header else _installed_header()
        self._library, is_3 = _compiled(path)
        if continuous and not is_3:
            raise ValueError(
                f"{path.name} has no continuous mode; give one of PufferLib 3 or later"
            )
        p = params_of(**options)
        self.num_envs = num_envs
        self.buffers = Buffers.allocate(num_envs, np.float32 if is_3 else np.int32)
        self.rng = np.zeros(num_envs, np.uint32)
        lengths = list(lengths_of(p).values())  # in the order of the shim's enumeration
        self._games = ctypes.c_void_p(
            self._library.pong_open(
                num_envs,
                _pointer(np.array(lengths, np.float32)),
                p.max_score,
                frameskip,
                int(continuous),
                *map(_pointer, self.buffers.arrays()),
                _pointer(self.rng),
            )
        )

    def reset(self, seed: int) -> Step:
        """Seed each game's stream and start all games."""
        self.rng[:] = np.random.default_rng(seed).integers(2**32, size=self.num_envs)
        self._library.pong_reset(self._games)
        return Step(self._dump(), self.buffers.observed())

    def step(self, actions: np.ndarray) -> Step:
        """Step all games."""
        self.buffers.actions[:] = np.reshape(actions, self.num_envs)
        self._library.pong_step(self._games)
        return Step(self._dump(), self.buffers.output())

    def load(self, state: Rows) -> None:
        """Set all games' states; the observation buffer becomes that of these states."""
        floats = np.stack([state[name] for name in _FLOATS], axis=-1, dtype=np.float32)
        scores = np.stack([state[name] for name in _SCORES], axis=-1, dtype=np.int16)
        self.rng[:] = state["rng"]
        self._library.pong_load(self._games, _pointer(floats), _pointer(scores))

    def _dump(self) -> Rows:
        floats = np.zeros((self.num_envs, len(_FLOATS)), np.float32)
        scores = np.zeros((self.num_envs, len(_SCORES)), np.int16)
        self._library.pong_dump(self._games, _pointer(floats), _pointer(scores))
        rows: Rows = {name: floats[:, i].copy() for i, name in enumerate(_FLOATS)}
        rows |= {name: scores[:, i].copy() for i, name in enumerate(_SCORES)}
        return rows | {"rng": self.rng.copy()}

    def close(self) -> None:
        """Free the games."""
        if self._games:
            self._library.pong_close(self._games)
            self._games = ctypes.c_void_p()


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _installed_header() -> Path:
    return references.locate("pufferlib") / "pufferlib" / "ocean" / "pong" / "pong.h"


@functools.cache
def _compiled(header: Path) -> tuple[ctypes.CDLL, bool]:
    """The shim built round a header, and whether the header is of PufferLib 3 or later."""
    if not header.is_file():
        raise references.MissingReferenceError(f"no header at {header}; give the path of a pong.h")
    is_3 = "continuous" in header.read_text()
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "pong.so"
        _compile(header, is_3, target)
        library = ctypes.CDLL(str(target))
    library.pong_open.restype = ctypes.c_void_p
    library.pong_open.argtypes = [ctypes.c_int, ctypes.c_void_p, *3 * [ctypes.c_int]]
    library.pong_open.argtypes += 5 * [ctypes.c_void_p]
    return library, is_3


def _compile(header: Path, is_3: bool, target: Path) -> None:
    compiler = _compiler()
    here = Path(__file__).parent
    # PufferLib's own optimisation level; no contraction, so that each operation rounds.
    command = [compiler, "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-w", "-Wl,-Bsymbolic"]
    command += [f"-I{here / 'stub'}", f'-DPONG_H="{header}"', *["-DPUFFER3"][: int(is_3)]]
    done = subprocess.run(
        [*command, str(here / "shim.c"), "-o", str(target), "-lm"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{compiler} could not compile the shim round {header}:\n{done.stderr}")


def _compiler() -> str:
    wanted = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
    for name in (wanted, "cc", "gcc", "clang"):
        if found := shutil.which(name):
            return found
    raise references.MissingReferenceError(
        "no C compiler, which the header reference of Pong needs; install gcc or clang, "
        "or set CC to one"
    )
