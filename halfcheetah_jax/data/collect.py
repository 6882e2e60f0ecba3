"""Collects states of the HalfCheetah that a trained policy meets in MuJoCo.

    twinenv train HalfCheetahJAX-v0 --seed 1 --run runs/cheetah
    python halfcheetah_jax/data/collect.py runs/cheetah

Needs the packages `mujoco` and `gymnasium`; writes `trained_states.npz` and its line of
`MANIFEST.json` beside this file. Episodes differ in their start and in the policy's samples.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

from halfcheetah_jax.reference.simulation import Simulation
from twinenv.ppo import Policy, load_policy

_HERE = Path(__file__).parent
_NAME = "trained_states.npz"
_EPISODES, _STEPS, _FRAME_SKIP = 20, 1_000, 5
_EVERY = 49  # time steps between two states that are kept: all places within an action have theirs

Row = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def played(policy: Policy) -> Iterator[Row]:
    """Positions, speeds, the solver's start and controls, before every 49th time step.

    Args:
        policy: that plays, by samples.
    """
    rng, key = np.random.default_rng(0), jax.random.key(0)
    simulations = [Simulation() for _ in range(_EPISODES)]
    for each in simulations:
        start = rng.uniform(-0.1, 0.1, 9), rng.normal(0, 0.1, 9)
        each.load(*start, np.zeros(9), np.zeros(6))
    for number in range(_STEPS):
        data = [each.data for each in simulations]
        obs = np.stack([np.concatenate([d.qpos[1:], d.qvel]) for d in data]).astype(np.float32)
        controls = np.asarray(policy.act(obs, None, jax.random.fold_in(key, number)))
        for index, (each, control) in enumerate(zip(simulations, controls, strict=True)):
            each.data.ctrl[:] = control
            for time in range(number * _FRAME_SKIP, (number + 1) * _FRAME_SKIP):
                if (time + index) % _EVERY == 0:
                    d = each.data
                    yield d.qpos.copy(), d.qvel.copy(), d.qacc_warmstart.copy(), d.ctrl.copy()
                each.step()


def main(run: str) -> None:
    """Write the states and their line of the manifest.

    Args:
        run: folder of the run whose policy plays.
    """
    columns = zip(*played(load_policy(run)), strict=True)
    qpos, qvel, warm, ctrl = (np.stack(rows).astype(np.float32) for rows in columns)
    np.savez_compressed(_HERE / _NAME, qpos=qpos, qvel=qvel, qacc_warmstart=warm, ctrl=ctrl)
    manifest = json.loads((_HERE / "MANIFEST.json").read_text())
    manifest["sha256"][_NAME] = hashlib.sha256((_HERE / _NAME).read_bytes()).hexdigest()
    manifest["trained_states"] = {
        "source": "a policy that was trained on the twin, playing in MuJoCo",
        "command": "twinenv train HalfCheetahJAX-v0 --seed 1 --run RUN; "
        "python halfcheetah_jax/data/collect.py RUN",
    }
    (_HERE / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
