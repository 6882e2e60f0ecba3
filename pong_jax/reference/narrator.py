"""Which rules a step of the reference applies, told by running it frame by frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pong_jax.params import EnvParams
from pong_jax.reference.buffers import params_of
from pong_jax.reference.header import HeaderPong
from twinenv.verify.pair import Rows

__all__ = ["EVENTS", "IMPOSSIBLE", "narrate"]

_LEFT = ("left_bounce", "point_won")
_RIGHT = ("right_bounce", "point_lost")
_SPIN = ("spin_up", "spin_down", "speed_limit", "flat_corrected", "clipped_into_court")
_EDGES = ("wall_low", "wall_high", "agent_stopped_low", "agent_stopped_high")
_OPPONENT = ("opponent_stopped_low", "opponent_full_speed")
_ROUND = ("serve_down", "serve_flat", "game_over", "frames_lost", "bounce_overwritten")
EVENTS = (*_LEFT, *_RIGHT, *_SPIN, *_EDGES, *_OPPONENT, *_ROUND)
"""Names of the rule events of a step."""


def narrate(state: Rows, actions: np.ndarray, options: Mapping[str, Any]) -> Rows:
    """Events of one step from each state, as the reference plays it.

    Args:
        state: canonical states.
        actions: one action per row.
        options: environment options; the reference runs with one frame per step.

    Returns:
        bool rows by event name.
    """
    params, frames = params_of(**options), options.get("frameskip", 1)
    games = HeaderPong(len(actions), **(dict(options) | {"frameskip": 1}))
    games.load(state)
    met = {name: np.zeros(len(actions), np.bool_) for name in EVENTS}
    running, before = np.ones(len(actions), np.bool_), state
    for frame in range(frames):
        step = games.step(actions)
        direction = actions if options.get("continuous") else _direction(actions)
        for name, rows in _frame_events(before, direction, step.state, step.output, params).items():
            met[name] |= rows & running
        scored = running & (np.abs(step.output["reward"]) == 1)
        met["frames_lost"] |= scored & (frame < frames - 1)
        met["bounce_overwritten"] |= scored & met["right_bounce"]
        running, before = running & ~scored, step.state
    games.close()
    return met


def _direction(actions: np.ndarray) -> np.ndarray:
    return (actions == 1).astype(np.float32) - (actions == 2).astype(np.float32)


def _frame_events(
    before: Rows, direction: np.ndarray, after: Rows, output: Rows, p: EnvParams
) -> Rows:
    x, y = before["ball_x"] + before["ball_vx"], before["ball_y"] + before["ball_vy"]
    low, high = y < 0, y + p.ball_height > p.height
    won, lost = output["reward"] == 1, output["reward"] == -1
    scored = won | lost
    hit_right = (x + p.ball_width > p.width) & ~scored
    vy = np.where(low | high, -before["ball_vy"], before["ball_vy"])
    spun = vy + p.ball_speed_y_increment * direction
    limited = np.clip(spun, -p.ball_max_speed_y, p.ball_max_speed_y)
    half = p.paddle_height / 2
    yr = before["paddle_yr"] + p.paddle_speed * direction
    delta = before["ball_y"] - (before["paddle_yl"] + half)
    yl = before["paddle_yl"] + np.clip(delta, -p.paddle_speed, p.paddle_speed)
    return {
        "left_bounce": (x < 0) & ~scored,
        "point_won": won,
        "right_bounce": hit_right,
        "point_lost": lost,
        "spin_up": hit_right & (direction > 0),
        "spin_down": hit_right & (direction < 0),
        "speed_limit": hit_right & (limited != spun),
        "flat_corrected": hit_right & (np.abs(limited) < 0.01),
        "clipped_into_court": hit_right & (low | high),
        "wall_low": low,
        "wall_high": high,
        "agent_stopped_low": yr < -half,
        "agent_stopped_high": yr > p.height - half,
        "opponent_stopped_low": yl < -half,
        "opponent_full_speed": np.abs(delta) > p.paddle_speed,
        "serve_down": scored & (after["ball_vy"] < 0),
        "serve_flat": scored & (after["ball_vy"] == 0),
        "game_over": output["terminated"],
    }


_ONE_POINT = "a step ends with its first point, and has at most one serve"
_ONE_ACTION = "the action is one for all frames of a step"
_ONE_KIND = "no step has room for a bounce that is too fast and another that is too flat"

IMPOSSIBLE = {
    ("point_lost", "point_won"): _ONE_POINT,
    ("serve_down", "serve_flat"): _ONE_POINT,
    ("spin_down", "spin_up"): _ONE_ACTION,
    ("agent_stopped_high", "agent_stopped_low"): _ONE_ACTION,
    ("agent_stopped_low", "spin_up"): _ONE_ACTION,
    ("agent_stopped_high", "spin_down"): _ONE_ACTION,
    ("flat_corrected", "speed_limit"): _ONE_KIND,
}
"""Pairs of events that no step of the configurations can have, with the reason."""
