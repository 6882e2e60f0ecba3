"""What holds in every step of Pong, and relations between its configurations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pong_jax.situations import opening
from twinenv.verify.pair import Rows, Step

if TYPE_CHECKING:
    from pong_jax.pair import FastPong

__all__ = ["INVARIANTS", "RELATIONS"]

Check = Callable[[Rows, np.ndarray, Step, "FastPong"], np.ndarray]
Relation = Callable[["FastPong", Rows, np.ndarray], np.ndarray]


def _scored(step: Step) -> np.ndarray:
    return np.abs(step.output["reward"]) == 1


def _paddles_inside(before: Rows, actions: np.ndarray, step: Step, fast: FastPong) -> np.ndarray:
    p = fast.params
    edges = [step.state["paddle_yl"], step.state["paddle_yr"]]
    inside = [(y >= -p.paddle_height / 2) & (y <= p.height - p.paddle_height / 2) for y in edges]
    return np.logical_and(*inside)


def _ball_inside(before: Rows, actions: np.ndarray, step: Step, fast: FastPong) -> np.ndarray:
    p, s = fast.params, step.state
    over = max(p.ball_max_speed_y, p.ball_initial_speed_y)
    x_ok = (s["ball_x"] >= -p.ball_initial_speed_x) & (s["ball_x"] <= p.width - p.ball_width)
    y_ok = (s["ball_y"] >= -over) & (s["ball_y"] <= p.height - p.ball_height + over)
    return x_ok & y_ok


def _speeds(before: Rows, actions: np.ndarray, step: Step, fast: FastPong) -> np.ndarray:
    p, s = fast.params, step.state
    return (np.abs(s["ball_vx"]) == p.ball_initial_speed_x) & (
        np.abs(s["ball_vy"]) <= max(p.ball_max_speed_y, p.ball_initial_speed_y)
    )


def _rewards(before: Rows, actions: np.ndarray, step: Step, fast: FastPong) -> np.ndarray:
    return np.isin(step.output["reward"], np.array([-1, 0, 0.1, 1], np.float32))


def _scores(before: Rows, actions: np.ndarray, step: Step, fast: FastPong) -> np.ndarray:
    over, reward, s = step.output["terminated"], step.output["reward"], step.state
    left = np.where(over, 0, before["score_l"] + (reward == -1))
    right = np.where(over, 0, before["score_r"] + (reward == 1))
    full = np.where(reward == 1, before["score_r"], before["score_l"]) + 1 == fast.params.max_score
    counted = (s["score_l"] == left) & (s["score_r"] == right)
    return counted & (over == (_scored(step) & full))


def _new_round(before: Rows, actions: np.ndarray, step: Step, fast: FastPong) -> np.ndarray:
    served, s = opening(fast.params, 1), step.state
    names = ("paddle_yl", "paddle_yr", "ball_x", "ball_y", "ball_vx")
    at_serve = np.logical_and.reduce([s[name] == served[name][0] for name in names])
    down = s["ball_vy"] == -fast.params.ball_initial_speed_y
    return ~_scored(step) | (at_serve & (down | (s["ball_vy"] == 0)))


def _chance(before: Rows, actions: np.ndarray, step: Step, fast: FastPong) -> np.ndarray:
    return (step.state["rng"] != before["rng"]) == _scored(step)


def _observed(before: Rows, actions: np.ndarray, step: Step, fast: FastPong) -> np.ndarray:
    fresh = fast.observe(step.state)
    same = np.all(step.output["observation"] == fresh, axis=-1)
    return same | (_scored(step) & ~step.output["terminated"])


INVARIANTS: dict[str, Check] = {
    "paddles stay in the court": _paddles_inside,
    "the ball is at most one frame outside": _ball_inside,
    "speeds stay in their limits": _speeds,
    "rewards are -1, 0, 0.1 or 1": _rewards,
    "scores count the points and end the game": _scores,
    "a point starts a round": _new_round,
    "a serve, and nothing else, draws": _chance,
    "the observation is the state's, but for a point": _observed,
}


@functools.cache
def _other(options: tuple[tuple[str, Any], ...]) -> FastPong:
    from pong_jax.pair import FastPong

    return FastPong(dict(options))


def _variant(fast: FastPong, **changes: Any) -> FastPong:
    return _other(tuple(sorted((dict(fast.options) | changes).items())))


def _equal(ours: Step, theirs: Step) -> np.ndarray:
    pairs = [(ours.state[name], theirs.state[name]) for name in ours.state]
    pairs += [(ours.output[name], theirs.output[name]) for name in ("reward", "terminated")]
    return np.logical_and.reduce([a == b for a, b in pairs])


def _numbers_agree(fast: FastPong, state: Rows, actions: np.ndarray) -> np.ndarray:
    return _equal(
        fast.step(state, actions, {}), _variant(fast, number="float32").step(state, actions, {})
    )


def _fresh_observation(fast: FastPong, state: Rows, actions: np.ndarray) -> np.ndarray:
    ours, fresh = fast.step(state, actions, {}), _variant(fast, stale_observation=False)
    theirs = fresh.step(state, actions, {})
    seen = np.all(theirs.output["observation"] == fast.observe(theirs.state), axis=-1)
    return _equal(ours, theirs) & seen


def _frame_by_frame(fast: FastPong, state: Rows, actions: np.ndarray) -> np.ndarray:
    ours, single = fast.step(state, actions, {}), _variant(fast, frameskip=1)
    now = Step(state, {"reward": np.zeros(len(actions), np.float32)})
    reward, running = now.output["reward"], np.ones(len(actions), np.bool_)
    over = np.zeros(len(actions), np.bool_)
    for _ in range(fast.env.frameskip):
        then = single.step(now.state, actions, {})
        kept = {k: np.where(running, then.state[k], now.state[k]) for k in now.state}
        changed = running & (then.output["reward"] != 0)
        reward = np.where(changed, then.output["reward"], reward)
        over |= running & then.output["terminated"]
        running &= ~_scored(then)
        now = Step(kept, {})
    return _equal(ours, Step(now.state, {"reward": reward, "terminated": over}))


RELATIONS: dict[str, Relation] = {
    "int16 and float32 play the same game": _numbers_agree,
    "without the stale observation the game is the same": _fresh_observation,
    "a step is its frames, up to a point": _frame_by_frame,
}
