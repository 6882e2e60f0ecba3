"""Named situations of Pong: one rule each, or two that meet.

Numbers refer to the default court: the ball reaches the right side when its left edge passes 468
and the left side when it passes 0; a paddle is 70 high, the ball 32.
"""

from __future__ import annotations

from typing import Any

from pong_jax.params import EnvParams
from pong_jax.situations import SEED_OF_BIT, opening
from twinenv.verify.pair import Scenario

__all__ = ["SCENARIOS"]

_STILL, _UP, _DOWN, _NO_SUCH = 0, 1, 2, 7
_DOWN_NEXT, _FLAT_NEXT = SEED_OF_BIT

_TO_LEFT = {"ball_x": 8, "ball_vx": -10, "ball_y": 300, "ball_vy": 2}
_TO_RIGHT = {"ball_x": 460, "ball_vx": 10, "ball_y": 300, "ball_vy": 2}
_FLAT_LEFT = _TO_LEFT | {"ball_vy": 0}
_FLAT_RIGHT = _TO_RIGHT | {"ball_vy": 0}
_NARROW = {"ball_x": 45, "ball_vx": 10, "ball_y": 44, "paddle_yl": 45, "paddle_yr": 45}


def _on(name: str, *events: str, **state: Any) -> Scenario:
    """A scenario from the opening with some fields set; keywords as in `Scenario` and state."""
    configuration = state.pop("configuration", "frameskip1")
    actions = state.pop("actions", (_STILL,))
    values = {key: rows[0] for key, rows in opening(EnvParams(), 1).items()}
    if unknown := set(state) - set(values):
        raise ValueError(f"scenario {name!r} sets unknown fields {sorted(unknown)}")
    values |= {key: values[key].dtype.type(value) for key, value in state.items()}
    return Scenario(name, configuration, values, actions, events)


def _walls() -> tuple[Scenario, ...]:
    return (
        _on("wall bounce below", "wall_low", ball_x=200, ball_y=3, ball_vy=-5),
        _on("wall bounce above", "wall_high", ball_x=200, ball_y=605, ball_vy=5),
        _on("touching the lower wall is no bounce", ball_x=200, ball_y=5, ball_vy=-5),
        _on("touching the upper wall is no bounce", ball_x=200, ball_y=603, ball_vy=5),
        _on("one below the lower wall", "wall_low", ball_x=200, ball_y=4, ball_vy=-5),
        _on("one above the upper wall", "wall_high", ball_x=200, ball_y=604, ball_vy=5),
        _on("still outside a frame later", "wall_low", ball_x=200, ball_y=-5, ball_vy=3),
        _on("wall, then further frames", "wall_low", ball_y=9, ball_vy=-5, configuration="float32"),
    )


def _left_paddle() -> tuple[Scenario, ...]:
    return (
        _on("left bounce", "left_bounce", **_TO_LEFT, paddle_yl=280),
        _on("left paddle's lower edge hits", "left_bounce", **_FLAT_LEFT, paddle_yl=339),
        _on("left paddle's lower edge misses", "point_won", **_FLAT_LEFT, paddle_yl=340),
        _on("left paddle's upper edge hits", "left_bounce", **_FLAT_LEFT, paddle_yl=223),
        _on("left paddle's upper edge misses", "point_won", **_FLAT_LEFT, paddle_yl=222),
        _on("ball at the left side exactly", **(_FLAT_LEFT | {"ball_x": 10}), paddle_yl=0),
        _on(
            "left bounce at the wall",
            *("left_bounce", "wall_low"),
            **(_TO_LEFT | {"ball_y": 3, "ball_vy": -5}),
            paddle_yl=-35,
        ),
        _on("opponent at full speed", "opponent_full_speed", ball_x=200, paddle_yl=0),
        _on("opponent at full speed exactly", ball_x=200, ball_y=300, paddle_yl=257),
        _on("opponent stopped", "opponent_stopped_low", ball_y=-5, ball_vy=5, paddle_yl=-35),
        _on("opponent on the ball", ball_x=200, ball_y=300, paddle_yl=265),
    )


def _right_paddle() -> tuple[Scenario, ...]:
    return (
        _on("right bounce", "right_bounce", **_TO_RIGHT),
        _on("right paddle's lower edge hits", "right_bounce", **_FLAT_RIGHT, paddle_yr=331),
        _on("right paddle's lower edge misses", "point_lost", **_FLAT_RIGHT, paddle_yr=332),
        _on("right paddle's upper edge hits", "right_bounce", **_FLAT_RIGHT, paddle_yr=231),
        _on("right paddle's upper edge misses", "point_lost", **_FLAT_RIGHT, paddle_yr=230),
        _on("ball at the right side exactly", **(_FLAT_RIGHT | {"ball_x": 458}), paddle_yr=0),
        _on("paddle arrives in time", "spin_up", **_FLAT_RIGHT, paddle_yr=223, actions=(_UP,)),
        _on("agent stopped above", "agent_stopped_high", paddle_yr=600, actions=(_UP,)),
        _on("agent stopped below", "agent_stopped_low", paddle_yr=-30, actions=(_DOWN,)),
        _on("agent at the edge exactly", paddle_yr=597, actions=(_UP,)),
        _on("no such action keeps still", paddle_yr=300, actions=(_NO_SUCH,)),
    )


