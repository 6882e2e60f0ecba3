"""Situations to verify Pong in: openings, random states at the rules' boundaries, policies."""

from __future__ import annotations

import numpy as np

from pong_jax.params import EnvParams, is_integral
from twinenv.verify.pair import Policy, Rows, Step

__all__ = ["POLICIES", "SEED_OF_BIT", "opening", "random_states"]

SEED_OF_BIT = np.array([0, 1], np.uint32)
"""A `rand_r` seed whose next serve bit is 0, and one whose is 1."""

_STILL, _UP, _DOWN = 0, 1, 2
_NUMBERS = ("paddle_yl", "paddle_yr", "ball_x", "ball_y", "ball_vx", "ball_vy")


def opening(p: EnvParams, num_rows: int) -> Rows:
    """Canonical states at the serve, which goes flat."""
    values = {
        "paddle_yl": p.height / 2 - p.paddle_height / 2,
        "paddle_yr": p.height / 2 - p.paddle_height / 2,
        "ball_x": p.width / 5,
        "ball_y": p.height / 2 - p.ball_height / 2,
        "ball_vx": p.ball_initial_speed_x,
        "ball_vy": 0.0,
    }
    rows = {name: np.full(num_rows, value, np.float32) for name, value in values.items()}
    scores = {name: np.zeros(num_rows, np.int16) for name in ("score_l", "score_r")}
    return rows | scores | {"rng": np.zeros(num_rows, np.uint32)}


def random_states(rng: np.random.Generator, num_rows: int, p: EnvParams) -> Rows:
    """States that play can reach, with every quantity often at or next to a value that decides.

    Heights are drawn near the walls and near the edges of the paddles, the ball near a side, the
    vertical speed near 0 and its limits, and the scores near the end of the game.
    """
    half, fast = p.paddle_height / 2, p.ball_max_speed_y
    yr = _near(rng, num_rows, -half, p.height - half, (-half, p.height - half))
    x = _near(rng, num_rows, 0, p.width - p.ball_width, (0, p.width - p.ball_width))
    vx = p.ball_initial_speed_x * rng.choice([-1.0, 1.0], num_rows)
    vy = _near(rng, num_rows, -fast, fast, (-fast, 0, fast))
    y = _near(rng, num_rows, 0, p.height - p.ball_height, (0, p.height - p.ball_height))
    edges = np.stack([yr - p.ball_height, yr + p.paddle_height], axis=-1)
    at_edge = edges[np.arange(num_rows), rng.integers(0, 2, num_rows)] - vy
    at_edge += _steps(rng, num_rows)
    y = np.where(rng.random(num_rows) < 0.4, np.clip(at_edge, 0, p.height - p.ball_height), y)
    away = np.where(rng.random(num_rows) < 0.3, 5, 2) * p.paddle_speed * _steps(rng, num_rows)
    yl = np.clip(y - half + away, -half, p.height - half)
    values = (yl, yr, x, y, vx, vy)
    rows = {name: _number(value, p) for name, value in zip(_NUMBERS, values, strict=True)}
    for name in ("score_l", "score_r"):
        last = rng.random(num_rows) < 0.5
        score = np.where(last, p.max_score - 1, rng.integers(0, p.max_score, num_rows))
        rows[name] = score.astype(np.int16)
    return rows | {"rng": rng.integers(2**32, size=num_rows, dtype=np.uint32)}


def _near(
    rng: np.random.Generator, num_rows: int, low: float, high: float, at: tuple[float, ...]
) -> np.ndarray:
    """Uniform numbers, half of them replaced by ones within two units of those in `at`."""
    uniform = rng.uniform(low, high, num_rows)
    near = rng.choice(np.asarray(at, np.float64), num_rows) + _steps(rng, num_rows)
    return np.clip(np.where(rng.random(num_rows) < 0.5, near, uniform), low, high)


def _steps(rng: np.random.Generator, num_rows: int) -> np.ndarray:
    return rng.integers(-2, 3, num_rows).astype(np.float64)


def _number(values: np.ndarray, p: EnvParams) -> np.ndarray:
    # Quarters are exact in float32; whole numbers where play never leaves them.
    grid = 1.0 if is_integral(p) else 4.0
    return (np.floor(values * grid) / grid).astype(np.float32)


def _random(rng: np.random.Generator, last: Step) -> np.ndarray:
    return rng.integers(0, 3, len(last.output["observation"]), dtype=np.int32)


def _follow(obs: np.ndarray, offset: np.ndarray | float = 0.0) -> np.ndarray:
    """Move the paddle's centre to the ball's, or to an offset from it (in courts' heights)."""
    # The ball's centre is half its height (32 of 640 on the default court) above its edge.
    above = obs[:, 3] + 16 / 640 - obs[:, 1] + offset
    return np.where(above > 0.01, _UP, np.where(above < -0.01, _DOWN, _STILL))


def _tracking(rng: np.random.Generator, last: Step) -> np.ndarray:
    """Follow the ball in four of five steps, else act at random."""
    obs = last.output["observation"]
    at_random = rng.integers(0, 3, len(obs))
    return np.where(rng.random(len(obs)) < 0.8, _follow(obs), at_random).astype(np.int32)


def _spinning(rng: np.random.Generator, last: Step) -> np.ndarray:
    """Meet the ball while moving the way it goes, so that it gets faster and faster."""
    obs = last.output["observation"]
    upwards = np.where(obs[:, 5] == 0.5, rng.random(len(obs)) < 0.5, obs[:, 5] > 0.5)
    waiting = _follow(obs, np.where(upwards, -0.04, 0.04))
    arriving = (obs[:, 2] > 0.77) & (obs[:, 4] > 0.5)
    return np.where(arriving, np.where(upwards, _UP, _DOWN), waiting).astype(np.int32)


POLICIES: dict[str, Policy] = {
    "tracking": _tracking,
    "random": _random,
    "spinning": _spinning,
}
