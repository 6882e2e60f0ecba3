"""States to verify the HalfCheetah in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twinenv.verify.pair import Policy, Step

if TYPE_CHECKING:
    from halfcheetah_jax.reference import Simulation

__all__ = [
    "POLICIES",
    "States",
    "extreme_states",
    "mixed_states",
    "near_states",
    "played_states",
    "trained_states",
]

_TRAINED = Path(__file__).parent / "data" / "trained_states.npz"
_EVERY = 7  # steps between two states that are kept
_EPISODE = 140


class States(NamedTuple):
    """`float64[n, ...]` each: nine positions, speeds, accelerations to begin from; six controls.

    All are rounded to float32, so that both precisions begin at the same place.
    """

    qpos: np.ndarray
    qvel: np.ndarray
    qacc_warmstart: np.ndarray
    ctrl: np.ndarray


def mixed_states(rng: np.random.Generator, count: int, simulation: Simulation) -> States:
    """A third of random play, a third of tumbling, a fifth of running, the rest extremes.

    The extremes come last.
    """
    third, fifth = count // 3, count // 5
    parts = (
        played_states(rng, third, simulation),
        played_states(rng, third, simulation, tumbling=True),
        trained_states(rng, fifth),
        extreme_states(rng, count - 2 * third - fifth),
    )
    return States(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def played_states(
    rng: np.random.Generator, count: int, simulation: Simulation, tumbling: bool = False
) -> States:
    """States on the way of random controls, each held for a few steps.

    Args:
        rng: random numbers.
        count: of states.
        simulation: that plays.
        tumbling: begin each episode in any pose and thrown, above the floor.
    """
    rows: list[tuple[np.ndarray, ...]] = []
    while len(rows) < count:
        qpos, qvel = rng.uniform(-0.1, 0.1, 9), rng.normal(0, 0.1, 9)
        if tumbling:
            qpos = np.concatenate([[0.0, rng.uniform(0.3, 1.0), rng.uniform(-4, 4)], qpos[3:] * 8])
            qvel = rng.normal(0, 3, 9)
        simulation.load(qpos, qvel, np.zeros(9), np.zeros(6))
        for time in range(_EPISODE):
            if time % _EVERY == 0:
                ctrl = rng.uniform(-1.2, 1.2, 6)
                data = simulation.data
                data.ctrl[:] = ctrl
                rows.append((data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy(), ctrl))
            simulation.step()
    return _rounded(*(np.stack(part) for part in zip(*rows[:count], strict=True)))


def trained_states(rng: np.random.Generator, count: int) -> States:
    """Near states on the way of a trained policy, which runs at about 6 m/s."""
    with np.load(_TRAINED) as file:
        parts = [file[name].astype(np.float64) for name in States._fields]
    rows = rng.integers(len(parts[0]), size=count)
    qpos, qvel, warm, ctrl = (part[rows] for part in parts)
    qpos += rng.normal(0, 0.01, qpos.shape)
    qvel += rng.normal(0, 0.1, qvel.shape)
    return _rounded(qpos, qvel, warm, ctrl)


def extreme_states(rng: np.random.Generator, count: int) -> States:
    """Any pose, up to all sixteen ends deep in the floor, speeds to about 30."""
    root = np.stack(
        [rng.uniform(-80, 80, count), rng.uniform(-0.75, 0.3, count), rng.uniform(-7, 7, count)], 1
    )
    qpos = np.concatenate([root, rng.uniform(-1.3, 1.3, (count, 6))], axis=1)
    qvel, warm = rng.normal(0, 10, (count, 9)), rng.normal(0, 100, (count, 9))
    return _rounded(qpos, qvel, warm, rng.uniform(-1.3, 1.3, (count, 6)))


def _rounded(*parts: np.ndarray) -> States:
    return States(*(part.astype(np.float32).astype(np.float64) for part in parts))


def near_states(rng: np.random.Generator, count: int) -> States:
    """Extreme states, and as many near the start of an episode and near the limits of the limbs."""
    found = extreme_states(rng, count)
    near = rng.random(count) < 0.7
    qpos = rng.uniform(-0.2, 0.2, (count, 9)) * [1, 1, 1, 6, 6, 6, 6, 6, 6]
    qpos[:, 1] = rng.uniform(-0.2, 0.2, count)
    found.qpos[near] = qpos[near]
    found.qvel[near] = rng.normal(0, 2, (count, 9))[near]
    return _rounded(*found)


def _uniform(rng: np.random.Generator, last: Step) -> np.ndarray:
    return rng.uniform(-1.0, 1.0, (_rows(last), 6)).astype(np.float32)


def _extreme(rng: np.random.Generator, last: Step) -> np.ndarray:
    return rng.choice([-1.3, 1.3], (_rows(last), 6)).astype(np.float32)


def _still(rng: np.random.Generator, last: Step) -> np.ndarray:
    return np.zeros((_rows(last), 6), np.float32)


def _rows(last: Step) -> int:
    return len(last.output["observation"])


POLICIES: dict[str, Policy] = {"random": _uniform, "full": _extreme, "still": _still}
"""Ways to play, by name."""