def _spin() -> tuple[Scenario, ...]:
    hit = "right_bounce"
    near_0, near_top = {"ball_y": 3, "ball_vy": -5}, {"ball_y": 605, "ball_vy": 5}
    return (
        _on("spin upwards", hit, "spin_up", **_TO_RIGHT, actions=(_UP,)),
        _on("spin downwards", hit, "spin_down", **_TO_RIGHT, actions=(_DOWN,)),
        _on(
            "spin over the upper limit",
            *("spin_up", "speed_limit"),
            **(_TO_RIGHT | {"ball_vy": 12}),
            actions=(_UP,),
        ),
        _on(
            "spin over the lower limit",
            *("spin_down", "speed_limit"),
            **(_TO_RIGHT | {"ball_vy": -13}),
            actions=(_DOWN,),
        ),
        _on("spin to the limit", "spin_up", **(_TO_RIGHT | {"ball_vy": 10}), actions=(_UP,)),
        _on("flat ball gets speed", hit, "flat_corrected", **_FLAT_RIGHT),
        _on(
            "spin that would flatten the ball",
            *("spin_down", "flat_corrected"),
            **(_TO_RIGHT | {"ball_vy": 3}),
            actions=(_DOWN,),
        ),
        _on(
            "wall reverses the speed before the spin",
            *(hit, "wall_low", "spin_down", "clipped_into_court"),
            **(_TO_RIGHT | near_0),
            paddle_yr=-20,
            actions=(_DOWN,),
        ),
        _on(
            "right bounce at the lower wall",
            *(hit, "wall_low", "clipped_into_court"),
            **(_TO_RIGHT | near_0),
            paddle_yr=-35,
        ),
        _on(
            "right bounce at the upper wall",
            *(hit, "wall_high", "clipped_into_court"),
            **(_TO_RIGHT | near_top),
            paddle_yr=600,
        ),
        _on("spin with fractions", hit, **_TO_RIGHT, actions=(_UP,), configuration="fractions"),
    )


def _points() -> tuple[Scenario, ...]:
    won, lost = _TO_LEFT | {"paddle_yl": 0}, _TO_RIGHT | {"paddle_yr": 0}
    last = {"score_l": 20, "score_r": 20}
    return (
        _on("point won", "point_won", "serve_down", **won, rng=_DOWN_NEXT),
        _on("point won, flat serve", "point_won", "serve_flat", **won, rng=_FLAT_NEXT),
        _on("point lost", "point_lost", "serve_down", **lost, rng=_DOWN_NEXT),
        _on("point lost, flat serve", "point_lost", "serve_flat", **lost, rng=_FLAT_NEXT),
        _on("stale observation, then play", "point_lost", **lost, actions=(_UP, _UP, _DOWN)),
        _on("last but one point", "point_won", **won, score_r=19),
        _on("game won", "point_won", "game_over", **won, score_r=20),
        _on("game lost", "point_lost", "game_over", **lost, score_l=20),
        _on("game won at 20 all", "game_over", **won, **last),
        _on("game lost at 20 all", "game_over", **lost, **last),
        _on("opponent at 20 does not end the game", "point_won", **won, score_l=20),
        _on("new game after the end", "game_over", **won, **last, actions=(_STILL, _UP, _UP)),
        _on("one point is a game", "game_over", **won, configuration="one_point"),
    )


def _frames() -> tuple[Scenario, ...]:
    lost = {"ball_vx": 10, "ball_y": 300, "ball_vy": 2, "paddle_yr": 0}
    eight, narrow = {"configuration": "frameskip8"}, {"configuration": "narrow_court"}
    return (
        _on("point with frames left", "point_lost", "frames_lost", ball_x=440, **lost, **eight),
        _on("point in the last frame", "point_lost", ball_x=390, **lost, **eight),
        _on("point in the first frame", "frames_lost", ball_x=460, **lost, **eight),
        _on("game over with frames left", "game_over", ball_x=440, **lost, score_l=20, **eight),
        _on("bounce, then frames", "right_bounce", **(_TO_RIGHT | {"ball_x": 440}), **eight),
        _on("bounce in the last frame", "right_bounce", **(_TO_RIGHT | {"ball_x": 390}), **eight),
        _on("moving through the frames", ball_x=200, **eight, actions=(_UP, _DOWN, _STILL)),
        _on("three frames", "wall_low", ball_y=9, ball_vy=-5, configuration="frameskip3"),
        _on("both paddles in one step", "left_bounce", "right_bounce", **_NARROW, **narrow),
        _on(
            "a point overwrites the bounce",
            *("bounce_overwritten", "point_won"),
            **(_NARROW | {"paddle_yl": 105, "ball_y": 5, "paddle_yr": -5}),
            **narrow,
        ),
    )


SCENARIOS = (*_walls(), *_left_paddle(), *_right_paddle(), *_spin(), *_points(), *_frames())
"""All scenarios, each with a name of its own."""
